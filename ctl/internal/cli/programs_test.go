package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ/api"
	"writ/ctl/internal/cli"
	"writ/fault"
)

// stand puts scripts in the place of the other two programs and returns the
// environment that finds them. "$2" is the directory, "$3" the command.
func stand(t *testing.T, gate, executor string) (env []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"writ-gate": gate, "writ-executor": executor} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nhere='"+dir+"'\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=" + dir, "USER=ana", "CANARY=not-a-real-secret", "http_proxy=http://192.0.2.1"}, dir
}

const (
	gateMade = `echo "gate $3 $4 $5" >> "$here/calls"
case "$3" in
key) mkdir -p "$2"; echo '{"public_key":"R0FURQ=="}';;
init) touch "$2/gate.yaml";;
add-principal) echo '{"token":"writ_'"$6"'_not-a-real-token"}';;
esac`
	executorMade = `echo "executor $3 $4 $5 $6 $7" >> "$here/calls"
case "$3" in
init) mkdir -p "$2"; echo 'executor: local
socket: run/executor.sock
catalog: ""' > "$2/executor.yaml"; echo '{"public_key":"RVhFQw=="}';;
esac`
)

func TestInit(t *testing.T) {
	t.Parallel()
	env, scripts := stand(t, gateMade, executorMade)
	home := filepath.Join(t.TempDir(), "w")
	r := run(t, env, "", "init", home, "--agent", "opencode")
	if r.status != 0 || !strings.Contains(r.stdout, "writ up") || strings.Contains(r.stdout, "not-a-real-token") {
		t.Fatalf("%d %s%s", r.status, r.stdout, r.stderr)
	}
	for name, want := range map[string]string{
		"writ.yaml":              "ask_as: opencode\napprove_as: ana\n",
		"tokens/opencode.token":  "writ_agent_not-a-real-token\n",
		"tokens/ana.token":       "writ_human_not-a-real-token\n",
		"executor/executor.yaml": "socket: ../run/executor.sock\n",
		"catalog/README":         "catalog check",
		"catalog/settings.yaml":  "",
	} {
		data, err := os.ReadFile(filepath.Join(home, name))
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && !strings.HasSuffix(path, "executor") && !strings.HasSuffix(path, "gate") && !strings.Contains(path, "gate.yaml") {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	calls, err := os.ReadFile(filepath.Join(scripts, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"executor init --name local --gate-key R0FURQ==", "executor systems add mock --environment lab", "executor add-approver ana",
		"gate add-principal opencode --kind", "gate add-principal ana --kind",
	} {
		if !strings.Contains(string(calls), want) {
			t.Errorf("%q was not called:\n%s", want, calls)
		}
	}
	if strings.Contains(string(calls), "add-approver opencode") {
		t.Error("the agent became an approver")
	}

	// What exists is not overwritten.
	before, err := os.ReadFile(filepath.Join(home, "tokens/ana.token"))
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, env, "", "init", home); r.status != fault.Conflict.Row().Exit {
		t.Errorf("again: %d %s", r.status, r.stderr)
	}
	if after, err := os.ReadFile(filepath.Join(home, "tokens/ana.token")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a second init changed a token: %v", err)
	}
}

func TestInit_leavesNothingBehind(t *testing.T) {
	t.Parallel()
	env, _ := stand(t, gateMade, executorMade+"\n"+`if [ "$3" = systems ]; then echo "no such kind" >&2; exit 2; fi`)
	home := filepath.Join(t.TempDir(), "w")
	if r := run(t, env, "", "init", home); r.status != 2 || !strings.Contains(r.stderr, "no such kind") {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, args := range [][]string{{"--agent", "ana"}, {"--agent", "../x"}, {"--approver", "Ana"}} {
		if r := run(t, env, "", append([]string{"init", home, "--approver", "ana"}, args...)...); r.status != fault.Invalid.Row().Exit {
			t.Errorf("%v: %d %s", args, r.status, r.stderr)
		}
	}
}

// TestPassed: a command of the executor gets the terminal, its own flags, and
// nothing of the caller's environment; its exit status is ours.
func TestPassed(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	env, dir := stand(t, "", `echo "$@"; cat; env | sort > "$here/env"; exit 9`)
	r := run(t, append(env, "WRIT_DIR="+g.home), "secret=not-a-real-secret\n", "systems", "add", "proxmox", "pve", "--set", "a=b", "--json")
	if want := "--dir " + filepath.Join(g.home, "executor") + " systems add proxmox pve --set a=b --json\nsecret=not-a-real-secret\n"; r.status != 9 || r.stdout != want {
		t.Errorf("%d %q, want %q", r.status, r.stdout, want)
	}
	scrubbed(t, filepath.Join(dir, "env"))
	// Help is given wherever one is.
	if r := run(t, append(env, "WRIT_DIR="+t.TempDir()), "", "systems", "add", "--help"); !strings.HasSuffix(r.stdout, "systems add --help\n") {
		t.Errorf("help without a writ.yaml: %d %q %q", r.status, r.stdout, r.stderr)
	}
}

// scrubbed checks the environment that a script was given.
func scrubbed(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range strings.Fields(string(data)) {
		name, _, _ := strings.Cut(pair, "=")
		if !slices.Contains([]string{"LANG", "TZ", "PWD", "_", "OLDPWD", "SHLVL", "PATH"}, name) { // a shell sets some itself
			t.Errorf("the environment holds %s", pair)
		}
		if strings.Contains(pair, "not-a-real-secret") || name == "PATH" && strings.Contains(pair, filepath.Dir(path)) {
			t.Errorf("the environment holds the caller's %s", pair)
		}
	}
}

// screen is an output that can be waited for.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.text.Write(b)
	close(s.more)
	s.more = make(chan struct{})
	return n, err
}

func (s *screen) await(t *testing.T, want string) {
	t.Helper()
	for late := time.After(20 * time.Second); ; {
		s.mu.Lock()
		found, more := strings.Contains(s.text.String(), want), s.more
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%q never came:\n%s", want, s.text.String())
		}
	}
}

// serving is a script that says it is ready, and tells when it is told to end.
const serving = `env > "$here/env-$me"; echo $$ > "$here/pid-$me"; trap 'echo "$me ends" >> "$here/order"; exit 0' TERM
echo "$me began" >> "$here/order"; echo "$me logs" >&2; echo "$me is ready"; while :; do sleep 0.02; done`

func TestUp(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	env, dir := stand(t, "me=gate; "+serving, "me=executor; "+serving)
	ctx, stop := context.WithCancel(t.Context())
	out := &screen{more: make(chan struct{})}
	ended := make(chan int)
	go func() {
		ended <- cli.Run(ctx, []string{"up"}, append(env, "WRIT_DIR="+g.home), strings.NewReader(""), out, io.Discard)
	}()
	out.await(t, "everything runs")
	out.await(t, "writ-gate     | gate logs")
	stop()
	if status := <-ended; status != 0 {
		t.Errorf("exit status %d", status)
	}
	order, err := os.ReadFile(filepath.Join(dir, "order"))
	if want := "executor began\ngate began\ngate ends\nexecutor ends\n"; err != nil || string(order) != want {
		t.Errorf("in the order %q, %v", order, err)
	}
	scrubbed(t, filepath.Join(dir, "env-gate"))
	scrubbed(t, filepath.Join(dir, "env-executor"))
}

// TestUp_oneDies: when one ends, the other is stopped and everybody is told.
func TestUp_oneDies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ gate, executor, order string }{
		"the executor at the start": {"me=gate; " + serving, "echo no >&2; exit 2", ""},
		"the gate at the start":     {"echo no >&2; exit 2", "me=executor; " + serving, "executor began\nexecutor ends\n"},
		"the gate later":            {"echo ready; read x < \"$here/pipe\"; exit 3", "me=executor; " + serving, "executor began\nexecutor ends\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			env, dir := stand(t, c.gate, c.executor)
			if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
			out := &screen{more: make(chan struct{})}
			var complaint bytes.Buffer
			ended := make(chan int)
			go func() {
				ended <- cli.Run(t.Context(), []string{"up"}, append(env, "WRIT_DIR="+g.home), strings.NewReader(""), out, &complaint)
			}()
			if name == "the gate later" {
				out.await(t, "everything runs")
				if err := os.WriteFile(filepath.Join(dir, "pipe"), []byte("x\n"), 0o600); err != nil {
					t.Error(err)
				}
			}
			if status := <-ended; status != fault.Unavailable.Row().Exit || !strings.Contains(complaint.String(), "ended by itself") {
				t.Errorf("exit status %d, %s", status, &complaint)
			}
			order, err := os.ReadFile(filepath.Join(dir, "order"))
			if string(order) != c.order && (err == nil || c.order != "") {
				t.Errorf("in the order %q, %v", order, err)
			}
		})
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	env, dir := stand(t, `echo '[{"name":"key","ok":true,"text":"fine","fix":""}]'`, `cat "$here/found"; exit 1`)
	env = append(env, "WRIT_DIR="+g.home)
	g.tell(api.HealthGet, api.Health{OK: true, Checks: []api.HealthCheck{{Name: "vault", OK: true, Text: "open"}}})
	found := filepath.Join(dir, "found")
	if err := os.WriteFile(found, []byte(`[{"name":"backups","ok":false,"text":"Others may enter it. Run: chmod 700 x","fix":"chmod 700 x"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, env, "", "doctor")
	for _, want := range []string{"FAIL  executor backups", "→ chmod 700 x", "ok    gate key", "ok    running vault", "1 of 8 checks failed"} {
		if r.status != 1 || !strings.Contains(r.stdout, want) {
			t.Errorf("%d, %q is missing:\n%s%s", r.status, want, r.stdout, r.stderr)
		}
	}
	var checks []api.HealthCheck
	if r := run(t, env, "", "doctor", "--json"); r.status != 1 || json.Unmarshal([]byte(r.stdout), &checks) != nil || len(checks) != 8 {
		t.Errorf("%d %s", r.status, r.stdout)
	}
	if err := os.WriteFile(found, []byte(`not JSON`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, env, "", "doctor"); r.status != 1 || !strings.Contains(r.stdout, "FAIL  executor ") {
		t.Errorf("%d %s", r.status, r.stdout)
	}
}

func TestPrincipalsAdd(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	env, dir := stand(t, gateMade, executorMade)
	env = append(env, "WRIT_DIR="+g.home)
	if r := run(t, env, "", "principals", "add", "bo", "--role", "auditor"); r.status != 0 || strings.Contains(r.stdout, "not-a-real-token") {
		t.Errorf("%d %s%s", r.status, r.stdout, r.stderr)
	}
	if r := run(t, env, "", "principals", "add", "cy", "--role", "approver"); r.status != 0 {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil || strings.Contains(string(calls), "add-approver bo") || !strings.Contains(string(calls), "add-approver cy") {
		t.Errorf("%s %v", calls, err)
	}
	info, err := os.Stat(filepath.Join(g.home, "tokens/cy.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

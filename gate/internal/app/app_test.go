package app_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"writ/api"
	"writ/client"
	"writ/fault"
	"writ/gate/internal/app"
	"writ/ledger"
)

type result struct {
	status         int
	stdout, stderr string
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := app.Run(t.Context(), args, &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// home is a gate's directory. A socket has a short path, so it is no t.TempDir.
type home struct {
	t     *testing.T
	dir   string
	token string
}

func newHome(t *testing.T) *home {
	t.Helper()
	above, err := os.MkdirTemp("", "writ-gate-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(above) })
	h := &home{t: t, dir: filepath.Join(above, "g")}
	executor := base64.StdEncoding.EncodeToString(make([]byte, 32))
	h.must("key")
	h.must("init", "--executor", "local", "--executor-socket", "e.sock", "--executor-key", executor)
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(h.must("add-principal", "ana", "--role", "approver")), &made); err != nil {
		t.Fatal(err)
	}
	h.token = made.Token
	return h
}

func (h *home) run(args ...string) result {
	return run(h.t, append([]string{"--dir", h.dir}, args...)...)
}

func (h *home) must(args ...string) string {
	h.t.Helper()
	r := h.run(args...)
	if r.status != 0 {
		h.t.Fatalf("writ-gate %v: %d %s", args, r.status, r.stderr)
	}
	return r.stdout
}

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }

func TestInit(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if len(entries) != 4 {
		t.Errorf("%d files: %v", len(entries), entries)
	}
	if first, again := h.must("key"), h.must("key"); first != again || !strings.Contains(first, "ed25519:") {
		t.Errorf("the key changes: %s %s", first, again)
	}
	for _, args := range [][]string{{"init"}, {"add-principal", "ana", "--role", "auditor"}, {"add-principal", "bot", "--kind", "agent", "--role", "approver"}} {
		if r := h.run(args...); r.status == 0 {
			t.Errorf("%v was done", args)
		}
	}
	// What is missing comes back, and nothing else is touched.
	before, err := os.ReadFile(h.path("gate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(h.path("policy.yaml")); err != nil {
		t.Fatal(err)
	}
	h.must("init")
	h.must("doctor")
	if after, err := os.ReadFile(h.path("gate.yaml")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("gate.yaml was changed: %v", err)
	}
	if r := run(t, "--dir", filepath.Join(t.TempDir(), "x"), "init"); r.status != fault.Invalid.Row().Exit || !strings.Contains(r.stderr, "executor.key") {
		t.Errorf("without an executor: %d %s", r.status, r.stderr)
	}
	if r := run(t, "bogus"); r.status != fault.Invalid.Row().Exit {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	if out := h.must("config", "check"); !strings.Contains(out, "is valid") {
		t.Error(out)
	}
}

// gate is a running gate.
type gate struct {
	stop  context.CancelFunc
	ended chan int
	log   *output
	out   *output
}

// output is what a gate prints; it can be waited for.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(b)
	close(o.more)
	o.more = make(chan struct{})
	return n, err
}

func (h *home) start() *gate {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.t.Context())
	out := &output{more: make(chan struct{})}
	g := &gate{stop: stop, ended: make(chan int, 1), log: &output{more: make(chan struct{})}, out: out}
	go func() { g.ended <- app.Run(ctx, []string{"--dir", h.dir, "run"}, out, g.log) }()
	select {
	case <-out.has(regexp.MustCompile("is ready on " + regexp.QuoteMeta(h.path("gate.sock")))):
		return g
	case status := <-g.ended:
		h.t.Fatalf("the gate ended with %d: %s", status, g.log.text.String())
	case <-time.After(20 * time.Second):
		h.t.Fatal("the gate never became ready")
	}
	return nil
}

// has returns what is closed when something was printed.
func (o *output) has(what *regexp.Regexp) <-chan struct{} {
	found := make(chan struct{})
	go func() {
		defer close(found)
		for {
			o.mu.Lock()
			there, more := what.Match(o.text.Bytes()), o.more
			o.mu.Unlock()
			if there {
				return
			}
			<-more
		}
	}()
	return found
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func TestRun(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	g := h.start()
	c, err := client.New(h.path("gate.sock"), h.token)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Policy(t.Context()); err != nil || !strings.Contains(p.Source, "approve-most") {
		t.Errorf("%+v %v", p, err)
	}
	if health, err := c.Health(t.Context()); err != nil || health.OK || health.Version != api.Version {
		t.Errorf("without an executor: %+v %v", health, err)
	}
	for _, name := range []string{"gate.sock", "gate.db", "audit", "audit/checkpoint", "audit/segment/000000000000.jsonl"} {
		if info, err := os.Lstat(h.path(name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if r := h.run("run"); r.status != fault.Unavailable.Row().Exit || !strings.Contains(r.stderr, "Another process") {
		t.Errorf("a second gate: %d %s", r.status, r.stderr)
	}
	if _, err := c.Policy(t.Context()); err != nil {
		t.Errorf("the second gate took the socket away: %v", err)
	}
	g.stop()
	if status := <-g.ended; status != 0 {
		t.Errorf("stopped with %d: %s", status, g.log.text.String())
	}

	// A socket that a killed gate left behind is no obstacle; another file is.
	left, err := net.Listen("unix", h.path("gate.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := left.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false)
	}
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	g = h.start()
	g.stop()
	if status := <-g.ended; status != 0 {
		t.Errorf("after a crash: %d %s", status, g.log.text.String())
	}
	if err := os.WriteFile(h.path("gate.sock"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := h.run("run"); r.status != fault.Unavailable.Row().Exit {
		t.Errorf("a file in the way: %d %s", r.status, r.stderr)
	}
	if data, err := os.ReadFile(h.path("gate.sock")); err != nil || string(data) != "mine" {
		t.Errorf("the file in the way was taken away: %v", err)
	}
}

// TestRun_refuses: a directory that others can enter or write starts no gate,
// and the error ends in the command that mends it; doctor says the same.
func TestRun_refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*home) error
		want  string
	}{
		"open directory":    {func(h *home) error { return os.Chmod(h.dir, 0o755) }, "chmod 700"},
		"open key":          {func(h *home) error { return os.Chmod(h.path("gate.key"), 0o640) }, "chmod 600"},
		"open principals":   {func(h *home) error { return os.Chmod(h.path("principals.yaml"), 0o604) }, "chmod 600"},
		"open policy":       {func(h *home) error { return os.Chmod(h.path("policy.yaml"), 0o660) }, "chmod 600"},
		"open config":       {func(h *home) error { return os.Chmod(h.path("gate.yaml"), 0o644) }, "chmod 600"},
		"linked key":        {func(h *home) error { return link(h.path("gate.key")) }, "must be a file"},
		"linked principals": {func(h *home) error { return link(h.path("principals.yaml")) }, "must be a file"},
		"no key":            {func(h *home) error { return os.Remove(h.path("gate.key")) }, "writ-gate key --dir "},
		"half a key":        {func(h *home) error { return os.WriteFile(h.path("gate.key"), []byte("aGFsZg=="), 0o600) }, "is not a key"},
		"no policy":         {func(h *home) error { return os.Remove(h.path("policy.yaml")) }, "writ-gate init --dir "},
		"empty policy":      {func(h *home) error { return os.WriteFile(h.path("policy.yaml"), []byte("policy: x\n"), 0o600) }, "no rule"},
		"broken principals": {func(h *home) error { return os.WriteFile(h.path("principals.yaml"), []byte("- {"), 0o600) }, "nobody is let in"},
		"spoilt audit":      {func(h *home) error { return spoilt(h) }, "audit"},
		"unknown setting":   {func(h *home) error { return appendTo(h.path("gate.yaml"), "\nfast: true\n") }, "fast"},
		"bad catalog":       {func(h *home) error { return badCatalog(h) }, "catalog"},
		"catalog of all":    {func(h *home) error { return openCatalog(h) }, "chmod go-w "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			if doctor := h.run("doctor"); doctor.status != 0 {
				t.Fatalf("doctor of a sound directory: %s", doctor.stdout)
			}
			if err := c.spoil(h); err != nil {
				t.Fatal(err)
			}
			if r := h.run("run"); r.status == 0 || !strings.Contains(r.stderr, c.want) {
				t.Errorf("run: %d %s", r.status, r.stderr)
			}
			var checks []api.HealthCheck
			if err := json.Unmarshal([]byte(h.run("doctor", "--json").stdout), &checks); err != nil {
				t.Fatal(err)
			}
			said := ""
			for _, check := range checks {
				if !check.OK {
					said += check.Text + check.Fix
				}
			}
			if !strings.Contains(said, c.want) || h.run("doctor").status == 0 {
				t.Errorf("doctor says %q", said)
			}
		})
	}
}

func link(path string) error {
	if err := os.Rename(path, path+".real"); err != nil {
		return err
	}
	return os.Symlink(path+".real", path)
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.WriteString(f, text)
	return err
}

func badCatalog(h *home) error {
	if err := os.MkdirAll(h.path("actions"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(h.path("actions/x.yaml"), []byte("action: x\n"), 0o600); err != nil {
		return err
	}
	data, err := os.ReadFile(h.path("gate.yaml"))
	if err != nil {
		return err
	}
	return os.WriteFile(h.path("gate.yaml"), bytes.Replace(data, []byte(`catalog: ""`), []byte(`catalog: "actions"`), 1), 0o600)
}

// openCatalog gives it a catalog that anybody can get to and write to.
func openCatalog(h *home) error {
	place := h.path("") + ".actions"
	err := errors.Join(os.Mkdir(place, 0o700), os.Chmod(place, 0o777))
	for up := filepath.Dir(place); err == nil && up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		err = os.Chmod(up, 0o755)
	}
	data, e := os.ReadFile(h.path("gate.yaml"))
	return errors.Join(err, e, os.WriteFile(h.path("gate.yaml"), bytes.Replace(data, []byte(`catalog: ""`), []byte(`catalog: "`+place+`"`), 1), 0o600))
}

// spoilt makes an audit that is none.
func spoilt(h *home) error {
	if err := os.MkdirAll(h.path("audit/segment"), 0o700); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(h.path("audit/checkpoint"), nil, 0o600),
		os.WriteFile(h.path("audit/segment/000000000000.jsonl"), []byte("{}\n"), 0o600))
}

// A new key goes on where the old one was, and whoever knows the old one can
// verify all of it; a crash in between is mended by the same command.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	run := func() {
		t.Helper()
		g := h.start()
		g.stop()
		if status := <-g.ended; status != 0 {
			t.Fatalf("the gate ended with %d: %s", status, g.log.text.String())
		}
	}
	run()
	before, err := ledger.Verify(h.path("audit"), ledger.Against{})
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(h.path("gate.key"))
	if err != nil {
		t.Fatal(err)
	}
	if r := h.run("rotate-key"); r.status != 0 || !strings.Contains(r.stdout, "public_key") {
		t.Fatalf("rotate-key: %d %s%s", r.status, r.stdout, r.stderr)
	}
	next, err := os.ReadFile(h.path("gate.key"))
	if err != nil || string(next) == string(old) {
		t.Fatalf("the key stayed: %v", err)
	}
	// As after a crash before the new key was put in its place.
	if err := errors.Join(os.Rename(h.path("gate.key"), h.path("gate.key.next")), os.WriteFile(h.path("gate.key"), old, 0o600)); err != nil {
		t.Fatal(err)
	}
	if r := h.run("run"); r.status == 0 || !strings.Contains(r.stderr, "rotate-key") {
		t.Errorf("with the old key: %d %s", r.status, r.stderr)
	}
	if r := h.run("rotate-key"); r.status != 0 {
		t.Fatalf("rotate-key again: %d %s", r.status, r.stderr)
	}
	if now, err := os.ReadFile(h.path("gate.key")); err != nil || string(now) != string(next) {
		t.Errorf("a third key was made: %v", err)
	}
	run()
	after, err := ledger.Verify(h.path("audit"), ledger.Against{Key: before.Key})
	if err != nil || after.Key == before.Key || after.Events <= before.Events || after.Segments != 2 {
		t.Errorf("%+v %v", after, err)
	}
}

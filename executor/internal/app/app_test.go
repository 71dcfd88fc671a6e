package app_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/catalog"
	"writ/executor/internal/app"
	"writ/fault"
)

const canary = "canary-not-a-real-secret"

func gateKey() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("gate"))
	return ed25519.NewKeyFromSeed(seed[:])
}

// command runs the program with the data directory and standard input.
func command(t *testing.T, dir, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, err bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // "run" ends by itself only if it refuses to start
	defer cancel()
	status = app.Run(ctx, append(args, "--dir", dir), strings.NewReader(stdin), &out, &err)
	if strings.Contains(out.String()+err.String(), canary) {
		t.Errorf("%v printed a secret: %s%s", args, out.String(), err.String())
	}
	return out.String(), err.String(), status
}

// ok is command for what must succeed.
func ok(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	stdout, stderr, status := command(t, dir, stdin, args...)
	if status != 0 {
		t.Fatalf("%v ended with %d: %s", args, status, stderr)
	}
	return stdout
}

// initialised returns the directory of a new executor and its public key. The
// path is short enough for a socket.
func initialised(t *testing.T, more ...string) (dir string, key ed25519.PublicKey) {
	t.Helper()
	top, err := os.MkdirTemp("", "writ")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	dir = filepath.Join(top, "x")
	public := base64.StdEncoding.EncodeToString(gateKey().Public().(ed25519.PublicKey))
	stdin := ""
	if len(more) > 0 {
		stdin = "a long enough passphrase\n"
	}
	var who struct {
		Executor  string `json:"executor"`
		PublicKey string `json:"public_key"`
		KeyID     string `json:"key_id"`
	}
	out := ok(t, dir, stdin, append([]string{"init", "--name", "site-a", "--approver", "mara", "--gate-key", public}, more...)...)
	if err := json.Unmarshal([]byte(out), &who); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	key, err = base64.StdEncoding.DecodeString(who.PublicKey)
	if err != nil || who.Executor != "site-a" || who.KeyID != writ.KeyID(key) {
		t.Errorf("init printed %s", out)
	}
	return dir, key
}

// running starts "run" and returns when it is ready. stop ends it and returns its exit status.
func running(t *testing.T, dir string) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	out, in := io.Pipe()
	var log syncBuffer
	status := make(chan int, 1)
	go func() {
		status <- app.Run(ctx, []string{"run", "--dir", dir}, strings.NewReader(""), in, &log)
		_ = in.Close() // an io.Pipe closes without an error
	}()
	line := make([]byte, 512)
	n, err := out.Read(line)
	if err != nil || !strings.Contains(string(line[:n]), "is ready on") {
		cancel()
		t.Fatalf("not ready: %q %v: %s", line[:n], err, log.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	var once sync.Once
	ended := -1
	stop = func() int {
		once.Do(func() {
			cancel()
			ended = <-status
			if strings.Contains(log.String(), canary) {
				t.Errorf("a secret is in the log: %s", log.String())
			}
		})
		return ended
	}
	t.Cleanup(func() { stop() })
	return stop
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// call speaks to the running executor as the gate does.
func call(t *testing.T, dir, method, path string, body []byte, out any) error {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "run/executor.sock"))
	}}}
	q, err := http.NewRequestWithContext(t.Context(), method, "http://executor"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	if a.StatusCode >= 400 {
		var r writ.Refusal
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return &fault.Error{Code: r.Code, Reason: r.Reason, Text: r.Text}
	}
	return json.Unmarshal(text, out)
}

// change makes a writ for one step of mock.noop_change.
func change(t *testing.T, purpose writ.Purpose, nonce string, step writ.Step) []byte {
	t.Helper()
	now := time.Now()
	w := writ.Writ{Format: writ.FormatWrit, Purpose: purpose, Run: "run_" + nonce, Executor: "site-a", Nonce: "0123456789abcdef" + nonce, Epoch: 1,
		IssuedAt: writ.At(now), ExpiresAt: writ.At(now.Add(time.Minute)), Fences: []writ.Fence{}, Approvals: []writ.Approval{},
		Envelope: writ.Envelope{ChangeID: "chg_1", RequestDigest: writ.DigestBytes(nil), RequestedBy: writ.Principal{Name: "bot", Kind: writ.Agent},
			Environment: "lab", Class: step.Class, RiskLevel: writ.Low, OnFailure: writ.Stop, PolicyDigest: writ.DigestBytes(nil),
			PreviewDigest: writ.DigestBytes(nil), Steps: []writ.Step{step}}}
	if purpose == writ.Execute {
		digest, err1 := w.Envelope.Digest()
		scope, err2 := writ.ScopeOf(&w.Envelope)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		w.Fences = []writ.Fence{{Entity: step.Entity, Number: 1}}
		w.Approvals = []writ.Approval{{ID: "appr_1", ApprovedBy: writ.Principal{Name: "mara", Kind: writ.Human}, ApprovedAt: w.IssuedAt,
			ExpiresAt: w.ExpiresAt, EnvelopeDigest: digest, ShownDigest: digest, RiskLevel: writ.Low, Scope: scope}}
	}
	sealed, err := writ.Seal(writ.KindWrit, &w, gateKey())
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// The thinnest line from end to end: a new directory, a mock system, a change.
func TestRun_mockChange(t *testing.T) {
	t.Parallel()
	dir, key := initialised(t)
	ok(t, dir, "", "systems", "add", "mock", "--environment", "lab")
	stop := running(t, dir)
	actions, err := catalog.Load(catalog.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	action, _ := actions.Action("mock.noop_change")
	step := writ.Step{ID: "s1", Needs: []string{}, Action: action.Name, ActionDigest: action.Digest, System: "mock", Params: writ.Object{"value": "hello"},
		Resolved: writ.Object{}, Touches: []string{}, Class: action.Class, BackupRequired: true}
	var seen writ.Observations
	if err := call(t, dir, "POST", writ.PathWrits, change(t, writ.Observe, "1", step), &seen); err != nil {
		t.Fatal(err)
	}
	var o writ.Observation
	if err := writ.Open(writ.KindObservation, seen.Observations[0], writ.NewKeyring(key), &o); err != nil {
		t.Fatal(err)
	}
	step.Entity, step.Touches, step.Resolved, step.Fingerprint, step.Rollback = o.Entity, o.Touches, o.Resolved, o.Fingerprint, o.Rollback
	var state writ.RunState
	if err := call(t, dir, "POST", writ.PathWrits, change(t, writ.Execute, "2", step), &state); err != nil {
		t.Fatal(err)
	}
	if err := call(t, dir, "GET", writ.PathRuns+state.Run+"?wait_ms=20000", nil, &state); err != nil || len(state.Receipts) != 1 {
		t.Fatalf("%+v %v", state, err)
	}
	var r writ.Receipt
	if err := writ.Open(writ.KindReceipt, state.Receipts[0], writ.NewKeyring(key), &r); err != nil || r.Outcome != writ.Done || !r.Changed {
		t.Errorf("%+v %v", r, err)
	}
	if _, stderr, status := command(t, dir, "", "run"); status != fault.Conflict.Row().Exit {
		t.Errorf("a second executor on one directory ended with %d: %s", status, stderr)
	}
	if status := stop(); status != 0 {
		t.Errorf("run ended with %d", status)
	}
	if _, err := os.Stat(filepath.Join(dir, "run/executor.sock")); err == nil {
		t.Error("the socket is left over")
	}
	running(t, dir) // again, on what is on disk
	if err := call(t, dir, "GET", writ.PathRuns+state.Run, nil, &state); err != nil || !state.Finished || len(state.Receipts) != 1 {
		t.Errorf("after a restart: %+v %v", state, err)
	}
}

func TestInit_overwritesNothing(t *testing.T) {
	t.Parallel()
	dir, _ := initialised(t)
	before := listing(t, dir)
	if _, stderr, status := command(t, dir, "", "init", "--name", "site-b"); status != fault.Conflict.Row().Exit {
		t.Errorf("a second init ended with %d: %s", status, stderr)
	}
	if after := listing(t, dir); after != before {
		t.Errorf("it changed the directory from\n%s\nto\n%s", before, after)
	}
	for _, args := range [][]string{{"init", "--name", "Not A Name"}, {"init", "--name", "b", "--gate-key", "x"}, {"init"}, {"init", "--name", "b", "--bogus"}} {
		other := filepath.Join(t.TempDir(), "d")
		if _, stderr, status := command(t, other, "", args...); status != fault.Invalid.Row().Exit {
			t.Errorf("%v ended with %d: %s", args, status, stderr)
		}
		if _, err := os.Stat(other); err == nil {
			t.Errorf("%v left a directory behind", args)
		}
	}
}

// listing shows every file with its mode and content.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Type() != os.ModeSocket && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others can use %s: %v", path, info.Mode())
		}
		b.WriteString(path + " " + info.Mode().String() + " ")
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.Write(content)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What is wrong with the directory stops the start, with the command that mends it.
func TestRun_refusesToStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(dir string) error
		text  string
	}{
		"directory open": {func(dir string) error { return os.Chmod(dir, 0o755) }, "chmod 700 "},
		"key open":       {func(dir string) error { return os.Chmod(filepath.Join(dir, "executor.key"), 0o640) }, "chmod 600 "},
		"vault key open": {func(dir string) error { return os.Chmod(filepath.Join(dir, "vault.key"), 0o644) }, "chmod 600 "},
		"journal open": {func(dir string) error {
			file := filepath.Join(dir, "journal.db")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				return err
			}
			return os.Chmod(file, 0o644)
		}, "chmod 600 "},
		"no key":             {func(dir string) error { return os.Remove(filepath.Join(dir, "executor.key")) }, "no file"},
		"a damaged key":      {func(dir string) error { return os.WriteFile(filepath.Join(dir, "executor.key"), []byte("x"), 0o600) }, "Restore it"},
		"a damaged hash key": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "redact.key"), []byte("x"), 0o600) }, "or remove it"},
		"hash key open":      {func(dir string) error { return os.Chmod(filepath.Join(dir, "redact.key"), 0o644) }, "chmod 600 "},
		"key is a link":      {func(dir string) error { return link(filepath.Join(dir, "executor.key")) }, "not a link"},
		"no directory":       {os.RemoveAll, "writ-executor init"},
		"unknown setting": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "executor.yaml"), []byte("colour: red\n"), 0o600)
		}, "colour"},
		"unknown kind": {func(dir string) error {
			return appendTo(filepath.Join(dir, "executor.yaml"), "systems: [{name: a, kind: abacus, environment: lab}]\n")
		}, "There is no kind of system \"abacus\""},
		"a catalog of all": {func(dir string) error { return openCatalog(dir) }, "chmod go-w "},
		"no catalog":       {func(dir string) error { return appendTo(filepath.Join(dir, "executor.yaml"), "catalog: nowhere\n") }, "nowhere"},
	} {
		dir, _ := initialised(t)
		if err := c.spoil(dir); err != nil {
			t.Fatal(err)
		}
		_, stderr, status := command(t, dir, "", "run")
		if status == 0 || !strings.Contains(stderr, c.text) {
			t.Errorf("%s: ended with %d: %s", name, status, stderr)
		}
	}
}

// openCatalog gives it a catalog that anybody can get to and write to.
func openCatalog(dir string) error {
	place := dir + ".actions"
	err := os.Mkdir(place, 0o700)
	for up := filepath.Dir(dir); err == nil && up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		err = os.Chmod(up, 0o755)
	}
	return errors.Join(err, os.Chmod(place, 0o777), appendTo(filepath.Join(dir, "executor.yaml"), "catalog: "+place+"\n"))
}

func link(file string) error {
	if err := os.Rename(file, file+".real"); err != nil {
		return err
	}
	return os.Symlink(file+".real", file)
}

// appendTo replaces a setting of the file by a line.
func appendTo(file, line string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	key, _, _ := strings.Cut(line, ":")
	var kept []string
	for _, l := range strings.Split(string(content), "\n") {
		if !strings.HasPrefix(l, key+":") {
			kept = append(kept, l)
		}
	}
	return os.WriteFile(file, []byte(strings.Join(kept, "\n")+line), 0o600)
}

func TestSystems_commands(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer "+canary {
			http.Error(w, "no: "+q.Header.Get("Authorization"), http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().Raw)
	pin := strings.ToUpper(strings.TrimSuffix(strings.ReplaceAll(hexPairs(sum[:]), " ", ":"), ":"))
	dir, _ := initialised(t)
	running(t, dir)
	given := "base_url=" + server.URL + "\ntoken=" + canary + "\n"
	for _, c := range []struct {
		name, stdin, text string
		args              []string
	}{
		{"no such kind", "", "abacus", []string{"abacus"}},
		{"nothing given", "", "environment is missing", []string{"http"}},
		{"no address", "token=" + canary + "\n", "base_url is missing", []string{"http", "--environment", "lab"}},
		{"an unknown key", given + "colour=red\n", "Line 3", []string{"http", "--environment", "lab", "--trust-first-fingerprint"}},
		{"a secret as argument", given, "--set token", []string{"http", "--environment", "lab", "--set", "token=x"}},
		{"no pin", given, "--pin ", []string{"http", "--environment", "lab"}},
		{"another pin", given, "another certificate", []string{"http", "--environment", "lab", "--pin", strings.Repeat("ab", 32)}},
		{"a bad option", given, "auth", []string{"http", "--environment", "lab", "--trust-first-fingerprint", "--set", "auth=magic"}},
	} {
		before := listing(t, dir)
		_, stderr, status := command(t, dir, c.stdin, append([]string{"systems", "add"}, c.args...)...)
		if status == 0 || !strings.Contains(stderr, c.text) {
			t.Errorf("%s: ended with %d: %s", c.name, status, stderr)
		}
		if listing(t, dir) != before && c.name != "no such kind" { // the first one makes the lock file
			t.Errorf("%s: it changed something", c.name)
		}
	}
	ok(t, dir, given, "systems", "add", "http", "api", "--environment", "lab", "--pin", pin, "--endpoint", "site=http://127.0.0.1:1")
	var hello writ.Hello
	if err := call(t, dir, "GET", writ.PathHello, nil, &hello); err != nil || len(hello.Systems) != 1 || hello.Systems[0] != (writ.SystemInfo{Name: "api", Kind: "http", Environment: "lab"}) {
		t.Errorf("the running executor does not know it: %+v %v", hello, err)
	}
	if strings.Contains(listing(t, dir), canary) {
		t.Error("the secret lies in the open")
	}
	if out := ok(t, dir, "", "systems", "list"); !strings.HasPrefix(out, "api  http  lab  https://") {
		t.Errorf("list printed %q", out)
	}
	if out := ok(t, dir, "", "systems", "test", "api"); out != "api answers.\n" {
		t.Errorf("test printed %q", out)
	}
	ok(t, dir, canary+"-old\n", "vault", "set", "api.token")
	if out, _, status := command(t, dir, "", "systems", "test", "api"); status != 1 || !strings.Contains(out, "privilege") {
		t.Errorf("with a powerless credential test ended with %d: %s", status, out)
	}
	if _, _, status := command(t, dir, given, "systems", "add", "http", "api", "--environment", "lab", "--pin", pin); status != fault.Conflict.Row().Exit {
		t.Errorf("a second one of the name ended with %d", status)
	}
	ok(t, dir, "", "systems", "remove", "api")
	if out := ok(t, dir, "", "vault", "list"); out != "" {
		t.Errorf("its secrets are left: %s", out)
	}
	if err := call(t, dir, "GET", writ.PathHello, nil, &hello); err != nil || len(hello.Systems) != 0 {
		t.Errorf("the running executor still knows it: %+v %v", hello, err)
	}
}

// What people know of a system is its address; what its kind adds to it is added.
func TestSystems_addresses(t *testing.T) {
	t.Parallel()
	dir, _ := initialised(t)
	ok(t, dir, "identity=a@example.test\nsecret="+canary+"\nsite=http://127.0.0.1:8080\nbase_url=http://127.0.0.1:81/\n", "systems", "add", "npm", "--environment", "lab")
	ok(t, dir, "token="+canary+"\n", "systems", "add", "netbox", "--environment", "lab", "--set", "base_url=http://127.0.0.1:82/own/api")
	content, err := os.ReadFile(filepath.Join(dir, "executor.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"base_url: http://127.0.0.1:81/api\n", "site: http://127.0.0.1:8080\n", "base_url: http://127.0.0.1:82/own/api\n", "secret: npm.secret\n"} {
		if !strings.Contains(string(content), want) {
			t.Errorf("%q is not in\n%s", want, content)
		}
	}
}

func hexPairs(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, c := range b {
		s.WriteByte(digits[c>>4])
		s.WriteByte(digits[c&15])
		s.WriteByte(' ')
	}
	return s.String()
}

// A change that a running executor cannot take is said to be one.
func TestReload_refuses(t *testing.T) {
	t.Parallel()
	dir, _ := initialised(t)
	running(t, dir)
	file := filepath.Join(dir, "executor.yaml")
	for _, line := range []string{"executor: site-b\n", "socket: run/other.sock\n", "backups: elsewhere\n"} {
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := appendTo(file, line); err != nil {
			t.Fatal(err)
		}
		_, stderr, status := command(t, dir, "", "add-approver", "otto")
		if status != fault.Unsupported.Row().Exit || !strings.Contains(stderr, "Start the executor again") {
			t.Errorf("%s: ended with %d: %s", line, status, stderr)
		}
		if err := os.WriteFile(file, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var hello writ.Hello
	if err := call(t, dir, "GET", writ.PathHello, nil, &hello); err != nil || hello.Executor != "site-a" {
		t.Errorf("%+v %v", hello, err)
	}
}

func TestTrust_commands(t *testing.T) {
	t.Parallel()
	dir, _ := initialised(t)
	running(t, dir)
	other := sha256.Sum256([]byte("another gate"))
	public := ed25519.NewKeyFromSeed(other[:]).Public().(ed25519.PublicKey)
	ok(t, dir, "", "set-gate-key", base64.StdEncoding.EncodeToString(public))
	ok(t, dir, "", "add-approver", "otto")
	for _, args := range [][]string{{"set-gate-key", "x"}, {"add-approver", "otto"}, {"add-approver", ""}} {
		if _, stderr, status := command(t, dir, "", args...); status != fault.Invalid.Row().Exit {
			t.Errorf("%v ended with %d: %s", args, status, stderr)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "executor.yaml"))
	keys := "\ngate_keys:\n- " + base64.StdEncoding.EncodeToString(public) + "\nformer_gate_keys:\n- "
	if err != nil || !strings.Contains(string(content), "- mara\n- otto\n") || !strings.Contains(string(content), keys) || strings.Count(string(content), "=\n") != 2 {
		t.Errorf("executor.yaml: %v\n%s", err, content)
	}
	ok(t, dir, "", "remove-approver", "mara")
	if content, err = os.ReadFile(filepath.Join(dir, "executor.yaml")); err != nil || strings.Contains(string(content), "mara") || !strings.Contains(string(content), "- otto\n") {
		t.Errorf("executor.yaml: %v\n%s", err, content)
	}
	// The running executor no longer takes writs of the gate that it had.
	err = call(t, dir, "POST", writ.PathWrits, change(t, writ.Observe, "1", writ.Step{ID: "s1", Needs: []string{}, Touches: []string{}, Params: writ.Object{}, Resolved: writ.Object{}}), nil)
	if fault.ReasonOf(err) != "unknown_key" {
		t.Errorf("%v", err)
	}
}

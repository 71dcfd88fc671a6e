package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/executor/internal/admit"
	"writ/executor/internal/executortest"
	"writ/executor/internal/serve"
	"writ/fault"
)

// link serves a world on a socket and returns a client of it.
func link(t *testing.T, w *executortest.World) *http.Client {
	t.Helper()
	l := &serve.Link{Log: w.Sys.Log, Door: w.Door, Runner: w.Runner, Journal: w.Journal, Hello: func(context.Context) (writ.Hello, error) {
		return writ.Hello{Executor: "site-a"}, nil
	}}
	return client(t, l.Handler())
}

func client(t *testing.T, h http.Handler) *http.Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s")
	listener, err := serve.Listen(t.Context(), file, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := serve.Server(h)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", file)
	}}}
}

// call makes a call and decodes its answer into out, a refusal into the error.
func call(t *testing.T, c *http.Client, method, path string, body []byte, out any) (int, error) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, "http://executor"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Do(q)
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
		if err := json.Unmarshal(text, &r); err != nil || r.Code.Row().HTTP != a.StatusCode {
			t.Errorf("status %d: %s", a.StatusCode, text)
		}
		return a.StatusCode, &fault.Error{Code: r.Code, Reason: r.Reason, Text: r.Text}
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	return a.StatusCode, nil
}

func TestLink(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	c := link(t, w)
	var hello writ.Hello
	if _, err := call(t, c, "GET", writ.PathHello, nil, &hello); err != nil || hello.Executor != "site-a" {
		t.Errorf("hello: %+v %v", hello, err)
	}
	step := w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "new"})
	var seen writ.Observations
	if status, err := call(t, c, "POST", writ.PathWrits, w.Seal(t, w.Writ(writ.Observe, step)), &seen); err != nil || status != 200 || len(seen.Observations) != 1 {
		t.Errorf("observe: %d %+v %v", status, seen, err)
	}
	o := w.Approved(t, writ.Stop, step)
	sealed := w.Seal(t, o)
	var state writ.RunState
	if status, err := call(t, c, "POST", writ.PathWrits, sealed, &state); err != nil || status != 202 || state.Run != o.Run || state.Finished || len(state.Receipts) != 0 {
		t.Errorf("execute: %d %+v %v", status, state, err)
	}
	w.Runner.Wait()
	if _, err := call(t, c, "GET", writ.PathRuns+o.Run, nil, &state); err != nil || !state.Finished || len(state.Receipts) != 1 {
		t.Errorf("run: %+v %v", state, err)
	}
	if r := w.Receipts(t, o.Run); r[0].Outcome != writ.Done {
		t.Errorf("%+v", r)
	}
	if _, err := call(t, c, "GET", writ.PathRuns+o.Run+"?after=1&wait_ms=60000", nil, &state); err != nil || len(state.Receipts) != 0 {
		t.Errorf("run after 1: %+v %v", state, err)
	}
	if status, err := call(t, c, "POST", writ.PathWrits, sealed, nil); status != 409 || fault.CodeOf(err) != fault.Spent {
		t.Errorf("replay: %d %v", status, err)
	}
}

func TestLink_refuses(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	c := link(t, w)
	for _, q := range []struct {
		method, path, body string
		status             int
		reason             string
	}{
		{"POST", writ.PathWrits, ``, 403, "malformed"},
		{"POST", writ.PathWrits, `{"action":"thing.set"}`, 403, "malformed"},
		{"POST", writ.PathWrits, strings.Repeat("x", 3<<20), 403, "malformed"},
		{"GET", writ.PathWrits, ``, 404, "unknown_call"},
		{"GET", "/", ``, 404, "unknown_call"},
		{"POST", "/unlock", ``, 404, "unknown_call"},
		{"GET", writ.PathRuns + "run_x", ``, 404, "unknown_run"},
		{"GET", writ.PathRuns + "run_x?after=-1", ``, 400, ""},
		{"GET", writ.PathRuns + "run_x?wait_ms=soon", ``, 400, ""},
	} {
		status, err := call(t, c, q.method, q.path, []byte(q.body), nil)
		if status != q.status || fault.ReasonOf(err) != q.reason {
			t.Errorf("%s %s: %d %v, want %d %s", q.method, q.path, status, err, q.status, q.reason)
		}
	}
	if sent := w.Recorder.Requests(); len(sent) != 0 {
		t.Errorf("the target was reached: %v", sent)
	}
}

// Whoever waits for a receipt gets it when it is there, and a gate that goes
// away does not stop the run.
func TestLink_waits(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	c := link(t, w)
	o := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "one"}), w.Step(t, "s2", "thing.set", writ.Object{"name": "b", "value": "two"}))
	arrived, goOn := make(chan bool), make(chan bool)
	w.Things.OnCall = func(method, path string) {
		if method == "PUT" && path == "/things/b" {
			arrived <- true
			<-goOn
		}
	}
	if _, err := call(t, c, "POST", writ.PathWrits, w.Seal(t, o), nil); err != nil {
		t.Fatal(err)
	}
	c.CloseIdleConnections()
	began := time.Now()
	var state writ.RunState
	if _, err := call(t, c, "GET", writ.PathRuns+o.Run+"?wait_ms=20000", nil, &state); err != nil || len(state.Receipts) != 1 || state.Finished {
		t.Errorf("%+v %v", state, err)
	}
	if waited := time.Since(began); waited > 15*time.Second {
		t.Errorf("it waited %s", waited)
	}
	if _, err := call(t, c, "GET", writ.PathRuns+o.Run+"?after=1&wait_ms=10", nil, &state); err != nil || len(state.Receipts) != 0 || state.Finished {
		t.Errorf("before the second: %+v %v", state, err)
	}
	<-arrived
	w.Door.Close(admit.Draining()) // the step under way is finished all the same
	goOn <- true
	if _, err := call(t, c, "GET", writ.PathRuns+o.Run+"?after=1&wait_ms=20000", nil, &state); err != nil || len(state.Receipts) != 1 {
		t.Errorf("the second: %+v %v", state, err)
	}
	w.Runner.Wait()
	if r := w.Receipts(t, o.Run); r[1].Outcome != writ.Done {
		t.Errorf("%+v", r[1])
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "s")
	left, err := serve.Listen(t.Context(), file, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(file); info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("mode %v", info.Mode())
	}
	if _, err := serve.Listen(t.Context(), file, 0o600); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a socket in use was taken: %v", err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := serve.Listen(t.Context(), file, 0o600)
	if err != nil {
		t.Fatalf("a socket that was left over: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := serve.Listen(t.Context(), plain, 0o600); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a file was replaced: %v", err)
	}
}

type operator struct{ status serve.Status }

func (o *operator) Unlock(_ context.Context, passphrase string) error {
	if passphrase != "right" {
		return fault.New(fault.Unauthenticated, "no")
	}
	o.status.Locked = false
	return nil
}
func (o *operator) Lock()                        { o.status.Locked = true }
func (o *operator) Reload(context.Context) error { return fault.New(fault.Invalid, "not valid") }
func (o *operator) Status() serve.Status         { return o.status }

func TestAdmin(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := &operator{serve.Status{Executor: "site-a", Locked: true}}
	c := client(t, serve.Admin(o, w.Sys.Log))
	for _, q := range []struct {
		method, path, body string
		code               fault.Code
		locked             bool
	}{
		{"GET", "/status", "", "", true},
		{"POST", "/unlock", "wrong", fault.Unauthenticated, true},
		{"POST", "/unlock", "right", "", false},
		{"POST", "/unlock", strings.Repeat("x", 5<<10), fault.Invalid, false},
		{"POST", "/reload", "", fault.Invalid, false},
		{"POST", "/lock", "", "", true},
		{"GET", "/unlock", "", fault.NotFound, true},
	} {
		var s serve.Status
		_, err := call(t, c, q.method, q.path, []byte(q.body), &s)
		if fault.CodeOf(err) != q.code || err == nil && (s.Locked != q.locked || s.Executor != "site-a") {
			t.Errorf("%s %s: %+v %v", q.method, q.path, s, err)
		}
	}
}

// A probe is answered with findings, a raise with none, and what was admitted can
// be asked for; none of them writes anything.
func TestLink_afterwards(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	c := link(t, w)
	step := w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "new"})
	o := w.Approved(t, writ.Stop, step)
	sealed := w.Seal(t, o)
	w.Run(t, o)
	w.Recorder.Reset()
	var admitted writ.Admissions
	if _, err := call(t, c, "GET", writ.PathSpent, nil, &admitted); err != nil || len(admitted.Admitted) != 1 || !bytes.Equal(admitted.Admitted[0].Sealed, sealed) || !admitted.Admitted[0].Finished {
		t.Errorf("%+v %v", admitted, err)
	}
	if _, err := call(t, c, "GET", writ.PathSpent+"?after="+o.Run, nil, &admitted); err != nil || len(admitted.Admitted) != 0 {
		t.Errorf("after the last: %+v %v", admitted, err)
	}
	asks := *w.Writ(writ.Probe, o.Envelope.Steps...)
	asks.Run, asks.Envelope, asks.Fences = o.Run, o.Envelope, []writ.Fence{}
	var found writ.Findings
	if status, err := call(t, c, "POST", writ.PathWrits, w.Seal(t, &asks), &found); err != nil || status != 200 || len(found.Findings) != 1 {
		t.Errorf("probe: %d %+v %v", status, found, err)
	}
	if status, err := call(t, c, "POST", writ.PathWrits, w.Seal(t, &asks), nil); status != 409 || fault.CodeOf(err) != fault.Spent {
		t.Errorf("a probe twice: %d %v", status, err)
	}
	raise := w.Writ(writ.Raise)
	raise.Envelope, raise.Epoch = writ.Envelope{Steps: []writ.Step{}}, 7
	if status, err := call(t, c, "POST", writ.PathWrits, w.Seal(t, raise), &found); err != nil || status != 200 || len(found.Findings) != 0 {
		t.Errorf("raise: %d %+v %v", status, found, err)
	}
	if _, err := call(t, c, "POST", writ.PathWrits, w.Seal(t, w.Writ(writ.Observe, step)), nil); fault.ReasonOf(err) != "stale_epoch" {
		t.Errorf("of an earlier epoch: %v", err)
	}
	if n := len(w.Recorder.Writes()); n != 0 {
		t.Errorf("%d writes were sent", n)
	}
}

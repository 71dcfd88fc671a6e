package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/api"
	"writ/client"
	"writ/fault"
)

const token = "writ_human_not-a-real-token"

// serve answers with a handler on a Unix socket and returns its path.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "writ-client-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
	return path
}

func dial(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.New(address, token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRoutes: each method asks for its own operation, with all that it carries. A
// name stays one name, whatever is in it.
//
// Long on purpose: one row a method.
func TestRoutes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var seen string
	asked := map[string]bool{}
	mux := http.NewServeMux()
	for _, op := range api.Operations() {
		mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) {
			asked[op.Name] = true
			seen = op.Name + " " + r.PathValue(op.Parameter()) + "?" + r.URL.RawQuery + " " + r.Header.Get("Idempotency-Key")
			if r.Header.Get("Authorization") != "Bearer "+token || r.Host != "localhost" || r.Header.Get("Origin") != "" {
				t.Errorf("headers of %s: %v, host %s", op.Name, r.Header, r.Host)
			}
			if r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("the body of %s has no type", op.Name)
			}
			_, _ = w.Write([]byte("{}"))
		})
	}
	c := dial(t, serve(t, mux.ServeHTTP))
	for want, call := range map[string]func() error{
		"policy.get ? ":                    func() error { _, err := c.Policy(ctx); return err },
		"action.list ? ":                   func() error { _, err := c.Actions(ctx); return err },
		"action.get a.b? ":                 func() error { _, err := c.Action(ctx, "a.b"); return err },
		"system.list ? ":                   func() error { _, err := c.Systems(ctx); return err },
		"facts.get ?entity=pve%2Flxc%2F1 ": func() error { _, err := c.Facts(ctx, "pve/lxc/1"); return err },
		"change.propose ? k":               func() error { _, err := c.Propose(ctx, api.Proposal{}, "k"); return err },
		"change.list ?before=b&limit=5&state=done ": func() error {
			_, err := c.Changes(ctx, client.ChangeFilter{State: "done", Before: "b", Limit: 5})
			return err
		},
		"change.get chg_1? ":                  func() error { _, err := c.Change(ctx, "chg_1"); return err },
		"change.wait chg_1?timeout_ms=20000 ": func() error { _, err := c.Wait(ctx, "chg_1", time.Hour); return err },
		"change.review chg_1? ":               func() error { _, err := c.Review(ctx, "chg_1"); return err },
		"change.approve chg_1? ":              func() error { _, err := c.Approve(ctx, "chg_1", api.Agreement{}); return err },
		"change.reject chg_1? ":               func() error { _, err := c.Reject(ctx, "chg_1", "no"); return err },
		"change.lift chg_1? ":                 func() error { _, err := c.Lift(ctx, "chg_1"); return err },
		"change.cancel chg_1? ":               func() error { _, err := c.Cancel(ctx, "chg_1"); return err },
		"change.execute chg_1? ":              func() error { _, err := c.Execute(ctx, "chg_1"); return err },
		"change.rollback chg_1? ":             func() error { _, err := c.Rollback(ctx, "chg_1"); return err },
		"change.probe run_1? ":                func() error { _, err := c.Probe(ctx, "run_1"); return err },
		"change.reconcile chg_1? ":            func() error { _, err := c.Reconcile(ctx, "chg_1", api.Settlement{}); return err },
		"change.artifact chg_1? ":             func() error { _, err := c.Artifact(ctx, "chg_1"); return err },
		"change.evidence chg_1? ":             func() error { _, err := c.Evidence(ctx, "chg_1"); return err },
		"change.events chg_1? ": func() error {
			if err := c.Follow(ctx, "chg_1", 7, nil); fault.CodeOf(err) != fault.Internal { // {} is no stream
				t.Errorf("following: %v", err)
			}
			return nil
		},
		"checkpoint.get ? ": func() error { _, err := c.Checkpoint(ctx); return err },
		"event.list ?after=7&change=c&limit=3 ": func() error {
			_, err := c.Events(ctx, client.EventFilter{ChangeID: "c", After: 7, Limit: 3})
			return err
		},
		"event.list ?action=a.%2A&principal=p&since=2026-05-04T03%3A02%3A01.000Z&target=t&until=2026-05-04T03%3A02%3A01.000Z ": func() error {
			at := writ.At(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
			_, err := c.Events(ctx, client.EventFilter{User: "p", Target: "t", Action: "a.*", Since: at, Until: at})
			return err
		},
		"lock.list ?released=true ": func() error { _, err := c.Locks(ctx, true); return err },
		"halt.list ?lifted=true ":   func() error { _, err := c.Halts(ctx, true); return err },
		"halt.set ? ":               func() error { _, err := c.Halt(ctx, api.Stop{}); return err },
		"halt.lift halt_1? ":        func() error { _, err := c.LiftHalt(ctx, "halt_1"); return err },
		"health.get ? ":             func() error { _, err := c.Health(ctx); return err },
		"action.get a/../b?c#d? ":   func() error { _, err := c.Action(ctx, "a/../b?c#d"); return err },
	} {
		if err := call(); err != nil || seen != want {
			t.Errorf("asked for %q, want %q: %v", seen, want, err)
		}
	}
	for _, op := range api.Operations() {
		if !asked[op.Name] {
			t.Errorf("no method asks for %s", op.Name)
		}
	}
	for _, name := range []string{"", ".", ".."} {
		seen = ""
		if _, err := c.Change(ctx, name); fault.CodeOf(err) != fault.Invalid || seen != "" {
			t.Errorf("the change %q: %v, asked %q", name, err, seen)
		}
	}
}

// Lists come whole, whatever the pages are.
func TestLocks_pages(t *testing.T) {
	t.Parallel()
	again := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("released") != "true":
			w.WriteHeader(http.StatusBadRequest)
		case q.Get("cursor") == "":
			fmt.Fprint(w, `{"locks":[{"entity":"a"},{"entity":"b"}],"next_cursor":"two"}`)
		case again:
			fmt.Fprint(w, `{"locks":[{"entity":"c"}],"next_cursor":"two"}`)
		default:
			fmt.Fprint(w, `{"locks":[{"entity":"c"}],"next_cursor":""}`)
		}
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.Listener.Addr().String(), "token")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := c.Locks(t.Context(), true); err != nil || len(list.Locks) != 3 || list.Locks[2].Entity != "c" || list.NextCursor != "" {
		t.Errorf("%+v %v", list, err)
	}
	again = true
	if _, err := c.Locks(t.Context(), true); fault.CodeOf(err) != fault.Internal {
		t.Errorf("pages without an end: %v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	var status int
	var body string
	c := dial(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://192.0.2.1/")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	for _, row := range fault.Table() {
		text, err := json.Marshal(api.Problem{Status: row.HTTP, Code: row.Code, Reason: "why", Detail: "What 100% to do."})
		if err != nil {
			t.Fatal(err)
		}
		status, body = row.HTTP, string(text)
		_, err = c.Policy(t.Context())
		if fault.CodeOf(err) != row.Code || fault.ReasonOf(err) != "why" || fault.TextOf(err) != "What 100% to do." {
			t.Errorf("%s: %v", row.Code, err)
		}
	}
	for _, answer := range []struct {
		status int
		body   string
	}{{500, "oops"}, {404, "{}"}, {200, "oops"}, {302, ""}, {307, ""}, {200, strings.Repeat(" ", 33<<20)}} {
		status, body = answer.status, answer.body
		if _, err := c.Policy(t.Context()); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%d %.10q: %v", status, body, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	c := dial(t, filepath.Join(t.TempDir(), "none"))
	if _, err := c.Policy(t.Context()); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "writ up") {
		t.Errorf("nobody there: %v", err)
	}
	// What was sent may have been taken in: that is not "nothing was changed".
	gone := dial(t, serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	if _, err := gone.Propose(t.Context(), api.Proposal{}, ""); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("gone in the middle: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Policy(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNew: the token stays on this machine.
func TestNew(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"source":"` + r.Host + `"}`))
	}))
	t.Cleanup(s.Close)
	address := strings.TrimPrefix(s.URL, "http://")
	if p, err := dial(t, address).Policy(t.Context()); err != nil || p.Source != address {
		t.Errorf("%+v %v", p, err)
	}
	for _, bad := range []string{"", "gate.sock", "192.0.2.1:80", "example.org:80", ":80", "0.0.0.0:80", "127.0.0.1", "http://127.0.0.1:80"} {
		if _, err := client.New(bad, token); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

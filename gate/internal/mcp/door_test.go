package mcp_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/api"
	"writ/gate/internal/mcp"
	"writ/gate/internal/ops"
	"writ/gate/internal/rest"
)

// door is all that a gate answers, in this process.
func (w *world) door() http.Handler {
	w.t.Helper()
	h, err := rest.New(rest.Config{
		Gate: w.Gate.Gate, Who: w.Who, Hosts: []string{"writ.example.org"}, Log: slog.New(slog.DiscardHandler),
		More: map[string]rest.Way{mcp.Path: w.tool.Serve},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// unread is a body that must not be read.
type unread struct{ touched bool }

func (u *unread) Read([]byte) (int, error) { u.touched = true; return 0, http.ErrBodyReadAfterClose }
func (u *unread) Close() error             { return nil }

// TestDoor_everywhere: whatever the route, the method and the token, a call with
// another Host or from another origin is refused before its body is read.
func TestDoor_everywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	door := w.door()
	paths := []string{mcp.Path, rest.PathOpenAPI, "/", "/none", "/v1/none"}
	for _, op := range ops.All() {
		if path := strings.NewReplacer("{id}", "chg_x", "{name}", "mock.noop_change").Replace(op.Path); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	hosts := []string{"", "evil.test", "localhost.evil.test", "writ.example.org.evil.test", "192.0.2.1:7443", "0.0.0.0", "[2001:db8::1]:7443", "localhost@evil.test"}
	origins := []string{"null", "", "https://evil.test", "http://localhost.evil.test", "http://localhost:1", "http://evil.test, http://localhost", "file://", "http://LOCALHOST"}
	tried := 0
	for _, path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			for _, who := range []string{"", "agent", "admin"} {
				try := func(reason string, change func(*http.Request)) {
					tried++
					body := &unread{}
					r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, body)
					r.Header.Set("Content-Type", "application/json")
					if who != "" {
						r.Header.Set("Authorization", "Bearer "+w.Tokens[who])
					}
					change(r)
					answer := httptest.NewRecorder()
					door.ServeHTTP(answer, r)
					var p api.Problem
					if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil || answer.Code != http.StatusForbidden || p.Reason != reason || body.touched {
						t.Errorf("%s %s as %q, host %q, origin %q: %d %s, body read: %t", method, path, who, r.Host, r.Header["Origin"], answer.Code, answer.Body, body.touched)
					}
				}
				for _, host := range hosts {
					try("wrong_host", func(r *http.Request) { r.Host = host })
				}
				for _, origin := range origins {
					try("wrong_origin", func(r *http.Request) { r.Header["Origin"] = []string{origin} })
				}
			}
		}
	}
	if tried < 5000 {
		t.Errorf("only %d calls were tried", tried)
	}
}

// TestAgent: of all routes with all methods, and of all tools under all names, an
// agent's token reaches exactly what it may.
func TestAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	door := w.door()
	routes := map[string]string{} // "METHOD path" of each operation
	var paths, denied, offered []string
	for _, op := range ops.All() {
		path := strings.NewReplacer("{id}", "chg_x", "{name}", "mock.none").Replace(op.Path)
		routes[op.Method+" "+path] = op.Name
		paths = append(paths, path)
	}
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(`{"no_such_member":1}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+w.Tokens["agent"])
			answer := httptest.NewRecorder()
			door.ServeHTTP(answer, r)
			var p api.Problem
			if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			name, is := routes[method+" "+path]
			switch {
			case !is && answer.Code/100 != 4:
				t.Errorf("%s %s is no operation, and answers %d", method, path, answer.Code)
			case is && answer.Code == http.StatusForbidden && p.Reason == "role_missing":
				denied = append(denied, name)
			}
		}
	}
	never := []string{api.ChangeApprove, api.ChangeLift, api.ChangeProbe, api.ChangeSettle, api.ChangeReject, api.HaltLift, api.HaltSet}
	if diff := cmp.Diff(never, slices.Compact(slices.Sorted(slices.Values(denied)))); diff != "" {
		t.Errorf("an agent may not (-want +got):\n%s", diff)
	}
	s := w.session("agent", "")
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		offered = append(offered, tool.Name)
	}
	_, c := call[api.Change](w, s, "propose_change", proposal)
	for _, op := range ops.All() {
		noun, verb, _ := strings.Cut(op.Name, ".")
		for _, name := range []string{op.Name, noun + "_" + verb, verb + "_" + noun, verb} {
			if slices.Contains(offered, name) {
				if slices.Contains(never, op.Name) {
					t.Errorf("%s is offered as %s", op.Name, name)
				}
				continue
			}
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{"id":"` + c.ID + `"}}}`
			if status, answer := w.post("agent", body, nil); status/100 == 2 && !strings.Contains(answer, `"error":`) {
				t.Errorf("%s answers %d %s", name, status, answer)
			}
		}
	}
	if now := ask[api.Change](w, "admin", "GET", "/v1/changes/"+c.ID, ""); now.State != "awaiting_approval" || len(now.Approvals) != 0 {
		t.Errorf("the change is %s", now.State)
	}
}

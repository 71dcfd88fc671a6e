package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"writ"
	"writ/api"
	"writ/ctl/internal/cli"
	"writ/fault"
)

// gate is a gate that answers what it is told, on a Unix socket, and notes what
// it was asked.
type gate struct {
	t    *testing.T
	home string

	mu      sync.Mutex
	answers map[string][]any // by operation; the last one stays
	asked   []asked
}

// asked is one call.
type asked struct {
	operation, token, key string
	body                  writ.Object
}

const (
	agentToken    = "writ_agent_not-a-real-token"
	approverToken = "writ_human_not-a-real-token"
)

func newGate(t *testing.T) *gate {
	t.Helper()
	// A socket's path is short; the name of a test is not.
	home, err := os.MkdirTemp("", "writ-cli-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	g := &gate{t: t, home: home, answers: map[string][]any{}}
	write(t, home, "writ.yaml", "gate: run/gate.sock\nask_as: agent\napprove_as: ana\n")
	write(t, home, "tokens/agent.token", agentToken+"\n")
	write(t, home, "tokens/ana.token", approverToken+"\n")
	write(t, home, "run/.keep", "")
	mux := http.NewServeMux()
	for _, op := range api.Operations() {
		mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) { g.answer(w, r, op.Name) })
	}
	l, err := net.Listen("unix", filepath.Join(home, "run/gate.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(server.Close)
	g.tell(api.ActionGet, api.Action{Name: "mock.noop_change", Summary: "Set one value", System: "mock", Class: "reversible_low", Params: json.RawMessage(`{
		"type": "object", "required": ["value"], "properties": {"value": {"type": "string", "maxLength": 200}, "count": {"type": "integer", "minimum": 1, "maximum": 9},
		"on": {"type": "boolean"}, "tags": {"type": "array"}, "map": {"type": "object"}}}`)})
	return g
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tell sets the answers of an operation, in order; the last one stays.
func (g *gate) tell(operation string, answers ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers[operation] = answers
}

func (g *gate) answer(w http.ResponseWriter, r *http.Request, operation string) {
	a := asked{operation: operation, token: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), key: r.Header.Get("Idempotency-Key")}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		g.t.Error(err)
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &a.body); err != nil {
			g.t.Errorf("%s: %v", operation, err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, a)
	var next any = struct{}{}
	if list := g.answers[operation]; len(list) > 0 {
		next = list[0]
		if len(list) > 1 {
			g.answers[operation] = list[1:]
		}
	}
	if f, ok := next.(func(*http.Request) any); ok {
		next = f(r)
	}
	if e, ok := next.(*fault.Error); ok {
		w.WriteHeader(e.Code.Row().HTTP)
		next = api.Problem{Status: e.Code.Row().HTTP, Code: e.Code, Reason: e.Reason, Detail: e.Text}
	}
	if err := json.NewEncoder(w).Encode(next); err != nil {
		g.t.Error(err)
	}
}

// of returns the calls of an operation.
func (g *gate) of(operation string) []asked {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []asked
	for _, a := range g.asked {
		if a.operation == operation {
			all = append(all, a)
		}
	}
	return all
}

// result is what a command left behind.
type result struct {
	status         int
	stdout, stderr string
}

// run runs the command in the home of the gate, with nobody at the terminal.
func (g *gate) run(args ...string) result { return g.runWith("", args...) }

func (g *gate) runWith(stdin string, args ...string) result {
	return run(g.t, []string{"WRIT_DIR=" + g.home, "USER=ana"}, stdin, args...)
}

func run(t *testing.T, env []string, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := cli.Run(t.Context(), args, env, strings.NewReader(stdin), &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// expect runs a command and checks its exit status.
func (g *gate) expect(status int, args ...string) result {
	g.t.Helper()
	r := g.run(args...)
	if r.status != status {
		g.t.Errorf("writ %s: exit status %d, not %d\n%s%s", strings.Join(args, " "), r.status, status, r.stdout, r.stderr)
	}
	return r
}

const changeID = "chg_0123456789abcdefghjkmnpqrs"

// change is a change in a state, as the gate would show it.
func change(state string, code fault.Code) api.Change {
	c := api.Change{
		ID: changeID, State: state, Code: code, Next: "Look at it: writ show " + changeID,
		RequestedBy: writ.Principal{Name: "agent", Kind: writ.Agent},
		Request:     api.Proposal{Steps: []api.ProposedStep{{ID: "s1", ActionType: "mock.noop_change"}}},
		Plan: []api.Step{{
			ID: "s1", ActionType: "mock.noop_change", TargetSystem: "mock", Entity: "mock/demo", Class: writ.ReversibleLow, Params: writ.Object{"value": "x"},
			Preview: &api.Preview{Known: true, Fields: []writ.Field{{Name: "value", From: "old", To: "x"}}},
		}},
		Decision: &api.Decision{Effect: "approve", Count: 1, Rules: []string{"changes-need-a-person"}},
	}
	switch state {
	case "done", "failed", "unknown", "denied", "expired", "rejected":
		c.Ended = true
	}
	return c
}

// eventPages answers event.list from a log of n events.
func eventPages(n int64) func(*http.Request) any {
	return func(r *http.Request) any {
		after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
		limit, _ := strconv.ParseInt(r.URL.Query().Get("limit"), 10, 64)
		page := api.Events{Events: []json.RawMessage{}}
		for i := after + 1; i <= min(n, after+limit); i++ {
			page.Events = append(page.Events, json.RawMessage(fmt.Sprintf(`{"sequence":%d,"event":"change.proposed","timestamp":"2026-05-04T03:02:01.000Z"}`, i)))
		}
		return page
	}
}

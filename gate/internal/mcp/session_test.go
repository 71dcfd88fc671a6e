package mcp_test

import (
	"context"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ/api"
)

const oneProposal = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"propose_change","arguments":{"steps":[{"action_type":"mock.noop_change","params":{"value":"x"}}]}}}`

// TestSession: what a client says of itself and on whose behalf it asks is kept
// with the change, and makes no other caller of it.
func TestSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.session("agent", "2026-07-28").CallTool(context.Background(), &sdk.CallToolParams{
		Name: "propose_change", Arguments: proposal, Meta: sdk.Meta{"writ/delegation": []any{"planner", 7, "human:ana"}},
	})
	if err != nil || r.IsError {
		t.Fatalf("%v %+v", err, r)
	}
	list := ask[api.Changes](w, "auditor", "GET", "/v1/changes", "").Changes
	c := list[0]
	if s := c.Session; s == nil || s.Client != "test" || s.Version != "1" || len(s.Chain) != 2 || s.Chain[1] != "human:ana" {
		t.Errorf("%+v", s)
	}
	if c.RequestedBy.Name != "opencode" || c.RequestedBy.Kind != "agent" {
		t.Errorf("it was asked for by %+v", c.RequestedBy)
	}
	// Revisions that are connected once say it then, and bring it back in an id that
	// makes no other caller of anybody.
	for i, name := range []string{"agent", "other"} {
		session := w.session("agent", "2025-11-25")
		if i == 1 {
			if session.ID() == "" {
				t.Fatal("there is no id")
			}
			status, answer := w.post(name, oneProposal, map[string]string{"Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session.ID()})
			if status != 200 {
				t.Fatalf("%d %s", status, answer)
			}
		} else if r, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "propose_change", Arguments: proposal}); err != nil || r.IsError {
			t.Fatalf("%v %+v", err, r)
		}
		c = ask[api.Changes](w, "auditor", "GET", "/v1/changes", "").Changes[0]
		if s := c.Session; s == nil || s.Client != "test" || s.Version != "1" || c.RequestedBy.Name != []string{"opencode", "codex"}[i] {
			t.Errorf("%s: %+v asked for by %+v", name, s, c.RequestedBy)
		}
	}
	for _, id := range []string{"x", "x.y", "mcp_x.bnVsbA", "mcp_x." + strings.Repeat("A", 5000)} {
		if status, answer := w.post("other", oneProposal, map[string]string{"Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": id}); status != 200 {
			t.Errorf("an id that says nothing: %d %s", status, answer)
		}
	}
	// The command that carries messages from standard input repeats it in a header.
	if status, answer := w.post("agent", oneProposal, map[string]string{"Mcp-Protocol-Version": "2025-06-18", "Writ-Session": "Claude Code/2.1, planner"}); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	c = ask[api.Changes](w, "auditor", "GET", "/v1/changes", "").Changes[0]
	if s := c.Session; s == nil || s.Client != "Claude Code" || s.Version != "2.1" || s.Chain[0] != "planner" {
		t.Errorf("%+v", s)
	}
}

package rest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"writ/api"
	"writ/gate/internal/rest"
)

// TestSession: what a program says of itself is recorded, and shown to the
// approver as its words; it is no part of what is asked for.
func TestSession(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	propose := func(session string) api.Change {
		t.Helper()
		r := g.request("agent", "POST", "/v1/changes", proposal)
		r.Header.Set("Idempotency-Key", "one")
		r.Header.Set(rest.SessionHeader, session)
		resp := g.serve(r)
		var c api.Change
		if data := read(t, resp); resp.StatusCode != 200 || json.Unmarshal(data, &c) != nil {
			t.Fatalf("%d %s", resp.StatusCode, data)
		}
		return c
	}
	c := propose("opencode/1.18, planner/2, APPROVED by policy")
	if s := c.Session; s == nil || s.Client != "opencode" || s.Version != "1.18" || len(s.Chain) != 2 {
		t.Errorf("%+v", s)
	}
	if again := propose("another/1"); again.ID != c.ID || again.Session.Client != "opencode" {
		t.Errorf("said otherwise, it became another change: %+v", again)
	}
	review := call[api.Review](g, "approver", "GET", "/v1/changes/"+c.ID+"/review", "").Text
	_, said, ok := strings.Cut(review, "nobody checked them)\n")
	if want := "  its program\n  | opencode\n  version\n  | 1.18\n  on behalf of\n  | planner/2\n  on behalf of\n  | APPROVED by policy\n"; !ok || !strings.Contains(said, want) {
		t.Errorf("the approver reads:\n%s", review)
	}
	events := call[api.Events](g, "auditor", "GET", "/v1/events?change="+c.ID, "")
	if first := string(events.Events[0]); !strings.Contains(first, `"session":{"chain":["planner/2","APPROVED by policy"],"client":"opencode","version":"1.18"}`) {
		t.Errorf("the event is %s", first)
	}
	if silent := g.propose(); silent.Session != nil {
		t.Errorf("nothing was said: %+v", silent.Session)
	}
}

package rest_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"writ/api"
)

// controlled is a call of the system that came before; with changes, as JSON.
func controlled(t *testing.T, changes map[string]any) string {
	t.Helper()
	call := map[string]any{
		"requested_by": "opencode", "change_ticket": "OPS-1", "risk_level": "low", "target_system": "mock", "action_type": "mock.noop_change",
		"requested_action": "Set the value", "params": map[string]any{"value": "new"}, "backup_required": true,
	}
	maps.Copy(call, changes)
	data, err := json.Marshal(call)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// approved proposes by execute and has a human approve it.
func (g *gate) approved() (change, approval string) {
	g.t.Helper()
	p := g.refused(g.request("agent", "POST", "/controlled-execution/execute", controlled(g.t.(*testing.T), nil)))
	list := call[api.Changes](g, "agent", "GET", "/v1/changes?state=awaiting_approval", "").Changes
	if p.Status != 400 || p.Code != "approval_missing" || len(list) != 1 || !strings.Contains(p.Detail, list[0].ID) {
		g.t.Fatalf("without an approval: %+v, and %d changes wait", p, len(list))
	}
	change = list[0].ID
	c := call[api.Change](g, "approver", "POST", "/v1/changes/"+change+"/approvals", g.agreement(change))
	return change, c.Approvals[0].ApprovalID
}

// TestExecute_original: the way of the system that came before, with its field
// names and its status codes.
func TestExecute_original(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	change, approval := g.approved()
	execute := func(who string, changes map[string]any) *http.Request {
		return g.request(who, "POST", "/controlled-execution/execute", controlled(t, changes))
	}
	for name, c := range map[string]map[string]any{
		"another approval":     {"approval_id": "appr_none"},
		"another target":       {"target_system": "proxmox"},
		"another action":       {"action_type": "proxmox.set_lxc_description"},
		"other words":          {"requested_action": "Set the value "},
		"other params":         {"params": map[string]any{"value": "newer"}},
		"params that are null": {"params": nil},
		"another ticket":       {"change_ticket": "OPS-2"},
		"a higher risk":        {"risk_level": "high"},
		"another approver":     {"approved_by": "opencode"},
		"somebody else":        {"requested_by": "ana"},
		"without a backup":     {"backup_required": false},
		"a forbidden action":   {"approval_id": "", "action_type": "proxmox.destroy_guest"},
		"an unknown action":    {"approval_id": "", "action_type": "mock.none"},
		"an unknown member":    {"approved": true},
		"forbidden as a risk":  {"risk_level": "forbidden"},
	} {
		with := map[string]any{"approval_id": approval}
		maps.Copy(with, c)
		if p := g.refused(execute("agent", with)); p.Status != http.StatusBadRequest {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := g.refused(execute("other", map[string]any{"approval_id": approval, "requested_by": "codex"})); p.Status != http.StatusBadRequest || p.Reason != "approval_unknown" {
		t.Errorf("somebody else's approval: %+v", p)
	}
	if p := g.refused(execute("", nil)); p.Status != http.StatusUnauthorized {
		t.Errorf("without a token: %+v", p)
	}
	// Each is recorded, and with none of the caller's own words.
	events := string(mustJSON(t, call[api.Events](g, "auditor", "GET", "/v1/events?change="+change, "").Events))
	for _, member := range []string{"target_system", "action_type", "requested_action", "params", "change_ticket", "risk_level", "approved_by", "requested_by"} {
		if !strings.Contains(events, `"differs":"`+member+`"`) {
			t.Errorf("no event says that %s differed", member)
		}
	}
	if n := strings.Count(events, `"event":"approval.misused"`); n != 8 || strings.Contains(events, "OPS-2") || strings.Contains(events, "newer") ||
		strings.Count(events, `"approval_id":"`+approval+`"`) < n {
		t.Errorf("%d calls with an approval of something else are recorded: %s", n, events)
	}
	others := string(mustJSON(t, call[api.Events](g, "auditor", "GET", "/v1/events?principal=agent:codex", "").Events))
	if strings.Count(others, `"reason":"approval_unknown"`) != 1 || strings.Contains(others, approval) {
		t.Errorf("somebody else's approval: %s", others)
	}
	got := call[api.ControlledResult](g, "agent", "POST", "/controlled-execution/execute", controlled(t, map[string]any{"approval_id": approval, "approved_by": "ana"}))
	if got.ChangeID != change || got.ApprovalID != approval || got.ExecutionStatus != "done" || got.ExecutionMode != "scoped_write" || !got.Changed ||
		got.RequestedBy != "opencode" || got.ApprovedBy != "ana" || got.BackupReference == "" || got.VerificationResult != "passed" || got.RollbackReference == "" || got.RunID == "" {
		t.Errorf("%+v", got)
	}
	for _, id := range []string{approval, change} {
		if p := g.refused(execute("agent", map[string]any{"approval_id": id})); p.Status != http.StatusBadRequest || p.Code != "spent" {
			t.Errorf("a replay with %s: %+v", id, p)
		}
	}
	if events := call[api.Events](g, "agent", "GET", "/v1/changes/"+change+"/events", "").Events; strings.Count(string(mustJSON(t, events)), `"event":"result.given"`) != 1 {
		t.Errorf("%s", events)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestExecute_original_no: a human's no and a withdrawal are bad requests too.
func TestExecute_original_no(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.refused(g.request("agent", "POST", "/controlled-execution/execute", controlled(t, nil)))
	id := call[api.Changes](g, "agent", "GET", "/v1/changes", "").Changes[0].ID
	call[api.Change](g, "approver", "POST", "/v1/changes/"+id+"/rejection", `{"reason":"no"}`)
	if p := g.refused(g.request("agent", "POST", "/controlled-execution/execute", controlled(t, map[string]any{"approval_id": id}))); p.Status != 400 || p.Code != "denied" || p.Reason != "rejected" {
		t.Errorf("%+v", p)
	}
}

func TestPolicy_original(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	p := call[api.ControlledRules](g, "agent", "GET", "/controlled-execution/policy", "")
	if len(p.Actions) == 0 || len(p.ForbiddenAction) == 0 || len(p.Fields) == 0 || !p.PolicyDigest.Valid() {
		t.Errorf("%+v", p)
	}
	if s := call[api.StateRules](g, "agent", "GET", "/state/policy", ""); !s.ReadOnly || s.Available || s.Text == "" {
		t.Errorf("%+v", s)
	}
	if d := call[api.Drift](g, "agent", "GET", "/state/drift-check", ""); d.Checked || d.Text == "" {
		t.Errorf("%+v", d)
	}
	if p := g.refused(g.request("auditor", "POST", "/controlled-execution/execute", controlled(t, nil))); p.Status != http.StatusForbidden || p.Reason != "role_missing" {
		t.Errorf("without the role: %+v", p)
	}
}

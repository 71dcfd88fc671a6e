package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/api"
	"writ/fault"
)

// TestPropose_exit: the exit status says what a script must do next.
func TestPropose_exit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		states []any // what the gate answers, one after the other
		args   string
		want   int
	}{
		{[]any{change("awaiting_approval", fault.ApprovalMissing)}, "", 4},
		{[]any{change("proposed", ""), change("planned", ""), change("awaiting_approval", fault.ApprovalMissing)}, "", 4},
		{[]any{change("approved", ""), change("executing", ""), change("done", "")}, "", 0},
		{[]any{change("denied", fault.Denied)}, "", 3},
		{[]any{change("executing", ""), change("failed", fault.Failed)}, "", 12},
		{[]any{change("executing", ""), change("unknown", fault.Unknown)}, "", 16},
		{[]any{change("awaiting_approval", fault.ApprovalMissing), change("approved", ""), change("done", "")}, "--wait", 0},
		{[]any{change("awaiting_approval", fault.ApprovalMissing), change("expired", fault.Expired)}, "--wait", 18},
	} {
		g := newGate(t)
		g.tell(api.ChangePropose, c.states[0])
		if len(c.states) > 1 {
			g.tell(api.ChangeWait, c.states[1:]...)
		}
		r := g.expect(c.want, append([]string{"propose", "mock.noop_change", "value=x"}, strings.Fields(c.args)...)...)
		if !strings.Contains(r.stdout, changeID) || !strings.Contains(r.stdout, "Next") {
			t.Errorf("%s", r.stdout)
		}
	}
}

func TestPropose_typesParams(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.tell(api.ChangePropose, change("done", ""))
	g.expect(0, "propose", "mock.noop_change", "value=7", "count=7", "on=true", `tags=["a",1]`, `map={"k":"v"}`,
		"--system", "lab", "--purpose", "p", "--requested-action", "r", "--rollback-plan", "b", "--ticket", "CHG-7", "--risk", "high", "--on-failure", "rollback", "--key", "k1")
	want := asked{operation: api.ChangePropose, token: agentToken, key: "k1", body: writ.Object{
		"steps": []any{writ.Object{"action_type": "mock.noop_change", "target_system": "lab", "params": writ.Object{
			"value": "7", "count": int64(7), "on": true, "tags": []any{"a", int64(1)}, "map": writ.Object{"k": "v"},
		}}},
		"purpose": "p", "requested_action": "r", "rollback_plan": "b", "change_ticket": "CHG-7", "declared_risk": "high", "on_failure": "rollback",
	}}
	if diff := cmp.Diff([]asked{want}, g.of(api.ChangePropose), cmp.AllowUnexported(asked{})); diff != "" {
		t.Error(diff)
	}
	for _, args := range []string{"count=x", "on=perhaps", "tags=[1", "nothing=1", "value", "value=1 value=2", "tags=[1.5]"} {
		g.expect(fault.Invalid.Row().Exit, append([]string{"propose", "mock.noop_change"}, strings.Fields(args)...)...)
	}
	if n := len(g.of(api.ChangePropose)); n != 1 {
		t.Errorf("%d proposals left", n)
	}
}

func TestPropose_file(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.tell(api.ChangePropose, change("done", ""))
	yaml := write(t, g.home, "r.yaml", "steps:\n  - {id: a, action_type: mock.noop_change, params: {value: x, count: 7}}\n  - {action_type: mock.noop_change, needs: [a], params: {value: y}}\npurpose: two\n")
	json := `{"steps":[{"id":"a","action_type":"mock.noop_change","params":{"value":"x","count":7}},{"action_type":"mock.noop_change","needs":["a"],"params":{"value":"y"}}],"purpose":"two"}`
	g.expect(0, "propose", "--file", yaml)
	if r := g.runWith(json, "propose", "--file", "-"); r.status != 0 {
		t.Error(r.stderr)
	}
	asked := g.of(api.ChangePropose)
	if len(asked) != 2 || !cmp.Equal(asked[0].body, asked[1].body) || asked[0].body["purpose"] != "two" || len(asked[0].body["steps"].([]any)) != 2 {
		t.Errorf("%+v", asked)
	}
	for _, bad := range []string{
		`{"steps":[],"steps":[]}`, `{"steps":[],"force":true}`, `{"steps":[{"action_type":"x","params":{"n":1.5}}]}`, "steps: [", "- a", `{"steps":"x"}`,
	} {
		if r := g.runWith(bad, "propose", "--file", "-"); r.status != fault.Invalid.Row().Exit {
			t.Errorf("%s: %d %s", bad, r.status, r.stderr)
		}
	}
	g.expect(fault.Invalid.Row().Exit, "propose", "mock.noop_change", "--file", yaml)
	g.expect(fault.Invalid.Row().Exit, "propose", "--file", yaml, "--system", "lab")
	if n := len(g.of(api.ChangePropose)); n != 2 {
		t.Errorf("%d proposals left", n)
	}
}

func TestApprove(t *testing.T) {
	t.Parallel()
	text := "agent:agent asks for 1 step.\n\nWHAT WILL CHANGE\n  s1\n"
	review := api.Review{Text: text, ShownDigest: writ.DigestBytes([]byte(text)), EnvelopeDigest: writ.DigestBytes([]byte("envelope"))}
	g := newGate(t)
	g.tell(api.ChangeReview, review)
	g.tell(api.ChangeApprove, change("approved", ""))
	g.tell(api.ChangeWait, change("executing", ""), change("done", ""))

	// Nobody at the terminal, and nobody said yes.
	if r := g.expect(fault.Invalid.Row().Exit, "approve", changeID); !strings.Contains(r.stdout, "WHAT WILL CHANGE") || !strings.Contains(r.stderr, "--yes") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	// Words on standard input are no person at a terminal.
	if r := g.runWith("y\n", "approve", changeID); r.status != fault.Invalid.Row().Exit {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	if n := len(g.of(api.ChangeApprove)); n != 0 {
		t.Fatalf("%d approvals were sent", n)
	}

	r := g.expect(0, "approve", changeID, "--yes")
	want := []asked{{operation: api.ChangeApprove, token: approverToken, body: writ.Object{
		"envelope_digest": string(review.EnvelopeDigest), "shown_digest": string(review.ShownDigest),
	}}}
	if diff := cmp.Diff(want, g.of(api.ChangeApprove), cmp.AllowUnexported(asked{})); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(r.stdout, text) || !strings.Contains(r.stdout, "done") {
		t.Errorf("%s", r.stdout)
	}
}

func TestApprove_refusesWhatWasNotShown(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]api.Review{
		"another digest":    {Text: "a", ShownDigest: writ.DigestBytes([]byte("b"))},
		"hidden characters": {Text: "a\u200bb", ShownDigest: writ.DigestBytes([]byte("a\u200bb"))},
		"control sequence":  {Text: "a\x1b[1A", ShownDigest: writ.DigestBytes([]byte("a\x1b[1A"))},
	} {
		g := newGate(t)
		g.tell(api.ChangeReview, r)
		g.expect(fault.Stale.Row().Exit, "approve", changeID, "--yes")
		if n := len(g.of(api.ChangeApprove)); n != 0 {
			t.Errorf("%s: %d approvals were sent", name, n)
		}
	}
}

func TestApprove_phrase(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.tell(api.ChangeReview, api.Review{Text: "a\n", ShownDigest: writ.DigestBytes([]byte("a\n")), Phrase: "lab/vm/100"})
	g.tell(api.ChangeApprove, change("awaiting_approval", fault.ApprovalMissing))
	if r := g.expect(fault.Invalid.Row().Exit, "approve", changeID, "--yes"); !strings.Contains(r.stderr, "--phrase") {
		t.Error(r.stderr)
	}
	// One of several approvers: it is told, and not waited for the others.
	if r := g.expect(0, "approve", changeID, "--phrase", "lab/vm/100"); !strings.Contains(r.stdout, "You approved") {
		t.Error(r.stdout)
	}
	if got := g.of(api.ChangeApprove); len(got) != 1 || got[0].body["phrase"] != "lab/vm/100" {
		t.Errorf("%+v", got)
	}
}

// TestFollow_heldUp: a change that is approved and does not begin is tried once
// more, and what is in the way is told.
func TestFollow_heldUp(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.tell(api.ChangePropose, change("approved", ""))
	g.tell(api.ChangeWait, change("approved", ""))
	g.tell(api.ChangeGet, change("approved", ""))
	g.tell(api.ChangeExecute, fault.New(fault.Conflict, "mock/demo is locked."))
	if r := g.expect(fault.Conflict.Row().Exit, "propose", "mock.noop_change", "value=x"); !strings.Contains(r.stderr, "is locked") {
		t.Error(r.stderr)
	}
	if n := len(g.of(api.ChangeExecute)); n != 1 {
		t.Errorf("it was tried %d times", n)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.tell(api.ChangeGet, change("awaiting_approval", fault.ApprovalMissing))
	g.tell(api.ChangeWait, change("awaiting_approval", fault.ApprovalMissing), change("approved", ""), change("approved", ""), change("executing", ""), change("done", ""))
	g.expect(0, "wait", changeID)
	g.tell(api.ChangeWait, change("executing", ""))
	if r := g.expect(fault.Timeout.Row().Exit, "wait", changeID, "--timeout", "50ms"); !strings.Contains(r.stderr, "has not ended within") {
		t.Error(r.stderr)
	}
}

package model_test

import (
	"testing"

	"writ"
	"writ/gate/internal/model"
)

func TestMoves_everyStateIsReachedAndEndsStayEnds(t *testing.T) {
	t.Parallel()
	reached := map[model.State]bool{model.Proposed: true}
	for range model.States() {
		for _, from := range model.States() {
			for _, to := range model.States() {
				if reached[from] && from.May(to) {
					reached[to] = true
				}
				if from.Ended() && from.May(to) {
					t.Errorf("%s is an end and may move to %s", from, to)
				}
			}
		}
	}
	for _, s := range model.States() {
		if !reached[s] {
			t.Errorf("%s cannot be reached", s)
		}
	}
}

func TestMoves_whatMustNotBePossible(t *testing.T) {
	t.Parallel()
	for _, m := range [][2]model.State{
		{model.Proposed, model.Approved},          // not without a plan
		{model.AwaitingApproval, model.Claimed},   // not without an approval
		{model.Rejected, model.Approved},          // a no stays a no
		{model.Expired, model.Approved},           // too late is too late
		{model.Claimed, model.Approved},           // a writ is spent once
		{model.Executing, model.Failed},           // not without looking at the receipts
		{model.Unknown, model.Done},               // never by itself
		{model.Executing, model.AwaitingApproval}, // not backwards
	} {
		if m[0].May(m[1]) {
			t.Errorf("a change may move from %s to %s", m[0], m[1])
		}
	}
}

func TestStateOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want     model.State
		outcomes []writ.Outcome
	}{
		{model.Done, []writ.Outcome{writ.Done, writ.Done}},
		{model.Unknown, nil},
		{model.Unknown, []writ.Outcome{"surprising"}},
		{model.Unknown, []writ.Outcome{writ.Done, writ.Unknown, writ.NotExecuted}},
		{model.Unknown, []writ.Outcome{writ.RollbackFailed, writ.Unknown}},
		{model.Failed, []writ.Outcome{writ.Failed}},
		{model.Failed, []writ.Outcome{writ.NotExecuted}},
		{model.Failed, []writ.Outcome{writ.Done, writ.Failed, writ.NotExecuted}},
		{model.Unverified, []writ.Outcome{writ.Done, writ.Unverified, writ.NotExecuted}},
		{model.RolledBack, []writ.Outcome{writ.RolledBack, writ.Failed, writ.NotExecuted}},
		{model.RollbackFailed, []writ.Outcome{writ.RolledBack, writ.RollbackFailed, writ.Failed}},
		{model.Failed, []writ.Outcome{writ.Done, writ.RolledBack, writ.Failed}},
	} {
		if got := model.StateOf(c.outcomes); got != c.want {
			t.Errorf("StateOf(%v) = %s, want %s", c.outcomes, got, c.want)
		}
	}
}

func TestHeld(t *testing.T) {
	t.Parallel()
	change := func(state model.State, outcomes ...writ.Outcome) *model.Change {
		c := &model.Change{State: state}
		for i, o := range outcomes {
			id := string(rune('a' + i))
			c.Steps = append(c.Steps, writ.Step{ID: id})
			c.Receipts = append(c.Receipts, model.Receipt{Receipt: writ.Receipt{Step: id, Outcome: o, Changed: o == writ.Done}})
		}
		return c
	}
	stale := change(model.Failed, writ.NotExecuted)
	stale.Receipts[0].Reason = "stale"
	without := func(c *model.Change) *model.Change { c.Receipts = nil; return c }
	unchanged := func(c *model.Change) *model.Change { c.Receipts[0].Changed = false; return c }
	for _, c := range []struct {
		name   string
		change *model.Change
		held   bool
		code   string
	}{
		{"done", change(model.Done, writ.Done), false, ""},
		{"failed, as before", change(model.Failed, writ.Failed), false, "failed"},
		{"failed, the target moved on", stale, false, "stale"},
		{"stopped half-way", change(model.Failed, writ.Done, writ.Failed), true, "unverified"},
		{"unverified", change(model.Unverified, writ.Unverified), true, "unverified"},
		{"unknown", change(model.Unknown, writ.Unknown), true, "unknown"},
		{"rolled back", change(model.RolledBack, writ.RolledBack, writ.Failed), false, "failed"},
		{"rollback failed", change(model.RollbackFailed, writ.RollbackFailed), true, "stranded"},
		{"unknown, without a receipt", without(change(model.Unknown, writ.Done)), true, "unknown"},
		{"unknown, with an outcome that nobody knows", change(model.Unknown, "surprising"), true, "unknown"},
		{"never sent", without(change(model.Failed, writ.Done)), false, "failed"},
		{"done, nothing had to be changed, then failed", unchanged(change(model.Failed, writ.Done, writ.Failed)), false, "failed"},
		{"still running", change(model.Executing, writ.Done), false, "approval_missing"},
	} {
		if got := c.change.Held(); got != c.held {
			t.Errorf("%s: Held() = %t, want %t", c.name, got, c.held)
		}
		if got := string(c.change.Code()); got != c.code {
			t.Errorf("%s: Code() = %q, want %q", c.name, got, c.code)
		}
	}
}

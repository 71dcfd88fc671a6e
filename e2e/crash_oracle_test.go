package e2e_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"writ"
	"writ/api"
	"writ/client"
)

// told is what the oracles read of an event.
type told struct {
	Sequence int64  `json:"sequence"`
	Type     string `json:"event"`
	ChangeID string `json:"change_id"`
	Entity   string `json:"entity"`
}

// judge looks at everything after a cycle: the target, the executor's journal,
// the gate's state, its locks and its events must tell the same.
func (c *cycle) judge(ctx context.Context) {
	c.take()
	ch, err := c.alice.Change(ctx, c.id)
	if err != nil {
		c.wrong("%s was acknowledged and cannot be read: %v", c.id, err)
		return
	}
	if ch.State == "unknown" && c.kind != kindReconcile {
		c.unknowns++
		c.remains(ctx, &ch)
	}
	c.judgeEffects(ctx, ch)
	c.judgeApproval(ch)
	c.judgeLocks(ctx, ch)
	if c.undo != "" {
		if u, err := c.alice.Change(ctx, c.undo); err != nil || !u.Ended && c.late != c.undo {
			c.wrong("what undoes %s did not end: %s %v", c.id, u.State, err)
		}
	}
	c.judgeEvents(ctx)
	again, err := c.agent.Propose(ctx, c.proposal, c.key)
	if err != nil || again.ID != c.id {
		c.wrong("the same key became %s and then %s: %v", c.id, again.ID, err)
	}
}

// remains holds that an unknown outcome stays one over a restart, with its
// locks, until a person has settled it.
func (c *cycle) remains(ctx context.Context, ch *api.Change) {
	c.gate.kill()
	c.acts.kill()
	c.raise()
	again, err := c.alice.Change(ctx, c.id)
	if err != nil || again.State != "unknown" {
		c.wrong("it was unknown and became %s by itself: %v", again.State, err)
		return
	}
	c.judgeLocks(ctx, again)
	for range 400 {
		c.settle(ctx, again)
		if c.settled[c.id] {
			break
		}
	}
	if *ch, err = c.alice.Change(ctx, c.id); err != nil || !c.settled[c.id] || ch.State == "unknown" {
		c.wrong("it was settled, and is %s: %v", ch.State, err)
	}
}

// judgeEffects compares what the target took with what is said of it.
func (c *cycle) judgeEffects(ctx context.Context, ch api.Change) {
	newest, accounts := map[string]writ.Receipt{}, map[string]int{}
	for _, r := range ch.Receipts {
		newest[r.Step] = r
		accounts[r.Step]++
	}
	undone, undoubted, there := false, true, false
	if c.undo != "" {
		u, err := c.alice.Change(ctx, c.undo)
		undone = err == nil && u.State == "done"
		undoubted = err == nil && u.State != "unknown" && c.late != c.undo // of which either may be true
	}
	for i := range c.values {
		there = there || c.present(i)
	}
	if r := ch.Reconciled; r != nil && there != (r.Resolution == "adopt") {
		c.wrong("it was settled as %s, and it is %t that something of it is there", r.Resolution, there)
	}
	for i, value := range c.values {
		step := c.proposal.Steps[i].ID
		arrived, done := c.effects(value)
		sent := c.sent(ctx, ch.RunID, step)
		if arrived > 1 || done > 1 {
			c.wrong("%s was sent to the target %d times and had its effect %d times", step, arrived, done)
		}
		if sent > 1 || arrived > sent {
			c.wrong("the journal has %d intents of %s, and %d writes reached the target", sent, step, arrived)
		}
		if arrived > 0 && (len(ch.Approvals) == 0 || ch.RunID == "") {
			c.wrong("%s reached the target, and nobody approved it", step)
		}
		r, there := newest[step]
		outcome := r.Outcome
		if outcome == writ.RolledBack && accounts[step] != 2 {
			c.wrong("%s is %s after %d receipts", step, outcome, accounts[step])
		}
		switch {
		case ch.State == "done" && done != 1:
			c.wrong("it is done, and %s had its effect %d times", step, done)
		case !there && done > 0 && c.late != c.id: // it may just have arrived after all
			c.wrong("it is %s without a receipt of %s, which had its effect", ch.State, step)
		case (outcome == writ.Done || outcome == writ.Unverified) && done != 1:
			c.wrong("%s is %s, and had its effect %d times", step, outcome, done)
		case (outcome == writ.NotExecuted || outcome == writ.Failed) && done != 0:
			c.wrong("%s is %s, and had its effect", step, outcome)
		case (outcome == writ.RolledBack || undone && outcome == writ.Done) && c.present(i):
			c.wrong("%s was undone, and is there", step)
		case outcome == writ.Done && !undone && undoubted && !c.present(i):
			c.wrong("%s is done and was not undone, and is not there", step)
		}
	}
}

// sent counts the intents of a step in the executor's journal.
func (c *cycle) sent(ctx context.Context, run, step string) (n int) {
	err := c.journal().QueryRowContext(ctx, "SELECT count(*) FROM entries WHERE kind = 'sent' AND undo = 0 AND run = ? AND step = ?", run, step).Scan(&n)
	if err != nil {
		c.t.Fatalf("the executor's journal cannot be read: %v", err)
	}
	return n
}

// judgeApproval holds that what was carried out had been approved, by somebody else.
func (c *cycle) judgeApproval(ch api.Change) {
	if c.approved[c.id] && len(ch.Approvals) == 0 {
		c.wrong("the approval was acknowledged and is gone")
	}
	for _, a := range ch.Approvals {
		if a.ApprovedBy == ch.RequestedBy.Name {
			c.wrong("who asked for it approved it")
		}
	}
	if ch.RunID != "" && len(ch.Approvals) != 1 {
		c.wrong("it was carried out with %d approvals", len(ch.Approvals))
	}
	if !ch.Ended && c.late != c.id {
		c.wrong("it is %s, and nobody goes on with it", ch.State)
	}
}

// judgeLocks holds that what is in doubt or under way is locked, and nothing else is.
func (c *cycle) judgeLocks(ctx context.Context, ch api.Change) {
	locks, err := c.alice.Locks(ctx, true)
	if err != nil {
		c.wrong("the locks cannot be read: %v", err)
		return
	}
	events, err := c.alice.Events(ctx, client.EventFilter{ChangeID: c.id, Limit: 500})
	if err != nil {
		c.wrong("the events cannot be read: %v", err)
		return
	}
	freed := map[string]bool{}
	for _, line := range events.Events {
		var e told
		if json.Unmarshal(line, &e) == nil && e.Type == "lock.released" {
			freed[e.Entity] = true
		}
	}
	held := 0
	clear(c.busy)
	for _, l := range locks.Locks {
		if l.State != "released" {
			c.busy[l.Entity] = true
		}
		if l.ChangeID != c.id {
			continue
		}
		switch {
		case l.State != "released":
			held++
			active := ch.State == "claimed" || ch.State == "executing" || ch.State == "verifying"
			if active != (l.State == "active") {
				c.wrong("it is %s, and its lock on %s is %s", ch.State, l.Entity, l.State)
			}
		case !freed[l.Entity] && c.undo == "":
			c.wrong("the lock on %s was freed, and no event says so", l.Entity)
		}
	}
	doubt := ch.State == "unknown" || ch.State == "unverified" || ch.State == "rollback_failed"
	half := ch.State == "failed" && slices.ContainsFunc(ch.Receipts, func(r writ.Receipt) bool { return r.Outcome == writ.Done && r.Changed })
	undone := false
	if c.undo != "" {
		u, err := c.alice.Change(ctx, c.undo)
		undone = err == nil && u.State != "awaiting_approval" && u.State != "approved" && u.State != "failed"
	}
	switch mustHold := (doubt || half) && ch.Reconciled == nil && !undone; {
	case mustHold && held == 0:
		c.wrong("it is %s, and nothing is locked", ch.State)
	case !mustHold && held > 0 && ch.Ended && c.undo == "":
		c.wrong("it is %s, and holds %d locks", ch.State, held)
	}
}

// judgeEvents holds that the events go on without a gap, and that none that was
// told is gone or became another.
func (c *cycle) judgeEvents(ctx context.Context) {
	if c.seen > 0 {
		was, err := c.alice.Events(ctx, client.EventFilter{After: c.seen - 1, Limit: 1})
		if err != nil || len(was.Events) != 1 || string(was.Events[0]) != c.last {
			c.wrong("event %d was told and is another now: %v", c.seen, err)
		}
	}
	for {
		more, err := c.alice.Events(ctx, client.EventFilter{After: c.seen, Limit: 500})
		if err != nil {
			c.wrong("the events cannot be read: %v", err)
			return
		}
		for _, line := range more.Events {
			var e told
			if err := json.Unmarshal(line, &e); err != nil || e.Sequence != c.seen+1 {
				c.wrong("after event %d comes event %d: %v", c.seen, e.Sequence, err)
			}
			c.seen, c.last = e.Sequence, string(line)
		}
		if len(more.Events) < 500 {
			return
		}
	}
}

// overdue holds, when their writs are out of date, that changes whose writ
// seemed lost have ended as the target knows it. On a slow machine
// some arrived after all.
func overdue(ctx context.Context, late []*cycle) (problems []string) {
	for _, c := range late {
		var ch api.Change
		for {
			var err error
			if ch, err = c.alice.Wait(ctx, c.late, patience); err != nil {
				return append(problems, c.late+" cannot be read: "+err.Error()+"\n"+c.gate.log()+"\n"+c.acts.log())
			}
			if ch.Ended {
				break
			}
			if ctx.Err() != nil {
				return append(problems, c.id+" never ends: it is "+ch.State)
			}
		}
		c.problems = nil
		c.take()
		if c.late == c.id {
			c.late = ""
			c.judgeEffects(ctx, ch)
			c.judgeLocks(ctx, ch)
		}
		for _, p := range c.problems {
			problems = append(problems, c.id+": "+p)
		}
	}
	return problems
}

// verified lets the real command verify the audit, and our own reader after it.
func (in *installation) verified() {
	in.t.Helper()
	if out := in.writ("", "audit", "verify"); !strings.Contains(out, "event") {
		in.t.Errorf("writ audit verify says %q", out)
	}
	in.checked()
}

// checked lets our own reader verify the audit.
func (in *installation) checked() {
	in.t.Helper()
	for try := range 2 {
		problems := fsck(in.path("gate/audit"), in.path("gate/gate.key"))
		if len(problems) == 0 {
			return
		}
		if try == 0 {
			<-time.After(100 * time.Millisecond) // a checkpoint may just have been written
			continue
		}
		for _, problem := range problems {
			in.t.Errorf("the audit: %s", problem)
		}
	}
}

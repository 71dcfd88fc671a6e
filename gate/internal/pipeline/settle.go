package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"writ"
	"writ/failpoint"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// How settling waits: for one answer of the executor, between two tries when it
// is away, and past a writ's expiry until it is certain that it was never admitted.
const (
	receiptWait = 10 * time.Second
	retryAfter  = 300 * time.Millisecond
	retryAtMost = 3 * time.Second
	clockMargin = 30 * time.Second
)

// settle collects the receipts of a dispatched change until its run is
// finished, and ends it. It never sends a writ again.
func (p *Pipeline) settle(ctx context.Context, id string) {
	for tries := 0; ctx.Err() == nil; {
		over, err := false, error(nil)
		err = guarded(func() (err error) {
			over, err = p.collect(ctx, id, receiptWait)
			return err
		})
		switch {
		case over:
			failpoint.Reach(failpoint.ChangeEnded)
			p.afterwards(ctx, id)
			return
		case err == nil:
			tries = 0
			continue
		case tries == 0: // the first of a row; the others say the same
			p.Sys.Log.Warn("waiting for receipts", "change", id, "error", err, "cause", errors.Unwrap(err))
		}
		tries++
		select {
		case <-ctx.Done():
		case <-time.After(min(retryAtMost, retryAfter*time.Duration(1+tries/100))):
		}
	}
}

// collect asks the executor once, waiting for an answer, and records it. It is over
// when nothing more is to be learned of the change. An executor that does not
// account for it in time makes it unknown, and is asked on.
func (p *Pipeline) collect(ctx context.Context, id string, wait time.Duration) (over bool, err error) {
	c, err := p.load(ctx, id)
	if err != nil {
		return false, err
	}
	if !c.Awaited() {
		return true, nil
	}
	c, err = p.ask(ctx, c, wait)
	if ctx.Err() != nil || c.State != model.Claimed && c.State != model.Executing {
		return err == nil && !c.Awaited(), err
	}
	late, lateErr := p.overtime(ctx, c)
	if late && lateErr == nil {
		_, lateErr = p.change(ctx, id, func(tx store.Tx, c *model.Change, now writ.Time) error { return p.silent(tx, c, err != nil, now) })
	}
	return false, errors.Join(err, lateErr)
}

// ask records what the executor answers about a change, and returns it as it is
// then, also with an error.
func (p *Pipeline) ask(ctx context.Context, c *model.Change, wait time.Duration) (*model.Change, error) {
	receipts, finished, err := p.Executor.Receipts(ctx, c.RunID, writOf(c).IssuedAt, last(c), wait)
	switch {
	case fault.CodeOf(err) == fault.NotFound && (c.State == model.Unknown || p.Sys.Now().After(c.ValidUntil.Add(clockMargin))):
		return p.forgotten(ctx, c)
	case err != nil:
		return c, err
	case len(receipts) == 0 && !finished && c.State != model.Claimed:
		return c, nil
	}
	failpoint.Reach(failpoint.ReceiptsCame)
	if err := fit(c, receipts); err != nil {
		return c, err
	}
	now, err := p.change(ctx, c.ID, func(tx store.Tx, c *model.Change, now writ.Time) error {
		if !c.Awaited() {
			return nil
		}
		if err := p.executing(tx, c, now); err != nil {
			return err
		}
		if err := p.record(tx, c, receipts, now); err != nil {
			return err
		}
		switch {
		case !finished:
			return nil
		case c.State == model.Unknown:
			return p.answered(tx, c, true, now)
		}
		return p.end(tx, c, now)
	})
	failpoint.Reach(failpoint.ReceiptsStored)
	if err != nil {
		return c, err
	}
	return now, nil
}

// last returns the sequence of the last receipt that was recorded.
func last(c *model.Change) int64 {
	if n := len(c.Receipts); n > 0 {
		return c.Receipts[n-1].Sequence
	}
	return 0
}

// forgotten ends a change whose run the executor does not know when its writ
// can no longer be admitted. Either it never arrived, or what came of it will
// not be learned.
func (p *Pipeline) forgotten(ctx context.Context, c *model.Change) (*model.Change, error) {
	hello, err := p.Executor.Hello(ctx)
	if err != nil {
		return c, err
	}
	forgot, err := p.forgot(ctx, hello)
	if err != nil {
		return c, err
	}
	if c.State == model.Claimed && !forgot { // else it may have been admitted all the same
		lost := fault.New(fault.Unavailable, "The executor never got the writ, and it is too late to use it. Nothing was changed; propose it again.").Because("not_admitted")
		if err := p.abandon(ctx, c.ID, lost); !errors.Is(err, lost) {
			return c, err
		}
	}
	now, err := p.change(ctx, c.ID, func(tx store.Tx, c *model.Change, now writ.Time) error {
		if !c.Awaited() {
			return nil
		}
		if c.State == model.Unknown {
			return p.answered(tx, c, false, now)
		}
		if err := p.executing(tx, c, now); err != nil {
			return err
		}
		return p.end(tx, c, now)
	})
	if err != nil {
		return c, err
	}
	return now, nil
}

// fit checks that receipts are about this change and steps of it, and follow
// those that were recorded.
func fit(c *model.Change, receipts []model.Receipt) error {
	after := last(c)
	for i := range receipts {
		r := &receipts[i].Receipt
		at := slices.IndexFunc(c.Steps, func(s writ.Step) bool { return s.ID == r.Step })
		if at < 0 || r.ChangeID != c.ID || r.Run != c.RunID || r.WritDigest != writ.DigestBytes(c.Writ) ||
			r.Entity != c.Steps[at].Entity || !tells(r, &c.Steps[at]) || r.Sequence <= after {
			return fault.New(fault.Refused, "The executor sent a receipt that does not belong to %s.", c.ID).Because("other_change")
		}
		after = r.Sequence
	}
	return nil
}

// tells reports whether a receipt is about what the step did, or about its way back.
func tells(r *writ.Receipt, s *writ.Step) bool {
	undoes := r.Outcome == writ.RolledBack || r.Outcome == writ.RollbackFailed || r.Outcome == writ.Unknown
	if undo := s.Rollback; undo != nil && undoes && r.Action == undo.Action && r.System == undo.System {
		return true
	}
	return r.Action == s.Action && r.System == s.System
}

// record stores receipts, each with the event that tells it to auditors.
func (p *Pipeline) record(tx store.Tx, c *model.Change, receipts []model.Receipt, now writ.Time) error {
	if len(receipts) == 0 {
		return nil
	}
	if err := fit(c, receipts); err != nil {
		return err // somebody else recorded them
	}
	c.Receipts = append(c.Receipts, receipts...)
	if a := accountOf(c); a != nil {
		p.newest.Store(a)
	}
	c.UpdatedAt = now
	if err := tx.Amend(c); err != nil {
		return err
	}
	for i := range receipts {
		r := &receipts[i].Receipt
		e := p.event(c, model.StepEnded, model.Writ, now)
		e.User = model.User(c.RequestedBy)
		e.Step, e.TargetSystem, e.ActionType, e.Entity = r.Step, r.System, r.Action, r.Entity
		e.InputHash, e.BackupReference, e.BackupStatus = r.InputHash, r.BackupReference, r.BackupStatus
		e.VerificationResult, e.RollbackReference = verification(r), r.RollbackReference
		e.DurationMS, e.Status, e.Reason = r.FinishedAt.Sub(r.StartedAt.Time).Milliseconds(), string(r.Outcome), r.Reason
		if len(c.Approvals) > 0 {
			e.ApprovalID = c.Approvals[0].ID
		}
		checks := []any{}
		for _, check := range r.Checks {
			checks = append(checks, writ.Object{"name": check.Name, "passed": check.Passed})
		}
		e.Detail = writ.Object{
			"live_infrastructure_changed": r.Changed, "checks": checks, "writes_sent": int64(len(r.Sent)),
			"receipt_digest": string(writ.DigestBytes(receipts[i].Sealed)), "executor": r.Executor,
			"executor_checkpoint": r.Checkpoint,
		}
		if err := tx.Append(e); err != nil {
			return err
		}
	}
	return nil
}

// verification sums up the checks. Where nothing was applied, the backup is all
// that was checked, and the change itself was not verified.
func verification(r *writ.Receipt) string {
	switch {
	case slices.ContainsFunc(r.Checks, func(c writ.Check) bool { return !c.Passed }):
		return "failed"
	case len(r.Checks) == 0, r.Outcome == writ.NotExecuted, r.Outcome == writ.Failed, r.Outcome == writ.Unknown:
		return ""
	}
	return "passed"
}

// end moves a change to the end that its receipts add up to, and frees or
// orphans its locks in the same transaction.
func (p *Pipeline) end(tx store.Tx, c *model.Change, now writ.Time) error {
	outcomes := make([]writ.Outcome, 0, len(c.Steps))
	for _, r := range c.Newest() {
		outcomes = append(outcomes, r.Outcome)
	}
	if len(outcomes) < len(c.Steps) {
		outcomes = append(outcomes, writ.Unknown) // a step without a receipt
	}
	return p.endAs(tx, c, model.StateOf(outcomes), nil, now)
}

// endAs moves a change to an end; without a trouble, its receipts tell it.
func (p *Pipeline) endAs(tx store.Tx, c *model.Change, end model.State, trouble *model.Trouble, now writ.Time) error {
	path := []model.State{model.Verifying, end}
	if end == model.RolledBack || end == model.RollbackFailed {
		path = []model.State{model.Verifying, model.RollingBack, end}
	}
	for _, next := range path {
		from := c.State
		c.State, c.UpdatedAt = next, now
		if next == end {
			c.EndedAt, c.Trouble = now, trouble
			if trouble == nil {
				c.Trouble = troubleOf(c)
			}
		}
		if err := tx.Move(c, from); err != nil {
			return err
		}
	}
	if err := p.endLocks(tx, c, now); err != nil {
		return err
	}
	if err := tx.Append(p.event(c, model.ChangeEnded, model.Writ, now)); err != nil {
		return err
	}
	return p.undid(tx, c, now)
}

// troubleOf tells the first thing that kept a run from being done.
func troubleOf(c *model.Change) *model.Trouble {
	if c.State == model.Done {
		return nil
	}
	for _, r := range c.Receipts {
		if r.Outcome != writ.Done && r.Outcome != writ.RolledBack {
			return &model.Trouble{Code: c.Code(), Reason: r.Reason, Text: "Step " + r.Step + ": " + r.Detail + notUndone(c)}
		}
	}
	return &model.Trouble{Code: c.Code(), Reason: "receipt_missing", Text: "The executor gave no receipt for a step."}
}

// notUndone names the steps that were to be undone and were not, in a sentence of
// its own; "" if there is none.
func notUndone(c *model.Change) string {
	var left []string
	for _, r := range c.Newest() {
		if c.Request.OnFailure == writ.Rollback && c.State == model.RollbackFailed && r.Outcome == writ.RollbackFailed {
			left = append(left, r.Step)
		}
	}
	if len(left) == 0 {
		return ""
	}
	return " Not undone: " + strings.Join(left, ", ") + "."
}

// endLocks frees the entities that are as they were or as approved, and
// orphans the others: only a recovery releases those.
func (p *Pipeline) endLocks(tx store.Tx, c *model.Change, now writ.Time) error {
	orphaned := c.OrphanedEntities()
	var original *model.Change
	var back []string
	if c.Request.RollbackOf != "" && c.State != model.Done && c.State != model.Unknown {
		var err error
		if original, err = tx.Change(c.Request.RollbackOf); err != nil {
			return err
		}
		back = original.OrphanedEntities()
	}
	for _, entity := range c.Entities() {
		returned := slices.Contains(back, entity)
		state, event := model.LockReleased, model.LockFreed
		if slices.Contains(orphaned, entity) && !returned {
			state, event = model.LockOrphaned, model.LockLeft
		}
		if err := tx.EndLock(entity, c.ID, state, now); err != nil {
			return err
		}
		if err := tx.Append(p.lockEvent(c, event, entity, now)); err != nil {
			return err
		}
		var err error
		switch {
		case returned:
			err = p.returnLock(tx, original, entity, now)
		case state == model.LockReleased:
			err = p.handOn(tx, entity, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// returnLock gives an entity back to the change that left it, still orphaned: a
// rollback that did not succeed leaves it to the next one.
func (p *Pipeline) returnLock(tx store.Tx, original *model.Change, entity string, now writ.Time) error {
	_, err := tx.TakeLock(model.Lock{
		Entity: entity, Kind: model.LockKindOf(original.Assessment.Class), State: model.LockActive,
		ChangeID: original.ID, RunID: original.RunID, TakenAt: now,
	}, original.Request.RollbackOf)
	if err != nil {
		return err
	}
	if err := tx.EndLock(entity, original.ID, model.LockOrphaned, now); err != nil {
		return err
	}
	return tx.Append(p.lockEvent(original, model.LockLeft, entity, now))
}

// afterwards does what follows the end of a change and may be done again after
// a crash: the audit file catches up, and a change that was left half-way gets
// the plan of its rollback, which needs an approval of its own.
func (p *Pipeline) afterwards(ctx context.Context, id string) {
	if err := p.Audit.CatchUp(ctx); err != nil {
		p.Sys.Log.Error("the audit file did not catch up", "error", err)
	}
	c, err := p.load(ctx, id)
	if err != nil || !c.Held() || c.State == model.Unknown || c.Request.RollbackOf != "" || len(undo(c)) == 0 {
		return
	}
	if tries, err := p.rollbacks(ctx, id); err != nil || len(tries) > 0 {
		return // it was planned before; once it was denied, asking again is a human's to do
	}
	who := model.Caller{Principal: c.RequestedBy, Roles: []model.Role{model.Requester}}
	if _, err := p.proposeRollback(ctx, who, c); err != nil {
		p.Sys.Log.Error("the rollback was not planned", "change", id, "error", err)
	}
}

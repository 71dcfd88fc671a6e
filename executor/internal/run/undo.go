package run

import (
	"context"
	"slices"

	"writ"
	"writ/executor/internal/admit"
	"writ/failpoint"
	"writ/fault"
)

// rollBack undoes, in reverse order, every step that was done and one that was
// applied without verifying. One that cannot be undone keeps those that it stands
// on from being undone, and no others. Each gets its receipt.
func (p *progress) rollBack(ctx context.Context) error {
	var left []*task // not undone, the last step first
	for _, t := range slices.Backward(p.ended) {
		if o := t.receipt.Outcome; o != writ.Done && o != writ.Unverified || !t.Action.Writes() {
			continue
		}
		failpoint.Reach(failpoint.UndoBegins)
		u, refused := p.reverse(t)
		if above := p.above(left, t); refused == nil && above != "" {
			refused = fault.New(fault.Refused, "Step %s stands on it and is not undone.", above).Because("stood_upon")
		}
		err := error(nil)
		if refused != nil {
			err = u.end(ctx, &stop{writ.NotExecuted, fault.ReasonOf(refused), fault.TextOf(refused)})
		} else {
			err = u.run(ctx)
		}
		if err != nil {
			return err
		}
		failpoint.Reach(failpoint.UndoEnded)
		if u.receipt.Outcome != writ.RolledBack {
			left = append(left, t)
		}
	}
	return nil
}

// above names the first of some steps that stands on another; "" is none.
func (p *progress) above(some []*task, on *task) string {
	for _, t := range some {
		if writ.StandsOn(p.admitted.Writ().Envelope.Steps, t.Plan.ID, on.Plan.ID) {
			return t.Plan.ID
		}
	}
	return ""
}

// reverse returns the task that undoes another. With an error it can only be ended.
func (p *progress) reverse(t *task) (*task, error) {
	step, err := p.admitted.Undo(t.Plan, t.way)
	if err != nil {
		step = admit.Step{Plan: t.Plan}
	}
	u := p.task(step, true)
	u.receipt.Entity = t.Plan.Entity // the receipt is about the step that is undone
	return u, err
}

// undone turns the outcome of a way back into the outcome of its step. A way
// back of which nobody knows what became of it stays unknown.
func (t *task) undone() {
	switch r := &t.receipt; r.Outcome {
	case writ.Done:
		r.Outcome = writ.RolledBack
	case writ.Unknown:
		r.Detail = t.clean("Whether it was undone is not known. " + r.Detail)
	default:
		r.Detail = t.clean("It could not be undone (" + string(r.Outcome) + "). " + r.Detail)
		r.Outcome = writ.RollbackFailed
	}
}

package pipeline

import (
	"context"
	"errors"
	"strings"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// haltedReason is the reason of whatever is refused because a person stopped it.
const haltedReason = "halted"

// Halt puts a halt in force, and returns it with the changes that were under way
// and are covered. The executor is told of them at once; it is told again and
// again until it has taken note, also after a restart.
func (p *Pipeline) Halt(ctx context.Context, who model.Caller, h model.Halt) (model.Halt, []*model.Change, error) {
	if who.Kind != writ.Human || !who.Has(model.Approver) && !who.Has(model.Operator) {
		return h, nil, fault.New(fault.Denied, "%s may not stop anything: only a human with the role approver or operator may.", who.User()).Because("not_a_person")
	}
	if err := p.checkHalt(ctx, &h); err != nil {
		return h, nil, err
	}
	h.ID, h.By = p.Sys.NewID("halt"), who.Principal
	set := p.update(ctx, func(tx store.Tx, now writ.Time) error {
		h.At = now
		if err := tx.SetHalt(h); err != nil {
			return err
		}
		return tx.Append(p.haltEvent(&h, model.HaltSet, who, now))
	})
	// Also if it could not be stored: what can be stopped is.
	running, err := p.enforce(ctx, []model.Halt{h})
	if err := errors.Join(set, err); err != nil {
		return h, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.FirstAnswer)
	defer cancel()
	for i, c := range running {
		told, err := p.wait(ctx, c.ID, p.FirstAnswer, func(c *model.Change) bool { return !c.HaltedAt.IsZero() })
		if err == nil {
			running[i] = told
		}
	}
	return h, running, nil
}

// checkHalt reports what is wrong with a halt: above all one that covers nothing.
func (p *Pipeline) checkHalt(ctx context.Context, h *model.Halt) error {
	h.Target = strings.Trim(h.Target, "/")
	system, _, _ := strings.Cut(h.Target, "/")
	switch {
	case h.Target != "" && h.Principal != "":
		return fault.New(fault.Invalid, "Stop either a target or a principal; for both, stop each.")
	case len(h.Target) > maxSentence || len(h.Principal) > maxSentence:
		return fault.New(fault.Invalid, "A target or a principal has up to %d bytes.", maxSentence)
	case len(h.Reason) == 0 || len(h.Reason) > maxSentence:
		return fault.New(fault.Invalid, "Whoever stops something says why, in up to %d bytes.", maxSentence)
	}
	if h.Target == "" {
		return nil
	}
	hello, err := p.Executor.Hello(ctx)
	if err != nil { // one that is away keeps nobody from stopping anything
		return nil
	}
	names := []string{}
	for _, s := range hello.Systems {
		if s.Name == system {
			return nil
		}
		names = append(names, s.Name)
	}
	return fault.New(fault.Invalid, "There is no system %.60q, so that nothing would be stopped. The systems are %s.", system, strings.Join(names, ", ")).Because("unknown_system")
}

// LiftHalt ends a halt. What was stopped under way stays stopped.
func (p *Pipeline) LiftHalt(ctx context.Context, who model.Caller, id string) (h model.Halt, err error) {
	if who.Kind != writ.Human || !who.Has(model.Approver) {
		return h, fault.New(fault.Denied, "%s may not lift it: only a human with the role approver may.", who.User()).Because("not_an_approver")
	}
	err = p.update(ctx, func(tx store.Tx, now writ.Time) error {
		all, err := tx.Halts(true)
		if err != nil {
			return err
		}
		for _, h = range all {
			switch {
			case h.ID != id:
				continue
			case !h.LiftedAt.IsZero():
				return fault.New(fault.Conflict, "%s lifted %s at %s already.", h.LiftedBy, h.ID, h.LiftedAt).Because("lifted_before")
			case strings.EqualFold(h.Principal, who.Name):
				return fault.New(fault.Denied, "You were stopped by %s yourself; somebody else lifts it.", model.User(h.By)).Because("self_approval")
			}
			h.LiftedBy, h.LiftedAt = who.User(), now
			if err := tx.SetHalt(h); err != nil {
				return err
			}
			return tx.Append(p.haltEvent(&h, model.HaltLifted, who, now))
		}
		return fault.New(fault.NotFound, "There is no halt %.60q. List them: writ halts", id)
	})
	return h, err
}

// Halts returns the halts, newest first; lifted ones only if asked for.
func (p *Pipeline) Halts(ctx context.Context, lifted bool) (all []model.Halt, err error) {
	err = p.Store.View(ctx, func(r store.Reader) (err error) {
		all, err = r.Halts(lifted)
		return err
	})
	return all, err
}

func (p *Pipeline) haltEvent(h *model.Halt, t model.EventType, who model.Caller, now writ.Time) *model.Event {
	return &model.Event{
		ID: p.Sys.NewID("evt"), Type: t, Timestamp: now, User: who.User(), Entity: h.Target,
		Detail: writ.Object{"halt_id": h.ID, "target": h.Target, "principal": h.Principal, "reason": told(h.Reason)},
	}
}

// halted fails while a halt that covers something is in force.
func halted(r store.Holds, covers func(*model.Halt) bool) error {
	halts, err := r.Halts(false)
	if err != nil {
		return err
	}
	for i := range halts {
		if h := &halts[i]; covers(h) {
			return fault.New(fault.Denied, "%s stopped %s at %s, and said: %q. Until that is lifted nothing of it is done: writ lift %s",
				model.User(h.By), h.What(), h.At, told(h.Reason), h.ID).Because(haltedReason)
		}
	}
	return nil
}

// enforce returns the changes under way that halts cover, and sees that the
// executor is told of each.
func (p *Pipeline) enforce(ctx context.Context, halts []model.Halt) ([]*model.Change, error) {
	if len(halts) == 0 {
		return nil, nil
	}
	running, err := p.inState(ctx, model.Claimed, model.Executing)
	var covered []*model.Change
	for _, c := range running {
		for i := range halts {
			if !halts[i].Covers(c) {
				continue
			}
			covered = append(covered, c)
			if c.HaltedAt.IsZero() {
				p.background(func(ctx context.Context) { p.stopRun(ctx, c.ID) })
			}
			break
		}
	}
	return covered, err
}

// stopRun tells the executor to start no further step of a change, until it has
// taken note or the change has ended. What it does not know yet it will not begin.
func (p *Pipeline) stopRun(ctx context.Context, id string) {
	for ctx.Err() == nil {
		over := false
		err := guarded(func() (err error) {
			over, err = p.tellHalt(ctx, id)
			return err
		})
		if over {
			return
		}
		p.Sys.Log.Error("the executor does not know yet that a change is stopped", "change", id, "error", err, "cause", errors.Unwrap(err))
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

func (p *Pipeline) tellHalt(ctx context.Context, id string) (over bool, err error) {
	c, err := p.load(ctx, id)
	if err != nil {
		return false, err
	}
	if c.State != model.Claimed && c.State != model.Executing || !c.HaltedAt.IsZero() {
		return true, nil
	}
	sealed, err := p.stepless(ctx, writ.Halt, c.RunID, c.ID)
	if err != nil {
		return false, err
	}
	if err := p.Executor.Execute(ctx, sealed); err != nil {
		return false, err
	}
	_, err = p.change(ctx, id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		if c.State != model.Claimed && c.State != model.Executing || !c.HaltedAt.IsZero() {
			return nil
		}
		c.HaltedAt, c.UpdatedAt = now, now
		if err := tx.Amend(c); err != nil {
			return err
		}
		return tx.Append(p.event(c, model.ChangeHalted, model.Writ, now))
	})
	return err == nil, err
}

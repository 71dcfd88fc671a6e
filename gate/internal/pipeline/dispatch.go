package pipeline

import (
	"context"
	"slices"

	"writ"
	"writ/failpoint"
	"writ/fault"
	"writ/gate/internal/link"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// dispatch takes the locks, seals the writ and hands it over. The order is what
// keeps it safe: validity is checked and the locks are taken in the transaction
// that claims the change; the audit file holds that event before a byte leaves.
// It fails only if it is certain that the executor has not taken the writ.
func (p *Pipeline) dispatch(ctx context.Context, id string) error {
	hello, err := p.Executor.Hello(ctx)
	if err == nil && hello.Locked {
		err = fault.New(fault.Unavailable, "The vault of the executor is locked, so it refuses everything. Run: writ vault unlock").Because("vault_locked")
	}
	if r := hello.Refuses; err == nil && r != nil {
		err = fault.New(r.Code, "The executor takes nothing now. %s", r.Text).Because(r.Reason)
	}
	if err == nil {
		err = p.remembers(ctx, id, hello)
	}
	if err == nil { // before the approval is used
		err = p.Audit.CatchUp(ctx)
	}
	if err != nil {
		return err // still approved; it can be executed while the approval is good
	}
	failpoint.Reach(failpoint.DispatchBegins)
	c, err := p.claim(ctx, id, hello.Executor)
	if err != nil {
		return err
	}
	failpoint.Reach(failpoint.DispatchClaimed)
	// From here on, no caller's patience decides how far it gets.
	ctx = context.WithoutCancel(ctx)
	if err := p.Audit.CatchUp(ctx); err != nil {
		return p.abandon(ctx, id, err)
	}
	failpoint.Reach(failpoint.DispatchAudited)
	if err := p.Executor.Execute(ctx, c.Writ); err != nil {
		if notTaken(err) {
			return p.abandon(ctx, id, err)
		}
		p.Sys.Log.Warn("the writ may have arrived; it is not sent again", "change", id, "error", err)
		return nil
	}
	failpoint.Reach(failpoint.DispatchHanded)
	if _, err := p.change(ctx, id, p.executing); err != nil {
		p.Sys.Log.Error("that the executor took the writ is not stored yet", "change", id, "error", err)
	}
	return nil
}

// notTaken reports whether an error of handing over a writ makes it certain
// that the executor did not take it: no byte of it left, or it was refused.
// After any other error it may be in the executor's journal.
func notTaken(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unavailable:
		return fault.ReasonOf(err) == link.NotSent
	case fault.Spent, fault.Unknown, fault.Timeout, fault.Canceled, fault.Internal:
		return false
	}
	return true
}

// executing moves a claimed change on: the executor admitted its writ.
func (p *Pipeline) executing(tx store.Tx, c *model.Change, now writ.Time) error {
	if c.State != model.Claimed {
		return nil
	}
	c.State, c.UpdatedAt, c.StartedAt = model.Executing, now, now
	if err := tx.Move(c, model.Claimed); err != nil {
		return err
	}
	return tx.Append(p.event(c, model.ChangeExecuting, model.Writ, now))
}

// claim makes an approved change this run's, for good.
func (p *Pipeline) claim(ctx context.Context, id, executor string) (*model.Change, error) {
	return p.change(ctx, id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		if err := p.usable(tx, c, now); err != nil {
			return err
		}
		c.RunID = p.Sys.NewID("run")
		fences, err := p.takeLocks(tx, c, now)
		if err != nil {
			return err
		}
		c.Writ, err = writ.Seal(writ.KindWrit, &writ.Writ{
			Format: writ.FormatWrit, Purpose: writ.Execute, Run: c.RunID, Executor: executor, Nonce: p.Sys.NewSecret(16),
			Epoch: p.Epoch, IssuedAt: now, ExpiresAt: c.ValidUntil, Fences: fences,
			Approvals: append([]writ.Approval{}, c.Approvals...), Envelope: *c.Envelope,
		}, p.Key)
		if err != nil {
			return err
		}
		c.State, c.UpdatedAt, c.Trouble, c.Deadline = model.Claimed, now, nil, p.deadline(c, now)
		if err := tx.Move(c, model.Approved); err != nil {
			return err
		}
		e := p.event(c, model.ChangeClaimed, model.Writ, now)
		e.Detail = writ.Object{"writ_digest": string(writ.DigestBytes(c.Writ))}
		return tx.Append(e)
	})
}

// usable checks at the moment of use what was checked at the moment of decision.
func (p *Pipeline) usable(tx store.Tx, c *model.Change, now writ.Time) error {
	if c.State != model.Approved {
		return notExecutable(c)
	}
	if err := p.onTime(); err != nil {
		return err
	}
	switch {
	case p.overdue(c, now.Time):
		return p.expire(tx, c, now, "approval_expired")
	case c.Decision.PolicyDigest != p.Policy.Digest():
		return p.expire(tx, c, now, "policy_changed")
	case !p.sameActions(c):
		return p.expire(tx, c, now, "action_changed")
	}
	return halted(tx, func(h *model.Halt) bool { return h.Covers(c) })
}

// sameActions reports whether every action is still what it was when the change
// was planned.
func (p *Pipeline) sameActions(c *model.Change) bool {
	return !slices.ContainsFunc(c.Steps, func(s writ.Step) bool {
		a, ok := p.Catalog.Action(s.Action)
		return !ok || a.Digest != s.ActionDigest
	})
}

// executable fails, in words a caller can act on, if a change cannot be carried out now.
func (p *Pipeline) executable(ctx context.Context, who model.Caller, id string) error {
	c, err := p.own(ctx, who, id)
	if err != nil {
		return err
	}
	if c.State != model.Approved {
		return notExecutable(c)
	}
	return p.Store.View(ctx, func(r store.Reader) error {
		return halted(r, func(h *model.Halt) bool { return h.CoversPrincipal(who.Name) })
	})
}

func notExecutable(c *model.Change) error {
	switch c.State {
	case model.Proposed, model.Planned, model.AwaitingApproval:
		return fault.New(fault.ApprovalMissing, "%s is %s: nothing is carried out before it is approved.", c.ID, c.State).Because("approval_missing")
	case model.Denied:
		return fault.New(fault.Denied, "%s was denied: %s", c.ID, c.Trouble.Text).Because(c.Trouble.Reason)
	case model.Rejected:
		return fault.New(fault.Denied, "%s was rejected by a human.", c.ID).Because("rejected")
	case model.Expired:
		return expired(c)
	case model.Cancelled:
		return fault.New(fault.Conflict, "%s was cancelled.", c.ID).Because("cancelled")
	}
	return fault.New(fault.Spent, "The approval of %s was used before; it is %s. An approval is good for one use.", c.ID, c.State).Because("spent")
}

// fenceBits is how much of a fence counts the locks of an entity; above it stands
// the epoch. A store that was restored from a backup counts from where it was:
// with its epoch raised, its fences are higher all the same.
const fenceBits = 32

// takeLocks takes every entity that the change writes to.
func (p *Pipeline) takeLocks(tx store.Tx, c *model.Change, now writ.Time) ([]writ.Fence, error) {
	fences := []writ.Fence{}
	for _, entity := range c.Entities() {
		lock, err := tx.TakeLock(model.Lock{
			Entity: entity, Kind: model.LockKindOf(c.Assessment.Class), State: model.LockActive,
			ChangeID: c.ID, RunID: c.RunID, TakenAt: now,
		}, c.Request.RollbackOf)
		if err != nil {
			return nil, err
		}
		fences = append(fences, writ.Fence{Entity: entity, Number: p.Epoch<<fenceBits + lock.Fence})
		if err := tx.Append(p.lockEvent(c, model.LockTaken, entity, now)); err != nil {
			return nil, err
		}
	}
	return fences, nil
}

func (p *Pipeline) lockEvent(c *model.Change, t model.EventType, entity string, now writ.Time) *model.Event {
	e := p.event(c, t, model.Writ, now)
	e.Entity = entity
	return e
}

// heldUp records why an approved change could not begin. It stays approved.
func (p *Pipeline) heldUp(ctx context.Context, id string, why error) {
	_, err := p.change(context.WithoutCancel(ctx), id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		trouble := model.TroubleOf(why)
		if c.State != model.Approved || c.Trouble != nil && *c.Trouble == *trouble {
			return nil
		}
		c.Trouble, c.UpdatedAt = trouble, now
		if err := tx.Amend(c); err != nil {
			return err
		}
		return tx.Append(p.event(c, model.ChangeHeldUp, model.Writ, now))
	})
	if err != nil {
		p.Sys.Log.Error("why a change is held up is not stored", "change", id, "error", err)
	}
	failpoint.Reach(failpoint.ChangeHeldUp)
}

// abandon ends a claimed change of which it is certain that nothing was sent,
// and returns why.
func (p *Pipeline) abandon(ctx context.Context, id string, why error) error {
	_, err := p.change(ctx, id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		c.Trouble = model.TroubleOf(why)
		c.State, c.UpdatedAt, c.EndedAt = model.Failed, now, now
		if err := tx.Move(c, model.Claimed); err != nil {
			return err
		}
		if err := p.endLocks(tx, c, now); err != nil {
			return err
		}
		return tx.Append(p.event(c, model.ChangeEnded, model.Writ, now))
	})
	if err != nil {
		return err
	}
	return why
}

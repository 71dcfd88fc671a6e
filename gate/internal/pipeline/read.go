package pipeline

import (
	"context"
	"time"

	"writ/fault"
	"writ/gate/internal/artifact"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// maxWait bounds how long one call of Wait is held.
const maxWait = 20 * time.Second

// Change returns one change. One that the caller may not see does not exist for it.
func (p *Pipeline) Change(ctx context.Context, who model.Caller, id string) (*model.Change, error) {
	c, err := p.load(ctx, id)
	if fault.CodeOf(err) == fault.NotFound || err == nil && !who.SeesAll() && c.RequestedBy != who.Principal {
		err = fault.New(fault.NotFound, "There is no change %.60q. List the changes to find it.", id)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// own returns a change that the caller may act on as a requester or operator.
func (p *Pipeline) own(ctx context.Context, who model.Caller, id string) (*model.Change, error) {
	c, err := p.Change(ctx, who, id)
	if err == nil && c.RequestedBy != who.Principal && !who.Has(model.Operator) {
		err = fault.New(fault.Denied, "%s belongs to %s; the role operator is needed to act on it.", id, c.RequestedBy.Name).Because("not_yours")
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Changes returns the changes that the caller may see, newest first.
func (p *Pipeline) Changes(ctx context.Context, who model.Caller, f store.ChangeFilter) ([]*model.Change, error) {
	if !who.SeesAll() {
		f.Requester = who.Name
	}
	var list []*model.Change
	err := p.Store.View(ctx, func(r store.Reader) (err error) {
		list, err = r.Changes(f)
		return err
	})
	return list, err
}

// rollbacks returns the changes that undo, or were to undo, another.
func (p *Pipeline) rollbacks(ctx context.Context, id string) ([]*model.Change, error) {
	var list []*model.Change
	err := p.Store.View(ctx, func(r store.Reader) (err error) {
		list, err = r.Changes(store.ChangeFilter{RollbackOf: id})
		return err
	})
	return list, err
}

// Wait returns a change when it has moved on from the state it is in now, or
// after the timeout, of which at most 20 s count.
func (p *Pipeline) Wait(ctx context.Context, who model.Caller, id string, timeout time.Duration) (*model.Change, error) {
	c, err := p.Change(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return p.WaitFrom(ctx, c, timeout)
}

// WaitFrom is Wait for a change that moves on from how the caller got it.
func (p *Pipeline) WaitFrom(ctx context.Context, c *model.Change, timeout time.Duration) (*model.Change, error) {
	if c.State.Ended() {
		return c, nil
	}
	return p.wait(ctx, c.ID, min(max(timeout, 0), maxWait), func(now *model.Change) bool { return now.Version != c.Version })
}

// wait returns a change as soon as enough holds, or as it is after the timeout.
func (p *Pipeline) wait(ctx context.Context, id string, timeout time.Duration, enough func(*model.Change) bool) (*model.Change, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		moved := p.news.wait()
		c, err := p.load(ctx, id)
		if err != nil || enough(c) || c.State.Ended() {
			return c, err
		}
		select {
		case <-moved:
		case <-timer.C:
			return c, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Events returns lines of the audit, of one change if the caller sees only its own.
func (p *Pipeline) Events(ctx context.Context, who model.Caller, f store.EventFilter) ([]store.Line, error) {
	if !who.SeesAll() {
		if f.ChangeID == "" {
			return nil, fault.New(fault.Denied, "%s sees the events of its own changes only: name one, or use a token with the role auditor.", who.User())
		}
		if _, err := p.Change(ctx, who, f.ChangeID); err != nil {
			return nil, err
		}
	}
	var lines []store.Line
	err := p.Store.View(ctx, func(r store.Reader) (err error) {
		lines, err = r.Events(f)
		return err
	})
	return lines, err
}

// Locks returns the locks; released ones only if asked for.
func (p *Pipeline) Locks(ctx context.Context, _ model.Caller, released bool) ([]model.Lock, error) {
	var locks []model.Lock
	err := p.Store.View(ctx, func(r store.Reader) (err error) {
		locks, err = r.Locks(released)
		return err
	})
	return locks, err
}

// Artifact returns the whole account of one change.
func (p *Pipeline) Artifact(ctx context.Context, who model.Caller, id string) (artifact.Artifact, error) {
	c, err := p.Change(ctx, who, id)
	if err != nil {
		return artifact.Artifact{}, err
	}
	lines, err := p.Events(ctx, who, store.EventFilter{ChangeID: id})
	if err != nil {
		return artifact.Artifact{}, err
	}
	locks, err := p.Locks(ctx, who, true)
	if err != nil {
		return artifact.Artifact{}, err
	}
	undone, err := p.rollbacks(ctx, id)
	if err != nil {
		return artifact.Artifact{}, err
	}
	return artifact.New(c, lines, locks, undone)
}

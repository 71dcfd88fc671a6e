package pipeline

import (
	"context"
	"errors"
	"time"

	"writ"
	"writ/failpoint"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// sweepEvery is how often requests and approvals that ran out of time are
// ended. Validity is checked at every use besides, so this is only tidiness.
const sweepEvery = time.Second

// Start goes on with every change that is not ended, from what the store says,
// and keeps time until Stop. It refuses to start while the audit file cannot
// hold what the store holds.
func (p *Pipeline) Start(ctx context.Context) error {
	if err := p.recallTime(ctx); err != nil {
		return err
	}
	err := p.update(ctx, func(tx store.Tx, now writ.Time) error {
		return tx.Append(&model.Event{
			ID: p.Sys.NewID("evt"), Type: model.GateStarted, Timestamp: now, User: model.Writ,
			Detail: writ.Object{"policy_digest": string(p.Policy.Digest()), "catalog_digest": string(p.Catalog.Digest()), "epoch": p.Epoch, "config_digest": string(p.Settings)},
		})
	})
	if err != nil {
		return err
	}
	failpoint.Reach(failpoint.StartRecorded)
	if err := p.Audit.CatchUp(ctx); err != nil {
		return err
	}
	failpoint.Reach(failpoint.StartCaughtUp)
	open, err := p.inState(ctx, model.Proposed, model.Planned, model.Approved, model.Claimed, model.Executing)
	if err != nil {
		return err
	}
	unknown, err := p.inState(ctx, model.Unknown)
	if err != nil {
		return err
	}
	for _, c := range unknown {
		if c.Awaited() {
			open = append(open, c)
		}
	}
	locks, err := p.Locks(ctx, model.Caller{}, false)
	if err != nil {
		return err
	}
	if err := p.recall(ctx); err != nil {
		return err
	}
	halts, err := p.Halts(ctx, false)
	if err != nil {
		return err
	}
	if _, err := p.enforce(ctx, halts); err != nil {
		return err
	}
	for _, c := range open {
		p.resume(c)
	}
	p.background(func(ctx context.Context) {
		for _, l := range locks {
			if l.State == model.LockOrphaned {
				p.afterwards(ctx, l.ChangeID)
			}
		}
	})
	failpoint.Reach(failpoint.StartResumed)
	p.background(p.sweep)
	return nil
}

// resume goes on with one change where the last process left it.
func (p *Pipeline) resume(c *model.Change) {
	switch c.State {
	case model.Proposed:
		p.background(func(ctx context.Context) { p.prepare(ctx, c.ID) })
	case model.Planned: // previewed, but the decision was lost with the process
		p.background(func(ctx context.Context) { p.again(ctx, c.ID) })
	case model.Approved:
		p.background(func(ctx context.Context) { p.perform(ctx, c.ID) })
	default: // the writ may have been sent: never send it again, only ask
		p.background(func(ctx context.Context) { p.settle(ctx, c.ID) })
	}
}

// again weighs and decides a change that was previewed before a restart.
func (p *Pipeline) again(ctx context.Context, id string) {
	p.conclude(ctx, id, func() (*model.Change, error) {
		c, err := p.load(ctx, id)
		if err == nil && !p.sameActions(c) {
			err = fault.New(fault.Stale, "The definition of an action changed since the preview. Propose it again.").Because("action_changed")
		}
		if err != nil {
			return nil, err
		}
		return p.decide(ctx, p.assess(Previewed{c}))
	})
}

// Stop ends what runs in the background, now and later. What it interrupts goes
// on at the next Start.
func (p *Pipeline) Stop() {
	p.mu.Lock()
	if !p.stopped {
		p.stopped = true
		close(p.stop)
	}
	p.mu.Unlock()
	p.tasks.Wait()
}

// background runs f until it returns or the pipeline stops. After Stop it does
// nothing: the store says what is left to do.
func (p *Pipeline) background(f func(context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.tasks.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			select {
			case <-p.stop:
				cancel()
			case <-ctx.Done():
			}
		}()
		if err := guarded(func() error { f(ctx); return nil }); err != nil {
			p.Sys.Log.Error("a task broke off", "error", err, "cause", errors.Unwrap(err))
		}
	})
}

// sweep ends what ran out of time and lets the audit file keep up.
func (p *Pipeline) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := guarded(func() error { return p.endOverdue(ctx) }); err != nil {
			p.Sys.Log.Error("overdue changes were not ended", "error", err, "cause", errors.Unwrap(err))
		}
		if err := guarded(func() error { return p.Audit.CatchUp(ctx) }); err != nil {
			p.Sys.Log.Error("the audit file did not catch up", "error", err, "cause", errors.Unwrap(err))
		}
	}
}

func (p *Pipeline) endOverdue(ctx context.Context) error {
	waiting, err := p.inState(ctx, model.AwaitingApproval, model.Approved)
	if err != nil {
		return err
	}
	for _, c := range waiting {
		if !p.overdue(c, p.Sys.Now()) {
			continue
		}
		_, _ = p.change(ctx, c.ID, func(tx store.Tx, c *model.Change, now writ.Time) error {
			switch {
			case !p.overdue(c, now.Time):
				return nil
			case c.State == model.AwaitingApproval:
				return p.expire(tx, c, now, "waited_too_long")
			}
			return p.expire(tx, c, now, "approval_expired")
		})
	}
	return nil
}

// inState returns all changes in the states, whatever their number.
func (p *Pipeline) inState(ctx context.Context, states ...model.State) ([]*model.Change, error) {
	var all []*model.Change
	f := store.ChangeFilter{States: states, Limit: 500}
	for {
		var page []*model.Change
		err := p.Store.View(ctx, func(r store.Reader) (err error) {
			page, err = r.Changes(f)
			return err
		})
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		f.Before = page[len(page)-1].ID
	}
}

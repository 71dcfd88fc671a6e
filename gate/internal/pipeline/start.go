package pipeline

import (
	"context"
	"time"

	"writ"
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
	err := p.update(ctx, func(tx store.Tx, now writ.Time) error {
		return tx.Append(&model.Event{
			ID: p.Sys.NewID("evt"), Type: model.GateStarted, Timestamp: now, User: model.Writ,
			Detail: writ.Object{"policy_digest": string(p.Policy.Digest()), "catalog_digest": string(p.Catalog.Digest()), "epoch": p.Epoch},
		})
	})
	if err != nil {
		return err
	}
	if err := p.Audit.CatchUp(ctx); err != nil {
		return err
	}
	open, err := p.inState(ctx, model.Proposed, model.Planned, model.Approved, model.Claimed, model.Executing, model.Verifying)
	if err != nil {
		return err
	}
	for _, c := range open {
		p.resume(c)
	}
	held, err := p.inState(ctx, model.Failed, model.Unverified, model.RollbackFailed)
	if err != nil {
		return err
	}
	for _, c := range held {
		if tries, err := p.rollbacks(ctx, c.ID); err == nil && len(tries) == 0 {
			p.background(func(ctx context.Context) { p.afterwards(ctx, c.ID) })
		}
	}
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
	c, err := p.load(ctx, id)
	if err == nil {
		c, err = p.decide(ctx, p.assess(Previewed{c}))
	}
	if err != nil {
		p.giveUp(ctx, id, err)
		return
	}
	if c.State == model.Approved {
		p.perform(ctx, id)
	}
}

// Stop ends what runs in the background. What it interrupts goes on at the next Start.
func (p *Pipeline) Stop() {
	close(p.stop)
	p.tasks.Wait()
}

// background runs f until it returns or the pipeline stops.
func (p *Pipeline) background(f func(context.Context)) {
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
		f(ctx)
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
		if err := p.endOverdue(ctx); err != nil {
			p.Sys.Log.Error("overdue changes were not ended", "error", err)
		}
		if err := p.Audit.CatchUp(ctx); err != nil {
			p.Sys.Log.Error("the audit file did not catch up", "error", err)
		}
	}
}

func (p *Pipeline) endOverdue(ctx context.Context) error {
	waiting, err := p.inState(ctx, model.AwaitingApproval, model.Approved)
	if err != nil {
		return err
	}
	for _, c := range waiting {
		if !overdue(c, p.Sys.Now()) {
			continue
		}
		_, _ = p.change(ctx, c.ID, func(tx store.Tx, c *model.Change, now writ.Time) error {
			switch {
			case !overdue(c, now.Time):
				return nil
			case c.State == model.AwaitingApproval:
				return p.expire(tx, c, now, "waited_too_long")
			}
			return p.expire(tx, c, now, "approval_expired")
		})
	}
	return nil
}

func overdue(c *model.Change, now time.Time) bool {
	switch c.State {
	case model.AwaitingApproval:
		return now.After(c.WaitUntil.Time)
	case model.Approved:
		return now.After(c.ValidUntil.Time)
	}
	return false
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

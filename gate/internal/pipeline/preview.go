package pipeline

import (
	"context"
	"slices"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// observeFor is how long an observe writ is good.
const observeFor = time.Minute

// Previewed is a planned change with what it would do, read from the targets.
type Previewed struct{ change *model.Change }

// preview lets the executor read the state that each step would meet and
// compute what would change. The gate sees the result, never the state itself.
func (p *Pipeline) preview(ctx context.Context, planned Planned) (Previewed, error) {
	c := planned.change
	if !planned.forbidden {
		if err := p.observe(ctx, planned); err != nil {
			return Previewed{}, err
		}
	}
	err := p.update(ctx, func(tx store.Tx, now writ.Time) error {
		c.State, c.UpdatedAt = model.Planned, now
		if err := tx.Move(c, model.Proposed); err != nil {
			return err
		}
		return tx.Append(p.event(c, model.ChangePlanned, model.Writ, now))
	})
	return Previewed{c}, err
}

func (p *Pipeline) observe(ctx context.Context, planned Planned) error {
	c := planned.change
	envelope, err := p.envelope(c)
	if err != nil {
		return err
	}
	observations, err := p.look(ctx, planned.executor, envelope)
	if err != nil {
		return err
	}
	for i := range observations {
		o, s := &observations[i], &c.Steps[i]
		if o.Reason != "" {
			return fault.New(fault.Unavailable, "Step %s could not be previewed: %s", s.ID, o.Detail).Because(o.Reason)
		}
		s.Entity, s.Touches, s.Resolved = o.Entity, o.Touches, o.Resolved
		s.Fingerprint, s.Rollback = o.Fingerprint, o.Rollback
		if followsOwn(c.Steps[:i], s) {
			// A step before it changes the same thing, so the state that this
			// one will meet cannot be known yet.
			s.Fingerprint, o.Known = "", false
		}
	}
	c.Observations = observations
	return nil
}

// look sends an observe writ and returns the observations, one for each step.
func (p *Pipeline) look(ctx context.Context, executor string, envelope writ.Envelope) ([]writ.Observation, error) {
	now := p.Sys.Now()
	w := writ.Writ{
		Format: writ.FormatWrit, Purpose: writ.Observe, Run: p.Sys.NewID("run"), Executor: executor,
		Nonce: p.Sys.NewSecret(16), Epoch: p.Epoch, IssuedAt: writ.At(now), ExpiresAt: writ.At(now.Add(observeFor)),
		Fences: []writ.Fence{}, Approvals: []writ.Approval{},
		Envelope: envelope,
	}
	sealed, err := writ.Seal(writ.KindWrit, &w, p.Key)
	if err != nil {
		return nil, err
	}
	observations, err := p.Executor.Observe(ctx, sealed)
	if err != nil {
		return nil, err
	}
	if len(observations) != len(envelope.Steps) {
		return nil, fault.New(fault.Internal, "The executor observed %d steps of %d.", len(observations), len(envelope.Steps))
	}
	for i, o := range observations {
		if o.Step != envelope.Steps[i].ID || o.Executor != executor || o.Run != w.Run {
			return nil, fault.New(fault.Refused, "The executor answered for another step than it was asked about.").Because("other_step")
		}
	}
	return observations, nil
}

// followsOwn reports whether a step acts on what a writing step before it acts on.
func followsOwn(before []writ.Step, s *writ.Step) bool {
	for i := range before {
		if before[i].Class == writ.ReadOnly {
			continue
		}
		for _, entity := range before[i].Entities() {
			if slices.Contains(s.Entities(), entity) {
				return true
			}
		}
	}
	return false
}

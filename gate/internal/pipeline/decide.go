package pipeline

import (
	"context"
	"slices"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/policy"
	"writ/gate/internal/store"
)

// decide asks the policy and moves the change on: denied, waiting for people,
// or approved to run alone. From here on the envelope does not change.
func (p *Pipeline) decide(ctx context.Context, assessed Assessed) (*model.Change, error) {
	c := assessed.change
	err := p.Store.View(ctx, func(r store.Reader) (err error) {
		c.Denials, err = p.denials(r, c, p.Sys.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	d := p.verdict(assessed)
	c.Decision = &d
	if d.Effect != model.Deny {
		e, err := p.envelope(c)
		if err != nil {
			return nil, err
		}
		if err := e.Check(); err != nil {
			return nil, err
		}
		digest, err := e.Digest()
		if err != nil {
			return nil, err
		}
		c.Envelope, c.Digest = &e, digest
	}
	weighed, err := writ.DigestOf(c.Assessment)
	if err != nil {
		return nil, err
	}
	err = p.update(ctx, func(tx store.Tx, now writ.Time) error {
		c.UpdatedAt = now
		switch d.Effect {
		case model.Auto:
			c.State, c.ValidUntil = model.Approved, writ.At(now.Add(policy.DefaultValid))
			c.ValidTo = p.Sys.Moment().Add(policy.DefaultValid)
		case model.Approve:
			c.State, c.WaitUntil = model.AwaitingApproval, writ.At(now.Add(d.Wait))
			c.WaitTo = p.Sys.Moment().Add(d.Wait)
		default:
			c.State, c.EndedAt = model.Denied, now
			c.Trouble = &model.Trouble{Code: fault.Denied, Reason: p.denial(c), Text: d.Reasons[0]}
		}
		if err := tx.Move(c, model.Planned); err != nil {
			return err
		}
		e := p.event(c, model.ChangeDecided, model.Writ, now)
		e.Detail = writ.Object{
			"effect": string(d.Effect), "rules": anyList(d.Rules), "reasons": anyList(d.Reasons), "policy_digest": string(d.PolicyDigest),
			"class": string(c.Assessment.Class), "risk_level": string(c.Assessment.Level), "score": c.Assessment.Score,
			"assessment_digest": string(weighed),
			"denied_before":     int64(len(c.Denials)),
		}
		return tx.Append(e)
	})
	return c, err
}

// verdict is what policy says, made stricter by what no policy may loosen.
func (p *Pipeline) verdict(assessed Assessed) model.Decision {
	c := assessed.change
	facts := policy.Facts{
		Class: string(c.Assessment.Class), RiskLevel: string(c.Assessment.Level), Score: c.Assessment.Score,
		Environment: c.Environment, Requester: c.RequestedBy.Name, RequesterKind: string(c.RequestedBy.Kind),
		ChangeTicket: c.Request.ChangeTicket, PreviewKnown: true, Rollback: c.Request.RollbackOf != "",
	}
	var refusals []string
	target, strictest := "", -1
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Class.Rank() > strictest {
			target, strictest = s.Entity, s.Class.Rank()
		}
		facts.Actions = append(facts.Actions, s.Action)
		facts.Systems = append(facts.Systems, s.System)
		facts.Entities = append(facts.Entities, s.Entities()...)
		facts.Irreversible = facts.Irreversible || assessed.weighed.Steps[i].Irreversible != ""
		facts.PreviewKnown = facts.PreviewKnown && (assessed.weighed.Steps[i].Known || s.Class == writ.ReadOnly)
		if i < len(c.Observations) {
			refusals = append(refusals, c.Observations[i].Refusals...)
		}
	}
	d := p.Policy.Decide(facts, target)
	switch {
	case c.Assessment.Level == writ.Forbidden:
		// Also when a policy forgot it: some things are never run.
		d.Effect = model.Deny
		d.Reasons = append(d.Reasons, "This action is forbidden, whoever asks and whoever would approve.")
	case len(refusals) > 0:
		d.Effect = model.Deny
		d.Reasons = append(slices.Clone(refusals), d.Reasons...)
	case d.Effect == model.Auto && c.Assessment.Class != writ.ReadOnly:
		// The executor would refuse it: what writes has a human's approval.
		d.Effect, d.Count, d.Wait, d.Valid = model.Approve, 1, policy.DefaultWait, policy.DefaultValid
	}
	if why := p.deniedBefore(c); why != "" && d.Effect == model.Approve {
		d.Effect, d.Reasons = model.Deny, []string{why}
	}
	return d
}

// denial narrows why a change was denied.
func (p *Pipeline) denial(c *model.Change) string {
	for _, o := range c.Observations {
		if len(o.Refusals) > 0 {
			return "guard_refused"
		}
	}
	switch {
	case c.Assessment.Level == writ.Forbidden:
		return "forbidden_action"
	case slices.Equal(c.Decision.Reasons, []string{p.deniedBefore(c)}):
		return model.DeniedBefore
	}
	return "policy"
}

// envelope is all that is decided on. For an observe writ it is still without
// what the observation will find.
func (p *Pipeline) envelope(c *model.Change) (writ.Envelope, error) {
	e := writ.Envelope{
		ChangeID: c.ID, RequestDigest: c.RequestDigest, RequestedBy: c.RequestedBy, Environment: c.Environment,
		Class: writ.ReadOnly, RiskLevel: writ.Low, OnFailure: c.Request.OnFailure, RollbackOf: c.Request.RollbackOf,
		PolicyDigest: p.Policy.Digest(), Steps: c.Steps,
	}
	for i := range c.Steps {
		e.Class = e.Class.Stricter(c.Steps[i].Class)
	}
	if c.Assessment != nil {
		e.Class, e.RiskLevel = c.Assessment.Class, c.Assessment.Level
	}
	digest, err := writ.DigestOf(map[string]any{"observations": c.Observations})
	e.PreviewDigest = digest
	return e, err
}

func anyList(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

package pipeline

import (
	"context"
	"slices"
	"strings"

	"writ"
	"writ/fault"
	"writ/gate/internal/artifact"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// Agreement is what an approver agrees to: exactly the text that was shown.
type Agreement struct {
	EnvelopeDigest writ.Digest
	ShownDigest    writ.Digest
	Phrase         string // the typed phrase, where the decision asks for one
}

// Review returns the text an approver decides on.
func (p *Pipeline) Review(ctx context.Context, who model.Caller, id string) (artifact.Review, error) {
	c, err := p.Change(ctx, who, id)
	if err != nil {
		return artifact.Review{}, err
	}
	if c.Envelope == nil {
		return artifact.Review{}, fault.New(fault.Conflict, "%s is %s: there is nothing to decide.", c.ID, c.State).Because("nothing_to_decide")
	}
	return artifact.NewReview(c)
}

// approve records one person's approval; with the last one that is needed the
// change is approved.
func (p *Pipeline) approve(ctx context.Context, who model.Caller, id string, a Agreement) (*model.Change, error) {
	return p.judge(ctx, who, id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		if err := halted(tx, func(h *model.Halt) bool { return h.Covers(c) || h.CoversPrincipal(who.Name) }); err != nil {
			return err
		}
		review, err := artifact.NewReview(c)
		if err != nil {
			return err
		}
		switch {
		case slices.ContainsFunc(c.Approvals, func(given writ.Approval) bool { return strings.EqualFold(given.ApprovedBy.Name, who.Name) }):
			return fault.New(fault.Spent, "You approved %s before. It waits for %d more.", c.ID, c.Decision.Count-int64(len(c.Approvals))).Because("approved_before")
		case a.EnvelopeDigest != c.Digest || a.ShownDigest != review.ShownDigest:
			return fault.New(fault.Stale, "What you were shown is not what %s is now. Look at it again.", c.ID).Because("shown_differs")
		case c.Decision.Phrase != "" && strings.TrimSpace(a.Phrase) != c.Decision.Phrase:
			return fault.New(fault.Denied, "%s needs the typed phrase that its review names.", c.ID).Because("phrase_missing")
		}
		scope, err := writ.ScopeOf(c.Envelope)
		if err != nil {
			return err
		}
		approval := writ.Approval{
			ID: p.Sys.NewID("appr"), ApprovedBy: who.Principal, ApprovedAt: now, ExpiresAt: writ.At(now.Add(c.Decision.Valid)),
			EnvelopeDigest: c.Digest, ShownDigest: review.ShownDigest, RiskLevel: c.Envelope.RiskLevel, Scope: scope,
		}
		c.Approvals = append(c.Approvals, approval)
		c.UpdatedAt, c.ValidUntil = now, c.Approvals[0].ExpiresAt
		if len(c.Approvals) == 1 {
			c.ValidTo = p.Sys.Moment().Add(c.Decision.Valid)
		}
		if int64(len(c.Approvals)) < c.Decision.Count {
			err = tx.Amend(c)
		} else {
			c.State = model.Approved
			err = tx.Move(c, model.AwaitingApproval)
		}
		if err != nil {
			return err
		}
		e := p.event(c, model.ChangeApproved, who.User(), now)
		e.ApprovalID = approval.ID
		e.Detail = writ.Object{
			"shown_digest": string(approval.ShownDigest), "expires_at": approval.ExpiresAt.String(),
			"approvals": int64(len(c.Approvals)), "needed": c.Decision.Count,
		}
		return tx.Append(e)
	})
}

// Reject records a human's no. It is final.
func (p *Pipeline) Reject(ctx context.Context, who model.Caller, id string, reason model.Prose) (*model.Change, error) {
	if len(reason) == 0 || len(reason) > maxProse {
		return nil, fault.New(fault.Invalid, "A rejection says why, in up to %d bytes.", maxProse)
	}
	return p.judge(ctx, who, id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		c.State, c.UpdatedAt, c.EndedAt = model.Rejected, now, now
		c.Rejection = &model.Rejection{By: who.Principal, At: now, Reason: reason}
		c.Trouble = &model.Trouble{Code: fault.Denied, Reason: "rejected", Text: "A human said no."}
		if err := tx.Move(c, model.AwaitingApproval); err != nil {
			return err
		}
		e := p.event(c, model.ChangeRejected, who.User(), now)
		e.Detail = writ.Object{"reason": told(reason)}
		if err := tx.Append(e); err != nil {
			return err
		}
		return p.remind(tx, c, now)
	})
}

// Lift lets what was rejected be asked again before the no is forgotten. The
// change that was rejected stays so.
func (p *Pipeline) Lift(ctx context.Context, who model.Caller, id string) (*model.Change, error) {
	if who.Kind != writ.Human || !who.Has(model.Approver) {
		return nil, fault.New(fault.Denied, "%s may not decide: only a human with the role approver may.", who.User()).Because("not_an_approver")
	}
	return p.change(ctx, id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		_, remembered := model.DenialOf(c)
		switch {
		case strings.EqualFold(c.RequestedBy.Name, who.Name):
			return fault.New(fault.Denied, "You proposed %s yourself; somebody else decides.", c.ID).Because("self_approval")
		case c.State != model.Rejected || !remembered:
			return fault.New(fault.Conflict, "%s is %s and no rejection that is remembered: there is nothing to lift.", c.ID, c.State).Because("nothing_to_lift")
		}
		c.Rejection.LiftedBy, c.UpdatedAt = model.User(who.Principal), now
		if err := tx.Amend(c); err != nil {
			return err
		}
		if err := tx.Append(p.event(c, model.ChangeLifted, who.User(), now)); err != nil {
			return err
		}
		return p.remind(tx, c, now)
	})
}

// judge lets an approver decide on a change that waits for a decision.
func (p *Pipeline) judge(ctx context.Context, who model.Caller, id string, decide func(store.Tx, *model.Change, writ.Time) error) (*model.Change, error) {
	if who.Kind != writ.Human || !who.Has(model.Approver) {
		return nil, fault.New(fault.Denied, "%s may not decide: only a human with the role approver may.", who.User()).Because("not_an_approver")
	}
	return p.change(ctx, id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		switch {
		case strings.EqualFold(c.RequestedBy.Name, who.Name):
			return fault.New(fault.Denied, "You proposed %s yourself; somebody else decides.", c.ID).Because("self_approval")
		case c.State != model.AwaitingApproval:
			return notAwaiting(c)
		case p.overdue(c, now.Time):
			return p.expire(tx, c, now, "waited_too_long")
		}
		return decide(tx, c, now)
	})
}

// notAwaiting says why a change takes no decision any more.
func notAwaiting(c *model.Change) error {
	switch c.State {
	case model.Proposed, model.Planned:
		return fault.New(fault.Conflict, "%s is still being planned. Try again in a moment.", c.ID).Because("not_planned")
	case model.Expired:
		return expired(c)
	}
	return fault.New(fault.Spent, "%s is %s already%s: it takes no further decision.", c.ID, c.State, decided(c)).Because("decided_before")
}

// decided says who decided last, and when; "" if nobody did.
func decided(c *model.Change) string {
	switch n := len(c.Approvals); {
	case c.Rejection != nil:
		return ", " + model.User(c.Rejection.By) + " rejected it at " + c.Rejection.At.String()
	case n > 0:
		return ", " + model.User(c.Approvals[n-1].ApprovedBy) + " approved it at " + c.Approvals[n-1].ApprovedAt.String()
	}
	return ""
}

// Cancel withdraws a change that is not being carried out yet.
func (p *Pipeline) Cancel(ctx context.Context, who model.Caller, id string) (*model.Change, error) {
	if _, err := p.own(ctx, who, id); err != nil {
		return nil, err
	}
	return p.change(ctx, id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		from := c.State
		if !from.May(model.Cancelled) {
			return fault.New(fault.Conflict, "%s is %s: it is too late to cancel it.", c.ID, c.State).Because("too_late")
		}
		c.State, c.UpdatedAt, c.EndedAt, c.Trouble = model.Cancelled, now, now, nil
		if err := tx.Move(c, from); err != nil {
			return err
		}
		return tx.Append(p.event(c, model.ChangeCancelled, who.User(), now))
	})
}

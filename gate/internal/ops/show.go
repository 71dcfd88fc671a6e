package ops

import (
	"fmt"
	"time"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/gate/internal/model"
)

// requestOf is a proposal in the gate's own words.
func requestOf(p api.Proposal) model.Request {
	r := model.Request{
		OnFailure: p.OnFailure, Environment: p.Environment, RequestedAction: model.Prose(p.RequestedAction),
		Purpose: model.Prose(p.Purpose), RollbackPlan: model.Prose(p.RollbackPlan), ChangeTicket: p.ChangeTicket, DeclaredRisk: p.DeclaredRisk,
	}
	for _, s := range p.Steps {
		r.Steps = append(r.Steps, model.RequestStep{ID: s.ID, Action: s.ActionType, System: s.TargetSystem, Params: s.Params, Needs: s.Needs})
	}
	return r
}

func proposalOf(r model.Request) api.Proposal {
	p := api.Proposal{
		OnFailure: r.OnFailure, Environment: r.Environment, RequestedAction: string(r.RequestedAction),
		Purpose: string(r.Purpose), RollbackPlan: string(r.RollbackPlan), ChangeTicket: r.ChangeTicket, DeclaredRisk: r.DeclaredRisk,
	}
	for _, s := range r.Steps {
		p.Steps = append(p.Steps, api.ProposedStep{ID: s.ID, ActionType: s.Action, TargetSystem: s.System, Params: s.Params, Needs: s.Needs})
	}
	return p
}

// changeOf is a change in the words of the API.
func changeOf(c *model.Change) api.Change {
	out := api.Change{
		ID: c.ID, State: string(c.State), Ended: c.State.Ended(), Code: codeOf(c), Next: next(c),
		RequestedBy: c.RequestedBy, RequestedAt: c.RequestedAt, UpdatedAt: c.UpdatedAt,
		Request: proposalOf(c.Request), RollbackOf: c.Request.RollbackOf,
		Plan: []api.Step{}, EnvelopeDigest: c.Digest, WaitUntil: c.WaitUntil,
		Approvals: []api.Approval{}, ExpiresAt: c.ValidUntil,
		RunID: c.RunID, Receipts: []writ.Receipt{}, Denials: []api.Denial{}, StartedAt: c.StartedAt, EndedAt: c.EndedAt,
	}
	if s := c.Session; s != nil {
		out.Session = &api.Session{Client: string(s.Client), Version: string(s.Version), Chain: []string{}}
		for _, link := range s.Chain {
			out.Session.Chain = append(out.Session.Chain, string(link))
		}
	}
	for i := range c.Steps {
		out.Plan = append(out.Plan, stepOf(c, &c.Steps[i]))
	}
	if a := c.Assessment; a != nil {
		out.Assessment = &api.Assessment{Class: a.Class, RiskLevel: a.Level, Score: a.Score, Reasons: a.Reasons}
	}
	if d := c.Decision; d != nil {
		out.Decision = &api.Decision{
			Effect: string(d.Effect), Count: d.Count, Phrase: d.Phrase,
			WaitSeconds: int64(d.Wait / time.Second), ValidSeconds: int64(d.Valid / time.Second),
			Rules: d.Rules, Reasons: d.Reasons, PolicyDigest: d.PolicyDigest,
		}
	}
	for _, a := range c.Approvals {
		out.Approvals = append(out.Approvals, api.Approval{
			ApprovalID: a.ID, ApprovedBy: a.ApprovedBy.Name, ApprovedAt: a.ApprovedAt, ExpiresAt: a.ExpiresAt, RiskLevel: a.RiskLevel,
		})
	}
	if r := c.Rejection; r != nil {
		out.Rejection = &api.Rejected{RejectedBy: r.By.Name, RejectedAt: r.At, Reason: string(r.Reason), LiftedBy: r.LiftedBy}
	}
	for _, d := range c.Denials { // what others asked for is for those to read who decide
		if d.RequestedBy == c.RequestedBy.Name {
			out.Denials = append(out.Denials, api.Denial{ChangeID: d.ChangeID, DeniedBy: d.By, DeniedAt: d.At, Reason: string(d.Reason)})
		}
	}
	for _, r := range c.Receipts {
		out.Receipts = append(out.Receipts, r.Receipt)
	}
	if r := c.Reconciliation; r != nil {
		out.Reconciled = &api.Reconciled{
			ReconciledBy: r.By.Name, ReconciledAt: r.At, Resolution: string(r.Resolution), Verdict: r.Verdict, Note: string(r.Note),
		}
	}
	if t := c.Trouble; t != nil {
		out.Trouble = &api.Trouble{Code: t.Code, Reason: t.Reason, Text: t.Text}
	}
	return out
}

func stepOf(c *model.Change, s *writ.Step) api.Step {
	out := api.Step{
		ID: s.ID, ActionType: s.Action, TargetSystem: s.System, Entity: s.Entity, Touches: s.Touches, Needs: s.Needs,
		Class: s.Class, Params: s.Params, Resolved: s.Resolved, BackupRequired: s.BackupRequired, Rollback: s.Rollback,
	}
	for _, o := range c.Observations {
		if o.Step == s.ID {
			out.Preview = &api.Preview{ObservedAt: o.ObservedAt, Known: o.Known, Fields: o.Fields, Refusals: o.Refusals, Detail: o.Detail}
		}
	}
	return out
}

// codeOf is what came of a change, as a code; "" while it goes on by itself.
func codeOf(c *model.Change) fault.Code {
	if c.State.Ended() || c.State == model.AwaitingApproval {
		return c.Code()
	}
	return ""
}

// next says in one sentence what to do now.
func next(c *model.Change) string {
	id := c.ID
	if c.UndoneBy != "" {
		return "Nothing is left to do: " + c.UndoneBy + " undid it."
	}
	switch c.State {
	case model.Proposed, model.Planned:
		return "It is being planned. See what is decided: writ wait " + id
	case model.AwaitingApproval:
		who := "Somebody"
		if c.Decision != nil && c.Decision.Count > 1 {
			who = fmt.Sprintf("%d people", c.Decision.Count)
		}
		return fmt.Sprintf("%s other than %s must approve it before %s: writ approve %s", who, c.RequestedBy.Name, clock(c.WaitUntil), id)
	case model.Approved:
		return fmt.Sprintf("It begins at once, unless something is in the way. When that is mended, before %s: writ execute %s", clock(c.ValidUntil), id)
	case model.Claimed, model.Executing, model.Verifying, model.RollingBack:
		return "It is being carried out. See what comes of it: writ wait " + id
	case model.Done:
		for _, r := range c.Newest() {
			if r.Changed && r.Rollback != nil {
				return "To undo it: writ rollback " + id
			}
		}
		return "Nothing is left to do."
	case model.Denied:
		if c.Trouble != nil && c.Trouble.Reason == model.DeniedBefore {
			return "Talk to whoever said no. An approver may let it be asked again: writ lift " + c.Rejections()[0].ChangeID
		}
		return "Ask for something else, or see what is allowed: writ policy"
	case model.Rejected:
		return "Ask again for what the approver would agree to."
	case model.Expired, model.Cancelled:
		return "Nothing was done. If it is still wanted, propose it again."
	case model.RolledBack:
		return "What was done is undone. Mend what failed, then propose it again."
	case model.Unknown:
		return "It may or may not have happened, and is never tried again by itself. Its locks stay until somebody has looked: writ reconcile " + id
	case model.RollbackFailed:
		return "It was changed, and undoing it failed. Its locks stay until somebody has looked: writ reconcile " + id
	}
	if r := c.Reconciliation; r != nil && r.Resolution != model.RollBack {
		return "Nothing is left to do: " + r.By.Name + " looked at the target and took it as it is."
	}
	if c.Held() {
		return "The target is not as it was, and its locks stay. To undo what was done: writ rollback " + id + "  To look at it and decide: writ reconcile " + id
	}
	return "The target is as before. Mend what failed, then propose it again."
}

// clock shows a time in a sentence.
func clock(t writ.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

package admit

import (
	"slices"
	"strings"
	"time"

	"writ"
	"writ/fault"
)

// approved checks every approval of the writ, and that there is one if anything
// is written.
func (r *Rules) approved(w *writ.Writ, writes bool, now time.Time) error {
	e := &w.Envelope
	if e.RiskLevel == writ.Forbidden {
		return fault.New(fault.Denied, "The risk of the change is forbidden, whoever approves.").Because("forbidden_risk")
	}
	if writes && len(w.Approvals) == 0 {
		return fault.New(fault.ApprovalMissing, "The change writes, and nobody approved it.").Because("approval_missing")
	}
	want, err := writ.ScopeOf(e)
	if err != nil {
		return err
	}
	digest, err := e.Digest()
	if err != nil {
		return err
	}
	for i := range w.Approvals {
		a := &w.Approvals[i]
		if err := r.approver(a, e, w.Approvals[:i]); err != nil {
			return err
		}
		if now.Before(a.ApprovedAt.Time) || !now.Before(a.ExpiresAt.Time) {
			return fault.New(fault.Expired, "The approval %s was valid from %s until %s. Ask for a new one.", a.ID, a.ApprovedAt, a.ExpiresAt).Because("approval_expired")
		}
		if err := covers(a.Scope, want); err != nil {
			return err
		}
		if a.RiskLevel.Rank() > writ.High.Rank() || e.RiskLevel.Rank() > a.RiskLevel.Rank() {
			return refuse("risk_exceeds_approval", "The change has the risk %s, approved was %s.", e.RiskLevel, a.RiskLevel)
		}
		if a.EnvelopeDigest != digest {
			return refuse("digest_mismatch", "The approval %s is for something else than this change.", a.ID)
		}
	}
	return nil
}

// approver checks who approved.
func (r *Rules) approver(a *writ.Approval, e *writ.Envelope, before []writ.Approval) error {
	if a.ApprovedBy.Kind != writ.Human || !slices.Contains(r.Approvers, a.ApprovedBy.Name) {
		return refuse("unknown_approver", "The executor knows no human approver %q.", a.ApprovedBy.Name)
	}
	if strings.EqualFold(a.ApprovedBy.Name, e.RequestedBy.Name) {
		return refuse("self_approval", "%q asked for the change and cannot approve it.", a.ApprovedBy.Name)
	}
	for _, b := range before {
		if a.ID == b.ID || strings.EqualFold(a.ApprovedBy.Name, b.ApprovedBy.Name) {
			return refuse("duplicate_approval", "An approval or an approver stands twice in the writ.")
		}
	}
	if a.ID == "" {
		return refuse("duplicate_approval", "An approval has no id.")
	}
	return nil
}

// covers says what an approval's scope has otherwise than the change.
func covers(scope, want []writ.Scope) error {
	if len(scope) != len(want) {
		return refuse("action_mismatch", "The approval is for %d steps, the change has %d.", len(scope), len(want))
	}
	for i, s := range scope {
		switch w := want[i]; {
		case s.Step != w.Step || s.ActionType != w.ActionType:
			return refuse("action_mismatch", "The approval of step %s is for the action %s, not for %s.", w.Step, s.ActionType, w.ActionType)
		case s.TargetSystem != w.TargetSystem || s.Entity != w.Entity:
			return refuse("target_mismatch", "The approval of step %s is for %s on %s, not for %s on %s.", w.Step, s.Entity, s.TargetSystem, w.Entity, w.TargetSystem)
		case s.InputHash != w.InputHash:
			return refuse("params_mismatch", "The approval of step %s is for other params.", w.Step)
		}
	}
	return nil
}

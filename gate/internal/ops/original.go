package ops

import (
	"context"
	"slices"
	"time"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/store"
)

// Original is the operations under the paths of the system that came before. They
// are made of those in All, and are no tools: an agent that knows tools has
// better ones.
func Original() []Op {
	table := map[string]Op{
		api.ControlledPolicy:  define(controlledPolicy),
		api.ControlledExecute: define(controlledExecute, model.Requester),
		api.StatePolicy:       define(statePolicy),
		api.StateDriftCheck:   define(stateDriftCheck),
	}
	var all []Op
	for _, o := range api.OriginalOperations() {
		op := table[o.Name]
		op.Operation, op.Original = o, true
		all = append(all, op)
	}
	return all
}

func controlledPolicy(_ context.Context, g *Gate, _ model.Caller, _ *none) (api.ControlledRules, error) {
	out := api.ControlledRules{
		PolicyDigest: g.Pipeline.Policy.Digest(),
		Fields:       []string{"approval_id", "target_system", "action_type", "requested_action", "params", "backup_required"},
		RiskLevels:   writ.Levels(), Actions: []api.ControlledAction{}, ForbiddenAction: []string{},
	}
	for _, name := range g.Pipeline.Catalog.Names() {
		a, ok := g.Pipeline.Catalog.Action(name)
		switch {
		case !ok:
		case a.Forbidden != "":
			out.ForbiddenAction = append(out.ForbiddenAction, a.Name)
		default:
			out.Actions = append(out.Actions, api.ControlledAction{
				ActionType: a.Name, TargetSystem: a.System, Class: a.Class, BackupRequired: a.Class != writ.ReadOnly,
			})
		}
	}
	return out, nil
}

const noDrift = "Targets are looked at when a change is planned and again before it is carried out, and the change ends as stale if one moved meanwhile. " +
	"Nothing compares them afterwards. Propose a reading action to see one as it is."

func statePolicy(context.Context, *Gate, model.Caller, *none) (api.StateRules, error) {
	return api.StateRules{ReadOnly: true, Text: noDrift}, nil
}

func stateDriftCheck(context.Context, *Gate, model.Caller, *none) (api.Drift, error) {
	return api.Drift{Text: noDrift}, nil
}

type controlledIn struct{ Body api.ControlledCall }

// patience is how long the caller of execute is kept waiting for the result.
const patience = 20 * time.Second

// controlledExecute finds the change that was approved, holds it to what is asked
// for now and answers with what came of it, once. Without an approval it proposes.
func controlledExecute(ctx context.Context, g *Gate, who model.Caller, in *controlledIn) (api.ControlledResult, error) {
	call := &in.Body
	a, ok := g.Pipeline.Catalog.Action(call.ActionType)
	if ok && a.Class != writ.ReadOnly && !call.BackupRequired {
		return api.ControlledResult{}, fault.New(fault.Invalid, "backup_required must be true: %s writes.", a.Name).Because("backup_required")
	}
	c, err := g.controlled(ctx, who, call)
	if err != nil {
		return api.ControlledResult{}, err
	}
	if c.State == model.Approved && c.Trouble != nil {
		if c, err = g.Pipeline.Execute(ctx, who, c.ID); err != nil {
			return api.ControlledResult{}, err
		}
	}
	for began := g.Pipeline.Sys.Now(); begun(c) && g.Pipeline.Sys.Now().Sub(began) < patience; {
		if c, err = g.Pipeline.WaitFrom(ctx, c, patience); err != nil {
			return api.ControlledResult{}, err
		}
	}
	switch c.State {
	case model.AwaitingApproval:
		return api.ControlledResult{}, fault.New(fault.ApprovalMissing, "Somebody other than %s must approve %s before %s: writ approve %s. Then ask again with %s as approval_id.",
			c.RequestedBy.Name, c.ID, clock(c.WaitUntil), c.ID, c.ID).Because("approval_missing")
	case model.Denied, model.Rejected, model.Expired, model.Cancelled:
		return api.ControlledResult{}, fault.New(c.Code(), "%s is %s; nothing was done. %s", c.ID, c.State, next(c)).Because(string(c.State))
	}
	if c.State.Ended() {
		if err := g.Pipeline.Give(ctx, who, c.ID, approvalOf(c).ID); err != nil {
			return api.ControlledResult{}, err
		}
	}
	return controlledResult(c), nil
}

// begun reports whether a change goes on by itself.
func begun(c *model.Change) bool {
	return !c.State.Ended() && c.State != model.AwaitingApproval && (c.State != model.Approved || c.Trouble == nil)
}

// controlled is the change that a call is about.
func (g *Gate) controlled(ctx context.Context, who model.Caller, call *api.ControlledCall) (*model.Change, error) {
	if call.ApprovalID == "" {
		if foreign(who, call) {
			return nil, mismatch("requested_by is somebody else.")
		}
		return g.propose(ctx, who, api.Proposal{
			Steps:           []api.ProposedStep{{ActionType: call.ActionType, TargetSystem: call.TargetSystem, Params: call.Params}},
			RequestedAction: call.RequestedAction, RollbackPlan: call.RollbackPlan, ChangeTicket: call.ChangeTicket, DeclaredRisk: call.RiskLevel,
		}, "")
	}
	params := call.Params
	if params == nil {
		params = writ.Object{}
	}
	list, err := g.Pipeline.Changes(ctx, who, store.ChangeFilter{Requester: who.Name, Limit: countTo})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(c *model.Change) bool {
		return c.ID == call.ApprovalID || slices.ContainsFunc(c.Approvals, func(a writ.Approval) bool { return a.ID == call.ApprovalID })
	})
	if i < 0 || list[i].RequestedBy != who.Principal {
		why := fault.New(fault.NotFound, "There is no such approval of a change of %s.", who.User()).Because("approval_unknown")
		return nil, g.misused(ctx, who, pipeline.Misuse{Differs: "approval_id", Params: params}, why)
	}
	m := pipeline.Misuse{Change: list[i], Params: params}
	if call.ApprovalID != list[i].ID {
		m.Approval = call.ApprovalID
	}
	text := ""
	if m.Differs, text, err = differs(list[i], who, call, params); err != nil || text == "" {
		return list[i], err
	}
	return nil, g.misused(ctx, who, m, mismatch(text))
}

// misused records a call with an approval that is not of what it asks for, and
// returns why it is refused. Whoever guesses is slowed down like one who proposes.
func (g *Gate) misused(ctx context.Context, who model.Caller, m pipeline.Misuse, why error) error {
	if err := g.Limits.Proposal(who); err != nil {
		return err
	}
	if err := g.Pipeline.Misused(ctx, who, m, why); err != nil {
		return err
	}
	return why
}

// foreign reports whether a call is said to be somebody else's.
func foreign(who model.Caller, call *api.ControlledCall) bool {
	return call.RequestedBy != "" && call.RequestedBy != who.Name
}

// differs holds a call to the change that was approved. It returns the first
// member that is another, and a sentence; "" if none is.
func differs(c *model.Change, who model.Caller, call *api.ControlledCall, params writ.Object) (member, text string, err error) {
	if len(c.Steps) != 1 {
		return "steps", "it is of several steps.", nil
	}
	s := &c.Steps[0]
	was, err := writ.DigestOf(c.Request.Steps[0].Params)
	if err != nil {
		return "", "", err
	}
	is, err := writ.DigestOf(params)
	if err != nil {
		return "", "", err
	}
	switch {
	case foreign(who, call):
		return "requested_by", "requested_by is somebody else.", nil
	case s.System != call.TargetSystem:
		return "target_system", "it is of another target_system.", nil
	case s.Action != call.ActionType:
		return "action_type", "it is of another action_type.", nil
	case string(c.Request.RequestedAction) != call.RequestedAction:
		return "requested_action", "it is of another requested_action.", nil
	case was != is:
		return "params", "it is of other params.", nil
	case call.ChangeTicket != "" && call.ChangeTicket != c.Request.ChangeTicket:
		return "change_ticket", "it is of another change_ticket.", nil
	case call.RiskLevel != "" && c.Assessment != nil && call.RiskLevel.Rank() > c.Assessment.Level.Rank():
		return "risk_level", "risk_level is above the approved one.", nil
	case call.ApprovedBy != "" && !slices.ContainsFunc(c.Approvals, func(a writ.Approval) bool { return a.ApprovedBy.Name == call.ApprovedBy }):
		return "approved_by", "approved_by did not approve it.", nil
	}
	return "", "", nil
}

func mismatch(what string) error {
	return fault.New(fault.Invalid, "The approval is not of what is asked for: %s Nothing was done.", what).Because("approval_mismatch")
}

// approvalOf is the first approval of a change, empty if policy let it run alone.
func approvalOf(c *model.Change) writ.Approval {
	if len(c.Approvals) == 0 {
		return writ.Approval{}
	}
	return c.Approvals[0]
}

func controlledResult(c *model.Change) api.ControlledResult {
	approval := approvalOf(c)
	out := api.ControlledResult{
		ChangeID: c.ID, RunID: c.RunID, ApprovalID: approval.ID, RequestedBy: c.RequestedBy.Name, ApprovedBy: approval.ApprovedBy.Name,
		ChangeTicket: c.Request.ChangeTicket, RequestedAction: string(c.Request.RequestedAction), RollbackPlan: string(c.Request.RollbackPlan),
		ExecutionMode: "scoped_write", ExecutionStatus: string(c.State), ExpiresAt: c.ValidUntil, Timestamp: c.UpdatedAt,
	}
	if a := c.Assessment; a != nil {
		out.RiskLevel = a.Level
	}
	for _, s := range c.Steps {
		out.TargetSystem, out.ActionType, out.BackupRequired = s.System, s.Action, s.BackupRequired
		if s.Class == writ.ReadOnly {
			out.ExecutionMode = "read_only"
		}
	}
	for _, r := range c.Newest() {
		out.BackupReference, out.BackupStatus, out.InputHash = r.BackupReference, r.BackupStatus, r.InputHash
		out.Changed, out.RollbackReference = r.Changed, r.RollbackReference
		if len(r.Checks) > 0 {
			out.VerificationResult = "passed"
		}
		if slices.ContainsFunc(r.Checks, func(k writ.Check) bool { return !k.Passed }) {
			out.VerificationResult = "failed"
		}
	}
	return out
}

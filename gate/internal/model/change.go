package model

import (
	"slices"
	"time"

	"writ"
	"writ/fault"
	"writ/sys"
)

// Prose is text that a requester or an approver wrote. It is shown, boxed and
// attributed, and decides nothing: no policy, no executor reads it.
type Prose string

// Request is what a requester hands over.
type Request struct {
	Steps           []RequestStep  `json:"steps"`
	OnFailure       writ.OnFailure `json:"on_failure"`
	Environment     string         `json:"environment"` // must be that of every system; "" takes theirs
	RequestedAction Prose          `json:"requested_action"`
	Purpose         Prose          `json:"purpose"`
	RollbackPlan    Prose          `json:"rollback_plan"`
	ChangeTicket    string         `json:"change_ticket"`
	DeclaredRisk    writ.Level     `json:"declared_risk"` // can only make the assessment stricter; "" declares nothing
	RollbackOf      string         `json:"rollback_of"`   // set by the gate alone
}

// RequestStep is one step as requested.
type RequestStep struct {
	ID     string      `json:"id"`
	Action string      `json:"action"`
	System string      `json:"system"` // "" is the system named like the action's kind
	Params writ.Object `json:"params"`
	Needs  []string    `json:"needs"`
}

// Change is the tracked thing that a request becomes. The later stages of the
// pipeline fill its later fields; none of them is changed once it is set.
type Change struct {
	ID          string         `json:"id"`
	State       State          `json:"state"`
	Version     int64          `json:"version"` // counts the moves; the store's compare-and-swap
	RequestedBy writ.Principal `json:"requested_by"`
	RequestedAt writ.Time      `json:"requested_at"`
	UpdatedAt   writ.Time      `json:"updated_at"`
	ClientKey   string         `json:"client_key"` // with the requester's name, the key of idempotency; "" is none
	Request     Request        `json:"request"`
	// RequestDigest is the digest of Request, sentences included.
	RequestDigest writ.Digest `json:"request_digest"`
	// Session is what the requester's program says of itself. It is no part of what
	// is asked for.
	Session *Session `json:"session,omitempty"`

	Environment  string             `json:"environment"`  // of every system of the plan
	Summaries    map[string]string  `json:"summaries"`    // what each action does, as the catalog said when it was planned
	Steps        []writ.Step        `json:"steps"`        // the plan, in the order in which it will run
	Observations []writ.Observation `json:"observations"` // the preview, one a step
	Assessment   *Assessment        `json:"assessment"`
	Decision     *Decision          `json:"decision"`
	Envelope     *writ.Envelope     `json:"envelope"`
	Digest       writ.Digest        `json:"envelope_digest"`
	WaitUntil    writ.Time          `json:"wait_until"` // an unanswered request ends
	Approvals    []writ.Approval    `json:"approvals"`
	ValidUntil   writ.Time          `json:"expires_at"` // an unused approval ends
	WaitTo       sys.Moment         `json:"wait_to"`    // the same two ends by the clock that nobody sets
	ValidTo      sys.Moment         `json:"valid_to"`
	Rejection    *Rejection         `json:"rejection"`
	Denials      []Denial           `json:"denials,omitempty"` // earlier noes to the same effect, newest first

	RunID     string    `json:"run_id"`
	Writ      []byte    `json:"writ"`     // as it was sealed
	Receipts  []Receipt `json:"receipts"` // by sequence
	StartedAt writ.Time `json:"started_at"`
	HaltedAt  writ.Time `json:"halted_at,omitzero"` // a person stopped it, and the executor knows
	EndedAt   writ.Time `json:"ended_at"`
	Deadline  *Deadline `json:"deadline,omitempty"`
	Trouble   *Trouble  `json:"trouble"` // why it did not go on; null if nothing went wrong

	Reconciliation *Reconciliation `json:"reconciliation,omitempty"` // the last one
	Recovery       *Recovery       `json:"recovery,omitempty"`
	UndoneBy       string          `json:"undone_by,omitempty"` // the change that undid all of it
}

// Receipt is a receipt with the bytes that the executor sealed.
type Receipt struct {
	writ.Receipt
	Sealed []byte `json:"sealed"`
}

// Deadline is when the executor must have accounted for a run. The gate keeps it,
// so that a run ends also if its executor never comes back.
type Deadline struct {
	Within time.Duration `json:"within_ns"` // of the claim
	Until  writ.Time     `json:"until"`     // by the wall clock
	To     sys.Moment    `json:"to"`        // by the clock that nobody sets, which counts where there is one
	// PassedAt is when it passed; the change is unknown since. From then on
	// receipts are evidence for whoever reconciles it, until AnsweredAt, when the
	// executor had accounted for all of it, or did not know the run.
	PassedAt   writ.Time `json:"passed_at"`
	AnsweredAt writ.Time `json:"answered_at"`
	Accounted  bool      `json:"accounted"`
}

// Trouble says why a change did not go on.
type Trouble struct {
	Code   fault.Code `json:"code"`
	Reason string     `json:"reason"`
	Text   string     `json:"text"`
}

// TroubleOf returns what an error tells people and programs.
func TroubleOf(err error) *Trouble {
	return &Trouble{Code: fault.CodeOf(err), Reason: fault.ReasonOf(err), Text: fault.TextOf(err)}
}

// Rejection is a human's no.
type Rejection struct {
	By     writ.Principal `json:"rejected_by"`
	At     writ.Time      `json:"rejected_at"`
	Reason Prose          `json:"reason"`
	// LiftedBy is who let it be asked again before the no is forgotten.
	LiftedBy string `json:"lifted_by,omitempty"`
}

// Assessment weighs a change. The same input gives the same assessment.
type Assessment struct {
	Class   writ.Class `json:"class"`
	Level   writ.Level `json:"risk_level"`
	Score   int64      `json:"score"`   // 0 to 100
	Reasons []string   `json:"reasons"` // in the order in which they counted
}

// Effect is what policy says of a change.
type Effect string

// The effects, from the mildest to the strictest.
const (
	Auto    Effect = "auto"
	Approve Effect = "approve"
	Deny    Effect = "deny"
)

// Decision is the verdict of policy, with the rules it came from.
type Decision struct {
	Effect       Effect        `json:"effect"`
	Count        int64         `json:"count"`         // how many distinct people must approve
	Wait         time.Duration `json:"wait_ns"`       // how long a request waits for them
	Valid        time.Duration `json:"valid_ns"`      // how long an approval is good
	Phrase       string        `json:"phrase"`        // to be typed by the approver; "" is none
	Rules        []string      `json:"rules"`         // ids of the rules that matched
	Reasons      []string      `json:"reasons"`       // why it is denied
	PolicyDigest writ.Digest   `json:"policy_digest"` // of the policy that was asked
}

// Newest returns the newest receipt of each step, in the order of the steps. What
// people made of an outcome that was in doubt stands in it.
func (c *Change) Newest() []Receipt {
	byStep := map[string]Receipt{}
	for _, r := range c.Receipts {
		byStep[r.Step] = r
	}
	if c.Reconciliation != nil {
		c.Reconciliation.settle(c, byStep)
	}
	var newest []Receipt
	for _, s := range c.Steps {
		if r, ok := byStep[s.ID]; ok {
			newest = append(newest, r)
		}
	}
	return newest
}

// Applied reports whether the target of any step is not as it was before:
// something was done, or may have been, that was not undone.
func (c *Change) Applied() bool {
	unchanged := map[string]bool{}
	for _, r := range c.Newest() {
		unchanged[r.Step] = r.Outcome == writ.Done && !r.Changed
	}
	return slices.ContainsFunc(c.left(), func(s *writ.Step) bool { return !unchanged[s.ID] })
}

// left returns the steps that are not known to have left their target alone, or
// to have been undone. If what came of the change is unknown, a step without a
// receipt is one of them.
func (c *Change) left() []*writ.Step {
	outcomes := map[string]writ.Outcome{}
	for _, r := range c.Newest() {
		outcomes[r.Step] = r.Outcome
	}
	var left []*writ.Step
	for i := range c.Steps {
		outcome, told := outcomes[c.Steps[i].ID]
		switch {
		case c.silenced(): // it is for people to say so
			left = append(left, &c.Steps[i])
		case !told && c.State != Unknown:
		case outcome == writ.NotExecuted, outcome == writ.Failed, outcome == writ.RolledBack:
		default:
			left = append(left, &c.Steps[i])
		}
	}
	return left
}

// silenced reports whether the gate called the outcome unknown because the
// executor did not account for it in time, and nobody has decided on it since.
func (c *Change) silenced() bool {
	return c.State == Unknown && c.Deadline != nil && !c.Deadline.PassedAt.IsZero() && c.Reconciliation == nil
}

// Awaited reports whether the executor still has to account for the change: it is
// being carried out, or it was, and the executor has not been heard since.
func (c *Change) Awaited() bool {
	return c.State == Claimed || c.State == Executing || c.silenced() && c.Deadline.AnsweredAt.IsZero()
}

// Held reports whether an ended change keeps its locks: its targets are not
// known to be as somebody approved them, and only a recovery may say so.
func (c *Change) Held() bool {
	if r := c.Reconciliation; r != nil && r.Resolution != RollBack {
		return false // people took the target as it was found
	}
	if c.UndoneBy != "" {
		return false
	}
	if c.silenced() {
		return true
	}
	return c.State.Ended() && c.State != Done && c.State != RolledBack && c.Applied()
}

// Code tells a caller who waited for the change what came of it; "" is
// success. A plan that stopped half-way did not leave its targets as before.
func (c *Change) Code() fault.Code {
	switch c.State {
	case Done:
		return ""
	case Denied, Rejected:
		return fault.Denied
	case Expired:
		return fault.Expired
	case Cancelled:
		return fault.Canceled
	case Failed:
		switch {
		case c.Applied():
			return fault.Unverified
		case c.Trouble != nil && len(c.Receipts) == 0:
			return c.Trouble.Code
		case c.stale():
			return fault.Stale
		}
		return fault.Failed
	case RolledBack:
		return fault.Failed
	case Unverified:
		return fault.Unverified
	case Unknown:
		return fault.Unknown
	case RollbackFailed:
		return fault.Stranded
	}
	return fault.ApprovalMissing
}

// stale reports whether a step was not executed because the target had moved on
// since the preview: it can be proposed again at once.
func (c *Change) stale() bool {
	return slices.ContainsFunc(c.Receipts, func(r Receipt) bool {
		return r.Outcome == writ.NotExecuted && r.Reason == string(fault.Stale)
	})
}

// OrphanedEntities returns the entities that an ended change leaves locked.
func (c *Change) OrphanedEntities() []string {
	if !c.Held() {
		return nil
	}
	var all []string
	for _, s := range c.left() {
		if s.Class != writ.ReadOnly {
			all = append(all, s.Entities()...)
		}
	}
	return sortedSet(all)
}

// Entities returns what a change locks: the entities of its writing steps.
func (c *Change) Entities() []string {
	var all []string
	for i := range c.Steps {
		if c.Steps[i].Class != writ.ReadOnly {
			all = append(all, c.Steps[i].Entities()...)
		}
	}
	return sortedSet(all)
}

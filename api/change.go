// Package api holds the words of the REST API: what the gate takes and answers,
// as JSON, and the operations there are. Client and gate both read them here.
//
// A time is 2006-01-02T15:04:05.000Z, or "" where there is none. A member that
// can be left out says so with omitempty; every other is always there.
package api

import (
	"encoding/json"

	"writ"
	"writ/fault"
)

// Proposal asks for a change.
type Proposal struct {
	Steps           []ProposedStep `json:"steps" minItems:"1" maxItems:"64"`
	Environment     string         `json:"environment,omitempty" maxLength:"64" doc:"Must be that of every system; left out, it is theirs"`
	OnFailure       writ.OnFailure `json:"on_failure,omitempty" enum:"stop,rollback" doc:"What happens to finished steps when a later one fails; stop, if left out"`
	RequestedAction string         `json:"requested_action,omitempty" maxLength:"500" doc:"What is asked for, in the requester's words"`
	Purpose         string         `json:"purpose,omitempty" maxLength:"4000" doc:"Why, in the requester's words"`
	RollbackPlan    string         `json:"rollback_plan,omitempty" maxLength:"4000" doc:"How to undo it, in the requester's words"`
	ChangeTicket    string         `json:"change_ticket,omitempty" maxLength:"100"`
	DeclaredRisk    writ.Level     `json:"declared_risk,omitempty" enum:"low,medium,high" doc:"Can only make the assessment stricter"`
}

// ProposedStep is one call of an action.
type ProposedStep struct {
	ID           string      `json:"id,omitempty" maxLength:"32" doc:"Needed only if another step names it; left out, it is s1, s2, …"`
	ActionType   string      `json:"action_type" maxLength:"128"`
	TargetSystem string      `json:"target_system,omitempty" maxLength:"64" doc:"Left out, the system named like the action's kind"`
	Params       writ.Object `json:"params,omitempty"`
	Needs        []string    `json:"needs,omitempty" maxItems:"64" doc:"Ids of steps that must be done before"`
}

// Change is a change as its requester, an approver or an auditor sees it.
type Change struct {
	ID             string         `json:"id"`
	State          string         `json:"state"`
	Ended          bool           `json:"ended" doc:"The state is never left again"`
	Code           fault.Code     `json:"code" doc:"What came of it, as a code of the table of errors; empty while it goes on and when it is done"`
	Next           string         `json:"next" doc:"What to do now, in one sentence"`
	RequestedBy    writ.Principal `json:"requested_by"`
	RequestedAt    writ.Time      `json:"requested_at"`
	UpdatedAt      writ.Time      `json:"updated_at"`
	Request        Proposal       `json:"request"`
	Session        *Session       `json:"session,omitempty" doc:"What the requester's program says of itself; nobody checked it"`
	RollbackOf     string         `json:"rollback_of" doc:"The change that this one undoes"`
	Plan           []Step         `json:"plan" doc:"The steps, in the order in which they run"`
	Assessment     *Assessment    `json:"assessment,omitempty"`
	Decision       *Decision      `json:"decision,omitempty"`
	EnvelopeDigest writ.Digest    `json:"envelope_digest" doc:"Of everything that is decided on"`
	WaitUntil      writ.Time      `json:"wait_until" doc:"Unanswered, it expires then"`
	Approvals      []Approval     `json:"approvals"`
	ExpiresAt      writ.Time      `json:"expires_at" doc:"Approved but not begun, it expires then"`
	Rejection      *Rejected      `json:"rejection,omitempty"`
	Denials        []Denial       `json:"denials" doc:"Earlier noes to the same effect when the same requester asked for it, newest first"`
	RunID          string         `json:"run_id"`
	Receipts       []writ.Receipt `json:"receipts" doc:"The executor's accounts of the steps"`
	StartedAt      writ.Time      `json:"started_at"`
	EndedAt        writ.Time      `json:"ended_at"`
	Trouble        *Trouble       `json:"trouble,omitempty" doc:"Why it did not go on"`
	Reconciled     *Reconciled    `json:"reconciled,omitempty" doc:"What people made of what was in doubt"`
}

// Session is what a program says of itself and on whose behalf it asks. It decides
// nothing.
type Session struct {
	Client  string   `json:"client"`
	Version string   `json:"version"`
	Chain   []string `json:"chain" doc:"On whose behalf, the nearest first"`
}

// Step is one step of the plan with its preview.
type Step struct {
	ID             string      `json:"id"`
	ActionType     string      `json:"action_type"`
	TargetSystem   string      `json:"target_system"`
	Entity         string      `json:"entity"`
	Touches        []string    `json:"touches"`
	Needs          []string    `json:"needs"`
	Class          writ.Class  `json:"class"`
	Params         writ.Object `json:"params"`
	Resolved       writ.Object `json:"resolved" doc:"Values that were found at the target and fixed"`
	BackupRequired bool        `json:"backup_required"`
	Rollback       *writ.Call  `json:"rollback,omitempty" doc:"The way back; left out if there is none"`
	Preview        *Preview    `json:"preview,omitempty"`
}

// Preview says what a step would change.
type Preview struct {
	ObservedAt writ.Time    `json:"observed_at"`
	Known      bool         `json:"known" doc:"False: what would change could not be computed; never: nothing would change"`
	Fields     []writ.Field `json:"fields"`
	Refusals   []string     `json:"refusals" doc:"Guards that do not hold"`
	Detail     string       `json:"detail"`
}

// Assessment weighs a change.
type Assessment struct {
	Class     writ.Class `json:"class"`
	RiskLevel writ.Level `json:"risk_level"`
	Score     int64      `json:"score" doc:"0 to 100"`
	Reasons   []string   `json:"reasons"`
}

// Decision is what policy says.
type Decision struct {
	Effect       string      `json:"effect" enum:"auto,approve,deny"`
	Count        int64       `json:"count" doc:"How many distinct people must approve"`
	Phrase       string      `json:"phrase" doc:"To be typed by the approver"`
	WaitSeconds  int64       `json:"wait_seconds" doc:"How long a request waits for its approvers"`
	ValidSeconds int64       `json:"valid_seconds" doc:"How long an approval is good"`
	Rules        []string    `json:"rules" doc:"The rules of the policy that matched"`
	Reasons      []string    `json:"reasons"`
	PolicyDigest writ.Digest `json:"policy_digest"`
}

// Approval is one person's yes.
type Approval struct {
	ApprovalID string     `json:"approval_id"`
	ApprovedBy string     `json:"approved_by"`
	ApprovedAt writ.Time  `json:"approved_at"`
	ExpiresAt  writ.Time  `json:"expires_at"`
	RiskLevel  writ.Level `json:"risk_level" doc:"The highest level agreed to"`
}

// Rejected is one person's no.
type Rejected struct {
	RejectedBy string    `json:"rejected_by"`
	RejectedAt writ.Time `json:"rejected_at"`
	Reason     string    `json:"reason"`
	LiftedBy   string    `json:"lifted_by,omitempty" doc:"Who let it be asked again before the no is forgotten"`
}

// Denial is an earlier no to what a change would do, whatever it was called then.
type Denial struct {
	ChangeID string    `json:"change_id" doc:"What was denied"`
	DeniedBy string    `json:"denied_by" doc:"human:NAME, or policy"`
	DeniedAt writ.Time `json:"denied_at"`
	Reason   string    `json:"reason"`
}

// Trouble is why a change did not go on.
type Trouble struct {
	Code   fault.Code `json:"code"`
	Reason string     `json:"reason"`
	Text   string     `json:"text"`
}

// Probe is what was found at the target of a change in doubt, rendered by the
// gate, and what may be decided on it.
type Probe struct {
	ChangeID    string         `json:"change_id"`
	Text        string         `json:"text"`
	ShownDigest writ.Digest    `json:"shown_digest" doc:"Of the text"`
	Verdict     writ.Verdict   `json:"verdict" enum:"happened,did_not_happen,cannot_tell" doc:"What the executor proposes"`
	Choices     []string       `json:"choices" doc:"What fits what was found: adopt, absent, roll_back"`
	Phrase      string         `json:"phrase" doc:"To be typed; empty if none is asked for"`
	Findings    []writ.Finding `json:"findings" doc:"The executor's accounts of the steps in doubt"`
}

// Settlement decides on what a probe showed.
type Settlement struct {
	ShownDigest writ.Digest `json:"shown_digest" pattern:"^sha256:[0-9a-f]{64}$"`
	Resolution  string      `json:"resolution" enum:"adopt,absent,roll_back"`
	Phrase      string      `json:"phrase,omitempty" maxLength:"256"`
	Note        string      `json:"note,omitempty" maxLength:"4000" doc:"What you saw; needed where the executor cannot tell"`
}

// Reconciled is what one person made of a change in doubt.
type Reconciled struct {
	ReconciledBy string       `json:"reconciled_by"`
	ReconciledAt writ.Time    `json:"reconciled_at"`
	Resolution   string       `json:"resolution" enum:"adopt,absent,roll_back"`
	Verdict      writ.Verdict `json:"verdict" enum:"happened,did_not_happen,cannot_tell"`
	Note         string       `json:"note"`
}

// Changes is a page of changes, newest first.
type Changes struct {
	Changes    []Change `json:"changes"`
	NextCursor string   `json:"next_cursor" doc:"Gives the next page; empty on the last"`
}

// Review is what an approver reads, rendered by the gate, and what they agree to.
type Review struct {
	Text           string      `json:"text"`
	ShownDigest    writ.Digest `json:"shown_digest" doc:"Of the text"`
	EnvelopeDigest writ.Digest `json:"envelope_digest"`
	Phrase         string      `json:"phrase" doc:"To be typed; empty if none is asked for"`
}

// Agreement approves what a review showed.
type Agreement struct {
	EnvelopeDigest writ.Digest `json:"envelope_digest" pattern:"^sha256:[0-9a-f]{64}$"`
	ShownDigest    writ.Digest `json:"shown_digest" pattern:"^sha256:[0-9a-f]{64}$"`
	Phrase         string      `json:"phrase,omitempty" maxLength:"256"`
}

// Rejection says no, and why.
type Rejection struct {
	Reason string `json:"reason" minLength:"1" maxLength:"2000"`
}

// Artifact is the account of one change: as a page, and as its sections.
type Artifact struct {
	Markdown string          `json:"markdown"`
	Sections json.RawMessage `json:"sections"`
}

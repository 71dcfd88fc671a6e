package model

import "writ"

// Event is one thing that happened, as operators and auditors read it. The
// names of its members are those of the systems that operators know already.
// Members that do not apply are empty; none is left out.
type Event struct {
	Sequence           int64       `json:"sequence"` // from 1, without gaps; set by the store
	ID                 string      `json:"event_id"`
	Type               EventType   `json:"event"`
	Timestamp          writ.Time   `json:"timestamp"`
	ChangeID           string      `json:"change_id"`
	RunID              string      `json:"run_id"`
	Step               string      `json:"step"`
	ApprovalID         string      `json:"approval_id"`
	User               string      `json:"user"` // who caused it: "human:NAME", "agent:NAME", "writ"
	TargetSystem       string      `json:"target_system"`
	ActionType         string      `json:"action_type"`
	Entity             string      `json:"entity"`
	InputHash          writ.Digest `json:"input_hash"`
	EnvelopeDigest     writ.Digest `json:"envelope_digest"`
	BackupReference    string      `json:"backup_reference"`
	BackupStatus       string      `json:"backup_status"`
	VerificationResult string      `json:"verification_result"` // passed, failed, or "" if nothing was verified
	RollbackReference  string      `json:"rollback_reference"`
	DurationMS         int64       `json:"duration_ms"`
	Status             string      `json:"status"` // the state or outcome that it led to
	Reason             string      `json:"reason"` // in snake_case, when something did not go on
	Detail             writ.Object `json:"detail"` // what else belongs to this type of event
}

// EventType is noun.verb.
type EventType string

// The types of events.
const (
	ChangeProposed  EventType = "change.proposed"
	ChangePlanned   EventType = "change.planned"
	ChangeDecided   EventType = "change.decided"
	ChangeApproved  EventType = "change.approved" // one person's approval
	ChangeRejected  EventType = "change.rejected"
	ChangeLifted    EventType = "change.lifted" // what was rejected may be asked again
	ChangeExpired   EventType = "change.expired"
	ChangeCancelled EventType = "change.cancelled"
	ChangeHeldUp    EventType = "change.held_up" // approved, and something is in its way
	ChangeClaimed   EventType = "change.claimed" // locks taken, writ sealed
	ChangeExecuting EventType = "change.executing"
	ChangeHalted    EventType = "change.halted" // the executor starts no further step of it
	ChangeEnded     EventType = "change.ended"
	StepEnded       EventType = "step.ended"      // one receipt
	ChangeAnswered  EventType = "change.answered" // the executor was heard after the gate had called it unknown
	ChangeProbed    EventType = "change.probed"   // the executor looked at what was in doubt
	ChangeSettled   EventType = "change.reconciled"
	ChangeRecovered EventType = "change.recovered" // the executor had done what the store had forgotten
	ChangeUndone    EventType = "change.undone"    // another change undid all of it
	HaltSet         EventType = "halt.set"         // a person stopped something
	HaltLifted      EventType = "halt.lifted"
	EpochRaised     EventType = "epoch.raised"
	RequestRefused  EventType = "request.refused"
	LockTaken       EventType = "lock.taken"
	LockFreed       EventType = "lock.released"
	LockLeft        EventType = "lock.orphaned"
	GateStarted     EventType = "gate.started"
	GateDrained     EventType = "gate.drained"
	// Who may call: all of them when the gate starts, then each change before it
	// takes effect.
	PrincipalsLoaded  EventType = "principals.loaded"
	PrincipalsChanged EventType = "principals.changed"
	KeyChanged        EventType = "audit.key_changed" // the last event that the old key signs
	// ExecutorKeyChanged comes before anything that the new key signed is believed.
	ExecutorKeyChanged EventType = "executor.key_changed"
	TornLineCut        EventType = "audit.torn_line_cut" // a crash left it, and nobody was told of it
	EvidenceRead       EventType = "evidence.read"       // all of a change was handed out, to be kept elsewhere
	FactsRead          EventType = "facts.read"          // of an entity: which were shown to whom, and which not
	ApprovalMisused    EventType = "approval.misused"    // a call named an approval that is not of what it asks for
	ResultGiven        EventType = "result.given"        // to whoever asked with an approval, which is used up by it
	CopyFailed         EventType = "audit.copy_failed"   // of the checkpoint, to its second place
	CopyWorks          EventType = "audit.copy_works"    // again, or for the first time
	WitnessFailed      EventType = "audit.witness_failed"
	WitnessSigns       EventType = "audit.witness_signs" // again
)

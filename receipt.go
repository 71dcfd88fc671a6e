package writ

// Outcome is what can be said of a step afterwards.
type Outcome string

// The outcomes. NotExecuted: nothing was sent, or the target refused before any
// effect. Failed: the target is as before. Unverified: applied, but a check did
// not pass. Unknown: sent, and what became of it was not learned; it is never
// retried and never leaves by itself.
const (
	NotExecuted    Outcome = "not_executed"
	Done           Outcome = "done"
	Failed         Outcome = "failed"
	Unverified     Outcome = "unverified"
	Unknown        Outcome = "unknown"
	RolledBack     Outcome = "rolled_back"
	RollbackFailed Outcome = "rollback_failed"
)

// Receipt is the executor's signed account of one step of one run. A step that
// was done and then undone has two.
type Receipt struct {
	Format            string  `json:"format"` // FormatReceipt
	Executor          string  `json:"executor"`
	Run               string  `json:"run"`
	ChangeID          string  `json:"change_id"`
	WritDigest        Digest  `json:"writ_digest"` // of the sealed text that was admitted
	Sequence          int64   `json:"sequence"`    // from 1 within the run
	Step              string  `json:"step"`
	Action            string  `json:"action"`
	System            string  `json:"system"`
	Entity            string  `json:"entity"`
	InputHash         Digest  `json:"input_hash"`
	Outcome           Outcome `json:"outcome"`
	Reason            string  `json:"reason"` // why not done, in snake_case; "" when done
	Detail            string  `json:"detail"` // a redacted sentence for people; it may quote the target
	Changed           bool    `json:"live_infrastructure_changed"`
	BackupStatus      string  `json:"backup_status"` // none, verified, refused
	BackupReference   string  `json:"backup_reference"`
	BackupDigest      Digest  `json:"backup_digest"` // "" without a backup
	Checks            []Check `json:"checks"`
	RollbackReference string  `json:"rollback_reference"`
	Rollback          *Call   `json:"rollback"` // the way back, made from the backup
	Sent              []Sent  `json:"sent"`     // each write that left for the target
	Outputs           Object  `json:"outputs"`
	StartedAt         Time    `json:"started_at"`
	FinishedAt        Time    `json:"finished_at"`
	Checkpoint        string  `json:"checkpoint"` // of the executor's audit, signed, when the step had ended
}

// The values of Receipt.BackupStatus.
const (
	BackupNone     = "none"
	BackupVerified = "verified"
	BackupRefused  = "refused"
)

// Check is one verification and whether it passed.
type Check struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
}

// Sent is one write as it left for the target. The body stays with the executor.
type Sent struct {
	At     Time   `json:"at"`
	Verb   string `json:"verb"`
	Path   string `json:"path"`
	Digest Digest `json:"digest"` // of the whole call in canonical form
	Mark   string `json:"mark"`   // the idempotency mark in the executor's journal
}

// Observation is the executor's signed answer to an observe writ, one a step:
// what was resolved and what would change. What was read stays with the executor.
type Observation struct {
	Format      string   `json:"format"` // FormatObservation
	Executor    string   `json:"executor"`
	Run         string   `json:"run"`
	Step        string   `json:"step"`
	WritDigest  Digest   `json:"writ_digest"`
	ObservedAt  Time     `json:"observed_at"`
	Resolved    Object   `json:"resolved"`
	Entity      string   `json:"entity"`
	Touches     []string `json:"touches"`
	Fingerprint string   `json:"fingerprint"`
	Fields      []Field  `json:"fields"`   // what would change
	Known       bool     `json:"known"`    // false: what would change could not be computed; never "no change"
	Refusals    []string `json:"refusals"` // guards that do not hold; not empty means the step would be refused
	Rollback    *Call    `json:"rollback"`
	Facts       *Facts   `json:"facts,omitempty"` // only of a set of facts
	Reason      string   `json:"reason"`          // why nothing was observed; "" when all went well
	Detail      string   `json:"detail"`
}

// Field is one value that would change. From and To are what people are shown,
// redacted; Absent says that the field is not there before or after.
type Field struct {
	Name       string `json:"name"`
	From       string `json:"from"`
	To         string `json:"to"`
	FromAbsent bool   `json:"from_absent"`
	ToAbsent   bool   `json:"to_absent"`
}

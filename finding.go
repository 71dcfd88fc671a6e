package writ

// Verdict is what an executor can say of a write whose outcome was not learned.
type Verdict string

// The verdicts. CannotTell is not a guess: the target is neither as the write
// would have made it nor as it was before, or it cannot be read.
const (
	Happened     Verdict = "happened"
	DidNotHappen Verdict = "did_not_happen"
	CannotTell   Verdict = "cannot_tell"
)

// Finding is the executor's signed answer to a probe writ, one a step: what its
// journal holds of an earlier run, and how the target looks now. Nothing is
// written to find it. It proposes; people decide.
type Finding struct {
	Format            string  `json:"format"` // FormatFinding
	Executor          string  `json:"executor"`
	Run               string  `json:"run"`         // the run that is asked about
	WritDigest        Digest  `json:"writ_digest"` // of the probe writ
	ObservedAt        Time    `json:"observed_at"`
	Step              string  `json:"step"`
	Entity            string  `json:"entity"`
	Undo              bool    `json:"undo"` // the verdict is about the way back of the step
	Verdict           Verdict `json:"verdict"`
	Reason            string  `json:"reason"`      // what the verdict rests on, in snake_case
	Detail            string  `json:"detail"`      // a redacted sentence for people; it may quote the target
	Sent              []Sent  `json:"sent"`        // each write that left for the target, by the journal
	Checks            []Check `json:"checks"`      // the verifications of the step, on the state now
	Known             bool    `json:"known"`       // false: Fields could not be computed
	Fields            []Field `json:"fields"`      // From is the state now, To what the step makes of it
	Fingerprint       string  `json:"fingerprint"` // of the state now
	Before            string  `json:"before"`      // the fingerprint of the state before the step; "" if it is not known
	ReadDigest        Digest  `json:"read_digest"` // of all that was read
	BackupReference   string  `json:"backup_reference"`
	BackupDigest      Digest  `json:"backup_digest"` // "" without a backup
	RollbackReference string  `json:"rollback_reference"`
	Rollback          *Call   `json:"rollback"` // the way back, made from the backup; null if there is none
}

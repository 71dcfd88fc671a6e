// Package failpoint names the borders at which a crash must cost nothing: the
// places just before and just after something becomes durable, or leaves for
// the other process or for a target. In a program built with the tag failpoint
// a test can kill the process at any of them; in every other build a point is
// nothing at all.
package failpoint

// Point is a border in the code. It is reached where the code calls
// Reach(failpoint.Name), and nowhere else.
type Point string

// The gate, from a request to its end.
const (
	GateCommit      Point = "gate.commit"       // the transaction is written, not yet committed
	GateCommitted   Point = "gate.committed"    // it is durable, nobody was told yet
	ChangeTaken     Point = "gate.taken"        // a proposal is stored, its planning has not begun
	ChangePlanned   Point = "gate.planned"      // steps are in order, no target was asked
	ChangePreviewed Point = "gate.previewed"    // the preview is stored
	ChangeDecided   Point = "gate.decided"      // the decision is stored
	ChangeApproved  Point = "gate.approved"     // an approval is stored, nobody was told yet
	ChangeHeldUp    Point = "gate.held_up"      // why it cannot begin is stored
	DispatchBegins  Point = "dispatch.begins"   // the executor answers, nothing is claimed
	DispatchClaimed Point = "dispatch.claimed"  // locks and writ are stored, the audit lacks them
	DispatchAudited Point = "dispatch.audited"  // the audit has them, no byte of the writ left
	DispatchHanded  Point = "dispatch.handed"   // the executor answered, that is not stored
	ReceiptsCame    Point = "settle.came"       // receipts arrived, they are not stored
	ReceiptsStored  Point = "settle.stored"     // they are, with what follows from them
	ChangeEnded     Point = "settle.ended"      // the end is stored, what follows it has not begun
	ProbeAnswered   Point = "reconcile.probed"  // the executor looked, nobody was told
	ChangeSettled   Point = "reconcile.settled" // what people decided is stored, nobody was told
	StartRecorded   Point = "start.recorded"    // that the gate started is stored
	StartCaughtUp   Point = "start.caught_up"   // the audit has it
	StartResumed    Point = "start.resumed"     // open changes go on
)

// The audit file, and the ledger in it.
const (
	AuditAppend   Point = "audit.append"   // events are in the store, not in the file
	AuditAppended Point = "audit.appended" // they are in the file, the store does not know
	AuditCaughtUp Point = "audit.caught_up"

	LedgerWrite     Point = "ledger.write"     // nothing of the lines is in the file
	LedgerWritten   Point = "ledger.written"   // not synced
	LedgerSynced    Point = "ledger.synced"    // durable
	SegmentNext     Point = "segment.next"     // a new segment lies beside the others
	SegmentNamed    Point = "segment.named"    // it is one of them, its folder is not synced
	CheckpointNext  Point = "checkpoint.next"  // the tiles are durable, the old checkpoint stands
	CheckpointNamed Point = "checkpoint.named" // the new one does
)

// The executor, from a writ to its receipts.
const (
	AdmitMeasured   Point = "admit.measured"   // everything holds, the nonce is not spent
	AdmitSpent      Point = "admit.spent"      // the nonce is spent, nobody was told
	RunStarted      Point = "run.started"      // the run began, the gate was not answered
	JournalCommit   Point = "journal.commit"   // written, not committed
	JournalDone     Point = "journal.done"     // durable, nobody was told
	StepObserved    Point = "step.observed"    // the state before was read
	BackupWritten   Point = "backup.written"   // not synced
	BackupSynced    Point = "backup.synced"    // its folder is not
	BackupListed    Point = "backup.listed"    // durable, not read back
	BackupReadBack  Point = "backup.read_back" // compared, not in the journal
	StepBackedUp    Point = "step.backed_up"   // in the journal
	StepRechecked   Point = "step.rechecked"   // still the state that was approved
	SendRecorded    Point = "send.recorded"    // the intent is durable, no byte left
	SendConnected   Point = "send.connected"   // there is a connection to the target
	SendWritten     Point = "send.written"     // the request is with the kernel
	SendAnswered    Point = "send.answered"    // the head of the answer was read
	SendRead        Point = "send.read"        // the answer was read, it is not in the journal
	ResultRecorded  Point = "result.recorded"  // it is
	TaskPolled      Point = "task.polled"      // the target told how far its work is
	VerifyBegins    Point = "verify.begins"    // all writes are answered and in the journal
	VerifyRead      Point = "verify.read"      // the state after was read
	ReceiptSealed   Point = "receipt.sealed"   // not in the journal
	ReceiptRecorded Point = "receipt.recorded" // it is, nobody was told
	RunEnds         Point = "run.ends"         // all receipts are there, the run is not closed
	RunFinished     Point = "run.finished"     // it is, nobody was told
	UndoBegins      Point = "undo.begins"      // a step is about to be undone
	UndoEnded       Point = "undo.ended"       // it was, the next one was not
	RecoverBegins   Point = "recover.begins"   // a run that was cut off is found
	RecoverStep     Point = "recover.step"     // a step of it is settled
	RecoverEnded    Point = "recover.ended"    // the run is closed
	ProbeLooked     Point = "probe.looked"     // what a run left was read, nobody was told
)

// All lists every point.
func All() []Point {
	return []Point{
		GateCommit, GateCommitted, ChangeTaken, ChangePlanned, ChangePreviewed, ChangeDecided, ChangeApproved, ChangeHeldUp,
		DispatchBegins, DispatchClaimed, DispatchAudited, DispatchHanded, ReceiptsCame, ReceiptsStored, ChangeEnded,
		ProbeAnswered, ChangeSettled, StartRecorded, StartCaughtUp, StartResumed,
		AuditAppend, AuditAppended, AuditCaughtUp,
		LedgerWrite, LedgerWritten, LedgerSynced, SegmentNext, SegmentNamed, CheckpointNext, CheckpointNamed,
		AdmitMeasured, AdmitSpent, RunStarted, JournalCommit, JournalDone, StepObserved, BackupWritten, BackupSynced,
		BackupListed, BackupReadBack, StepBackedUp, StepRechecked, SendRecorded, SendConnected, SendWritten, SendAnswered,
		SendRead, ResultRecorded, TaskPolled, VerifyBegins, VerifyRead, ReceiptSealed, ReceiptRecorded, RunEnds, RunFinished,
		UndoBegins, UndoEnded, RecoverBegins, RecoverStep, RecoverEnded, ProbeLooked,
	}
}

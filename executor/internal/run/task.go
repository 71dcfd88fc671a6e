package run

import (
	"context"
	"errors"
	"slices"
	"strings"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/executor/internal/admit"
	"writ/executor/internal/journal"
	"writ/failpoint"
	"writ/fault"
)

// task is one step on its way, or the way back of one.
type task struct {
	*progress
	admit.Step
	after    []admit.Step // the steps before this one
	undo     bool
	scope    *catalog.Scope
	reader   reader
	applied  int        // writes that the target has answered with success
	way      *writ.Call // the way back, as it would run
	expected string     // the fingerprint of the state that may be acted on
	receipt  writ.Receipt
}

// stop ends a step with an outcome.
type stop struct {
	outcome        writ.Outcome
	reason, detail string
}

// Error returns the detail.
func (s *stop) Error() string { return s.detail }

func (p *progress) task(s admit.Step, undo bool) *task {
	w, plan := p.admitted.Writ(), s.Plan
	hash, err := plan.InputHash()
	if err != nil {
		hash = "" // an admitted step has one: its approvals were compared with it
	}
	return &task{
		progress: p, Step: s, undo: undo, scope: s.Scope(), expected: plan.Fingerprint,
		receipt: writ.Receipt{
			Format: writ.FormatReceipt, Executor: p.Executor, Run: w.Run, ChangeID: w.Envelope.ChangeID,
			WritDigest: p.admitted.Digest(), Step: plan.ID, Action: plan.Action, System: plan.System, Entity: plan.Entity,
			InputHash: hash, BackupStatus: writ.BackupNone, Checks: []writ.Check{}, Sent: []writ.Sent{}, Outputs: writ.Object{},
			StartedAt: writ.At(p.Sys.Now()),
		},
	}
}

// run takes the step from its first reading to its receipt. Its error is the journal's.
func (t *task) run(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, t.Action.Timeout)
	defer cancel()
	return t.end(ctx, t.act(within, ctx))
}

// act is the order in which a step happens; nothing in it may move. Reading and
// writing is bounded by ctx, what is kept is not (keep).
func (t *task) act(ctx, keep context.Context) error {
	system, release, err := t.Systems.Use(t.Plan.System)
	if err != nil {
		return &stop{writ.NotExecuted, "system_unavailable", fault.TextOf(err)}
	}
	defer release()
	t.reader = reader(system)
	if err := t.allowed(keep); err != nil {
		return err
	}
	if err := t.observe(ctx); err != nil {
		return err
	}
	failpoint.Reach(failpoint.StepObserved)
	if err := t.guard(); err != nil {
		return err
	}
	if err := t.fresh(true); err != nil {
		return err
	}
	if err := t.backUp(keep); err != nil {
		return err
	}
	failpoint.Reach(failpoint.StepBackedUp)
	if t.Action.Writes() {
		if err := t.observe(ctx); err != nil {
			return err
		}
		if err := t.fresh(false); err != nil {
			return err
		}
		if err := t.allowed(keep); err != nil {
			return err
		}
		failpoint.Reach(failpoint.StepRechecked)
		if err := t.write(ctx, keep, system); err != nil {
			return err
		}
	}
	failpoint.Reach(failpoint.VerifyBegins)
	return t.verify(ctx)
}

// observe reads the state into the scope.
func (t *task) observe(ctx context.Context) error {
	seen, err := t.reader.all(ctx, t.Action.Observes(), t.scope)
	if err != nil {
		return &stop{writ.NotExecuted, "observe_failed", "The state before could not be read: " + sentence(err)}
	}
	t.scope.Observed = seen
	return nil
}

// guard asks the guards with the executor's own settings.
func (t *task) guard() error {
	refusals, err := t.Action.Guards(t.scope)
	if err != nil {
		return &stop{writ.NotExecuted, "guard_refused", sentence(err)}
	}
	if len(refusals) > 0 {
		return &stop{writ.NotExecuted, "guard_refused", strings.Join(refusals, "; ")}
	}
	return nil
}

// fresh compares the state with the one that was approved, and afterwards with
// the one that was backed up.
func (t *task) fresh(first bool) error {
	if !t.Action.Writes() {
		return nil
	}
	now, err := t.Action.Fingerprint(t.scope)
	if err != nil {
		return &stop{writ.NotExecuted, "observe_failed", sentence(err)}
	}
	if first && (t.undo || t.Plan.Fingerprint == "" && t.follows()) {
		t.expected = now // a step of this run brought the state about
	}
	if now != t.expected {
		return &stop{writ.NotExecuted, "stale", "The target is no longer in the state that was approved. Propose the change again."}
	}
	return nil
}

// follows reports whether a step before this one writes to what this one writes to.
func (t *task) follows() bool {
	mine := t.Plan.Entities()
	return slices.ContainsFunc(t.after, func(s admit.Step) bool {
		return s.Action.Writes() && slices.ContainsFunc(s.Plan.Entities(), func(e string) bool { return slices.Contains(mine, e) })
	})
}

// backUp saves the named observations, and reads them again.
func (t *task) backUp(ctx context.Context) error {
	names := t.Action.BackupNames()
	if len(names) == 0 && !t.Action.Writes() {
		return nil
	}
	t.scope.Backup = map[string]catalog.Seen{}
	for _, n := range names {
		t.scope.Backup[n] = t.scope.Observed[n]
	}
	saved, err := t.Backups.Save(t.receipt.Run, t.backupName(), t.scope.Backup)
	if err != nil {
		t.receipt.BackupStatus = writ.BackupRefused
		return &stop{writ.NotExecuted, "backup_refused", fault.TextOf(err)}
	}
	t.receipt.BackupStatus, t.receipt.BackupReference, t.receipt.BackupDigest = writ.BackupVerified, saved.Reference, saved.Digest
	t.receipt.Checks = saved.Checks
	return t.Journal.Append(ctx, t.entry(journal.Backup, writ.At(t.Sys.Now()), body(saved)))
}

func (t *task) backupName() string {
	if t.undo {
		return t.Plan.ID + ".undo"
	}
	return t.Plan.ID
}

// allowed checks what may have changed since admission: when the step begins,
// and once more directly before it acts.
func (t *task) allowed(ctx context.Context) error {
	w := t.admitted.Writ()
	if err := t.Door.Closed(); err != nil {
		return &stop{writ.NotExecuted, fault.ReasonOf(err), fault.TextOf(err)}
	}
	halted, err := t.Journal.Halted(ctx, w.Run)
	if err != nil {
		return err
	}
	if halted {
		return &stop{writ.NotExecuted, journal.Halted, "A person stopped it: nothing more was started."}
	}
	if t.admitted.Over(t.Sys) {
		return &stop{writ.NotExecuted, "expired", "The writ was valid until " + w.ExpiresAt.String() + ". Propose the change again."}
	}
	epoch, err := t.Journal.Epoch(ctx)
	if err != nil {
		return err
	}
	if epoch > w.Epoch {
		return &stop{writ.NotExecuted, "stale_epoch", "The gate revoked everything that was approved before."}
	}
	if !t.Action.Writes() {
		return nil
	}
	held, err := t.Journal.Holds(ctx, w.Run, t.Plan.Entities())
	if err != nil {
		return err
	}
	if !held {
		return &stop{writ.NotExecuted, "stale_fence", "The lock was given to a later change. Propose the change again."}
	}
	return nil
}

// end makes the receipt of what happened. Only an error that is no stop is returned.
func (t *task) end(ctx context.Context, happened error) error {
	s := &stop{outcome: writ.Done}
	if happened != nil && !errors.As(happened, &s) {
		return happened
	}
	r := &t.receipt
	r.Outcome, r.Reason, r.Detail = s.outcome, s.reason, t.clean(s.detail)
	if s.outcome == writ.Done {
		t.output()
	}
	if s.outcome == writ.Done || s.outcome == writ.Unverified {
		t.wayBack()
	}
	if t.undo {
		t.undone()
	}
	r.Changed = len(r.Sent) > 0 && s.outcome != writ.NotExecuted && s.outcome != writ.Failed
	r.FinishedAt = writ.At(t.Sys.Now())
	return t.record(ctx, t)
}

// entry is an entry of the journal about this step.
func (t *task) entry(kind journal.Kind, at writ.Time, body []byte) journal.Entry {
	return journal.Entry{Run: t.receipt.Run, Step: t.Plan.ID, Undo: t.undo, Kind: kind, At: at, Body: body}
}

// sentence is what people may see of an error: a driver's says what the target said.
func sentence(err error) string {
	if e, ok := errors.AsType[*connector.Error](err); ok {
		return e.Text
	}
	return fault.TextOf(err)
}

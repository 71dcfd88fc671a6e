package run

import (
	"context"
	"slices"

	"writ"
	"writ/catalog"
	"writ/executor/internal/admit"
	"writ/failpoint"
	"writ/fault"
)

// Probe answers a probe writ: for each step of an earlier run, sealed, what the
// journal holds of it and how the target looks now. Nothing but reading happens.
func (r *Runner) Probe(ctx context.Context, a admit.Admitted) ([][]byte, error) {
	if !a.Valid() || a.Interrupted() || a.Writ().Purpose != writ.Probe {
		return nil, fault.New(fault.Refused, "Only a freshly admitted probe writ can be probed.").Because("not_admitted")
	}
	defer a.Release()
	p := &progress{Runner: r, admitted: a}
	known, err := p.known(ctx)
	if err != nil {
		return nil, err
	}
	all, err := p.histories(ctx)
	if err != nil {
		return nil, err
	}
	var findings [][]byte
	for _, s := range a.Steps() {
		l := &look{task: p.task(s, false), known: known, did: all[which{s.Plan.ID, false}], undid: all[which{s.Plan.ID, true}]}
		f := l.finding(ctx)
		sealed, err := writ.Seal(writ.KindFinding, &f, r.Key)
		if err != nil {
			return nil, err
		}
		findings = append(findings, sealed)
	}
	failpoint.Reach(failpoint.ProbeLooked)
	return findings, nil
}

// known reports whether the journal knows the run. What it knows must be what is
// asked about.
func (p *progress) known(ctx context.Context) (bool, error) {
	w := p.admitted.Writ()
	was, err := p.Journal.Envelope(ctx, w.Run)
	if err != nil || was == "" {
		return false, err
	}
	asked, err := w.Envelope.Digest()
	if err == nil && asked != was {
		err = fault.New(fault.Refused, "The run %s carried out another change than the one that is asked about.", w.Run).Because("other_run")
	}
	return true, err
}

// look is one step of an earlier run that is looked at.
type look struct {
	*task
	known      bool     // the journal knows the run
	did, undid *history // what it holds of the step and of its way back; nil is nothing
	pending    bool     // work at the target still goes on

	before string       // the fingerprint of the state before the step
	now    string       // of the state now
	wanted []writ.Check // what verifies the step, on the state now
	undone []writ.Check // what verifies its way back
}

// finding looks and says what it found.
func (l *look) finding(ctx context.Context) writ.Finding {
	ctx, cancel := context.WithTimeout(ctx, min(l.Action.Timeout, settleWithin))
	defer cancel()
	f := writ.Finding{
		Format: writ.FormatFinding, Executor: l.Executor, Run: l.receipt.Run, WritDigest: l.admitted.Digest(), ObservedAt: writ.At(l.Sys.Now()),
		Step: l.Plan.ID, Entity: l.Plan.Entity, Sent: []writ.Sent{}, Checks: []writ.Check{}, Fields: []writ.Field{},
	}
	for _, h := range []*history{l.did, l.undid} {
		if h != nil {
			f.Sent = append(f.Sent, h.sent...)
		}
	}
	f.Undo = l.undid != nil && len(l.undid.sent) > 0
	if !l.Action.Writes() {
		f.Verdict, f.Reason = writ.DidNotHappen, "only_reads"
		return f
	}
	l.remember(&f)
	if err := l.read(ctx, &f); err != nil {
		f.Verdict, f.Reason, f.Detail = writ.CannotTell, "observe_failed", l.clean("The target could not be read: "+sentence(err))
		return f
	}
	f.Checks, f.Fingerprint, f.Before = append(f.Checks, l.wanted...), l.now, l.before
	if f.Undo {
		f.Checks = append([]writ.Check{}, l.undone...)
		f.Verdict, f.Reason = l.judgeUndo()
	} else {
		f.Verdict, f.Reason = l.judgeStep()
	}
	return f
}

// remember takes from the journal and the backup what is known of the state before.
func (l *look) remember(f *writ.Finding) {
	l.scope.Applied = map[string]catalog.Seen{}
	l.before = l.Plan.Fingerprint
	if l.did == nil {
		return
	}
	for _, came := range l.did.results {
		if came.Outcome == writ.Done && came.Name != "" {
			l.scope.Applied[came.Name] = came.Seen
		}
	}
	if l.did.backup == nil {
		return
	}
	f.BackupReference, f.BackupDigest = l.did.backup.Reference, l.did.backup.Digest
	seen, err := l.Backups.Load(l.receipt.Run, l.backupName(), l.did.backup.Digest)
	if err != nil {
		f.Detail = l.clean("The backup cannot be used: " + fault.TextOf(err))
		return
	}
	l.scope.Backup, l.scope.Observed = seen, seen
	if before, err := l.Action.Fingerprint(l.scope); err == nil && l.before == "" {
		l.before = before
	}
	if call, err := l.Action.Rollback(l.scope); err == nil && call != nil {
		l.way = call
		if l.showable(l.Action, call) {
			f.Rollback, f.RollbackReference = call, l.reference()
		}
	}
}

// read reads the target: what the step would make of it now, and what verifies
// the step and its way back.
func (l *look) read(ctx context.Context, f *writ.Finding) error {
	system, release, err := l.Systems.Use(l.Plan.System)
	if err != nil {
		return err
	}
	defer release()
	l.reader = reader(system)
	if l.scope.Observed, err = l.reader.all(ctx, l.Action.Observes(), l.scope); err != nil {
		return err
	}
	if l.now, err = l.Action.Fingerprint(l.scope); err != nil {
		return err
	}
	if l.Action.Sensitivity != catalog.Secret {
		f.ReadDigest = catalog.StableDigest(l.scope.Observed)
	}
	if fields, known, err := l.Action.Preview(l.scope); err == nil {
		f.Known = known
		for _, field := range fields {
			field.Name, field.From, field.To = l.clean(field.Name), l.value(l.Action, field.From), l.value(l.Action, field.To)
			f.Fields = append(f.Fields, field)
		}
	}
	l.pending = l.goesOn(ctx)
	if l.wanted, err = l.check(ctx); err != nil {
		l.wanted, f.Detail = nil, l.clean("The step could not be verified: "+sentence(err))
	}
	if f.Undo {
		l.readUndo(ctx)
	}
	return nil
}

// goesOn reports whether work that the step began at the target is not known to
// have ended.
func (l *look) goesOn(ctx context.Context) bool {
	if l.did == nil || len(l.did.sent) == 0 || l.did.applied {
		return false
	}
	return slices.ContainsFunc(l.Action.Waits(), func(w catalog.Wait) bool {
		call, err := w.Call(l.scope)
		if err != nil {
			return false // the target never said what to wait for
		}
		answer, err := l.reader.read(ctx, call)
		if err != nil {
			return true
		}
		state, err := w.State(l.scope, answer)
		return err != nil || state != catalog.Finished && state != catalog.Broken
	})
}

// readUndo verifies the way back, measured as it was when it ran.
func (l *look) readUndo(ctx context.Context) {
	step, err := l.admitted.Undo(l.Plan, l.way)
	if err != nil {
		return
	}
	u := l.progress.task(step, true)
	u.reader = l.reader
	if checks, err := u.check(ctx); err == nil {
		l.undone = checks
	}
}

// judgeStep says whether the step happened. Only two things count as proof: the
// state is what the step makes of it and not what it was, or the other way round.
func (l *look) judgeStep() (writ.Verdict, string) {
	wanted, before := passed(l.wanted), l.before != "" && l.now == l.before
	never := l.known && (l.did == nil || len(l.did.sent) == 0)
	switch {
	case l.pending:
		return writ.CannotTell, "still_running"
	case before && (never || !wanted):
		return writ.DidNotHappen, "as_before"
	case before:
		return writ.CannotTell, "was_so_before"
	case never:
		return writ.CannotTell, "never_sent"
	case wanted && l.before == "":
		return writ.CannotTell, "before_unknown"
	case wanted:
		return writ.Happened, "verified"
	}
	return writ.CannotTell, "neither"
}

// judgeUndo says whether the step was undone.
func (l *look) judgeUndo() (writ.Verdict, string) {
	wanted, undone := passed(l.wanted), passed(l.undone) || l.before != "" && l.now == l.before
	switch {
	case undone && !wanted:
		return writ.Happened, "as_before"
	case wanted && !undone:
		return writ.DidNotHappen, "verified"
	case wanted:
		return writ.CannotTell, "was_so_before"
	}
	return writ.CannotTell, "neither"
}

// passed reports whether there are checks and all passed.
func passed(checks []writ.Check) bool { return len(checks) > 0 && len(failures(checks)) == 0 }

package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"writ"
	"writ/catalog"
	"writ/executor/internal/admit"
	"writ/executor/internal/backup"
	"writ/executor/internal/journal"
	"writ/failpoint"
	"writ/fault"
)

// settleWithin bounds how long one step may be verified again at start.
const settleWithin = 15 * time.Second

// Recover settles every run that the end of the process cut off, from what the
// journal holds. Nothing is sent and nothing is sent again: a write without a
// result is unknown, and a step that was not begun is not begun. It must have
// returned before anything is admitted.
func (r *Runner) Recover(ctx context.Context) error {
	runs, err := r.Journal.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, run := range runs {
		a, err := r.Door.Reopen(run.Sealed)
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "The run %s was cut off and cannot be settled, because its writ cannot be read. "+
				"Put the gate's key into former_gate_keys of executor.yaml.", run.Run)
		}
		p := &progress{Runner: r, admitted: a}
		failpoint.Reach(failpoint.RecoverBegins)
		if err := p.settle(ctx); err != nil {
			return err
		}
		if err := r.Journal.Finish(ctx, run.Run); err != nil {
			return err
		}
		failpoint.Reach(failpoint.RecoverEnded)
		r.Sys.Log.Warn("a run that was cut off is settled", "run", run.Run)
	}
	return nil
}

// history is what the journal holds of one step, or of its way back.
type history struct {
	began   writ.Time
	backup  *backup.Saved
	sent    []writ.Sent
	results map[string]result // by mark
	applied bool
	receipt *writ.Receipt
}

type which struct {
	step string
	undo bool
}

func (p *progress) histories(ctx context.Context) (map[which]*history, error) {
	entries, err := p.Journal.Entries(ctx, p.admitted.Writ().Run)
	if err != nil {
		return nil, err
	}
	all := map[which]*history{}
	for _, e := range entries {
		h := all[which{e.Step, e.Undo}]
		if h == nil {
			h = &history{began: e.At, results: map[string]result{}}
			all[which{e.Step, e.Undo}] = h
		}
		if err := h.add(e, p.Keys); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "An entry of the journal about run %s cannot be read. Run: writ doctor", e.Run)
		}
		if h.receipt != nil {
			p.sequence = max(p.sequence, h.receipt.Sequence)
		}
	}
	return all, nil
}

func (h *history) add(e journal.Entry, keys writ.Keyring) error {
	switch e.Kind {
	case journal.Backup:
		return json.Unmarshal(e.Body, &h.backup)
	case journal.Sent:
		var s writ.Sent
		err := json.Unmarshal(e.Body, &s)
		h.sent = append(h.sent, s)
		return err
	case journal.Result:
		var came result
		d := json.NewDecoder(bytes.NewReader(e.Body))
		d.UseNumber()
		err := d.Decode(&came)
		came.Seen.Data = backup.Numbers(came.Seen.Data)
		h.results[e.Mark] = came
		return err
	case journal.Applied:
		h.applied = true
	case journal.Receipt:
		h.receipt = new(writ.Receipt)
		return writ.Open(writ.KindReceipt, e.Body, keys, h.receipt)
	}
	return nil
}

// settle gives every step of the run the receipt that it lacks.
func (p *progress) settle(ctx context.Context) error {
	all, err := p.histories(ctx)
	if err != nil {
		return err
	}
	broken := false
	for _, s := range p.admitted.Steps() {
		h := all[which{s.Plan.ID, false}]
		if h == nil {
			h = &history{began: writ.At(p.Sys.Now())}
		}
		if h.receipt != nil {
			broken = broken || h.receipt.Outcome != writ.Done
			continue
		}
		t := p.interrupted(s, false, h)
		if err := t.end(ctx, t.settled(ctx, h, broken)); err != nil {
			return err
		}
		failpoint.Reach(failpoint.RecoverStep)
		broken = broken || t.receipt.Outcome != writ.Done
	}
	for _, s := range p.admitted.Steps() {
		h := all[which{s.Plan.ID, true}]
		if h == nil || h.receipt != nil || len(h.sent) == 0 {
			continue // a way back that was not begun leaves its step as it is
		}
		t := p.interrupted(admit.Step{Plan: s.Plan}, true, h)
		if err := t.end(ctx, restarted(writ.Unknown)); err != nil {
			return err
		}
	}
	return nil
}

// interrupted is the task as far as the journal knows it.
func (p *progress) interrupted(s admit.Step, undo bool, h *history) *task {
	t := p.task(s, undo)
	t.receipt.StartedAt = h.began
	t.receipt.Sent = append(t.receipt.Sent, h.sent...)
	if h.backup != nil {
		t.receipt.BackupStatus, t.receipt.BackupReference = writ.BackupVerified, h.backup.Reference
		t.receipt.BackupDigest, t.receipt.Checks = h.backup.Digest, h.backup.Checks
	}
	return t
}

func restarted(outcome writ.Outcome) *stop {
	return &stop{outcome, "executor_restarted", "The executor was restarted in the middle of the run."}
}

// settled says how the step ended, as far as can be known without writing.
func (t *task) settled(ctx context.Context, h *history, broken bool) error {
	switch {
	case len(h.sent) == 0 && broken:
		return &stop{writ.NotExecuted, "step_before_failed", "A step before this one did not end well, so it was not started."}
	case len(h.sent) == 0:
		return restarted(writ.NotExecuted)
	}
	t.scope.Applied = map[string]catalog.Seen{}
	for _, s := range h.sent {
		came, ok := h.results[s.Mark]
		if !ok {
			return restarted(writ.Unknown)
		}
		if err := t.judge(came); err != nil {
			return err
		}
		t.applied++
		if came.Name != "" {
			t.scope.Applied[came.Name] = came.Seen
		}
	}
	if t.Action == nil {
		if !h.applied {
			return restarted(writ.Unknown)
		}
		return verifyInterrupted("the action is no longer in the catalog as it was")
	}
	if all := len(h.sent) == len(t.Action.Applies()) && len(t.Action.Waits()) == 0; !h.applied && !all {
		return restarted(writ.Unknown)
	}
	return t.verifyAgain(ctx, h)
}

// verifyAgain verifies a step whose writes are all answered.
func (t *task) verifyAgain(ctx context.Context, h *history) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	if h.backup == nil {
		return verifyInterrupted("its backup is not in the journal")
	}
	seen, err := t.Backups.Load(t.receipt.Run, t.backupName(), h.backup.Digest)
	if err != nil {
		return verifyInterrupted(fault.TextOf(err))
	}
	t.scope.Backup = seen
	system, release, err := t.Systems.Use(t.Plan.System)
	if err != nil {
		return verifyInterrupted(fault.TextOf(err))
	}
	defer release()
	t.reader = reader(system)
	err = t.verify(ctx)
	if s := (*stop)(nil); errors.As(err, &s) && s.reason == "verify_unreachable" {
		s.reason = "verify_interrupted"
	}
	return err
}

func verifyInterrupted(why string) *stop {
	return &stop{writ.Unverified, "verify_interrupted", "Applied, but the executor was restarted before it was verified, and now " + why + "."}
}

// Package run does what an admitted writ says, step by step: read, guard, back
// up, read again, compare, write down the intent, act once, verify by reading,
// and account for it in a signed receipt. After a failure nothing more is
// started, unless it undoes; what was done is undone only if that was approved. A write whose
// outcome was not learned is unknown, and stays so.
package run

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"writ"
	"writ/connector"
	"writ/executor/internal/admit"
	"writ/executor/internal/backup"
	"writ/executor/internal/journal"
	"writ/failpoint"
	"writ/fault"
	"writ/redact"
	"writ/sys"
)

// System is an open way to one system.
type System struct {
	Target connector.Target
	Verbs  map[string]bool // verb → whether it writes
}

// Systems opens systems by name.
type Systems interface {
	// Use returns a system that stays open until release is called.
	Use(name string) (s System, release func(), err error)
}

// Parts is what a Runner works with.
type Parts struct {
	Sys      sys.Sys
	Executor string
	Key      ed25519.PrivateKey // seals observations and receipts
	Keys     writ.Keyring       // with which it sealed what is in the journal
	Door     *admit.Door
	Journal  *journal.Journal
	Backups  *backup.Store
	Systems  Systems
	Redactor func() *redact.Redactor // knows the secrets that are in use now
}

// Runner runs admitted writs. It is safe for concurrent use.
type Runner struct {
	Parts

	running sync.WaitGroup
	mu      sync.Mutex
	news    chan struct{} // closed at the next receipt or end of a run
}

// New returns a runner.
func New(p Parts) *Runner { return &Runner{Parts: p, news: make(chan struct{})} }

// Start executes in the background. What it does no longer depends on whoever asked.
func (r *Runner) Start(ctx context.Context, a admit.Admitted) {
	ctx = context.WithoutCancel(ctx)
	r.running.Go(func() {
		if err := r.Execute(ctx, a); err != nil {
			r.Sys.Log.Error("a run was cut off; it is settled when the executor starts again", "run", a.Writ().Run, "error", err, "cause", errors.Unwrap(err))
		}
	})
}

// Wait returns when no run is under way.
func (r *Runner) Wait() { r.running.Wait() }

// News returns a channel that is closed at the next receipt or end of a run.
func (r *Runner) News() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.news
}

func (r *Runner) announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.news)
	r.news = make(chan struct{})
}

// Execute runs an execute writ to its end and journals a receipt for each step.
// It fails only if the journal does; then the door is closed, and the run is
// settled by Recover after a restart.
func (r *Runner) Execute(ctx context.Context, a admit.Admitted) error {
	if !a.Valid() || a.Interrupted() || a.Writ().Purpose != writ.Execute {
		return fault.New(fault.Refused, "Only a freshly admitted execute writ can be executed.").Because("not_admitted")
	}
	defer a.Release()
	p := &progress{Runner: r, admitted: a}
	err := guarded(func() error { return p.steps(ctx) })
	if err == nil {
		failpoint.Reach(failpoint.RunEnds)
		err = r.Journal.Finish(ctx, a.Writ().Run)
	}
	if err != nil {
		// What is in the journal can no longer be relied on to grow: no write without a record.
		r.Door.Close(fault.Wrap(fault.Unavailable, err, "The journal of the executor failed. Run: writ doctor, then start the executor again.").Because("journal_failed"))
	}
	failpoint.Reach(failpoint.RunFinished)
	r.announce()
	return err
}

// guarded makes an error of a panic of f, so that its text goes where secrets
// are taken out, and not straight to the terminal.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Wrap(fault.Internal, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "Something went wrong inside writ. The log of the executor has the cause.")
		}
	}()
	return f()
}

// progress is how far one run is.
type progress struct {
	*Runner
	admitted admit.Admitted
	sequence int64   // of the last receipt
	ended    []*task // steps with a receipt, in order
}

func (p *progress) steps(ctx context.Context) error {
	steps := p.admitted.Steps()
	var broken []*task
	for i, s := range steps {
		t := p.task(s, false)
		t.after = steps[:i]
		if p.stops(broken, t) {
			if err := t.end(ctx, &stop{writ.NotExecuted, "step_before_failed", "A step before this one did not end well, so it was not started."}); err != nil {
				return err
			}
			broken = append(broken, t)
			continue
		}
		if err := t.run(ctx); err != nil {
			return err
		}
		p.ended = append(p.ended, t)
		if t.receipt.Outcome != writ.Done {
			broken = append(broken, t)
		}
	}
	unknown := slices.ContainsFunc(broken, func(t *task) bool { return t.receipt.Outcome == writ.Unknown })
	if len(broken) == 0 || unknown || p.admitted.Writ().Envelope.OnFailure != writ.Rollback {
		return nil
	}
	return p.rollBack(ctx)
}

// stops reports whether steps that did not end well keep another from being
// started: any does, but where a change is undone, each way back is good by itself.
func (p *progress) stops(broken []*task, t *task) bool {
	if p.admitted.Writ().Envelope.RollbackOf == "" {
		return len(broken) > 0
	}
	return slices.ContainsFunc(broken, func(b *task) bool {
		return writ.StandsOn(p.admitted.Writ().Envelope.Steps, t.Plan.ID, b.Plan.ID)
	})
}

// record seals the receipt of a task and journals it: from then on it stands.
func (p *progress) record(ctx context.Context, t *task) error {
	p.sequence++
	r := &t.receipt
	r.Sequence = p.sequence
	// The receipt says how far the executor's own account was: from then on,
	// the gate can tell if any of it is changed.
	signed, err := p.Journal.Checkpoint(ctx)
	if err != nil {
		return err
	}
	r.Checkpoint = string(signed)
	sealed, err := writ.Seal(writ.KindReceipt, r, p.Key)
	if err != nil {
		// What a target answered is too large or too deep for a receipt. It must
		// not keep the outcome from being told.
		r.Outputs, r.Rollback, r.RollbackReference = writ.Object{}, nil, ""
		r.Detail = p.clean("The outputs and the way back are too large for a receipt. " + r.Detail)
		if sealed, err = writ.Seal(writ.KindReceipt, r, p.Key); err != nil {
			return err
		}
	}
	failpoint.Reach(failpoint.ReceiptSealed)
	if err := p.Journal.Append(ctx, t.entry(journal.Receipt, r.FinishedAt, sealed)); err != nil {
		return err
	}
	failpoint.Reach(failpoint.ReceiptRecorded)
	p.announce()
	return nil
}

// body writes what is only ever read by Recover.
func body(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(`null`) // a value that has no JSON is not needed to recover safely
	}
	return b
}

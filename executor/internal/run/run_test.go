package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/connector/recorder"
	"writ/executor/internal/admit"
	"writ/executor/internal/executortest"
	"writ/executor/internal/run"
	"writ/fault"
	"writ/redact"
)

func set(t *testing.T, w *executortest.World, id, name, value string) writ.Step {
	return w.Step(t, id, "thing.set", writ.Object{"name": name, "value": value})
}

func TestExecute_done(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"))
	w.Recorder.Reset()
	r := w.Run(t, o)[0]

	digest, err := o.Envelope.Steps[0].InputHash()
	if err != nil {
		t.Fatal(err)
	}
	want := writ.Receipt{
		Format: writ.FormatReceipt, Executor: "site-a", Run: o.Run, ChangeID: o.Envelope.ChangeID, WritDigest: writ.DigestBytes(w.Seal(t, o)),
		Sequence: 1, Step: "s1", Action: "thing.set", System: "things", Entity: "things/a", InputHash: digest, Outcome: writ.Done, Changed: true,
		BackupStatus: writ.BackupVerified, BackupReference: "backup:site-a/" + o.Run + "/s1", BackupDigest: r.BackupDigest,
		Checks: []writ.Check{{Name: "backup_file_exists", Passed: true}, {Name: "backup_file_nonempty", Passed: true},
			{Name: "backup_file_private", Passed: true}, {Name: "thing_value_matches", Passed: true}},
		RollbackReference: "rollback:" + o.Run + ":things:thing.set",
		Rollback:          &writ.Call{Action: "thing.set", System: "things", Params: writ.Object{"name": "a", "value": "old"}},
		Sent:              []writ.Sent{{At: r.Sent[0].At, Verb: "put", Path: "/things/a", Digest: r.Sent[0].Digest, Mark: r.Sent[0].Mark}},
		Outputs:           writ.Object{"answer": "new"}, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, Checkpoint: r.Checkpoint,
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("receipt (-want +got)\n%s", diff)
	}
	if !r.BackupDigest.Valid() || !r.Sent[0].Digest.Valid() || r.Sent[0].Mark == "" {
		t.Errorf("a digest or a mark is missing in %+v", r)
	}
	if v, _ := w.Things.Value("a"); v != "new" || len(w.Recorder.Writes()) != 1 {
		t.Errorf("the thing is %q after %d writes", v, len(w.Recorder.Writes()))
	}
	saved, err := os.ReadFile(filepath.Join(w.Backups(), o.Run, "s1.json"))
	if err != nil || !strings.Contains(string(saved), `"value":"old"`) {
		t.Errorf("the backup holds %s (%v)", saved, err)
	}
	// The way back that the receipt names leads back.
	back := w.Step(t, "s1", r.Rollback.Action, r.Rollback.Params)
	if r := w.Run(t, w.Approved(t, writ.Stop, back))[0]; r.Outcome != writ.Done {
		t.Errorf("the rollback ended %s: %s", r.Outcome, r.Detail)
	}
	if v, _ := w.Things.Value("a"); v != "old" {
		t.Errorf("after the rollback the thing is %q", v)
	}
}

// Each row is one way in which a step can end. sent counts what reached the
// target as a write.
//
// Long on purpose: one row a way to end.
func TestExecute_outcomes(t *testing.T) {
	t.Parallel()
	type world = *executortest.World
	setA := func(t *testing.T, w world) writ.Step { return set(t, w, "s1", "a", "new") }
	task := func(end string) func(*testing.T, world) writ.Step {
		return func(t *testing.T, w world) writ.Step {
			return w.Step(t, "s1", "thing.task", writ.Object{"name": "a", "value": "new", "end": end})
		}
	}
	pair := func(t *testing.T, w world) writ.Step {
		return w.Step(t, "s1", "thing.pair", writ.Object{"first": "a", "second": "b", "value": "new"})
	}
	fault := func(f recorder.Fault) func(*testing.T, world) {
		return func(_ *testing.T, w world) { w.Recorder.Inject(f) }
	}
	for name, c := range map[string]struct {
		step    func(*testing.T, world) writ.Step
		before  func(*testing.T, world) // between approval and execution
		outcome writ.Outcome
		reason  string
		sent    int
		changed bool
		value   string // of the thing a afterwards
	}{
		"done": {step: setA, outcome: writ.Done, sent: 1, changed: true, value: "new"},
		"the target cannot be read": {step: setA, before: fault(recorder.Fault{Method: "GET", Path: "/", Mode: "answer", Status: 500}),
			outcome: writ.NotExecuted, reason: "observe_failed", value: "old"},
		"the state moved": {step: setA, before: func(_ *testing.T, w world) { w.Things.Set("a", "other") },
			outcome: writ.NotExecuted, reason: "stale", value: "other"},
		"the state moves after the backup": {step: setA,
			before:  fault(recorder.Fault{Method: "GET", Path: "/", Mode: "answer", Status: 200, Body: `{"value":"x"}`, Skip: 1}),
			outcome: writ.NotExecuted, reason: "stale", value: "old"},
		"backups open to others": {step: setA, before: func(t *testing.T, w world) { must(t, os.Chmod(w.Backups(), 0o755)) },
			outcome: writ.NotExecuted, reason: "backup_refused", value: "old"},
		"backups are a link": {step: setA, before: func(t *testing.T, w world) {
			must(t, os.Rename(w.Backups(), w.Backups()+".real"))
			must(t, os.Symlink(w.Backups()+".real", w.Backups()))
		}, outcome: writ.NotExecuted, reason: "backup_refused", value: "old"},
		"the target refuses before any effect": {step: setA, before: fault(recorder.Fault{Method: "PUT", Path: "/", Mode: "answer", Status: 403}),
			outcome: writ.NotExecuted, reason: "permission_denied", sent: 1, value: "old"},
		"the target says it did nothing": {step: func(t *testing.T, w world) writ.Step { return set(t, w, "s1", "a", "wrong") },
			outcome: writ.Failed, reason: "rejected", sent: 1, value: "old"},
		"the connection breaks before the effect": {step: setA, before: fault(recorder.Fault{Method: "PUT", Path: "/", Mode: "cut_before"}),
			outcome: writ.Unknown, reason: "broken_connection", sent: 1, changed: true, value: "old"},
		"the connection breaks after the effect": {step: setA, before: fault(recorder.Fault{Method: "PUT", Path: "/", Mode: "cut_after"}),
			outcome: writ.Unknown, reason: "broken_connection", sent: 1, changed: true, value: "new"},
		"a server error": {step: setA, before: fault(recorder.Fault{Method: "PUT", Path: "/", Mode: "answer", Status: 500}),
			outcome: writ.Unknown, reason: "server_error", sent: 1, changed: true, value: "old"},
		"the answer never comes": {step: setA, before: fault(recorder.Fault{Method: "PUT", Path: "/", Mode: "hang_after"}),
			outcome: writ.Unknown, reason: "timeout", sent: 1, changed: true, value: "new"},
		"taken but not done": {step: setA, before: func(_ *testing.T, w world) { w.Things.Ignore = true },
			outcome: writ.Unverified, reason: "verify_failed", sent: 1, changed: true, value: "old"},
		"it cannot be verified": {step: setA, before: fault(recorder.Fault{Method: "GET", Path: "/", Mode: "answer", Status: 500, Skip: 2}),
			outcome: writ.Unverified, reason: "verify_unreachable", sent: 1, changed: true, value: "new"},
		"the second call is refused": {step: pair, before: fault(recorder.Fault{Method: "PUT", Path: "/things/b", Mode: "answer", Status: 403}),
			outcome: writ.Unverified, reason: "partly_applied", sent: 2, changed: true, value: "new"},
		"the second call is lost": {step: pair, before: fault(recorder.Fault{Method: "PUT", Path: "/things/b", Mode: "cut_after"}),
			outcome: writ.Unknown, reason: "broken_connection", sent: 2, changed: true, value: "new"},
		"a task":                            {step: task("done"), outcome: writ.Done, sent: 1, changed: true, value: "new"},
		"a task that fails":                 {step: task("failed"), outcome: writ.Failed, reason: "task_failed", sent: 1, value: "old"},
		"a task with a word nobody knows":   {step: task("odd"), outcome: writ.Unknown, reason: "wait_odd", sent: 1, changed: true, value: "old"},
		"a task that does not end":          {step: task("running"), outcome: writ.Unknown, reason: "wait_timeout", sent: 1, changed: true, value: "old"},
		"a task that cannot be asked about": {step: task("done"), before: fault(recorder.Fault{Method: "GET", Path: "/tasks", Mode: "answer", Status: 500}), outcome: writ.Unknown, reason: "wait_timeout", sent: 1, changed: true, value: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			w.Things.Set("a", "old")
			o := w.Approved(t, writ.Stop, c.step(t, w))
			if c.before != nil {
				c.before(t, w)
			}
			w.Recorder.Reset()
			r := w.Run(t, o)[0]
			if r.Outcome != c.outcome || r.Reason != c.reason || r.Changed != c.changed {
				t.Errorf("%s %q changed=%v, want %s %q changed=%v: %s", r.Outcome, r.Reason, r.Changed, c.outcome, c.reason, c.changed, r.Detail)
			}
			if got := len(w.Recorder.Writes()); got != c.sent || len(r.Sent) != c.sent {
				t.Errorf("%d writes reached the target, the receipt says %d, want %d", got, len(r.Sent), c.sent)
			}
			if v, _ := w.Things.Value("a"); v != c.value {
				t.Errorf("the thing is %q, want %q", v, c.value)
			}
			if text, _ := json.Marshal(r); strings.Contains(string(text), executortest.Token) || strings.Contains(string(text), "hunter2") {
				t.Errorf("a secret is in the receipt: %s", text)
			}
			if (r.Outcome == writ.NotExecuted) != (r.Reason == "stale" || len(r.Sent) == 0 || r.Reason == "permission_denied") {
				t.Errorf("%s after %d writes", r.Outcome, len(r.Sent))
			}
			if r.Rollback != nil && r.Outcome != writ.Done && r.Outcome != writ.Unverified {
				t.Errorf("a way back after %s", r.Outcome)
			}
			if len(r.Sent) > 0 && (r.BackupStatus != writ.BackupVerified || r.BackupReference == "") {
				t.Errorf("written without a backup in the receipt: %+v", r)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestExecute_guardRefuses(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	observed, o := w.Observe(t, set(t, w, "s1", "vaulted", "x"))
	if len(o[0].Refusals) != 1 || o[0].Refusals[0] != "the thing vaulted is closed" {
		t.Errorf("Refusals = %q", o[0].Refusals)
	}
	x := w.Writ(writ.Execute, observed...)
	w.Approve(t, x, "mara")
	r := w.Run(t, x)[0]
	if r.Outcome != writ.NotExecuted || r.Reason != "guard_refused" || r.Detail != "the thing vaulted is closed" || len(w.Recorder.Writes()) != 0 {
		t.Errorf("%+v after %d writes", r, len(w.Recorder.Writes()))
	}
}

// What was valid at admission is checked again when a step begins, and once
// more directly before it acts: nothing is sent.
func TestExecute_checksAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, w *executortest.World)
		reason string
	}{
		"expired": {func(_ *testing.T, w *executortest.World) { w.Later(time.Hour) }, "expired"},
		"drained": {func(_ *testing.T, w *executortest.World) { w.Door.Close(admit.Draining()) }, "draining"},
		"revoked": {func(t *testing.T, w *executortest.World) {
			o := w.Writ(writ.Observe, set(t, w, "s1", "z", "x"))
			o.Epoch = 2
			_, err := w.Door.Admit(t.Context(), w.Seal(t, o))
			must(t, err)
		}, "stale_epoch"},
	} {
		for reads := range 3 { // at admission, after the first reading, after the second
			t.Run(fmt.Sprint(name, reads), func(t *testing.T) {
				t.Parallel()
				w := executortest.New(t)
				o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"), w.Step(t, "s2", "thing.export", writ.Object{"name": "a"}))
				a, err := w.Door.Admit(t.Context(), w.Seal(t, o))
				must(t, err)
				seen := 0
				w.Things.OnCall = func(string, string) {
					if seen++; seen == reads {
						c.change(t, w)
					}
				}
				if reads == 0 {
					c.change(t, w)
				}
				must(t, w.Runner.Execute(t.Context(), a))
				if diff := cmp.Diff([]string{"s1 not_executed " + c.reason, "s2 not_executed step_before_failed"}, ends(w.Receipts(t, o.Run))); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if n := len(w.Recorder.Writes()); n != 0 {
					t.Errorf("%d writes", n)
				}
			})
		}
	}
}

// No step begins after the end of the window, not even one that only reads.
func TestExecute_readsNothingTooLate(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	steps, _ := w.Observe(t, w.Step(t, "s1", "thing.export", writ.Object{"name": "a"}), w.Step(t, "s2", "thing.export", writ.Object{"name": "a"}))
	w.Things.OnCall = func(string, string) { w.Later(time.Hour) }
	if diff := cmp.Diff([]string{"s1 done", "s2 not_executed expired"}, ends(w.Run(t, w.Writ(writ.Execute, steps...)))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestExecute_readOnly(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "kept "+executortest.Token)
	steps, _ := w.Observe(t, w.Step(t, "s1", "thing.export", writ.Object{"name": "a"}), w.Step(t, "s2", "thing.peek", writ.Object{"name": "a"}))
	r := w.Run(t, w.Writ(writ.Execute, steps...)) // without approval
	if r[0].Outcome != writ.Done || r[0].Changed || r[0].BackupStatus != writ.BackupVerified || len(r[0].Checks) != 3 || len(r[0].Sent) != 0 {
		t.Errorf("%+v", r[0])
	}
	if diff := cmp.Diff(writ.Object{"value": "kept [redacted:value]"}, r[0].Outputs); diff != "" {
		t.Errorf("outputs (-want +got)\n%s", diff)
	}
	if r[1].Outcome != writ.Done || len(r[1].Outputs) != 0 || r[1].BackupStatus != writ.BackupNone || r[1].Checks[0].Name != "thing_is_full" {
		t.Errorf("a secret left the executor: %+v", r[1])
	}
	if n := len(w.Recorder.Writes()); n != 0 {
		t.Errorf("%d writes", n)
	}
	saved, err := os.ReadFile(filepath.Join(w.Backups(), r[0].Run, "s1.json"))
	if err != nil || !strings.Contains(string(saved), "kept "+executortest.Token) {
		t.Errorf("the export is not what was read: %s (%v)", saved, err)
	}
}

// What a target answers may be too large for a receipt; its outcome is told all the same.
func TestExecute_largeOutput(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	for name, size := range map[string]int{"fits": 1000, "fills": 1<<20 - 500, "bursts": 2 << 20} {
		w.Things.Set(name, strings.Repeat("x", size))
		steps, _ := w.Observe(t, w.Step(t, "s1", "thing.export", writ.Object{"name": name}))
		r := w.Run(t, w.Writ(writ.Execute, steps...))[0]
		if r.Outcome != writ.Done || r.BackupStatus != writ.BackupVerified || (len(r.Outputs) == 0) != (r.Detail != "") || (len(r.Outputs) == 1) != (name == "fits") {
			t.Errorf("%s: %s with %d outputs: %s", name, r.Outcome, len(r.Outputs), r.Detail)
		}
	}
}

func TestExecute_takesOnlyWhatIsAdmittedForIt(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	a, err := w.Door.Admit(t.Context(), w.Seal(t, w.Writ(writ.Observe, set(t, w, "s1", "a", "x"))))
	must(t, err)
	if err := w.Runner.Execute(t.Context(), a); fault.ReasonOf(err) != "not_admitted" {
		t.Errorf("an observe writ was executed: %v", err)
	}
	if err := w.Runner.Execute(t.Context(), admit.Admitted{}); fault.ReasonOf(err) != "not_admitted" {
		t.Errorf("nothing was executed: %v", err)
	}
	x := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "x"))
	a, err = w.Door.Admit(t.Context(), w.Seal(t, x))
	must(t, err)
	if _, err := w.Runner.Observe(t.Context(), a); fault.ReasonOf(err) != "not_admitted" {
		t.Errorf("an execute writ was observed: %v", err)
	}
	must(t, w.Runner.Execute(t.Context(), a))
	if err := w.Runner.Execute(t.Context(), a); err == nil || len(w.Recorder.Writes()) != 1 {
		t.Errorf("a second Execute: %v, %d writes", err, len(w.Recorder.Writes()))
	}
}

// A journal that cannot be written stops everything: nothing leaves without its intent.
//
// Case: C050.
func TestExecute_journalFails(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "x"))
	a, err := w.Door.Admit(t.Context(), w.Seal(t, o))
	must(t, err)
	must(t, w.Journal.Close())
	if err := w.Runner.Execute(t.Context(), a); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("Execute: %v", err)
	}
	if n := len(w.Recorder.Writes()); n != 0 {
		t.Errorf("%d writes left", n)
	}
	if err := w.Door.Closed(); fault.ReasonOf(err) != "journal_failed" {
		t.Errorf("the door is open: %v", err)
	}
	w.Journal = nil
	w.Restart(t)
	must(t, w.Runner.Recover(t.Context()))
	if r := w.Receipts(t, o.Run)[0]; r.Outcome != writ.NotExecuted || r.Reason != "executor_restarted" {
		t.Errorf("%s %s", r.Outcome, r.Reason)
	}
}

// BenchmarkExecute is one change from admission to its receipt.
func BenchmarkExecute(b *testing.B) {
	w := executortest.New(b)
	w.Rules.ObservePerMinute = 1 << 30
	w.Door.Use(w.Rules)
	for i := 0; b.Loop(); i++ {
		o := w.Approved(b, writ.Stop, w.Step(b, "s1", "thing.set", writ.Object{"name": "a", "value": fmt.Sprint(i)}))
		if r := w.Run(b, o); r[0].Outcome != writ.Done {
			b.Fatal(r[0].Detail)
		}
	}
}

// A panic in a run closes the door, and what it says goes into the log, where
// secrets are taken out.
func TestExecute_panics(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	steps, _ := w.Observe(t, w.Step(t, "s1", "thing.export", writ.Object{"name": "a"}))
	a, err := w.Door.Admit(t.Context(), w.Seal(t, w.Writ(writ.Execute, steps...)))
	if err != nil {
		t.Fatal(err)
	}
	parts := w.Runner.Parts
	parts.Redactor = func() *redact.Redactor { panic("out of words") }
	err = run.New(parts).Execute(t.Context(), a)
	if fault.CodeOf(err) != fault.Internal || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "out of words") || strings.Contains(fault.TextOf(err), "out of words") {
		t.Errorf("Execute: %v, because of %v", err, errors.Unwrap(err))
	}
	if w.Door.Closed() == nil {
		t.Error("the door is open after a panic")
	}
}

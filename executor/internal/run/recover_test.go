package run_test

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/connector/recorder"
	"writ/executor/internal/executortest"
	"writ/executor/internal/journal"
	"writ/fault"
)

// What was cut off before the key changed is settled after it: the receipts that
// were given stay as the old key signed them, those that were lacking are signed
// with the new one.
func TestRecover_withAnotherKey(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"), set(t, w, "s2", "b", "new"))
	w.Run(t, o)
	entries, err := w.Journal.Entries(t.Context(), o.Run)
	must(t, err)
	w.Rewind(t, o, entries[:7]) // the second step is sent, and not answered
	old := writ.KeyID(ed25519.PublicKey(w.Own[ed25519.SeedSize:]))
	w.Rotate(t, "next")
	must(t, w.Runner.Recover(t.Context()))
	if diff := cmp.Diff([]string{"s1 done", "s2 unknown executor_restarted"}, ends(w.Receipts(t, o.Run))); diff != "" {
		t.Error(diff)
	}
	state, err := w.Journal.State(t.Context(), o.Run, 0)
	must(t, err)
	if a, b := writ.SealedBy(state.Receipts[0]), writ.SealedBy(state.Receipts[1]); a != old || b != writ.KeyID(ed25519.PublicKey(w.Own[ed25519.SeedSize:])) {
		t.Errorf("the receipts are signed with %s and %s", a, b)
	}
	w.Recorder.Reset()
	found := probe(t, w, o)
	if len(found) != 2 || found[0].Verdict != writ.Happened {
		t.Errorf("%+v", found)
	}
}

// What a gate began before its key changed is settled, and nothing else that the
// old key signed is taken.
func TestRecover_gateKeyChanged(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"))
	w.Rewind(t, o, nil)
	old := w.Rules.Keys
	w.Rules.Keys = writ.NewKeyring(executortest.Key("the gate's next").Public().(ed25519.PublicKey))
	w.Door.Use(w.Rules)
	if err := w.Runner.Recover(t.Context()); !strings.Contains(fault.TextOf(err), "former_gate_keys") {
		t.Errorf("a key that never was a gate's: %v", err)
	}
	w.Rules.Former = old
	w.Door.Use(w.Rules)
	must(t, w.Runner.Recover(t.Context()))
	if diff := cmp.Diff([]string{"s1 not_executed executor_restarted"}, ends(w.Receipts(t, o.Run))); diff != "" {
		t.Error(diff)
	}
	if _, err := w.Door.Admit(t.Context(), w.Seal(t, w.Writ(writ.Halt))); fault.ReasonOf(err) != "unknown_key" {
		t.Errorf("another writ of the old key: %v", err)
	}
}

// The process is killed after every entry of the journal in turn. Whatever was
// written down before decides how each step ends, and nothing is sent again.
//
// Long on purpose: one row a place to be killed at.
func TestRecover_afterEachEntry(t *testing.T) {
	t.Parallel()
	type world = *executortest.World
	for name, c := range map[string]struct {
		steps     func(*testing.T, world) []writ.Step
		onFailure writ.OnFailure
		want      [][]string // after so many entries
	}{
		"one step": {
			steps: func(t *testing.T, w world) []writ.Step { return []writ.Step{set(t, w, "s1", "a", "new")} },
			want: [][]string{
				{"s1 not_executed executor_restarted"},
				{"s1 not_executed executor_restarted"}, // backup
				{"s1 unknown executor_restarted"},      // sent
				{"s1 done"},                            // result
				{"s1 done"},                            // applied
				{"s1 done"},                            // receipt
			},
		},
		"two calls": {
			steps: func(t *testing.T, w world) []writ.Step {
				return []writ.Step{w.Step(t, "s1", "thing.pair", writ.Object{"first": "a", "second": "b", "value": "new"})}
			},
			want: [][]string{
				{"s1 not_executed executor_restarted"},
				{"s1 not_executed executor_restarted"}, // backup
				{"s1 unknown executor_restarted"},      // sent
				{"s1 unknown executor_restarted"},      // result of the first
				{"s1 unknown executor_restarted"},      // sent
				{"s1 done"},                            // result of the second
				{"s1 done"},
				{"s1 done"},
			},
		},
		"a task": {
			steps: func(t *testing.T, w world) []writ.Step {
				return []writ.Step{w.Step(t, "s1", "thing.task", writ.Object{"name": "a", "value": "new", "end": "done"})}
			},
			want: [][]string{
				{"s1 not_executed executor_restarted"},
				{"s1 not_executed executor_restarted"}, // backup
				{"s1 unknown executor_restarted"},      // sent
				{"s1 unknown executor_restarted"},      // result: the task may go on
				{"s1 done"},                            // applied
				{"s1 done"},
			},
		},
		"a refusal, and its rollback": {
			steps: func(t *testing.T, w world) []writ.Step {
				return []writ.Step{set(t, w, "s1", "a", "new"), set(t, w, "s2", "b", "wrong")}
			},
			onFailure: writ.Rollback,
			want: [][]string{
				{"s1 not_executed executor_restarted", "s2 not_executed step_before_failed"},
				{"s1 not_executed executor_restarted", "s2 not_executed step_before_failed"}, // backup
				{"s1 unknown executor_restarted", "s2 not_executed step_before_failed"},      // sent
				// The target is by now as after the rollback, so these cannot be verified.
				{"s1 unverified verify_failed", "s2 not_executed step_before_failed"}, // result
				{"s1 unverified verify_failed", "s2 not_executed step_before_failed"}, // applied
				{"s1 done", "s2 not_executed executor_restarted"},                     // receipt
				{"s1 done", "s2 not_executed executor_restarted"},                     // backup
				{"s1 done", "s2 unknown executor_restarted"},                          // sent
				{"s1 done", "s2 failed rejected"},                                     // result
				{"s1 done", "s2 failed rejected"},                                     // receipt
				{"s1 done", "s2 failed rejected"},                                     // backup of the way back
				{"s1 done", "s2 failed rejected", "s1 unknown executor_restarted"},    // sent
				{"s1 done", "s2 failed rejected", "s1 unknown executor_restarted"},    // result
				{"s1 done", "s2 failed rejected", "s1 unknown executor_restarted"},    // applied
				{"s1 done", "s2 failed rejected", "s1 rolled_back"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			w.Things.Set("a", "old")
			if c.onFailure == "" {
				c.onFailure = writ.Stop
			}
			o := w.Approved(t, c.onFailure, c.steps(t, w)...)
			w.Run(t, o)
			entries, err := w.Journal.Entries(t.Context(), o.Run)
			must(t, err)
			if len(entries)+1 != len(c.want) {
				t.Fatalf("%d entries, %d rows", len(entries), len(c.want))
			}
			w.Recorder.Reset()
			for n := range c.want {
				w.Rewind(t, o, entries[:n])
				must(t, w.Runner.Recover(t.Context()))
				receipts := w.Receipts(t, o.Run)
				if diff := cmp.Diff(c.want[n], ends(receipts)); diff != "" {
					t.Errorf("after %d entries (-want +got)\n%s", n, diff)
				}
				for _, r := range receipts {
					if r.BackupStatus == writ.BackupVerified && (r.BackupReference == "" || !r.BackupDigest.Valid()) || r.Outcome == writ.Unknown && len(r.Sent) == 0 {
						t.Errorf("after %d entries: %+v", n, r)
					}
				}
				if runs, err := w.Journal.Unfinished(t.Context()); err != nil || len(runs) != 0 {
					t.Errorf("after %d entries: %d runs are not settled (%v)", n, len(runs), err)
				}
			}
			if sent := w.Recorder.Writes(); len(sent) != 0 {
				t.Errorf("recovery wrote: %v", sent)
			}
		})
	}
}

// What was applied is verified again; where that is not possible, it is unverified.
func TestRecover_verifiesAgain(t *testing.T) {
	t.Parallel()
	type world = *executortest.World
	for name, c := range map[string]struct {
		before func(w world)
		want   string
		way    bool
	}{
		"as it should be": {func(world) {}, "s1 done", true},
		"changed since":   {func(w world) { w.Things.Set("a", "other") }, "s1 unverified verify_failed", true},
		"not to be reached": {func(w world) {
			w.Recorder.Inject(recorder.Fault{Method: "GET", Path: "/", Mode: "answer", Status: 500})
		}, "s1 unverified verify_interrupted", true},
		"no such system": {func(w world) { w.Systems = executortest.Systems{} }, "s1 unverified verify_interrupted", true},
		"another catalog": {func(w world) {
			w.Rules.Systems = nil // the step no longer measures up to the rules
		}, "s1 unverified verify_interrupted", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			w.Things.Set("a", "old")
			o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"))
			w.Run(t, o)
			entries, err := w.Journal.Entries(t.Context(), o.Run)
			must(t, err)
			c.before(w)
			w.Rewind(t, o, entries[:4])
			must(t, w.Runner.Recover(t.Context()))
			r := w.Receipts(t, o.Run)[0]
			if got := ends([]writ.Receipt{r})[0]; got != c.want {
				t.Errorf("%s, want %s: %s", got, c.want, r.Detail)
			}
			if (r.Rollback != nil) != c.way || !r.Changed {
				t.Errorf("%+v", r)
			}
		})
	}
}

// The journal fails between a write and its result: the door closes, and the
// next start says that the outcome is unknown.
func TestExecute_journalFailsAfterTheWrite(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := w.Approved(t, writ.Rollback, set(t, w, "s1", "a", "new"), set(t, w, "s2", "b", "new"))
	a, err := w.Door.Admit(t.Context(), w.Seal(t, o))
	must(t, err)
	w.Things.OnCall = func(method, _ string) {
		if method == "PUT" {
			_ = w.Journal.Close()
		}
	}
	if err := w.Runner.Execute(t.Context(), a); err == nil || fault.ReasonOf(w.Door.Closed()) != "journal_failed" {
		t.Errorf("Execute: %v; the door: %v", err, w.Door.Closed())
	}
	w.Journal = nil
	w.Restart(t)
	must(t, w.Runner.Recover(t.Context()))
	if diff := cmp.Diff([]string{"s1 unknown executor_restarted", "s2 not_executed step_before_failed"}, ends(w.Receipts(t, o.Run))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := len(w.Recorder.Writes()); n != 1 {
		t.Errorf("%d writes", n)
	}
}

func TestRecover_needsTheKeyOfTheGate(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"))
	w.Rules.Keys = writ.Keyring{}
	w.Rewind(t, o, nil)
	if err := w.Runner.Recover(t.Context()); err == nil {
		t.Error("a writ of an unknown gate was settled")
	}
	if runs, err := w.Journal.Unfinished(t.Context()); err != nil || len(runs) != 1 {
		t.Errorf("the run is gone: %v %v", runs, err)
	}
}

// For one writ and one step, at most one sent a call, whatever the outcome.
func TestExecute_sendsEachCallOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "cut_before", "cut_after", "answer"} {
		w := executortest.New(t)
		o := w.Approved(t, writ.Rollback, set(t, w, "s1", "a", "new"), w.Step(t, "s2", "thing.pair", writ.Object{"first": "b", "second": "c", "value": "new"}))
		if mode != "" {
			w.Recorder.Inject(recorder.Fault{Method: "PUT", Path: "/things/c", Mode: mode, Status: 403})
		}
		w.Run(t, o)
		entries, err := w.Journal.Entries(t.Context(), o.Run)
		must(t, err)
		type call struct {
			step string
			undo bool
			call int
		}
		sent := map[call]int{}
		open := map[string]bool{}
		for _, e := range entries {
			switch e.Kind {
			case journal.Sent:
				sent[call{e.Step, e.Undo, e.Call}]++
				open[e.Mark] = true
			case journal.Result:
				if !open[e.Mark] {
					t.Errorf("%s: a result without its sent", mode)
				}
				delete(open, e.Mark)
			}
		}
		for c, n := range sent {
			if n != 1 {
				t.Errorf("%s: %v was sent %d times", mode, c, n)
			}
		}
		if len(open) != 0 {
			t.Errorf("%s: sent without a result: %v", mode, open)
		}
		if n := len(w.Recorder.Writes()); n != len(sent) {
			t.Errorf("%s: %d writes reached the target, %d are in the journal", mode, n, len(sent))
		}
	}
}

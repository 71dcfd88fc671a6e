package pipeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/store"
)

// halfway carries out a plan of three steps whose second fails, and returns it
// with the change that was planned to undo it.
func (w *world) halfway() (original, undoing *model.Change) {
	w.t.Helper()
	w.executor.tell(func() { w.executor.outcomes["mock/b"] = writ.Failed })
	original = w.carriedOut(request(step("s1", "set", "a"), step("s2", "set", "b", "s1"), step("s3", "set", "c", "s2")))
	w.executor.tell(func() { clear(w.executor.outcomes) })
	tries := w.undoing(original.ID)
	if len(tries) != 1 {
		w.t.Fatalf("%d changes are to undo it", len(tries))
	}
	return original, tries[0]
}

// undoing returns the changes that are to undo another, the oldest first.
func (w *world) undoing(id string) []*model.Change {
	w.t.Helper()
	all, err := w.Changes(w.t.Context(), audrey, store.ChangeFilter{})
	if err != nil {
		w.t.Fatal(err)
	}
	var tries []*model.Change
	for _, c := range all {
		if c.Request.RollbackOf == id {
			tries = append([]*model.Change{c}, tries...)
		}
	}
	return tries
}

func TestRollback_plannedWhenAPlanStopsHalfWay(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		original, undoing := w.halfway()
		names := map[string]string{original.ID: "original", undoing.ID: "undoing"}
		outcomes := []writ.Outcome{}
		for _, r := range original.Newest() {
			outcomes = append(outcomes, r.Outcome)
		}
		if diff := cmp.Diff([]writ.Outcome{writ.Done, writ.Failed, writ.NotExecuted}, outcomes); diff != "" {
			t.Errorf("the outcomes differ (-want +got):\n%s", diff)
		}
		if undoing.State != model.AwaitingApproval || undoing.RequestedBy != planner.Principal || undoing.Envelope.RollbackOf != original.ID {
			t.Errorf("the rollback is %s, asked for by %v", undoing.State, undoing.RequestedBy)
		}
		if len(undoing.Steps) != 1 || undoing.Steps[0].Entity != "mock/a" || undoing.Steps[0].Params["value"] != "old" {
			t.Errorf("the rollback does %v", undoing.Steps)
		}
		if diff := cmp.Diff([]string{"mock/a orphaned original"}, w.locks(names)); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
		if got := w.approve(undoing.ID, alice); got.State != model.Done || w.told(undoing.ID) != approvedEvents+toReceipt+freed {
			t.Errorf("the rollback is %s with the events %q", got.State, w.told(undoing.ID))
		}
		if locks := w.locks(names); len(locks) != 0 {
			t.Errorf("the locks are %q", locks)
		}
		if c := w.see(original.ID); c.State != model.Failed {
			t.Errorf("undoing moved the original to %s", c.State)
		}
		if c := w.carriedOut(request(step("s1", "set", "a"))); c.State != model.Done {
			t.Errorf("what was undone cannot be changed: %s", c.State)
		}
		for _, who := range []model.Caller{planner, olga} {
			_, err := w.Rollback(t.Context(), who, original.ID)
			refused(t, "undo twice", err, fault.Spent, "undone_before")
		}
	})
}

// A rollback that does not succeed leaves the target to the next one.
func TestRollback_thatFails(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]func(*executor){
		"as before":    func(x *executor) { x.outcomes["mock/a"] = writ.Failed },
		"not executed": func(x *executor) { x.outcomes["mock/a"] = writ.NotExecuted },
		"not verified": func(x *executor) { x.outcomes["mock/a"] = writ.Unverified },
		"refused":      func(x *executor) { x.take = func(*writ.Writ) error { return fault.New(fault.Refused, "No.") } },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				original, first := w.halfway()
				w.executor.tell(func() { told(w.executor) })
				got := w.approve(first.ID, alice)
				names := map[string]string{original.ID: "original", first.ID: "first"}
				if !got.State.Ended() || got.State == model.Done {
					t.Fatalf("the rollback is %s", got.State)
				}
				if diff := cmp.Diff([]string{"mock/a orphaned original"}, w.locks(names)); diff != "" {
					t.Errorf("the locks differ (-want +got):\n%s", diff)
				}
				if events := w.events(original.ID); events[len(events)-1].Type != model.LockLeft || events[len(events)-1].Entity != "mock/a" {
					t.Errorf("that the original has its lock again is told by %+v", events[len(events)-1])
				}
				if other := w.carriedOut(request(step("s1", "set", "a"))); other.State != model.Approved {
					t.Errorf("another change of what is left is %s", other.State)
				}
				w.executor.tell(func() { clear(w.executor.outcomes); w.executor.take = nil })
				second, err := w.Rollback(t.Context(), olga, original.ID)
				if err != nil || second.ID == first.ID {
					t.Fatalf("undo again: %v", err)
				}
				w.settle()
				if got := w.approve(second.ID, alice); got.State != model.Done || len(w.locks(nil)) != 0 {
					t.Errorf("the second rollback is %s, the locks are %q", got.State, w.locks(nil))
				}
			})
		})
	}
}

// Case: C157.
func TestRollback_thatStopsHalfWay(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.outcomes["mock/c"] = writ.Failed })
		original := w.carriedOut(request(step("s1", "set", "a"), step("s2", "set", "b"), step("s3", "set", "c")))
		w.executor.tell(func() {
			clear(w.executor.outcomes)
			w.executor.outcomes["mock/a"] = writ.Failed
		})
		first := w.undoing(original.ID)[0]
		if got := w.approve(first.ID, alice); got.State != model.Failed || !got.Applied() {
			t.Fatalf("the rollback is %s", got.State)
		}
		if diff := cmp.Diff([]string{"mock/a orphaned original", "mock/b orphaned original"}, w.locks(map[string]string{original.ID: "original"})); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
		if tries := w.undoing(first.ID); len(tries) != 0 {
			t.Errorf("undoing the undoing was planned by itself")
		}
		w.executor.tell(func() { clear(w.executor.outcomes) })
		second, err := w.Rollback(t.Context(), planner, original.ID)
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		if got := w.approve(second.ID, alice); got.State != model.Done || len(w.locks(nil)) != 0 {
			t.Errorf("the second rollback is %s, the locks are %q", got.State, w.locks(nil))
		}
	})
}

func TestRollback_withAnUnknownOutcome(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		original, first := w.halfway()
		w.executor.tell(func() { w.executor.outcomes["mock/a"] = writ.Unknown })
		if got := w.approve(first.ID, alice); got.State != model.Unknown {
			t.Fatalf("the rollback is %s", got.State)
		}
		names := map[string]string{original.ID: "original", first.ID: "first"}
		if diff := cmp.Diff([]string{"mock/a orphaned first"}, w.locks(names)); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
		w.executor.tell(func() { clear(w.executor.outcomes) })
		second, err := w.Rollback(t.Context(), planner, original.ID)
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		if got := w.approve(second.ID, alice); got.State != model.Approved {
			t.Errorf("a second rollback beside an unknown one is %s", got.State)
		}
	})
}

// What people make of a rollback whose outcome was unknown decides about the
// change that it was to undo, too.
func TestRollback_reconciled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict    writ.Verdict
		resolution model.Resolution
		end        model.State
		undone     bool
		locks      []string
	}{
		"it happened":         {writ.Happened, model.Adopt, model.Done, true, []string{}},
		"it did not happen":   {writ.DidNotHappen, model.Absent, model.Failed, false, []string{"mock/a orphaned original"}},
		"somebody saw it":     {writ.CannotTell, model.Adopt, model.Unverified, false, []string{"mock/a orphaned original"}},
		"somebody saw it not": {writ.CannotTell, model.Absent, model.Failed, false, []string{"mock/a orphaned original"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				original, first := w.halfway()
				w.executor.tell(func() {
					w.executor.outcomes["mock/a"] = writ.Unknown
					w.executor.found = func(f *writ.Finding) { f.Verdict = c.verdict }
				})
				w.approve(first.ID, alice)
				_, found, _, err := w.Probe(t.Context(), alice, first.ID)
				if err != nil {
					t.Fatal(err)
				}
				got, err := w.Reconcile(t.Context(), alice, first.ID, pipeline.Settlement{
					ShownDigest: found.ShownDigest, Resolution: c.resolution, Phrase: found.Phrase, Note: "I looked.",
				})
				if err != nil || got.State != c.end {
					t.Fatalf("the rollback is %+v: %v", got, err)
				}
				names := map[string]string{original.ID: "original", first.ID: "first"}
				if diff := cmp.Diff(c.locks, w.locks(names)); diff != "" {
					t.Errorf("the locks differ (-want +got):\n%s", diff)
				}
				after := w.see(original.ID)
				if after.Held() == c.undone || c.undone && after.UndoneBy != first.ID || after.State != original.State {
					t.Errorf("the original is %s, undone by %q", after.State, after.UndoneBy)
				}
				if told := w.told(original.ID); strings.HasSuffix(told, " change.undone") != c.undone {
					t.Errorf("its events are %s", told)
				}
				w.executor.tell(func() { clear(w.executor.outcomes); w.executor.found = nil })
				if c.undone {
					_, err = w.Rollback(t.Context(), olga, original.ID)
					refused(t, "undo it again", err, fault.Spent, "undone_before")
					return
				}
				second, err := w.Rollback(t.Context(), olga, original.ID)
				if err != nil {
					t.Fatal(err)
				}
				w.settle()
				if got := w.approve(second.ID, alice); got.State != model.Done || len(w.locks(nil)) != 0 || w.see(original.ID).UndoneBy != second.ID {
					t.Errorf("the second rollback is %s, the locks are %q", got.State, w.locks(nil))
				}
			})
		})
	}
}

func TestRollback_ofWhatIsDone(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		done := w.carriedOut(request(step("first-step-with-a-very-long-name", "set", "a"), step("s2", "read", "b", "first-step-with-a-very-long-name"),
			step("s3", "set", "c", "s2"), step("s4", "set", "a"), step("s5", "set", "d")))
		if tries := w.undoing(done.ID); done.State != model.Done || len(tries) != 0 {
			t.Fatalf("it is %s, and %d changes are to undo it", done.State, len(tries))
		}
		_, err := w.Rollback(t.Context(), stranger, done.ID)
		refused(t, "undo what one may not see", err, fault.NotFound, "")
		_, err = w.Rollback(t.Context(), alice, done.ID)
		refused(t, "undo what is not one's own", err, fault.Denied, "not_yours")
		undoing, err := w.Rollback(t.Context(), planner, done.ID)
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		undoing = w.see(undoing.ID)
		var entities []string
		for _, s := range undoing.Steps {
			entities = append(entities, s.Entity+" "+strings.Join(s.Needs, ","))
		}
		if diff := cmp.Diff([]string{"mock/d ", "mock/a ", "mock/c ", "mock/a undo-2,undo-3"}, entities); diff != "" {
			t.Errorf("the order of undoing differs (-want +got):\n%s", diff)
		}
		if got := w.approve(undoing.ID, alice); got.State != model.Done || len(w.locks(nil)) != 0 {
			t.Errorf("the rollback is %s", got.State)
		}
		redo, err := w.Rollback(t.Context(), planner, undoing.ID)
		if err != nil || redo.Request.RollbackOf != undoing.ID {
			t.Errorf("undo the undoing: %v", err)
		}
	})
}

func TestRollback_asked(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		waiting := w.propose(request(step("s1", "set", "b")))
		_, err := w.Rollback(t.Context(), planner, waiting.ID)
		refused(t, "undo what has not ended", err, fault.Conflict, "not_ended")
		read := w.propose(request(step("s1", "read", "a")))
		_, err = w.Rollback(t.Context(), planner, read.ID)
		refused(t, "undo a read", err, fault.Unsupported, "no_way_back")
		burnt := w.carriedOut(request(step("s1", "burn", "a")))
		_, err = w.Rollback(t.Context(), planner, burnt.ID)
		refused(t, "undo what has no way back", err, fault.Unsupported, "no_way_back")

		done := w.carriedOut(request(step("s1", "set", "a")))
		ids := make([]string, 16)
		for _, err := range w.atOnce(16, func(_ model.Caller, i int) error {
			c, err := w.Rollback(t.Context(), []model.Caller{planner, olga}[i%2], done.ID)
			if err == nil {
				ids[i] = c.ID
			}
			return err
		}) {
			if err != nil {
				t.Errorf("undo at once: %v", err)
			}
		}
		w.settle()
		if tries := w.undoing(done.ID); len(tries) != 1 || tries[0].State != model.AwaitingApproval {
			t.Fatalf("%d changes are to undo it", len(tries))
		}
		for _, id := range ids {
			if id != ids[0] {
				t.Errorf("who asked at once was told of %s and %s", ids[0], id)
			}
		}
	})
}

// Who reads of a failed rollback reads what is left of it.
//
// Case: C158.
func TestRollback_namesWhatIsNotUndone(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() {
			w.executor.outcomes["mock/c"] = writ.Failed
			w.executor.outcomes["undo mock/a"] = writ.RollbackFailed
		})
		r := request(step("s1", "set", "a"), step("s2", "set", "b"), step("s3", "set", "c"))
		r.OnFailure = writ.Rollback
		c := w.carriedOut(r)
		if c.State != model.RollbackFailed || !strings.HasSuffix(c.Trouble.Text, " Not undone: s1.") {
			t.Errorf("it is %s: %+v", c.State, c.Trouble)
		}
		if diff := cmp.Diff([]string{"mock/a orphaned it"}, w.locks(map[string]string{c.ID: "it"})); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
	})
}

// Only the gate says what a change undoes: it gives the right to a lock.
func TestRollback_isNotForARequesterToSay(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		original, undoing := w.halfway()
		if _, err := w.Cancel(t.Context(), planner, undoing.ID); err != nil {
			t.Fatal(err)
		}
		r := request(step("s1", "wipe", "a"))
		r.RollbackOf = original.ID
		c := w.carriedOut(r)
		if c.Request.RollbackOf != "" || c.State != model.Approved {
			t.Errorf("it undoes %q and is %s", c.Request.RollbackOf, c.State)
		}
		if diff := cmp.Diff([]string{"mock/a orphaned original"}, w.locks(map[string]string{original.ID: "original"})); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
	})
}

func TestRollback_notPlannedAgainOnceItWasRejected(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		original, undoing := w.halfway()
		if _, err := w.Reject(t.Context(), alice, undoing.ID, "let it be"); err != nil {
			t.Fatal(err)
		}
		w.restart()
		w.later(2 * time.Second)
		if tries := w.undoing(original.ID); len(tries) != 1 {
			t.Errorf("%d changes are to undo it", len(tries))
		}
	})
}

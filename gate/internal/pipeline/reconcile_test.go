package pipeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/artifact"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
)

const (
	probed     = " change.probed"
	reconciled = " change.reconciled"
	released   = " lock.released"
)

// doubt carries out one step whose outcome is not learned.
func (w *world) doubt(o writ.Outcome) *model.Change {
	w.t.Helper()
	w.executor.tell(func() { w.executor.outcomes["mock/a"] = o })
	c := w.carriedOut(request(step("s1", "set", "a")))
	w.executor.tell(func() { clear(w.executor.outcomes) })
	return c
}

// finds makes the executor find this of every step.
func (w *world) finds(v writ.Verdict) {
	w.executor.tell(func() { w.executor.found = func(f *writ.Finding) { f.Verdict = v } })
}

func (w *world) probe(id string) artifact.Found {
	w.t.Helper()
	_, found, _, err := w.Probe(w.t.Context(), alice, id)
	if err != nil {
		w.t.Fatalf("probe: %v (%s)", err, fault.CodeOf(err))
	}
	return found
}

// decideAs looks, and decides on what is shown.
func (w *world) decideAs(who model.Caller, id string, r model.Resolution) (*model.Change, error) {
	w.t.Helper()
	found := w.probe(id)
	return w.Reconcile(w.t.Context(), who, id, pipeline.Settlement{ShownDigest: found.ShownDigest, Resolution: r, Phrase: found.Phrase, Note: "I looked."})
}

func (w *world) reconcile(id string, r model.Resolution) *model.Change {
	w.t.Helper()
	if _, err := w.decideAs(alice, id, r); err != nil {
		w.t.Fatalf("reconcile: %v (%s)", err, fault.CodeOf(err))
	}
	w.settle()
	return w.see(id)
}

// One row for each end that leaves a target in doubt, what is found there, and
// what a person makes of it.
func TestReconcile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome    writ.Outcome
		found      writ.Verdict
		resolution model.Resolution
		want       model.State
		events     string
		code       fault.Code
		undoing    string // the change that undoes it
	}{
		{writ.Unknown, writ.Happened, model.Adopt, model.Done, reconciled + released, "", ""},
		{writ.Unknown, writ.DidNotHappen, model.Absent, model.Failed, reconciled + released, fault.Failed, ""},
		{writ.Unknown, writ.Happened, model.RollBack, model.Unverified, reconciled, fault.Unverified, "awaiting_approval"},
		{writ.Unknown, writ.CannotTell, model.Adopt, model.Unverified, reconciled + released, fault.Unverified, ""},
		{writ.Unknown, writ.CannotTell, model.Absent, model.Failed, reconciled + released, fault.Failed, ""},
		{writ.Unknown, writ.CannotTell, model.RollBack, model.Unverified, reconciled, fault.Unverified, "awaiting_approval"},
		{writ.Unverified, writ.Happened, model.Adopt, model.Done, reconciled + released, "", "cancelled"},
		{writ.Unverified, writ.DidNotHappen, model.Absent, model.Failed, reconciled + released, fault.Failed, "cancelled"},
		{writ.Unverified, writ.CannotTell, model.Adopt, model.Unverified, reconciled + released, fault.Unverified, "cancelled"},
		{writ.Unverified, writ.Happened, model.RollBack, model.Unverified, reconciled, fault.Unverified, "awaiting_approval"},
	} {
		t.Run(strings.Join([]string{string(c.outcome), string(c.found), string(c.resolution)}, " "), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				id := w.doubt(c.outcome).ID
				before := w.told(id)
				w.finds(c.found)
				got := w.reconcile(id, c.resolution)
				if got.State != c.want || got.Code() != c.code {
					t.Errorf("it is %s (%q)", got.State, got.Code())
				}
				if diff := cmp.Diff(before+probed+c.events, w.told(id)); diff != "" {
					t.Errorf("the events differ (-want +got):\n%s", diff)
				}
				held := c.resolution == model.RollBack
				if n := len(w.locks(nil)); n > 0 != held || got.Held() != held {
					t.Errorf("%d locks hold", n)
				}
				undoing := ""
				for _, u := range w.undoing(id) {
					undoing = string(u.State)
				}
				if undoing != c.undoing {
					t.Errorf("what undoes it is %q", undoing)
				}
				r := got.Reconciliation
				if r == nil || r.By != alice.Principal || r.Verdict != c.found || r.Note != "I looked." || len(r.Findings) != 1 || string(r.Findings[0].Sealed) != "sealed s1" {
					t.Errorf("the decision is kept as %+v", r)
				}
				if w.executor.sent() != 1 || w.executor.probes != 2 {
					t.Errorf("%d writs and %d probes were sent", w.executor.sent(), w.executor.probes)
				}
				if next := w.carriedOut(request(step("s1", "set", "a"))); (next.State == model.Done) == held {
					t.Errorf("the next change of it is %s", next.State)
				}
			})
		})
	}
}

// What is to be undone keeps its lock until it is, and leaves it free then.
func TestReconcile_rollBackToItsEnd(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		c := w.doubt(writ.Unknown)
		_, err := w.Rollback(t.Context(), planner, c.ID)
		refused(t, "undo what is not known", err, fault.Conflict, "unknown_outcome")
		undoing, err := w.decideAs(alice, c.ID, model.RollBack)
		if err != nil || undoing.Request.RollbackOf != c.ID || undoing.RequestedBy != planner.Principal {
			t.Fatalf("%+v %v", undoing, err)
		}
		w.settle()
		if got := w.approve(undoing.ID, alice); got.State != model.Done || len(w.locks(nil)) != 0 {
			t.Errorf("the rollback is %s, the locks are %q", got.State, w.locks(nil))
		}
		_, _, _, err = w.Probe(t.Context(), alice, c.ID)
		refused(t, "look at what was undone", err, fault.Conflict, "undone_before")
	})
}

func TestReconcile_refuses(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.doubt(writ.Unknown).ID
		shown := w.probe(id)
		told := w.told(id)
		try := func(what string, who model.Caller, s pipeline.Settlement, code fault.Code, reason string) {
			t.Helper()
			if s.ShownDigest == "" {
				s.ShownDigest = shown.ShownDigest
			}
			_, err := w.Reconcile(t.Context(), who, id, s)
			refused(t, what, err, code, reason)
			w.settle()
			if c := w.see(id); c.State != model.Unknown || c.Reconciliation != nil || w.told(id) != told || len(w.locks(nil)) != 1 {
				t.Errorf("%s: it is %s, the events are %q, the locks %q", what, c.State, w.told(id), w.locks(nil))
			}
		}
		adopt := pipeline.Settlement{Resolution: model.Adopt}
		robot := caller("robot", writ.Agent, model.Approver)
		asker := caller("Planner", writ.Human, model.Approver, model.Admin)
		try("an agent", robot, adopt, fault.Denied, "not_an_approver")
		try("an operator", olga, adopt, fault.Denied, "not_an_approver")
		try("who asked for it", asker, adopt, fault.Denied, "self_approval")
		try("what was not shown", alice, pipeline.Settlement{Resolution: model.Adopt, ShownDigest: writ.DigestBytes(nil)}, fault.Stale, "shown_differs")
		try("absent, and it is there", alice, pipeline.Settlement{Resolution: model.Absent}, fault.Refused, "does_not_fit")
		try("no resolution", alice, pipeline.Settlement{Resolution: "done"}, fault.Refused, "does_not_fit")
		try("a note without an end", alice, pipeline.Settlement{Resolution: model.Adopt, Note: model.Prose(strings.Repeat("x", 4001))}, fault.Invalid, "")

		// The target changes between showing and deciding.
		w.finds(writ.DidNotHappen)
		try("it is gone again", alice, adopt, fault.Stale, "shown_differs")
		shown, told = w.probe(id), told+probed
		try("adopt what is not there", alice, adopt, fault.Refused, "does_not_fit")
		try("undo what is not there", alice, pipeline.Settlement{Resolution: model.RollBack}, fault.Refused, "does_not_fit")
		w.executor.tell(func() {
			w.executor.found = func(f *writ.Finding) { f.Verdict, f.Fingerprint = writ.DidNotHappen, "later" }
		})
		try("the same verdict on another state", alice, pipeline.Settlement{Resolution: model.Absent}, fault.Stale, "shown_differs")

		// Nobody can tell: a person vouches for it.
		w.finds(writ.CannotTell)
		shown, told = w.probe(id), told+probed
		try("without the phrase", alice, pipeline.Settlement{Resolution: model.Absent, Note: "I looked."}, fault.Denied, "phrase_missing")
		try("without a note", alice, pipeline.Settlement{Resolution: model.Absent, Phrase: "mock/a", Note: " "}, fault.Denied, "note_missing")

		// Neither a failing disk nor an executor that is away decides anything.
		w.finds(writ.Happened)
		shown, told = w.probe(id), told+probed
		w.store.fail(model.LockFreed, 1)
		try("the disk is full", alice, adopt, fault.Unavailable, "disk_full")
		w.executor.tell(func() { w.executor.away = gone() })
		try("the executor is away", alice, adopt, fault.Unavailable, "not_sent")
		w.executor.tell(func() { w.executor.away = nil })

		// And nothing but a person does, however long it takes.
		w.restart()
		w.later(20 * time.Minute)
		if c := w.see(id); c.State != model.Unknown || len(w.locks(nil)) != 1 {
			t.Errorf("it left by itself and is %s", c.State)
		}
	})
}

func TestReconcile_whatIsNotInDoubt(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		for what, c := range map[string]*model.Change{
			"waiting": w.propose(request(step("s1", "set", "b"))),
			"done":    w.carriedOut(request(step("s1", "set", "a"))),
			"failed":  w.doubt(writ.Failed),
		} {
			_, _, _, err := w.Probe(t.Context(), alice, c.ID)
			refused(t, what, err, fault.Conflict, "not_in_doubt")
			_, err = w.Reconcile(t.Context(), alice, c.ID, pipeline.Settlement{Resolution: model.Adopt})
			refused(t, what, err, fault.Conflict, "not_in_doubt")
		}
		_, _, _, err := w.Probe(t.Context(), stranger, w.doubt(writ.Unknown).ID)
		refused(t, "what one may not see", err, fault.NotFound, "")
		_, _, _, err = w.Probe(t.Context(), alice, "run_nowhere")
		refused(t, "a run that never was", err, fault.NotFound, "")
		if w.executor.probes != 0 {
			t.Errorf("the executor looked %d times", w.executor.probes)
		}
	})
}

func TestReconcile_byItsRun(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		c := w.doubt(writ.Unknown)
		found := w.probe(c.RunID)
		got, err := w.Reconcile(t.Context(), bob, c.RunID, pipeline.Settlement{ShownDigest: found.ShownDigest, Resolution: model.Adopt})
		if err != nil || got.ID != c.ID || got.State != model.Done {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// An executor that refuses to look leaves it to people; one whose answer is about
// something else is not believed.
func TestReconcile_anExecutorThatWillNotLook(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.doubt(writ.Unknown).ID
		w.executor.tell(func() {
			w.executor.blind = fault.New(fault.Refused, "The action is not what it was.").Because("action_changed")
		})
		found := w.probe(id)
		if found.Verdict != writ.CannotTell || found.Phrase != "mock/a" || !strings.Contains(found.Text, "The action is not what it was.") {
			t.Errorf("%+v", found)
		}
		if diff := cmp.Diff([]model.Resolution{model.Adopt, model.Absent}, found.Choices); diff != "" {
			t.Errorf("without a way back (-want +got):\n%s", diff)
		}
		w.executor.tell(func() {
			w.executor.blind = nil
			w.executor.found = func(f *writ.Finding) { f.Run = "run_other" }
		})
		_, _, _, err := w.Probe(t.Context(), alice, id)
		refused(t, "a finding about another run", err, fault.Refused, "other_step")
	})
}

// In a plan, only what is in doubt is asked about, and each step counts as found.
func TestReconcile_plan(t *testing.T) {
	t.Parallel()
	plan := request(step("s1", "set", "a"), step("s2", "set", "b", "s1"), step("s3", "set", "c", "s2"))
	for name, c := range map[string]struct {
		found      writ.Verdict
		resolution model.Resolution
		state      model.State
		outcomes   []writ.Outcome
		locks      []string
		undoes     int // steps
	}{
		"it happened": {writ.Happened, model.Adopt, model.Failed, []writ.Outcome{writ.Done, writ.Done, writ.NotExecuted}, []string{}, 0},
		"it did not":  {writ.DidNotHappen, model.Adopt, model.Failed, []writ.Outcome{writ.Done, writ.Failed, writ.NotExecuted}, []string{}, 0},
		"undo it": {writ.Happened, model.RollBack, model.Unverified, []writ.Outcome{writ.Done, writ.Unverified, writ.NotExecuted},
			[]string{"mock/a orphaned c", "mock/b orphaned c"}, 2},
		"undo the rest": {writ.DidNotHappen, model.RollBack, model.Failed, []writ.Outcome{writ.Done, writ.Failed, writ.NotExecuted},
			[]string{"mock/a orphaned c"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.executor.tell(func() { w.executor.outcomes["mock/b"] = writ.Unknown })
				id := w.carriedOut(plan).ID
				w.finds(c.found)
				if _, err := w.decideAs(alice, id, model.Absent); fault.ReasonOf(err) != "does_not_fit" {
					t.Errorf("nothing of it is there, though a step is done: %v", err)
				}
				got := w.reconcile(id, c.resolution)
				if diff := cmp.Diff(c.outcomes, got.Outcomes()); diff != "" || got.State != c.state {
					t.Errorf("it is %s (-want +got):\n%s", got.State, diff)
				}
				if diff := cmp.Diff(c.locks, w.locks(map[string]string{id: "c"})); diff != "" {
					t.Errorf("the locks differ (-want +got):\n%s", diff)
				}
				for _, u := range w.undoing(id) {
					if len(u.Steps) != c.undoes {
						t.Errorf("%d steps are to be undone", len(u.Steps))
					}
				}
				if n := len(w.undoing(id)); n > 0 != (c.undoes > 0) {
					t.Errorf("%d changes are to undo it", n)
				}
			})
		})
	}
}

// A run of which the executor knows nothing leaves every step in doubt.
func TestReconcile_aRunThatIsForgotten(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold = true })
		c := w.carriedOut(request(step("s1", "set", "a"), step("s2", "set", "b")))
		w.executor.tell(func() { clear(w.executor.runs) })
		w.later(2 * time.Minute)
		if c = w.see(c.ID); c.State != model.Unknown || len(c.Receipts) != 0 {
			t.Fatalf("it is %s with %d receipts", c.State, len(c.Receipts))
		}
		w.executor.tell(func() {
			w.executor.found = func(f *writ.Finding) {
				if f.Step == "s2" {
					f.Verdict = writ.DidNotHappen
				}
			}
		})
		got := w.reconcile(c.ID, model.Adopt)
		if diff := cmp.Diff([]writ.Outcome{writ.Done, writ.Failed}, got.Outcomes()); diff != "" || len(w.locks(nil)) != 0 {
			t.Errorf("the locks are %q (-want +got):\n%s", w.locks(nil), diff)
		}
	})
}

// The way back of a step may be in doubt too.
func TestReconcile_anUndo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		found      writ.Verdict
		resolution model.Resolution
		state      model.State
	}{
		{writ.Happened, model.Absent, model.RolledBack},
		{writ.DidNotHappen, model.Adopt, model.Failed},
		{writ.DidNotHappen, model.RollBack, model.Unverified},
		{writ.CannotTell, model.Absent, model.RolledBack},
		{writ.CannotTell, model.Adopt, model.Unverified},
	} {
		t.Run(string(c.found)+" "+string(c.resolution), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.executor.tell(func() {
					w.executor.outcomes["mock/b"], w.executor.outcomes["undo mock/a"] = writ.Failed, writ.Unknown
					w.executor.found = func(f *writ.Finding) { f.Undo, f.Verdict = true, c.found }
				})
				r := request(step("s1", "set", "a"), step("s2", "set", "b", "s1"))
				r.OnFailure = writ.Rollback
				id := w.carriedOut(r).ID
				if got := w.see(id); got.State != model.Unknown {
					t.Fatalf("it is %s", got.State)
				}
				w.executor.tell(func() { clear(w.executor.outcomes) })
				if got := w.reconcile(id, c.resolution); got.State != c.state {
					t.Errorf("it is %s", got.State)
				}
				held := c.resolution == model.RollBack
				if n := len(w.locks(nil)); n > 0 != held {
					t.Errorf("%d locks hold", n)
				}
				if tries := w.undoing(id); held && (len(tries) != 1 || tries[0].State != model.AwaitingApproval) {
					t.Errorf("%d changes are to undo it", len(tries))
				}
			})
		})
	}
}

// A rollback that is in doubt is looked at before what it undoes. If it did not
// happen, what it held goes back to that.
func TestReconcile_aRollback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		found      writ.Verdict
		resolution model.Resolution
		state      model.State
		locks      []string
	}{
		{writ.Happened, model.Adopt, model.Done, []string{}},
		{writ.DidNotHappen, model.Absent, model.Failed, []string{"mock/a orphaned original"}},
		{writ.CannotTell, model.Adopt, model.Unverified, []string{"mock/a orphaned original"}},
	} {
		t.Run(string(c.found), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				original, undoing := w.halfway()
				w.executor.tell(func() { w.executor.outcomes["mock/a"] = writ.Unknown })
				w.approve(undoing.ID, alice)
				_, _, _, err := w.Probe(t.Context(), alice, original.ID)
				refused(t, "look at what may just be undone", err, fault.Conflict, "rollback_in_doubt")
				w.finds(c.found)
				if _, err := w.decideAs(alice, undoing.ID, model.RollBack); fault.ReasonOf(err) != "does_not_fit" {
					t.Errorf("undo the undoing: %v", err)
				}
				if got := w.reconcile(undoing.ID, c.resolution); got.State != c.state {
					t.Errorf("it is %s", got.State)
				}
				if diff := cmp.Diff(c.locks, w.locks(map[string]string{original.ID: "original", undoing.ID: "undoing"})); diff != "" {
					t.Errorf("the locks differ (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A plan that only stopped half-way can be left so, without asking the target.
func TestReconcile_halfWay(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		original, undoing := w.halfway()
		got := w.reconcile(original.ID, model.Adopt)
		if got.State != model.Failed || len(w.locks(nil)) != 0 || w.executor.probes != 0 {
			t.Errorf("it is %s, the locks are %q", got.State, w.locks(nil))
		}
		if u := w.see(undoing.ID); u.State != model.Cancelled || u.Trouble.Reason != "reconciled" {
			t.Errorf("what was to undo it is %s", u.State)
		}
	})
}

// Two people decide at once: one of them does.
func TestReconcile_atOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.doubt(writ.Unknown).ID
		found := w.probe(id)
		won := 0
		for _, err := range w.atOnce(8, func(_ model.Caller, i int) error {
			_, err := w.Reconcile(t.Context(), []model.Caller{alice, bob}[i%2], id, pipeline.Settlement{ShownDigest: found.ShownDigest, Resolution: model.Adopt})
			return err
		}) {
			if err == nil {
				won++
			}
		}
		if won != 1 || strings.Count(w.told(id), reconciled) != 1 {
			t.Errorf("%d decided; the events are %q", won, w.told(id))
		}
	})
}

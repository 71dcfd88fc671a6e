package pipeline_test

import (
	"slices"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
)

// stop puts a halt in force, and returns it with what was under way.
func (w *world) stop(h model.Halt) (model.Halt, []*model.Change) {
	w.t.Helper()
	h.Reason = "it runs wild"
	h, running, err := w.Halt(w.t.Context(), olga, h)
	if err != nil {
		w.t.Fatalf("halt: %v (%s)", err, fault.CodeOf(err))
	}
	w.settle()
	return h, running
}

func (w *world) lift(h model.Halt) {
	w.t.Helper()
	if _, err := w.LiftHalt(w.t.Context(), bob, h.ID); err != nil {
		w.t.Fatalf("lift: %v (%s)", err, fault.CodeOf(err))
	}
}

// Each row is a halt and whether it covers what the planner asks of mock/a.
func TestHalt_covers(t *testing.T) {
	for name, c := range map[string]struct {
		halt   model.Halt
		asking bool // cannot be asked for
		rest   bool // cannot be approved, and is not begun
	}{
		"everything":                     {halt: model.Halt{}, asking: true, rest: true},
		"the system":                     {halt: model.Halt{Target: "mock"}, asking: true, rest: true},
		"the entity":                     {halt: model.Halt{Target: "mock/a"}, rest: true},
		"what is below the entity":       {halt: model.Halt{Target: "/mock/a/b/"}, rest: true},
		"another entity":                 {halt: model.Halt{Target: "mock/aa"}},
		"another system":                 {halt: model.Halt{Target: "live"}},
		"the requester":                  {halt: model.Halt{Principal: "Planner"}, asking: true, rest: true},
		"another requester":              {halt: model.Halt{Principal: "stranger"}},
		"the approver":                   {halt: model.Halt{Principal: "alice"}, rest: true},
		"another approver":               {halt: model.Halt{Principal: "bob"}},
		"a name that begins like theirs": {halt: model.Halt{Principal: "plan"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				waiting := w.propose(request(step("s1", "set", "a"))).ID
				approved := w.approvedOnly(request(step("s1", "set", "a"), step("s2", "set", "b", "s1")))
				h, running := w.stop(c.halt)
				if len(running) > 0 {
					t.Errorf("%d changes are said to be under way", len(running))
				}
				want := func(what string, stopped bool, err error) {
					t.Helper()
					if code, reason := fault.Code(""), ""; stopped {
						code, reason = fault.Denied, "halted"
						refused(t, what, err, code, reason)
					} else if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				_, err := w.Propose(t.Context(), planner, request(step("s1", "set", "z")), "")
				want("propose", c.asking, err)
				_, err = w.Approve(t.Context(), alice, waiting, w.agree(waiting))
				want("approve", c.rest, err)
				w.settle()
				_, err = w.Execute(t.Context(), planner, approved)
				want("execute", c.rest, err)
				w.settle()
				if !c.rest {
					return
				}
				w.still(waiting, model.AwaitingApproval, toDecision)
				if c := w.see(approved); c.State != model.Approved {
					t.Errorf("what was approved is %s", c.State)
				}
				w.lift(h)
				if c := w.approve(waiting, bob); c.State != model.Done {
					t.Errorf("once it is lifted, what waited is %s", c.State)
				}
				if _, err := w.Execute(t.Context(), planner, approved); err != nil {
					t.Errorf("execute once it is lifted: %v", err)
				}
			})
		})
	}
}

// What only reads is begun by nobody's approval, and is stopped as well.
func TestHalt_whileItIsPlanned(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		h, _ := w.stop(model.Halt{Target: "mock/a"})
		c := w.propose(request(step("s1", "read", "a")))
		w.still(c.ID, model.Approved, toDecision+" change.held_up")
		if c.Trouble.Reason != "halted" {
			t.Errorf("the change says that %q is in its way", c.Trouble.Reason)
		}
		w.lift(h)
	})
}

func TestHalt_underWay(t *testing.T) {
	for name, c := range map[string]struct {
		early    int // steps that are done when it is stopped
		state    model.State
		outcomes []writ.Outcome
		locked   []string
	}{
		"before its first step": {early: 0, state: model.Failed, outcomes: []writ.Outcome{writ.NotExecuted, writ.NotExecuted}, locked: []string{}},
		"between its steps":     {early: 1, state: model.Failed, outcomes: []writ.Outcome{writ.Done, writ.NotExecuted}, locked: []string{"mock/a orphaned it"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.executor.tell(func() { w.executor.hold, w.executor.early = true, c.early })
				id := w.carriedOut(request(step("s1", "set", "a"), step("s2", "set", "b", "s1"))).ID
				other := w.carriedOut(model.Request{Steps: []model.RequestStep{step("s1", "set", "c")}}).ID
				_, running := w.stop(model.Halt{Target: "mock/b"})
				if len(running) != 1 || running[0].ID != id || running[0].HaltedAt.IsZero() {
					t.Errorf("under way and covered was %v", running)
				}
				ended := w.see(id)
				var outcomes []writ.Outcome
				for _, r := range ended.Receipts {
					outcomes = append(outcomes, r.Outcome)
				}
				if ended.State != c.state || !slices.Equal(outcomes, c.outcomes) {
					t.Errorf("it ended %s with the outcomes %v, want %s with %v", ended.State, outcomes, c.state, c.outcomes)
				}
				events := w.events(id)
				if n := slices.IndexFunc(events, func(e model.Event) bool { return e.Type == model.ChangeHalted }); n < 0 || events[n].User != model.Writ {
					t.Errorf("no event says that it was stopped: %s", w.told(id))
				}
				if got := w.locks(map[string]string{id: "it"}); !slices.Equal(slices.DeleteFunc(got, func(l string) bool { return l == "mock/c active " }), c.locked) {
					t.Errorf("the locks are %v, want %v", got, c.locked)
				}
				if c := w.see(other); c.State != model.Executing || !c.HaltedAt.IsZero() {
					t.Errorf("another change is %s", c.State)
				}
				w.executor.letGo()
			})
		})
	}
}

// The executor is told until it knows, whatever happens in between.
func TestHalt_untilTheExecutorKnows(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold = true })
		id := w.carriedOut(request(step("s1", "set", "a"))).ID
		w.executor.tell(func() { w.executor.away = gone() })
		_, running := w.stop(model.Halt{})
		if len(running) != 1 || !running[0].HaltedAt.IsZero() {
			t.Errorf("the executor is away, and is said to know of %v", running)
		}
		w.restart()
		w.later(time.Second)
		if c := w.see(id); c.State != model.Executing || !c.HaltedAt.IsZero() {
			t.Errorf("it is %s, stopped at %s", c.State, c.HaltedAt)
		}
		w.executor.tell(func() { w.executor.away = nil })
		w.later(time.Second)
		if c := w.see(id); c.State != model.Failed || c.HaltedAt.IsZero() || c.Receipts[0].Reason != "halted" {
			t.Errorf("it is %s, stopped at %s", c.State, c.HaltedAt)
		}
	})
}

// A full disk keeps nobody from stopping what is under way.
func TestHalt_notStored(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold = true })
		id := w.carriedOut(request(step("s1", "set", "a"))).ID
		w.store.fail(model.HaltSet, 1)
		_, _, err := w.Halt(t.Context(), olga, model.Halt{Reason: "it runs wild"})
		refused(t, "halt", err, fault.Unavailable, "disk_full")
		w.settle()
		if c := w.see(id); c.State != model.Failed || c.HaltedAt.IsZero() {
			t.Errorf("it is %s, stopped at %s", c.State, c.HaltedAt)
		}
		if all, err := w.Halts(t.Context(), true); err != nil || len(all) != 0 {
			t.Errorf("there are the halts %v (%v)", all, err)
		}
	})
}

// The way back may be planned meanwhile, and waits as well.
func TestHalt_rollback(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.carriedOut(request(step("s1", "set", "a"))).ID
		h, _ := w.stop(model.Halt{})
		back, err := w.Rollback(t.Context(), olga, id)
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		_, err = w.Approve(t.Context(), alice, back.ID, w.agree(back.ID))
		refused(t, "approve the way back", err, fault.Denied, "halted")
		w.lift(h)
		if c := w.approve(back.ID, alice); c.State != model.Done {
			t.Errorf("the way back is %s", c.State)
		}
	})
}

func TestHalt_refuses(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		why := model.Prose("why")
		for name, c := range map[string]struct {
			who          model.Caller
			halt         model.Halt
			code, reason string
		}{
			"an agent":             {planner, model.Halt{Reason: why}, "denied", "not_a_person"},
			"an auditor":           {audrey, model.Halt{Reason: why}, "denied", "not_a_person"},
			"no reason":            {alice, model.Halt{}, "invalid", ""},
			"a target and a name":  {alice, model.Halt{Target: "mock", Principal: "planner", Reason: why}, "invalid", ""},
			"a system not there":   {alice, model.Halt{Target: "mokc/a", Reason: why}, "invalid", "unknown_system"},
			"a target without end": {alice, model.Halt{Target: string(make([]byte, 1000)), Reason: why}, "invalid", ""},
		} {
			_, _, err := w.Halt(t.Context(), c.who, c.halt)
			refused(t, name, err, fault.Code(c.code), c.reason)
		}
		if all, err := w.Halts(t.Context(), true); err != nil || len(all) != 0 {
			t.Errorf("there are the halts %v (%v)", all, err)
		}
		w.executor.tell(func() { w.executor.away = gone() })
		if h, _ := w.stop(model.Halt{Target: "gone/a"}); h.At.IsZero() {
			t.Error("an executor that is away kept somebody from stopping its systems")
		}
	})
}

func TestLiftHalt(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		all, _ := w.stop(model.Halt{})
		hers, _ := w.stop(model.Halt{Principal: "alice"})
		lift := func(who model.Caller, id string) error {
			_, err := w.LiftHalt(t.Context(), who, id)
			return err
		}
		refused(t, "an agent", lift(planner, all.ID), fault.Denied, "not_an_approver")
		refused(t, "an operator", lift(olga, all.ID), fault.Denied, "not_an_approver")
		refused(t, "whoever was stopped", lift(alice, hers.ID), fault.Denied, "self_approval")
		refused(t, "another id", lift(alice, "halt_x"), fault.NotFound, "")
		if err := lift(alice, all.ID); err != nil {
			t.Error(err)
		}
		refused(t, "again", lift(bob, all.ID), fault.Conflict, "lifted_before")
		if left, err := w.Halts(t.Context(), false); err != nil || len(left) != 1 || left[0].ID != hers.ID {
			t.Errorf("in force are %v (%v)", left, err)
		}
		var told []string
		for _, e := range w.allEvents() {
			if e.Type == model.HaltSet || e.Type == model.HaltLifted {
				told = append(told, string(e.Type)+" "+e.User+" "+e.Detail["halt_id"].(string)+" "+e.Detail["reason"].(string))
			}
		}
		want := []string{"halt.set human:olga " + all.ID + " it runs wild", "halt.set human:olga " + hers.ID + " it runs wild",
			"halt.lifted human:alice " + all.ID + " it runs wild"}
		if !slices.Equal(told, want) {
			t.Errorf("the events are %q, want %q", told, want)
		}
	})
}

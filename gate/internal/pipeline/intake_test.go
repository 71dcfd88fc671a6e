package pipeline_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

func TestPropose_refused(t *testing.T) {
	t.Parallel()
	long := func(n int) model.Prose { return model.Prose(strings.Repeat("x", n)) }
	many := make([]model.RequestStep, writ.MaxSteps+1)
	for i := range many {
		many[i] = step("", "read", "a")
	}
	set := step("s1", "set", "a")
	params := func(p writ.Object) model.Request {
		return request(model.RequestStep{ID: "s1", Action: "mock.set", Params: p})
	}
	for _, c := range []struct {
		name   string
		r      model.Request
		key    string
		reason string
	}{
		{"no step", model.Request{}, "", ""},
		{"too many steps", request(many...), "", ""},
		{"an id twice", request(set, set), "", ""},
		{"an id that is a path", request(step("../s1", "set", "a")), "", ""},
		{"an id in capitals", request(step("S1", "set", "a")), "", ""},
		{"an id that is a book", request(step(strings.Repeat("s", 33), "set", "a")), "", ""},
		{"steps in a circle", request(step("s1", "set", "a", "s2"), step("s2", "set", "b", "s1")), "", "needs_unmet"},
		{"a step that needs itself", request(step("s1", "set", "a", "s1")), "", "needs_unmet"},
		{"a step that needs nothing known", request(step("s1", "set", "a", "s9")), "", "needs_unmet"},
		{"no such action", request(step("s1", "fly", "a")), "", "unknown_action"},
		{"no name", params(writ.Object{}), "", "params_refused"},
		{"no params", params(nil), "", "params_refused"},
		{"a param of another type", params(writ.Object{"name": int64(1)}), "", "params_refused"},
		{"a param too many", params(writ.Object{"name": "a", "sudo": true}), "", "params_refused"},
		{"a param that is too long", params(writ.Object{"name": strings.Repeat("a", 64)}), "", "params_refused"},
		{"an odd way to fail", model.Request{Steps: []model.RequestStep{set}, OnFailure: "retry"}, "", ""},
		{"an odd risk", model.Request{Steps: []model.RequestStep{set}, DeclaredRisk: "none"}, "", ""},
		{"an odd ticket", model.Request{Steps: []model.RequestStep{set}, ChangeTicket: "CHG\n1"}, "", ""},
		{"a ticket that is a book", model.Request{Steps: []model.RequestStep{set}, ChangeTicket: strings.Repeat("x", 101)}, "", ""},
		{"a sentence that is a book", model.Request{Steps: []model.RequestStep{set}, RequestedAction: long(501)}, "", ""},
		{"a purpose that is a book", model.Request{Steps: []model.RequestStep{set}, Purpose: long(4001)}, "", ""},
		{"a rollback plan that is a book", model.Request{Steps: []model.RequestStep{set}, RollbackPlan: long(4001)}, "", ""},
		{"a key with a blank", request(set), "rollback chg_1 0", ""},
		{"a key that is a book", request(set), strings.Repeat("k", 201), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				_, err := w.Propose(t.Context(), planner, c.r, c.key)
				refused(t, "propose", err, fault.Invalid, c.reason)
				all, err := w.Changes(t.Context(), audrey, store.ChangeFilter{})
				if err != nil || len(all) != 0 {
					t.Errorf("it left %d changes, %v", len(all), err)
				}
				lines, err := w.Events(t.Context(), audrey, store.EventFilter{After: 1})
				if err != nil {
					t.Fatal(err)
				}
				if e := decode(t, lines); len(e) != 1 || e[0].Type != model.RequestRefused || e[0].User != "agent:planner" || e[0].Reason != c.reason {
					t.Errorf("the events are %+v", e)
				}
			})
		})
	}
}

func TestPropose_withoutTheRole(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		for _, who := range []model.Caller{alice, audrey, caller("nobody", writ.Agent)} {
			_, err := w.Propose(t.Context(), who, request(step("s1", "read", "a")), "")
			refused(t, "propose as "+who.Name, err, fault.Denied, "")
		}
		for _, who := range []model.Caller{planner, olga, caller("root", writ.Human, model.Admin)} {
			if _, err := w.Propose(t.Context(), who, request(step("s1", "read", "a")), ""); err != nil {
				t.Errorf("propose as %s: %v", who.Name, err)
			}
		}
	})
}

func TestPropose_inTheOrderOfNeeds(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		c := w.propose(request(step("c", "read", "x", "b"), step("a", "read", "y"), step("b", "read", "z", "a"), step("", "read", "w")))
		var order []string
		for _, s := range c.Steps {
			order = append(order, s.ID)
		}
		if got := strings.Join(order, " "); got != "a b s4 c" || c.State != model.Done {
			t.Errorf("the order is %s, it is %s", got, c.State)
		}
	})
}

// A step that follows another on the same thing meets a state that nobody has seen.
func TestPreview_ofAStepAfterAnotherOnTheSameThing(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		c := w.propose(request(step("s1", "read", "a"), step("s2", "set", "a"), step("s3", "set", "b"), step("s4", "wipe", "a")))
		var known []bool
		for i, o := range c.Observations {
			known = append(known, o.Known)
			if (c.Steps[i].Fingerprint == "") == o.Known {
				t.Errorf("step %s has the fingerprint %q", o.Step, c.Steps[i].Fingerprint)
			}
		}
		if len(known) != 4 || !known[0] || !known[1] || !known[2] || known[3] {
			t.Errorf("what would change is known: %v", known)
		}
	})
}

func TestPropose_sameKey(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := request(step("s1", "set", "a"))
		first, err := w.Propose(t.Context(), planner, r, "key-1")
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		again, err := w.Propose(t.Context(), planner, r, "key-1")
		if err != nil || again.ID != first.ID {
			t.Errorf("the same key gave %v, %v", again, err)
		}
		other := request(step("s1", "set", "b"))
		_, err = w.Propose(t.Context(), planner, other, "key-1")
		refused(t, "the same key for another request", err, fault.Conflict, "client_key_used")
		theirs, err := w.Propose(t.Context(), stranger, other, "key-1")
		if err != nil || theirs.ID == first.ID {
			t.Errorf("another requester's key gave %v, %v", theirs, err)
		}
		w.approve(first.ID, alice)
		w.restart()
		again, err = w.Propose(t.Context(), planner, r, "key-1")
		if err != nil || again.ID != first.ID || again.State != model.Done {
			t.Errorf("the same key after all was done gave %v, %v", again, err)
		}
		w.settle()
		if w.executor.sent() != 1 {
			t.Errorf("%d writs were sent", w.executor.sent())
		}
	})
}

// TestPropose_stillOpen: without a key, the same request of the same requester
// is the same change until that has ended.
func TestPropose_stillOpen(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := request(step("s1", "set", "a"))
		first := w.propose(r)
		if again := w.propose(r); again.ID != first.ID {
			t.Error("the same request became another change")
		}
		other := r
		other.Purpose = "in other words"
		if in := w.propose(other); in.ID == first.ID {
			t.Error("a request in other words became the same change")
		}
		for _, c := range []struct {
			what string
			who  model.Caller
			key  string
		}{{"under a key", planner, "key-1"}, {"by somebody else", stranger, ""}} {
			got, err := w.Propose(t.Context(), c.who, r, c.key)
			if err != nil || got.ID == first.ID {
				t.Errorf("the same request %s became %v, %v", c.what, got, err)
				continue
			}
			w.settle()
			if _, err := w.Cancel(t.Context(), c.who, got.ID); err != nil {
				t.Fatal(err)
			}
		}
		w.approve(first.ID, alice)
		w.settle()
		next := w.propose(r)
		if next.ID == first.ID {
			t.Error("the same request became a change that has ended")
		}
		w.pass(wait + time.Millisecond) // and no sweep meanwhile
		if late := w.propose(r); late.ID == next.ID {
			t.Error("the same request became a change that is too late")
		}
	})
}

// Case: C044.
func TestPropose_sameKeyAtOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		ids := make([]string, 32)
		for _, err := range w.atOnce(32, func(_ model.Caller, i int) error {
			c, err := w.Propose(t.Context(), planner, request(step("s1", "set", "a")), "key")
			if err == nil {
				ids[i] = c.ID
			}
			return err
		}) {
			if err != nil {
				t.Errorf("propose at once: %v", err)
			}
		}
		w.settle()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("one key became %s and %s", ids[0], id)
			}
		}
		w.still(ids[0], model.AwaitingApproval, toDecision)
		if w.executor.reads != 1 {
			t.Errorf("the target was read %d times", w.executor.reads)
		}
	})
}

// The same proposal again, while the first is between its preview and its decision.
func TestPropose_sameKeyWhileItIsPlanned(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		hold := make(chan struct{})
		w.executor.tell(func() { w.executor.observe = func(context.Context) error { <-hold; return nil } })
		for range 3 {
			c, err := w.Propose(t.Context(), planner, request(step("s1", "set", "a")), "key")
			if err != nil || c.State != model.Proposed {
				t.Fatalf("propose: %v, %v", c, err)
			}
		}
		close(hold)
		w.settle()
		all, err := w.Changes(t.Context(), audrey, store.ChangeFilter{})
		if err != nil || len(all) != 1 {
			t.Fatalf("there are %d changes, %v", len(all), err)
		}
		w.still(all[0].ID, model.AwaitingApproval, toDecision)
		if w.executor.reads != 1 {
			t.Errorf("the target was read %d times", w.executor.reads)
		}
	})
}

func TestPropose_firstAnswer(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		hold := make(chan struct{})
		w.executor.tell(func() { w.executor.observe = func(context.Context) error { <-hold; return nil } })
		begin := time.Now()
		c, err := w.Propose(t.Context(), planner, request(step("s1", "set", "a")), "")
		if took := time.Since(begin); err != nil || c.State != model.Proposed || took != w.FirstAnswer {
			t.Errorf("after %s the answer is %v, %v", took, c, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := w.Propose(ctx, planner, request(step("s1", "set", "b")), ""); fault.CodeOf(err) != fault.Timeout {
			t.Errorf("a caller that does not wait is told %v", err)
		}
		close(hold)
		w.settle()
		all, err := w.Changes(t.Context(), planner, store.ChangeFilter{})
		if err != nil || len(all) != 2 {
			t.Fatalf("%d changes, %v", len(all), err)
		}
		for _, c := range all {
			w.still(c.ID, model.AwaitingApproval, toDecision)
		}
		begin = time.Now()
		c, err = w.Propose(t.Context(), planner, request(step("s1", "set", "c")), "")
		if took := time.Since(begin); err != nil || c.State != model.AwaitingApproval || took != 0 {
			t.Errorf("after %s the answer is %v, %v", took, c, err)
		}
	})
}

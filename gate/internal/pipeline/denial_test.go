package pipeline_test

import (
	"strings"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
)

// no proposes as somebody, and says no.
func (w *world) no(who model.Caller, r model.Request, why model.Prose) *model.Change {
	w.t.Helper()
	c := w.asked(who, r)
	if c.State != model.AwaitingApproval {
		w.t.Fatalf("it is %s: %+v", c.State, c.Trouble)
	}
	if _, err := w.Reject(w.t.Context(), alice, c.ID, why); err != nil {
		w.t.Fatal(err)
	}
	return w.see(c.ID)
}

func (w *world) asked(who model.Caller, r model.Request) *model.Change {
	w.t.Helper()
	c, err := w.Propose(w.t.Context(), who, r, "")
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle()
	return w.see(c.ID)
}

// What was denied and is asked again is shown with the no, whatever it is called
// now; and after some noes nobody is asked any more.
//
// Cases: C025, C028.
func TestDenial_isRemembered(t *testing.T) {
	runWith(t, rules+"denials: {remember: 1h}\n", func(t *testing.T, w *world) {
		first := w.no(planner, request(step("s1", "set", "a")), "Not before the backup.")
		w.later(6 * time.Minute)

		// By another action, in another plan, with another value.
		again := request(step("x", "read", "b"), step("y", "wipe", "a", "x"))
		again.RequestedAction = "something else altogether"
		c := w.asked(planner, again)
		review, err := w.Review(t.Context(), alice, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"SAID NO BEFORE TO THE SAME EFFECT   1 time", "6m0s before this was asked", "human:alice", first.ID, "| Not before the backup."} {
			if !strings.Contains(review.Text, want) {
				t.Errorf("the review does not say %q:\n%s", want, review.Text)
			}
		}
		w.later(time.Minute)
		if later, err := w.Review(t.Context(), alice, c.ID); err != nil || later.ShownDigest != review.ShownDigest {
			t.Errorf("the review changes by itself: %v", err)
		}
		if c = w.asked(planner, again); c.State != model.AwaitingApproval || len(c.Denials) != 1 {
			t.Fatalf("it is %s, with %+v", c.State, c.Denials)
		}
		// A no is shown at once to whoever has to decide about the same.
		waiting := w.asked(stranger, request(step("s1", "set", "a")))
		agreed := w.agree(waiting.ID)
		if _, err := w.Reject(t.Context(), bob, c.ID, "Still not."); err != nil {
			t.Fatal(err)
		}
		_, err = w.Approve(t.Context(), alice, waiting.ID, agreed)
		refused(t, "approve without the second no", err, fault.Stale, "shown_differs")
		w.later(time.Second)
		w.no(planner, request(step("s1", "set", "a")), "No.")

		events := w.told(first.ID)
		c = w.asked(planner, again)
		if c.State != model.Denied || c.Trouble.Reason != model.DeniedBefore || !strings.Contains(c.Trouble.Text, "3 times within 1h0m0s, the last of them human:alice") ||
			c.Envelope != nil || events != w.told(first.ID) {
			t.Errorf("the fourth is %s: %+v", c.State, c.Trouble)
		}
		// Who was not told no is asked about, and so is something else.
		if c := w.approve(w.asked(stranger, request(step("s1", "set", "a"))).ID, alice); c.State != model.Done {
			t.Errorf("of another requester it is %s", c.State)
		}
		if c := w.asked(planner, request(step("s1", "set", "b"))); c.State != model.AwaitingApproval || len(c.Denials) != 0 {
			t.Errorf("of another target it is %s, with %+v", c.State, c.Denials)
		}
		w.later(time.Hour - 6*time.Minute)
		if c := w.asked(planner, again); c.State != model.AwaitingApproval {
			t.Errorf("when the first no is forgotten it is %s: %+v", c.State, c.Trouble)
		}
	})
}

// The field that is written is what counts, if it is known.
func TestDenial_ofTheSameField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field string
		known bool
		want  int
	}{
		"the same field": {"value", true, 1}, "another field": {"size", true, 0}, "nobody knows which": {"size", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.no(planner, request(step("s1", "set", "a")), "No.")
				w.executor.tell(func() {
					w.executor.peek = func(o *writ.Observation) { o.Known, o.Fields[0].Name = c.known, c.field }
				})
				if got := w.propose(request(step("s1", "set", "a"))); len(got.Denials) != c.want {
					t.Errorf("it was denied before: %+v", got.Denials)
				}
			})
		})
	}
}

// What the policy denied is shown to whoever decides on the next try, and counts
// for nothing: nobody was asked.
func TestDenial_byPolicy(t *testing.T) {
	const ticket = `
policy: test
denials: {remember: 1h, limit: 1}
rules:
  - {id: people, when: 'true', effect: approve, wait: 40s, valid: 20s}
  - {id: ticket, when: 'change.change_ticket == ""', effect: deny, reason: Without a ticket.}
examples:
  - {name: no ticket, change: {}, expect: deny}
`
	runWith(t, ticket, func(t *testing.T, w *world) {
		for range 25 {
			if c := w.propose(request(step("s1", "set", "a"))); c.State != model.Denied || c.Trouble.Reason != "policy" {
				t.Fatalf("it is %s: %+v", c.State, c.Trouble)
			}
		}
		r := request(step("s1", "set", "a"))
		r.ChangeTicket = "CHG-1"
		c := w.no(planner, r, "No.")
		if len(c.Denials) != 20 || c.Denials[0].By != "policy" || c.Denials[0].Reason != "Without a ticket." {
			t.Errorf("it was denied before: %+v", c.Denials)
		}
		if c := w.propose(r); c.State != model.Denied || c.Trouble.Reason != model.DeniedBefore {
			t.Errorf("after a no of people it is %s: %+v", c.State, c.Trouble)
		}
		w.later(time.Hour + time.Second)
		if c := w.propose(r); c.State != model.AwaitingApproval || len(c.Denials) != 0 {
			t.Errorf("an hour later it is %s, with %+v", c.State, c.Denials)
		}
	})
}

func TestLift(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := request(step("s1", "set", "a"))
		var last *model.Change
		for range 3 {
			last = w.no(planner, r, "No.")
		}
		denied := w.propose(r)
		if denied.State != model.Denied {
			t.Fatalf("it is %s", denied.State)
		}
		for _, c := range []struct {
			who    model.Caller
			id     string
			code   fault.Code
			reason string
		}{
			{planner, last.ID, fault.Denied, "not_an_approver"}, {olga, last.ID, fault.Denied, "not_an_approver"},
			{bob, denied.ID, fault.Conflict, "nothing_to_lift"}, {bob, "chg_none", fault.NotFound, ""},
		} {
			_, err := w.Lift(t.Context(), c.who, c.id)
			refused(t, "lift as "+c.who.Name, err, c.code, c.reason)
		}
		got, err := w.Lift(t.Context(), bob, last.ID)
		if err != nil || got.State != model.Rejected || got.Rejection.LiftedBy != "human:bob" || !strings.HasSuffix(w.told(last.ID), " change.rejected change.lifted") {
			t.Fatalf("lifted: %v", err)
		}
		_, err = w.Lift(t.Context(), bob, last.ID)
		refused(t, "lift again", err, fault.Conflict, "nothing_to_lift")
		w.restart()
		if c := w.approve(w.propose(r).ID, alice); c.State != model.Done || len(c.Denials) != 2 {
			t.Errorf("after that it is %s, with %+v", c.State, c.Denials)
		}
	})
}

// Whoever asked for it cannot lift the no themself.
func TestLift_ofOnesOwn(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		both := caller("bob", writ.Human, model.Approver, model.Requester)
		c := w.no(both, request(step("s1", "set", "a")), "No.")
		_, err := w.Lift(t.Context(), bob, c.ID)
		refused(t, "lift", err, fault.Denied, "self_approval")
	})
}

// What is half done is always a person's to decide, however often they said no.
func TestDenial_ofARollback(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		original, undoing := w.halfway()
		for range 4 {
			if _, err := w.Reject(t.Context(), alice, undoing.ID, "Not yet."); err != nil {
				t.Fatal(err)
			}
			var err error
			if undoing, err = w.Rollback(t.Context(), planner, original.ID); err != nil {
				t.Fatal(err)
			}
			w.settle()
		}
		if c := w.see(undoing.ID); c.State != model.AwaitingApproval {
			t.Errorf("it is %s: %+v", c.State, c.Trouble)
		}
		_, err := w.Approve(t.Context(), alice, undoing.ID, pipeline.Agreement{})
		refused(t, "approve unseen", err, fault.Stale, "shown_differs")
	})
}

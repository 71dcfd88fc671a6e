package pipeline_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
)

// refused fails the test unless err has the code and the reason.
func refused(t *testing.T, what string, err error, code fault.Code, reason string) {
	t.Helper()
	if fault.CodeOf(err) != code || fault.ReasonOf(err) != reason {
		t.Errorf("%s: code %q, reason %q (%v), want %q, %q", what, fault.CodeOf(err), fault.ReasonOf(err), err, code, reason)
	}
}

// still fails the test unless the change is in the state, with these events and
// nothing sent.
func (w *world) still(id string, state model.State, events string) {
	w.t.Helper()
	w.settle()
	if c := w.see(id); c.State != state {
		w.t.Errorf("%s is %s, want %s", id, c.State, state)
	}
	if got := w.told(id); got != events {
		w.t.Errorf("%s has the events %q, want %q", id, got, events)
	}
	if n := w.executor.sent(); n != 0 {
		w.t.Errorf("%d writs were sent", n)
	}
}

func TestApprove_refused(t *testing.T) {
	t.Parallel()
	other := writ.DigestBytes([]byte("another text"))
	same := func(a pipeline.Agreement) pipeline.Agreement { return a }
	for _, c := range []struct {
		name   string
		action string
		who    model.Caller
		edit   func(pipeline.Agreement) pipeline.Agreement
		code   fault.Code
		reason string
	}{
		{"nobody with the role", "set", caller("carl", writ.Human, model.Requester, model.Operator, model.Auditor), same, fault.Denied, "not_an_approver"},
		{"an agent with the role", "set", caller("robot", writ.Agent, model.Approver), same, fault.Denied, "not_an_approver"},
		{"an agent that is admin", "set", caller("robot", writ.Agent, model.Admin), same, fault.Denied, "not_an_approver"},
		{"a kind that nobody knows", "set", caller("alice", "", model.Approver), same, fault.Denied, "not_an_approver"},
		{"the requester", "set", caller("planner", writ.Human, model.Requester, model.Approver), same, fault.Denied, "self_approval"},
		{"the requester in capitals", "set", caller("PLANNER", writ.Human, model.Approver), same, fault.Denied, "self_approval"},
		{"the requester as admin", "set", caller("Planner", writ.Human, model.Admin), same, fault.Denied, "self_approval"},
		{"another envelope", "set", alice, func(a pipeline.Agreement) pipeline.Agreement { a.EnvelopeDigest = other; return a }, fault.Stale, "shown_differs"},
		{"another text", "set", alice, func(a pipeline.Agreement) pipeline.Agreement { a.ShownDigest = other; return a }, fault.Stale, "shown_differs"},
		{"nothing at all", "set", alice, func(pipeline.Agreement) pipeline.Agreement { return pipeline.Agreement{} }, fault.Stale, "shown_differs"},
		{"the two digests swapped", "set", alice, func(a pipeline.Agreement) pipeline.Agreement {
			a.EnvelopeDigest, a.ShownDigest = a.ShownDigest, a.EnvelopeDigest
			return a
		}, fault.Stale, "shown_differs"},
		{"no phrase", "wipe", alice, func(a pipeline.Agreement) pipeline.Agreement { a.Phrase = ""; return a }, fault.Denied, "phrase_missing"},
		{"another phrase", "wipe", alice, func(a pipeline.Agreement) pipeline.Agreement { a.Phrase = "mock/b"; return a }, fault.Denied, "phrase_missing"},
		{"the phrase in capitals", "wipe", alice, func(a pipeline.Agreement) pipeline.Agreement { a.Phrase = "MOCK/A"; return a }, fault.Denied, "phrase_missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				id := w.propose(request(step("s1", c.action, "a"))).ID
				_, err := w.Approve(t.Context(), c.who, id, c.edit(w.agree(id)))
				refused(t, "approve", err, c.code, c.reason)
				w.still(id, model.AwaitingApproval, toDecision)
			})
		})
	}
}

func TestApprove_phraseOnlyWhereOneIsAsked(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.propose(request(step("s1", "set", "a"))).ID
		a := w.agree(id)
		a.Phrase = "yes, please"
		if _, err := w.Approve(t.Context(), alice, id, a); err != nil {
			t.Errorf("a phrase that nobody asked for kept the approval from counting: %v", err)
		}
	})
}

func TestApprove_distinctPeople(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := request(step("s1", "set", "a"))
		r.ChangeTicket = "TWO"
		id := w.propose(r).ID
		first := w.agree(id)
		w.approve(id, alice)
		for _, who := range []model.Caller{alice, caller("Alice", writ.Human, model.Approver)} {
			_, err := w.Approve(t.Context(), who, id, w.agree(id))
			refused(t, "approve again as "+who.Name, err, fault.Spent, "approved_before")
		}
		_, err := w.Approve(t.Context(), bob, id, first)
		refused(t, "approve what was shown before the first approval", err, fault.Stale, "shown_differs")
		w.still(id, model.AwaitingApproval, toDecision+" change.approved")
		if c := w.approve(id, bob); c.State != model.Done || len(c.Approvals) != 2 {
			t.Errorf("it is %s with %d approvals", c.State, len(c.Approvals))
		}
	})
}

func TestApprove_notInItsTime(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		hold := make(chan struct{})
		w.executor.tell(func() {
			w.executor.observe = func(ctx context.Context) error {
				select {
				case <-hold:
				case <-ctx.Done():
				}
				return nil
			}
		})
		c, err := w.Propose(t.Context(), planner, request(step("s1", "set", "a")), "")
		if err != nil || c.State != model.Proposed {
			t.Fatalf("a proposal whose preview takes long: %v, %v", c, err)
		}
		_, err = w.Approve(t.Context(), alice, c.ID, pipeline.Agreement{})
		refused(t, "approve before it is planned", err, fault.Conflict, "not_planned")
		_, err = w.Review(t.Context(), alice, c.ID)
		refused(t, "review before it is planned", err, fault.Conflict, "nothing_to_decide")
		_, err = w.Reject(t.Context(), alice, c.ID, "no")
		refused(t, "reject before it is planned", err, fault.Conflict, "not_planned")
		close(hold)
		w.settle()
		w.approve(c.ID, alice)
		_, err = w.Approve(t.Context(), bob, c.ID, w.agree(c.ID))
		refused(t, "approve what is done", err, fault.Spent, "decided_before")
		_, err = w.Approve(t.Context(), alice, "chg_none", pipeline.Agreement{})
		refused(t, "approve nothing", err, fault.NotFound, "")
	})
}

func TestReject(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.propose(request(step("s1", "set", "a"))).ID
		for _, reason := range []model.Prose{"", model.Prose(strings.Repeat("x", 4001))} {
			_, err := w.Reject(t.Context(), alice, id, reason)
			refused(t, "reject without a reason, or with a book", err, fault.Invalid, "")
		}
		_, err := w.Reject(t.Context(), planner, id, "no")
		refused(t, "reject as an agent", err, fault.Denied, "not_an_approver")
		w.still(id, model.AwaitingApproval, toDecision)
		c, err := w.Reject(t.Context(), alice, id, "not today")
		if err != nil || c.Rejection == nil || c.Rejection.By != alice.Principal || c.Rejection.Reason != "not today" || c.Code() != fault.Denied {
			t.Fatalf("reject: %+v, %v", c, err)
		}
		_, err = w.Approve(t.Context(), bob, id, w.agree(id))
		refused(t, "approve after a no", err, fault.Spent, "decided_before")
		_, err = w.Execute(t.Context(), planner, id)
		refused(t, "execute after a no", err, fault.Denied, "rejected")
		w.still(id, model.Rejected, toDecision+" change.rejected")
	})
}

func TestCancel(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.propose(request(step("s1", "set", "a"))).ID
		_, err := w.Cancel(t.Context(), stranger, id)
		refused(t, "cancel what one may not see", err, fault.NotFound, "")
		_, err = w.Cancel(t.Context(), alice, id)
		refused(t, "cancel what is not one's own", err, fault.Denied, "not_yours")
		w.still(id, model.AwaitingApproval, toDecision)
		if c, err := w.Cancel(t.Context(), planner, id); err != nil || c.Code() != fault.Canceled {
			t.Fatalf("cancel: %v, %v", c, err)
		}
		_, err = w.Approve(t.Context(), alice, id, w.agree(id))
		refused(t, "approve what was withdrawn", err, fault.Spent, "decided_before")
		_, err = w.Execute(t.Context(), planner, id)
		refused(t, "execute what was withdrawn", err, fault.Conflict, "cancelled")
		_, err = w.Cancel(t.Context(), olga, id)
		refused(t, "cancel twice", err, fault.Conflict, "too_late")
		w.still(id, model.Cancelled, toDecision+" change.cancelled")
		done := w.propose(request(step("s1", "read", "a")))
		_, err = w.Cancel(t.Context(), planner, done.ID)
		refused(t, "cancel what is done", err, fault.Conflict, "too_late")
	})
}

func TestCancel_whatWasHeldUp(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.approvedOnly(request(step("s1", "set", "a")))
		c, err := w.Cancel(t.Context(), planner, id)
		if err != nil || c.Trouble != nil {
			t.Errorf("withdrawn because of %v, %v", c.Trouble, err)
		}
		w.still(id, model.Cancelled, heldUpEvents+" change.cancelled")
		if events := w.events(id); events[len(events)-1].Reason != "" {
			t.Errorf("it was withdrawn because of %q", events[len(events)-1].Reason)
		}
	})
}

// Case: C141.
func TestCancel_whileItIsPlanned(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		hold := make(chan struct{})
		w.executor.tell(func() { w.executor.observe = func(context.Context) error { <-hold; return nil } })
		c, err := w.Propose(t.Context(), planner, request(step("s1", "read", "a")), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Cancel(t.Context(), olga, c.ID); err != nil {
			t.Fatal(err)
		}
		close(hold)
		w.still(c.ID, model.Cancelled, "change.proposed change.cancelled")
	})
}

// Case: C140.
func TestExpiry_ofAnUnansweredRequest(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		swept, used := w.propose(request(step("s1", "set", "a"))).ID, w.propose(request(step("s1", "set", "b"))).ID
		agreed := w.agree(used)
		w.pass(wait)
		w.still(swept, model.AwaitingApproval, toDecision)
		w.pass(time.Millisecond) // and no sweep meanwhile
		_, err := w.Approve(t.Context(), alice, used, agreed)
		refused(t, "approve too late", err, fault.Expired, "waited_too_long")
		w.still(used, model.Expired, toDecision+" change.expired")
		w.later(time.Second)
		w.still(swept, model.Expired, toDecision+" change.expired")
		_, err = w.Execute(t.Context(), planner, swept)
		refused(t, "execute what expired", err, fault.Expired, "waited_too_long")
		_, err = w.Reject(t.Context(), alice, swept, "no")
		refused(t, "reject what expired", err, fault.Expired, "waited_too_long")
	})
}

func TestDecide_sixtyFourPeopleAtOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.propose(request(step("s1", "set", "a"))).ID
		agreed := w.agree(id)
		var wins, losses int
		for _, err := range w.atOnce(64, func(who model.Caller, _ int) error {
			_, err := w.Approve(t.Context(), who, id, agreed)
			return err
		}) {
			switch {
			case err == nil:
				wins++
			case fault.CodeOf(err) == fault.Spent && fault.ReasonOf(err) == "decided_before":
				losses++
			}
		}
		w.settle()
		if wins != 1 || losses != 63 {
			t.Errorf("%d of 64 won, %d were told that they lost", wins, losses)
		}
		if c := w.see(id); c.State != model.Done || w.executor.sent() != 1 || len(c.Approvals) != 1 {
			t.Errorf("it is %s, %d writs were sent, %d approvals count", c.State, w.executor.sent(), len(c.Approvals))
		}
		if got := w.told(id); got != toDecision+" change.approved"+toReceipt+freed {
			t.Errorf("the events are %q", got)
		}
	})
}

func TestDecide_yesAndNoAtOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		for i := range 8 {
			id := w.propose(request(step("s1", "set", strconv.Itoa(i)))).ID
			agreed := w.agree(id)
			before := w.executor.sent()
			errs := w.atOnce(2, func(who model.Caller, i int) (err error) {
				if i == 0 {
					_, err = w.Approve(t.Context(), who, id, agreed)
				} else {
					_, err = w.Reject(t.Context(), who, id, "no")
				}
				return err
			})
			w.settle()
			c := w.see(id)
			switch {
			case errs[0] == nil && errs[1] != nil && c.State == model.Done && w.executor.sent() == before+1:
			case errs[0] != nil && errs[1] == nil && c.State == model.Rejected && w.executor.sent() == before:
			default:
				t.Errorf("approve: %v, reject: %v; it is %s, %d writs were sent", errs[0], errs[1], c.State, w.executor.sent()-before)
			}
		}
	})
}

func TestExecute_atOnceWithCancel(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		for range 8 {
			id := w.approvedOnly(request(step("s1", "set", "a")))
			before := w.executor.sent()
			errs := w.atOnce(4, func(_ model.Caller, i int) (err error) {
				if i == 0 {
					_, err = w.Cancel(t.Context(), planner, id)
				} else {
					_, err = w.Execute(t.Context(), planner, id)
				}
				return err
			})
			w.settle()
			c, sent := w.see(id), w.executor.sent()-before
			if !(errs[0] == nil && c.State == model.Cancelled && sent == 0) && !(errs[0] != nil && c.State == model.Done && sent == 1) {
				t.Errorf("the errors are %v; it is %s, %d writs were sent", errs, c.State, sent)
			}
		}
	})
}

// atOnce calls f from n goroutines at once, each as another approver.
func (w *world) atOnce(n int, f func(who model.Caller, i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = f(caller("approver-"+string(rune('a'+i%26))+string(rune('a'+i/26)), writ.Human, model.Approver), i)
		})
	}
	close(start)
	all.Wait()
	return errs
}

// approvedOnly returns an approved change that was not carried out, because the
// executor was away; now it is back.
func (w *world) approvedOnly(r model.Request) string {
	w.t.Helper()
	id := w.propose(r).ID
	w.executor.tell(func() { w.executor.away = gone() })
	if c := w.approve(id, alice); c.State != model.Approved {
		w.t.Fatalf("it is %s although the executor is away", c.State)
	}
	w.executor.tell(func() { w.executor.away = nil })
	return id
}

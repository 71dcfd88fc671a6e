package pipeline_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
)

func TestSettle_receiptsThatAreNotBelieved(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(*writ.Receipt){
		"of another change":             func(r *writ.Receipt) { r.ChangeID = "chg_other" },
		"of another run":                func(r *writ.Receipt) { r.Run = "run_other" },
		"of another writ":               func(r *writ.Receipt) { r.WritDigest = writ.DigestBytes([]byte("other")) },
		"of a step that is not planned": func(r *writ.Receipt) { r.Step = "s9" },
		"of another step's entity":      func(r *writ.Receipt) { r.Entity = "mock/b" },
		"of another action":             func(r *writ.Receipt) { r.Action = "mock.read" },
		"of another system":             func(r *writ.Receipt) { r.System = "live" },
		"before the first":              func(r *writ.Receipt) { r.Sequence = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.executor.tell(func() {
					w.executor.forge = func(all []model.Receipt) []model.Receipt {
						for i := range all {
							forge(&all[i].Receipt)
						}
						return all
					}
				})
				id := w.propose(request(step("s1", "set", "a"), step("s2", "set", "b"))).ID
				w.approve(id, alice)
				w.later(time.Second)
				if c := w.see(id); c.State.Ended() || len(c.Receipts) != 0 || len(w.locks(nil)) != 2 {
					t.Errorf("it is %s with %d receipts and the locks %q", c.State, len(c.Receipts), w.locks(nil))
				}
				w.executor.tell(func() { w.executor.forge = nil })
				w.later(time.Second)
				if c := w.see(id); c.State != model.Done || len(c.Receipts) != 2 {
					t.Errorf("with the true receipts it is %s, with %d", c.State, len(c.Receipts))
				}
			})
		})
	}
}

func TestSettle_sameReceiptTwice(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() {
			w.executor.forge = func(all []model.Receipt) []model.Receipt { return append(all, all...) }
		})
		id := w.propose(request(step("s1", "set", "a"))).ID
		w.approve(id, alice)
		w.later(time.Second)
		if c := w.see(id); c.State != model.Executing && c.State != model.Claimed || len(c.Receipts) != 0 {
			t.Errorf("it is %s with %d receipts", c.State, len(c.Receipts))
		}
		w.executor.tell(func() { w.executor.forge = nil })
		w.later(time.Second)
	})
}

// A step of which the executor says nothing may have been done.
func TestSettle_withoutAReceipt(t *testing.T) {
	t.Parallel()
	for _, missing := range []int{1, 2} {
		t.Run(strconv.Itoa(missing), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.executor.tell(func() {
					w.executor.forge = func(all []model.Receipt) []model.Receipt { return all[:2-missing] }
				})
				c := w.carriedOut(request(step("s1", "set", "a"), step("s2", "set", "b")))
				if c.State != model.Unknown || c.Code() != fault.Unknown || c.Trouble.Reason != "receipt_missing" || !c.Held() {
					t.Errorf("it is %s, %v", c.State, c.Trouble)
				}
				if diff := cmp.Diff([]string{"mock/a orphaned it", "mock/b orphaned it"}, w.locks(map[string]string{c.ID: "it"})); diff != "" {
					t.Errorf("the locks differ (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestSettle_asReceiptsCome(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold, w.executor.early = true, 1 })
		id := w.propose(request(step("s1", "set", "a"), step("s2", "set", "b"), step("s3", "set", "c"))).ID
		w.approve(id, alice)
		w.later(25 * time.Second) // long after the approval: what runs goes on
		if c := w.see(id); c.State != model.Executing || len(c.Receipts) != 1 || len(w.locks(nil)) != 3 {
			t.Errorf("it is %s with %d receipts and the locks %q", c.State, len(c.Receipts), w.locks(nil))
		}
		written := w.store.written()
		w.later(25 * time.Second)
		if n := w.store.written() - written; n != 0 {
			t.Errorf("waiting for a receipt took %d transactions", n)
		}
		w.executor.tell(func() { w.executor.early = 2 })
		w.settle()
		if c := w.see(id); len(c.Receipts) != 2 {
			t.Errorf("it has %d receipts", len(c.Receipts))
		}
		w.executor.letGo()
		w.settle()
		if c := w.see(id); c.State != model.Done || len(c.Receipts) != 3 || c.EndedAt.IsZero() || c.StartedAt.IsZero() {
			t.Errorf("it is %s with %d receipts", c.State, len(c.Receipts))
		}
	})
}

func TestSettle_whileTheExecutorIsAway(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold = true })
		id := w.propose(request(step("s1", "set", "a"))).ID
		w.approve(id, alice)
		w.executor.tell(func() { w.executor.away = gone() })
		w.later(2 * time.Minute)
		if c := w.see(id); c.State != model.Executing || len(w.locks(nil)) != 1 {
			t.Errorf("it is %s with the locks %q", c.State, w.locks(nil))
		}
		w.executor.tell(func() { w.executor.away = nil })
		w.executor.letGo()
		w.later(time.Second)
		if c := w.see(id); c.State != model.Done {
			t.Errorf("it is %s", c.State)
		}
	})
}

// An executor that took a writ and forgot it cannot say what came of it.
//
// Case: C061.
func TestSettle_forgotten(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold = true })
		id := w.propose(request(step("s1", "set", "a"))).ID
		w.approve(id, alice)
		w.executor.tell(func() { clear(w.executor.runs) })
		w.later(valid + 29*time.Second)
		if c := w.see(id); c.State != model.Executing {
			t.Errorf("it is %s", c.State)
		}
		w.later(2 * time.Second)
		if c := w.see(id); c.State != model.Unknown || w.told(id) != approvedEvents+" lock.taken change.claimed change.executing"+left {
			t.Errorf("it is %s with the events %q", c.State, w.told(id))
		}
		if got := w.locks(map[string]string{id: "it"}); len(got) != 1 || got[0] != "mock/a orphaned it" {
			t.Errorf("the locks are %q", got)
		}
	})
}

// What is unknown stays so, and nothing but its own recovery touches its target.
//
// Cases: C058, C059.
func TestUnknown_staysAndKeepsItsLock(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.outcomes["mock/a"] = writ.Unknown })
		id := w.carriedOut(request(step("s1", "set", "a"))).ID
		w.executor.tell(func() { clear(w.executor.outcomes) })
		_, err := w.Execute(t.Context(), planner, id)
		refused(t, "execute again", err, fault.Spent, "spent")
		_, err = w.Rollback(t.Context(), planner, id)
		refused(t, "undo what is unknown", err, fault.Conflict, "unknown_outcome")
		other := w.carriedOut(request(step("s1", "set", "a")))
		if other.State != model.Approved {
			t.Errorf("another change of the same thing is %s", other.State)
		}
		w.later(2 * time.Minute)
		w.restart()
		w.later(2 * time.Minute)
		if c := w.see(id); c.State != model.Unknown || w.executor.sent() != 1 {
			t.Errorf("it is %s, %d writs were sent", c.State, w.executor.sent())
		}
		if got := w.locks(map[string]string{id: "it"}); len(got) != 1 || got[0] != "mock/a orphaned it" {
			t.Errorf("the locks are %q", got)
		}
	})
}

// Whatever cannot be stored did not happen, and nothing is left behind by it.
func TestStore_failsOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fails  model.EventType
		first  model.State // where the failure leaves the change; "" is no change
		events string
	}{
		{model.ChangeProposed, "", ""},
		{model.ChangePlanned, model.Failed, "change.proposed change.ended"},
		{model.ChangeDecided, model.Denied, "change.proposed change.planned change.ended"},
		{model.ChangeApproved, model.AwaitingApproval, toDecision},
		{model.LockTaken, model.Approved, heldUpEvents},
		{model.ChangeClaimed, model.Approved, heldUpEvents},
		{model.ChangeExecuting, model.Done, approvedEvents + toReceipt + freed},
		{model.StepEnded, model.Done, approvedEvents + toReceipt + freed},
		{model.LockFreed, model.Done, approvedEvents + toReceipt + freed},
		{model.ChangeEnded, model.Done, approvedEvents + toReceipt + freed},
	} {
		t.Run(string(c.fails), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.store.fail(c.fails, 1)
				proposed, err := w.Propose(t.Context(), planner, request(step("s1", "set", "a")), "")
				if c.first == "" {
					refused(t, "propose", err, fault.Unavailable, "disk_full")
					return
				}
				w.settle()
				id := proposed.ID
				if w.see(id).State == model.AwaitingApproval {
					if _, err := w.Approve(t.Context(), alice, id, w.agree(id)); c.fails == model.ChangeApproved {
						refused(t, "approve", err, fault.Unavailable, "disk_full")
					}
				}
				w.later(time.Second)
				if got := w.see(id); got.State != c.first || w.told(id) != c.events {
					t.Errorf("it is %s with the events %q", got.State, w.told(id))
				}
				switch c.first {
				case model.AwaitingApproval:
					w.approve(id, alice)
				case model.Approved:
					if len(w.locks(nil)) != 0 || w.executor.sent() != 0 {
						t.Errorf("the locks are %q, %d writs were sent", w.locks(nil), w.executor.sent())
					}
					if _, err := w.Execute(t.Context(), planner, id); err != nil {
						t.Error(err)
					}
					w.settle()
				default:
					return
				}
				if got := w.see(id); got.State != model.Done {
					t.Errorf("once the disk has room it is %s", got.State)
				}
			})
		})
	}
}

// A change that was claimed and then could not be given up is not forgotten.
func TestStore_failsWhenAChangeIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]func(*world){
		"the audit failed":  func(w *world) { w.audit.failAt(model.ChangeClaimed, fault.New(fault.Unavailable, "The disk is full.")) },
		"it was refused":    func(w *world) { w.executor.take = func(*writ.Writ) error { return fault.New(fault.Refused, "No.") } },
		"it was not taken":  func(w *world) { w.executor.take = func(*writ.Writ) error { return gone() } },
		"it never arrived":  func(w *world) { w.executor.take = func(*writ.Writ) error { return lost() } },
		"dispatch panicked": func(w *world) { w.executor.take = func(*writ.Writ) error { panic("told so") } },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				id := w.propose(request(step("s1", "set", "a"))).ID
				w.executor.tell(func() { told(w) })
				w.store.fail(model.ChangeEnded, 1)
				if c := w.approve(id, alice); c.State != model.Claimed || len(w.locks(nil)) != 1 {
					t.Errorf("it is %s with the locks %q", c.State, w.locks(nil))
				}
				w.later(valid + 32*time.Second)
				if c := w.see(id); c.State != model.Failed || c.Trouble.Reason != "not_admitted" || len(w.locks(nil)) != 0 {
					t.Errorf("it is %s, %v, with the locks %q", c.State, c.Trouble, w.locks(nil))
				}
			})
		})
	}
}

func TestStepEnded_tellsWhatWasVerified(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		for outcome, want := range map[writ.Outcome]string{
			writ.Done: "passed", writ.Unverified: "failed", writ.Failed: "", writ.Unknown: "", writ.NotExecuted: "",
		} {
			entity := "mock/" + strings.ReplaceAll(string(outcome), "_", "-")
			if outcome != writ.Done {
				w.executor.tell(func() { w.executor.outcomes[entity] = outcome })
			}
			c := w.carriedOut(request(step("s1", "set", strings.TrimPrefix(entity, "mock/"))))
			w.settle()
			for _, e := range w.events(c.ID) {
				if e.Type == model.StepEnded && e.VerificationResult != want {
					t.Errorf("%s: the verification is %q, want %q", outcome, e.VerificationResult, want)
				}
			}
		}
	})
}

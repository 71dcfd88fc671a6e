package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/policy"
)

const (
	approvedEvents = toDecision + " change.approved"
	heldUpEvents   = approvedEvents + " change.held_up"
)

func TestExecute_onlyOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.propose(request(step("s1", "set", "a"))).ID
		_, err := w.Execute(t.Context(), planner, id)
		refused(t, "execute before it is approved", err, fault.ApprovalMissing, "approval_missing")
		if row := fault.CodeOf(err).Row(); row.HTTP != 428 || row.Exit != 4 {
			t.Errorf("a missing approval is HTTP %d and exit status %d", row.HTTP, row.Exit)
		}
		w.still(id, model.AwaitingApproval, toDecision)
		w.approve(id, alice)
		_, err = w.Execute(t.Context(), planner, id)
		refused(t, "execute again", err, fault.Spent, "spent")
		if n := w.executor.sent(); n != 1 {
			t.Errorf("%d writs were sent", n)
		}
	})
}

func TestExecute_bySomebodyWhoMay(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.approvedOnly(request(step("s1", "set", "a")))
		_, err := w.Execute(t.Context(), stranger, id)
		refused(t, "execute what one may not see", err, fault.NotFound, "")
		_, err = w.Execute(t.Context(), alice, id)
		refused(t, "execute what is not one's own", err, fault.Denied, "not_yours")
		w.still(id, model.Approved, heldUpEvents)
		c, err := w.Execute(t.Context(), olga, id)
		if err != nil || c.RunID == "" {
			t.Fatalf("execute as operator: %v, %v", c, err)
		}
		w.settle()
		if c := w.see(id); c.State != model.Done || w.executor.sent() != 1 {
			t.Errorf("it is %s, %d writs were sent", c.State, w.executor.sent())
		}
	})
}

// Case: C049.
func TestExecute_atOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.approvedOnly(request(step("s1", "set", "a")))
		w.executor.tell(func() { w.executor.hold = true })
		won := 0
		for _, err := range w.atOnce(16, func(model.Caller, int) error {
			_, err := w.Execute(t.Context(), planner, id)
			return err
		}) {
			if err == nil {
				won++
			} else {
				refused(t, "execute beside others", err, fault.Spent, "spent")
			}
		}
		w.executor.letGo()
		w.settle()
		if c := w.see(id); won != 1 || c.State != model.Done || len(c.Receipts) != 1 {
			t.Errorf("%d won; it is %s with %d receipts", won, c.State, len(c.Receipts))
		}
	})
}

func TestExpiry_ofAnUnusedApproval(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		used := w.approvedOnly(request(step("s1", "set", "a")))
		swept := w.approvedOnly(request(step("s1", "set", "b")))
		w.pass(valid - time.Millisecond)
		w.still(used, model.Approved, heldUpEvents)
		w.pass(time.Millisecond) // an approval is good until, not at, its end
		_, err := w.Execute(t.Context(), planner, used)
		refused(t, "execute too late", err, fault.Expired, "approval_expired")
		w.still(used, model.Expired, heldUpEvents+" change.expired")
		w.later(time.Second)
		w.still(swept, model.Expired, heldUpEvents+" change.expired")
	})
}

func TestExpiry_ofWhatRunsAlone(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.locked = true })
		id := w.propose(request(step("s1", "read", "a"))).ID
		w.pass(policy.DefaultValid - time.Millisecond)
		w.still(id, model.Approved, toDecision+" change.held_up")
		w.executor.tell(func() { w.executor.locked = false })
		w.pass(time.Millisecond)
		_, err := w.Execute(t.Context(), planner, id)
		refused(t, "execute too late", err, fault.Expired, "approval_expired")
		w.still(id, model.Expired, toDecision+" change.held_up change.expired")
	})
}

func TestExpiry_ofTheFirstOfTwoApprovals(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		r := request(step("s1", "set", "a"))
		r.ChangeTicket = "TWO"
		id := w.propose(r).ID
		w.approve(id, alice)
		w.pass(valid)
		w.approve(id, bob)
		w.still(id, model.Expired, approvedEvents+" change.approved change.expired")
	})
}

func TestUse_afterTheWorldChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		edit   func(*testing.T, *pipeline.Config)
		reason string
	}{
		{"the policy", func(t *testing.T, c *pipeline.Config) { c.Policy = policyOf(t, rules+"\n# another") }, "policy_changed"},
		{"the action", func(t *testing.T, c *pipeline.Config) { c.Catalog = catalogOf(t, "Set one value\n", "Set one thing\n") }, "action_changed"},
		{"the action is gone", func(t *testing.T, c *pipeline.Config) { c.Catalog = catalogOf(t, "mock.set", "mock.put") }, "action_changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				approved := w.approvedOnly(request(step("s1", "set", "a")))
				waiting := w.propose(request(step("s1", "set", "b"))).ID
				w.restart(func(config *pipeline.Config) { c.edit(t, config) })
				w.still(approved, model.Expired, heldUpEvents+" change.expired")
				_, err := w.Execute(t.Context(), planner, approved)
				refused(t, "execute what was approved in another world", err, fault.Expired, c.reason)
				w.approve(waiting, alice)
				w.still(waiting, model.Expired, approvedEvents+" change.expired")
			})
		})
	}
}

func TestLock_heldByAnother(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold = true })
		first := w.carriedOut(request(step("s1", "set", "a"), step("s2", "set", "b"))).ID
		second := w.carriedOut(request(step("s1", "set", "c"), step("s2", "set", "b"))).ID
		names := map[string]string{first: "first", second: "second"}
		for range 2 {
			c := w.see(second)
			if c.State != model.Approved || w.executor.sent() != 1 {
				t.Fatalf("the second is %s, %d writs were sent", c.State, w.executor.sent())
			}
			if c.Trouble == nil || c.Trouble.Code != fault.Conflict {
				t.Errorf("what is in its way is %v", c.Trouble)
			}
			if got := w.locks(names); len(got) != 2 || got[0] != "mock/a active first" || got[1] != "mock/b active first" {
				t.Errorf("the locks are %q", got)
			}
			_, err := w.Execute(t.Context(), planner, second)
			refused(t, "execute what is locked", err, fault.Conflict, "")
		}
		w.executor.letGo()
		w.settle()
		if c := w.see(first); c.State != model.Done {
			t.Errorf("the first is %s", c.State)
		}
		if _, err := w.Execute(t.Context(), planner, second); err != nil {
			t.Errorf("execute what is no longer locked: %v", err)
		}
		w.settle()
		if c := w.see(second); c.State != model.Done || c.Trouble != nil || len(w.locks(names)) != 0 {
			t.Errorf("the second is %s, the locks are %q", c.State, w.locks(names))
		}
		if got := w.told(second); got != heldUpEvents+" lock.taken"+" lock.taken change.claimed change.executing step.ended step.ended lock.released lock.released change.ended" {
			t.Errorf("the events are %q", got)
		}
	})
}

func TestLock_onlyWhatIsWritten(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold = true })
		w.carriedOut(request(step("s1", "set", "a")))
		read := w.propose(request(step("s1", "read", "a")))
		w.executor.letGo()
		w.settle()
		if c := w.see(read.ID); c.State != model.Done {
			t.Errorf("reading what is locked is %s", c.State)
		}
	})
}

func TestLock_alsoOfWhatIsTouched(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() {
			w.executor.hold = true
			w.executor.peek = func(o *writ.Observation) { o.Touches = []string{"mock/gate"} }
		})
		w.carriedOut(request(step("s1", "set", "a")))
		second := w.carriedOut(request(step("s1", "set", "b")))
		if second.State != model.Approved {
			t.Errorf("a change that touches what is locked is %s", second.State)
		}
		w.executor.letGo()
	})
}

func TestDispatch_notSent(t *testing.T) {
	t.Parallel()
	taken := approvedEvents + " lock.taken change.claimed"
	for _, c := range []struct {
		name   string
		told   func(*world)
		state  model.State
		code   fault.Code
		reason string
		events string
	}{
		{"the audit file cannot be written", func(w *world) {
			w.audit.failAt(model.ChangeClaimed, fault.New(fault.Unavailable, "The disk is full.").Because("audit"))
		}, model.Failed, fault.Unavailable, "audit", taken + freed},
		{"the audit file could not be written before", func(w *world) { w.audit.fail(fault.New(fault.Unavailable, "The disk is full.").Because("audit")) },
			model.Approved, fault.ApprovalMissing, "audit", heldUpEvents},
		{"the executor has no room", func(w *world) {
			w.executor.hello = func(h *writ.Hello) {
				h.Refuses = &writ.Refusal{Code: fault.Unavailable, Reason: "disk_full", Text: "The disk is full."}
			}
		}, model.Approved, fault.ApprovalMissing, "disk_full", heldUpEvents},
		{"the executor goes away", func(w *world) { w.executor.take = func(*writ.Writ) error { return gone() } },
			model.Failed, fault.Unavailable, "not_sent", taken + freed},
		{"the executor refuses", func(w *world) {
			w.executor.take = func(*writ.Writ) error { return fault.New(fault.Refused, "No.").Because("wrong_executor") }
		}, model.Failed, fault.Refused, "wrong_executor", taken + freed},
		{"the executor says it is too late", func(w *world) {
			w.executor.take = func(*writ.Writ) error { return fault.New(fault.Expired, "Too late.").Because("approval_expired") }
		}, model.Failed, fault.Expired, "approval_expired", taken + freed},
		{"the executor is away before", func(w *world) { w.executor.away = gone() },
			model.Approved, fault.ApprovalMissing, "not_sent", heldUpEvents},
		{"the vault is locked", func(w *world) { w.executor.locked = true },
			model.Approved, fault.ApprovalMissing, "vault_locked", heldUpEvents},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				id := w.propose(request(step("s1", "set", "a"))).ID
				w.executor.tell(func() { c.told(w) })
				got := w.approve(id, alice)
				reason := ""
				if got.Trouble != nil {
					reason = got.Trouble.Reason
				}
				if got.State != c.state || got.Code() != c.code || reason != c.reason {
					t.Errorf("it is %s, code %q, reason %q", got.State, got.Code(), reason)
				}
				if told := w.told(id); told != c.events {
					t.Errorf("the events are %q", told)
				}
				if locks := w.locks(nil); len(locks) > 0 || len(w.executor.runs) > 0 {
					t.Errorf("the locks are %q, the runs %v", locks, w.executor.runs)
				}
				w.audit.fail(nil)
			})
		})
	}
}

// What may have arrived is never sent again, whatever the error says.
func TestDispatch_perhapsSent(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"the connection broke":         lost(),
		"out of time":                  fault.New(fault.Timeout, "Too slow."),
		"the caller's time":            context.DeadlineExceeded,
		"an error that nobody knows":   errors.New("odd"),
		"it was spent":                 fault.New(fault.Spent, "This writ was used before."),
		"the executor cannot remember": fault.New(fault.Unavailable, "The disk is full.").Because("journal_failed"),
		"the executor is confused":     fault.New(fault.Internal, "Something went wrong."),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.executor.tell(func() { w.executor.deaf = err })
				c := w.carriedOut(request(step("s1", "set", "a")))
				if c.State != model.Done || w.told(c.ID) != approvedEvents+toReceipt+freed || c.StartedAt.IsZero() {
					t.Errorf("it is %s with the events %q", c.State, w.told(c.ID))
				}
			})
		})
	}
}

func TestDispatch_neverArrived(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.take = func(*writ.Writ) error { return lost() } })
		c := w.carriedOut(request(step("s1", "set", "a")))
		claimed := approvedEvents + " lock.taken change.claimed"
		if c.State != model.Claimed || w.told(c.ID) != claimed || len(w.locks(nil)) != 1 {
			t.Errorf("it is %s with the events %q", c.State, w.told(c.ID))
		}
		w.later(valid + 29*time.Second) // the executor's clock may be behind
		if c := w.see(c.ID); c.State != model.Claimed || len(w.locks(nil)) != 1 {
			t.Errorf("it is %s while the writ might still be admitted", c.State)
		}
		w.later(2 * time.Second)
		c = w.see(c.ID)
		if c.State != model.Failed || c.Trouble.Reason != "not_admitted" || c.Code() != fault.Unavailable || w.told(c.ID) != claimed+freed {
			t.Errorf("it is %s, %v, with the events %q", c.State, c.Trouble, w.told(c.ID))
		}
	})
}

// A stage that panics ends its own change at most.
func TestPanic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		told  func(*executor)
		state model.State
	}{
		{"while it is planned", func(x *executor) { x.peek = func(*writ.Observation) { panic("told so") } }, model.Failed},
		{"before anything is sent", func(x *executor) { x.greet = func(context.Context) error { panic("told so") } }, model.Approved},
		{"when it was sent", func(x *executor) { x.panics = "told so" }, model.Done},
		{"once while it is settled", func(x *executor) {
			first := true
			x.forge = func(r []model.Receipt) []model.Receipt {
				if first {
					first = false
					panic("told so")
				}
				return r
			}
		}, model.Done},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				id := ""
				if c.state == model.Failed {
					w.executor.tell(func() { c.told(w.executor) })
					id = w.propose(request(step("s1", "set", "a"))).ID
				} else {
					id = w.propose(request(step("s1", "set", "a"))).ID
					w.executor.tell(func() { c.told(w.executor) })
					w.approve(id, alice)
				}
				w.later(time.Second)
				if got := w.see(id); got.State != c.state {
					t.Errorf("it is %s, %v, want %s", got.State, got.Trouble, c.state)
				}
			})
		})
	}
}

// A store from a backup counts its locks from where it was. With its epoch
// raised, the fences are higher than any that an executor has seen.
//
// Case: C151.
func TestFence_risesWithTheEpoch(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		for range 3 {
			w.carriedOut(request(step("s1", "set", "a")))
		}
		w.restart(func(c *pipeline.Config) { c.Epoch++ })
		w.carriedOut(request(step("s1", "set", "b"))) // its first lock
		fence := func(i int) int64 { return w.executor.writs[i].Fences[0].Number }
		if fence(0) >= fence(1) || fence(1) >= fence(2) {
			t.Errorf("the fences of one entity are %d, %d, %d", fence(0), fence(1), fence(2))
		}
		if fence(3) <= fence(2) {
			t.Errorf("in a later epoch the fence is %d, before it was %d", fence(3), fence(2))
		}
	})
}

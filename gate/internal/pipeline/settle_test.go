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
	"writ/gate/internal/pipeline"
	"writ/sys"
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

// grace is how long the executor of these tests may take: an approval lasts 20 s, a step 60 s.
const grace = valid + time.Minute + pipeline.AnswerGrace

// late lets a change be carried out by an executor that is not heard again, until
// the gate's deadline has passed.
func (w *world) late(r model.Request, early int) *model.Change {
	w.t.Helper()
	w.executor.tell(func() { w.executor.hold, w.executor.early = true, early })
	id := w.carriedOut(r).ID
	w.executor.tell(func() { w.executor.away = gone() })
	w.later(grace - 2*time.Second)
	if c := w.see(id); c.State != model.Executing {
		w.t.Fatalf("before the deadline it is %s", c.State)
	}
	w.later(6 * time.Second)
	c := w.see(id)
	if c.State != model.Unknown || c.Trouble.Reason != "executor_silent" || !strings.HasPrefix(c.Trouble.Text, "The executor has not answered for 6m20s") {
		w.t.Fatalf("after the deadline it is %s: %+v", c.State, c.Trouble)
	}
	return c
}

// back lets the executor come back, with all that it did.
func (w *world) back() {
	w.executor.tell(func() { w.executor.away = nil })
	w.executor.letGo()
	w.later(5 * time.Second)
}

// A run ends also if its executor never comes back, and what is unknown stays
// locked. What the executor tells later is kept, and people decide.
//
// Cases: C061, C062.
func TestSilence(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.late(request(step("s1", "set", "a"), step("s2", "set", "b")), 1).ID
		names := map[string]string{id: "it"}
		both := []string{"mock/a orphaned it", "mock/b orphaned it"}
		if diff := cmp.Diff(both, w.locks(names)); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
		_, _, _, err := w.Probe(t.Context(), alice, id)
		refused(t, "look while the executor is away", err, fault.Unavailable, "not_sent")
		w.restart() // it is asked on after a restart
		w.later(20 * time.Minute)
		w.back()
		c := w.see(id)
		if c.State != model.Unknown || c.Trouble.Reason != "answered_late" || len(c.Receipts) != 2 || w.executor.sent() != 1 {
			t.Errorf("it is %s with %d receipts: %+v", c.State, len(c.Receipts), c.Trouble)
		}
		if diff := cmp.Diff(both, w.locks(names)); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
		if told := w.told(id); !strings.HasSuffix(told, left+" step.ended change.answered") && !strings.HasSuffix(told, " change.ended step.ended change.answered") {
			t.Errorf("the events are %s", told)
		}
		_, found, findings, err := w.Probe(t.Context(), alice, id)
		if err != nil || len(findings) != 0 || found.Verdict != writ.Happened {
			t.Fatalf("it found %+v: %v", found.Outlook, err)
		}
		if c, err = w.Reconcile(t.Context(), alice, id, pipeline.Settlement{ShownDigest: found.ShownDigest, Resolution: model.Adopt}); err != nil || c.State != model.Done {
			t.Fatalf("decide: %v", err)
		}
		if got := w.locks(names); len(got) != 0 {
			t.Errorf("the locks are %q", got)
		}
	})
}

// What the executor tells late leaves to people what it leaves open.
func TestSilence_ends(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told       func(*executor)
		back       bool // the run is known when the executor is back
		reason     string
		doubtful   int
		resolution model.Resolution
		end        model.State
	}{
		"nothing was done":      {func(x *executor) { x.outcomes["mock/a"] = writ.NotExecuted }, true, "answered_late", 0, model.Absent, model.Failed},
		"nothing had to be":     {func(x *executor) { x.unchange["mock/a"], x.unchange["mock/b"] = true, true }, true, "answered_late", 0, model.Absent, model.Done},
		"it does not know":      {func(x *executor) { x.outcomes["mock/a"] = writ.Unknown }, true, "answered_late", 1, model.Adopt, model.Failed},
		"it was undone":         {func(x *executor) { x.outcomes["mock/b"] = writ.Failed }, true, "answered_late", 0, model.Absent, model.RolledBack},
		"it forgot":             {func(*executor) {}, false, "run_not_known", 2, model.Adopt, model.Done},
		"undoing it did not go": {func(x *executor) { x.outcomes["mock/b"], x.outcomes["undo mock/a"] = writ.Failed, writ.RollbackFailed }, true, "answered_late", 1, model.Adopt, model.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.executor.tell(func() { c.told(w.executor) })
				r := request(step("s1", "set", "a"), step("s2", "set", "b"))
				r.OnFailure = writ.Rollback
				id := w.late(r, 0).ID
				if !c.back {
					w.executor.tell(func() { clear(w.executor.runs) })
				}
				w.back()
				got := w.see(id)
				if got.State != model.Unknown || got.Trouble.Reason != c.reason || len(w.locks(nil)) != 2 {
					t.Errorf("it is %s, %+v, with the locks %q", got.State, got.Trouble, w.locks(nil))
				}
				_, found, findings, err := w.Probe(t.Context(), alice, id)
				if err != nil || len(findings) != c.doubtful {
					t.Fatalf("%d findings: %v", len(findings), err)
				}
				got, err = w.Reconcile(t.Context(), alice, id, pipeline.Settlement{ShownDigest: found.ShownDigest, Resolution: c.resolution})
				if err != nil {
					t.Fatal(err)
				}
				if got.State != c.end || len(w.locks(nil)) != 0 {
					t.Errorf("it is decided as %s with the locks %q", got.State, w.locks(nil))
				}
			})
		})
	}
}

// An executor that is there and does not come to an end is not believed for ever,
// and nobody decides while it is at it.
//
// Case: C062.
func TestSilence_ofOneThatIsThere(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold, w.executor.early = true, 1 })
		id := w.carriedOut(request(step("s1", "set", "a"), step("s2", "set", "b"))).ID
		w.later(grace + 15*time.Second)
		c := w.see(id)
		if c.State != model.Unknown || !strings.HasPrefix(c.Trouble.Text, "The executor says after 6m20s that it is still at it") {
			t.Fatalf("it is %s: %+v", c.State, c.Trouble)
		}
		_, _, _, err := w.Probe(t.Context(), alice, id)
		refused(t, "look while it is at it", err, fault.Conflict, "still_running")
		w.executor.letGo() // and whoever looks need not wait for the gate to ask
		if _, found, _, err := w.Probe(t.Context(), alice, id); err != nil || found.Verdict != writ.Happened {
			t.Errorf("it found %+v: %v", found.Outlook, err)
		}
		w.settle()
	})
}

// What only reads leaves nothing in doubt.
func TestSilence_ofARead(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.hold = true })
		id := w.propose(request(step("s1", "read", "a"))).ID
		w.executor.tell(func() { w.executor.away = gone() })
		w.later(11*time.Minute + 5*time.Second)
		if c := w.see(id); c.State != model.Failed || c.Code() != fault.Timeout || c.Trouble.Reason != "executor_silent" {
			t.Errorf("it is %s: %+v", c.State, c.Trouble)
		}
	})
}

// A wall clock that is set brings no deadline nearer, and after another start of
// the machine it begins anew.
func TestSilence_whateverTheClockSays(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		wall, up := w.clocks()
		boot := "one"
		w.restart(func(c *pipeline.Config) {
			c.Sys.Uptime = func() sys.Moment { return sys.Moment{Boot: boot, Up: time.Duration(up.Load())} }
		})
		w.executor.tell(func() { w.executor.hold = true })
		id := w.carriedOut(request(step("s1", "set", "a"))).ID
		w.executor.tell(func() { w.executor.away = gone() })
		wall.Store(int64(decade))
		w.later(5 * time.Second)
		if c := w.see(id); c.State != model.Executing {
			t.Fatalf("ten years on by the wall clock it is %s", c.State)
		}
		wall.Store(0)
		up.Store(int64(grace - time.Millisecond))
		w.Stop()
		boot = "two"
		w.start(w.Config)
		w.later(5 * time.Second)
		up.Store(int64(2*grace - 2*time.Millisecond))
		w.later(5 * time.Second)
		if c := w.see(id); c.State != model.Executing {
			t.Fatalf("a moment before the new deadline it is %s", c.State)
		}
		wall.Store(-int64(time.Hour))
		up.Store(int64(2 * grace))
		w.later(5 * time.Second)
		if c := w.see(id); c.State != model.Unknown {
			t.Errorf("after it, it is %s", c.State)
		}
		w.back()
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

package pipeline_test

import (
	"context"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/store"
)

// blocked makes observing wait for the end of its caller.
func blocked(x *executor) {
	x.observe = func(ctx context.Context) error {
		<-ctx.Done()
		return lost()
	}
}

// Stop, New and Start on the same store: each state goes on to where it would
// have gone, and nothing is sent twice. Long on purpose: one row a state.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(*world) string // brings a change into a state and returns its id
		state  model.State         // that state
		then   func(*world, string)
		end    model.State
		events string
		writs  int
	}{
		{"proposed", func(w *world) string {
			w.executor.tell(func() { blocked(w.executor) })
			return w.propose(request(step("s1", "set", "a"))).ID
		}, model.Proposed, nil, model.AwaitingApproval, toDecision, 0},
		{"planned, to wait", func(w *world) string {
			w.store.fail(model.ChangeDecided, 1)
			w.store.fail(model.ChangeEnded, 1)
			return w.propose(request(step("s1", "set", "a"))).ID
		}, model.Planned, nil, model.AwaitingApproval, toDecision, 0},
		{"planned, to run alone", func(w *world) string {
			w.store.fail(model.ChangeDecided, 1)
			w.store.fail(model.ChangeEnded, 1)
			return w.propose(request(step("s1", "read", "a"))).ID
		}, model.Planned, nil, model.Done, toDecision + " change.claimed change.executing step.ended change.ended", 1},
		{"awaiting approval", func(w *world) string {
			return w.propose(request(step("s1", "set", "a"))).ID
		}, model.AwaitingApproval, func(w *world, id string) { w.approve(id, alice) }, model.Done, approvedEvents + toReceipt + freed, 1},
		{"awaiting the second approval", func(w *world) string {
			r := request(step("s1", "set", "a"))
			r.ChangeTicket = "TWO"
			id := w.propose(r).ID
			w.approve(id, alice)
			return id
		}, model.AwaitingApproval, func(w *world, id string) { w.approve(id, bob) }, model.Done, approvedEvents + " change.approved" + toReceipt + freed, 1},
		{"approved", func(w *world) string { return w.approvedOnly(request(step("s1", "set", "a"))) },
			model.Approved, nil, model.Done, heldUpEvents + toReceipt + freed, 1},
		{"claimed, and it arrived", func(w *world) string {
			w.executor.tell(func() { w.executor.deaf, w.executor.away = lost(), nil })
			w.executor.tell(func() {
				w.executor.take = func(*writ.Writ) error { w.executor.away = gone(); return nil }
			})
			return w.carriedOut(request(step("s1", "set", "a"))).ID
		}, model.Claimed, func(w *world, _ string) { w.executor.tell(func() { w.executor.away = nil }) },
			model.Done, approvedEvents + toReceipt + freed, 1},
		{"claimed, and it did not arrive", func(w *world) string {
			w.executor.tell(func() { w.executor.take = func(*writ.Writ) error { return lost() } })
			return w.carriedOut(request(step("s1", "set", "a"))).ID
		}, model.Claimed, func(w *world, _ string) { w.later(valid + 32*time.Second) },
			model.Failed, approvedEvents + " lock.taken change.claimed" + freed, 1},
		{"executing", func(w *world) string {
			w.executor.tell(func() { w.executor.hold = true })
			return w.carriedOut(request(step("s1", "set", "a"))).ID
		}, model.Executing, func(w *world, _ string) { w.executor.letGo() }, model.Done, approvedEvents + toReceipt + freed, 1},
		{"executing, with one receipt", func(w *world) string {
			w.executor.tell(func() { w.executor.hold, w.executor.early = true, 1 })
			return w.carriedOut(request(step("s1", "set", "a"), step("s2", "read", "b"))).ID
		}, model.Executing, func(w *world, _ string) { w.executor.letGo() },
			model.Done, approvedEvents + toReceipt + " step.ended" + freed, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				id := c.before(w)
				if got := w.see(id); got.State != c.state {
					t.Fatalf("it is %s before the restart, want %s", got.State, c.state)
				}
				w.Stop()
				w.executor.tell(func() { w.executor.observe = nil })
				if got := w.see(id); got.State != c.state {
					t.Errorf("stopping moved it from %s to %s", c.state, got.State)
				}
				w.restart()
				if c.then != nil {
					c.then(w, id)
				}
				w.later(time.Second)
				if got := w.see(id); got.State != c.end || w.told(id) != c.events || w.executor.sent() != c.writs {
					t.Errorf("after it, it is %s with %d writs and the events %q", got.State, w.executor.sent(), w.told(id))
				}
			})
		})
	}
}

func TestRestart_endsStay(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		rejected, cancelled := w.propose(request(step("s1", "set", "a"))).ID, w.propose(request(step("s2", "set", "a"))).ID
		if _, err := w.Reject(t.Context(), alice, rejected, "no"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Cancel(t.Context(), planner, cancelled); err != nil {
			t.Fatal(err)
		}
		ends := map[string]model.State{rejected: model.Rejected, cancelled: model.Cancelled}
		ends[w.propose(request(step("s1", "never", "a"))).ID] = model.Denied
		ends[w.carriedOut(request(step("s1", "set", "b"))).ID] = model.Done
		w.executor.tell(func() { w.executor.outcomes["mock/c"] = writ.Failed })
		ends[w.carriedOut(request(step("s1", "set", "c"))).ID] = model.Failed
		before := map[string]int64{}
		for id, state := range ends {
			c := w.see(id)
			if before[id] = c.Version; c.State != state {
				t.Fatalf("%s is %s, want %s", id, c.State, state)
			}
		}
		for range 2 {
			w.restart()
			w.later(2 * time.Minute)
		}
		for id, state := range ends {
			if c := w.see(id); c.State != state || c.Version != before[id] {
				t.Errorf("%s was %s and is %s, version %d", id, state, c.State, c.Version)
			}
		}
	})
}

// The process died after a plan stopped half-way and before its rollback was planned.
func TestRestart_plansTheRollbackThatIsMissing(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.executor.tell(func() { w.executor.outcomes["mock/b"] = writ.Failed })
		id := w.propose(request(step("s1", "set", "a"), step("s2", "set", "b"))).ID
		w.store.fail(model.ChangeProposed, 1)
		w.approve(id, alice)
		if tries := w.undoing(id); len(tries) != 0 {
			t.Fatalf("%d changes are to undo it", len(tries))
		}
		for range 2 {
			w.restart()
			w.later(time.Second)
			if tries := w.undoing(id); len(tries) != 1 || tries[0].State != model.AwaitingApproval {
				t.Fatalf("%d changes are to undo it", len(tries))
			}
		}
	})
}

// What was previewed by another catalog is not decided on by this one.
func TestRestart_actionChangedSinceThePreview(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string][2]string{"changed": {"Set one value\n", "Set one thing\n"}, "gone": {"mock.set", "mock.put"}} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				w.store.fail(model.ChangeDecided, 1)
				w.store.fail(model.ChangeEnded, 1)
				id := w.propose(request(step("s1", "set", "a"))).ID
				w.restart(func(c *pipeline.Config) { c.Catalog = catalogOf(t, edit[0], edit[1]) })
				if c := w.see(id); c.State != model.Denied || c.Trouble.Reason != "action_changed" {
					t.Errorf("it is %s, %v", c.State, c.Trouble)
				}
			})
		})
	}
}

func TestStart_refusesWithoutItsAudit(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.approvedOnly(request(step("s1", "set", "a")))
		w.Stop()
		w.audit.fail(fault.New(fault.Unavailable, "The disk is full.").Because("audit"))
		p := pipeline.New(w.Config)
		refused(t, "start", p.Start(t.Context()), fault.Unavailable, "audit")
		p.Stop()
		w.still(id, model.Approved, heldUpEvents)
		w.audit.fail(nil)
		w.restart()
		if c := w.see(id); c.State != model.Done {
			t.Errorf("it is %s", c.State)
		}
	})
}

// What stopping interrupts is nothing that holds a change up.
func TestStop_whileItIsDispatched(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.propose(request(step("s1", "set", "a"))).ID
		w.executor.tell(func() {
			w.executor.greet = func(ctx context.Context) error { <-ctx.Done(); return lost() }
		})
		w.approve(id, alice)
		w.Stop()
		w.still(id, model.Approved, approvedEvents)
		w.executor.tell(func() { w.executor.greet = nil })
		w.restart()
		if c := w.see(id); c.State != model.Done {
			t.Errorf("it is %s", c.State)
		}
	})
}

// A pipeline that is stopped takes decisions and starts nothing.
func TestStop(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.propose(request(step("s1", "set", "a"))).ID
		agreed := w.agree(id)
		w.Stop()
		w.Stop()
		if _, err := w.Approve(t.Context(), alice, id, agreed); err != nil {
			t.Fatal(err)
		}
		c, err := w.Propose(t.Context(), planner, request(step("s1", "read", "b")), "")
		if err != nil || c.State != model.Proposed {
			t.Fatalf("propose: %v, %v", c, err)
		}
		w.still(id, model.Approved, approvedEvents)
		w.restart()
		if a, b := w.see(id), w.see(c.ID); a.State != model.Done || b.State != model.Done {
			t.Errorf("they are %s and %s", a.State, b.State)
		}
	})
}

func TestStop_whileManyApprove(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		ids := make([]string, 8)
		for i := range ids {
			ids[i] = w.propose(request(step("s1", "set", string(rune('a'+i))))).ID
		}
		w.atOnce(9, func(who model.Caller, i int) error {
			if i == 8 {
				w.Stop()
				return nil
			}
			_, err := w.Approve(t.Context(), who, ids[i], w.agree(ids[i]))
			return err
		})
		w.restart()
		w.later(time.Second)
		for _, id := range ids {
			if c := w.see(id); c.State != model.Done {
				t.Errorf("%s is %s", id, c.State)
			}
		}
	})
}

func TestStart_saysSo(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.restart(func(c *pipeline.Config) { c.Settings = writ.DigestBytes([]byte("gate.yaml")) })
		lines, err := w.Events(t.Context(), audrey, store.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		events := decode(t, lines)
		if len(events) != 2 || events[1].Type != model.GateStarted || events[1].Detail["policy_digest"] != string(w.Policy.Digest()) ||
			events[1].Detail["config_digest"] != string(w.Settings) {
			t.Errorf("the events are %+v", events)
		}
	})
}

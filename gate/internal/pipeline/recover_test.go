package pipeline_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
)

// spent is the executor's account of what it ever admitted.
type spent struct {
	all    []writ.Admitted
	raised []writ.Writ
	gate   writ.Keyring
	away   error
}

func (s *spent) Admitted(_ context.Context, after string) ([]writ.Admitted, error) {
	for i, a := range s.all {
		if a.Run > after {
			return s.all[i:min(i+2, len(s.all))], s.away
		}
	}
	return nil, s.away
}

func (s *spent) Raise(_ context.Context, sealed []byte) error {
	var w writ.Writ
	if err := writ.Open(writ.KindWrit, sealed, s.gate, &w); err != nil {
		return err
	}
	s.raised = append(s.raised, w)
	return s.away
}

// took is what the executor took of these changes.
func (w *world) took(changes ...*model.Change) *spent {
	w.t.Helper()
	public, _ := w.Key.Public().(ed25519.PublicKey)
	s := &spent{gate: writ.NewKeyring(public)}
	for _, c := range changes {
		s.all = append(s.all, writ.Admitted{Run: c.RunID, Sealed: c.Writ, Finished: true})
	}
	slices.SortFunc(s.all, func(a, b writ.Admitted) int { return strings.Compare(a.Run, b.Run) })
	return s
}

// elsewhere carries out requests in another world with the same key: this one
// then is as if its memory had been restored from a copy of before.
func (w *world) elsewhere(t *testing.T, requests ...model.Request) []*model.Change {
	t.Helper()
	other := newWorld(t, rules)
	other.restart(func(c *pipeline.Config) { c.Key = w.Key })
	other.executor.tell(func() { other.executor.keys = w.executor.keys })
	var all []*model.Change
	for _, r := range requests {
		c := other.propose(r)
		if c.State == model.AwaitingApproval {
			c = other.approve(c.ID, alice)
		}
		all = append(all, c)
		other.pass(time.Second) // runs are in the order of their time
	}
	return all
}

// recover compares and mends, and starts the pipeline in the new epoch.
func (w *world) recover(x *spent) *pipeline.Comparison {
	w.t.Helper()
	w.Stop()
	p := pipeline.New(w.Config)
	found, err := p.Compare(w.t.Context(), x)
	if err != nil {
		w.t.Fatal(err)
	}
	if told, err := p.Recover(w.t.Context(), x, found, writ.Object{}); told != nil || err != nil {
		w.t.Fatal(told, err)
	}
	w.restart(func(c *pipeline.Config) { c.Epoch = found.Next })
	return found
}

func differences(found *pipeline.Comparison, names map[string]string) []string {
	var list []string
	for _, d := range found.Differences {
		list = append(list, strings.Join(append([]string{string(d.Kind), names[d.ChangeID], string(d.Was)}, d.Entities...), " "))
	}
	slices.Sort(list)
	return list
}

// What the gate signed with a key of before is its own.
func TestCompare_keyChanged(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		x := w.took(w.elsewhere(t, request(step("s1", "set", "a")))...)
		w.Stop()
		c := w.Config
		_, c.Key, _ = ed25519.GenerateKey(rand.Reader)
		for _, former := range []writ.Keyring{nil, x.gate} {
			c.Former = former
			found, err := pipeline.New(c).Compare(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			if own := int64(len(former)); found.Spent != own || found.Foreign != 1-own {
				t.Errorf("with %d keys of before, %d of its own were spent and %d of others", own, found.Spent, found.Foreign)
			}
		}
	})
}

// What the executor did and the store forgot becomes unknown and is locked; two of
// them on one entity hold it one after the other; what only read is no doubt; and
// what was open is void.
func TestRecover(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		did := w.elsewhere(t, request(step("s1", "set", "a")), request(step("s1", "wipe", "a")), request(step("s1", "read", "a")),
			request(step("s1", "set", "b"), step("s2", "read", "c")))
		known := w.carriedOut(request(step("s1", "set", "d")))
		open := w.propose(request(step("s1", "set", "a")))
		held := w.propose(request(step("s1", "set", "e")))
		w.executor.tell(func() { w.executor.away = gone() })
		w.approve(held.ID, alice)
		w.executor.tell(func() { w.executor.away = nil })
		names := map[string]string{did[0].ID: "set", did[1].ID: "wipe", did[2].ID: "read", did[3].ID: "plan", known.ID: "known", open.ID: "open", held.ID: "held"}
		x := w.took(append(did, known)...)
		x.all = append(x.all, writ.Admitted{Run: "run_zzz", Sealed: []byte(`{"key_id":"another"}`)})

		found := w.recover(x)
		if diff := cmp.Diff([]string{
			"forgotten_by_gate plan  mock/b", "forgotten_by_gate read ", "forgotten_by_gate set  mock/a", "forgotten_by_gate wipe  mock/a",
			"void held approved", "void open awaiting_approval",
		}, differences(found, names)); diff != "" || found.Spent != 5 || found.Foreign != 1 || found.Next != 2 {
			t.Errorf("%+v (-want +got):\n%s", found, diff)
		}
		for id, want := range map[string]model.State{
			did[0].ID: model.Unknown, did[1].ID: model.Unknown, did[2].ID: model.Failed, did[3].ID: model.Unknown,
			known.ID: model.Done, open.ID: model.Expired, held.ID: model.Expired,
		} {
			if c := w.see(id); c.State != want {
				t.Errorf("%s is %s, not %s", names[id], c.State, want)
			}
		}
		if got := w.told(did[0].ID); got != " change.recovered lock.orphaned"[1:] {
			t.Errorf("the events are %q", got)
		}
		if got := w.told(open.ID); !strings.HasSuffix(got, " change.expired") {
			t.Errorf("the events are %q", got)
		}
		if diff := cmp.Diff([]string{"mock/a orphaned set", "mock/b orphaned plan"}, w.locks(names)); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
		if len(x.raised) != 1 || x.raised[0].Epoch != 2 || x.raised[0].Purpose != writ.Raise {
			t.Errorf("the executor was told %+v", x.raised)
		}
		for name, render := range map[string]func() error{
			"review":   func() error { _, err := w.Review(t.Context(), alice, did[1].ID); return err },
			"artifact": func() error { _, err := w.Artifact(t.Context(), alice, did[1].ID); return err },
		} {
			if err := render(); err != nil {
				t.Errorf("%s of what was recovered: %v", name, err)
			}
		}

		// One after the other is looked at; what is in doubt stays locked.
		if got := w.reconcile(did[0].ID, model.Adopt); got.State != model.Done {
			t.Errorf("it is %s", got.State)
		}
		if diff := cmp.Diff([]string{"mock/a orphaned wipe", "mock/b orphaned plan"}, w.locks(names)); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
		w.reconcile(did[1].ID, model.Adopt)
		if got := w.reconcile(did[3].ID, model.Adopt); got.State != model.Failed {
			t.Errorf("the plan is %s", got.State)
		}
		if c := w.carriedOut(request(step("s1", "set", "a"))); c.State != model.Done {
			t.Errorf("the next change is %s", c.State)
		}
	})
}

// A change that the store holds in an earlier state becomes unknown in its place.
func TestRecover_aChangeInAnEarlierState(t *testing.T) {
	t.Parallel()
	for was, prepare := range map[model.State]func(*world, string){
		model.AwaitingApproval: func(*world, string) {},
		model.Cancelled: func(w *world, id string) {
			if _, err := w.Cancel(w.t.Context(), planner, id); err != nil {
				w.t.Fatal(err)
			}
		},
		model.Expired: func(w *world, _ string) { w.later(time.Minute) },
	} {
		t.Run(string(was), func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				c := w.propose(request(step("s1", "set", "a")))
				prepare(w, c.ID)
				did := w.elsewhere(t, request(step("s1", "set", "a")))[0]
				w.reseal(did, c)
				found := w.recover(w.took(did))
				if diff := cmp.Diff([]string{"forgotten_by_gate c " + string(was) + " mock/a"}, differences(found, map[string]string{c.ID: "c"})); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				got := w.see(c.ID)
				if got.State != model.Unknown || got.Recovery == nil || got.Recovery.Was != was || got.RunID != did.RunID {
					t.Errorf("it is %s, %+v", got.State, got.Recovery)
				}
				if got := w.reconcile(c.ID, model.Adopt); got.State != model.Done {
					t.Errorf("it is %s", got.State)
				}
			})
		})
	}
}

// reseal makes of what was done elsewhere the writ of a change of this world.
func (w *world) reseal(did, c *model.Change) {
	w.t.Helper()
	var o writ.Writ
	if err := writ.Open(writ.KindWrit, did.Writ, w.executor.keys, &o); err != nil {
		w.t.Fatal(err)
	}
	o.Envelope = *c.Envelope
	sealed, err := writ.Seal(writ.KindWrit, &o, w.Key)
	if err != nil {
		w.t.Fatal(err)
	}
	did.Writ = sealed
}

// What the gate handed over and the executor forgot is unknown too.
func TestRecover_whatTheExecutorForgot(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		done := w.carriedOut(request(step("s1", "set", "a")))
		w.executor.tell(func() { w.executor.hold = true })
		running := w.carriedOut(request(step("s1", "set", "b")))
		names := map[string]string{done.ID: "done", running.ID: "running"}
		found := w.recover(w.took())
		if diff := cmp.Diff([]string{"accounted_for done done", "forgotten_by_executor running executing mock/b"}, differences(found, names)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if c := w.see(running.ID); c.State != model.Unknown || w.see(done.ID).State != model.Done {
			t.Errorf("it is %s", c.State)
		}
		if diff := cmp.Diff([]string{"mock/b orphaned running"}, w.locks(names)); diff != "" {
			t.Errorf("the locks differ (-want +got):\n%s", diff)
		}
	})
}

// A store that fails leaves all as it was, to be recovered again; an executor that
// is away when it is told learns of the epoch later.
func TestRecover_thatFails(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		did := w.elsewhere(t, request(step("s1", "set", "a")))[0]
		open := w.propose(request(step("s1", "set", "b")))
		w.Stop()
		p, x := pipeline.New(w.Config), w.took(did)
		found, err := p.Compare(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		w.store.fail(model.EpochRaised, 1)
		if _, err := p.Recover(t.Context(), x, found, writ.Object{}); fault.ReasonOf(err) != "disk_full" {
			t.Errorf("%v", err)
		}
		if c := w.see(open.ID); c.State != model.AwaitingApproval || len(w.locks(nil)) != 0 || len(x.raised) != 0 {
			t.Errorf("it is %s", c.State)
		}
		x.away = gone()
		if told, err := p.Recover(t.Context(), x, found, writ.Object{}); err != nil || fault.CodeOf(told) != fault.Unavailable {
			t.Errorf("%v, %v", told, err)
		}
		if c := w.see(open.ID); c.State != model.Expired || len(w.locks(nil)) != 1 {
			t.Errorf("it is %s", c.State)
		}
		if _, err := p.Compare(t.Context(), x); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("compare with an executor that is away: %v", err)
		}
	})
}

// Nothing that writes is carried out while one of the two does not remember what
// was done last. What only reads goes on, and does not make it forget that.
func TestDispatch_aMemoryThatIsTooOld(t *testing.T) {
	t.Parallel()
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		before func(*world)
		reason string // "" is carried out
	}{
		"the store": {func(w *world) {
			w.executor.hello = func(h *writ.Hello) {
				h.Last = writ.LastRun{Run: "run_forgotten", ChangeID: "chg_forgotten", KeyID: writ.KeyID(w.Key.Public().(ed25519.PublicKey))}
			}
		}, "store_restored"},
		"the store, of a change it knows": {func(w *world) {
			open := w.propose(request(step("s1", "set", "z")))
			w.executor.hello = func(h *writ.Hello) {
				h.Last = writ.LastRun{Run: "run_forgotten", ChangeID: open.ID, KeyID: writ.KeyID(w.Key.Public().(ed25519.PublicKey))}
			}
		}, "store_restored"},
		"what another gate did": {func(w *world) {
			w.executor.hello = func(h *writ.Hello) {
				h.Last = writ.LastRun{Run: "run_other", ChangeID: "chg_other", KeyID: writ.KeyID(other.Public().(ed25519.PublicKey))}
			}
		}, ""},
		"the directory of the gate": {func(w *world) { w.executor.hello = func(h *writ.Hello) { h.Epoch = 2 } }, "old_epoch"},
		"the journal":               {func(w *world) { clear(w.executor.runs) }, "journal_restored"},
		"another executor": {func(w *world) {
			clear(w.executor.runs)
			w.executor.hello = func(h *writ.Hello) { h.KeyID = "ed25519:another" }
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				if first := w.carriedOut(request(step("s1", "set", "a"))); first.State != model.Done {
					t.Fatalf("the first is %s", first.State)
				}
				w.pass(time.Second)
				c.before(w)
				for _, restart := range []bool{false, true} {
					if restart {
						w.restart()
					}
					if read := w.propose(request(step("s1", "read", "a"))); read.State != model.Done {
						t.Errorf("a read is %s", read.State)
					}
					r := request(step("s1", "set", "a"))
					r.Purpose = model.Prose(fmt.Sprintf("restarted: %t", restart))
					got := w.carriedOut(r)
					if c.reason == "" {
						if got.State != model.Done {
							t.Errorf("it is %s: %+v", got.State, got.Trouble)
						}
						continue
					}
					if got.State != model.Approved || got.Trouble == nil || got.Trouble.Reason != c.reason || !strings.Contains(got.Trouble.Text, "writ recover") {
						t.Errorf("after a restart (%t) it is %s: %+v", restart, got.State, got.Trouble)
					}
				}
			})
		})
	}
}

// A writ that the executor may have taken is not called lost while its journal is
// known to be too old.
func TestSettle_aJournalThatIsTooOld(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.carriedOut(request(step("s1", "set", "a")))
		w.executor.tell(func() { w.executor.deaf, w.executor.hold = lost(), true })
		c := w.carriedOut(request(step("s1", "set", "b")))
		w.executor.tell(func() { clear(w.executor.runs) })
		w.later(2 * time.Minute)
		if c = w.see(c.ID); c.State != model.Unknown || len(w.locks(nil)) != 1 {
			t.Errorf("it is %s, the locks are %q", c.State, w.locks(nil))
		}
	})
}

// Package storetest is the one suite that every store of the gate passes.
package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// Opener opens the store that is kept under dir, or makes it. Opening it again
// after Close gives the same store.
type Opener func(t *testing.T, dir string) store.Store

// Run runs the suite.
func Run(t *testing.T, open Opener) {
	for _, group := range [][]test{changeTests(), eventTests(), lockTests(), haltTests(), updateTests()} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				k := &kit{open: open, dir: t.TempDir()}
				k.reopen(t)
				c.run(t, k)
			})
		}
	}
}

// test is one promise of a store.
type test struct {
	name string
	run  func(*testing.T, *kit)
}

// crowd is how many callers race for one thing.
const crowd = 64

// kit is one store under test, with short ways to use it.
type kit struct {
	store.Store
	open Opener
	dir  string
	ids  sync.Mutex
	n    int
}

func (k *kit) reopen(t *testing.T) {
	t.Helper()
	if k.Store != nil {
		if err := k.Close(); err != nil {
			t.Fatalf("close the store: %v", err)
		}
	}
	k.Store = k.open(t, k.dir)
}

// now is the moment in which all tests happen.
func now() writ.Time { return writ.At(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)) }

// id returns a new id; later ones sort after earlier ones.
func (k *kit) id(prefix string) string {
	k.ids.Lock()
	defer k.ids.Unlock()
	k.n++
	return fmt.Sprintf("%s_%06d", prefix, k.n)
}

func (k *kit) change() *model.Change {
	return &model.Change{
		ID: k.id("chg"), State: model.Proposed, RequestedAt: now(), UpdatedAt: now(), RunID: "run_1",
		RequestedBy: writ.Principal{Name: "planner", Kind: writ.Agent},
	}
}

func (k *kit) event(changeID string) *model.Event {
	return &model.Event{ID: k.id("evt"), Type: model.ChangeProposed, Timestamp: now(), ChangeID: changeID, User: "agent:planner"}
}

// update runs f in an Update and fails the test if that fails.
func (k *kit) update(t *testing.T, f func(store.Tx) error) {
	t.Helper()
	if err := k.Update(t.Context(), f); err != nil {
		t.Fatalf("update: %v (%s)", err, fault.CodeOf(err))
	}
}

// view runs f in a View and fails the test if that fails.
func (k *kit) view(t *testing.T, f func(store.Reader) error) {
	t.Helper()
	if err := k.View(t.Context(), f); err != nil {
		t.Fatalf("view: %v (%s)", err, fault.CodeOf(err))
	}
}

// insert stores a new change.
func (k *kit) insert(t *testing.T, set ...func(*model.Change)) *model.Change {
	t.Helper()
	c := k.change()
	for _, f := range set {
		f(c)
	}
	k.update(t, func(tx store.Tx) error { return tx.Insert(c) })
	return c
}

// race runs f at the same time for each of a crowd and returns how many times
// each code came back; "" is success.
func (k *kit) race(f func(i int) error) map[fault.Code]int {
	codes := make(chan fault.Code, crowd)
	start := make(chan struct{})
	for i := range crowd {
		go func() {
			<-start
			codes <- fault.CodeOf(f(i))
		}()
	}
	close(start)
	counts := map[fault.Code]int{}
	for range crowd {
		counts[<-codes]++
	}
	return counts
}

// oneWins fails the test unless one of the crowd won and the others met it.
func oneWins(t *testing.T, counts map[fault.Code]int) {
	t.Helper()
	if counts[""] != 1 || counts[fault.Conflict] != crowd-1 {
		t.Errorf("the race ended %v, want one success and conflicts", counts)
	}
}

// wantCode fails the test unless err has the code.
func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if got := fault.CodeOf(err); got != want {
		t.Errorf("%s: code %q (%v), want %q", what, got, err, want)
	}
}

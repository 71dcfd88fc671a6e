package storetest

import (
	"context"
	"errors"
	"testing"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

func updateTests() []test {
	return []test{
		{"an update that fails leaves nothing", failedUpdate},
		{"an update that panics leaves nothing and hurts nobody else", panickedUpdate},
		{"an update goes on after a failure that it handled", handledFailure},
		{"an update sees what it wrote, others do not", isolation},
		{"a cancelled update does not run", cancelled},
		{"a transaction is of no use after its end", leakedTx},
		{"a closed store refuses", closedStore},
	}
}

// everything writes one of each kind.
func (k *kit) everything(tx store.Tx) error {
	c := k.change()
	if err := tx.Insert(c); err != nil {
		return err
	}
	c.State = model.Planned
	if err := tx.Move(c, model.Proposed); err != nil {
		return err
	}
	if err := tx.Append(k.event(c.ID)); err != nil {
		return err
	}
	_, err := tx.TakeLock(model.Lock{Entity: c.ID, Kind: model.LockWrite, ChangeID: c.ID, RunID: "run_1", TakenAt: now()}, "")
	return err
}

// count returns how many changes, events and locks there are.
func (k *kit) count(t *testing.T) (counts [3]int) {
	t.Helper()
	k.view(t, func(r store.Reader) error {
		changes, err1 := r.Changes(store.ChangeFilter{Limit: 1 << 20})
		events, err2 := r.Events(store.EventFilter{Limit: 1 << 20})
		locks, err3 := r.Locks(true)
		counts = [3]int{len(changes), len(events), len(locks)}
		return errors.Join(err1, err2, err3)
	})
	return counts
}

func failedUpdate(t *testing.T, k *kit) {
	refused := errors.New("refused")
	err := k.Update(t.Context(), func(tx store.Tx) error {
		if err := k.everything(tx); err != nil {
			return err
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("the update failed with %v, want its own error", err)
	}
	k.reopen(t)
	if got := k.count(t); got != [3]int{} {
		t.Errorf("there are %v changes, events and locks, want none", got)
	}
}

func panickedUpdate(t *testing.T, k *kit) {
	counts := k.race(func(i int) error {
		return k.Update(t.Context(), func(tx store.Tx) error {
			if err := k.everything(tx); err != nil {
				return err
			}
			if i%2 == 0 {
				panic("on purpose")
			}
			return nil
		})
	})
	half := crowd / 2
	if counts[""] != half || counts[fault.Internal] != half {
		t.Errorf("the updates ended %v, want one half each", counts)
	}
	k.reopen(t)
	if got := k.count(t); got != [3]int{half, half, half} {
		t.Errorf("there are %v changes, events and locks, want %d each", got, half)
	}
	k.verified(t)
}

func handledFailure(t *testing.T, k *kit) {
	taken := k.insert(t, func(c *model.Change) { c.ClientKey = "key" })
	k.update(t, func(tx store.Tx) error {
		again := k.change()
		again.ClientKey = "key"
		wantCode(t, "insert with a key that is taken", tx.Insert(again), fault.Conflict)
		wantCode(t, "append an event without an id", tx.Append(&model.Event{}), fault.Internal)
		found, err := tx.ByClientKey("planner", "key")
		if err == nil && found.ID != taken.ID {
			t.Errorf("the key belongs to %s, want %s", found.ID, taken.ID)
		}
		return k.everything(tx)
	})
	if got := k.count(t); got != [3]int{2, 1, 1} {
		t.Errorf("there are %v changes, events and locks, want 2, 1 and 1", got)
	}
}

func isolation(t *testing.T, k *kit) {
	before := k.count(t)
	k.view(t, func(r store.Reader) error {
		seen := func() int {
			all, err := r.Changes(store.ChangeFilter{})
			if err != nil {
				t.Errorf("read the changes: %v", err)
			}
			return len(all)
		}
		first := seen()
		k.update(t, func(tx store.Tx) error {
			if err := k.everything(tx); err != nil {
				return err
			}
			mine, err := tx.Locks(false)
			if len(mine) != 1 {
				t.Errorf("the update sees %d locks, want its own", len(mine))
			}
			if got := k.count(t); got != before {
				t.Errorf("others see %v before the end, want %v", got, before)
			}
			return err
		})
		if again := seen(); again != first {
			t.Errorf("one view sees %d changes, then %d", first, again)
		}
		return nil
	})
	if got := k.count(t); got == before {
		t.Errorf("nobody sees the update after its end")
	}
}

func cancelled(t *testing.T, k *kit) {
	ctx, cancel := context.WithCancel(t.Context())
	running, release := make(chan struct{}), make(chan struct{})
	first, second := make(chan error), make(chan error)
	go func() {
		first <- k.Update(t.Context(), func(tx store.Tx) error {
			close(running)
			<-release
			return k.everything(tx)
		})
	}()
	<-running
	go func() { second <- k.Update(ctx, k.everything) }()
	cancel()
	wantCode(t, "an update cancelled while it waits", <-second, fault.Canceled)
	close(release)
	if err := <-first; err != nil {
		t.Errorf("the update that ran: %v", err)
	}
	wantCode(t, "an update cancelled before", k.Update(ctx, k.everything), fault.Canceled)
	wantCode(t, "a view cancelled before", k.View(ctx, func(store.Reader) error { return nil }), fault.Canceled)
	if got := k.count(t); got != [3]int{1, 1, 1} {
		t.Errorf("there are %v changes, events and locks, want one each", got)
	}
}

func leakedTx(t *testing.T, k *kit) {
	var leaked store.Tx
	k.update(t, func(tx store.Tx) error {
		leaked = tx
		return nil
	})
	wantCode(t, "write after the end", leaked.Insert(k.change()), fault.Internal)
	_, err := leaked.Locks(false)
	wantCode(t, "read after the end", err, fault.Internal)
	k.update(t, k.everything)
	if got := k.count(t); got != [3]int{1, 1, 1} {
		t.Errorf("there are %v changes, events and locks, want one each", got)
	}
}

func closedStore(t *testing.T, k *kit) {
	k.update(t, k.everything)
	for range 2 {
		if err := k.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	wantCode(t, "update a closed store", k.Update(t.Context(), k.everything), fault.Unavailable)
	wantCode(t, "view a closed store", k.View(t.Context(), func(store.Reader) error { return nil }), fault.Unavailable)
	_, err := k.Exported(t.Context())
	wantCode(t, "ask a closed store", err, fault.Unavailable)
}

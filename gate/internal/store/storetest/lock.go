package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

func lockTests() []test {
	return []test{
		{"a lock is read as it was taken", lockRoundTrip},
		{"a held entity is not taken", lockBlocks},
		{"an entity is raced for", lockRace},
		{"an orphaned lock goes only to what undoes its holder, and back", lockTakeover},
		{"a lock does not age", lockAge},
		{"only the holder's lock ends, and once", lockEnds},
		{"fences rise across release, failure and restart", fences},
	}
}

// entity is what the tests lock.
const entity = "proxmox/pve/lxc/121"

// take takes the entity for a change.
func (k *kit) take(t *testing.T, c *model.Change, heldBy string) (l model.Lock, err error) {
	t.Helper()
	want := model.Lock{Entity: entity, Kind: model.LockWrite, ChangeID: c.ID, RunID: "run_1", TakenAt: now()}
	err = k.Update(t.Context(), func(tx store.Tx) error {
		l, err = tx.TakeLock(want, heldBy)
		return err
	})
	return l, err
}

// end ends a change's lock on the entity.
func (k *kit) end(t *testing.T, c *model.Change, state model.LockState) error {
	t.Helper()
	return k.Update(t.Context(), func(tx store.Tx) error { return tx.EndLock(entity, c.ID, state, now()) })
}

// locks returns locks.
func (k *kit) locks(t *testing.T, released bool) (all []model.Lock) {
	t.Helper()
	k.view(t, func(r store.Reader) (err error) {
		all, err = r.Locks(released)
		return err
	})
	return all
}

func lockRoundTrip(t *testing.T, k *kit) {
	c := k.insert(t)
	want := []model.Lock{
		{Entity: "a", Kind: model.LockDestructive, State: model.LockActive, Fence: 1, ChangeID: c.ID, RunID: "run_1", TakenAt: now()},
		{Entity: "b", Kind: model.LockWrite, State: model.LockActive, Fence: 1, ChangeID: c.ID, RunID: "run_2", TakenAt: now()},
	}
	k.update(t, func(tx store.Tx) error {
		for _, l := range []model.Lock{want[1], want[0]} {
			given := l
			given.State, given.Fence, given.EndedAt = model.LockReleased, 77, now() // not for the caller to say
			got, err := tx.TakeLock(given, "")
			if err != nil {
				return err
			}
			if diff := cmp.Diff(l, got); diff != "" {
				t.Errorf("the lock taken differs (-want +got):\n%s", diff)
			}
		}
		return nil
	})
	k.reopen(t)
	if diff := cmp.Diff(want, k.locks(t, false)); diff != "" {
		t.Errorf("the locks read differ (-want +got):\n%s", diff)
	}
	k.update(t, func(tx store.Tx) error { return tx.EndLock("a", c.ID, model.LockReleased, now()) })
	if diff := cmp.Diff(want[1:], k.locks(t, false)); diff != "" {
		t.Errorf("the locks that hold differ (-want +got):\n%s", diff)
	}
	want[0].State, want[0].EndedAt = model.LockReleased, now()
	if diff := cmp.Diff(want, k.locks(t, true)); diff != "" {
		t.Errorf("all locks differ (-want +got):\n%s", diff)
	}
}

func lockBlocks(t *testing.T, k *kit) {
	holder, other := k.insert(t), k.insert(t)
	if _, err := k.take(t, holder, ""); err != nil {
		t.Fatal(err)
	}
	for _, state := range []model.LockState{model.LockActive, model.LockOrphaned} {
		if state == model.LockOrphaned {
			if err := k.end(t, holder, state); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []*model.Change{other, holder} {
			_, err := k.take(t, c, "")
			wantCode(t, "take an entity that is "+string(state), err, fault.Conflict)
		}
	}
	_, err := k.take(t, k.change(), "")
	wantCode(t, "take an entity for a change that is not there", err, fault.Conflict)
	if err := k.end(t, holder, model.LockReleased); err != nil {
		t.Fatal(err)
	}
	_, err = k.take(t, k.change(), "")
	wantCode(t, "take a free entity for a change that is not there", err, fault.Internal)
	if _, err := k.take(t, other, ""); err != nil {
		t.Errorf("take an entity that was released: %v", err)
	}
}

func lockRace(t *testing.T, k *kit) {
	c := k.insert(t)
	oneWins(t, k.race(func(int) error {
		_, err := k.take(t, c, "")
		return err
	}))
	if held := k.locks(t, true); len(held) != 1 || held[0].Fence != 1 {
		t.Errorf("the locks are %+v, want one with fence 1", held)
	}
}

func lockTakeover(t *testing.T, k *kit) {
	holder := k.insert(t)
	undo := k.insert(t, func(c *model.Change) { c.Request.RollbackOf = holder.ID })
	other := k.insert(t, func(c *model.Change) { c.Request.RollbackOf = undo.ID })
	if _, err := k.take(t, holder, ""); err != nil {
		t.Fatal(err)
	}
	_, err := k.take(t, undo, holder.ID)
	wantCode(t, "take over a lock while its run goes on", err, fault.Conflict)
	if err := k.end(t, holder, model.LockOrphaned); err != nil {
		t.Fatal(err)
	}
	_, err = k.take(t, other, holder.ID)
	wantCode(t, "take over for a change that does not undo the holder", err, fault.Conflict)
	_, err = k.take(t, undo, other.ID)
	wantCode(t, "take over from a change that does not hold it", err, fault.Conflict)
	_, err = k.take(t, undo, "")
	wantCode(t, "take over without saying so", err, fault.Conflict)
	l, err := k.take(t, undo, holder.ID)
	if err != nil || l.Fence != 2 {
		t.Fatalf("take over for the change that undoes the holder: fence %d, %v, want 2", l.Fence, err)
	}
	all := k.locks(t, true)
	if len(all) != 2 || all[0].State != model.LockReleased || all[0].ChangeID != holder.ID || all[1].ChangeID != undo.ID {
		t.Errorf("the locks are %+v, want the holder's released and the other active", all)
	}
	wantCode(t, "end a lock that was taken over", k.end(t, holder, model.LockReleased), fault.NotFound)
	_, err = k.take(t, holder, undo.ID)
	wantCode(t, "take a lock back while the other run goes on", err, fault.Conflict)
	if err := k.end(t, undo, model.LockOrphaned); err != nil {
		t.Fatal(err)
	}
	if l, err = k.take(t, holder, undo.ID); err != nil || l.Fence != 3 {
		t.Errorf("take a lock back: fence %d, %v, want 3", l.Fence, err)
	}
}

func lockAge(t *testing.T, k *kit) {
	c, other := k.insert(t), k.insert(t)
	old := model.Lock{Entity: entity, Kind: model.LockWrite, ChangeID: c.ID, RunID: "run_1", TakenAt: writ.At(now().AddDate(-25, 0, 0))}
	k.update(t, func(tx store.Tx) error {
		_, err := tx.TakeLock(old, "")
		return err
	})
	k.reopen(t)
	_, err := k.take(t, other, "")
	wantCode(t, "take an entity that was locked long ago", err, fault.Conflict)
}

func lockEnds(t *testing.T, k *kit) {
	c, other := k.insert(t), k.insert(t)
	if _, err := k.take(t, c, ""); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "end another's lock", k.end(t, other, model.LockReleased), fault.NotFound)
	wantCode(t, "end a lock by keeping it active", k.end(t, c, model.LockActive), fault.Internal)
	wantCode(t, "orphan a lock", k.end(t, c, model.LockOrphaned), "")
	wantCode(t, "make an orphaned lock active", k.end(t, c, model.LockActive), fault.Internal)
	wantCode(t, "release an orphaned lock", k.end(t, c, model.LockReleased), "")
	wantCode(t, "release a lock twice", k.end(t, c, model.LockReleased), fault.NotFound)
}

func fences(t *testing.T, k *kit) {
	c := k.insert(t)
	var highest int64
	for range 3 {
		l, err := k.take(t, c, "")
		if err != nil {
			t.Fatal(err)
		}
		if l.Fence <= highest {
			t.Errorf("the fence %d is not higher than %d", l.Fence, highest)
		}
		highest = l.Fence
		refused := errors.New("refused")
		if err := k.Update(t.Context(), func(tx store.Tx) error {
			if err := tx.EndLock(entity, c.ID, model.LockReleased, now()); err != nil {
				return err
			}
			return refused
		}); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		_, err = k.take(t, c, "")
		wantCode(t, "take a lock whose release failed", err, fault.Conflict)
		if err := k.end(t, c, model.LockReleased); err != nil {
			t.Fatal(err)
		}
		k.reopen(t)
	}
}

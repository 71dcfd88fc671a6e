package pipeline_test

import (
	"slices"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/ledger"
)

// check holds a world to what must hold whatever happened in it: the events are
// in the tree, each change was sent once at most, and every lock has a reason.
func (w *world) check() {
	w.t.Helper()
	w.settle()
	lines, err := w.Events(w.t.Context(), audrey, store.EventFilter{Limit: 100_000})
	if err != nil {
		w.t.Fatal(err)
	}
	var tree ledger.Tree
	for i, l := range lines {
		tree = tree.Add(ledger.Leaf(l.Bytes))
		if l.Sequence != int64(i+1) {
			w.t.Errorf("event %d has the sequence %d", i+1, l.Sequence)
		}
	}
	if _, kept, err := w.Store.Since(w.t.Context(), 0, 1); err != nil || kept.Root() != tree.Root() {
		w.t.Errorf("the tree is not that of the %d events: %v", len(lines), fault.TextOf(err))
	}
	w.checkWrits()
	w.checkLocks()
}

func (w *world) checkWrits() {
	w.executor.mu.Lock()
	defer w.executor.mu.Unlock()
	sent := map[string]int{}
	for _, sealed := range w.executor.writs {
		if sent[sealed.Envelope.ChangeID]++; sent[sealed.Envelope.ChangeID] > 1 {
			w.t.Errorf("%s was sent twice", sealed.Envelope.ChangeID)
		}
	}
}

// checkLocks compares the locks with the changes: none without a reason, and
// none missing.
func (w *world) checkLocks() {
	changes, err := w.Changes(w.t.Context(), audrey, store.ChangeFilter{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	locks, err := w.Locks(w.t.Context(), audrey, false)
	if err != nil {
		w.t.Fatal(err)
	}
	held := map[string]*model.Change{} // by entity
	for _, l := range locks {
		c := w.see(l.ChangeID)
		held[l.Entity] = c
		switch l.State {
		case model.LockActive:
			if c.State != model.Claimed && c.State != model.Executing {
				w.t.Errorf("%s is locked by a change that is %s", l.Entity, c.State)
			}
		case model.LockOrphaned:
			if !c.Held() || !slices.Contains(c.OrphanedEntities(), l.Entity) {
				w.t.Errorf("%s is left locked by a change that is %s and left %v", l.Entity, c.State, c.OrphanedEntities())
			}
		}
	}
	for _, c := range changes {
		undone := slices.ContainsFunc(changes, func(u *model.Change) bool {
			return u.Request.RollbackOf == c.ID && (u.State == model.Done || !u.State.Ended() || u.State == model.Unknown)
		})
		if of := c.Request.RollbackOf; of != "" && c.State != model.Unknown {
			if original := w.see(of); original.Held() || original.UndoneBy != "" {
				continue // what it left went back to the change that it was to undo
			}
		}
		for _, entity := range c.OrphanedEntities() {
			if holder := held[entity]; !undone && (holder == nil || holder.ID != c.ID) {
				w.t.Errorf("%s is %s and left %s, which it does not lock", c.ID, c.State, entity)
			}
		}
	}
}

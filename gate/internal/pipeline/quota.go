package pipeline

import (
	"context"
	"slices"
	"sync"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// quota bounds how many changes of one requester are open. The store is asked
// only when as many were proposed as there may be: what ends makes room, so the
// number that is kept here is never too small.
type quota struct {
	mu   sync.Mutex // of all, held while the store is asked
	open map[string]*openChanges
}

// openChanges is at most how many changes of a requester are open, those that are
// about to be stored included.
type openChanges struct{ atMost, storing int }

// reserve makes room for one more change of a requester, or fails with
// fault.Exhausted. Done takes back what did not become a new change.
func (p *Pipeline) reserve(ctx context.Context, who model.Caller) (done func(isNew bool), err error) {
	if p.MaxOpen == 0 {
		return func(bool) {}, nil
	}
	q := &p.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.open[who.Name]
	if o == nil {
		if q.open == nil {
			q.open = map[string]*openChanges{}
		}
		o = &openChanges{atMost: p.MaxOpen} // not known yet: ask
		q.open[who.Name] = o
	}
	if o.atMost >= p.MaxOpen {
		stored, err := p.openOf(ctx, who.Name)
		if err != nil {
			return nil, err
		}
		if o.atMost = stored + o.storing; o.atMost >= p.MaxOpen {
			return nil, fault.New(fault.Exhausted, "%s has %d changes that have not ended, and may not have more. Let some be decided, or withdraw some: writ cancel", who.User(), stored).Because("open_changes")
		}
	}
	o.atMost++
	o.storing++
	return func(isNew bool) {
		q.mu.Lock()
		defer q.mu.Unlock()
		o.storing--
		if !isNew {
			o.atMost--
		}
	}, nil
}

// openOf counts the changes of a requester that have not ended, up to the quota.
func (p *Pipeline) openOf(ctx context.Context, requester string) (n int, err error) {
	open := slices.DeleteFunc(model.States(), model.State.Ended)
	err = p.Store.View(ctx, func(r store.Reader) error {
		list, err := r.Changes(store.ChangeFilter{States: open, Requester: requester, Limit: p.MaxOpen})
		n = len(list)
		return err
	})
	return n, err
}

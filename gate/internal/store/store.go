// Package store is the contract of the gate's durable memory. Each
// implementation passes the suite in storetest.
//
// A stage of the pipeline makes its changes in one Update: the state it moves
// to, the event that says so, the locks it takes or frees. Either all of it is
// on disk when Update returns, or nothing happened.
package store

import (
	"context"

	"writ"
	"writ/gate/internal/model"
	"writ/ledger"
)

// Store is a durable memory. It has one writer at a time.
type Store interface {
	// Update runs f in a transaction and makes it durable. If f fails, nothing
	// of it remains and its error is returned. An implementation may make
	// several Updates durable together; f must have no effect but on its Tx.
	Update(ctx context.Context, f func(Tx) error) error
	// View runs f on a consistent state of the past moment.
	View(ctx context.Context, f func(Reader) error) error
	Ledger
	Close() error
}

// Ledger is what the audit takes from a store.
type Ledger interface {
	// Since returns up to limit lines after a sequence, and the tree of all
	// events, as of one moment.
	Since(ctx context.Context, after int64, limit int) ([][]byte, ledger.Tree, error)
	// Exported returns how many events the audit is known to hold, and
	// SetExported raises that number.
	Exported(ctx context.Context) (int64, error)
	SetExported(ctx context.Context, sequence int64) error
}

// Reader reads. What it returns is the caller's own.
type Reader interface {
	// Change returns one change, or fault.NotFound.
	Change(id string) (*model.Change, error)
	// ByClientKey returns the change a requester proposed under an idempotency
	// key, or fault.NotFound.
	ByClientKey(requester, key string) (*model.Change, error)
	// Changes returns changes, newest first.
	Changes(ChangeFilter) ([]*model.Change, error)
	// Events returns events by sequence, each as the exact line of the audit.
	Events(EventFilter) ([]Line, error)
	Holds
}

// Holds reads what keeps changes from being carried out.
type Holds interface {
	// Locks returns locks by entity; released ones only if asked for.
	Locks(released bool) ([]model.Lock, error)
	// Halts returns halts, newest first; lifted ones only if asked for.
	Halts(lifted bool) ([]model.Halt, error)
}

// Tx is a Reader that also writes.
type Tx interface {
	Reader
	// Insert stores a new change; fault.Conflict if its client key is taken.
	Insert(*model.Change) error
	// Move stores c in its new state if it is still in state from with the
	// version that c was read with, and raises c.Version; else fault.Conflict.
	// A move that model.Change.MayMove does not allow is fault.Internal.
	Move(c *model.Change, from model.State) error
	// Amend stores c without changing its state, under the same conditions.
	Amend(c *model.Change) error
	// Append adds an event: it sets Sequence, stores the line and adds its leaf
	// to the tree.
	Append(*model.Event) error
	// TakeLock takes an entity for a change and returns the lock with a new
	// fence. It fails with fault.Conflict while the entity is held, except that
	// the orphaned lock of heldBy goes to the change that undoes it, and back
	// from there to the change that was to be undone.
	TakeLock(l model.Lock, heldBy string) (model.Lock, error)
	// EndLock sets the state of the active or orphaned lock that a change holds
	// on an entity; fault.NotFound if it holds none.
	EndLock(entity, changeID string, state model.LockState, at writ.Time) error
	// SetHalt stores a new halt, or one that was in force as lifted.
	SetHalt(model.Halt) error
}

// Line is one event as a line of the audit, without the newline.
type Line struct {
	Sequence int64
	Bytes    []byte
}

// ChangeFilter selects changes. Its zero value selects all.
type ChangeFilter struct {
	States    []model.State // none: any
	Requester string        // the name of a principal; "": any
	// RequestDigest is of the request that it became of; "": any.
	RequestDigest writ.Digest
	RollbackOf    string    // the change that is undone; "": any
	RunID         string    // the run it became; "": any
	Entity        string    // that a step acts on or touches, of a change that came to its decision; "": any
	Approved      bool      // only what at least one person approved
	EndedSince    writ.Time // ended then or later; the zero time: any
	Before        string    // ids older than this one, for paging; "": from the newest
	Limit         int       // 0: 100
}

// EventFilter selects events.
type EventFilter struct {
	ChangeID string
	After    int64  // sequences higher than this
	Limit    int    // 0: 1000
	Newest   bool   // if there are more than Limit, the last of them
	User     string // who caused it: kind:name, or a name; "" for whoever
	Target   string // a system, or an entity and all below it; "" for any
	Action   string // an action, or all that begin as the text before a *; "" for any
	Since    string // not older than this time, as it is written in events; "" for the first
	Until    string // not newer; "" for the last
}

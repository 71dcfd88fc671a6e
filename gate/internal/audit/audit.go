// Package audit carries the events of the gate's store into its audit file.
//
// An event is first in the store, in one transaction with what it tells of.
// Nothing may act before the event is in the file too: who is about to, calls
// CatchUp, and does nothing if it fails.
package audit

import (
	"context"
	"sync"

	"writ"
	"writ/fault"
	"writ/gate/internal/store"
	"writ/ledger"
)

// pace bounds how many events are carried over at once.
const pace = 256

// Audit is the way from one store to one audit file.
type Audit struct {
	store store.Store
	mu    sync.Mutex // of file and same
	file  *ledger.File
	same  bool // the file was found to hold the store's own events
}

// New returns the way from a store to a file. Both stay the caller's to close.
func New(s store.Store, f *ledger.File) *Audit { return &Audit{store: s, file: f} }

// CatchUp makes every event that is in the store durable in the file. It goes
// on from what the file really holds, so that a crash at any point loses
// nothing and writes nothing twice. It fails with fault.Unavailable if the file
// lacks an event that it was known to hold, holds one that is not the store's,
// or cannot be written; then it keeps failing until somebody has looked.
func (a *Audit) CatchUp(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	exported, err := a.store.Exported(ctx)
	if err != nil {
		return err
	}
	if err := a.meet(ctx, exported); err != nil {
		return err
	}
	for more := true; more; {
		lines, err := a.lines(ctx, a.file.Report().Events, pace)
		if err != nil {
			return err
		}
		if err := a.file.Append(lines...); err != nil {
			return err
		}
		more = len(lines) == pace
	}
	if held := a.file.Report().Events; held > exported {
		return a.store.SetExported(ctx, held)
	}
	return nil
}

// meet compares the file with the store once. Lines are linked, so if the last
// line of the file is the store's, all of them are.
func (a *Audit) meet(ctx context.Context, exported int64) error {
	held := a.file.Report()
	if held.Events < exported {
		return fault.New(fault.Unavailable, "The audit file ends after event %d, but it held %d. Somebody cut it: put it back from its copy, and find out who did.", held.Events, exported)
	}
	if a.same {
		return nil
	}
	if held.Events > 0 {
		lines, err := a.lines(ctx, held.Events-1, 1)
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			return fault.New(fault.Unavailable, "The audit file holds %d events, more than the gate's store. The store is older than the file: restore the newest backup of the store.", held.Events)
		}
		if writ.DigestBytes(lines[0]) != held.Head {
			return fault.New(fault.Unavailable, "The audit file does not hold the events of the gate's store, up to event %d. Put back the file that belongs to the store.", held.Events)
		}
	}
	// The torn line is beyond every event that was acknowledged.
	if err := a.file.Cut(); err != nil {
		return err
	}
	a.same = true
	return nil
}

// lines returns the store's lines after a sequence.
func (a *Audit) lines(ctx context.Context, after int64, limit int) (lines [][]byte, err error) {
	err = a.store.View(ctx, func(r store.Reader) error {
		events, err := r.Events(store.EventFilter{After: after, Limit: limit})
		for _, e := range events {
			lines = append(lines, e.Bytes)
		}
		return err
	})
	return lines, err
}

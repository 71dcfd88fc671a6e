// Package audit carries the events of the gate's store into its ledger, and the
// newest checkpoint to a second place.
//
// An event is first in the store, in one transaction with what it tells of.
// Nothing may act before the event is in the ledger too: who is about to, calls
// CatchUp, and does nothing if it fails.
package audit

import (
	"context"
	"crypto/ed25519"
	"errors"
	"sync"
	"time"

	"writ"
	"writ/disk"
	"writ/evidence"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/ledger"
	"writ/sys"
)

// Config is what an audit is made of.
type Config struct {
	Sys   sys.Sys
	Store store.Store
	Log   *ledger.Log
	// Every is how long events may wait for a checkpoint that covers them, while
	// Run runs.
	Every time.Duration
	// Copy is the second place for the newest checkpoint.
	Copy Copy
	// Witnesses are asked to sign the newest checkpoint, while Run runs. Nothing
	// waits for them.
	Witnesses []Witness
}

// Audit is the way from one store to one ledger. It is safe for concurrent use.
type Audit struct {
	Config
	export *ledger.Export

	mu     sync.Mutex // of what follows
	copied int64      // events that the copy of the checkpoint covers, or -1
	failed error      // why the last copy failed
	states []WitnessState
}

// New returns the way from a store to a ledger. Both stay the caller's to close.
func New(c Config) *Audit {
	return &Audit{Config: c, export: ledger.NewExport(source{c.Sys, c.Store}, c.Log), copied: -1, states: witnessStates(c)}
}

// CatchUp makes every event that is in the store durable in the ledger and, if
// the copy is required, signs and copies a checkpoint of it. It fails with
// fault.Unavailable if the ledger is not as it was left or cannot be written;
// then it keeps failing until somebody has looked.
//
// While there is little room left it fails with the reason disk_full, and nothing
// is written: a smaller write to the store may succeed on a disk on which one to
// the ledger fails, and a ledger that failed once must be opened anew.
func (a *Audit) CatchUp(ctx context.Context) error {
	if err := a.catchUp(ctx); err != nil || !a.Copy.Required {
		return err
	}
	return a.anchor(ctx)
}

// Run signs and copies a checkpoint from time to time, until ctx ends, and then
// a last one. Meanwhile it asks the witnesses.
func (a *Audit) Run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for i := range a.Witnesses {
		asking.Go(func() { a.attend(ctx, i) })
	}
	ticker := time.NewTicker(a.Every)
	defer ticker.Stop()
	for more := true; more; {
		select {
		case <-ctx.Done():
			more = false
		case <-ticker.C:
		}
		if err := a.Anchor(context.WithoutCancel(ctx)); err != nil {
			a.Sys.Log.Error("no checkpoint was made", "error", err, "cause", errors.Unwrap(err))
		}
	}
}

// Anchor signs and copies a checkpoint of all that is in the store.
func (a *Audit) Anchor(ctx context.Context) error {
	if err := a.catchUp(ctx); err != nil {
		return err
	}
	return a.anchor(ctx)
}

// Spare is how much room the disk of a ledger must have.
const Spare = 2 << 20

func (a *Audit) catchUp(ctx context.Context) error {
	if err := disk.Room(a.Log.Dir(), Spare); err != nil {
		return err
	}
	return a.export.CatchUp(ctx)
}

// Drained records that the gate was asked to end, takes nothing more and has
// finished what was under way.
func (a *Audit) Drained(ctx context.Context) error {
	return a.Store.Update(ctx, func(tx store.Tx) error { return tx.Append(a.event(model.GateDrained)) })
}

// anchor signs what is not signed yet and copies what is not copied yet. A copy
// that fails is an event, once, and an error only if it is required.
func (a *Audit) anchor(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var signed []byte
	err := a.export.With(func(l *ledger.Log) (err error) {
		signed, err = l.Checkpoint()
		return err
	})
	if err != nil {
		return err
	}
	c, err := ledger.ParseCheckpoint(signed)
	if err != nil || !a.Copy.Set() || c.Size == a.copied {
		return err
	}
	was := a.failed
	if a.failed = a.Copy.put(ctx, signed); a.failed == nil {
		a.copied = c.Size
	}
	if (was == nil) != (a.failed == nil) {
		if err := a.tell(ctx); err != nil {
			return err
		}
	}
	if a.Copy.Required {
		return a.failed
	}
	return nil
}

// tell records that the copy began to fail, or works again.
func (a *Audit) tell(ctx context.Context) error {
	e := a.event(model.CopyWorks)
	if a.failed != nil {
		a.Sys.Log.Warn("the checkpoint was not copied to its second place", "error", a.failed)
		e = a.event(model.CopyFailed)
		e.Reason, e.Detail = fault.ReasonOf(a.failed), writ.Object{"error": fault.TextOf(a.failed)}
	}
	return a.Store.Update(ctx, func(tx store.Tx) error { return tx.Append(e) })
}

func (a *Audit) event(t model.EventType) *model.Event { return newEvent(a.Sys, t) }

func newEvent(s sys.Sys, t model.EventType) *model.Event {
	return &model.Event{ID: s.NewID("evt"), Type: t, Timestamp: writ.At(s.Now()), User: model.Writ, Detail: writ.Object{}}
}

// Checkpoint returns a signed checkpoint of all events that are in the ledger.
func (a *Audit) Checkpoint() (signed []byte, err error) {
	err = a.export.With(func(l *ledger.Log) error {
		signed, err = l.Sign()
		return err
	})
	return signed, err
}

// Proof is what proves events, as package evidence has it.
type Proof struct {
	Checkpoint []byte
	Seams      [][]byte        // the first lines of the segments
	Events     [][]ledger.Hash // for each event, that the checkpoint covers it
	Cosigned   []evidence.Cosigned
}

// Prove signs all events and proves those with the sequences.
func (a *Audit) Prove(ctx context.Context, sequences []int64) (*Proof, error) {
	if err := a.Anchor(ctx); err != nil {
		return nil, err
	}
	r, err := ledger.Read(a.Log.Dir())
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := &Proof{Seams: r.Seams()}
	p.Checkpoint, _ = r.Checkpoint()
	for _, n := range sequences {
		proof, err := r.Prove(n)
		if err != nil {
			return nil, err
		}
		p.Events = append(p.Events, proof)
	}
	p.Cosigned, err = a.cosigned(r)
	return p, err
}

// Read records that somebody was handed all that proves a change.
func (a *Audit) Read(ctx context.Context, user, changeID string) error {
	e := a.event(model.EvidenceRead)
	e.User, e.ChangeID = user, changeID
	return a.Store.Update(ctx, func(tx store.Tx) error { return tx.Append(e) })
}

// CopyState returns where the second place is, "" if there is none, and why the
// last copy to it failed.
func (a *Audit) CopyState() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Copy.String(), a.failed
}

// Rotate makes another key the one that signs the ledger. That is an event, the
// last that the old key signs.
func (a *Audit) Rotate(ctx context.Context, key ed25519.PrivateKey) error {
	e := a.event(model.KeyChanged)
	e.Detail = writ.Object{"key_id": writ.KeyID(ed25519.PublicKey(key[ed25519.SeedSize:]))}
	if err := a.Store.Update(ctx, func(tx store.Tx) error { return tx.Append(e) }); err != nil {
		return err
	}
	if err := a.export.CatchUp(ctx); err != nil {
		return err
	}
	return a.export.With(func(l *ledger.Log) error { return l.Rotate(key) })
}

// source is the store as a ledger follows it.
type source struct {
	sys sys.Sys
	store.Store
}

// Torn records that a torn line is cut.
func (s source) Torn(ctx context.Context, bytes int64) error {
	e := newEvent(s.sys, model.TornLineCut)
	e.Detail = writ.Object{"bytes": bytes}
	return s.Update(ctx, func(tx store.Tx) error { return tx.Append(e) })
}

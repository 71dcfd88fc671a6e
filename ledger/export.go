package ledger

import (
	"context"
	"sync"

	"writ/failpoint"
	"writ/fault"
)

// pace bounds how many events are carried over at once.
const pace = 512

// Source is where events are first: a database that keeps each with its leaf,
// in one transaction with what it tells of.
type Source interface {
	// Since returns up to limit lines after a sequence, and the tree of all
	// events, as of one moment.
	Since(ctx context.Context, after int64, limit int) ([][]byte, Tree, error)
	// Exported returns how many events the ledger is known to hold, and
	// SetExported raises that number.
	Exported(ctx context.Context) (int64, error)
	SetExported(ctx context.Context, events int64) error
	// Torn is told, before a torn line of so many bytes is cut, so that it is
	// itself an event.
	Torn(ctx context.Context, bytes int64) error
}

// Export is the way from a source to a log. It is safe for concurrent use, and
// while it lives nothing else may use the log.
type Export struct {
	source Source
	log    *Log
	met    bool // the log was found to hold the source's own events

	work sync.Mutex // of log and met
	mu   sync.Mutex // of next
	next *round
}

// StoreOlder is the reason of an error after which it is certain that the log
// holds more events than the source: somebody put back an old copy of it.
const StoreOlder = "store_older"

// round is one carrying over, for all who asked before it began.
type round struct {
	done chan struct{}
	err  error
}

// NewExport returns the way from a source to a log. Both stay the caller's to close.
func NewExport(s Source, l *Log) *Export { return &Export{source: s, log: l} }

// CatchUp makes every event that is in the source durable in the log. Calls
// that wait for one another share one fsync. It goes on from what the log really
// holds, so that a crash at any point loses nothing and writes nothing twice. It
// fails with fault.Unavailable if the log lacks an event that it was known to
// hold, holds one that is not the source's, or cannot be written.
func (e *Export) CatchUp(ctx context.Context) error {
	e.mu.Lock()
	r := e.next
	if r != nil {
		e.mu.Unlock()
		<-r.done
		return r.err
	}
	r = &round{make(chan struct{}), fault.New(fault.Unavailable, "The audit broke off. The log has the cause.")}
	e.next = r
	e.mu.Unlock()
	defer close(r.done)
	e.work.Lock()
	defer e.work.Unlock()
	e.mu.Lock()
	e.next = nil // what happens from now on may be too late for this round
	e.mu.Unlock()
	r.err = e.carry(context.WithoutCancel(ctx)) // others wait for it
	return r.err
}

// With runs f on the log, when nobody carries over.
func (e *Export) With(f func(*Log) error) error {
	e.work.Lock()
	defer e.work.Unlock()
	return f(e.log)
}

func (e *Export) carry(ctx context.Context) error {
	exported, err := e.source.Exported(ctx)
	if err != nil {
		return err
	}
	if held := e.log.Size(); held < exported {
		return fault.New(fault.Unavailable, "The audit ends after event %d, but it held %d. Somebody cut it: put it back from its copy, and find out who did.", held, exported)
	}
	if !e.met {
		if err := e.meet(ctx); err != nil {
			return err
		}
	}
	for more := true; more; {
		lines, all, err := e.source.Since(ctx, e.log.Size(), pace)
		if err != nil {
			return err
		}
		if _, err := e.follows(e.log.Tree(), lines, all); err != nil {
			return err
		}
		failpoint.Reach(failpoint.AuditAppend)
		if err := e.log.Append(lines...); err != nil {
			return err
		}
		more = e.log.Size() < all.Size()
	}
	failpoint.Reach(failpoint.AuditAppended)
	if held := e.log.Size(); held > exported {
		err = e.source.SetExported(ctx, held)
		failpoint.Reach(failpoint.AuditCaughtUp)
	}
	return err
}

// follows returns the tree with the lines, which must be the source's if they
// are its last.
func (e *Export) follows(tree Tree, lines [][]byte, all Tree) (Tree, error) {
	for _, line := range lines {
		tree = tree.Add(Leaf(line))
	}
	switch size := tree.Size(); {
	case size > all.Size():
		return tree, fault.New(fault.Unavailable, "The audit holds %d events, more than the store. The store is older than the audit: restore the newest backup of the store. If none is newer, run: writ recover", size).Because(StoreOlder)
	case size < all.Size() && len(lines) == 0:
		return tree, fault.New(fault.Unavailable, "The store has %d events, but not event %d. Restore the newest backup of the store.", all.Size(), size+1)
	case size == all.Size() && tree.Root() != all.Root():
		return tree, fault.New(fault.Unavailable, "The audit does not hold the events of the store.")
	}
	return tree, nil
}

// meet compares the log with the source once, before anything is written or cut.
func (e *Export) meet(ctx context.Context) error {
	tree := e.log.Tree()
	for more := true; more; {
		lines, all, err := e.source.Since(ctx, tree.Size(), pace)
		if err != nil {
			return err
		}
		held := tree.Size()
		if tree, err = e.follows(tree, lines, all); err != nil {
			if tree.Size() == all.Size() && held <= all.Size() {
				err = e.differs(ctx)
			}
			return err
		}
		more = tree.Size() < all.Size()
	}
	if n := e.log.Torn(); n > 0 {
		// The torn line is beyond every event that was acknowledged.
		if err := e.source.Torn(ctx, n); err != nil {
			return err
		}
		if err := e.log.Cut(); err != nil {
			return err
		}
	}
	e.met = true
	return nil
}

// differs names the first event of the log that is not the source's.
func (e *Export) differs(ctx context.Context) error {
	first := int64(0)
	r, err := Read(e.log.dir)
	if err != nil {
		return err
	}
	defer r.Close()
	var lines [][]byte
	err = r.Each(0, func(sequence int64, line []byte) (err error) {
		if len(lines) == 0 {
			if lines, _, err = e.source.Since(ctx, sequence-1, pace); err != nil {
				return err
			}
		}
		if first == 0 && (len(lines) == 0 || string(lines[0]) != string(line)) {
			first = sequence
		}
		lines = lines[min(1, len(lines)):]
		return nil
	})
	if err != nil {
		return err
	}
	if first == 0 {
		first = e.log.Size() + 1
	}
	return fault.New(fault.Unavailable, "Event %d of the audit is not the one of the store. Put back the audit that belongs to the store, and find out who changed it.", first)
}

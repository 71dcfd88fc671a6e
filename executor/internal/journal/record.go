package journal

import (
	"context"
	"database/sql"
	"errors"

	"writ"
	"writ/fault"
)

// Admission is what is written when a writ is admitted.
type Admission struct {
	Writ   *writ.Writ
	Digest writ.Digest // of the sealed text
	Sealed []byte
}

// Admit spends the nonce and records the run, its fences and its epoch, all or
// nothing. It refuses a nonce or a run that was admitted before (spent), a writ
// that was issued before this journal was opened (issued_before_start), an
// epoch below the highest (stale_epoch) and, for an execute writ, a run that was
// halted (halted) and a fence that is not above the highest of its entity
// (stale_fence). Until it returns nil, nothing has been admitted.
//
// A writ that is older than the process may have been spent in a journal that
// somebody has since replaced by an old copy. A gate hands a writ over as soon as
// it is sealed, so that only a replay is as old as that.
//
// It refuses everything while there is no room to write down what would come of
// it (disk_full), and while the clock is behind what was written last
// (clock_step), but for a raise of the epoch, which says that this is known, and
// a halt, for which there is always room.
func (j *Journal) Admit(ctx context.Context, a Admission) error {
	purpose := a.Writ.Purpose
	if purpose == writ.Halt {
		return j.conclude(func() error { return j.admit(ctx, a) })
	}
	if err := j.reserve.Hold(); err != nil {
		return err
	}
	if purpose != writ.Raise {
		if err := j.onTime(); err != nil {
			return err
		}
	}
	err := j.admit(ctx, a)
	if err == nil && purpose == writ.Raise {
		j.newest.Store(j.sys.Now().UnixMilli()) // from here on, the clock is what it is
	}
	return err
}

func (j *Journal) admit(ctx context.Context, a Admission) error {
	w, now := a.Writ, writ.At(j.sys.Now()).String()
	purpose, finished := w.Purpose, sql.NullString{}
	if purpose != writ.Execute { // whatever it is called, it only reads
		purpose, finished = writ.Observe, sql.NullString{String: now, Valid: true}
	}
	return j.transact(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `INSERT INTO writs (nonce, run, purpose, digest, sealed, admitted_at, finished_at)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, w.Nonce, w.Run, purpose, a.Digest, a.Sealed, now, finished)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, fault.New(fault.Spent, "This writ was used before. Propose the change again.").Because("spent"))
		}
		if w.IssuedAt.Before(j.opened) {
			return fault.New(fault.Refused, "The writ is older than this start of the executor. Propose the change again.").Because("issued_before_start")
		}
		var epoch int64
		err = tx.QueryRowContext(ctx, `UPDATE epoch SET number = max(number, ?) RETURNING number`, w.Epoch).Scan(&epoch)
		if err != nil {
			return err
		}
		if epoch > w.Epoch {
			return fault.New(fault.Refused, "The writ is of epoch %d; everything before epoch %d was revoked.", w.Epoch, epoch).Because("stale_epoch")
		}
		switch w.Purpose {
		case writ.Halt:
			_, err = tx.ExecContext(ctx, `INSERT INTO halts (run, at) VALUES (?, ?) ON CONFLICT DO NOTHING`, w.Run, now)
		case writ.Execute: // what only reads locks nothing
			err = begin(ctx, tx, w)
		}
		if err != nil {
			return err
		}
		return j.tell(ctx, tx, event{
			Type: eventAdmitted, Timestamp: writ.At(j.sys.Now()), ChangeID: w.Envelope.ChangeID, RunID: w.Run, Purpose: w.Purpose, Digest: a.Digest,
		})
	})
}

// begin raises the fences of a run, unless it was halted before it came.
func begin(ctx context.Context, tx *sql.Tx, w *writ.Writ) error {
	var halted bool
	if err := tx.QueryRowContext(ctx, haltedRun, w.Run).Scan(&halted); err != nil {
		return err
	}
	if halted {
		return fault.New(fault.Refused, "This run was stopped before it began.").Because(Halted)
	}
	for _, f := range w.Fences {
		if err := raise(ctx, tx, f, w.Run); err != nil {
			return err
		}
	}
	return nil
}

func raise(ctx context.Context, tx *sql.Tx, f writ.Fence, run string) error {
	done, err := tx.ExecContext(ctx, `INSERT INTO fences (entity, number, run) VALUES (?, ?, ?)
		ON CONFLICT (entity) DO UPDATE SET number = excluded.number, run = excluded.run WHERE excluded.number > number`,
		f.Entity, f.Number, run)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fault.New(fault.Refused, "The lock on %s was given to a later change. Propose the change again.", f.Entity).Because("stale_fence"))
	}
	return nil
}

// Kind says what an entry records.
type Kind string

// The kinds of entries. Backup: the state before is saved. Sent: a write is
// about to leave. Result: what came of it, Outcome Unknown included. Applied:
// all writes of the step are answered and their tasks ended. Receipt: the
// step's sealed receipt, its end.
const (
	Backup  Kind = "backup"
	Sent    Kind = "sent"
	Result  Kind = "result"
	Applied Kind = "applied"
	Receipt Kind = "receipt"
)

// Entry is one thing that happened to a step.
type Entry struct {
	Run  string
	Step string
	Undo bool // of the step's way back, not of the step itself
	Kind Kind
	Call int    // which of the step's writes; 0 if the kind has none
	Mark string // joins a result to what was sent; "" for other kinds
	At   writ.Time
	Body []byte
}

// Append writes an entry. One of the kind Sent is in the audit as well before
// Append returns; and so was all before it, so that an audit that cannot be
// written leaves no intent without an outcome. It is refused unless there is room
// for its outcome, and with the reason disk_full nothing was written. What comes
// of it goes into the reserve, if there is no other room.
func (j *Journal) Append(ctx context.Context, e Entry) error {
	switch e.Kind {
	case Backup:
		return j.append(ctx, e)
	case Sent:
		if err := j.reserve.Hold(); err != nil {
			return err
		}
		if err := j.catchUp(ctx); err != nil {
			return err
		}
		if err := j.append(ctx, e); err != nil {
			return err
		}
		return j.catchUp(ctx)
	}
	return j.conclude(func() error { return j.append(ctx, e) })
}

func (j *Journal) append(ctx context.Context, e Entry) error {
	return j.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO entries (run, step, undo, kind, call, mark, at, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			e.Run, e.Step, e.Undo, e.Kind, e.Call, e.Mark, e.At.String(), e.Body)
		if err != nil {
			return err
		}
		return j.tell(ctx, tx, event{
			Type: "step." + string(e.Kind), Timestamp: e.At, RunID: e.Run, Step: e.Step, Undo: e.Undo,
			Call: int64(e.Call), Mark: e.Mark, Digest: writ.DigestBytes(e.Body),
		})
	})
}

// Finish records that a run has ended. It does nothing to one that has.
func (j *Journal) Finish(ctx context.Context, run string) error {
	return j.conclude(func() error { return j.finish(ctx, run) })
}

func (j *Journal) finish(ctx context.Context, run string) error {
	return j.transact(ctx, func(tx *sql.Tx) error {
		now := writ.At(j.sys.Now())
		done, err := tx.ExecContext(ctx, `UPDATE writs SET finished_at = max(admitted_at, ?)
			WHERE run = ? AND purpose = 'execute' AND finished_at IS NULL`, now.String(), run)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return j.tell(ctx, tx, event{Type: eventFinished, Timestamp: now, RunID: run})
	})
}

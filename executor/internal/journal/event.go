package journal

import (
	"context"
	"crypto/ed25519"
	"database/sql"

	"writ"
	"writ/fault"
	"writ/ledger"
)

// event is one record of the journal as a line of the executor's audit. What
// the journal keeps stays there: the line names it by its digest.
type event struct {
	Sequence  int64        `json:"sequence"`
	Type      string       `json:"event"`
	Timestamp writ.Time    `json:"timestamp"`
	ChangeID  string       `json:"change_id"`
	RunID     string       `json:"run_id"`
	Purpose   writ.Purpose `json:"purpose"`
	Step      string       `json:"step"`
	Undo      bool         `json:"undo"`
	Call      int64        `json:"call"`
	Mark      string       `json:"mark"`
	Digest    writ.Digest  `json:"digest"` // of the sealed writ or the body of the entry; "" without one
	Bytes     int64        `json:"bytes"`  // of a torn line that was cut
	// What is in force from then on: executor.yaml, and the catalog with its settings.
	Config  writ.Digest `json:"config_digest,omitempty"`
	Catalog writ.Digest `json:"catalog_digest,omitempty"`
	KeyID   string      `json:"key_id,omitempty"` // of the key that signs from then on
}

// The types of events besides "step." and the kind of an entry.
const (
	eventAdmitted   = "writ.admitted"
	eventFinished   = "run.finished"
	eventTornCut    = "audit.torn_line_cut"
	eventSetAside   = "audit.set_aside" // with the digest of its checkpoint
	eventDrained    = "executor.drained"
	eventKeyChanged = "audit.key_changed"
)

// Act is something that was done to the executor itself.
type Act string

// The acts, as events name them.
const (
	Started  Act = "executor.started"
	Reloaded Act = "executor.reloaded"
	Unlocked Act = "vault.unlocked"
	Locked   Act = "vault.locked"
)

// tell adds an event and its leaf, in the transaction of what it tells of.
func (j *Journal) tell(ctx context.Context, tx *sql.Tx, e event) error {
	tree, err := scanTree(tx.QueryRowContext(ctx, `SELECT size, peaks FROM tree`))
	if err != nil {
		return err
	}
	e.Sequence = tree.Size() + 1
	line, err := ledger.Line(e)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO events (sequence, line) VALUES (?, ?)`, e.Sequence, string(line)); err != nil {
		return err
	}
	tree = tree.Add(ledger.Leaf(line))
	_, err = tx.ExecContext(ctx, `UPDATE tree SET size = ?, peaks = ?, exported = max(exported, ?)`, tree.Size(), tree.Peaks(), j.exported.Load())
	j.newest.Store(max(j.newest.Load(), e.Timestamp.UnixMilli()))
	return err
}

func scanTree(row *sql.Row) (ledger.Tree, error) {
	var size int64
	var peaks []byte
	if err := row.Scan(&size, &peaks); err != nil {
		return ledger.Tree{}, err
	}
	return ledger.ParseTree(size, peaks)
}

// Keep lets a log follow the journal; it is the journal's to close from then
// on. It fails if the log does not hold what the journal does, with the reason
// ledger.StoreOlder if it holds more.
func (j *Journal) Keep(ctx context.Context, log *ledger.Log) error {
	export := ledger.NewExport(source{j}, log)
	if err := export.CatchUp(ctx); err != nil {
		return err
	}
	j.log, j.export = log, export
	return j.Anchor(ctx)
}

// SetAside records that an audit which knew more than the journal was set
// aside, and what it held.
func (j *Journal) SetAside(ctx context.Context, checkpoint []byte) error {
	return j.transact(ctx, func(tx *sql.Tx) error {
		return j.tell(ctx, tx, event{Type: eventSetAside, Timestamp: writ.At(j.sys.Now()), Digest: writ.DigestBytes(checkpoint)})
	})
}

// Act records an act; config and catalog are what is in force from then on, "" if
// the act does not change them.
func (j *Journal) Act(ctx context.Context, act Act, config, catalog writ.Digest) error {
	return j.conclude(func() error {
		return j.transact(ctx, func(tx *sql.Tx) error {
			return j.tell(ctx, tx, event{Type: string(act), Timestamp: writ.At(j.sys.Now()), Config: config, Catalog: catalog})
		})
	})
}

// Rotate makes another key the one that signs the audit. That is an event, the
// last that the old key signs.
func (j *Journal) Rotate(ctx context.Context, key ed25519.PrivateKey) error {
	if err := j.onTime(); err != nil {
		return err
	}
	err := j.transact(ctx, func(tx *sql.Tx) error {
		return j.tell(ctx, tx, event{Type: eventKeyChanged, Timestamp: writ.At(j.sys.Now()), KeyID: writ.KeyID(ed25519.PublicKey(key[ed25519.SeedSize:]))})
	})
	if err == nil {
		err = j.catchUp(ctx)
	}
	if err != nil {
		return err
	}
	return j.export.With(func(l *ledger.Log) error { return l.Rotate(key) })
}

// Drained records that the executor was asked to end, takes nothing more, and
// has finished what was under way.
func (j *Journal) Drained(ctx context.Context) error {
	return j.transact(ctx, func(tx *sql.Tx) error {
		return j.tell(ctx, tx, event{Type: eventDrained, Timestamp: writ.At(j.sys.Now())})
	})
}

// catchUp makes every event durable in the log.
func (j *Journal) catchUp(ctx context.Context) error {
	if j.export == nil {
		return fault.New(fault.Internal, "The executor keeps no audit.")
	}
	return j.export.CatchUp(ctx)
}

// Checkpoint returns a signed checkpoint of all that the journal holds. What it
// covers is durable in the log.
func (j *Journal) Checkpoint(ctx context.Context) (signed []byte, err error) {
	j.reserve.Tight() // it is of what has come of something
	if err := j.catchUp(ctx); err != nil {
		return nil, err
	}
	err = j.export.With(func(l *ledger.Log) error {
		signed, err = l.Sign()
		return err
	})
	return signed, err
}

// Anchor writes a signed checkpoint beside the events.
func (j *Journal) Anchor(ctx context.Context) error {
	if err := j.catchUp(ctx); err != nil {
		return err
	}
	return j.export.With(func(l *ledger.Log) error {
		_, err := l.Checkpoint()
		return err
	})
}

// source is the journal as a log follows it.
type source struct{ *Journal }

// Since returns events and the tree of all of them, as of one moment.
func (s source) Since(ctx context.Context, after int64, limit int) (lines [][]byte, tree ledger.Tree, err error) {
	err = s.transact(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT line FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?`, after, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var line []byte
			if err := rows.Scan(&line); err != nil {
				return err
			}
			lines = append(lines, line)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		tree, err = scanTree(tx.QueryRowContext(ctx, `SELECT size, peaks FROM tree`))
		return err
	})
	return lines, tree, err
}

// Exported returns how many events the log is known to hold.
func (s source) Exported(ctx context.Context) (n int64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT exported FROM tree`).Scan(&n)
	return max(n, s.exported.Load()), broken(err)
}

// SetExported raises that number; it is stored with the next event.
func (s source) SetExported(_ context.Context, events int64) error {
	s.exported.Store(events)
	return nil
}

// Torn records that a torn line is cut.
func (s source) Torn(ctx context.Context, bytes int64) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		return s.tell(ctx, tx, event{Type: eventTornCut, Timestamp: writ.At(s.sys.Now()), Bytes: bytes})
	})
}

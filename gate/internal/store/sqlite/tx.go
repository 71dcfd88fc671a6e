package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/json"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/ledger"
)

// tx is what one job writes with. It is good only while the job runs: its
// connection goes on to others.
type tx struct {
	reader
	w     *writer
	ended bool
}

func newTx(w *writer) *tx {
	t := &tx{w: w}
	t.reader = reader{fail: w.fail, query: func(text string, args ...any) (*sql.Rows, error) {
		if err := t.alive(); err != nil {
			return nil, err
		}
		return w.query(text, args...)
	}}
	return t
}

func (t *tx) alive() error {
	if t.ended {
		return fault.New(fault.Internal, "A transaction was used after its end.")
	}
	return nil
}

func (t *tx) exec(text string, args ...any) (int64, error) {
	if err := t.alive(); err != nil {
		return 0, err
	}
	return t.w.exec(text, args...)
}

func (t *tx) Insert(c *model.Change) error {
	body, err := encode(c)
	if err != nil {
		return err
	}
	n, err := t.exec(`INSERT INTO changes (id, body) VALUES (?, ?)
		ON CONFLICT (requester, client_key) WHERE client_key <> '' DO NOTHING`, c.ID, body)
	if err == nil && n == 0 {
		err = fault.New(fault.Conflict, "There is already a change with this client key. Read that one, or choose another key.")
	}
	return err
}

func (t *tx) Move(c *model.Change, from model.State) error {
	if !c.MayMove(from) {
		return fault.New(fault.Internal, "A change cannot move from %s to %s.", from, c.State)
	}
	return t.replace(c, from)
}

func (t *tx) Amend(c *model.Change) error { return t.replace(c, c.State) }

func (t *tx) replace(c *model.Change, from model.State) error {
	next := *c
	next.Version++
	body, err := encode(&next)
	if err != nil {
		return err
	}
	n, err := t.exec(`UPDATE changes SET body = ? WHERE id = ? AND state = ? AND version = ?`, body, c.ID, string(from), c.Version)
	if err != nil {
		return err
	}
	if n != 1 {
		return fault.New(fault.Conflict, "The change is no longer as it was when it was read. Read it again.")
	}
	c.Version = next.Version
	return nil
}

func (t *tx) Append(e *model.Event) error {
	tree, err := t.tree()
	if err != nil {
		return err
	}
	next := *e
	next.Sequence = tree.Size() + 1
	line, err := ledger.Line(&next)
	if err != nil {
		return err
	}
	if _, err := t.exec(`INSERT INTO events (sequence, line) VALUES (?, ?)`, next.Sequence, string(line)); err != nil {
		return err
	}
	tree = tree.Add(ledger.Leaf(line))
	if _, err := t.exec(`UPDATE tree SET size = ?, peaks = ?`, tree.Size(), tree.Peaks()); err != nil {
		return err
	}
	e.Sequence = next.Sequence
	return nil
}

func (t *tx) TakeLock(l model.Lock, heldBy string) (model.Lock, error) {
	_, err := t.exec(`UPDATE locks SET state = 'released', ended_at = ?1
		WHERE entity = ?2 AND state = 'orphaned' AND change_id = ?3 AND EXISTS (
			SELECT 1 FROM changes WHERE id = ?4 AND rollback_of = ?3 OR id = ?3 AND rollback_of = ?4)`,
		timeText(l.TakenAt), l.Entity, heldBy, l.ChangeID)
	if err != nil {
		return model.Lock{}, err
	}
	held, err := collect(t.reader, scanLock, lockRows+`entity = ? AND state <> 'released'`, l.Entity)
	if err != nil {
		return model.Lock{}, err
	}
	if len(held) > 0 {
		return model.Lock{}, fault.New(fault.Conflict, "%s is locked (%s) by change %s since %s. Look at that change first.",
			l.Entity, held[0].State, held[0].ChangeID, held[0].TakenAt)
	}
	fences, err := collect(t.reader, func(rows *sql.Rows) (n int64, err error) {
		err = rows.Scan(&n)
		return n, err
	}, `INSERT INTO fences (entity, fence) VALUES (?, 1) ON CONFLICT DO UPDATE SET fence = fence + 1 RETURNING fence`, l.Entity)
	if err != nil {
		return model.Lock{}, err
	}
	l.State, l.Fence, l.EndedAt = model.LockActive, fences[0], writ.Time{}
	_, err = t.exec(`INSERT INTO locks (entity, fence, kind, state, change_id, run_id, taken_at, ended_at)
		VALUES (?, ?, ?, 'active', ?, ?, ?, '')`, l.Entity, l.Fence, string(l.Kind), l.ChangeID, l.RunID, timeText(l.TakenAt))
	if err != nil {
		return model.Lock{}, err
	}
	return l, nil
}

func (t *tx) EndLock(entity, changeID string, state model.LockState, at writ.Time) error {
	ended := ""
	if state == model.LockReleased {
		ended = timeText(at)
	}
	n, err := t.exec(`UPDATE locks SET state = ?, ended_at = ?
		WHERE entity = ? AND change_id = ? AND state <> 'released'`, string(state), ended, entity, changeID)
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "Change %s holds no lock on %s.", changeID, entity)
	}
	return err
}

func (t *tx) SetHalt(h model.Halt) error {
	body, err := encode(h)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO halts (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body`, h.ID, body)
	return err
}

func timeText(t writ.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.String()
}

// encode returns the row of a change or a halt. It must not escape as for HTML:
// that would change the bytes of what was sealed.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", fault.Wrap(fault.Internal, err, "It cannot be stored. The log has the cause.")
	}
	return b.String(), nil
}

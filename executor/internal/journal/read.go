package journal

import (
	"context"
	"database/sql"
	"errors"

	"writ"
	"writ/fault"
)

// Epoch returns the highest epoch of an admitted writ.
func (j *Journal) Epoch(ctx context.Context) (int64, error) {
	var n int64
	err := j.db.QueryRowContext(ctx, `SELECT number FROM epoch`).Scan(&n)
	return n, broken(err)
}

// Halted is the reason of what was not done because a person stopped it.
const Halted = "halted"

const haltedRun = `SELECT EXISTS (SELECT 1 FROM halts WHERE run = ?)`

// Halted reports whether no further step of a run may be started.
func (j *Journal) Halted(ctx context.Context, run string) (halted bool, err error) {
	err = j.db.QueryRowContext(ctx, haltedRun, run).Scan(&halted)
	return halted, broken(err)
}

// Holds reports whether the run still has the highest fence of every entity.
func (j *Journal) Holds(ctx context.Context, run string, entities []string) (bool, error) {
	for _, e := range entities {
		var holder string
		err := j.db.QueryRowContext(ctx, `SELECT run FROM fences WHERE entity = ?`, e).Scan(&holder)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return false, broken(err)
		}
		if holder != run {
			return false, nil
		}
	}
	return true, nil
}

// Run is an admitted execute writ.
type Run struct {
	Run      string
	Sealed   []byte
	Finished bool
}

// Unfinished lists the runs that have not ended, oldest first.
func (j *Journal) Unfinished(ctx context.Context) ([]Run, error) {
	rows, err := j.db.QueryContext(ctx, `SELECT run, sealed FROM writs WHERE finished_at IS NULL ORDER BY admitted_at, run`)
	if err != nil {
		return nil, broken(err)
	}
	defer rows.Close()
	var runs []Run
	for rows.Next() {
		var r Run
		if err := rows.Scan(&r.Run, &r.Sealed); err != nil {
			return nil, broken(err)
		}
		runs = append(runs, r)
	}
	return runs, broken(rows.Err())
}

// State returns how far a run is, with the receipts whose sequence is above after.
func (j *Journal) State(ctx context.Context, run string, after int64) (writ.RunState, error) {
	state := writ.RunState{Run: run, Receipts: [][]byte{}}
	err := j.db.QueryRowContext(ctx, `SELECT finished_at IS NOT NULL FROM writs WHERE run = ? AND purpose = 'execute'`, run).Scan(&state.Finished)
	if errors.Is(err, sql.ErrNoRows) {
		return state, fault.New(fault.NotFound, "This executor has admitted no run of this name.").Because("unknown_run")
	}
	if err != nil {
		return state, broken(err)
	}
	entries, err := j.entries(ctx, `kind = 'receipt' AND run = ? ORDER BY id LIMIT -1 OFFSET ?`, run, max(after, 0))
	for _, e := range entries {
		state.Receipts = append(state.Receipts, e.Body)
	}
	return state, err
}

// Entries lists what happened in a run, in order.
func (j *Journal) Entries(ctx context.Context, run string) ([]Entry, error) {
	return j.entries(ctx, `run = ? ORDER BY id`, run)
}

func (j *Journal) entries(ctx context.Context, where string, args ...any) ([]Entry, error) {
	rows, err := j.db.QueryContext(ctx, `SELECT run, step, undo, kind, call, mark, at, body FROM entries WHERE `+where, args...)
	if err != nil {
		return nil, broken(err)
	}
	defer rows.Close()
	var list []Entry
	for rows.Next() {
		var e Entry
		var at string
		if err := rows.Scan(&e.Run, &e.Step, &e.Undo, &e.Kind, &e.Call, &e.Mark, &at, &e.Body); err != nil {
			return nil, broken(err)
		}
		if err := e.At.UnmarshalJSON([]byte(at)); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, broken(rows.Err())
}

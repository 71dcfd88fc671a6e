package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/ledger"
)

// reader reads through query, which knows the transaction; fail turns every
// error that SQLite gives into ours.
type reader struct {
	query func(text string, args ...any) (*sql.Rows, error)
	fail  func(error) error
}

// collect returns all rows of a query.
func collect[T any](r reader, scan func(*sql.Rows) (T, error), text string, args ...any) ([]T, error) {
	rows, err := r.query(text, args...)
	if err != nil {
		return nil, r.fail(err)
	}
	var all []T
	for err == nil && rows.Next() {
		var one T
		if one, err = scan(rows); err == nil {
			all = append(all, one)
		}
	}
	for _, e := range []error{err, rows.Err(), rows.Close()} {
		if e != nil {
			return nil, r.fail(e)
		}
	}
	return all, nil
}

func (r reader) Change(id string) (*model.Change, error) {
	return r.one(`SELECT body FROM changes WHERE id = ?`, id)
}

func (r reader) ByClientKey(requester, key string) (*model.Change, error) {
	return r.one(`SELECT body FROM changes WHERE client_key <> '' AND requester = ? AND client_key = ?`, requester, key)
}

func (r reader) one(text string, args ...any) (*model.Change, error) {
	found, err := collect(r, scanChange, text, args...)
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "There is no such change. List the changes to find it.")
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

func (r reader) Changes(f store.ChangeFilter) ([]*model.Change, error) {
	where, args := []string{"true"}, []any{}
	add := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	if len(f.States) > 0 {
		states := make([]any, len(f.States))
		for i, s := range f.States {
			states[i] = string(s)
		}
		add("state IN (?"+strings.Repeat(", ?", len(states)-1)+")", states...)
	}
	if f.Requester != "" {
		add("requester = ?", f.Requester)
	}
	if f.RequestDigest != "" {
		add("json_extract(body, '$.request_digest') = ?", string(f.RequestDigest))
	}
	if f.RollbackOf != "" {
		add("rollback_of <> '' AND rollback_of = ?", f.RollbackOf)
	}
	if f.RunID != "" {
		add("run_id = ?", f.RunID)
	}
	if f.Entity != "" {
		add("id IN (SELECT change_id FROM plans WHERE entity = ?)", f.Entity)
	}
	if f.Approved {
		add("coalesce(json_array_length(body, '$.approvals'), 0) > 0")
	}
	if !f.EndedSince.IsZero() {
		add("json_extract(body, '$.ended_at') >= ?", f.EndedSince.String())
	}
	if f.Before != "" {
		add("id < ?", f.Before)
	}
	args = append(args, limit(f.Limit, 100))
	return collect(r, scanChange, `SELECT body FROM changes WHERE `+strings.Join(where, " AND ")+` ORDER BY id DESC LIMIT ?`, args...)
}

func (r reader) Events(f store.EventFilter) ([]store.Line, error) {
	where, args := "sequence > ?", []any{f.After}
	add := func(asked, condition string, values ...any) {
		if asked != "" {
			where, args = where+" AND "+condition, append(args, values...)
		}
	}
	add(f.ChangeID, "change_id = ?", f.ChangeID)
	add(f.User, "? IN (line ->> '$.user', substr(line ->> '$.user', nullif(instr(line ->> '$.user', ':'), 0) + 1))", f.User)
	add(f.Target, "(? IN (line ->> '$.target_system', line ->> '$.entity') OR substr(line ->> '$.entity', 1, length(?) + 1) = ? || '/')", f.Target, f.Target, f.Target)
	if family, all := strings.CutSuffix(f.Action, "*"); all {
		add(f.Action, "substr(line ->> '$.action_type', 1, length(?)) = ?", family, family)
	} else {
		add(f.Action, "line ->> '$.action_type' = ?", f.Action)
	}
	add(f.Since, "line ->> '$.timestamp' >= ?", f.Since)
	add(f.Until, "line ->> '$.timestamp' <= ?", f.Until)
	args = append(args, limit(f.Limit, 1000))
	order := ` ORDER BY sequence LIMIT ?`
	if f.Newest {
		order = ` ORDER BY sequence DESC LIMIT ?`
	}
	lines, err := collect(r, func(rows *sql.Rows) (l store.Line, err error) {
		err = rows.Scan(&l.Sequence, &l.Bytes)
		return l, err
	}, `SELECT sequence, line FROM events WHERE `+where+order, args...)
	if f.Newest {
		slices.Reverse(lines)
	}
	return lines, err
}

// tree returns the Merkle tree of all events.
func (r reader) tree() (ledger.Tree, error) {
	rows, err := collect(r, func(rows *sql.Rows) (t ledger.Tree, err error) {
		var size int64
		var peaks []byte
		if err := rows.Scan(&size, &peaks); err != nil {
			return t, err
		}
		return ledger.ParseTree(size, peaks)
	}, `SELECT size, peaks FROM tree`)
	if err != nil || len(rows) != 1 {
		return ledger.Tree{}, errors.Join(err, unreadable(nil))
	}
	return rows[0], nil
}

func (r reader) Locks(released bool) ([]model.Lock, error) {
	where := "state <> 'released'"
	if released {
		where = "true"
	}
	return collect(r, scanLock, lockRows+where+` ORDER BY entity, fence`)
}

const lockRows = `SELECT entity, kind, state, fence, change_id, run_id, taken_at, ended_at FROM locks WHERE `

func scanLock(rows *sql.Rows) (l model.Lock, err error) {
	var taken, ended string
	if err := rows.Scan(&l.Entity, &l.Kind, &l.State, &l.Fence, &l.ChangeID, &l.RunID, &taken, &ended); err != nil {
		return l, err
	}
	if err := errors.Join(parseTime(taken, &l.TakenAt), parseTime(ended, &l.EndedAt)); err != nil {
		return l, unreadable(err)
	}
	return l, nil
}

func (r reader) Halts(lifted bool) ([]model.Halt, error) {
	where := `json_extract(body, '$.lifted_at') = ''`
	if lifted {
		where = "true"
	}
	return collect(r, func(rows *sql.Rows) (h model.Halt, err error) {
		return h, scanBody(rows, &h)
	}, `SELECT body FROM halts WHERE `+where+` ORDER BY id DESC`)
}

func parseTime(text string, t *writ.Time) error { return t.UnmarshalJSON([]byte(`"` + text + `"`)) }

func scanChange(rows *sql.Rows) (*model.Change, error) {
	c := new(model.Change)
	if err := scanBody(rows, c); err != nil {
		return nil, err
	}
	if string(c.Writ) == "null" { // encoding/json leaves the word in raw messages
		c.Writ = nil
	}
	return c, nil
}

// scanBody reads a row that is one JSON value.
func scanBody(rows *sql.Rows, v any) error {
	var body sql.RawBytes
	if err := rows.Scan(&body); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return unreadable(err)
	}
	return nil
}

func unreadable(cause error) error {
	return fault.Wrap(fault.Unavailable, cause, "The gate's store holds something that this writ cannot read. Start the writ that wrote it, or restore a backup of the store.")
}

func limit(asked, otherwise int) int {
	if asked > 0 {
		return asked
	}
	return otherwise
}

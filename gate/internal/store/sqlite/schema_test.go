package sqlite_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
)

// raw opens the file past the store.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// The tables themselves refuse a row that may not exist, whoever writes it.
func TestSchema_refusesImpossibleRows(t *testing.T) {
	t.Parallel()
	db := raw(t, newStore(t))
	lock := func(state, ended string) string {
		return `INSERT INTO locks VALUES ('chg_1', 2, 'write', '` + state + `', 'chg_1', 'run_1', '2026', '` + ended + `')`
	}
	for _, c := range []struct{ name, statement string }{
		{"a change with a word that is no state", `UPDATE changes SET body = json_set(body, '$.state', 'surprising')`},
		{"a change of another id than its body", `UPDATE changes SET body = json_set(body, '$.id', 'chg_9')`},
		{"a change moved to another id", `UPDATE changes SET id = 'chg_9' WHERE id = 'chg_1'`},
		{"a change without an id", `INSERT INTO changes (id, body) SELECT '', json_set(body, '$.id', '') FROM changes LIMIT 1`},
		{"a change without a requester", `INSERT INTO changes (id, body) SELECT 'chg_9', json_set(body, '$.id', 'chg_9', '$.requested_by.name', '') FROM changes LIMIT 1`},
		{"a change without a member", `UPDATE changes SET body = json_remove(body, '$.client_key')`},
		{"a claimed change without a run", `UPDATE changes SET body = json_set(body, '$.state', 'claimed')`},
		{"two changes with one key", `UPDATE changes SET body = json_set(body, '$.client_key', 'key')`},
		{"a change with another requester", `UPDATE changes SET body = json_set(body, '$.requested_by.name', 'other')`},
		{"a change removed", `DELETE FROM changes`},
		{"a halt removed", `INSERT INTO halts VALUES ('halt_1', '{"id":"halt_1","lifted_at":""}'); DELETE FROM halts`},
		{"an event after a gap", `INSERT INTO events (sequence, line) SELECT 4, json_set(line, '$.sequence', 4, '$.event_id', 'evt_4') FROM events WHERE sequence = 1`},
		{"an event before the first", `INSERT INTO events (sequence, line) SELECT 0, json_set(line, '$.sequence', 0, '$.event_id', 'evt_4') FROM events WHERE sequence = 1`},
		{"an event of another sequence than its line", `INSERT INTO events (sequence, line) SELECT 3, json_set(line, '$.event_id', 'evt_4') FROM events WHERE sequence = 1`},
		{"an event twice", `INSERT INTO events (sequence, line) SELECT 3, json_set(line, '$.sequence', 3) FROM events WHERE sequence = 1`},
		{"an event changed", `UPDATE events SET line = line`},
		{"an event removed", `DELETE FROM events WHERE sequence = 2`},
		{"an event without the leaf of the one before", `INSERT INTO events (sequence, line) SELECT 3, json_set(line, '$.sequence', 3, '$.event_id', 'evt_3') FROM events WHERE sequence = 1;
			INSERT INTO events (sequence, line) SELECT 4, json_set(line, '$.sequence', 4, '$.event_id', 'evt_4') FROM events WHERE sequence = 1`},
		{"a leaf without an event", `UPDATE tree SET size = size + 2`},
		{"a leaf removed", `UPDATE tree SET size = size - 1`},
		{"the tree changed", `UPDATE tree SET peaks = x'00'`},
		{"the tree removed", `DELETE FROM tree`},
		{"a second tree", `INSERT INTO tree VALUES (2, 0, x'')`},
		{"a fence lowered", `UPDATE fences SET fence = fence - 1`},
		{"a fence repeated", `UPDATE fences SET fence = fence`},
		{"a fence removed", `DELETE FROM fences`},
		{"a second holder", lock("active", "")},
		{"a second holder, orphaned", lock("orphaned", "")},
		{"a released lock that has not ended", lock("released", "")},
		{"an active lock that has ended", `UPDATE locks SET ended_at = '2026'`},
		{"a lock with a word that is no state", lock("gone", "")},
		{"a lock with a word that is no kind", `UPDATE locks SET kind = 'soft', state = 'released', ended_at = '2026'`},
		{"a lock of no change", `UPDATE locks SET change_id = 'chg_9', state = 'orphaned'`},
		{"a lock of no fence", `UPDATE locks SET entity = 'other', state = 'orphaned'`},
		{"a lock removed", `DELETE FROM locks`},
		{"a plan of no change", `INSERT INTO plans VALUES ('x', 'chg_9')`},
		{"a plan of nothing", `INSERT INTO plans VALUES ('', 'chg_1')`},
		{"a plan changed", `INSERT INTO plans VALUES ('x', 'chg_1'); UPDATE plans SET entity = 'y'`},
		{"a plan removed", `DELETE FROM plans`},
		{"two numbers exported", `INSERT INTO meta VALUES (2, 0)`},
		{"less than nothing exported", `UPDATE meta SET exported = -1`},
	} {
		_, err := db.ExecContext(t.Context(), c.statement)
		refused, ok := errors.AsType[*driver.Error](err)
		if !ok || refused.Code()&0xff != codes.SQLITE_CONSTRAINT {
			t.Errorf("%s: %v, want a constraint that refuses it", c.name, err)
		}
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE locks SET state = 'released', ended_at = '2026'; `+lock("released", "2026")); err != nil {
		t.Errorf("what may exist is refused: %v", err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE locks SET state = 'active', ended_at = ''`); err == nil {
		t.Error("a released lock holds again")
	}
}

func TestOpen_refusesANewerSchema(t *testing.T) {
	t.Parallel()
	path := newStore(t)
	db := raw(t, path)
	if _, err := db.ExecContext(t.Context(), `PRAGMA user_version = 1000`); errors.Join(err, db.Close()) != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), path)
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "newer writ") {
		t.Errorf("got %v, want unavailable and the newer writ", err)
	}
}

// A change that has members which this program does not know is not read: it
// would be written back without them.
func TestChange_refusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	path := newStore(t)
	db := raw(t, path)
	if _, err := db.ExecContext(t.Context(), `UPDATE changes SET body = json_set(body, '$.novelty', 1) WHERE id = 'chg_1'`); errors.Join(err, db.Close()) != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		if _, err := tx.Change("chg_1"); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("got %v, want unavailable", err)
		}
		c, err := tx.Change("chg_2")
		if err != nil {
			return err
		}
		c.State = model.Planned
		return tx.Move(c, model.Proposed)
	})
	if err != nil {
		t.Errorf("a row that cannot be read stopped the others: %v", err)
	}
}

// TestOpen_plansOfBefore: a store that was written before plans were kept by
// their entities is searched like one of now.
func TestOpen_plansOfBefore(t *testing.T) {
	t.Parallel()
	path := newStore(t)
	db := raw(t, path)
	_, err := db.ExecContext(t.Context(), `DROP TABLE plans; DROP TRIGGER changes_are_planned; DROP TRIGGER changes_are_decided; PRAGMA user_version = 4;
		UPDATE changes SET body = json_set(body, '$.steps', json('[{"entity":"pve/lxc/1","touches":["pve/x"]},{"entity":"","touches":null}]')) WHERE id = 'chg_2'`)
	if errors.Join(err, db.Close()) != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	err = s.Update(t.Context(), func(tx store.Tx) error {
		for _, entity := range []string{"pve/lxc/1", "pve/x"} {
			found, err := tx.Changes(store.ChangeFilter{Entity: entity})
			if err != nil || len(found) != 1 || found[0].ID != "chg_2" {
				t.Errorf("%s: %v, %v", entity, found, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

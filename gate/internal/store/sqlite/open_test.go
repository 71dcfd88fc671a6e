package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
	"writ/wal"
)

// newStore returns the path of a closed store with two changes, each with an
// event and a lock.
func newStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate", "gate.db")
	s := open(t, path)
	for _, id := range []string{"chg_1", "chg_2"} {
		if err := s.Update(t.Context(), func(tx store.Tx) error { return fill(tx, id) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// fill stores a change with an event and a lock.
func fill(tx store.Tx, id string) error {
	if err := tx.Insert(&model.Change{ID: id, State: model.Proposed, RequestedBy: writ.Principal{Name: "planner", Kind: writ.Agent}}); err != nil {
		return err
	}
	at := writ.At(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	if _, err := tx.TakeLock(model.Lock{Entity: id, Kind: model.LockWrite, ChangeID: id, RunID: "run_1", TakenAt: at}, ""); err != nil {
		return err
	}
	return tx.Append(&model.Event{ID: "evt_" + id, Type: model.ChangeProposed, ChangeID: id})
}

func TestOpen_isItsOwnersAlone(t *testing.T) {
	t.Parallel()
	path := newStore(t)
	s := open(t, path)
	if err := s.Update(t.Context(), func(tx store.Tx) error { return fill(tx, "chg_3") }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "gate.db": 0o600, "gate.db-wal": 0o600, "gate.db-shm": 0o600} {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q has mode %v (%v), want %v", name, info.Mode(), err, want)
		}
	}
}

func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(dir, path string) error
		want    string
	}{
		{"a directory that others list", func(dir, _ string) error { return os.Chmod(dir, 0o755) }, "chmod go-rwx"},
		{"a directory by a link", func(dir, _ string) error {
			if err := os.Rename(dir, dir+"2"); err != nil {
				return err
			}
			return os.Symlink(dir+"2", dir)
		}, "is a link"},
		{"a file that others read", func(_, path string) error { return os.Chmod(path, 0o640) }, "chmod go-rwx"},
		{"a file by a link", func(_, path string) error {
			if err := os.Rename(path, path+"2"); err != nil {
				return err
			}
			return os.Symlink(path+"2", path)
		}, "is a link"},
		{"a file with a second name", func(_, path string) error { return os.Link(path, path+"2") }, "second name"},
		{"a directory in place of the file", func(_, path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		}, "is a link or not"},
		{"a log without its store", func(_, path string) error {
			if err := os.WriteFile(path+"-wal", []byte("old"), 0o600); err != nil {
				return err
			}
			return os.Remove(path)
		}, "its log"},
		{"something that is no store", func(_, path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 8192), 0o600) }, "is damaged"},
	} {
		path := newStore(t)
		if err := c.prepare(filepath.Dir(path), path); err != nil {
			t.Fatal(err)
		}
		_, err := sqlite.Open(t.Context(), path)
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want unavailable and %q", c.name, err, c.want)
		}
	}
}

// The log of a newer copy, left beside a store that was restored, is refused before
// anything of it is read (C123).
func TestOpen_logOfAnotherCopy(t *testing.T) {
	t.Parallel()
	path := newStore(t)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if err := s.Update(t.Context(), func(tx store.Tx) error { return fill(tx, "chg_3") }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if err := s.Update(t.Context(), func(tx store.Tx) error { return fill(tx, "chg_4") }); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal") // as a crash leaves it
	if err == nil {
		err = s.Close()
	}
	if err := errors.Join(err, os.WriteFile(path, old, 0o600), os.WriteFile(path+"-wal", log, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path); fault.ReasonOf(err) != wal.ForeignLog {
		t.Errorf("got %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, old) {
		t.Errorf("the store was changed (%v)", err)
	}
}

// Damage is refused at the start or does no harm; it never ends in a panic.
func TestOpen_damaged(t *testing.T) {
	t.Parallel()
	path := newStore(t)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := 0; i < len(good); i += 997 {
		bad := bytes.Clone(good)
		bad[i] ^= 0xff
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sqlite.Open(t.Context(), path)
		if err == nil {
			err = errors.Join(s.Update(t.Context(), func(tx store.Tx) error { return fill(tx, "chg_3") }), s.Close())
		}
		if err != nil {
			refused++
		}
		if code := fault.CodeOf(err); code != "" && code != fault.Unavailable && code != fault.Internal {
			t.Errorf("byte %d: %v (%s), want unavailable", i, err, code)
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			if err := os.RemoveAll(path + suffix); err != nil {
				t.Fatal(err)
			}
		}
	}
	if refused == 0 {
		t.Error("no damaged store was refused")
	}
}

package wal_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"writ/fault"
	"writ/wal"
)

// schema is that of the package comment, and something to write.
const schema = `
CREATE TABLE generation (
  only   INTEGER PRIMARY KEY CHECK (only = 1),
  tag    BLOB NOT NULL CHECK (length(tag) = 16),
  before BLOB NOT NULL CHECK (length(before) = 16)
) STRICT;
INSERT INTO generation (only, tag, before) VALUES (1, zeroblob(16), zeroblob(16));
CREATE TABLE notes (n INTEGER PRIMARY KEY, text TEXT NOT NULL);`

func open(t testing.TB, path string) *sql.DB {
	t.Helper()
	// A log of a few pages is copied into the file again and again.
	options := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(7)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+options.Encode())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func do(t testing.TB, db *sql.DB, statements string) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), "BEGIN IMMEDIATE;"+statements+";"+wal.Mark+";COMMIT;"); err != nil {
		t.Fatal(err)
	}
}

// write writes so many notes, one a transaction, and returns how many there are.
func write(t testing.TB, db *sql.DB, count int) (n int) {
	t.Helper()
	for range count {
		do(t, db, `INSERT INTO notes (text) VALUES (hex(randomblob(700)))`)
	}
	if err := db.QueryRowContext(context.Background(), `SELECT count(*) FROM notes`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// fresh makes a database of its own with so many notes, open.
func fresh(t testing.TB, notes int) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.db")
	db = open(t, path)
	do(t, db, schema)
	write(t, db, notes)
	return path, db
}

// lift copies files as they lie there, as a crash leaves them or a person takes them.
func lift(t testing.TB, path, to string, suffixes ...string) {
	t.Helper()
	for _, s := range suffixes {
		data, err := os.ReadFile(path + s)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+s, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sound opens the database and counts the notes of one that is whole.
func sound(t testing.TB, path string) (n int) {
	t.Helper()
	db := open(t, path)
	var found string
	err := db.QueryRowContext(context.Background(), `PRAGMA integrity_check`).Scan(&found)
	if err == nil {
		err = db.QueryRowContext(context.Background(), `SELECT count(*) FROM notes`).Scan(&n)
	}
	if err != nil || found != "ok" {
		t.Fatalf("%s: %v %s", path, err, found)
	}
	return n
}

// The row lies where the package comment says, for a reader that is not SQLite.
func TestCheck_findsTheMark(t *testing.T) {
	t.Parallel()
	path, db := fresh(t, 3)
	var root int
	var tag []byte
	err := db.QueryRowContext(t.Context(), `SELECT rootpage, tag FROM sqlite_schema, generation WHERE name = 'generation'`).Scan(&root, &tag)
	if err != nil || root != 2 {
		t.Fatalf("%v, page %d", err, root)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil || !bytes.Contains(log, tag) {
		t.Errorf("the tag is not in the log (%v)", err)
	}
}

// A database that is restored beside the log of a newer one is refused (C123).
func TestCheck_logOfAnotherCopy(t *testing.T) {
	t.Parallel()
	for _, newer := range []int{1, 2, 3, 5, 8, 40} {
		path, db := fresh(t, 3)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		old := filepath.Join(t.TempDir(), "old.db")
		lift(t, path, old, "")
		db = open(t, path)
		write(t, db, newer)
		if err := db.Close(); err != nil { // all of it is in the file
			t.Fatal(err)
		}
		db = open(t, path)
		write(t, db, 2)
		mixed := filepath.Join(t.TempDir(), "a.db")
		lift(t, path, mixed, "", "-wal", "-shm")
		if err := wal.Check(mixed); err != nil {
			t.Fatalf("its own log: %v", err)
		}
		lift(t, old, mixed, "")
		err := wal.Check(mixed)
		if fault.CodeOf(err) != fault.Unavailable || fault.ReasonOf(err) != wal.ForeignLog || !strings.Contains(fault.TextOf(err), "Run: mv "+mixed+"-wal") {
			t.Errorf("%d newer: %v", newer, err)
		}
		if err := os.Rename(mixed+"-wal", mixed+"-wal.left"); err != nil { // as it says; the index may stay
			t.Fatal(err)
		}
		if err := wal.Check(mixed); err != nil || sound(t, mixed) != 3 {
			t.Errorf("after the log was moved away: %v", err)
		}
	}
}

func TestCheck_logOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	mine, first := fresh(t, 3)
	other, second := fresh(t, 3) // as many transactions, the same pages
	for _, db := range []*sql.DB{first, second} {
		write(t, db, 1)
	}
	mixed := filepath.Join(t.TempDir(), "a.db")
	lift(t, mine, mixed, "")
	lift(t, other, mixed, "-wal", "-shm")
	if err := wal.Check(mixed); fault.ReasonOf(err) != wal.ForeignLog {
		t.Errorf("of another database: %v", err)
	}
	// Two that go back to one: each went on by itself.
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	fork := filepath.Join(t.TempDir(), "fork.db")
	lift(t, mine, fork, "")
	a, b := open(t, mine), open(t, fork)
	write(t, a, 1)
	write(t, b, 1)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, fork)
	write(t, b, 1)
	lift(t, mine, mixed, "")
	lift(t, fork, mixed, "-wal")
	if err := wal.Check(mixed); fault.ReasonOf(err) != wal.ForeignLog {
		t.Errorf("of a fork: %v", err)
	}
	// An empty file in the place of one that was lost.
	if err := os.WriteFile(mixed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := wal.Check(mixed); fault.ReasonOf(err) != wal.ForeignLog {
		t.Errorf("a new file: %v", err)
	}
	// The other kind of log.
	lift(t, mine, mixed, "", "-wal")
	if err := os.WriteFile(mixed+"-journal", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, a, 40)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	lift(t, mine, mixed, "")
	if err := wal.Check(mixed); fault.ReasonOf(err) != wal.ForeignLog {
		t.Errorf("a journal: %v", err)
	}
}

// A copy that was made since the log began is given the newest state, whole: it
// cannot be told from what a crash leaves.
func TestCheck_copyOfTheSameLog(t *testing.T) {
	t.Parallel()
	path, db := fresh(t, 0)
	copies := t.TempDir()
	for i := range 30 {
		lift(t, path, filepath.Join(copies, fmt.Sprint(i)), "")
		n := write(t, db, 1)
		for j := range i + 1 {
			mixed := filepath.Join(t.TempDir(), "a.db")
			lift(t, filepath.Join(copies, fmt.Sprint(j)), mixed, "")
			lift(t, path, mixed, "-wal")
			if err := wal.Check(mixed); err == nil {
				if got := sound(t, mixed); got != n {
					t.Fatalf("copy %d, after %d: %d of %d notes", j, i, got, n)
				}
			}
		}
	}
}

// TestWrites is no test: TestCheck_afterKill runs it in a process of its own.
func TestWrites(t *testing.T) {
	path := os.Getenv("WRIT_TEST_WRITE_TO")
	if path == "" {
		return
	}
	db := open(t, path)
	var there int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM sqlite_schema`).Scan(&there); err != nil {
		t.Fatal(err)
	}
	fmt.Println("begun")
	if there == 0 {
		do(t, db, schema)
	}
	for {
		fmt.Println("acknowledged", write(t, db, 1))
	}
}

// Whenever a process is killed, its own log is accepted and nothing is lost; this
// matters more than what is refused.
func TestCheck_afterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := 0
	for i := range 60 {
		path := filepath.Join(dir, fmt.Sprint(min(i, 20))+".db") // the first of them are only made
		if i <= 20 {
			acknowledged = 0
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestWrites$")
		cmd.Env = append(os.Environ(), "WRIT_TEST_WRITE_TO="+path)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "begun" {
			t.Log(lines.Text())
		}
		// Some while the first tables are made, the others at any moment of a checkpoint.
		timer := time.AfterFunc(time.Duration(i%20)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			_, _ = fmt.Sscanf(lines.Text(), "acknowledged %d", &acknowledged)
		}
		_ = cmd.Wait() // it was killed
		timer.Stop()
		if err := wal.Check(path); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		aside := filepath.Join(t.TempDir(), "a.db")
		lift(t, path, aside, "", "-wal")
		if acknowledged > 0 {
			if n := sound(t, aside); n < acknowledged {
				t.Fatalf("kill %d: %d of %d notes", i, n, acknowledged)
			}
		}
	}
	if acknowledged == 0 {
		t.Error("nothing was ever written")
	}
}

// Beside a process that writes, nothing is refused.
func TestCheck_whileItIsWritten(t *testing.T) {
	t.Parallel()
	path, db := fresh(t, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			write(t, db, 1)
		}
	}()
	for checks := 0; ; checks++ {
		if err := wal.Check(path); err != nil {
			t.Fatalf("check %d: %v", checks, err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// Whatever lies there, Check reads it in bounds; and a log of which SQLite reads
// nothing is no reason to refuse.
func FuzzCheck(f *testing.F) {
	path, db := fresh(f, 2)
	_ = db
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, suffix == "-wal")
	}
	f.Add([]byte{}, true)
	f.Add(binary.BigEndian.AppendUint32(nil, 0x377f0683), true)
	f.Fuzz(func(t *testing.T, data []byte, log bool) {
		at := filepath.Join(t.TempDir(), "a.db")
		lift(t, path, at, "", "-wal")
		name := at
		if log {
			name += "-wal"
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		err := wal.Check(at)
		if log && len(data) < 32+24+512 && err != nil {
			t.Errorf("a log without a page: %v", err)
		}
		if err != nil && fault.CodeOf(err) != fault.Unavailable {
			t.Error(err)
		}
	})
}

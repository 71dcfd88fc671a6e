package journal_test

import (
	"crypto/ed25519"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
	"writ/ledger"

	"writ"
	"writ/executor/internal/journal"
	"writ/fault"
	"writ/sys"
)

func open(t *testing.T, file string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.Context(), file, sys.Real(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	keep(t, j, filepath.Join(filepath.Dir(file), "audit"))
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return j
}

// keep lets an audit follow a journal.
func keep(t *testing.T, j *journal.Journal, dir string) {
	t.Helper()
	log, err := ledger.Open(dir, ledger.Options{Name: "writ/executor/site-a", Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Now: sys.Real(nil).Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Keep(t.Context(), log); err != nil {
		t.Fatal(err)
	}
}

func admission(nonce, run string, epoch, fence int64) journal.Admission {
	w := &writ.Writ{Purpose: writ.Execute, Nonce: nonce, Run: run, Epoch: epoch, IssuedAt: writ.At(time.Now().Add(time.Minute)), Fences: []writ.Fence{{Entity: "e", Number: fence}}}
	return journal.Admission{Writ: w, Digest: writ.DigestBytes([]byte(nonce)), Sealed: []byte(nonce)}
}

func TestAdmit_refuses(t *testing.T) {
	t.Parallel()
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	if err := j.Admit(t.Context(), admission("n1", "run_1", 5, 7)); err != nil {
		t.Fatalf("Admit: %v", err)
	}
	for _, c := range []struct {
		name   string
		a      journal.Admission
		reason string
	}{
		{"same nonce", admission("n1", "run_2", 5, 8), "spent"},
		{"same run", admission("n2", "run_1", 5, 8), "spent"},
		{"lower epoch", admission("n3", "run_3", 4, 8), "stale_epoch"},
		{"same fence", admission("n4", "run_4", 5, 7), "stale_fence"},
		{"lower fence", admission("n5", "run_5", 9, 6), "stale_fence"},
	} {
		if err := j.Admit(t.Context(), c.a); fault.ReasonOf(err) != c.reason {
			t.Errorf("%s: %v, want %s", c.name, err, c.reason)
		}
	}
	// A refused admission leaves nothing behind: neither its nonce nor its epoch.
	if epoch, err := j.Epoch(t.Context()); err != nil || epoch != 5 {
		t.Errorf("Epoch = %d, %v", epoch, err)
	}
	if err := j.Admit(t.Context(), admission("n4", "run_4", 6, 8)); err != nil {
		t.Errorf("a nonce that was refused was spent: %v", err)
	}
}

func TestAdmit_observeIsSpentAndRaisesTheEpoch(t *testing.T) {
	t.Parallel()
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	a := admission("n1", "run_1", 3, 0)
	a.Writ.Purpose, a.Writ.Fences = writ.Observe, nil
	if err := j.Admit(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := j.Admit(t.Context(), a); fault.CodeOf(err) != fault.Spent {
		t.Errorf("a second time: %v", err)
	}
	if epoch, _ := j.Epoch(t.Context()); epoch != 3 {
		t.Errorf("Epoch = %d", epoch)
	}
	if runs, err := j.Unfinished(t.Context()); len(runs) != 0 || err != nil {
		t.Errorf("an observe writ is an unfinished run: %v %v", runs, err)
	}
	if _, err := j.State(t.Context(), "run_1", 0); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an observe writ has a run state: %v", err)
	}
}

// An old copy of the journal does not know what was spent since; no writ of
// that time is taken any more.
func TestAdmit_afterAnOldCopyIsRestored(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	s := sys.Real(slog.New(slog.DiscardHandler))
	s.Now = func() time.Time { return now }
	a := admission("n1", "run_1", 1, 1)
	a.Writ.IssuedAt = writ.At(now)
	dir := t.TempDir()
	for i, want := range []string{"", "issued_before_start"} {
		file := filepath.Join(dir, string(rune('a'+i))) // the second knows nothing of the first
		j, err := journal.Open(t.Context(), file, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Admit(t.Context(), a); fault.ReasonOf(err) != want {
			t.Errorf("start %d: %v, want %q", i, err, want)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Millisecond)
	}
}

// Two executors on one journal (the lock on the data directory failed): one wins.
func TestAdmit_twoProcesses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "journal.db")
	second, err := journal.Open(t.Context(), file, sys.Real(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	handles := []*journal.Journal{open(t, file), second}
	errs := make([]error, 32)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = handles[i%2].Admit(t.Context(), admission("n1", "run_1", 1, 1)) })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if fault.CodeOf(err) != fault.Spent {
			t.Errorf("a loser got %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d admitted one writ", won)
	}
}

func TestAppend_isOnceAndInOrder(t *testing.T) {
	t.Parallel()
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	entry := func(kind journal.Kind, call int, mark string) error {
		return j.Append(t.Context(), journal.Entry{Run: "run_1", Step: "s1", Kind: kind, Call: call, Mark: mark, At: writ.At(time.Unix(0, 0)), Body: []byte(`{"x":1}`)})
	}
	if entry(journal.Sent, 0, "m0") == nil {
		t.Error("sent was written for a run that was not admitted")
	}
	if err := j.Admit(t.Context(), admission("n1", "run_1", 1, 1)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		kind journal.Kind
		call int
		mark string
		ok   bool
	}{
		{"result before sent", journal.Result, 0, "m1", false},
		{"sent", journal.Sent, 0, "m1", true},
		{"the same call again", journal.Sent, 0, "m2", false},
		{"sent without mark", journal.Sent, 1, "", false},
		{"another call", journal.Sent, 1, "m3", true},
		{"result", journal.Result, 0, "m1", true},
		{"result twice", journal.Result, 0, "m1", false},
		{"receipt", journal.Receipt, 0, "", true},
		{"receipt twice", journal.Receipt, 0, "", false},
		{"sent after the receipt", journal.Sent, 2, "m4", false},
		{"unknown kind", "guess", 0, "", false},
	} {
		if err := entry(c.kind, c.call, c.mark); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := j.Finish(t.Context(), "run_1"); err != nil {
		t.Fatal(err)
	}
	if err := j.Finish(t.Context(), "run_1"); err != nil {
		t.Errorf("Finish twice: %v", err)
	}
	if entry(journal.Sent, 3, "m5") == nil {
		t.Error("sent was written for a run that has ended")
	}
	list, err := j.Entries(t.Context(), "run_1")
	if err != nil || len(list) != 4 || list[0].Mark != "m1" || list[3].Kind != journal.Receipt {
		t.Errorf("Entries = %+v, %v", list, err)
	}
	state, err := j.State(t.Context(), "run_1", 0)
	if err != nil || !state.Finished || len(state.Receipts) != 1 || string(state.Receipts[0]) != `{"x":1}` {
		t.Errorf("State = %+v, %v", state, err)
	}
	if state, _ := j.State(t.Context(), "run_1", 1); len(state.Receipts) != 0 {
		t.Errorf("State after 1 = %+v", state)
	}
}

func TestOpen_afterwardsEverythingIsThere(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a b?c.db") // a path is not a query
	j, err := journal.Open(t.Context(), file, sys.Real(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Admit(t.Context(), admission("n1", "run_1", 4, 9)); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), journal.Entry{Run: "run_1", Step: "s1", Kind: journal.Backup, Body: []byte(`<&>`)}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, file)
	if err := j.Admit(t.Context(), admission("n1", "run_9", 4, 10)); fault.CodeOf(err) != fault.Spent {
		t.Errorf("the nonce is no longer spent: %v", err)
	}
	runs, err := j.Unfinished(t.Context())
	if err != nil || len(runs) != 1 || runs[0].Run != "run_1" || string(runs[0].Sealed) != "n1" {
		t.Errorf("Unfinished = %+v, %v", runs, err)
	}
	for entities, want := range map[string]bool{"e": true, "other": false} {
		if got, err := j.Holds(t.Context(), "run_1", []string{entities}); got != want || err != nil {
			t.Errorf("Holds(%s) = %v, %v", entities, got, err)
		}
	}
}

func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	readable := filepath.Join(dir, "readable.db")
	if err := os.WriteFile(readable, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	target, link := filepath.Join(dir, "target.db"), filepath.Join(dir, "link.db")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte("this is no database, whatever its name says, and it is long enough to be read as one"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{readable, link, garbage, filepath.Join(dir, "no", "such", "dir.db")} {
		if j, err := journal.Open(t.Context(), file, sys.Real(nil)); err == nil {
			t.Errorf("Open(%s) succeeded", file)
			_ = j.Close()
		} else if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("Open(%s): %v", file, err)
		}
	}
}

// A journal that an earlier writ made goes on with what it holds.
func TestOpen_older(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "journal.db")
	schema, err := os.ReadFile("001_journal.sql")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(schema), `UPDATE epoch SET number = 7`, `PRAGMA user_version = 1`} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Close(), os.Chmod(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is brought forward once
		j := open(t, file)
		epoch, err := j.Epoch(t.Context())
		if err != nil || epoch != 7 {
			t.Errorf("the epoch is %d (%v)", epoch, err)
		}
		if halted, err := j.Halted(t.Context(), "run_1"); err != nil || halted {
			t.Errorf("halted is %t (%v)", halted, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

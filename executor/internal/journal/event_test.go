package journal_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crypto/ed25519"

	"writ"
	"writ/executor/internal/journal"
	"writ/fault"
	"writ/ledger"
	"writ/sys"
)

func entry(kind journal.Kind, mark string) journal.Entry {
	return journal.Entry{Run: "run_1", Step: "s1", Kind: kind, Mark: mark, At: writ.At(sys.Real(nil).Now()), Body: []byte("what is kept here")}
}

// records makes the records of one step.
func records(t *testing.T, j *journal.Journal) {
	t.Helper()
	if err := j.Admit(t.Context(), admission("n1", "run_1", 1, 1)); err != nil {
		t.Fatal(err)
	}
	for _, e := range []journal.Entry{entry(journal.Backup, ""), entry(journal.Sent, "m1"), entry(journal.Result, "m1"), entry(journal.Applied, ""), entry(journal.Receipt, "")} {
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a run ends once
		if err := j.Finish(t.Context(), "run_1"); err != nil {
			t.Fatal(err)
		}
	}
}

// Every record is an event of the audit; what the journal keeps is not in it.
func TestAudit_holdsEveryRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, filepath.Join(dir, "journal.db"))
	records(t, j)
	// A record that is refused is no event.
	if err := j.Admit(t.Context(), admission("n1", "run_1", 1, 1)); fault.CodeOf(err) != fault.Spent {
		t.Fatal(err)
	}
	signed, err := j.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report, err := ledger.Verify(filepath.Join(dir, "audit"), ledger.Against{Checkpoint: signed})
	if err != nil || report.Kept != 7 || !strings.HasPrefix(report.Origin, "writ/executor/site-a/") {
		t.Errorf("%s %v", report, err)
	}
	r, err := ledger.Read(filepath.Join(dir, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	err = r.Each(0, func(_ int64, line []byte) error {
		var e struct {
			Event, Mark string
			Digest      writ.Digest
			RunID       string `json:"run_id"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if strings.Contains(string(line), "kept here") || e.RunID != "run_1" || strings.HasPrefix(e.Event, "step.") && e.Digest != writ.DigestBytes([]byte("what is kept here")) {
			t.Errorf("%s", line)
		}
		got = append(got, strings.TrimSpace(e.Event+" "+e.Mark))
		return nil
	})
	want := []string{"writ.admitted", "step.backup", "step.sent m1", "step.result m1", "step.applied", "step.receipt", "run.finished"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// An intent is in the audit before anything may leave, and without the audit
// there is no intent.
func TestAudit_beforeAnythingLeaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := journal.Open(t.Context(), filepath.Join(dir, "journal.db"), sys.Real(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	keep(t, j, filepath.Join(dir, "audit"))
	if err := j.Admit(t.Context(), admission("n1", "run_1", 1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), entry(journal.Sent, "m1")); err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(dir, "audit", "segment", "000000000000.jsonl")
	if text, err := os.ReadFile(segment); err != nil || !strings.Contains(string(text), `"mark":"m1"`) {
		t.Errorf("%s %v", text, err)
	}
	if err := os.Remove(segment); err != nil {
		t.Fatal(err)
	}
	second := entry(journal.Sent, "m2")
	second.Call = 1
	if err := j.Append(t.Context(), second); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without the audit: %v", err)
	}
	if entries, err := j.Entries(t.Context(), "run_1"); err != nil || len(entries) != 1 {
		t.Errorf("%d intents, want 1: %v", len(entries), err)
	}
	if _, err := j.Checkpoint(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a checkpoint without the audit: %v", err)
	}
}

// A journal that was set back is found by the audit that it no longer fits.
func TestKeep_refusesAnOldJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, filepath.Join(dir, "journal.db"))
	records(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := journal.Open(t.Context(), filepath.Join(dir, "old.db"), sys.Real(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	log, err := ledger.Open(filepath.Join(dir, "audit"), ledger.Options{Name: "writ/executor/site-a", Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Now: sys.Real(nil).Now})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := old.Keep(t.Context(), log); fault.ReasonOf(err) != ledger.StoreOlder {
		t.Errorf("%v", err)
	}
}

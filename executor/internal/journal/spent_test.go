package journal_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"writ"
	"writ/executor/internal/journal"
)

// sealed is an admission with a text that can be read, as the door leaves it.
func sealed(t *testing.T, run string) journal.Admission {
	t.Helper()
	a := admission("nonce-of-"+run, run, 1, int64(len(run)))
	a.Writ.Fences = nil
	a.Writ.Envelope.ChangeID = "chg_of_" + run
	body, err := writ.Canonical(a.Writ)
	if err != nil {
		t.Fatal(err)
	}
	a.Sealed = fmt.Appendf(nil, `{"key_id":"ed25519:gate","payload":%s,"signature":""}`, body)
	return a
}

// The last run is the last that sent something: not the last that was admitted,
// and not one that only read.
func TestLast(t *testing.T) {
	t.Parallel()
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	last := func() string {
		l, err := j.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l.Run + " " + l.ChangeID + " " + l.KeyID
	}
	if got := last(); got != "  " {
		t.Errorf("of an empty journal: %q", got)
	}
	for _, run := range []string{"run_b", "run_a", "run_c"} {
		if err := j.Admit(t.Context(), sealed(t, run)); err != nil {
			t.Fatal(err)
		}
	}
	if got := last(); got != "  " {
		t.Errorf("before anything was sent: %q", got)
	}
	entry := func(run string, kind journal.Kind, mark string) {
		t.Helper()
		e := journal.Entry{Run: run, Step: "s1", Kind: kind, Mark: mark, At: writ.At(time.Now()), Body: []byte("{}")}
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	entry("run_b", journal.Sent, "m1")
	entry("run_a", journal.Sent, "m2")
	entry("run_c", journal.Receipt, "")
	if got := last(); got != "run_a chg_of_run_a ed25519:gate" {
		t.Errorf("it is %q", got)
	}
}

func TestAdmitted(t *testing.T) {
	t.Parallel()
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	for _, run := range []string{"run_b", "run_a", "run_c"} {
		if err := j.Admit(t.Context(), sealed(t, run)); err != nil {
			t.Fatal(err)
		}
	}
	for _, purpose := range []writ.Purpose{writ.Observe, writ.Probe, writ.Raise} {
		a := sealed(t, "run_a")
		a.Writ.Purpose, a.Writ.Nonce = purpose, "nonce-"+string(purpose)
		if err := j.Admit(t.Context(), a); err != nil {
			t.Fatalf("%s: %v", purpose, err)
		}
	}
	if err := j.Finish(t.Context(), "run_b"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for after := ""; ; {
		page, err := j.Admitted(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, a := range page {
			got = append(got, fmt.Sprint(a.Run, a.Finished, len(a.Sealed) > 0))
			after = a.Run
		}
	}
	if fmt.Sprint(got) != "[run_afalse true run_btrue true run_cfalse true]" {
		t.Errorf("%v", got)
	}
	a := sealed(t, "run_a")
	want, err := a.Writ.Envelope.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := j.Envelope(t.Context(), "run_a"); err != nil || got != want {
		t.Errorf("%s %v", got, err)
	}
	if got, err := j.Envelope(t.Context(), "run_d"); err != nil || got != "" {
		t.Errorf("of a run that never was: %q %v", got, err)
	}
}

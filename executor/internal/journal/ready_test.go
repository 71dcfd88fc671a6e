package journal_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"writ"
	"writ/executor/internal/journal"
	"writ/fault"
	"writ/sys"
)

// While the clock is behind what was written, nothing is admitted; it is again
// once the clock is right, or once the epoch was raised.
func TestAdmit_clockStep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	s := sys.Real(slog.New(slog.DiscardHandler))
	s.Now = func() time.Time { return now }
	file := filepath.Join(t.TempDir(), "journal.db")
	restart := func() *journal.Journal {
		j, err := journal.Open(t.Context(), file, s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
	j, number := restart(), 0
	admit := func(purpose writ.Purpose) string {
		number++
		name := string(rune('a' + number))
		a := admission("nonce-"+name, "run_"+name, 1, int64(number))
		a.Writ.Purpose, a.Writ.IssuedAt = purpose, writ.At(now)
		return fault.ReasonOf(j.Admit(t.Context(), a))
	}
	start := now
	if got := admit(writ.Execute); got != "" {
		t.Fatal(got)
	}
	for _, c := range []struct {
		name string
		step time.Duration
		want string
	}{
		{"within what is tolerated", -sys.Tolerance, ""},
		{"one millisecond more", -sys.Tolerance - time.Millisecond, journal.ClockStep},
		{"ten years", -10 * 365 * 24 * time.Hour, journal.ClockStep},
	} {
		now = start.Add(c.step)
		j = restart() // it is known after a restart, too
		if got := admit(writ.Execute); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := fault.ReasonOf(j.Ready()); got != c.want || fault.ReasonOf(j.Look()) != c.want {
			t.Errorf("%s: ready: %q", c.name, got)
		}
	}
	if got := admit(writ.Observe); got != journal.ClockStep {
		t.Errorf("observing: %q", got)
	}
	if got := admit(writ.Halt); got != "" {
		t.Errorf("a halt: %q", got)
	}
	now = start
	j = restart()
	if got := admit(writ.Execute); got != "" {
		t.Errorf("the clock is right again: %q", got)
	}
	now = start.Add(10 * 365 * 24 * time.Hour) // it was wrong for once,
	if got := admit(writ.Execute); got != "" {
		t.Errorf("forward: %q", got)
	}
	now = start // and is right again, and somebody knows
	j = restart()
	if got := admit(writ.Execute); got != journal.ClockStep {
		t.Errorf("back again: %q", got)
	}
	if got := admit(writ.Raise); got != "" {
		t.Errorf("raise: %q", got)
	}
	for range 2 {
		if got := admit(writ.Execute); got != "" {
			t.Errorf("after the epoch was raised: %q", got)
		}
		j = restart()
	}
}

func TestOpen_notOurs(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(file string) error{
		"others may read it": func(file string) error { return os.Chmod(file, 0o644) },
		"a second name":      func(file string) error { return os.Link(file, file+".2") },
		"a directory":        func(file string) error { _ = os.Remove(file); return os.Mkdir(file, 0o700) },
		"no database":        func(file string) error { return os.WriteFile(file, make([]byte, 4096), 0o600) },
	} {
		file := filepath.Join(t.TempDir(), "journal.db")
		if err := open(t, file).Close(); err != nil {
			t.Fatal(err)
		}
		if err := spoil(file); err != nil {
			t.Fatal(err)
		}
		if j, err := journal.Open(t.Context(), file, sys.Real(slog.New(slog.DiscardHandler))); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				_ = j.Close()
			}
		}
	}
}

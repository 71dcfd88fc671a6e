package sys_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"writ/sys"
)

func TestNewID(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	s := sys.Real(slog.New(slog.DiscardHandler))
	s.Now = func() time.Time { return now }
	a, b := s.NewID("chg"), s.NewID("chg")
	if a == b {
		t.Fatalf("two ids of one millisecond are equal: %s", a)
	}
	if !regexp.MustCompile(`^chg_[0-9a-hjkmnp-tv-z]{26}$`).MatchString(a) {
		t.Errorf("id %q has an unexpected form", a)
	}
	now = now.Add(time.Millisecond)
	if later := s.NewID("chg"); !(later > a && later > b) {
		t.Errorf("an id of the next millisecond, %s, does not sort after %s and %s", later, a, b)
	}
}

// Case: C147.
func TestNow_isUTCInMilliseconds(t *testing.T) {
	t.Parallel()
	got := sys.Real(nil).Now()
	// Without the monotonic part, so that what is compared goes on while the machine sleeps.
	if got.Location() != time.UTC || got.Nanosecond()%1e6 != 0 || got != got.Round(0) {
		t.Errorf("Now() = %v", got)
	}
}

func TestNewSecret_stopsWithoutRandomness(t *testing.T) {
	t.Parallel()
	s := sys.Sys{Now: time.Now, Rand: bytes.NewReader([]byte{1, 2})}
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "random source failed") {
			t.Errorf("recovered %v", r)
		}
	}()
	s.NewSecret(16)
}

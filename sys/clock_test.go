package sys_test

import (
	"testing"
	"time"

	"writ/sys"
)

func TestMoment(t *testing.T) {
	t.Parallel()
	until := sys.Moment{Boot: "a", Up: time.Hour}.Add(time.Minute)
	for _, c := range []struct {
		name string
		now  sys.Moment
		want bool
	}{
		{"before", sys.Moment{Boot: "a", Up: time.Hour + time.Minute - time.Millisecond}, false},
		{"then", sys.Moment{Boot: "a", Up: time.Hour + time.Minute}, true},
		{"after", sys.Moment{Boot: "a", Up: time.Hour + time.Minute + time.Millisecond}, true},
		{"after another start", sys.Moment{Boot: "b", Up: 9 * time.Hour}, false},
		{"none", sys.Moment{Up: 9 * time.Hour}, false},
	} {
		if got := until.Reached(c.now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if (sys.Moment{}).Reached(sys.Moment{}) {
		t.Error("no moment was reached")
	}
	s := sys.Real(nil)
	first := s.Moment()
	if first.Boot == "" || first.Up <= 0 || !first.Reached(s.Moment()) {
		t.Errorf("the machine's own moment is %+v", first)
	}
	if m := (sys.Sys{}).Moment(); m != (sys.Moment{}) {
		t.Errorf("without a clock: %+v", m)
	}
}

func TestBehind(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	s := sys.Sys{Now: func() time.Time { return now }}
	for ahead, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, sys.Tolerance: 0,
		sys.Tolerance + time.Millisecond: sys.Tolerance + time.Millisecond,
		10 * 365 * 24 * time.Hour:        10 * 365 * 24 * time.Hour,
	} {
		if got := s.Behind(now.Add(ahead)); got != want {
			t.Errorf("%s ahead: %s", ahead, got)
		}
	}
}

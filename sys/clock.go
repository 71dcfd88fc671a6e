package sys

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Moment is a time by the clock that counts since the machine was started, also
// while it sleeps, and that nobody sets. It says nothing after another start.
type Moment struct {
	Boot string        `json:"boot"` // names the start of the machine; "" is no moment
	Up   time.Duration `json:"up_ns"`
}

// Moment returns the present one, or none.
func (s Sys) Moment() Moment {
	if s.Uptime == nil {
		return Moment{}
	}
	return s.Uptime()
}

// Add returns the moment that is later by d; none stays none.
func (m Moment) Add(d time.Duration) Moment {
	m.Up += d
	return m
}

// Reached reports whether it is certain that m has come by now: whatever the
// wall clock says, so much time has passed since the machine was started.
func (m Moment) Reached(now Moment) bool {
	return m.Boot != "" && m.Boot == now.Boot && now.Up >= m.Up
}

// Tolerance is how far the wall clock may be behind what was written last: clocks
// are corrected, and by more than this only if something is wrong.
const Tolerance = 2 * time.Second

// Behind returns how far the wall clock is behind the newest time that was
// written down, 0 if that is not more than Tolerance.
func (s Sys) Behind(newest time.Time) time.Duration {
	if d := newest.Sub(s.Now()); d > Tolerance {
		return d.Round(time.Millisecond)
	}
	return 0
}

// uptime reads the boot id once and CLOCK_BOOTTIME each time.
func uptime() func() Moment {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	boot := strings.TrimSpace(string(id))
	if err != nil {
		boot = ""
	}
	return func() Moment {
		var t unix.Timespec
		if boot == "" || unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
			return Moment{}
		}
		return Moment{Boot: boot, Up: time.Duration(t.Nano())}
	}
}

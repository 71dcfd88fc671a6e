package pipeline_test

import (
	"sync/atomic"
	"testing"
	"time"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/sys"
)

const decade = 10 * 365 * 24 * time.Hour

// clocks gives a world a clock on the wall that can be set, and one that counts
// since the machine was started.
func (w *world) clocks() (wall, up *atomic.Int64) {
	wall, up = new(atomic.Int64), new(atomic.Int64)
	w.restart(func(c *pipeline.Config) {
		now := c.Sys.Now
		c.Sys.Now = func() time.Time { return now().Add(time.Duration(wall.Load())) }
		c.Sys.Uptime = func() sys.Moment { return sys.Moment{Boot: "one", Up: time.Duration(up.Load())} }
	})
	return wall, up
}

func TestClock_behind(t *testing.T) {
	for _, c := range []struct {
		name string
		step time.Duration
		want string
	}{
		{"as much as is tolerated", -sys.Tolerance, ""},
		{"a millisecond more", -sys.Tolerance - time.Millisecond, pipeline.ClockStep},
		{"ten years", -decade, pipeline.ClockStep},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(t *testing.T, w *world) {
				wall, _ := w.clocks()
				id := w.approvedOnly(request(step("s1", "set", "a")))
				wall.Store(int64(c.step))
				w.restart() // it is known after a restart, too
				w.settle()
				if c.want == "" {
					if got := w.see(id); got.State != model.Done {
						t.Errorf("it is %s %+v", got.State, got.Trouble)
					}
					return
				}
				_, err := w.Execute(t.Context(), planner, id)
				refused(t, "execute", err, fault.Unavailable, c.want)
				if got := w.see(id); got.State != model.Approved || got.Trouble.Reason != c.want || w.executor.sent() != 0 {
					t.Errorf("it is %s %+v", got.State, got.Trouble)
				}
				wall.Store(0) // it is right again
				if _, err := w.Execute(t.Context(), planner, id); err != nil {
					t.Errorf("the clock is right again: %v", err)
				}
				w.settle()
			})
		})
	}
}

func TestClock_forward(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		wall, _ := w.clocks()
		id := w.approvedOnly(request(step("s1", "set", "a")))
		wall.Store(int64(decade))
		_, err := w.Execute(t.Context(), planner, id)
		refused(t, "execute", err, fault.Expired, "approval_expired")
	})
}

// Set back, or slept through, the clock on the wall makes no approval last longer
// (C146, C147).
func TestClock_thatNobodySets(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		_, up := w.clocks()
		used := w.approvedOnly(request(step("s1", "set", "a")))
		waits := w.propose(request(step("s1", "set", "b"))).ID
		up.Store(int64(valid - time.Millisecond))
		w.later(time.Second)
		if c := w.see(used); c.State != model.Approved {
			t.Errorf("a millisecond before its end it is %s", c.State)
		}
		up.Store(int64(valid))
		_, err := w.Execute(t.Context(), planner, used)
		refused(t, "execute", err, fault.Expired, "approval_expired")
		up.Store(int64(wait - time.Millisecond))
		w.later(time.Second)
		if c := w.see(waits); c.State != model.AwaitingApproval {
			t.Errorf("a millisecond before its end it is %s", c.State)
		}
		up.Store(int64(wait))
		w.later(time.Second)
		if c := w.see(waits); c.State != model.Expired || c.Trouble.Reason != "waited_too_long" {
			t.Errorf("at its end it is %s", c.State)
		}
	})
}

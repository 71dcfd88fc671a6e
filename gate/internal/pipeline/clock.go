package pipeline

import (
	"context"
	"encoding/json"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// ClockStep is the reason of a refusal while the clock is behind what was
// written last.
const ClockStep = "clock_step"

// overdue reports whether what a change waits for has not come in time: by the
// wall clock, or because as much time has passed, whatever the wall clock says.
func (p *Pipeline) overdue(c *model.Change, now time.Time) bool {
	switch c.State {
	case model.AwaitingApproval:
		return now.After(c.WaitUntil.Time) || c.WaitTo.Reached(p.Sys.Moment())
	case model.Approved:
		return !now.Before(c.ValidUntil.Time) || c.ValidTo.Reached(p.Sys.Moment()) // as the executor sees it
	}
	return false
}

// onTime fails while the clock is behind the newest event: how old an approval is
// cannot be told then.
func (p *Pipeline) onTime() error {
	newest := time.UnixMilli(p.told.Load())
	if d := p.Sys.Behind(newest); d > 0 {
		return fault.New(fault.Unavailable, "The clock is %s behind what the gate wrote down at %s. Nothing is carried out until it is right again. "+
			"Set it; if it was wrong before and is right now, void what was decided by it. Run: writ recover --new-epoch", d, writ.At(newest)).Because(ClockStep)
	}
	return nil
}

// OnTime reads the newest times of a store, and fails while the clock is behind
// them.
func (p *Pipeline) OnTime(ctx context.Context) error {
	if err := p.recallTime(ctx); err != nil {
		return err
	}
	return p.onTime()
}

// notice remembers the time of what was written.
func (p *Pipeline) notice(at writ.Time) {
	for ms := at.UnixMilli(); ; {
		if was := p.told.Load(); was >= ms || p.told.CompareAndSwap(was, ms) {
			return
		}
	}
}

// recallTime finds the newest time among the last events since the epoch was
// raised: whoever raises it says that they know of the clock.
func (p *Pipeline) recallTime(ctx context.Context) error {
	var lines []store.Line
	err := p.Store.View(ctx, func(r store.Reader) (err error) {
		lines, err = r.Events(store.EventFilter{Newest: true})
		return err
	})
	if err != nil {
		return err
	}
	for _, l := range lines {
		var e struct {
			Type      model.EventType `json:"event"`
			Timestamp writ.Time       `json:"timestamp"`
		}
		if err := json.Unmarshal(l.Bytes, &e); err != nil {
			return fault.Wrap(fault.Unavailable, err, "Event %d cannot be read. Restore the gate's memory from a copy.", l.Sequence)
		}
		if e.Type == model.EpochRaised {
			p.told.Store(0)
		}
		p.notice(e.Timestamp)
	}
	return nil
}

package journal

import (
	"context"
	"time"

	"writ"
	"writ/disk"
	"writ/fault"
)

// The room that is kept for what comes of a write that was sent, and the room
// that must be free besides for what is written before it.
const (
	reserveSize = 4 << 20
	spareSize   = 1 << 20
)

// ClockStep is the reason of a refusal while the clock is behind what was
// written last.
const ClockStep = "clock_step"

func reserve(file string) *disk.Reserve {
	return &disk.Reserve{Path: file + ".reserve", Size: reserveSize, Spare: spareSize}
}

// Ready reserves the room for what comes of a write, and says why nothing would
// be admitted: there is no room, or the clock was set back.
func (j *Journal) Ready() error {
	if err := j.reserve.Hold(); err != nil {
		return err
	}
	return j.onTime()
}

// Look says what Ready says, and changes nothing.
func (j *Journal) Look() error {
	if err := j.reserve.Check(); err != nil {
		return err
	}
	return j.onTime()
}

// conclude writes what came of something, into the reserve if need be.
func (j *Journal) conclude(write func() error) error {
	j.reserve.Tight()
	err := write()
	if fault.ReasonOf(err) == disk.Full {
		j.reserve.Free()
		err = write()
	}
	return err
}

// onTime fails while the clock is behind the newest time in the journal: how old
// a writ is cannot be told then.
func (j *Journal) onTime() error {
	newest := time.UnixMilli(j.newest.Load())
	if d := j.sys.Behind(newest); d > 0 {
		return fault.New(fault.Unavailable, "The clock is %s behind what the executor wrote down at %s. Nothing is done until it is right again. "+
			"Set it; if it was wrong before and is right now, void what was decided by it. Run: writ recover --new-epoch", d, writ.At(newest)).Because(ClockStep)
	}
	return nil
}

// recent is how many events are looked through for the newest time.
const recent = 10_000

// recall finds the newest time that was written down since the epoch was raised.
func (j *Journal) recall(ctx context.Context) error {
	var newest string
	err := j.db.QueryRowContext(ctx, `WITH last AS (SELECT sequence, line FROM events ORDER BY sequence DESC LIMIT ?)
		SELECT coalesce(max(json_extract(line, '$.timestamp')), '') FROM last WHERE sequence >=
		(SELECT coalesce(max(sequence), 0) FROM last WHERE json_extract(line, '$.purpose') = ?)`, recent, writ.Raise).Scan(&newest)
	if err != nil || newest == "" {
		return broken(err)
	}
	var at writ.Time
	if err := at.UnmarshalJSON([]byte(`"` + newest + `"`)); err != nil {
		return broken(err)
	}
	j.newest.Store(at.UnixMilli())
	return nil
}

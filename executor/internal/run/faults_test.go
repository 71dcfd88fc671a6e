package run_test

import (
	"sync/atomic"
	"testing"
	"time"

	"writ"
	"writ/executor/internal/executortest"
	"writ/sys"
)

// Set back after admission, the clock on the wall makes no writ last longer (C146).
func TestExecute_clockSetBack(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	var slept atomic.Int64
	w.Sys.Uptime = func() sys.Moment { return sys.Moment{Boot: "one", Up: time.Duration(slept.Load())} }
	w.Restart(t)
	w.Things.Set("a", "old")
	for _, c := range []struct {
		name   string
		before time.Duration // the end of the writ
		want   writ.Outcome
	}{
		{"just in time", time.Millisecond, writ.Done},
		{"too late", 0, writ.NotExecuted},
	} {
		o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", c.name))
		w.Recorder.Reset()
		admitted, err := w.Door.Admit(t.Context(), w.Seal(t, o))
		if err != nil {
			t.Fatal(err)
		}
		// At least as long as the writ was valid, at most as long as it is still.
		valid := o.ExpiresAt.Sub(w.Sys.Now())
		if c.want == writ.NotExecuted {
			valid = o.ExpiresAt.Sub(o.IssuedAt.Time)
		}
		slept.Add(int64(valid - c.before))
		w.Later(-time.Second) // and the wall clock says nothing of it
		if err := w.Runner.Execute(t.Context(), admitted); err != nil {
			t.Fatal(err)
		}
		r := w.Receipts(t, o.Run)[0]
		if r.Outcome != c.want || c.want == writ.NotExecuted && r.Reason != "expired" || (len(w.Recorder.Writes()) > 0) != (c.want == writ.Done) {
			t.Errorf("%s: %s %s %s", c.name, r.Outcome, r.Reason, r.Detail)
		}
		w.Later(time.Second)
	}
}

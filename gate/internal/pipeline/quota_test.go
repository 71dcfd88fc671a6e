package pipeline_test

import (
	"fmt"
	"testing"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/store"
)

// TestQuota: a requester has so many open changes and no more, whatever others
// have; what ends makes room, and the way back is never closed.
func TestQuota(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.restart(func(c *pipeline.Config) { c.MaxOpen = 3 })
		propose := func(who model.Caller, key string) (*model.Change, error) {
			return w.Propose(t.Context(), who, request(step("s1", "set", "a")), key)
		}
		full := func(key string) {
			t.Helper()
			if c, err := propose(planner, key); fault.CodeOf(err) != fault.Exhausted || fault.ReasonOf(err) != "open_changes" {
				t.Errorf("one more: %+v %v", c, err)
			}
		}
		first, err := propose(planner, "first")
		if err != nil {
			t.Fatal(err)
		}
		// The same one again takes no room, however often.
		for range 10 {
			if c, err := propose(planner, "first"); err != nil || c.ID != first.ID {
				t.Fatalf("again: %v", err)
			}
		}
		n := 0
		for i, err := range w.atOnce(16, func(_ model.Caller, i int) error {
			_, err := propose(planner, fmt.Sprint("k", i))
			return err
		}) {
			if err == nil {
				n++
			} else if fault.ReasonOf(err) != "open_changes" {
				t.Errorf("%d at once: %v", i, err)
			}
		}
		if n != 2 {
			t.Errorf("%d more were taken in at once", n)
		}
		full("more")
		if c, err := propose(planner, "first"); err != nil || c.ID != first.ID {
			t.Errorf("the first again, when there is no room: %v", err)
		}
		if _, err := propose(olga, ""); err != nil {
			t.Errorf("somebody else's: %v", err)
		}
		// A gate that was started again knows.
		w.restart()
		full("more")
		if _, err := w.Cancel(t.Context(), planner, first.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := propose(planner, "later"); err != nil {
			t.Errorf("after one was withdrawn: %v", err)
		}
		full("more")
		var refused int
		for _, e := range w.allEvents() {
			if e.Type == model.RequestRefused && e.Reason == "open_changes" {
				refused++
			}
		}
		if refused != 14+3 {
			t.Errorf("%d refusals are recorded", refused)
		}
	})
}

// allEvents returns the events of all changes and of none.
func (w *world) allEvents() []model.Event {
	w.t.Helper()
	var lines []store.Line
	err := w.store.View(w.t.Context(), func(r store.Reader) (err error) {
		lines, err = r.Events(store.EventFilter{})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return decode(w.t, lines)
}

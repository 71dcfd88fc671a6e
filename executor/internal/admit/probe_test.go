package admit_test

import (
	"testing"
	"time"

	"writ"
	"writ/executor/internal/executortest"
	"writ/fault"
)

// While a run is looked at, nobody writes to its entities, nor looks at it twice;
// a raise writ holds nothing. Both count as readings.
func TestAdmit_probesAndRaises(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "new"}))
	asks := func() *writ.Writ {
		p := w.Writ(writ.Probe, o.Envelope.Steps...)
		p.Run, p.Envelope, p.Fences = o.Run, o.Envelope, []writ.Fence{}
		return p
	}
	a, err := w.Door.Admit(t.Context(), w.Seal(t, asks()))
	must(t, err)
	if _, err := w.Door.Admit(t.Context(), w.Seal(t, asks())); fault.ReasonOf(err) != "entity_busy" {
		t.Errorf("a second look: %v", err)
	}
	other := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "other"}))
	if _, err := w.Door.Admit(t.Context(), w.Seal(t, other)); fault.ReasonOf(err) != "entity_busy" {
		t.Errorf("a write meanwhile: %v", err)
	}
	a.Release()
	a, err = w.Door.Admit(t.Context(), w.Seal(t, other))
	must(t, err)
	a.Release()

	raise := func() error {
		r := w.Writ(writ.Raise)
		r.Envelope = writ.Envelope{Steps: []writ.Step{}}
		_, err := w.Door.Admit(t.Context(), w.Seal(t, r))
		return err
	}
	w.Rules.ObservePerMinute = 2
	w.Door.Use(w.Rules)
	w.Later(time.Minute)
	must(t, raise())
	a, err = w.Door.Admit(t.Context(), w.Seal(t, withTime(w, asks())))
	must(t, err)
	a.Release()
	if err := raise(); fault.CodeOf(err) != fault.Exhausted {
		t.Errorf("a third in the minute: %v", err)
	}
}

func withTime(w world, o *writ.Writ) *writ.Writ {
	o.IssuedAt, o.ExpiresAt = writ.At(w.Sys.Now()), writ.At(w.Sys.Now().Add(time.Minute))
	return o
}

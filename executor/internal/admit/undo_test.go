package admit_test

import (
	"testing"

	"writ"
	"writ/executor/internal/executortest"
	"writ/fault"
)

// A way back is taken only as the approvers saw it.
func TestUndo(t *testing.T) {
	t.Parallel()
	good := writ.Call{Action: "thing.set", System: "things", Params: writ.Object{"name": "a", "value": "old"}}
	with := func(change func(c *writ.Call)) *writ.Call {
		c := good
		change(&c)
		return &c
	}
	for name, c := range map[string]struct {
		call   *writ.Call
		spoil  func(o *writ.Writ)
		reason string
	}{
		"as approved":         {call: &good},
		"another value":       {call: with(func(c *writ.Call) { c.Params = writ.Object{"name": "a", "value": "older"} })},
		"none":                {reason: "no_way_back"},
		"none was approved":   {call: &good, spoil: func(o *writ.Writ) { o.Envelope.Steps[0].Rollback = nil }, reason: "no_way_back"},
		"another action":      {call: with(func(c *writ.Call) { c.Action = "thing.remove" }), reason: "no_way_back"},
		"another system":      {call: with(func(c *writ.Call) { c.System = "prod" }), reason: "no_way_back"},
		"another thing":       {call: with(func(c *writ.Call) { c.Params = writ.Object{"name": "b", "value": "x"} }), reason: "entity_mismatch"},
		"params of no schema": {call: with(func(c *writ.Call) { c.Params = writ.Object{"name": "../a", "value": "x"} }), reason: "params_refused"},
		"nobody approved it":  {call: &good, spoil: func(o *writ.Writ) { o.Envelope.OnFailure = writ.Stop }, reason: "rollback_not_approved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			w.Things.Set("a", "old")
			o := w.Approved(t, writ.Rollback, w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "new"}))
			if c.spoil != nil {
				c.spoil(o)
				o.Approvals = []writ.Approval{}
				w.Approve(t, o, "mara")
			}
			a, err := w.Door.Admit(t.Context(), w.Seal(t, o))
			must(t, err)
			s, err := a.Undo(&a.Writ().Envelope.Steps[0], c.call)
			if fault.ReasonOf(err) != c.reason || err == nil && (s.Action.Name != "thing.set" || s.Plan.Entity != "things/a") {
				t.Errorf("%v, want %s: %+v", err, c.reason, s)
			}
		})
	}
}

// A way back may be of no higher class than what was approved.
func TestUndo_class(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := w.Approved(t, writ.Rollback, w.Step(t, "s1", "thing.add", writ.Object{"value": "new"})) // reversible_low, undone by config_mutation
	a, err := w.Door.Admit(t.Context(), w.Seal(t, o))
	must(t, err)
	step := &a.Writ().Envelope.Steps[0]
	if _, err := a.Undo(step, step.Rollback); fault.ReasonOf(err) != "class_too_low" {
		t.Errorf("%v", err)
	}
}

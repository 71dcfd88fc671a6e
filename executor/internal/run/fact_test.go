package run_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/executor/internal/executortest"
	"writ/fault"
)

func TestObserve_facts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", writ.MaxFact+1)
	ok := writ.Health{State: writ.HealthOK, Reasons: []string{}}
	for name, c := range map[string]struct {
		thing, value string
		want         []string
		health       writ.Health
		refuses      string
		reason       string
	}{
		"a thing": {thing: "a", value: "old", want: []string{"value=old", "length=3", "colour absent", "whole: secret", "number=0"}, health: ok},
		// The text that the target gives is data: it is not cut into lines, and what is a secret of ours does not leave.
		"a secret":              {thing: "a", value: "x " + executortest.Token, want: []string{"value=x [redacted:value]", "length=25", "colour absent", "whole: secret", "number: unreadable"}, health: ok},
		"a text without bounds": {thing: "a", value: long, want: []string{"value: too_large", "length=8193", "colour absent", "whole: secret", "number: unreadable"}, health: ok},
		"no text":               {thing: "a", value: "a\xff", want: []string{"value=a\uFFFD", "length=2", "colour absent", "whole: secret", "number=0"}, health: ok},
		"not well": {thing: "a", value: "ill", want: []string{"value=ill", "length=3", "colour absent", "whole: secret", "number=0"},
			health: writ.Health{State: writ.HealthDegraded, Reasons: []string{"the thing is ill"}}},
		"a guard":   {thing: "hidden", value: "old", refuses: "nothing is told of the thing hidden"},
		"not there": {thing: "gone", reason: "observe_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			if c.value != "" {
				w.Things.Set(c.thing, c.value)
			}
			_, all := w.Observe(t, w.Step(t, "s1", "thing.facts", writ.Object{"name": c.thing}))
			o := all[0]
			if o.Reason != c.reason || strings.Join(o.Refusals, "") != c.refuses || o.Entity != "things/"+c.thing && c.reason == "" {
				t.Errorf("the observation is %+v", o)
			}
			if c.want == nil {
				if o.Facts != nil {
					t.Errorf("all the same it tells %v", o.Facts)
				}
				return
			}
			var told []string
			for _, f := range o.Facts.Facts {
				switch {
				case f.Missing != "":
					told = append(told, f.Name+": "+f.Missing)
				case f.Absent:
					told = append(told, f.Name+" absent")
				default:
					told = append(told, f.Name+"="+f.Value)
				}
				if (f.Missing != "" || f.Absent) && f.Value != "" {
					t.Errorf("%s has a value", f.Name)
				}
			}
			if diff := cmp.Diff(c.want, told); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.health, o.Facts.Health); diff != "" {
				t.Error(diff)
			}
			if o.Fingerprint == "" || !writ.Digest(o.Fingerprint).Valid() || o.Rollback != nil || len(o.Fields) > 0 {
				t.Errorf("the observation is %+v", o)
			}
			w.Things.Set(c.thing, "another")
			if _, again := w.Observe(t, w.Step(t, "s1", "thing.facts", writ.Object{"name": c.thing})); again[0].Fingerprint == o.Fingerprint {
				t.Error("another state has the same fingerprint")
			}
			if n := len(w.Recorder.Writes()); n > 0 {
				t.Errorf("%d writes reached the target", n)
			}
		})
	}
}

// TestObserve_factsAreNoChange: a set of facts cannot be handed over to be carried out.
func TestObserve_factsAreNoChange(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	o := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.facts", writ.Object{"name": "a"}))
	if _, err := w.Door.Admit(t.Context(), w.Seal(t, o)); fault.ReasonOf(err) != "facts_only" {
		t.Errorf("the door says %v", err)
	}
}

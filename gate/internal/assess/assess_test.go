package assess_test

import (
	"reflect"
	"strings"
	"testing"

	"writ"
	"writ/gate/internal/assess"
)

func step(class writ.Class, change func(*assess.Step)) assess.Step {
	s := assess.Step{ID: "s1", Action: "x.y", Class: class, Known: true, WayBack: true}
	if change != nil {
		change(&s)
	}
	return s
}

func TestAssess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		in     assess.Input
		class  writ.Class
		level  writ.Level
		score  int64
		reason string
	}{
		{"a read", assess.Input{Steps: []assess.Step{step(writ.ReadOnly, nil)}}, writ.ReadOnly, writ.Low, 0, "read_only"},
		{"a read in production", assess.Input{Environment: "production", Steps: []assess.Step{step(writ.ReadOnly, nil)}}, writ.ReadOnly, writ.Low, 0, "read_only"},
		{"something small", assess.Input{Steps: []assess.Step{step(writ.ReversibleLow, nil)}}, writ.ReversibleLow, writ.Low, 15, "reversible_low"},
		{"a change", assess.Input{Steps: []assess.Step{step(writ.ConfigMutation, nil)}}, writ.ConfigMutation, writ.Medium, 35, "config_mutation"},
		{"a change in production", assess.Input{Environment: "production", Steps: []assess.Step{step(writ.ConfigMutation, nil)}}, writ.ConfigMutation, writ.High, 60, "production"},
		{"destruction", assess.Input{Steps: []assess.Step{step(writ.Destructive, nil)}}, writ.Destructive, writ.High, 70, "destructive"},
		{"unknown effect", assess.Input{Steps: []assess.Step{step(writ.ReversibleLow, func(s *assess.Step) { s.Known = false })}}, writ.ReversibleLow, writ.Medium, 35, "unknown"},
		{"no way back found", assess.Input{Steps: []assess.Step{step(writ.ReversibleLow, func(s *assess.Step) { s.WayBack = false })}}, writ.ReversibleLow, writ.Medium, 35, "no way back"},
		{"irreversible", assess.Input{Steps: []assess.Step{step(writ.ConfigMutation, func(s *assess.Step) { s.Irreversible, s.WayBack = "gone", false })}}, writ.Destructive, writ.High, 70, "counts as destructive"},
		{"irreversible, but accepted", assess.Input{Steps: []assess.Step{step(writ.ConfigMutation, func(s *assess.Step) { s.Irreversible, s.WayBack, s.Allowed = "gone", false, true })}}, writ.ConfigMutation, writ.Medium, 55, "policy accepts"},
		{"undone by itself, more strictly", assess.Input{Steps: []assess.Step{step(writ.ReversibleLow, func(s *assess.Step) { s.Undo = writ.ConfigMutation })}}, writ.ConfigMutation, writ.Medium, 35, "way back is config_mutation"},
		{"undone by itself, more mildly", assess.Input{Steps: []assess.Step{step(writ.ConfigMutation, func(s *assess.Step) { s.Undo = writ.ReversibleLow })}}, writ.ConfigMutation, writ.Medium, 35, "config_mutation"},
		{"forbidden", assess.Input{Steps: []assess.Step{step(writ.Destructive, func(s *assess.Step) { s.Forbidden = "no" })}}, writ.Destructive, writ.Forbidden, 70, "forbidden"},
		{"forbidden although mild", assess.Input{Steps: []assess.Step{step(writ.ReadOnly, func(s *assess.Step) { s.Forbidden = "no" })}}, writ.ReadOnly, writ.Forbidden, 0, "forbidden"},
		{"declared higher", assess.Input{DeclaredRisk: writ.High, Steps: []assess.Step{step(writ.ReversibleLow, nil)}}, writ.ReversibleLow, writ.High, 15, "declared"},
		{"declared lower changes nothing", assess.Input{DeclaredRisk: writ.Low, Steps: []assess.Step{step(writ.Destructive, nil)}}, writ.Destructive, writ.High, 70, "destructive"},
		{"many steps", assess.Input{Steps: []assess.Step{step(writ.ReversibleLow, nil), step(writ.ReversibleLow, nil), step(writ.ReversibleLow, nil), step(writ.ReversibleLow, nil)}}, writ.ReversibleLow, writ.Medium, 30, "4 steps"},
		{"a class nobody knows", assess.Input{Steps: []assess.Step{step("mystery", nil)}}, "mystery", writ.High, 100, "mystery"},
	} {
		a := assess.Assess(c.in)
		if a.Class != c.class || a.Level != c.level || a.Score != c.score {
			t.Errorf("%s: got %s %s %d, want %s %s %d", c.name, a.Class, a.Level, a.Score, c.class, c.level, c.score)
		}
		if !strings.Contains(strings.Join(a.Reasons, "\n"), c.reason) {
			t.Errorf("%s: no reason says %q: %q", c.name, c.reason, a.Reasons)
		}
		if again := assess.Assess(c.in); !reflect.DeepEqual(a, again) {
			t.Errorf("%s: a second assessment differs: %v, %v", c.name, a, again)
		}
	}
}

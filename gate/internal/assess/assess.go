// Package assess weighs a planned and previewed change: class, level, score and
// the reasons, each in the order in which it counted. It is pure: the same
// input gives the same assessment, byte for byte.
//
// A reason can only raise what stands, never lower it.
package assess

import (
	"fmt"

	"writ"
	"writ/gate/internal/model"
)

// Input is all that counts. None of it is prose.
type Input struct {
	Environment  string
	DeclaredRisk writ.Level
	Steps        []Step
}

// Step is what counts of one step.
type Step struct {
	ID           string
	Action       string
	Class        writ.Class // of the action, as the catalog says
	Forbidden    string     // why it is never run; "" if it may be
	Irreversible string     // why there is no way back; "" if there is one
	Allowed      bool       // policy names this irreversible action as acceptable
	Known        bool       // the preview could say what would change
	WayBack      bool       // the preview found the call that undoes it
	Undo         writ.Class // of that call, if it may run by itself after a failure; "" if it may not
}

// score is what a class starts with, out of 100.
var score = map[writ.Class]int64{writ.ReadOnly: 0, writ.ReversibleLow: 15, writ.ConfigMutation: 35, writ.Destructive: 70}

// meaning says in words what a class of effect is.
func meaning(c writ.Class) string {
	switch c {
	case writ.ReadOnly:
		return "it only reads"
	case writ.ReversibleLow:
		return "it changes something small that can be undone"
	case writ.ConfigMutation:
		return "it changes what lasts"
	case writ.Destructive:
		return "it ends, removes or interrupts something"
	}
	return "nobody knows this class"
}

// What raises the score, and from where on a level counts.
const (
	production    = 25
	unknownEffect = 20
	noWayBack     = 20
	eachFurther   = 5 // step that writes
	mediumFrom    = 30
	highFrom      = 60
)

// Assess weighs a change.
func Assess(in Input) model.Assessment {
	a := model.Assessment{Class: writ.ReadOnly, Level: writ.Low}
	say := func(format string, args ...any) { a.Reasons = append(a.Reasons, fmt.Sprintf(format, args...)) }
	writing := 0
	for _, s := range in.Steps {
		class := s.Class
		if s.Forbidden != "" {
			a.Level = writ.Forbidden
			say("%s is forbidden: %s", s.Action, s.Forbidden)
		}
		if s.Irreversible != "" && !s.Allowed {
			class = class.Stricter(writ.Destructive)
			say("%s has no way back and counts as destructive: %s", s.Action, s.Irreversible)
		}
		if s.Undo != "" && s.Undo.Rank() > class.Rank() {
			class = s.Undo
			say("%s may be undone by itself, and its way back is %s.", s.Action, s.Undo)
		}
		a.Class = a.Class.Stricter(class)
		if class != writ.ReadOnly {
			writing++
		}
	}
	a.Score = 100 // for a class that nobody knows
	if known, ok := score[a.Class]; ok {
		a.Score = known
	}
	say("The strictest step is %s: %s.", a.Class, meaning(a.Class))
	if a.Class != writ.ReadOnly {
		raise(&a, in, writing, say)
	}
	a.Score = min(a.Score, 100)
	switch {
	case a.Score >= highFrom:
		a.Level = a.Level.Higher(writ.High)
	case a.Score >= mediumFrom:
		a.Level = a.Level.Higher(writ.Medium)
	}
	if in.DeclaredRisk != "" && in.DeclaredRisk.Rank() > a.Level.Rank() {
		a.Level = in.DeclaredRisk
		say("The requester declared the risk %s, which is higher than what was found.", in.DeclaredRisk)
	}
	return a
}

func raise(a *model.Assessment, in Input, writing int, say func(string, ...any)) {
	if in.Environment == "production" {
		a.Score += production
		say("It acts on production.")
	}
	if writing > 1 {
		a.Score += int64(eachFurther * (writing - 1))
		say("It has %d steps that write.", writing)
	}
	for _, s := range in.Steps {
		if s.Class == writ.ReadOnly {
			continue
		}
		if !s.Known {
			a.Score += unknownEffect
			say("Step %s: what would change is unknown.", s.ID)
		}
		if !s.WayBack && s.Irreversible == "" {
			a.Score += noWayBack
			say("Step %s: the preview found no way back.", s.ID)
		}
		if s.Irreversible != "" && s.Allowed {
			a.Score += noWayBack
			say("Step %s: %s has no way back, which policy accepts: %s", s.ID, s.Action, s.Irreversible)
		}
	}
}

package pipeline

import (
	"writ"
	"writ/gate/internal/assess"
	"writ/gate/internal/model"
)

// Assessed is a previewed change that was weighed.
type Assessed struct {
	change  *model.Change
	weighed assess.Input
}

// assess weighs the change by what the catalog, the preview and the requester
// say. It has no side effect.
func (p *Pipeline) assess(previewed Previewed) Assessed {
	c := previewed.change
	in := assess.Input{Environment: c.Environment, DeclaredRisk: c.Request.DeclaredRisk}
	for i := range c.Steps {
		s := &c.Steps[i]
		a, _ := p.Catalog.Action(s.Action)
		step := assess.Step{
			ID: s.ID, Action: s.Action, Class: a.Class, Forbidden: a.Forbidden, Irreversible: a.Irreversible,
			Allowed: p.Policy.AllowsIrreversible(s.Action), WayBack: s.Rollback != nil,
		}
		if i < len(c.Observations) {
			step.Known = c.Observations[i].Known
			if len(c.Observations[i].Refusals) > 0 {
				// It would not run: what it would do was not asked, and raises nothing.
				step.Known, step.WayBack = true, true
			}
		}
		if s.Rollback != nil && c.Request.OnFailure == writ.Rollback {
			step.Undo = writ.Destructive // whatever the gate does not know
			if undo, ok := p.Catalog.Action(s.Rollback.Action); ok {
				step.Undo = undo.Class
			}
		}
		in.Steps = append(in.Steps, step)
	}
	a := assess.Assess(in)
	c.Assessment = &a
	return Assessed{c, in}
}

package pipeline

import (
	"context"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
)

// Planned is a change whose steps are in order, typed, and addressed to systems
// that exist.
type Planned struct {
	change    *model.Change
	executor  string
	forbidden bool // some action may never run; nothing is asked of any target
}

// plan orders the steps and binds them to systems of the executor.
func (p *Pipeline) plan(ctx context.Context, id string) (Planned, error) {
	c, err := p.load(ctx, id)
	if err != nil {
		return Planned{}, err
	}
	if c.Steps, err = planSteps(p.Catalog, &c.Request); err != nil {
		return Planned{}, err
	}
	c.Environment = c.Request.Environment
	planned := Planned{change: c}
	c.Summaries = map[string]string{}
	for i := range c.Steps {
		a, _ := p.Catalog.Action(c.Steps[i].Action)
		c.Summaries[a.Name] = a.Summary
		planned.forbidden = planned.forbidden || a.Forbidden != ""
	}
	if planned.forbidden {
		return planned, nil
	}
	hello, err := p.Executor.Hello(ctx)
	if err != nil {
		return Planned{}, err
	}
	planned.executor = hello.Executor
	systems := map[string]writ.SystemInfo{}
	for _, s := range hello.Systems {
		systems[s.Name] = s
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		a, _ := p.Catalog.Action(s.Action)
		system, ok := systems[s.System]
		switch {
		case !ok:
			return Planned{}, fault.New(fault.Invalid, "Step %s acts on the system %q, which the executor does not have. Connect it with \"writ systems add %s\".", s.ID, s.System, a.System).Because("unknown_system")
		case system.Kind != a.System:
			return Planned{}, fault.New(fault.Invalid, "Step %s: %s acts on systems of kind %s, and %s is of kind %s.", s.ID, a.Name, a.System, s.System, system.Kind).Because("wrong_system")
		case c.Environment == "":
			c.Environment = system.Environment
		case c.Environment != system.Environment:
			return Planned{}, fault.New(fault.Invalid, "Step %s acts on %s, which belongs to the environment %s and not to %s. A change stays within one environment.", s.ID, s.System, system.Environment, c.Environment).Because("wrong_environment")
		}
	}
	return planned, nil
}

package ops

import (
	"cmp"
	"context"
	"slices"

	"writ/api"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
)

type factsIn struct {
	Entity string `query:"entity" maxLength:"512" doc:"One entity, in a form that list_actions shows as facts_of, e.g. proxmox/pve/lxc/121"`
}

// noGraph is why nobody is named who depends on an entity.
const noGraph = "Nothing here records what depends on what. It is not known; that is not the same as nobody."

// factsGet lets the executor read one entity: like a proposal, it is counted.
func factsGet(ctx context.Context, g *Gate, who model.Caller, in *factsIn) (api.Facts, error) {
	if err := g.Limits.Proposal(who); err != nil {
		return api.Facts{}, err
	}
	f, err := g.Pipeline.Facts(ctx, who, in.Entity)
	if err != nil {
		return api.Facts{}, err
	}
	out := api.Facts{
		Entity: f.Entity, System: f.System, ActionType: f.Action.Name, Summary: f.Action.Summary, Facts: []api.Fact{}, StateHash: f.StateHash,
		Health: api.EntityHealth{State: f.Health.State, Reasons: f.Health.Reasons}, ObservedAt: f.ObservedAt,
		OpenChanges: []api.OpenChange{}, Dependents: api.Dependents{Why: noGraph},
	}
	for _, one := range f.Facts {
		out.Facts = append(out.Facts, api.Fact{
			Name: one.Name, Type: one.Type, Sensitivity: one.Sensitivity, Value: one.Value, Absent: one.Absent, Withheld: one.Withheld,
		})
	}
	if c := f.LastApproved; c != nil {
		out.LastChange = &api.ApprovedChange{ID: c.ID, ActionType: actionOn(c, f.Entity), State: string(c.State), ApprovedAt: pipeline.ApprovedAt(c)}
	}
	for _, c := range f.Open {
		out.OpenChanges = append(out.OpenChanges, api.OpenChange{ID: c.ID, ActionType: actionOn(c, f.Entity), State: string(c.State)})
	}
	if f.Lock != nil {
		l := lockOf(*f.Lock)
		out.Lock = &l
	}
	return out, nil
}

// actionOn is the action of a change that acts on an entity first, or else
// touches it.
func actionOn(c *model.Change, entity string) string {
	acts, touches := "", ""
	for i := range c.Steps {
		switch s := &c.Steps[i]; {
		case s.Entity == entity:
			acts = cmp.Or(acts, s.Action)
		case slices.Contains(s.Entities(), entity):
			touches = cmp.Or(touches, s.Action)
		}
	}
	return cmp.Or(acts, touches)
}

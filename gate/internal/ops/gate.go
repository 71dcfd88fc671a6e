package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"writ"
	"writ/api"
	"writ/catalog"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/ledger"
)

type none struct{}

func policyGet(_ context.Context, g *Gate, _ model.Caller, _ *none) (api.Policy, error) {
	p := g.Pipeline.Policy
	return api.Policy{Digest: p.Digest(), Source: p.Source()}, nil
}

func actionList(_ context.Context, g *Gate, _ model.Caller, in *paging) (out api.Actions, err error) {
	names, next, err := sheet(*in, g.Pipeline.Catalog.Names(), api.ActionList, "", strings.Compare, func(name string) string { return name })
	if err != nil {
		return out, err
	}
	out = api.Actions{Actions: []api.Action{}, NextCursor: next}
	for _, name := range names {
		if a, ok := g.Pipeline.Catalog.Action(name); ok {
			out.Actions = append(out.Actions, actionOf(a))
		}
	}
	return out, nil
}

type actionIn struct {
	Name string `path:"name" maxLength:"128" doc:"Of the action, e.g. mock.noop_change"`
}

func actionGet(_ context.Context, g *Gate, _ model.Caller, in *actionIn) (api.Action, error) {
	a, ok := g.Pipeline.Catalog.Action(in.Name)
	if !ok {
		return api.Action{}, fault.New(fault.NotFound, "There is no such action. See which there are: writ actions")
	}
	out := actionOf(a)
	schema, err := json.Marshal(a.Schema())
	out.Params, out.Source = schema, string(a.Source())
	return out, err
}

func actionOf(a *catalog.Action) api.Action {
	return api.Action{
		Name: a.Name, Summary: a.Summary, System: a.System, Class: a.Class,
		Forbidden: a.Forbidden, Irreversible: a.Irreversible, FactsOf: a.Shape(), Digest: a.Digest,
	}
}

func systemList(ctx context.Context, g *Gate, _ model.Caller, in *paging) (out api.Systems, err error) {
	hello, err := g.Pipeline.Executor.Hello(ctx)
	if err != nil {
		return out, err
	}
	out.Systems, out.NextCursor, err = sheet(*in, append([]writ.SystemInfo{}, hello.Systems...), api.SystemList, "", strings.Compare,
		func(s writ.SystemInfo) string { return s.Name })
	return out, err
}

type eventsIn struct {
	Change string `query:"change" maxLength:"64" doc:"Only events of this change"`
	User   string `query:"principal" maxLength:"128" doc:"Only events that a principal caused: a name, human:NAME or agent:NAME"`
	Target string `query:"target" maxLength:"512" doc:"Only events about a system, or about an entity and all below it"`
	Action string `query:"action" maxLength:"128" doc:"Only events about an action, or about all that begin as the text before a *"`
	Since  string `query:"since" maxLength:"32" doc:"Only events not older than this time: 2026-05-04T03:02:01.000Z"`
	Until  string `query:"until" maxLength:"32" doc:"Only events not newer than this time"`
	After  int64  `query:"after" minimum:"0" doc:"Only events with a higher sequence"`
	Cursor string `query:"cursor" maxLength:"512" doc:"next_cursor of the page before, with the same selection"`
	Limit  int64  `query:"limit" minimum:"1" maximum:"1000" doc:"At most so many; 1000, if left out"`
}

// selection is what a page continues.
func (in *eventsIn) selection() string {
	d, err := writ.DigestOf(map[string]any{"change": in.Change, "user": in.User, "target": in.Target, "action": in.Action, "since": in.Since, "until": in.Until})
	if err != nil {
		return in.Change // no text that JSON cannot hold comes this far
	}
	return string(d)
}

func eventList(ctx context.Context, g *Gate, who model.Caller, in *eventsIn) (api.Events, error) {
	for name, text := range map[string]string{"since": in.Since, "until": in.Until} {
		var at writ.Time
		if err := at.UnmarshalJSON([]byte(`"` + text + `"`)); err != nil {
			return api.Events{}, fault.Wrap(fault.Invalid, err, "%s is no time like 2026-05-04T03:02:01.000Z.", name)
		}
	}
	from, err := after(in.Cursor, api.EventList, in.selection())
	if err != nil {
		return api.Events{}, err
	}
	if from != "" {
		sequence, err := strconv.ParseInt(from, 10, 64)
		if err != nil || in.After != 0 {
			return api.Events{}, fault.Wrap(fault.Invalid, err, "Give either a cursor, as it was answered, or after.")
		}
		in.After = sequence
	}
	if in.Limit == 0 {
		in.Limit = eventPage
	}
	lines, err := g.Pipeline.Events(ctx, who, store.EventFilter{
		ChangeID: in.Change, User: in.User, Target: in.Target, Action: in.Action, Since: in.Since, Until: in.Until, After: in.After, Limit: int(in.Limit) + 1,
	})
	if err != nil {
		return api.Events{}, err
	}
	lines, more := page(lines, int(in.Limit))
	out := api.Events{Events: []json.RawMessage{}}
	for _, l := range lines {
		out.Events = append(out.Events, l.Bytes)
	}
	if more {
		out.NextCursor = cursor(api.EventList, in.selection(), strconv.FormatInt(lines[len(lines)-1].Sequence, 10))
	}
	return out, nil
}

func checkpointGet(ctx context.Context, g *Gate, _ model.Caller, _ *none) (out api.Checkpoint, err error) {
	if err := g.Pipeline.Audit.CatchUp(ctx); err != nil {
		return out, err
	}
	signed, err := g.Record.Checkpoint()
	if err != nil {
		return out, err
	}
	c, err := ledger.ParseCheckpoint(signed)
	return api.Checkpoint{Checkpoint: string(signed), Origin: c.Origin, Events: c.Size}, err
}

type locksIn struct {
	paging
	Released bool `query:"released" doc:"Also locks that hold no more"`
}

func lockList(ctx context.Context, g *Gate, who model.Caller, in *locksIn) (api.Locks, error) {
	locks, err := g.Pipeline.Locks(ctx, who, in.Released)
	if err != nil {
		return api.Locks{}, err
	}
	locks, next, err := sheet(in.paging, locks, api.LockList, strconv.FormatBool(in.Released), strings.Compare,
		func(l model.Lock) string { return fmt.Sprintf("%s %020d", l.Entity, l.Fence) })
	if err != nil {
		return api.Locks{}, err
	}
	out := api.Locks{Locks: []api.Lock{}, NextCursor: next}
	for _, l := range locks {
		out.Locks = append(out.Locks, lockOf(l))
	}
	return out, nil
}

func lockOf(l model.Lock) api.Lock {
	return api.Lock{
		Entity: l.Entity, Kind: string(l.Kind), State: string(l.State), Fence: l.Fence,
		ChangeID: l.ChangeID, RunID: l.RunID, TakenAt: l.TakenAt, EndedAt: l.EndedAt,
	}
}

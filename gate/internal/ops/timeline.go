package ops

import (
	"context"
	"time"

	"writ/api"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

type timelineIn struct {
	one
	After int64 `query:"after" minimum:"0" doc:"Only events with a higher sequence"`
	Limit int64 `query:"limit" minimum:"1" maximum:"1000" doc:"At most so many; 1000, if left out. A stream has no limit"`
	Last  int64 `header:"Last-Event-ID" minimum:"0" doc:"As after: where a stream that broke off goes on"`
}

func changeEvents(ctx context.Context, g *Gate, who model.Caller, in *timelineIn) (api.Events, error) {
	if _, err := g.Pipeline.Change(ctx, who, in.ID); err != nil {
		return api.Events{}, err
	}
	return eventList(ctx, g, who, &eventsIn{Change: in.ID, After: max(in.After, in.Last), Limit: in.Limit})
}

// Timeline is the events of one change as they come. Make one with Follow.
type Timeline struct {
	gate  *Gate
	who   model.Caller
	id    string
	after int64
	seen  *model.Change // as it was before the events were read
}

// Follow returns the timeline that the input of api.ChangeEvents asks for. Whoever
// may not see the change is told so here.
func (g *Gate) Follow(ctx context.Context, who model.Caller, in any) (*Timeline, error) {
	asked, ok := in.(*timelineIn)
	if !ok {
		return nil, otherInput()
	}
	c, err := g.Pipeline.Change(ctx, who, asked.ID)
	if err != nil {
		return nil, err
	}
	return &Timeline{gate: g, who: who, id: c.ID, after: max(asked.After, asked.Last), seen: c}, nil
}

// Next returns the events that are new, or none after at most the patience given;
// ended says that no more will come of the change itself.
func (t *Timeline) Next(ctx context.Context, patience time.Duration) (lines []store.Line, ended bool, err error) {
	for range 2 {
		f := store.EventFilter{ChangeID: t.id, After: t.after, Limit: eventPage}
		if lines, err = t.gate.Pipeline.Events(ctx, t.who, f); err != nil {
			return nil, false, err
		}
		if n := len(lines); n > 0 {
			t.after = lines[n-1].Sequence
		}
		// The state was read before the events: what ended it is among them.
		if ended = t.seen.State.Ended() && len(lines) < eventPage; ended || len(lines) > 0 {
			return lines, ended, nil
		}
		if t.seen, err = t.gate.Pipeline.WaitFrom(ctx, t.seen, patience); err != nil {
			return nil, false, err
		}
	}
	return nil, false, nil
}

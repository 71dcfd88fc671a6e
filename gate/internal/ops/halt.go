package ops

import (
	"context"
	"strconv"
	"strings"

	"writ/api"
	"writ/gate/internal/model"
)

type haltsIn struct {
	paging
	Lifted bool `query:"lifted" doc:"Also those that are lifted"`
}

func haltList(ctx context.Context, g *Gate, _ model.Caller, in *haltsIn) (api.Halts, error) {
	halts, err := g.Pipeline.Halts(ctx, in.Lifted)
	if err != nil {
		return api.Halts{}, err
	}
	newest := func(a, b string) int { return strings.Compare(b, a) }
	halts, next, err := sheet(in.paging, halts, api.HaltList, strconv.FormatBool(in.Lifted), newest, func(h model.Halt) string { return h.ID })
	if err != nil {
		return api.Halts{}, err
	}
	out := api.Halts{Halts: []api.Halt{}, NextCursor: next}
	for i := range halts {
		out.Halts = append(out.Halts, haltOf(&halts[i], nil))
	}
	return out, nil
}

type haltIn struct {
	Body api.Stop
}

func haltSet(ctx context.Context, g *Gate, who model.Caller, in *haltIn) (api.Halt, error) {
	h, running, err := g.Pipeline.Halt(ctx, who, model.Halt{Target: in.Body.Target, Principal: in.Body.Principal, Reason: model.Prose(in.Body.Reason)})
	return haltOf(&h, running), err
}

type oneHalt struct {
	ID string `path:"id" maxLength:"64" doc:"Of the halt"`
}

func haltLift(ctx context.Context, g *Gate, who model.Caller, in *oneHalt) (api.Halt, error) {
	h, err := g.Pipeline.LiftHalt(ctx, who, in.ID)
	return haltOf(&h, nil), err
}

func haltOf(h *model.Halt, running []*model.Change) api.Halt {
	out := api.Halt{
		ID: h.ID, Target: h.Target, Principal: h.Principal, HaltedBy: model.User(h.By), HaltedAt: h.At, Reason: string(h.Reason),
		LiftedBy: h.LiftedBy, LiftedAt: h.LiftedAt,
	}
	for _, c := range running {
		out.Running = append(out.Running, api.Running{ChangeID: c.ID, State: string(c.State), Halted: !c.HaltedAt.IsZero()})
	}
	return out
}

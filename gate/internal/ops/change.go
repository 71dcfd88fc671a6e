package ops

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/store"
)

type one struct {
	ID string `path:"id" maxLength:"64" doc:"Of the change, as it was answered when it was proposed"`
}

type proposeIn struct {
	Key  string `header:"Idempotency-Key" tool:"client_key" maxLength:"200" doc:"The same key gives the same change"`
	Body api.Proposal
}

func changePropose(ctx context.Context, g *Gate, who model.Caller, in *proposeIn) (api.Change, error) {
	return shown(g.propose(ctx, who, in.Body, in.Key))
}

// propose is the one way from here to a new change: what is proposed is counted.
func (g *Gate) propose(ctx context.Context, who model.Caller, p api.Proposal, key string) (*model.Change, error) {
	if err := g.Limits.Proposal(who); err != nil {
		return nil, err
	}
	return g.Pipeline.Propose(ctx, who, requestOf(p), key)
}

type changesIn struct {
	State  string `query:"state" maxLength:"32" enum:"proposed,planned,denied,awaiting_approval,approved,rejected,expired,cancelled,claimed,executing,verifying,done,failed,unverified,unknown,rolling_back,rolled_back,rollback_failed" doc:"Only changes in this state"`
	Before string `query:"before" maxLength:"64" doc:"Only changes older than this id"`
	Cursor string `query:"cursor" maxLength:"512" doc:"next_cursor of the page before, with the same state"`
	Limit  int64  `query:"limit" minimum:"1" maximum:"1000" doc:"At most so many; 100, if left out"`
}

func changeList(ctx context.Context, g *Gate, who model.Caller, in *changesIn) (api.Changes, error) {
	before, err := after(in.Cursor, api.ChangeList, in.State)
	switch {
	case err != nil:
		return api.Changes{}, err
	case before == "":
		before = in.Before
	case in.Before != "":
		return api.Changes{}, fault.New(fault.Invalid, "Give either cursor or before.")
	}
	if in.Limit == 0 {
		in.Limit = 100
	}
	f := store.ChangeFilter{Before: before, Limit: int(in.Limit) + 1}
	if in.State != "" {
		if !slices.Contains(model.States(), model.State(in.State)) {
			return api.Changes{}, fault.New(fault.Invalid, "There is no such state. The states are %v.", model.States())
		}
		f.States = []model.State{model.State(in.State)}
	}
	list, err := g.Pipeline.Changes(ctx, who, f)
	if err != nil {
		return api.Changes{}, err
	}
	out := api.Changes{Changes: []api.Change{}}
	list, more := page(list, int(in.Limit))
	for _, c := range list {
		out.Changes = append(out.Changes, changeOf(c))
	}
	if more {
		out.NextCursor = cursor(api.ChangeList, in.State, list[len(list)-1].ID)
	}
	return out, nil
}

func changeGet(ctx context.Context, g *Gate, who model.Caller, in *one) (api.Change, error) {
	return shown(g.Pipeline.Change(ctx, who, in.ID))
}

type waitIn struct {
	one
	TimeoutMS int64 `query:"timeout_ms" minimum:"1" maximum:"20000" doc:"How long to wait; 20000, if left out"`
}

func changeWait(ctx context.Context, g *Gate, who model.Caller, in *waitIn) (api.Change, error) {
	if in.TimeoutMS == 0 {
		in.TimeoutMS = 20_000
	}
	return shown(g.Pipeline.Wait(ctx, who, in.ID, time.Duration(in.TimeoutMS)*time.Millisecond))
}

func changeReview(ctx context.Context, g *Gate, who model.Caller, in *one) (api.Review, error) {
	r, err := g.Pipeline.Review(ctx, who, in.ID)
	return api.Review{Text: r.Text, ShownDigest: r.ShownDigest, EnvelopeDigest: r.EnvelopeDigest, Phrase: r.Phrase}, err
}

type approveIn struct {
	one
	Body api.Agreement
}

func changeApprove(ctx context.Context, g *Gate, who model.Caller, in *approveIn) (api.Change, error) {
	return shown(g.Pipeline.Approve(ctx, who, in.ID, pipeline.Agreement{
		EnvelopeDigest: in.Body.EnvelopeDigest, ShownDigest: in.Body.ShownDigest, Phrase: in.Body.Phrase,
	}))
}

type rejectIn struct {
	one
	Body api.Rejection
}

func changeReject(ctx context.Context, g *Gate, who model.Caller, in *rejectIn) (api.Change, error) {
	return shown(g.Pipeline.Reject(ctx, who, in.ID, model.Prose(in.Body.Reason)))
}

func changeLift(ctx context.Context, g *Gate, who model.Caller, in *one) (api.Change, error) {
	return shown(g.Pipeline.Lift(ctx, who, in.ID))
}

func changeCancel(ctx context.Context, g *Gate, who model.Caller, in *one) (api.Change, error) {
	return shown(g.Pipeline.Cancel(ctx, who, in.ID))
}

func changeExecute(ctx context.Context, g *Gate, who model.Caller, in *one) (api.Change, error) {
	return shown(g.Pipeline.Execute(ctx, who, in.ID))
}

func changeRollback(ctx context.Context, g *Gate, who model.Caller, in *one) (api.Change, error) {
	return shown(g.Pipeline.Rollback(ctx, who, in.ID))
}

func changeProbe(ctx context.Context, g *Gate, who model.Caller, in *one) (api.Probe, error) {
	c, found, findings, err := g.Pipeline.Probe(ctx, who, in.ID)
	if err != nil {
		return api.Probe{}, err
	}
	out := api.Probe{
		ChangeID: c.ID, Text: found.Text, ShownDigest: found.ShownDigest, Verdict: found.Verdict, Phrase: found.Phrase,
		Choices: []string{}, Findings: []writ.Finding{},
	}
	for _, choice := range found.Choices {
		out.Choices = append(out.Choices, string(choice))
	}
	for _, f := range findings {
		out.Findings = append(out.Findings, f.Finding)
	}
	return out, nil
}

type settleIn struct {
	one
	Body api.Settlement
}

func changeSettle(ctx context.Context, g *Gate, who model.Caller, in *settleIn) (api.Change, error) {
	return shown(g.Pipeline.Reconcile(ctx, who, in.ID, pipeline.Settlement{
		ShownDigest: in.Body.ShownDigest, Resolution: model.Resolution(in.Body.Resolution), Phrase: in.Body.Phrase, Note: model.Prose(in.Body.Note),
	}))
}

func changeArtifact(ctx context.Context, g *Gate, who model.Caller, in *one) (api.Artifact, error) {
	a, err := g.Pipeline.Artifact(ctx, who, in.ID)
	if err != nil {
		return api.Artifact{}, err
	}
	sections, err := json.Marshal(a)
	return api.Artifact{Markdown: a.Markdown(), Sections: sections}, err
}

// shown is what a change looks like to its reader.
func shown(c *model.Change, err error) (api.Change, error) {
	if err != nil {
		return api.Change{}, err
	}
	return changeOf(c), nil
}

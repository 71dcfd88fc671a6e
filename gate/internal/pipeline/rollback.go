package pipeline

import (
	"context"
	"fmt"
	"slices"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// Rollback proposes the change that undoes another. It is a change like any
// other: planned, previewed, weighed, and approved before anything happens.
func (p *Pipeline) Rollback(ctx context.Context, who model.Caller, id string) (*model.Change, error) {
	c, err := p.own(ctx, who, id)
	if err != nil {
		return nil, err
	}
	switch {
	case !c.State.Ended():
		return nil, fault.New(fault.Conflict, "%s is %s: it can be undone when it has ended.", c.ID, c.State).Because("not_ended")
	case c.State == model.Unknown:
		return nil, fault.New(fault.Conflict, "What became of %s is not known, so it cannot be undone before somebody finds out.", c.ID).Because("unknown_outcome")
	case len(undo(c)) == 0:
		return nil, fault.New(fault.Unsupported, "%s has nothing that could be undone: no step of it was applied, or none has a way back.", c.ID).Because("no_way_back")
	}
	return p.proposeRollback(ctx, who, c)
}

// proposeRollback proposes it once, however often and by whomever it is asked
// for while that proposal is open.
func (p *Pipeline) proposeRollback(ctx context.Context, who model.Caller, c *model.Change) (*model.Change, error) {
	r := model.Request{
		Steps: undo(c), OnFailure: writ.Stop, ChangeTicket: c.Request.ChangeTicket, RollbackOf: c.ID,
		RequestedAction: model.Prose("Undo " + c.ID),
	}
	return p.propose(ctx, who, r, "")
}

// tried returns the change that is to undo another, if there is one that has
// not ended. It fails if there is one that did.
func tried(r store.Reader, id string) (*model.Change, error) {
	tries, err := r.Changes(store.ChangeFilter{RollbackOf: id})
	if err != nil {
		return nil, err
	}
	for _, earlier := range tries {
		if earlier.State == model.Done {
			return nil, fault.New(fault.Spent, "%s was undone by %s.", id, earlier.ID).Because("undone_before")
		}
		if !earlier.State.Ended() {
			return earlier, nil
		}
	}
	return nil, nil
}

// undid tells a change that what it did is undone.
func (p *Pipeline) undid(tx store.Tx, by *model.Change, now writ.Time) error {
	if by.Request.RollbackOf == "" || by.State != model.Done {
		return nil
	}
	c, err := tx.Change(by.Request.RollbackOf)
	if fault.CodeOf(err) == fault.NotFound {
		return nil // a store that was restored from an old copy has lost it
	}
	if err != nil {
		return err
	}
	c.UndoneBy, c.UpdatedAt = by.ID, now
	if err := tx.Amend(c); err != nil {
		return err
	}
	e := p.event(c, model.ChangeUndone, model.Writ, now)
	e.Detail = writ.Object{"undone_by": by.ID}
	return tx.Append(e)
}

// undo returns the calls that undo what a change did, last step first. Each
// comes from the executor's receipt, which made it from the backup, and needs
// those of the steps that stand on its own: the others can be undone without it.
func undo(c *model.Change) []model.RequestStep {
	var steps []model.RequestStep
	var undone []string // the step that each of them undoes
	for _, r := range slices.Backward(c.Newest()) {
		if r.Rollback == nil || r.Outcome != writ.Done && r.Outcome != writ.Unverified {
			continue
		}
		s := model.RequestStep{ID: fmt.Sprintf("undo-%d", len(steps)+1), Action: r.Rollback.Action, System: r.Rollback.System, Params: r.Rollback.Params}
		for i, later := range undone {
			if writ.StandsOn(c.Steps, later, r.Step) {
				s.Needs = append(s.Needs, steps[i].ID)
			}
		}
		steps, undone = append(steps, s), append(undone, r.Step)
	}
	return steps
}

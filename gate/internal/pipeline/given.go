package pipeline

import (
	"context"
	"encoding/json"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// maxTimeline is how many events of one change are looked at.
const maxTimeline = 10_000

// Give records that a caller was given what came of an approval, which can be
// asked for once: fault.Spent, if it was.
func (p *Pipeline) Give(ctx context.Context, who model.Caller, id, approval string) error {
	return p.update(ctx, func(tx store.Tx, now writ.Time) error {
		c, err := tx.Change(id)
		if err != nil {
			return err
		}
		lines, err := tx.Events(store.EventFilter{ChangeID: id, Limit: maxTimeline})
		if err != nil {
			return err
		}
		for _, l := range lines {
			var e model.Event
			if err := json.Unmarshal(l.Bytes, &e); err != nil {
				return fault.Wrap(fault.Internal, err, "An event of %s cannot be read.", id)
			}
			if e.Type == model.ResultGiven {
				return fault.New(fault.Spent, "The approval was used: %s was carried out as %s, and what came of it was told. Ask for the same again as a new change.", id, c.RunID).Because("approval_used")
			}
		}
		e := p.event(c, model.ResultGiven, who.User(), now)
		e.ApprovalID = approval
		return tx.Append(e)
	})
}

// Misuse is a call that names an approval which is not of what it asks for.
type Misuse struct {
	Change   *model.Change // nil if the caller has none with that approval
	Approval string        // of the change; "" if the change itself was named
	Differs  string        // the first member of the call that is another
	Params   writ.Object   // as they were asked for; only their digest is written down
}

// Misused records that a caller was refused for it. Of the call's own words
// nothing is written down.
func (p *Pipeline) Misused(ctx context.Context, who model.Caller, m Misuse, why error) error {
	asked, err := writ.DigestOf(m.Params)
	if err != nil {
		return err
	}
	trouble := model.TroubleOf(why)
	return p.update(ctx, func(tx store.Tx, now writ.Time) error {
		c := m.Change
		if c == nil {
			c = &model.Change{}
		}
		e := p.event(c, model.ApprovalMisused, who.User(), now)
		e.ApprovalID, e.InputHash, e.Status, e.Reason = m.Approval, asked, string(trouble.Code), trouble.Reason
		e.Detail["differs"] = m.Differs
		return tx.Append(e)
	})
}

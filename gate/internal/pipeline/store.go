package pipeline

import (
	"context"
	"errors"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/redact"
)

// update runs f in one durable transaction with one timestamp, and tells those
// who wait.
func (p *Pipeline) update(ctx context.Context, f func(store.Tx, writ.Time) error) error {
	var at writ.Time
	err := p.Store.Update(ctx, func(tx store.Tx) error {
		at = writ.At(p.Sys.Now())
		return f(tx, at)
	})
	if err == nil {
		p.notice(at)
		p.news.publish()
	}
	return err
}

// outcome is an error of f that is stored all the same: what f did stands.
type outcome struct{ err error }

func (o outcome) Error() string { return o.err.Error() }
func (o outcome) Unwrap() error { return o.err }

// change runs f on the current state of one change in one durable transaction.
func (p *Pipeline) change(ctx context.Context, id string, f func(store.Tx, *model.Change, writ.Time) error) (*model.Change, error) {
	var c *model.Change
	var after error
	err := p.update(ctx, func(tx store.Tx, now writ.Time) error {
		var err error
		if c, err = tx.Change(id); err != nil {
			return err
		}
		err = f(tx, c, now)
		if stands, ok := errors.AsType[outcome](err); ok {
			after, err = stands.err, nil
		}
		return err
	})
	if err == nil {
		err = after
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (p *Pipeline) load(ctx context.Context, id string) (*model.Change, error) {
	var c *model.Change
	err := p.Store.View(ctx, func(r store.Reader) (err error) {
		c, err = r.Change(id)
		return err
	})
	return c, err
}

// event returns an event about a change, with all that the change itself says.
func (p *Pipeline) event(c *model.Change, t model.EventType, user string, now writ.Time) *model.Event {
	return &model.Event{
		ID: p.Sys.NewID("evt"), Type: t, Timestamp: now, ChangeID: c.ID, RunID: c.RunID, User: user,
		EnvelopeDigest: c.Digest, Status: string(c.State), Reason: reasonOf(c), Detail: writ.Object{},
	}
}

// told is prose for an event. People and agents paste their secrets, and from the
// audit file nothing is ever taken out again.
func told(p model.Prose) string { return new(redact.Redactor).String(string(p)) }

func reasonOf(c *model.Change) string {
	if c.Trouble == nil {
		return ""
	}
	return c.Trouble.Reason
}

// expire ends a change that nobody decided on, or whose approval nobody used, in time.
func (p *Pipeline) expire(tx store.Tx, c *model.Change, now writ.Time, reason string) error {
	from := c.State
	c.State, c.UpdatedAt, c.EndedAt = model.Expired, now, now
	c.Trouble = &model.Trouble{Code: fault.Expired, Reason: reason, Text: expiredText(reason)}
	if err := tx.Move(c, from); err != nil {
		return err
	}
	if err := tx.Append(p.event(c, model.ChangeExpired, model.Writ, now)); err != nil {
		return err
	}
	return outcome{expired(c)}
}

func expiredText(reason string) string {
	switch reason {
	case "waited_too_long":
		return "Nobody decided in time. It was not refused: propose it again if it is still wanted."
	case "policy_changed":
		return "The policy changed since the decision. Propose it again to have it decided anew."
	case "new_epoch":
		return "The gate's memory was restored, and everything that was open before is void. Propose it again."
	case "action_changed":
		return "The definition of an action changed since the approval. Propose it again."
	}
	return "The approval was not used in time. It was not refused: propose it again if it is still wanted."
}

func expired(c *model.Change) error {
	return fault.New(fault.Expired, "%s has expired. %s", c.ID, c.Trouble.Text).Because(c.Trouble.Reason)
}

// giveUp ends a change that could not be planned or previewed. Nothing was sent.
func (p *Pipeline) giveUp(ctx context.Context, id string, why error) {
	_, err := p.change(ctx, id, func(tx store.Tx, c *model.Change, now writ.Time) error {
		from := c.State
		if from != model.Proposed && from != model.Planned {
			return nil // somebody else moved it on, e.g. cancelled it
		}
		c.State, c.UpdatedAt, c.EndedAt = model.Failed, now, now
		if code := fault.CodeOf(why); from == model.Planned || code == fault.Invalid || code == fault.Denied {
			c.State = model.Denied
		}
		c.Trouble = model.TroubleOf(why)
		if err := tx.Move(c, from); err != nil {
			return err
		}
		return tx.Append(p.event(c, model.ChangeEnded, model.Writ, now))
	})
	p.Sys.Log.Warn("a change was not planned", "change", id, "error", why, "cause", errors.Unwrap(why), "stored", err == nil)
}

package pipeline

import (
	"context"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/policy"
	"writ/gate/internal/store"
)

// AnswerGrace is how much longer than its own time an executor may take to
// account for a run, say because its machine is started again.
const AnswerGrace = 5 * time.Minute

// Why the outcome of a change is unknown.
const (
	executorSilent = "executor_silent"
	answeredLate   = "answered_late"
	runNotKnown    = "run_not_known"
)

// patience is how long the executor may take for a change: no step starts after
// the end of its approval, and each has a limit of its own.
func (p *Pipeline) patience(c *model.Change) time.Duration {
	valid, longest := c.Decision.Valid, time.Duration(0)
	if valid == 0 {
		valid = policy.DefaultValid
	}
	for i := range c.Steps {
		if a, ok := p.Catalog.Action(c.Steps[i].Action); ok {
			longest = max(longest, a.Timeout)
		}
		if undo := c.Steps[i].Rollback; undo != nil {
			if a, ok := p.Catalog.Action(undo.Action); ok {
				longest = max(longest, a.Timeout)
			}
		}
	}
	return valid + longest + AnswerGrace
}

// deadline begins with now.
func (p *Pipeline) deadline(c *model.Change, now writ.Time) *model.Deadline {
	within := p.patience(c)
	return &model.Deadline{Within: within, Until: writ.At(now.Add(within)), To: p.Sys.Moment().Add(within)}
}

// overtime reports whether the deadline of a change has passed. A wall clock that
// is set makes it neither shorter nor longer. How long a machine was off nobody
// counts, so after another start it begins anew.
func (p *Pipeline) overtime(ctx context.Context, c *model.Change) (bool, error) {
	now := p.Sys.Moment()
	if d := c.Deadline; d != nil && (now.Boot == "" || d.To.Boot == now.Boot) {
		return d.To.Reached(now) || now.Boot == "" && p.Sys.Now().After(d.Until.Time), nil
	}
	_, err := p.change(ctx, c.ID, func(tx store.Tx, c *model.Change, now writ.Time) error {
		if c.State != model.Claimed && c.State != model.Executing {
			return nil
		}
		c.Deadline = p.deadline(c, now)
		return tx.Amend(c)
	})
	return false, err
}

// silent ends a change whose executor did not account for it in time: what came
// of it is unknown, and its locks stay. The executor is asked on. Away says that
// it could not be reached, or that what it answered was not believed.
func (p *Pipeline) silent(tx store.Tx, c *model.Change, away bool, now writ.Time) error {
	if c.State != model.Claimed && c.State != model.Executing {
		return nil // somebody else was faster
	}
	if err := p.executing(tx, c, now); err != nil {
		return err
	}
	outcomes := c.Outcomes()
	if len(outcomes) == len(c.Steps) && model.StateOf(outcomes) == model.Done {
		return p.end(tx, c, now) // all is told; only that this is all was not
	}
	text := "The executor has not answered for " + c.Deadline.Within.String()
	if !away {
		text = "The executor says after " + c.Deadline.Within.String() + " that it is still at it"
	}
	text += ", and its own time was over " + AnswerGrace.String() + " before."
	if len(c.Entities()) == 0 {
		return p.endAs(tx, c, model.Failed, &model.Trouble{Code: fault.Timeout, Reason: executorSilent, Text: text + " It only reads, so nothing was changed."}, now)
	}
	c.Deadline.PassedAt = now
	return p.endAs(tx, c, model.Unknown, &model.Trouble{Code: fault.Unknown, Reason: executorSilent, Text: text + " What came of it is not known."}, now)
}

// answered records what an executor tells of a change that was called unknown
// because it had not been heard. It stays unknown: people decide, and this is
// what they are shown. Known says that the executor knows the run at all.
func (p *Pipeline) answered(tx store.Tx, c *model.Change, known bool, now writ.Time) error {
	c.Deadline.AnsweredAt, c.Deadline.Accounted, c.UpdatedAt = now, known, now
	c.Trouble = &model.Trouble{Code: fault.Unknown, Reason: runNotKnown, Text: "The executor is back and does not know the run: it never got the writ, or it forgot it."}
	if known {
		c.Trouble.Reason, c.Trouble.Text = answeredLate, "The executor answered after all, too late to be believed without a look. What it says is shown to whoever decides."
	}
	if err := tx.Amend(c); err != nil {
		return err
	}
	e := p.event(c, model.ChangeAnswered, model.Writ, now)
	outcomes := []any{}
	for _, r := range c.Newest() {
		outcomes = append(outcomes, writ.Object{"step": r.Step, "outcome": string(r.Outcome)})
	}
	e.Detail = writ.Object{"known": known, "outcomes": outcomes, "silent_since": c.Deadline.PassedAt.String()}
	return tx.Append(e)
}

// heard asks the executor once more before people look at a change that is
// unknown because it was not heard. It fails while the run is under way.
func (p *Pipeline) heard(ctx context.Context, c *model.Change) (*model.Change, error) {
	_, err := p.collect(ctx, c.ID, 0)
	now, loadErr := p.load(ctx, c.ID)
	if loadErr != nil {
		return nil, loadErr
	}
	if err == nil && now.Awaited() {
		return nil, fault.New(fault.Conflict, "The executor is still at %s. Look again when it has ended.", c.ID).Because("still_running")
	}
	return now, nil // an executor that cannot be asked cannot look either, and says so
}

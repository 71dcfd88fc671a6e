package artifact

import (
	"fmt"

	"writ"
	"writ/gate/internal/model"
)

// Summary says in a sentence or two how a change stands and what to do next.
func Summary(c *model.Change) string {
	if c.UndoneBy != "" {
		return "What it did was undone by " + c.UndoneBy + ". Nothing of it is locked."
	}
	if r := c.Reconciliation; r != nil {
		return reconciled(c, r)
	}
	switch c.State {
	case model.Proposed, model.Planned:
		return "It is being planned. Nothing was changed."
	case model.AwaitingApproval:
		return fmt.Sprintf("It waits for a human to decide, until %s. Nothing was changed.", c.WaitUntil)
	case model.Approved:
		held := ""
		if c.Trouble != nil {
			held = " In its way: " + Plain(c.Trouble.Text)
		}
		return fmt.Sprintf("It is approved until %s and was not carried out yet. Nothing was changed.%s", c.ValidUntil, held)
	case model.Claimed, model.Executing, model.Verifying, model.RollingBack:
		return "It is being carried out."
	case model.Denied:
		return "It was denied: " + Plain(c.Trouble.Text) + " Nothing was changed."
	case model.Rejected:
		return "A human said no: " + Plain(string(c.Rejection.Reason)) + " Nothing was changed."
	case model.Expired:
		return c.Trouble.Text + " Nothing was changed."
	case model.Cancelled:
		return "It was withdrawn. Nothing was changed."
	case model.Done:
		if changed(c) {
			return "It was carried out and verified."
		}
		return "It was carried out. It changed nothing."
	case model.RolledBack:
		return "A step failed, and what had been done was undone as approved. " + Plain(c.Trouble.Text)
	case model.Unverified:
		return "It was applied, but a check afterwards did not pass. The target stays locked. " + Plain(c.Trouble.Text)
	case model.Unknown:
		return "It was sent, and what became of it is not known. The target stays locked and nothing is retried. " + Plain(c.Trouble.Text)
	case model.RollbackFailed:
		return "A step failed, and undoing what had been done failed too. The targets stay locked. " + Plain(c.Trouble.Text)
	}
	if c.Held() {
		return "It stopped half-way: some steps are done and stay locked, the rest was not started. " + Plain(c.Trouble.Text)
	}
	return "It failed, and the targets are as before. " + Plain(c.Trouble.Text)
}

// reconciled says what people made of a change that was in doubt.
func reconciled(c *model.Change, r *model.Reconciliation) string {
	what := map[model.Resolution]string{
		model.Adopt: "took the target as it was found", model.Absent: "found nothing of it at the target", model.RollBack: "wants it undone",
	}
	return fmt.Sprintf("What came of it was in doubt. The executor looked and said %q; %s %s. It counts as %s.",
		string(r.Verdict), Plain(r.By.Name), what[r.Resolution], c.State)
}

func changed(c *model.Change) bool {
	for _, r := range c.Receipts {
		if r.Changed && r.Outcome == writ.Done {
			return true
		}
	}
	return false
}

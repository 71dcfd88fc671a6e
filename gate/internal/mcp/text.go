package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"writ/api"
	"writ/fault"
	"writ/gate/internal/model"
)

// tell puts an answer into words for a model: many clients drop the structured
// content. What people and targets wrote is quoted, so that it reads as data.
func tell(out any) string {
	var b strings.Builder
	switch v := out.(type) {
	case api.Change:
		tellChange(&b, &v)
	case api.Changes:
		for _, c := range v.Changes {
			fmt.Fprintf(&b, "%s %s, asked for by %s\n", c.ID, c.State, c.RequestedBy.Name)
		}
		fmt.Fprintf(&b, "%d changes. More of one: get_change", len(v.Changes))
	case api.Actions:
		for _, a := range v.Actions {
			fmt.Fprintf(&b, "%s (%s, for systems of kind %s): %s", a.Name, a.Class, a.System, a.Summary)
			if a.Forbidden != "" {
				fmt.Fprintf(&b, " It never runs: %s", a.Forbidden)
			}
			if a.FactsOf != "" {
				fmt.Fprintf(&b, " Asked for with get_facts, entity %s", a.FactsOf)
			}
			b.WriteString("\n")
		}
		b.WriteString("Next: describe_action, for its params.")
	case api.Action:
		fmt.Fprintf(&b, "%s (%s): %s\nparams: %s\n", v.Name, v.Class, v.Summary, v.Params)
		if v.Forbidden != "" {
			fmt.Fprintf(&b, "It never runs: %s\n", v.Forbidden)
		}
		if v.FactsOf != "" {
			fmt.Fprintf(&b, "Next: get_facts with an entity of the form %s", v.FactsOf)
			break
		}
		fmt.Fprintf(&b, `Next: propose_change with {"steps":[{"action_type":%q,"params":{…}}]}`, v.Name)
	case api.Facts:
		tellFacts(&b, &v)
	case api.Systems:
		for _, s := range v.Systems {
			fmt.Fprintf(&b, "%s: kind %s, environment %s\n", s.Name, s.Kind, s.Environment)
		}
		fmt.Fprintf(&b, "%d systems.", len(v.Systems))
	case api.Policy:
		fmt.Fprintf(&b, "The policy %s:\n%s", v.Digest, v.Source)
	case api.Artifact:
		b.WriteString(v.Markdown)
	default:
		data, err := json.Marshal(out)
		if err != nil {
			return "The answer is in the structured content."
		}
		b.Write(data)
	}
	return b.String()
}

// maxShown is how many steps, and fields of one, a text names.
const maxShown = 20

func tellChange(b *strings.Builder, c *api.Change) {
	fmt.Fprintf(b, "%s is %s.", c.ID, c.State)
	if a := c.Assessment; a != nil {
		fmt.Fprintf(b, " Class %s, level %s.", a.Class, a.RiskLevel)
	}
	if d := c.Decision; d != nil {
		fmt.Fprintf(b, " Decision: %s.", d.Effect)
	}
	b.WriteString("\n")
	for i, s := range c.Plan {
		if i == maxShown {
			fmt.Fprintf(b, "… and %d steps more; all are in the structured content\n", len(c.Plan)-i)
			break
		}
		tellStep(b, &s)
	}
	tellDenials(b, c)
	if t := c.Trouble; t != nil {
		fmt.Fprintf(b, "Why it did not go on: %s (%s): %q\n", t.Code, t.Reason, t.Text)
	}
	for _, r := range c.Receipts {
		fmt.Fprintf(b, "Step %s ended: %s %s\n", r.Step, r.Outcome, r.Reason)
		if r.Detail != "" {
			fmt.Fprintf(b, "  the executor says: %s\n", quoted(r.Detail))
		}
		for _, name := range slices.Sorted(maps.Keys(r.Outputs)) {
			fmt.Fprintf(b, "  %s: %s\n", name, quoted(r.Outputs[name]))
		}
	}
	b.WriteString("Next: " + next(c))
}

// tellDenials says who said no to the same before.
func tellDenials(b *strings.Builder, c *api.Change) {
	for i, d := range c.Denials {
		if i == maxShown {
			break
		}
		fmt.Fprintf(b, "The same effect was denied before, as %s by %s at %s: %s\n", d.ChangeID, quoted(d.DeniedBy), d.DeniedAt, quoted(d.Reason))
	}
}

func tellStep(b *strings.Builder, s *api.Step) {
	fmt.Fprintf(b, "Step %s: %s on %s, %q\n", s.ID, s.ActionType, s.TargetSystem, s.Entity)
	p := s.Preview
	if p == nil {
		return
	}
	if !p.Known {
		b.WriteString("  What it would change could not be computed.\n")
	}
	for i, f := range p.Fields {
		if i == maxShown {
			fmt.Fprintf(b, "  … and %d fields more\n", len(p.Fields)-i)
			break
		}
		fmt.Fprintf(b, "  %s: %s → %s\n", f.Name, side(f.From, f.FromAbsent), side(f.To, f.ToAbsent))
	}
	for _, r := range p.Refusals {
		fmt.Fprintf(b, "  Refused by a guard: %q\n", r)
	}
}

// side is one side of a field that would change.
func side(value string, absent bool) string {
	if absent {
		return "nothing"
	}
	return quoted(value)
}

// maxValue is how much of a value a text shows, in bytes.
const maxValue = 500

// quoted shows a value as JSON, which no text can leave.
func quoted(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	if len(data) > maxValue {
		return visible(strings.ToValidUTF8(string(data[:maxValue]), "")) + "… (cut off)"
	}
	return visible(string(data))
}

// visible names what cannot be seen, as JSON does: an invisible or
// direction-changing character can make a text read as another.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// next says what an agent does now. None of it invites to propose again what a
// human has not answered or has answered with no.
func next(c *api.Change) string {
	wait := fmt.Sprintf("wait_change with {\"id\":%q}", c.ID)
	switch model.State(c.State) {
	case model.Proposed, model.Planned:
		return "It is being planned. Call " + wait + "."
	case model.AwaitingApproval:
		return fmt.Sprintf("A human other than %s decides before %s, elsewhere: writ approve %s. You cannot. Tell them, and call %s until the state differs. Do not propose it again.",
			c.RequestedBy.Name, c.WaitUntil.UTC().Format("2006-01-02 15:04 UTC"), c.ID, wait)
	case model.Approved:
		if c.Trouble == nil {
			return "It is approved and begins by itself. Call " + wait + ". Do not propose it again."
		}
		return fmt.Sprintf("It is approved, but something is in the way. When that is mended: execute_change with {\"id\":%q}. Do not propose it again.", c.ID)
	case model.Claimed, model.Executing, model.Verifying, model.RollingBack:
		return "It is being carried out. Call " + wait + ". Do not propose it again."
	case model.Done:
		return "It is done and was verified. Nothing is left to do."
	case model.Denied:
		if c.Trouble != nil && c.Trouble.Reason == model.DeniedBefore {
			return "People said no to the same effect too often, so nobody was asked. Do not try it another way or in other words; tell the person you work for."
		}
		return "The policy does not allow it; nothing was done. Do not try it another way. get_policy says what is allowed."
	case model.Rejected:
		why := ""
		if r := c.Rejection; r != nil {
			why = fmt.Sprintf(" %s wrote: %q.", r.RejectedBy, r.Reason)
		}
		return "A human said no; nothing was done." + why + " Do not propose the same again; tell the person you work for."
	case model.Expired:
		return "It waited too long; nothing was done. Nobody said no: if it is still wanted, you may ask again, as a new change."
	case model.Cancelled:
		return "It was withdrawn; nothing was done."
	case model.RolledBack:
		return "A step failed, and what was done is undone. Tell the person you work for what failed."
	case model.Unknown, model.RollbackFailed:
		return "It may or may not have happened at the target. Never propose or do it again: a human looks first, with writ reconcile " + c.ID + "."
	case model.Unverified:
		return "It was applied, but the check afterwards did not pass. Do not propose it again: a human looks first."
	}
	return "It failed. Do not repeat it: tell the person you work for what is said above."
}

// tellFault puts into words why a call was not answered as asked.
func tellFault(err error) string {
	row, reason := fault.CodeOf(err).Row(), fault.ReasonOf(err)
	if reason != "" {
		reason = ", reason " + reason
	}
	return fmt.Sprintf("%s (code %s%s). %s\nNext: %s", row.Title, row.Code, reason, fault.TextOf(err), step(row))
}

// step is the next sensible step after a code.
func step(row fault.Row) string {
	switch row.Code {
	case fault.Invalid:
		return "Correct what is named and call again. describe_action shows what an action takes."
	case fault.Denied, fault.Refused, fault.Unauthenticated:
		return "Do not try it another way. Tell the person you work for."
	case fault.NotFound:
		return "See which there are: list_changes, list_actions."
	case fault.ApprovalMissing:
		return "A human has to approve it first. Call wait_change."
	case fault.Conflict:
		return "Look at it with get_change or list_changes before you call again."
	case fault.Expired, fault.Spent, fault.Stale:
		return "Look at it with get_change. If it is still wanted, it takes a new proposal."
	case fault.Unknown, fault.Unverified, fault.Stranded:
		return "Never repeat it. A human looks at the target first."
	}
	if row.Retry {
		return "The same call may be repeated later; with the same client_key it stays one change."
	}
	return "Do not repeat it. Tell the person you work for."
}

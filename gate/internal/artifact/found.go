package artifact

import (
	"strings"

	"writ"
	"writ/gate/internal/model"
)

// Found is what an approver is shown of a change that left its target in doubt.
type Found struct {
	Text        string
	ShownDigest writ.Digest // of Text
	model.Outlook
}

// NewFound renders what the executor found about the doubtful steps of a change.
// Nothing in it changes while the target stays as it is, so that the same text
// is the same finding.
func NewFound(c *model.Change, findings []model.Finding) Found {
	var p page
	line, outlook := p.line, c.Outlook(findings)
	line("%s", headline(outlook.Verdict))
	line("The executor looked at the target and wrote nothing. The decision is yours.")
	if d := c.Deadline; d != nil && d.Accounted {
		line("It accounted for the run after the gate had stopped to wait for it.")
	}
	line("")
	line("WHAT WAS FOUND")
	for i := range c.Steps {
		s := &c.Steps[i]
		line("  %s  %s on %s, system %s", s.ID, s.Action, name(s.Entity), name(s.System))
		f := findingOf(findings, s.ID)
		if f == nil {
			line("      → not in doubt: %s", outcomeOf(c, s.ID))
			continue
		}
		writeFinding(line, c, i, f)
	}
	line("")
	line("WHAT CAN BE DECIDED")
	for _, choice := range outlook.Choices {
		line("  %-9s  %s", choice, meaning(choice, outlook.Verdict))
	}
	line("")
	for _, entity := range c.OrphanedEntities() {
		line("LOCKED    %s", name(entity))
	}
	line("CHANGE    %s, asked for by %s", c.ID, Plain(model.User(c.RequestedBy)))
	line("          %s since %s", c.State, c.EndedAt)
	line("RUN       %s", c.RunID)
	if outlook.Phrase != "" {
		line("TO DECIDE, TYPE  %s, and say in a note what you saw", Plain(outlook.Phrase))
	}
	text := p.b.String()
	return Found{Text: text, ShownDigest: writ.DigestBytes([]byte(text)), Outlook: outlook}
}

func headline(v writ.Verdict) string {
	switch v {
	case writ.Happened:
		return "IT HAPPENED: the change is at the target."
	case writ.DidNotHappen:
		return "IT DID NOT HAPPEN: the target is as it was before."
	}
	return "IT CANNOT BE TOLD by itself: look at the target with your own eyes."
}

// meaning says what a choice does.
func meaning(r model.Resolution, v writ.Verdict) string {
	switch {
	case r == model.Absent:
		return "count it as not done; the target is free again"
	case r == model.RollBack:
		return "have it undone, with its own approval; until then all stays locked"
	case v == writ.CannotTell:
		return "leave the target as you saw it; it counts as unverified and is free"
	}
	return "leave it there; what happened counts as done, the target is free"
}

func findingOf(findings []model.Finding, step string) *model.Finding {
	for i := range findings {
		if findings[i].Step == step {
			return &findings[i]
		}
	}
	return nil
}

func outcomeOf(c *model.Change, step string) string {
	for _, r := range c.Newest() {
		if r.Step == step {
			return string(r.Outcome)
		}
	}
	return string(writ.NotExecuted)
}

func writeFinding(line func(string, ...any), c *model.Change, i int, f *model.Finding) {
	subject := ""
	if f.Undo {
		subject = "undoing it: "
	}
	line("      → %s%s", subject, because(&f.Finding))
	writeValues(line, c, i, f)
	for _, check := range f.Checks {
		word := "passed"
		if !check.Passed {
			word = "NOT PASSED"
		}
		line("      check     %s: %s", name(check.Name), word)
	}
	switch {
	case f.Fingerprint == "" || f.Before == "":
	case f.Fingerprint == f.Before:
		line("      state     as before the step: %s", Plain(f.Fingerprint))
	default:
		line("      state     not as before the step: %s", Plain(f.Fingerprint))
	}
	if f.BackupReference != "" {
		line("      backup    %s", Plain(f.BackupReference))
	}
	if f.Rollback != nil && (f.Verdict != writ.DidNotHappen || f.Undo) {
		line("      way back  %s", Plain(f.Rollback.String()))
	}
	if f.Detail != "" {
		line("      note      %s", Plain(f.Detail))
	}
	for _, s := range f.Sent {
		line("      sent      %s %s", Plain(s.Verb), name(s.Path))
		line("                at %s", s.At)
	}
}

// writeValues shows each value as it was, as it was to be, and as it is now. A
// value that the step would not change any more is as the step makes it.
func writeValues(line func(string, ...any), c *model.Change, i int, f *model.Finding) {
	now := map[string]writ.Field{}
	for _, field := range f.Fields {
		now[field.Name] = field
	}
	if i < len(c.Observations) {
		for _, then := range c.Observations[i].Fields {
			is, differs := now[then.Name]
			delete(now, then.Name)
			line("      value     %s", name(then.Name))
			line("        was     %s", side(then.From, then.FromAbsent))
			line("        asked   %s", side(then.To, then.ToAbsent))
			switch {
			case differs:
				line("        is now  %s", side(is.From, is.FromAbsent))
			case f.Known:
				line("        is now  as asked")
			}
		}
	}
	for _, field := range f.Fields {
		if is, more := now[field.Name]; more {
			line("      value     %s", name(field.Name))
			line("        asked   %s", side(is.To, is.ToAbsent))
			line("        is now  %s", side(is.From, is.FromAbsent))
		}
	}
}

// because says a verdict and what it rests on.
func because(f *writ.Finding) string {
	verdict := strings.ReplaceAll(string(f.Verdict), "_", " ")
	reasons := map[string]string{
		"verified":       "the checks of the step pass now",
		"as_before":      "the target is as it was before the step",
		"was_so_before":  "the target is as the step makes it, and was so before",
		"never_sent":     "the executor sent nothing for it, and yet the target is not as before",
		"before_unknown": "the checks pass, but how it was before is not known",
		"neither":        "the target is neither as it was nor as the step makes it",
		"still_running":  "work at the target goes on, or does not say how it ended; look again later",
		"observe_failed": "the target could not be read",
	}
	if why := reasons[f.Reason]; why != "" {
		return verdict + ": " + why
	}
	return verdict + ": " + Plain(f.Reason)
}

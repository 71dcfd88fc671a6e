package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"writ"
	"writ/api"
)

// showChange prints what a person needs to know of a change, and what to do next.
func (p *program) showChange(c api.Change) {
	p.say("%s  %s", p.bold(line(c.ID)), p.state(c))
	if c.RollbackOf != "" {
		p.say("It undoes %s.", line(c.RollbackOf))
	}
	if c.Trouble != nil {
		p.say("%s", plain(c.Trouble.Text))
	}
	for i := range c.Plan {
		p.say("")
		p.showStep(c, &c.Plan[i])
	}
	p.say("")
	begun := len(c.Receipts) > 0 // then what was weighed and decided is the past
	if a := c.Assessment; a != nil && !begun {
		p.say("Risk      %s, %d of 100 (%s)", line(string(a.RiskLevel)), a.Score, line(string(a.Class)))
		for _, reason := range a.Reasons {
			p.say("          · %s", line(reason))
		}
	}
	p.showDecision(c)
	p.say("Next      %s", line(c.Next))
}

func (p *program) showStep(c api.Change, s *api.Step) {
	p.say("  %s  %s on %s", line(s.ID), line(s.ActionType), line(cmp.Or(s.Entity, s.TargetSystem)))
	for _, pair := range pairs(s.Params) {
		p.say("      %s", pair)
	}
	for _, pair := range pairs(s.Resolved) {
		p.say("      %s (found at the target)", pair)
	}
	if v := s.Preview; v != nil && len(c.Receipts) == 0 {
		for _, f := range v.Fields {
			p.say("      %s: %s → %s", line(f.Name), side(f.From, f.FromAbsent), side(f.To, f.ToAbsent))
		}
		for _, refusal := range v.Refusals {
			p.say("      would be refused: %s", line(refusal))
		}
		switch {
		case s.Class == writ.ReadOnly:
			p.say("      It only reads.")
		case !v.Known:
			p.say("      What would change cannot be computed.")
		}
		if s.Class != writ.ReadOnly {
			p.say("      way back: %s", wayBack(s.Rollback))
		}
	}
	for _, r := range c.Receipts {
		if r.Step == s.ID {
			p.showReceipt(r)
		}
	}
}

func (p *program) showReceipt(r writ.Receipt) {
	p.say("      → %s%s", p.paint(outcomeColour(r.Outcome), line(string(r.Outcome))), reason(r.Reason))
	if r.Detail != "" {
		p.say("        %s", line(r.Detail))
	}
	if r.BackupStatus != writ.BackupNone {
		p.say("        backup %s %s", line(r.BackupStatus), line(r.BackupReference))
	}
	for _, check := range r.Checks {
		word := "passed"
		if !check.Passed {
			word = "FAILED"
		}
		p.say("        check %s %s", line(check.Name), word)
	}
	for _, pair := range pairs(r.Outputs) {
		p.say("        %s", pair)
	}
}

func (p *program) showDecision(c api.Change) {
	if r := c.Rejection; r != nil {
		p.say("Rejected  by %s: %s", line(r.RejectedBy), line(r.Reason))
	}
	for _, d := range c.Denials {
		p.say("Said no   by %s at %s, to the same as %s: %s", line(d.DeniedBy), when(d.DeniedAt), line(d.ChangeID), line(d.Reason))
	}
	for _, a := range c.Approvals {
		p.say("Approved  by %s at %s", line(a.ApprovedBy), when(a.ApprovedAt))
	}
	d := c.Decision
	if d == nil || len(c.Receipts) > 0 {
		return
	}
	rules := strings.Join(d.Rules, ", ")
	switch d.Effect {
	case "auto":
		p.say("Policy    it may run alone (%s)", line(rules))
	case "approve":
		text := fmt.Sprintf("%d person must approve it", d.Count)
		if d.Count > 1 {
			text = fmt.Sprintf("%d people must approve it", d.Count)
		}
		if d.Phrase != "" {
			text += ", typing a phrase"
		}
		p.say("Policy    %s (%s)", text, line(rules))
	case "deny":
		p.say("Policy    it is denied (%s)", line(rules))
	}
}

// pairs returns the members of an object as "name = value", by name.
func pairs(o writ.Object) []string {
	var list []string
	for name, v := range o {
		b, err := writ.Canonical(v)
		if err != nil {
			b = []byte("(cannot be shown)")
		}
		list = append(list, line(name)+" = "+line(string(b)))
	}
	slices.Sort(list)
	return list
}

func side(text string, absent bool) string {
	if absent {
		return "(absent)"
	}
	return `"` + line(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)) + `"`
}

func wayBack(c *writ.Call) string {
	if c == nil {
		return "none"
	}
	return line(c.String())
}

func reason(word string) string {
	if word == "" {
		return ""
	}
	return " (" + line(word) + ")"
}

// when shows a time to people.
func when(t writ.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// age shows how long ago something was.
func age(now time.Time, t writ.Time) string {
	d := now.Sub(t.Time)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// The colours of the terminal, used only on one.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p *program) paint(colour, text string) string {
	if p.env["NO_COLOR"] != "" || !terminal(p.stdout) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p *program) bold(text string) string { return p.paint(bold, text) }

// state shows the state of a change.
func (p *program) state(c api.Change) string {
	colour := yellow
	switch {
	case c.State == "done":
		colour = green
	case c.Ended:
		colour = red
	}
	return p.paint(colour, line(strings.ReplaceAll(c.State, "_", " ")))
}

func outcomeColour(o writ.Outcome) string {
	if o == writ.Done {
		return green
	}
	return red
}

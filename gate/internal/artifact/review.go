// Package artifact renders a change for people: the review an approver decides
// on, and the artifact that tells the whole story afterwards, in Markdown and
// JSON. There is one renderer, so that every way in shows the same text.
//
// All text that comes from a requester, an agent or a target goes through
// [Plain], and nothing is cut short.
package artifact

import (
	"strings"
	"time"

	"writ"
	"writ/gate/internal/model"
)

// Review is what an approver is shown.
type Review struct {
	Text           string
	ShownDigest    writ.Digest // of Text
	EnvelopeDigest writ.Digest
	Phrase         string // to be typed; "" if none is asked for
}

// NewReview renders a change that was decided on.
func NewReview(c *model.Change) (Review, error) {
	var p page
	line, e := p.line, c.Envelope
	line("%s asks for %s in %s.", Plain(model.User(c.RequestedBy)), count(len(c.Steps), "step"), environment(c.Environment))
	if e.RollbackOf != "" {
		line("It undoes %s.", e.RollbackOf)
	}
	writeDenials(&p, c)
	line("")
	line("WHAT WILL CHANGE")
	for i := range c.Steps {
		writeStep(line, c, i)
	}
	line("")
	line("HOW RISKY IT IS   %s, risk %s (%d of 100)", c.Assessment.Class, c.Assessment.Level, c.Assessment.Score)
	for _, reason := range c.Assessment.Reasons {
		line("  - %s", Plain(reason))
	}
	line("")
	line("HOW TO GET BACK")
	for i := range c.Steps {
		writeWayBack(line, &c.Steps[i])
	}
	if e.OnFailure == writ.Rollback {
		line("  If a step fails, the executor undoes the finished ones, in reverse order.")
	} else if len(c.Steps) > 1 && e.RollbackOf != "" {
		line("  If a step fails, the steps that need it are not started; the others go on.")
	} else if len(c.Steps) > 1 {
		line("  If a step fails, the rest is not started, and what is done stays locked.")
	}
	writeWords(&p, c)
	line("")
	line("DECIDE BEFORE     %s", c.WaitUntil)
	line("AN APPROVAL LASTS %s and is good for one use; %s needed, %d given", c.Decision.Valid, count(int(c.Decision.Count), "approval"), len(c.Approvals))
	if c.Decision.Phrase != "" {
		line("TO APPROVE, TYPE  %s", Plain(c.Decision.Phrase))
	}
	line("CHANGE            %s", c.ID)
	line("DIGEST   %s", c.Digest)
	text := p.b.String()
	return Review{
		Text: text, ShownDigest: writ.DigestBytes([]byte(text)), EnvelopeDigest: c.Digest, Phrase: c.Decision.Phrase,
	}, nil
}

// writeDenials shows who said no to the same effect before. Times are told from
// when this was asked, so that the text does not change by itself.
func writeDenials(p *page, c *model.Change) {
	if len(c.Denials) == 0 {
		return
	}
	p.line("")
	p.line("SAID NO BEFORE TO THE SAME EFFECT   %s", count(len(c.Denials), "time"))
	for _, d := range c.Denials {
		p.line("  %s: %s to %s, who asked for %s", when(d.At, c.RequestedAt), name(d.By), name(d.RequestedBy), d.ChangeID)
		p.boxed(string(d.Reason))
	}
}

// when tells a time by another.
func when(at, from writ.Time) string {
	d := from.Sub(at.Time).Round(time.Second)
	if d < 0 {
		return (-d).String() + " after this was asked"
	}
	return d.String() + " before this was asked"
}

func writeStep(line func(string, ...any), c *model.Change, i int) {
	s := &c.Steps[i]
	line("  %s  %s on %s, system %s", s.ID, s.Action, name(s.Entity), name(s.System))
	if summary := c.Summaries[s.Action]; summary != "" {
		line("      %s", Plain(summary))
	}
	if i < len(c.Observations) {
		writeEffect(line, s, &c.Observations[i])
	}
	for _, pair := range pairs(s.Params) {
		line("      with %s", pair)
	}
	for _, pair := range pairs(s.Resolved) {
		line("      with %s (found by the executor)", pair)
	}
	for _, t := range s.Touches {
		line("      also touches %s", name(t))
	}
}

// writeEffect shows what the preview found.
func writeEffect(line func(string, ...any), s *writ.Step, o *writ.Observation) {
	for _, f := range o.Fields {
		line("      %s: %s → %s", name(f.Name), side(f.From, f.FromAbsent), side(f.To, f.ToAbsent))
	}
	switch {
	case s.Class == writ.ReadOnly:
		line("      It only reads.")
	case !o.Known:
		line("      What would change beyond that is UNKNOWN.")
	case len(o.Fields) == 0:
		line("      Nothing would be different afterwards.")
	}
}

func writeWayBack(line func(string, ...any), s *writ.Step) {
	switch {
	case s.Class == writ.ReadOnly:
		line("  %s  nothing to undo", s.ID)
	case s.Rollback == nil:
		line("  %s  THERE IS NO WAY BACK", s.ID)
	default:
		line("  %s  %s, system %s", s.ID, s.Rollback.Action, name(s.Rollback.System))
		for _, pair := range pairs(s.Rollback.Params) {
			line("      %s", pair)
		}
	}
}

// writeWords shows what the requester wrote, attributed and apart.
func writeWords(p *page, c *model.Change) {
	type words struct {
		what  string
		words model.Prose
	}
	said := []words{
		{"requested action", c.Request.RequestedAction}, {"purpose", c.Request.Purpose},
		{"rollback plan", c.Request.RollbackPlan}, {"change ticket", model.Prose(c.Request.ChangeTicket)},
	}
	if s := c.Session; s != nil {
		said = append(said, words{"its program", s.Client}, words{"version", s.Version})
		for _, link := range s.Chain {
			said = append(said, words{"on behalf of", link})
		}
	}
	first := true
	for _, s := range said {
		if s.words == "" {
			continue
		}
		if first {
			p.line("")
			p.line("WHAT %s SAYS (its own words; nobody checked them)", strings.ToUpper(Plain(c.RequestedBy.Name)))
			first = false
		}
		p.line("  %s", s.what)
		p.boxed(string(s.words))
	}
}

// pairs returns the members of an object as "name = value", by name.
func pairs(o writ.Object) []string {
	var list []string
	for _, key := range sortedNames(o) {
		list = append(list, name(key)+" = "+value(o[key]))
	}
	return list
}

func value(v any) string {
	if s, ok := v.(string); ok {
		return quote(s)
	}
	b, err := writ.Canonical(v)
	if err != nil {
		return "(cannot be shown)"
	}
	return Plain(string(b))
}

func side(text string, absent bool) string {
	if absent {
		return "(absent)"
	}
	return quote(text)
}

func environment(of string) string {
	if of == "" {
		return "no environment"
	}
	return "the environment " + name(of)
}

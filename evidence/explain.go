package evidence

import (
	"fmt"
	"strings"

	"writ"
)

// explain answers the five questions from what was verified.
func (b *bundle) explain() {
	b.say("who proposed it", b.proposed)
	b.say("who approved exactly what", b.approved)
	b.say("which executor acted", b.acted)
	b.say("what it sent", b.sent)
	b.say("what came back", b.came)
}

func (b *bundle) say(question string, answer func() (string, []string)) {
	text, records := answer()
	b.account.Sentences = append(b.account.Sentences, Sentence{question, text, records})
}

// records names the events of a type.
func (b *bundle) records(types ...string) (all []string, found []told) {
	for _, e := range b.events {
		for _, t := range types {
			if e.Type == t {
				all, found = append(all, fmt.Sprintf("event %d (%s)", e.Sequence, e.Type)), append(found, e)
			}
		}
	}
	return all, found
}

func (b *bundle) proposed() (string, []string) {
	records, found := b.records("change.proposed")
	if len(found) == 0 {
		return "No event tells who proposed it.", nil
	}
	return fmt.Sprintf("%s proposed it at %s, with the request %s.", found[0].User, found[0].At, writ.DigestBytes(b.files[Request])), append(records, Request)
}

func (b *bundle) approved() (string, []string) {
	records, found := b.records("change.approved")
	if len(found) == 0 {
		records, found = b.records("change.decided", "change.rejected")
		if len(found) == 0 {
			return "Nothing was decided on it.", nil
		}
		last := found[len(found)-1]
		return fmt.Sprintf("No human approved it: the decision at %s left it %s.", last.At, last.Status), records
	}
	var who, what []string
	for _, e := range found {
		who = append(who, e.User)
	}
	if b.envelope != nil {
		for _, s := range b.envelope.Steps {
			what = append(what, s.Action+" on "+s.Entity)
		}
		records = append(records, Envelope)
	}
	if b.writ != nil {
		records = append(records, Writ)
	}
	return fmt.Sprintf("%s approved exactly %s, which is the envelope %s.", strings.Join(who, " and "), strings.Join(what, ", then "), found[0].Envelope), records
}

func (b *bundle) acted() (string, []string) {
	if b.writ == nil {
		return "No executor was given a writ.", nil
	}
	records, _ := b.records("change.claimed")
	signed := fmt.Sprintf("%d receipts", len(b.receipts))
	if len(b.receipts) == 1 {
		signed = "1 receipt"
	}
	return fmt.Sprintf("The executor %s was given the writ %s, for the run %s, and signed %s with the key %s.",
		b.writ.Executor, writ.DigestBytes(b.files[Writ]), b.writ.Run, signed, strings.Join(b.signed, " and ")), append(records, Writ)
}

func (b *bundle) sent() (string, []string) {
	var what, records []string
	for i, r := range b.receipts {
		for _, s := range r.Sent {
			what = append(what, fmt.Sprintf("%s %s to %s at %s (%s)", s.Verb, s.Path, r.System, s.At, s.Digest))
		}
		records = append(records, receiptName(i))
	}
	if len(what) == 0 {
		return "Nothing was sent that writes.", records
	}
	return "It sent " + strings.Join(what, ", then ") + ".", records
}

func (b *bundle) came() (string, []string) {
	records, _ := b.records("step.ended", "change.ended", "change.reconciled")
	var what []string
	for i, r := range b.receipts {
		passed := 0
		for _, c := range r.Checks {
			if c.Passed {
				passed++
			}
		}
		what = append(what, fmt.Sprintf("step %s ended %s, with %d of %d checks passed", r.Step, r.Outcome, passed, len(r.Checks)))
		records = append(records, receiptName(i))
	}
	last := b.events[len(b.events)-1]
	if len(what) == 0 {
		return fmt.Sprintf("Nothing came back; the last that is known is %s, %s.", last.Type, last.Status), records
	}
	return strings.Join(what, "; ") + ".", records
}

func receiptName(i int) string { return fmt.Sprintf("%s%04d.json", Receipts, i+1) }

package model

import (
	"slices"
	"strings"

	"writ"
)

// Denial is an earlier no to what a change would do.
type Denial struct {
	ChangeID    string    `json:"change_id"` // that was denied
	RequestedBy string    `json:"requested_by"`
	By          string    `json:"by"` // "human:NAME" or "policy"
	At          writ.Time `json:"at"`
	Reason      Prose     `json:"reason"`
}

// DeniedBefore is the reason of a change that nobody is asked about, because
// people said no to the same effect too often.
const DeniedBefore = "denied_before"

// byPolicy is who denied what no human did.
const byPolicy = "policy"

// DenialOf returns the no that a change was answered with, if it is one that is
// remembered. What a guard refused may be mended and asked again, and what was
// denied for earlier noes is none of its own.
func DenialOf(c *Change) (Denial, bool) {
	d := Denial{ChangeID: c.ID, RequestedBy: c.RequestedBy.Name, By: byPolicy, At: c.EndedAt}
	switch {
	case c.Request.RollbackOf != "":
		return d, false // the gate asked for it
	case c.State == Rejected && c.Rejection != nil && c.Rejection.LiftedBy == "":
		d.By, d.Reason = User(c.Rejection.By), c.Rejection.Reason
	case c.State == Denied && c.Trouble != nil && c.Trouble.Reason == "policy":
		d.Reason = Prose(c.Trouble.Text)
	default:
		return d, false
	}
	return d, true
}

// Rejections returns how often people said no to the same effect when the same
// requester asked for it.
func (c *Change) Rejections() []Denial {
	var all []Denial
	for _, d := range c.Denials {
		if d.By != byPolicy && strings.EqualFold(d.RequestedBy, c.RequestedBy.Name) {
			all = append(all, d)
		}
	}
	return all
}

// everything stands for all fields of an entity.
const everything = ""

// effects returns the fields that a change would write, by entity. They are the
// same for every action, wording and order of steps that comes to the same. Values
// are no part of it: a value that was denied comes back a little different.
func (c *Change) effects() map[string][]string {
	all := map[string][]string{}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Class == writ.ReadOnly || s.Entity == "" {
			continue
		}
		fields := []string{everything}
		if s.Class != writ.Destructive && i < len(c.Observations) && c.Observations[i].Known && len(c.Observations[i].Fields) > 0 {
			fields = nil
			for _, f := range c.Observations[i].Fields {
				fields = append(fields, f.Name)
			}
		}
		all[s.Entity] = append(all[s.Entity], fields...)
	}
	return all
}

// SameEffect reports whether two changes would write to a field of an entity both.
func (c *Change) SameEffect(other *Change) bool {
	theirs := other.effects()
	for entity, mine := range c.effects() {
		fields := theirs[entity]
		if len(fields) > 0 && (slices.Contains(mine, everything) || slices.Contains(fields, everything) ||
			slices.ContainsFunc(mine, func(f string) bool { return slices.Contains(fields, f) })) {
			return true
		}
	}
	return false
}

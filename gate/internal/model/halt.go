package model

import (
	"slices"
	"strings"

	"writ"
)

// Halt is a person's stop. While it is in force, what it covers is not proposed,
// approved or begun, and what was under way takes no further step.
type Halt struct {
	ID        string         `json:"id"`
	Target    string         `json:"target"`    // a system or an entity, with all above and below it; "": see Principal
	Principal string         `json:"principal"` // a name; without it and a target, everything is covered
	By        writ.Principal `json:"halted_by"`
	At        writ.Time      `json:"halted_at"`
	Reason    Prose          `json:"reason"`
	LiftedBy  string         `json:"lifted_by"`
	LiftedAt  writ.Time      `json:"lifted_at"` // the zero time while it is in force
}

// What names what is covered, for people.
func (h *Halt) What() string {
	switch {
	case h.Target != "":
		return "everything on " + h.Target
	case h.Principal != "":
		return "everything of " + h.Principal
	}
	return "everything"
}

// CoversPrincipal reports whether whatever a principal asks for is covered.
func (h *Halt) CoversPrincipal(name string) bool {
	return h.Target == "" && (h.Principal == "" || strings.EqualFold(h.Principal, name))
}

// Covers reports whether a change is covered: by what it acts on, by who asked for
// it, or by who approved it. What is below a system is known only once the change
// is planned.
func (h *Halt) Covers(c *Change) bool {
	if h.Target == "" {
		return h.CoversPrincipal(c.RequestedBy.Name) ||
			slices.ContainsFunc(c.Approvals, func(a writ.Approval) bool { return h.CoversPrincipal(a.ApprovedBy.Name) })
	}
	return slices.ContainsFunc(c.Steps, func(s writ.Step) bool {
		return s.System == h.Target || slices.ContainsFunc(s.Entities(), h.touches)
	})
}

// touches reports whether an entity is the target, is below it, or holds it.
func (h *Halt) touches(entity string) bool {
	return entity != "" && (entity == h.Target || strings.HasPrefix(entity, h.Target+"/") || strings.HasPrefix(h.Target, entity+"/"))
}

package model

import (
	"slices"

	"writ"
)

// Resolution is what a person makes of a change that left its target in doubt.
type Resolution string

// The resolutions. Adopt: the target is taken as it was found, and what happened
// counts as done. Absent: nothing of the change is there. RollBack: what is there
// is to be undone, by a change of its own; until then the locks stay.
const (
	Adopt    Resolution = "adopt"
	Absent   Resolution = "absent"
	RollBack Resolution = "roll_back"
)

// Resolutions lists all resolutions.
func Resolutions() []Resolution { return []Resolution{Adopt, Absent, RollBack} }

// Finding is a finding with the bytes that the executor sealed; without them it
// only says why the executor would not look.
type Finding struct {
	writ.Finding
	Sealed []byte `json:"sealed"`
}

// Reconciliation is one human's decision on what was in doubt, with the evidence
// they saw.
type Reconciliation struct {
	By          writ.Principal `json:"reconciled_by"`
	At          writ.Time      `json:"reconciled_at"`
	Resolution  Resolution     `json:"resolution"`
	Verdict     writ.Verdict   `json:"verdict"` // what the findings add up to
	Note        Prose          `json:"note"`
	ShownDigest writ.Digest    `json:"shown_digest"`
	Findings    []Finding      `json:"findings"` // one for each step that was in doubt
}

// Recovery says that the executor had carried out what a restored store had
// forgotten.
type Recovery struct {
	At    writ.Time `json:"recovered_at"`
	Epoch int64     `json:"epoch"`
	Was   State     `json:"was"` // "" if the store did not know the change at all
}

// Doubtful returns the steps of which it is not known whether their target is as
// they made it, as it was, or neither.
func (c *Change) Doubtful() []*writ.Step {
	if !c.Held() {
		return nil
	}
	outcomes := map[string]writ.Outcome{}
	for _, r := range c.Newest() {
		outcomes[r.Step] = r.Outcome
	}
	var doubtful []*writ.Step
	// What was accounted for in the middle of a run may have been undone since.
	open := c.silenced() && !c.Deadline.Accounted
	for _, s := range c.left() {
		certain := false
		switch outcomes[s.ID] {
		case writ.Done, writ.NotExecuted, writ.Failed, writ.RolledBack:
			certain = !open
		}
		if s.Class != writ.ReadOnly && !certain {
			doubtful = append(doubtful, s)
		}
	}
	return doubtful
}

// Outlook is what the findings add up to, and what may be decided on them.
type Outlook struct {
	Verdict writ.Verdict
	Choices []Resolution
	Phrase  string // to be typed, where the executor cannot tell and a person vouches; "" is none
}

// Outlook weighs findings about the doubtful steps of a change.
func (c *Change) Outlook(findings []Finding) Outlook {
	o := Outlook{Verdict: writ.DidNotHappen}
	there := slices.ContainsFunc(c.Newest(), func(r Receipt) bool { return r.Outcome == writ.Done && r.Changed })
	for _, f := range findings {
		switch {
		case f.Verdict == writ.CannotTell:
			if o.Phrase == "" {
				o.Phrase = f.Entity
			}
		case (f.Verdict == writ.Happened) != f.Undo:
			there = true
		}
	}
	switch {
	case o.Phrase != "":
		o.Verdict = writ.CannotTell
	case there:
		o.Verdict = writ.Happened
	}
	if there || o.Phrase != "" {
		o.Choices = append(o.Choices, Adopt)
	}
	if !there {
		o.Choices = append(o.Choices, Absent)
	}
	if (there || o.Phrase != "") && c.Request.RollbackOf == "" && c.undoable(findings) {
		o.Choices = append(o.Choices, RollBack)
	}
	return o
}

// undoable reports whether there is a way back for anything that would be undone.
func (c *Change) undoable(findings []Finding) bool {
	after := *c
	after.Reconciliation = &Reconciliation{Resolution: RollBack, Findings: findings}
	return slices.ContainsFunc(after.Newest(), func(r Receipt) bool {
		return r.Rollback != nil && (r.Outcome == writ.Done || r.Outcome == writ.Unverified)
	})
}

// Outcomes returns the newest outcome of each step.
func (c *Change) Outcomes() []writ.Outcome {
	var all []writ.Outcome
	for _, r := range c.Newest() {
		all = append(all, r.Outcome)
	}
	return all
}

// settle puts what was decided in the place of what was in doubt. It gives no
// step a receipt that the executor did not: these are never shown as sealed.
func (r *Reconciliation) settle(c *Change, byStep map[string]Receipt) {
	for i := range c.Steps {
		s := &c.Steps[i]
		if _, ok := byStep[s.ID]; !ok {
			byStep[s.ID] = Receipt{Receipt: writ.Receipt{Step: s.ID, Action: s.Action, System: s.System, Entity: s.Entity, Outcome: writ.NotExecuted}}
		}
	}
	for _, f := range r.Findings {
		now := byStep[f.Step]
		if f.Undo { // what the step did before anybody tried to undo it
			for _, earlier := range c.Receipts {
				if earlier.Step == f.Step && (earlier.Outcome == writ.Done || earlier.Outcome == writ.Unverified) {
					now = earlier
				}
			}
		}
		if now.Rollback == nil {
			now.Rollback, now.RollbackReference = f.Rollback, f.RollbackReference
		}
		now.Sealed = nil
		now.Outcome = r.outcome(&f.Finding)
		now.Changed = now.Outcome == writ.Done || now.Outcome == writ.Unverified
		byStep[f.Step] = now
	}
}

// outcome is what a step that was in doubt counts as. Only what was verified, and
// is not to be undone, is done; what a person vouches for is unverified.
func (r *Reconciliation) outcome(f *writ.Finding) writ.Outcome {
	there := (f.Verdict == writ.Happened) != f.Undo
	if f.Verdict == writ.CannotTell {
		there = r.Resolution != Absent
	}
	switch {
	case !there && f.Undo:
		return writ.RolledBack
	case !there:
		return writ.Failed
	case f.Verdict == writ.CannotTell, r.Resolution == RollBack:
		return writ.Unverified
	}
	return writ.Done
}

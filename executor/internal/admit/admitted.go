package admit

import (
	"slices"

	"writ"
	"writ/catalog"
	"writ/sys"
)

// Admitted is a writ that passed the door. Only [Door] makes one; the zero value
// holds nothing.
type Admitted struct{ work *work }

type work struct {
	writ        *writ.Writ
	digest      writ.Digest
	rules       Rules
	steps       []Step
	release     func()
	interrupted bool
	until       sys.Moment // when the writ ends, by the clock that nobody sets
}

// Step is one step that was measured by the executor's own catalog.
type Step struct {
	Plan     *writ.Step
	Action   *catalog.Action
	Params   writ.Object // as the action's own schema accepts them, defaults filled in
	Settings writ.Object
}

// Scope returns what the expressions of the step may see before anything is read.
func (s Step) Scope() *catalog.Scope {
	return &catalog.Scope{System: s.Plan.System, Params: s.Params, Settings: s.Settings, Resolved: s.Plan.Resolved}
}

// Valid reports whether there is a writ in it.
func (a Admitted) Valid() bool { return a.work != nil }

// Writ returns the writ.
func (a Admitted) Writ() *writ.Writ { return a.work.writ }

// Digest returns the digest of the sealed writ.
func (a Admitted) Digest() writ.Digest { return a.work.digest }

// Steps returns the steps in the order in which they run.
func (a Admitted) Steps() []Step { return slices.Clone(a.work.steps) }

// Interrupted reports that the run was cut off: it may be settled, not executed.
func (a Admitted) Interrupted() bool { return a.work.interrupted }

// Over reports whether the writ has ended: by the wall clock, or because as much
// time has passed since it was admitted as it had left then.
func (a Admitted) Over(s sys.Sys) bool {
	return !s.Now().Before(a.work.writ.ExpiresAt.Time) || a.work.until.Reached(s.Moment())
}

// Release lets other runs have the entities.
func (a Admitted) Release() { a.work.release() }

// Undo measures the way back of a step, made from its backup. It admits only
// what the approvers saw: the same action on the same system, on entities that
// this run holds, no stricter class than the envelope's, and only if the
// envelope says that steps are rolled back on failure.
func (a Admitted) Undo(step *writ.Step, call *writ.Call) (Step, error) {
	e := &a.work.writ.Envelope
	if e.OnFailure != writ.Rollback || a.work.interrupted {
		return Step{}, refuse("rollback_not_approved", "Nobody approved that this change is rolled back by itself.")
	}
	if call == nil || step.Rollback == nil || call.Action != step.Rollback.Action || call.System != step.Rollback.System {
		return Step{}, refuse("no_way_back", "The step %s has no way back that was approved.", step.ID)
	}
	plan := &writ.Step{ID: step.ID, Action: call.Action, System: call.System, Params: call.Params, Resolved: writ.Object{}}
	action, ok := a.work.rules.Catalog.Action(call.Action)
	if !ok {
		return Step{}, refuse("unknown_action", "The catalog of the executor has no action %s.", call.Action)
	}
	plan.ActionDigest, plan.Class = action.Digest, action.Class
	s, err := a.work.rules.step(a.work.writ, plan)
	if err != nil {
		return Step{}, err
	}
	if action.Class.Rank() > e.Class.Rank() {
		return Step{}, refuse("class_too_low", "The way back %s is %s, and only %s was approved.", call.Action, action.Class, e.Class)
	}
	if plan.Entity, err = action.Entity(s.Scope()); err != nil {
		return Step{}, err
	}
	if plan.Touches, err = action.Touches(s.Scope()); err != nil {
		return Step{}, err
	}
	for _, entity := range plan.Entities() {
		if !slices.Contains(a.work.written(), entity) {
			return Step{}, refuse("entity_mismatch", "The way back %s would write to %s, which this run does not hold.", call.Action, entity)
		}
	}
	return s, nil
}

// written lists the entities of all steps that write, by the executor's own
// catalog. A probe has them to itself too: what it reads must not be under way.
func (w *work) written() []string {
	var all []string
	for _, s := range w.steps {
		if w.writ.Purpose != writ.Observe && s.Action.Writes() {
			all = append(all, s.Plan.Entities()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

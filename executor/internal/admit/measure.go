package admit

import (
	"regexp"
	"slices"
	"time"

	"writ"
	"writ/fault"
)

var (
	// Runs and steps name files and rows: they hold nothing else than these.
	idForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)
	nonceForm = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)
)

// open checks the signature, whom the writ is made out to, and its window.
func (r *Rules) open(sealed []byte, now time.Time) (*writ.Writ, error) {
	w := new(writ.Writ)
	if err := writ.Open(writ.KindWrit, sealed, r.Keys, w); err != nil {
		return nil, err
	}
	switch {
	case w.Format != writ.FormatWrit:
		return nil, refuse("wrong_format", "The writ has a format that is not known here. Do both programs have the same version?")
	case !slices.Contains([]writ.Purpose{writ.Observe, writ.Execute, writ.Probe, writ.Raise, writ.Halt}, w.Purpose):
		return nil, refuse("wrong_purpose", "The purpose of the writ is not known here. Do both programs have the same version?")
	case w.Executor != r.Executor:
		return nil, refuse("wrong_executor", "The writ is made out to the executor %q, this is %q.", w.Executor, r.Executor)
	case !idForm.MatchString(w.Run) || !nonceForm.MatchString(w.Nonce) || w.Epoch < 0:
		return nil, refuse("bad_envelope", "The run, the nonce or the epoch of the writ does not have its form.")
	case now.Before(w.IssuedAt.Time):
		return nil, refuse("not_yet_valid", "The writ is valid from %s on. Compare the clocks of both machines.", w.IssuedAt)
	case !now.Before(w.ExpiresAt.Time):
		return nil, fault.New(fault.Expired, "The writ was valid until %s. Propose the change again.", w.ExpiresAt).Because("expired")
	}
	return w, nil
}

// measure checks the shape of the envelope, and each step by the executor's own
// catalog and systems.
func (r *Rules) measure(w *writ.Writ, sealed []byte) (*work, error) {
	e := &w.Envelope
	if w.Purpose == writ.Raise || w.Purpose == writ.Halt { // it is about no step
		return &work{writ: w, digest: writ.DigestBytes(sealed), rules: *r}, nil
	}
	if err := shape(w); err != nil {
		return nil, refuse("bad_envelope", "%s", fault.TextOf(err))
	}
	if e.Class.Rank() > writ.Destructive.Rank() || e.RiskLevel.Rank() > writ.Forbidden.Rank() {
		return nil, refuse("bad_envelope", "The class or the risk level of the envelope is no word of writ.")
	}
	work := &work{writ: w, digest: writ.DigestBytes(sealed), rules: *r}
	for i := range e.Steps {
		if !idForm.MatchString(e.Steps[i].ID) {
			return nil, refuse("bad_envelope", "The id of a step does not have its form.")
		}
		s, err := r.step(w, &e.Steps[i])
		if err != nil {
			return nil, err
		}
		work.steps = append(work.steps, s)
	}
	return work, nil
}

// shape is the envelope's own check. To observe is to ask which entity a step
// would act on, so an observe writ need not name it.
func shape(w *writ.Writ) error {
	e := w.Envelope
	if w.Purpose == writ.Observe {
		e.Steps = slices.Clone(e.Steps)
		for i := range e.Steps {
			e.Steps[i].Entity = "asked"
		}
	}
	return e.Check()
}

// step checks what must hold of a step for every purpose.
func (r *Rules) step(w *writ.Writ, plan *writ.Step) (Step, error) {
	action, ok := r.Catalog.Action(plan.Action)
	if !ok {
		return Step{}, refuse("unknown_action", "The catalog of the executor has no action %s.", plan.Action)
	}
	if action.Digest != plan.ActionDigest {
		return Step{}, refuse("action_changed", "The action %s is not what it was when the change was approved, or the two catalogs differ. Propose the change again.", plan.Action)
	}
	if action.Forbidden != "" {
		return Step{}, fault.New(fault.Denied, "The action %s is forbidden, whoever asks and whoever approves: %s", plan.Action, action.Forbidden).Because("forbidden_action")
	}
	system, ok := r.system(plan.System)
	switch {
	case !ok:
		return Step{}, refuse("unknown_system", "The executor has no system %s. Run: writ systems add", plan.System)
	case system.Kind != action.System:
		return Step{}, refuse("wrong_system", "The action %s is for systems of kind %s; %s is of kind %s.", plan.Action, action.System, plan.System, system.Kind)
	case system.Environment != w.Envelope.Environment:
		return Step{}, refuse("wrong_environment", "The change is for the environment %s, the system %s is in %s.", w.Envelope.Environment, plan.System, system.Environment)
	}
	params, err := action.Params(plan.Params)
	if err != nil {
		return Step{}, refuse("params_refused", "%s", fault.TextOf(err))
	}
	return Step{Plan: plan, Action: action, Params: params, Settings: r.Catalog.Settings(plan.Action)}, nil
}

// bound checks that the steps say of themselves what the own catalog says of them.
func (w *work) bound() error {
	for _, s := range w.steps {
		if err := s.bound(); err != nil {
			return err
		}
	}
	return nil
}

// execute checks what must hold besides before anything may be changed.
func (r *Rules) execute(work *work, now time.Time) error {
	if err := work.bound(); err != nil {
		return err
	}
	for _, s := range work.steps {
		if s.Action.IsFacts() {
			return refuse("facts_only", "The action %s is a set of facts: it is observed, never carried out.", s.Plan.Action)
		}
	}
	writes := slices.ContainsFunc(work.steps, func(s Step) bool { return s.Action.Writes() })
	if err := r.approved(work.writ, writes, now); err != nil {
		return err
	}
	return fenced(work)
}

// bound checks that the step says of itself what the own catalog says of it.
func (s Step) bound() error {
	scope, plan := s.Scope(), s.Plan
	entity, err := s.Action.Entity(scope)
	if err != nil {
		return refuse("entity_mismatch", "%s", fault.TextOf(err))
	}
	touches, err := s.Action.Touches(scope)
	if err != nil {
		return refuse("entity_mismatch", "%s", fault.TextOf(err))
	}
	own := writ.Step{Entity: entity, Touches: touches}
	switch {
	case entity != plan.Entity || !slices.Equal(own.Entities(), plan.Entities()):
		return refuse("entity_mismatch", "The step %s would act on other entities than the ones that were approved.", plan.ID)
	case plan.Class.Rank() < s.Action.Class.Rank():
		return refuse("class_too_low", "The step %s was approved as %s; the action %s has a higher risk, %s.", plan.ID, plan.Class, plan.Action, s.Action.Class)
	case s.Action.Writes() && !plan.BackupRequired:
		return refuse("backup_required", "The step %s writes, so it needs a backup. Set backup_required to true.", plan.ID)
	}
	return nil
}

// fenced checks that each entity that is written to comes with the number of a lock.
func fenced(work *work) error {
	var entities []string
	for i, f := range work.writ.Fences {
		if f.Number <= 0 || i > 0 && work.writ.Fences[i-1].Entity >= f.Entity {
			return refuse("bad_fence", "The fences of the writ are not sorted, or a number is not above zero.")
		}
		entities = append(entities, f.Entity)
	}
	for _, e := range work.written() {
		if !slices.Contains(entities, e) {
			return refuse("bad_fence", "The writ has no fence for %s.", e)
		}
	}
	return nil
}

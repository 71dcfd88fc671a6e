package run

import (
	"context"
	"strings"

	"writ"
	"writ/catalog"
	"writ/executor/internal/admit"
	"writ/fault"
)

// Observe answers an observe writ: for each step, sealed, what would change, or
// what is told of its entity.
// Nothing but reading happens.
func (r *Runner) Observe(ctx context.Context, a admit.Admitted) ([][]byte, error) {
	if !a.Valid() || a.Interrupted() || a.Writ().Purpose != writ.Observe {
		return nil, fault.New(fault.Refused, "Only a freshly admitted observe writ can be observed.").Because("not_admitted")
	}
	defer a.Release()
	var all [][]byte
	for _, s := range a.Steps() {
		o := writ.Observation{
			Format: writ.FormatObservation, Executor: r.Executor, Run: a.Writ().Run, Step: s.Plan.ID, WritDigest: a.Digest(),
			ObservedAt: writ.At(r.Sys.Now()), Resolved: writ.Object{}, Touches: []string{}, Fields: []writ.Field{}, Refusals: []string{},
		}
		if reason, err := r.look(ctx, s, &o); err != nil {
			o.Reason, o.Detail, o.Known = reason, r.clean(sentence(err)), false
		}
		sealed, err := writ.Seal(writ.KindObservation, &o, r.Key)
		if err != nil {
			return nil, err
		}
		all = append(all, sealed)
	}
	return all, nil
}

// look fills in an observation, or says why it cannot.
func (r *Runner) look(ctx context.Context, s admit.Step, o *writ.Observation) (reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Action.Timeout)
	defer cancel()
	system, release, err := r.Systems.Use(s.Plan.System)
	if err != nil {
		return "system_unavailable", err
	}
	defer release()
	scope := s.Scope()
	scope.Resolved = o.Resolved
	if err := r.resolve(ctx, reader(system), s.Action, scope); err != nil {
		return "resolve_failed", err
	}
	if o.Entity, err = s.Action.Entity(scope); err != nil {
		return "expression_failed", err
	}
	touches, err := s.Action.Touches(scope)
	if err != nil {
		return "expression_failed", err
	}
	o.Touches = append(o.Touches, touches...)
	if scope.Observed, err = reader(system).all(ctx, s.Action.Observes(), scope); err != nil {
		return "observe_failed", err
	}
	scope.Backup = map[string]catalog.Seen{}
	for _, name := range s.Action.BackupNames() {
		scope.Backup[name] = scope.Observed[name]
	}
	refusals, err := s.Action.Guards(scope)
	if err != nil {
		refusals = append(refusals, sentence(err))
	}
	for _, text := range refusals {
		o.Refusals = append(o.Refusals, r.clean(text))
	}
	if len(refusals) > 0 {
		return "", nil // what would change is not asked of an action that would not run
	}
	if o.Fingerprint, err = s.Action.Fingerprint(scope); err != nil {
		return "expression_failed", err
	}
	if s.Action.IsFacts() {
		// Whoever asks is to see that the state is another, and nothing of it.
		o.Fingerprint = string(writ.DigestBytes([]byte(o.Fingerprint)))
		o.Facts = r.facts(s.Action, scope)
		return "", nil
	}
	return r.preview(s.Action, scope, o)
}

// resolve binds the values that must be fixed before anybody approves.
func (r *Runner) resolve(ctx context.Context, from reader, a *catalog.Action, scope *catalog.Scope) error {
	for _, resolve := range a.Resolves() {
		call, err := resolve.Call(scope)
		if err != nil {
			return err
		}
		answer, err := from.read(ctx, call)
		if err != nil {
			return err
		}
		v, err := resolve.Value(scope, answer)
		if err != nil {
			return err
		}
		if text, ok := v.(string); ok && r.Redactor().String(text) != text {
			return fault.New(fault.Refused, "The value of %s holds a secret, so it cannot be shown to an approver.", resolve.Name)
		}
		scope.Resolved[resolve.Name] = v
	}
	return nil
}

func (r *Runner) preview(a *catalog.Action, scope *catalog.Scope, o *writ.Observation) (reason string, err error) {
	fields, known, err := a.Preview(scope)
	if err != nil {
		return "expression_failed", err
	}
	for _, f := range fields {
		f.Name, f.From, f.To = r.clean(f.Name), r.value(a, f.From), r.value(a, f.To)
		o.Fields = append(o.Fields, f)
	}
	o.Known = known
	// A way back may need what only the act itself tells, such as a new id; the
	// receipt then has it.
	if call, err := a.Rollback(scope); err == nil && r.showable(a, call) {
		o.Rollback = call
	}
	return "", nil
}

// value is how a previewed value is shown. It is not cut: an approver sees all of it.
func (r *Runner) value(a *catalog.Action, text string) string {
	if a.Sensitivity == catalog.Secret && text != "" {
		return "[redacted:secret]"
	}
	return strings.ToValidUTF8(r.Redactor().String(text), "\uFFFD")
}

package catalog

import (
	"maps"
	"slices"
	"time"

	"writ"
	"writ/fault"
)

// Action is one named operation, loaded and checked. It is never changed and is
// safe for concurrent use.
type Action struct {
	Name           string
	Summary        string
	System         string     // the kind of system it acts on
	Class          writ.Class // a floor: assessment may raise it
	Forbidden      string     // why it is never run; "" if it may be
	Irreversible   string     // why there is no way back; "" if there is one
	PreviewUnknown string     // why no preview can be computed; "" if one can
	Sensitivity    string     // of what it reads: public, internal or secret
	Timeout        time.Duration
	Digest         writ.Digest // of the definition without examples and comments

	source   []byte
	params   *schema
	settings *schema

	entity      *template
	touches     []*template
	guards      []guard
	resolves    []Resolve
	observes    []Reading
	probes      []Reading
	fingerprint *template
	backup      []string
	preview     []previewed
	applies     []Apply
	waits       []Wait
	checks      []check
	within      time.Duration
	every       time.Duration
	rollbacks   []rollback
	outputs     []output
	facts       []fact
	health      []guard
	inverse     inverse // of the entity of a set of facts
	examples    []*value
}

type guard struct {
	that   *expr
	orElse *template
}

type previewed struct {
	field    string
	when     *expr
	from, to *template
}

type check struct {
	name string
	that *expr
}

type rollback struct {
	when   *expr
	action string
	target *Action // the action of that name in the same catalog
	params *data
	at     *value
}

type output struct {
	name, kind string
	value      *expr
}

// The values of Action.Sensitivity.
const (
	Public   = "public"
	Internal = "internal"
	Secret   = "secret" // never leaves the executor
)

// Params checks params against the schema, everything at once, and fills in defaults.
func (a *Action) Params(in writ.Object) (writ.Object, error) { return a.params.accept(in, "params") }

// Schema returns the JSON Schema of the params, as a copy.
func (a *Action) Schema() map[string]any { return plain(a.params.raw).(map[string]any) }

// Source returns the YAML text of the action.
func (a *Action) Source() []byte { return slices.Clone(a.source) }

// Writes says whether the action changes anything.
func (a *Action) Writes() bool { return a.Class != writ.ReadOnly }

// BackupNames lists the observations that are kept before anything is written.
func (a *Action) BackupNames() []string { return slices.Clone(a.backup) }

// Exports says that the action only reads, and that what it reads is kept.
func (a *Action) Exports() bool { return !a.Writes() && len(a.backup) > 0 }

// HasRollback says whether the action names a way back.
func (a *Action) HasRollback() bool { return len(a.rollbacks) > 0 }

// Entity returns what the action acts on: what is locked.
func (a *Action) Entity(s *Scope) (string, error) {
	if a.entity == nil {
		return "", refuse(nil, "The action %s acts on nothing.", a.Name)
	}
	return a.entity.build(view{Scope: s}, tree)
}

// Touches returns the other entities that are locked too, sorted.
func (a *Action) Touches(s *Scope) ([]string, error) {
	touches := []string{}
	for _, t := range a.touches {
		if _, present, err := t.value(view{Scope: s}); err != nil {
			return nil, err
		} else if !present {
			continue
		}
		e, err := t.build(view{Scope: s}, tree)
		if err != nil {
			return nil, err
		}
		touches = append(touches, e)
	}
	slices.Sort(touches)
	return slices.Compact(touches), nil
}

// Resolve binds a value that must be fixed before anyone approves.
type Resolve struct {
	Name  string
	call  *call
	value *expr
}

// Resolves returns the values to be bound, in the order in which they are: a
// later one may use an earlier one.
func (a *Action) Resolves() []Resolve { return slices.Clone(a.resolves) }

// Call returns the reading call whose answer holds the value.
func (r Resolve) Call(s *Scope) (Call, error) { return r.call.build(view{Scope: s}) }

// Value takes the value out of the answer: a string, int64 or bool.
func (r Resolve) Value(s *Scope, answer Seen) (any, error) {
	v, err := r.value.eval(view{s, &answer})
	if err != nil {
		return nil, err
	}
	n, err := native(v)
	switch n.(type) {
	case string, int64, bool:
		return n, nil
	}
	return nil, refuse(err, "The target's answer gives no value for resolved.%s.", r.Name)
}

// Reading is a named reading call: an observation, or a probe after the act.
type Reading struct {
	Name string
	call *call
}

// Call returns the call. It never writes.
func (r Reading) Call(s *Scope) (Call, error) { return r.call.build(view{Scope: s}) }

// Observes returns what is read of the target before anything is decided, before
// the act and after it, sorted by name.
func (a *Action) Observes() []Reading { return slices.Clone(a.observes) }

// Probes returns what is read only after the act, sorted by name.
func (a *Action) Probes() []Reading { return slices.Clone(a.probes) }

// Guards returns the sentences of the guards that do not hold. An error means
// that a guard could not be evaluated, which is a refusal as well.
func (a *Action) Guards(s *Scope) (refusals []string, err error) {
	in := view{Scope: s}
	for _, g := range a.guards {
		holds, failed := g.that.holds(in)
		if failed != nil {
			if err == nil {
				err = failed
			}
			continue
		}
		if holds {
			continue
		}
		refusals = append(refusals, g.sentence(in))
	}
	return refusals, err
}

// Fingerprint says in one text which state of the target was seen: if it is
// another one later, the preview no longer holds. It is "" when nothing is observed.
func (a *Action) Fingerprint(s *Scope) (string, error) {
	if a.fingerprint != nil {
		text, err := a.fingerprint.text(view{Scope: s})
		if err == nil && text == "" {
			err = refuse(nil, "The target's state gives no fingerprint.")
		}
		return text, err
	}
	if len(a.backup) == 0 {
		return "", nil
	}
	state := map[string]any{}
	for _, name := range a.backup {
		seen, ok := s.Observed[name]
		if !ok {
			return "", refuse(nil, "The observation %q is missing.", name)
		}
		state[name] = []any{seen.Found, seen.Data, seen.Text}
	}
	digest := StableDigest(state)
	if !digest.Valid() {
		return "", refuse(nil, "What was observed cannot be digested.")
	}
	return string(digest), nil
}

// Preview returns the values that would change; those that stay the same are
// left out. known is false if the action says that no preview can be computed:
// that is never "no change".
func (a *Action) Preview(s *Scope) (fields []writ.Field, known bool, err error) {
	if a.PreviewUnknown != "" {
		return nil, false, nil
	}
	in := view{Scope: s}
	fields = []writ.Field{}
	for _, p := range a.preview {
		if p.when != nil {
			if wanted, err := p.when.holds(in); err != nil {
				return nil, false, err
			} else if !wanted {
				continue
			}
		}
		f := writ.Field{Name: p.field}
		if f.From, f.FromAbsent, err = p.from.shown(in); err != nil {
			return nil, false, err
		}
		if f.To, f.ToAbsent, err = p.to.shown(in); err != nil {
			return nil, false, err
		}
		if f.From != f.To || f.FromAbsent != f.ToAbsent {
			fields = append(fields, f)
		}
	}
	return fields, true, nil
}

// shown evaluates a template to what people are shown.
func (t *template) shown(in view) (text string, absent bool, err error) {
	if t == nil {
		return "", true, nil
	}
	v, present, err := t.value(in)
	if err != nil || !present {
		return "", !present, err
	}
	if text, err = shownText(v); err != nil {
		return "", false, refuse(err, "The value of %q cannot be shown.", cut(t.source, 200))
	}
	return text, false, nil
}

// Apply is one writing call.
type Apply struct {
	Name string // what its answer is called in applied; may be ""
	when *expr
	call *call
}

// Applies returns the writing calls, in order.
func (a *Action) Applies() []Apply { return slices.Clone(a.applies) }

// Wanted says whether the call is to be made at all.
func (p Apply) Wanted(s *Scope) (bool, error) {
	if p.when == nil {
		return true, nil
	}
	return p.when.holds(view{Scope: s})
}

// Call returns the call.
func (p Apply) Call(s *Scope) (Call, error) { return p.call.build(view{Scope: s}) }

// WaitState is what an answer says about work that goes on at the target.
type WaitState int

// The states. Odd is an answer that the action does not understand, or two at
// once: the outcome is unknown.
const (
	Odd WaitState = iota
	Pending
	Finished
	Broken
)

// String returns the word that examples use.
func (w WaitState) String() string {
	if w < Odd || w > Broken {
		w = Odd
	}
	return waitStates()[w]
}

func waitStates() []string { return []string{"odd", "pending", "finished", "broken"} }

// Wait polls work that goes on at the target after a call.
type Wait struct {
	Every, Within time.Duration

	call                 *call
	pending, done, fails *expr
}

// Waits returns what is waited for, in order, after all calls were made.
func (a *Action) Waits() []Wait { return slices.Clone(a.waits) }

// Call returns the reading call that is made again and again.
func (w Wait) Call(s *Scope) (Call, error) { return w.call.build(view{Scope: s}) }

// State says what an answer means. With an error it is Odd.
func (w Wait) State(s *Scope, answer Seen) (WaitState, error) {
	in := view{s, &answer}
	state, held := Odd, 0
	for _, c := range []struct {
		that  *expr
		state WaitState
	}{{w.pending, Pending}, {w.done, Finished}, {w.fails, Broken}} {
		holds, err := c.that.holds(in)
		if err != nil {
			return Odd, err
		}
		if holds {
			state = c.state
			held++
		}
	}
	if held != 1 {
		return Odd, nil
	}
	return state, nil
}

// Verify returns every check and whether it passed. One that cannot be
// evaluated did not pass.
func (a *Action) Verify(s *Scope) ([]writ.Check, error) {
	checks := make([]writ.Check, len(a.checks))
	for i, c := range a.checks {
		passed, err := c.that.holds(view{Scope: s})
		checks[i] = writ.Check{Name: c.name, Passed: err == nil && passed}
	}
	return checks, nil
}

// VerifyWithin is how long the checks may take to pass; 0 is one attempt.
func (a *Action) VerifyWithin() time.Duration { return a.within }

// VerifyEvery is the time between two attempts.
func (a *Action) VerifyEvery() time.Duration { return a.every }

// Rollback returns the call that leads back to what Backup holds, or nil if
// there is no way back.
func (a *Action) Rollback(s *Scope) (*writ.Call, error) {
	in := view{Scope: s}
	for _, r := range a.rollbacks {
		if r.when != nil {
			if wanted, err := r.when.holds(in); err != nil {
				return nil, err
			} else if !wanted {
				continue
			}
		}
		v, _, err := r.params.eval(in)
		if err != nil {
			return nil, err
		}
		given, _ := objects(v).(writ.Object)
		params, err := r.target.Params(given)
		if err != nil {
			return nil, fault.Wrap(fault.Refused, err, "The way back by %s cannot be taken: %s", r.action, fault.TextOf(err)).Because("rollback_refused")
		}
		return &writ.Call{Action: r.action, System: s.System, Params: params}, nil
	}
	return nil, nil
}

// Outputs returns the declared results of a step that was verified.
func (a *Action) Outputs(s *Scope) (writ.Object, error) {
	out := writ.Object{}
	for _, o := range a.outputs {
		v, err := o.value.eval(view{Scope: s})
		if err != nil {
			return nil, err
		}
		n, err := native(v)
		if err != nil || !isKind(n, o.kind) {
			return nil, refuse(err, "The output %q is not %s, as it should be.", o.name, o.kind)
		}
		out[o.name] = objects(n)
	}
	if _, err := writ.Canonical(out); err != nil {
		return nil, refuse(err, "The outputs hold a value that has no canonical form.")
	}
	return out, nil
}

func isKind(v any, kind string) bool {
	switch v.(type) {
	case string:
		return kind == "string"
	case int64:
		return kind == "integer"
	case bool:
		return kind == "boolean"
	case map[string]any:
		return kind == "object"
	case []any:
		return kind == "list"
	}
	return false
}

// sortedNames returns the keys of a map in order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

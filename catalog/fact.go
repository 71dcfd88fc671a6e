package catalog

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"

	"writ"
	"writ/fault"
)

// maxHealth is how many rules of health a set of facts has at most.
const maxHealth = 32

// reservedFacts are what is told of every entity besides its facts, and judged
// like them.
func reservedFacts() []string { return []string{writ.FactStateHash, writ.FactHealth} }

// fact is one thing that a set of facts tells of its entity.
type fact struct {
	name, kind, sensitivity string
	value                   *expr
}

// factKeys are the keys of a set of facts, which other actions do not have.
func factKeys() []string { return []string{"facts", "health"} }

// facts reads what a set of facts tells.
func (r *actionReader) facts() {
	a, o := r.a, r.o
	m := o.get("facts").mapping()
	for _, name := range m.keys { // in their own order: it is the one in which they are told
		v := m.values[name]
		f := fact{name: name, sensitivity: Internal}
		if !shortName.MatchString(name) || slices.Contains(reservedFacts(), name) {
			v.fail("the name must match %s and be none of %s", shortName, strings.Join(reservedFacts(), ", "))
		}
		one := v.mapping("value", "type", "sensitivity")
		f.kind = one.need(v, "type").oneOf("string", "integer", "boolean", "list", "object")
		if s := one.get("sensitivity"); s != nil {
			f.sensitivity = s.oneOf(Public, Internal, Secret)
		}
		if value := one.need(v, "value"); value != nil {
			f.value = r.scope.compile(value, value.text(), seeObserved)
		}
		a.facts = append(a.facts, f)
	}
	for _, v := range o.get("health").list() {
		a.health = append(a.health, r.guard(v))
	}
}

// factRules checks what a set of facts must have and may not have.
func (r *actionReader) factRules() {
	a, o := r.a, r.o
	if !a.IsFacts() {
		if f := o.get("facts"); f != nil {
			f.fail("there is no fact; add one or take this out")
		} else if h := o.get("health"); h != nil {
			h.fail("health belongs to facts; add facts or take this out")
		}
		return
	}
	if a.Writes() {
		o.get("class").fail("a set of facts is read_only")
	}
	for _, key := range []string{"backup", "verify", "verify_within", "verify_every", "outputs", "touches", "sensitivity", "forbidden"} {
		if v := o.get(key); v != nil {
			v.fail("a set of facts only tells what it reads; take this out")
		}
	}
	for _, key := range []string{"observe", "health", "fingerprint"} {
		o.need(r.root, key)
	}
	if len(a.facts) > writ.MaxFacts || len(a.health) == 0 || len(a.health) > maxHealth {
		o.get("facts").fail("a set has at most %d facts, and 1 to %d rules of health", writ.MaxFacts, maxHealth)
	}
	a.inverse = r.inverse()
}

// IsFacts says that the action is a set of facts: it is asked for, never proposed.
func (a *Action) IsFacts() bool { return a.facts != nil }

// Told is one fact as it was found.
type Told struct {
	Name, Kind, Sensitivity string
	Absent                  bool // there is no such value at the target
	Text                    string
	Err                     error // why there is no value; nil if there is one, or it is absent
}

// Facts returns what is told of the entity, in the order of the file. What
// is secret is among it: whoever asks keeps it.
func (a *Action) Facts(s *Scope) []Told {
	all := make([]Told, len(a.facts))
	for i, f := range a.facts {
		all[i] = Told{Name: f.name, Kind: f.kind, Sensitivity: f.sensitivity}
		v, present, err := f.read(s)
		if err == nil && present {
			all[i].Text, err = shownText(v)
		}
		all[i].Absent, all[i].Err = err == nil && !present, err
	}
	return all
}

// read evaluates a fact to a value of its kind, which may be absent.
func (f fact) read(s *Scope) (v any, present bool, err error) {
	val, err := f.value.eval(view{Scope: s})
	if err != nil {
		return nil, false, err
	}
	if o, ok := val.(*types.Optional); ok {
		if !o.HasValue() {
			return nil, false, nil
		}
		val = o.GetValue()
	}
	if v, err = native(val); err != nil || !isKind(v, f.kind) {
		return nil, false, refuse(err, "The fact %q is not %s, as it should be.", f.name, f.kind)
	}
	return v, true, nil
}

// Health says how the entity is, and in sentences why it is not well. A rule
// that cannot be evaluated makes it unknown, unless another says that it is
// not well.
func (a *Action) Health(s *Scope) (state writ.HealthState, reasons []string) {
	in := view{Scope: s}
	state = writ.HealthOK
	for _, g := range a.health {
		holds, err := g.that.holds(in)
		switch {
		case err != nil:
			reasons = append(reasons, fault.TextOf(err))
			if state == writ.HealthOK {
				state = writ.HealthUnknown
			}
		case !holds:
			reasons, state = append(reasons, g.sentence(in)), writ.HealthDegraded
		}
	}
	return state, reasons
}

// sentence says what does not hold.
func (g guard) sentence(in view) string {
	text, err := g.orElse.text(in)
	if err != nil {
		return g.orElse.source
	}
	return text
}

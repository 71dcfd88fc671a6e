package catalog

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"

	"writ"
)

var (
	actionName = regexp.MustCompile(`^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$`)
	systemKind = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	shortName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
)

// The bounds of times.
const (
	defaultTimeout = time.Minute
	maxTimeout     = 30 * time.Minute
	minPause       = 100 * time.Millisecond
)

// actKeys are the keys of an action that does something.
func actKeys() []string {
	return []string{"apply", "wait", "probe", "preview", "preview_unknown", "rollback", "irreversible"}
}

func actionKeys() []string {
	return append([]string{"action", "summary", "system", "class", "forbidden", "params", "settings", "entity", "touches",
		"resolve", "observe", "guards", "fingerprint", "backup", "verify", "verify_within", "verify_every",
		"outputs", "sensitivity", "limits", "examples"}, append(factKeys(), actKeys()...)...)
}

// actionReader compiles one file into an action.
type actionReader struct {
	root  *value
	o     *object
	a     *Action
	scope *scopeEnv
}

// readAction compiles the document of one file. It reports everything that is
// wrong with it; the action is only fit for use if there was nothing.
func (l *language) readAction(root *value, source []byte) (*Action, error) {
	r := &actionReader{root: root, o: root.mapping(actionKeys()...), a: &Action{source: source}}
	a, o := r.a, r.o
	a.Name = o.need(root, "action").word(actionName)
	a.Summary = o.need(root, "summary").text()
	a.System = o.need(root, "system").word(systemKind)
	classes := []string{}
	for _, c := range writ.Classes() {
		classes = append(classes, string(c))
	}
	a.Class = writ.Class(o.need(root, "class").oneOf(classes...))
	a.Forbidden = o.get("forbidden").text()
	a.Irreversible = o.get("irreversible").text()
	a.PreviewUnknown = o.get("preview_unknown").text()
	a.Sensitivity = Internal
	if s := o.get("sensitivity"); s != nil {
		a.Sensitivity = s.oneOf(Public, Internal, Secret)
	}
	a.params = readSchema(o.need(root, "params"))
	a.settings = readSchema(o.get("settings"))
	r.digest()

	var err error
	if r.scope, err = l.scope(a.params, a.settings); err != nil {
		return nil, err
	}
	r.input()
	r.act()
	r.after()
	r.facts()
	r.times()
	r.rules()
	r.factRules()
	a.examples = o.need(root, "examples").list()
	return a, nil
}

// digest covers all but the examples.
func (r *actionReader) digest() {
	all, _ := r.root.plain().(map[string]any)
	delete(all, "examples")
	digest, err := writ.DigestOf(objects(all))
	if err != nil {
		r.root.fail("the action has no canonical form (outside of examples all numbers are whole): %v", err)
	}
	r.a.Digest = digest
}

// input reads what is known before anything is written.
func (r *actionReader) input() {
	a, o, s := r.a, r.o, r.scope
	for _, v := range o.get("resolve").list() {
		m := v.mapping("name", "get", "list", "read", "query", "at", "host", "absent_ok", "value")
		res := Resolve{Name: m.need(v, "name").word(shortName), call: s.readCall(v, m, readVerbs(), seeResolved)}
		typ := types.DynType
		if value := m.need(v, "value"); value != nil {
			if res.value = s.compile(value, value.text(), seeResolved+seeAnswer); res.value != nil {
				typ = res.value.typ
			}
			switch typ.Kind() {
			case types.StringKind, types.IntKind, types.BoolKind, types.DynKind:
			default:
				value.fail("a resolved value is a text, a whole number or a truth value, not %s", typ)
			}
		}
		s.types.add("resolved", res.Name, typ, false)
		a.resolves = append(a.resolves, res)
	}
	a.observes = r.readings("observe", "observed", seeResolved)
	if e := o.need(r.root, "entity"); e != nil {
		e.text()
		a.entity = s.template(e, seeResolved, false)
	}
	for _, v := range o.get("touches").list() {
		a.touches = append(a.touches, s.template(v, seeResolved, true))
	}
	for _, v := range o.get("guards").list() {
		a.guards = append(a.guards, r.guard(v))
	}
	if f := o.get("fingerprint"); f != nil {
		a.fingerprint = s.template(f, seeObserved, false)
	}
	for _, v := range o.get("backup").list() {
		name := v.text()
		if !slices.ContainsFunc(a.observes, func(r Reading) bool { return r.Name == name }) {
			v.fail("%q is not among the observations", name)
			continue
		}
		if slices.Contains(a.backup, name) {
			v.fail("%q stands twice", name)
		}
		a.backup = append(a.backup, name)
		s.types.add("backup", name, types.NewObjectType(seenType), false)
	}
	for _, v := range o.get("preview").list() {
		m := v.mapping("field", "from", "to", "when")
		a.preview = append(a.preview, previewed{
			field: m.need(v, "field").text(),
			when:  s.truth(m.get("when"), seeObserved),
			from:  s.template(m.get("from"), seeObserved, true),
			to:    s.template(m.get("to"), seeObserved, true),
		})
	}
}

// guard reads what must hold, and what is said if it does not.
func (r *actionReader) guard(v *value) guard {
	m := v.mapping("that", "else")
	g := guard{that: r.scope.truth(m.need(v, "that"), seeObserved)}
	if e := m.need(v, "else"); e != nil {
		e.text()
		g.orElse = r.scope.template(e, seeObserved, false)
	}
	return g
}

// readings reads named reading calls and declares what they are called.
func (r *actionReader) readings(key, variable, see string) []Reading {
	var all []Reading
	o := r.o.get(key).mapping()
	for _, name := range slices.Sorted(slices.Values(o.keys)) {
		v := o.values[name]
		if !shortName.MatchString(name) {
			v.fail("the name must match %s", shortName)
		}
		m := v.mapping("get", "list", "read", "query", "at", "host", "absent_ok")
		all = append(all, Reading{name, r.scope.readCall(v, m, readVerbs(), see)})
	}
	for _, one := range all {
		r.scope.types.add(variable, one.Name, types.NewObjectType(seenType), false)
	}
	return all
}

// act reads what is written, and what is waited for.
func (r *actionReader) act() {
	a, s := r.a, r.scope
	for _, v := range r.o.get("apply").list() {
		m := v.mapping("post", "put", "patch", "delete", "write", "remove",
			"query", "form", "json", "text", "if_match", "as", "when")
		p := Apply{when: s.truth(m.get("when"), seeApplied), call: s.readCall(v, m, writeVerbs(), seeApplied)}
		s.readBody(v, m, p.call, seeApplied)
		if as := m.get("as"); as != nil {
			p.Name = as.word(shortName)
			if slices.ContainsFunc(a.applies, func(q Apply) bool { return q.Name == p.Name }) {
				as.fail("the name stands twice")
			}
			s.types.add("applied", p.Name, types.NewObjectType(seenType), p.when != nil)
		}
		a.applies = append(a.applies, p)
	}
	for _, v := range r.o.get("wait").list() {
		m := v.mapping("get", "list", "read", "query", "at", "host", "while", "done", "failed", "every", "within")
		a.waits = append(a.waits, Wait{
			Every:   m.need(v, "every").duration(minPause, maxTimeout),
			Within:  m.need(v, "within").duration(minPause, maxTimeout),
			call:    s.readCall(v, m, readVerbs(), seeApplied),
			pending: s.truth(m.need(v, "while"), seeApplied+seeAnswer),
			done:    s.truth(m.need(v, "done"), seeApplied+seeAnswer),
			fails:   s.truth(m.need(v, "failed"), seeApplied+seeAnswer),
		})
	}
	a.probes = r.readings("probe", "probed", seeApplied)
}

// after reads what is said once everything was written.
func (r *actionReader) after() {
	a, s := r.a, r.scope
	for _, v := range r.o.get("verify").list() {
		m := v.mapping("name", "that")
		c := check{name: m.need(v, "name").word(shortName), that: s.truth(m.need(v, "that"), seeProbed)}
		if slices.ContainsFunc(a.checks, func(d check) bool { return d.name == c.name }) {
			m.get("name").fail("the name stands twice")
		}
		a.checks = append(a.checks, c)
	}
	if v := r.o.get("rollback"); v != nil {
		r.rollback(v)
	}
	outputs := r.o.get("outputs").mapping()
	for _, name := range slices.Sorted(slices.Values(outputs.keys)) {
		v := outputs.values[name]
		m := v.mapping("value", "type")
		if !shortName.MatchString(name) {
			v.fail("the name must match %s", shortName)
		}
		out := output{name: name, kind: m.need(v, "type").oneOf("string", "integer", "boolean", "object", "list")}
		if value := m.need(v, "value"); value != nil {
			out.value = s.compile(value, value.text(), seeProbed)
		}
		a.outputs = append(a.outputs, out)
	}
}

// rollback reads one way back, or several of which the first that holds is taken.
func (r *actionReader) rollback(v *value) {
	ways := []*value{v}
	if list, ok := v.v.([]*value); ok {
		ways = list
	}
	for _, w := range ways {
		m := w.mapping("when", "action", "params")
		back := rollback{
			when:   r.scope.truth(m.get("when"), seeBackup),
			action: m.need(w, "action").word(actionName),
			at:     w,
		}
		if p := m.need(w, "params"); p != nil {
			p.mapping()
			back.params = r.scope.data(p, seeBackup)
		}
		r.a.rollbacks = append(r.a.rollbacks, back)
	}
}

// times reads the time limits and sees that they fit into each other.
func (r *actionReader) times() {
	a, o := r.a, r.o
	a.Timeout = defaultTimeout
	limits := o.get("limits")
	if t := limits.mapping("timeout").get("timeout"); t != nil {
		a.Timeout = t.duration(time.Second, maxTimeout)
	}
	a.within = o.get("verify_within").duration(minPause, maxTimeout)
	a.every = o.get("verify_every").duration(minPause, maxTimeout)
	if (a.within == 0) != (a.every == 0) {
		r.root.fail("verify_within and verify_every belong together")
	}
	total := a.within
	for _, w := range a.waits {
		total += w.Within
	}
	if total >= a.Timeout {
		r.root.fail("wait and verify_within may take %s, which does not fit into the timeout of the step, %s; raise limits.timeout", total, a.Timeout)
	}
}

// rules checks what an action of its class must have and may not have.
func (r *actionReader) rules() {
	a, o := r.a, r.o
	without := func(why string) {
		for _, key := range actKeys() {
			if v := o.get(key); v != nil {
				v.fail("%s", why)
			}
		}
	}
	switch {
	case o.get("forbidden") != nil:
		without("a forbidden action does nothing; take this out")
		return
	case !a.Writes():
		without("a read_only action writes nothing; take this out or raise the class")
		return
	}
	for _, key := range []string{"apply", "verify", "backup"} {
		if v := o.need(r.root, key); v != nil && len(v.list()) == 0 {
			v.fail("a writing action needs at least one")
		}
	}
	exactlyOne := func(keys ...string) {
		n := 0
		for _, k := range keys {
			if o.get(k) != nil {
				n++
			}
		}
		if n != 1 {
			r.root.fail("a writing action has exactly one of %s", strings.Join(keys, " and "))
		}
	}
	exactlyOne("rollback", "irreversible")
	exactlyOne("preview", "preview_unknown")
}

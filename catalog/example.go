package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"writ"
	"writ/fault"
)

// examples evaluates every example of every action whose file is otherwise
// right: a file that breaks its own examples is refused.
func (l *loader) examples() {
	wrong := map[string]bool{}
	for _, p := range l.problems {
		wrong[p.File] = true
	}
	for _, a := range l.order {
		if wrong[l.files[a.Name].name] || a.wayBackWrong() {
			continue
		}
		count := map[bool]int{}
		for _, v := range a.examples {
			e := readExample(a, v)
			count[e.accept]++
			e.run()
		}
		at := &value{file: l.files[a.Name], line: 1, path: "examples"}
		if count[true] == 0 {
			at.fail("there must be an example with accept: true")
		}
		if count[false] == 0 && a.params.refuses() {
			at.fail("there must be an example with accept: false, since the params can be wrong")
		}
	}
}

func (a *Action) wayBackWrong() bool {
	return slices.ContainsFunc(a.rollbacks, func(r rollback) bool { return r.target == nil || r.target.params.compiled == nil })
}

// refuses says whether something is required of the params, or a text must have a form.
func (s *schema) refuses() bool {
	return len(s.root.required) > 0 || strings.Contains(fmt.Sprint(s.raw), "pattern:")
}

// example is one example with the scope in which it is evaluated.
type example struct {
	a      *Action
	v      *value
	o      *object
	expect *object
	accept bool
	scope  Scope
}

func readExample(a *Action, v *value) *example {
	e := &example{a: a, v: v}
	e.o = v.mapping("params", "accept", "why", "system", "settings", "resolved", "observed", "after", "probed",
		"applied", "resolves", "waits", "expect")
	e.expect = e.o.get("expect").mapping("entity", "touches", "fingerprint", "refused", "preview", "reads", "calls",
		"verify", "rollback", "outputs", "facts", "health")
	e.accept = e.o.need(v, "accept").truth()
	e.scope.System = a.System
	if s := e.o.get("system"); s != nil {
		e.scope.System = s.text()
	}
	return e
}

// run evaluates an example as far as it says something: the params always, what
// depends on the target only if "observed" is given.
func (e *example) run() {
	given, ok := objects(e.o.need(e.v, "params").plain()).(writ.Object)
	if !ok {
		e.v.fail("params must be a mapping")
		return
	}
	params, err := e.a.Params(given)
	if err != nil {
		e.refused([]string{fault.TextOf(err)})
		return
	}
	e.scope.Params = params
	given, _ = objects(e.o.get("settings").plain()).(writ.Object)
	if e.scope.Settings, err = e.a.settings.accept(given, "settings"); err != nil {
		e.o.get("settings").fail("%s", fault.TextOf(err))
		return
	}
	e.scope.Resolved, _ = objects(e.o.get("resolved").plain()).(writ.Object)
	if e.o.get("observed") == nil || e.a.Forbidden != "" {
		e.refused(nil)
		e.inputs(false)
		return
	}
	e.scope.Observed = e.seen("observed", e.a.observes)
	e.scope.Backup = map[string]Seen{}
	for _, name := range e.a.backup {
		e.scope.Backup[name] = e.scope.Observed[name]
	}
	refusals, err := e.a.Guards(&e.scope)
	if err != nil {
		refusals = append(refusals, fault.TextOf(err))
	}
	e.refused(refusals)
	if len(refusals) == 0 {
		e.inputs(true)
		e.step()
	}
}

// refused compares what was refused with what the example says.
func (e *example) refused(refusals []string) {
	switch {
	case e.accept && len(refusals) > 0:
		e.v.fail("the example should be accepted but is refused: %s", strings.Join(refusals, "; "))
	case !e.accept && len(refusals) == 0:
		e.v.fail("the example should be refused but is accepted")
	}
	for _, why := range []*value{e.o.get("why"), e.expect.get("refused")} {
		if why == nil {
			continue
		}
		if text := why.text(); !slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(r, text) }) {
			why.fail("the refusal does not say this but: %s", strings.Join(refusals, "; "))
		}
	}
}

// inputs compares what depends on params, settings and resolved values alone.
// Without all of it, only what the example asks for is evaluated.
func (e *example) inputs(all bool) {
	if want := e.expect.get("entity"); all || want != nil {
		got, err := e.a.Entity(&e.scope)
		e.compare("entity", want, got, err)
		if e.a.IsFacts() && err == nil {
			e.readBack(got)
		}
	}
	if want := e.expect.get("touches"); all || want != nil {
		got, err := e.a.Touches(&e.scope)
		list := []any{}
		for _, t := range got {
			list = append(list, t)
		}
		e.compare("touches", want, list, err)
	}
	reads := e.expect.get("reads").mapping()
	for _, r := range slices.Concat(e.a.observes, e.a.probes) {
		if want := reads.get(r.Name); all && slices.ContainsFunc(e.a.observes, func(o Reading) bool { return o.Name == r.Name }) || want != nil {
			got, err := r.Call(&e.scope)
			e.compareCall("the reading "+r.Name, want, got, err)
		}
	}
	for _, v := range e.o.get("resolves").list() {
		e.resolve(v)
	}
}

func (e *example) resolve(v *value) {
	o := v.mapping("name", "response", "value", "call")
	name := o.need(v, "name").text()
	for _, r := range e.a.resolves {
		if r.Name != name {
			continue
		}
		if want := o.get("call"); want != nil {
			got, err := r.Call(&e.scope)
			e.compareCall("the call", want, got, err)
		}
		got, err := r.Value(&e.scope, readSeen(o.need(v, "response")))
		e.compare("the value", o.need(v, "value"), got, err)
		return
	}
	v.fail("nothing called %q is resolved", name)
}

// step evaluates everything from the fingerprint to the way back.
func (e *example) step() {
	fingerprint, err := e.a.Fingerprint(&e.scope)
	e.compare("the fingerprint", e.expect.get("fingerprint"), fingerprint, err)
	e.facts()
	e.preview()
	e.scope.Applied = e.seen("applied", nil)
	e.calls()
	e.waits()
	call, err := e.a.Rollback(&e.scope)
	if want := e.expect.get("rollback"); err != nil {
		e.v.fail("the way back cannot be computed: %s", reason(err))
	} else if want != nil {
		var got any = "none"
		if call != nil {
			got = map[string]any{"action": call.Action, "params": plain(call.Params)}
		}
		e.compare("the way back", want, got, nil)
	}
	e.scope.Probed = e.seen("probed", e.a.probes)
	if e.o.get("after") == nil {
		for _, key := range []string{"verify", "outputs"} {
			if want := e.expect.get(key); want != nil && e.a.Writes() {
				want.fail("give the observations afterwards under after")
			}
		}
		if e.a.Writes() {
			return
		}
	} else {
		e.scope.Observed = e.seen("after", e.a.observes)
	}
	e.verify()
	outputs, err := e.a.Outputs(&e.scope)
	e.compare("the outputs", e.expect.get("outputs"), plain(outputs), err)
}

// facts wants every fact to have a value, and those that the example names to
// have the value it says.
func (e *example) facts() {
	want := e.expect.get("facts").mapping()
	for _, name := range want.keys {
		if !slices.ContainsFunc(e.a.facts, func(f fact) bool { return f.name == name }) {
			want.values[name].fail("there is no fact of that name")
		}
	}
	for _, f := range e.a.facts {
		got, _, err := f.read(&e.scope)
		e.compare("the fact "+f.name, want.get(f.name), got, err)
	}
	state, reasons := e.a.Health(&e.scope)
	list := []any{}
	for _, r := range reasons {
		list = append(list, r)
	}
	if want := e.expect.get("health"); want != nil {
		said := want.mapping("state", "reasons")
		e.compare("the state of health", said.need(want, "state"), string(state), nil)
		e.compare("the reason", said.get("reasons"), list, nil)
	}
}

func (e *example) preview() {
	fields, known, err := e.a.Preview(&e.scope)
	want := e.expect.get("preview")
	if err == nil && want != nil && !known {
		want.fail("the action says that its preview is unknown")
		return
	}
	list := []any{}
	for _, f := range fields {
		m := map[string]any{"field": f.Name}
		if !f.FromAbsent {
			m["from"] = f.From
		}
		if !f.ToAbsent {
			m["to"] = f.To
		}
		list = append(list, m)
	}
	e.compare("the preview", want, list, err)
}

func (e *example) calls() {
	var got []Call
	for _, p := range e.a.applies {
		wanted, err := p.Wanted(&e.scope)
		if err == nil && wanted {
			var c Call
			if c, err = p.Call(&e.scope); err == nil {
				got = append(got, c)
			}
		}
		if err != nil {
			e.v.fail("the call cannot be made: %s", reason(err))
			return
		}
	}
	want := e.expect.get("calls")
	if want == nil {
		return
	}
	if list := want.list(); len(list) == len(got) {
		for i := range list {
			e.compareCall("the call", list[i], got[i], nil)
		}
		return
	}
	shown := make([]string, len(got))
	for i := range got {
		shown[i] = showCall(got[i])
	}
	want.fail("the calls are %s", strings.Join(shown, ", "))
}

func (e *example) waits() {
	for _, v := range e.o.get("waits").list() {
		o := v.mapping("wait", "response", "state", "call")
		n := int64(0)
		if w := o.get("wait"); w != nil {
			w.within(int64(len(e.a.waits)) - 1)
			n, _ = w.v.(int64)
		}
		if n < 0 || n >= int64(len(e.a.waits)) {
			v.fail("the action does not wait")
			continue
		}
		w := e.a.waits[n]
		if want := o.get("call"); want != nil {
			got, err := w.Call(&e.scope)
			e.compareCall("the call", want, got, err)
		}
		want := o.need(v, "state").oneOf(waitStates()...)
		state, err := w.State(&e.scope, readSeen(o.need(v, "response")))
		if state.String() != want {
			v.fail("the state is %s, the example says %s%s", state, want, reason(err))
		}
	}
}

// verify wants every check to pass, or each as the example says.
func (e *example) verify() {
	checks, _ := e.a.Verify(&e.scope)
	want := e.expect.get("verify")
	said := want.mapping()
	for _, c := range checks {
		expected := want == nil
		if v := said.get(c.Name); v != nil {
			expected = v.truth()
		} else if want != nil {
			continue
		}
		if c.Passed != expected {
			e.v.fail("the check %s gives %t, the example says %t", c.Name, c.Passed, expected)
		}
	}
	for _, name := range said.keys {
		if !slices.ContainsFunc(checks, func(c writ.Check) bool { return c.Name == name }) {
			said.values[name].fail("there is no check of that name")
		}
	}
}

// seen reads the answers that an example gives under a key: one for each of the
// readings, if there are some.
func (e *example) seen(key string, readings []Reading) map[string]Seen {
	v := e.o.get(key)
	o := v.mapping()
	all := map[string]Seen{}
	for _, name := range o.keys {
		all[name] = readSeen(o.values[name])
		if readings != nil && !slices.ContainsFunc(readings, func(r Reading) bool { return r.Name == name }) {
			o.values[name].fail("the action reads nothing of that name")
		}
	}
	for _, r := range readings {
		if v != nil && o.get(r.Name) == nil {
			v.fail("the answer to %q is missing", r.Name)
		}
	}
	return all
}

// readSeen reads an answer; found and status have the values of a good answer by default.
func readSeen(v *value) Seen {
	o := v.mapping("found", "status", "data", "text", "etag")
	s := Seen{Found: true, Status: 200, Data: o.get("data").plain()}
	if f := o.get("found"); f != nil {
		s.Found = f.truth()
	}
	if n, ok := o.get("status").plain().(int64); ok {
		s.Status = int(n)
	}
	s.Text, _ = o.get("text").plain().(string)
	s.ETag, _ = o.get("etag").plain().(string)
	return s
}

// compare reports a value that is not what the example expects. want may be nil.
func (e *example) compare(what string, want *value, got any, err error) {
	at := e.v
	if want != nil {
		at = want
	}
	switch {
	case err != nil:
		at.fail("%s cannot be computed: %s", what, reason(err))
	case want != nil && !reflect.DeepEqual(want.plain(), got):
		shown, _ := stableJSON(got)
		at.fail("%s is %s, which is not what the example expects", what, cut(string(shown), 400))
	}
}

// compareCall compares a call with one as it stands in an example.
func (e *example) compareCall(what string, want *value, got Call, err error) {
	if want == nil || err != nil {
		e.compare(what, want, nil, err)
		return
	}
	verbs := slices.Concat(readVerbs(), writeVerbs())
	o := want.mapping(append(verbs, "query", "at", "host", "form", "json", "text", "if_match", "absent_ok")...)
	c := Call{AbsentOK: got.AbsentOK, JSON: o.get("json").plain(), Query: readStrings(o.get("query")), Form: readStrings(o.get("form"))}
	for _, verb := range verbs {
		if p := o.get(verb); p != nil {
			c.Verb, c.Path = verb, p.text()
		}
	}
	for key, to := range map[string]*string{"at": &c.At, "host": &c.Host, "if_match": &c.IfMatch} {
		if v := o.get(key); v != nil {
			*to = v.text()
		}
	}
	if t := o.get("text"); t != nil {
		s := t.text()
		c.Text = &s
	}
	if a := o.get("absent_ok"); a != nil {
		c.AbsentOK = a.truth()
	}
	if a, b := showCall(c), showCall(got); a != b {
		want.fail("%s is %s, which is not what the example expects", what, b)
	}
}

func readStrings(v *value) map[string]string {
	o := v.mapping()
	m := map[string]string{}
	for _, k := range o.keys {
		if s, ok := o.values[k].v.(string); ok {
			m[k] = s
		} else {
			m[k] = o.values[k].literal()
		}
	}
	return m
}

// showCall writes a call as JSON, without what it does not have.
func showCall(c Call) string {
	m := map[string]any{c.Verb: c.Path}
	if c.At != "" {
		m["at"] = c.At
	}
	if c.Host != "" {
		m["host"] = c.Host
	}
	if len(c.Query) > 0 {
		m["query"] = c.Query
	}
	if len(c.Form) > 0 {
		m["form"] = c.Form
	}
	if c.JSON != nil {
		m["json"] = c.JSON
	}
	if c.Text != nil {
		m["text"] = *c.Text
	}
	if c.IfMatch != "" {
		m["if_match"] = c.IfMatch
	}
	if c.AbsentOK {
		m["absent_ok"] = true
	}
	b, err := stableJSON(m)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// reason writes an error with its cause: here it is the author who reads it,
// and what the target answers is his own example.
func reason(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if e, ok := err.(*fault.Error); ok && e.Cause != nil {
		text += " (" + e.Cause.Error() + ")"
	}
	return text
}

package catalog

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"writ"
	"writ/fault"
)

// inverse is the entity of a set of facts, read backwards: from the name of an
// entity to the params it was made of. It has the names behind that of the
// system. The last may stand for several, if it is a text.
type inverse []name

// name is one name of an entity: a word, or a param.
type name struct {
	word   string
	param  string // "" if it is a word
	number bool   // the param is an integer
	schema *jsonschema.Schema
}

var paramExpr = regexp.MustCompile(`^params\.([a-z][a-z0-9_]*)$`)

// inverse reads the entity backwards, or reports why that cannot be done.
func (r *actionReader) inverse() inverse {
	at, t := r.o.get("entity"), r.a.entity
	if at == nil || t == nil {
		return nil // reported already
	}
	var parts [][]part // the names, each of its parts
	parts = append(parts, nil)
	for _, p := range t.parts {
		for i, word := range strings.Split(p.literal, "/") {
			if i > 0 {
				parts = append(parts, nil)
			}
			if p.literal == "" || word != "" {
				parts[len(parts)-1] = append(parts[len(parts)-1], part{word, p.expr})
			}
		}
	}
	fail := func() inverse {
		at.fail("the entity of a set of facts is ${system}, then names between slashes, each a word or exactly one ${params.NAME}, each param once, so that the params can be read from it")
		return nil
	}
	var all inverse
	seen := map[string]bool{}
	for i, p := range parts {
		if len(p) != 1 || i == 0 && (p[0].expr == nil || p[0].expr.source != "system") {
			return fail()
		}
		if i == 0 {
			continue
		}
		n := name{word: p[0].literal}
		if p[0].expr != nil {
			found := paramExpr.FindStringSubmatch(p[0].expr.source)
			if found == nil || seen[found[1]] || !r.param(&n, found[1]) {
				return fail()
			}
			seen[n.param] = true
		} else if _, err := tree(n.word); err != nil {
			return fail()
		}
		all = append(all, n)
	}
	for _, required := range r.a.params.root.required {
		if !seen[required] {
			at.fail("the param %q is required but cannot be read from the entity", required)
		}
	}
	if len(all) == 0 {
		return fail()
	}
	return all
}

// param makes a name stand for a param. It reports whether it can.
func (r *actionReader) param(n *name, param string) bool {
	shape := r.a.params.root.properties[param]
	properties, _ := r.a.params.raw["properties"].(map[string]any)
	raw, ok := properties[param].(map[string]any)
	if shape == nil || !ok || shape.kind != "string" && shape.kind != "integer" {
		return false
	}
	var err error
	n.param, n.number = param, shape.kind == "integer"
	n.schema, err = compileSchema(raw)
	return err == nil
}

// value reads a text as the param that stands there.
func (n name) value(text string) (v any, ok bool) {
	if !n.number {
		_, err := tree(text)
		return text, err == nil
	}
	i, err := strconv.ParseInt(text, 10, 64)
	return i, err == nil && strconv.FormatInt(i, 10) == text
}

// takes says whether a text may stand there.
func (n name) takes(text string) bool {
	if n.param == "" {
		return n.word == text
	}
	v, ok := n.value(text)
	return ok && n.schema.Validate(v) == nil
}

// open says that the name at i takes all that is left.
func (in inverse) open(i int) bool { return i == len(in)-1 && in[i].param != "" && !in[i].number }

// read returns the params that an entity was made of. It reports false if the
// entity has another form.
func (in inverse) read(names []string) (writ.Object, bool) {
	params := writ.Object{}
	for i, n := range in {
		if i >= len(names) {
			return nil, false
		}
		text := names[i]
		if in.open(i) {
			text, names = strings.Join(names[i:], "/"), names[:i+1]
		}
		if n.param == "" {
			if n.word != text {
				return nil, false
			}
			continue
		}
		v, ok := n.value(text)
		if !ok {
			return nil, false
		}
		params[n.param] = v
	}
	return params, len(names) == len(in)
}

// meets says whether there may be an entity that both fit.
func (in inverse) meets(other inverse) bool {
	for i := 0; i < len(in) && i < len(other); i++ {
		a, b := in[i], other[i]
		switch {
		case in.open(i) && i < len(other)-1, other.open(i) && i < len(in)-1:
			return true // as far as can be told
		case a.param == "" && !b.takes(a.word), b.param == "" && !a.takes(b.word):
			return false
		}
	}
	return len(in) == len(other)
}

// shape shows which entities fit.
func (in inverse) shape() string {
	var b strings.Builder
	b.WriteString("{system}")
	for i, n := range in {
		b.WriteString("/" + n.word)
		if n.param != "" {
			b.WriteString("{" + n.param)
			if in.open(i) && n.takes("a/b") {
				b.WriteString("…")
			}
			b.WriteString("}")
		}
	}
	return b.String()
}

// Shape shows which entities a set of facts tells of, e.g.
// "{system}/{node}/lxc/{vmid}"; it is "" for other actions.
func (a *Action) Shape() string {
	if !a.IsFacts() {
		return ""
	}
	return a.inverse.shape()
}

// FactsOf returns the set of facts that tells of an entity of a system of a
// kind, with its params: fault.NotFound if there is none, fault.Invalid if there
// is no such thing as the entity names.
func (c *Catalog) FactsOf(kind, entity string) (*Action, writ.Object, error) {
	system, rest, _ := strings.Cut(entity, "/")
	var wrong error
	for _, a := range c.sets(kind) {
		read, ok := a.inverse.read(strings.Split(rest, "/"))
		if !ok {
			continue
		}
		params, err := a.Params(read)
		if err != nil {
			wrong = err
			continue
		}
		again, err := a.Entity(&Scope{System: system, Params: params, Settings: c.Settings(a.Name)})
		if err != nil || again != entity {
			continue
		}
		return a, params, nil
	}
	shapes := c.Shapes(kind, system)
	switch {
	case wrong != nil:
		return nil, nil, wrong
	case len(shapes) == 0:
		return nil, nil, fault.New(fault.NotFound, "Nothing is told of systems of the kind %s. List what can be asked for: writ facts", kind).Because("no_facts")
	}
	return nil, nil, fault.New(fault.NotFound, "There are no facts of such an entity. On %s they are told of: %s", system, strings.Join(shapes, ", ")).Because("no_facts")
}

// sets returns the sets of facts of a kind of system.
func (c *Catalog) sets(kind string) (all []*Action) {
	for _, name := range c.Names() {
		if a := c.actions[name]; a.IsFacts() && a.System == kind {
			all = append(all, a)
		}
	}
	return all
}

// Shapes shows which entities of a system of a kind there are facts of.
func (c *Catalog) Shapes(kind, system string) []string {
	var all []string
	for _, a := range c.sets(kind) {
		all = append(all, strings.Replace(a.Shape(), "{system}", system, 1))
	}
	return all
}

// shapes checks that no entity has two sets of facts.
func (l *loader) shapes() {
	for i, a := range l.order {
		for _, b := range l.order[:i] {
			if a.inverse != nil && b.inverse != nil && a.System == b.System && a.inverse.meets(b.inverse) {
				at := &value{file: l.files[a.Name], line: 1, path: "entity"}
				at.fail("an entity could have these facts and those of %s: let a word or the form of a param tell %s from %s", b.Name, a.Shape(), b.Shape())
			}
		}
	}
}

// readBack checks that an example's entity leads back to its params.
func (e *example) readBack(entity string) {
	_, rest, _ := strings.Cut(entity, "/")
	read, ok := e.a.inverse.read(strings.Split(rest, "/"))
	given := maps.Clone(e.scope.Params)
	maps.DeleteFunc(given, func(param string, _ any) bool {
		return !slices.ContainsFunc(e.a.inverse, func(n name) bool { return n.param == param })
	})
	if !ok || fmt.Sprint(given) != fmt.Sprint(read) {
		e.v.fail("the entity %q does not lead back to the params %v but to %v", entity, given, read)
	}
}

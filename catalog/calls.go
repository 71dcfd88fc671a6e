package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// The verbs. Which of them a system has is its driver's business.
func readVerbs() []string  { return []string{"get", "list", "read"} }
func writeVerbs() []string { return []string{"post", "put", "patch", "delete", "write", "remove"} }

// fileVerbs are those whose path is one of files: not escaped, but checked.
func fileVerbs() []string { return []string{"list", "read", "write", "remove"} }

var (
	// httpLiteral is what the fixed parts of a path are made of: no query, no
	// fragment, nothing that is escaped already.
	httpLiteral = regexp.MustCompile(`^[A-Za-z0-9/._~!$&'()*+,;=:@-]*$`)
	fileLiteral = regexp.MustCompile(`^[A-Za-z0-9/._ ~+,=@-]*$`)
	endpoint    = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	hostName    = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]{1,255}$`)
)

// call is a compiled call: a verb, and templates for everything else.
type call struct {
	verb     string
	path     *template
	at       string
	host     *template
	query    []pair
	form     []pair
	hasForm  bool
	json     *data
	text     *template
	ifMatch  *template
	absentOK bool
}

// pair is one value of a form or a query.
type pair struct {
	name  string
	value *template
}

// data is a compiled JSON value: a template, a fixed value, a list or a mapping.
type data struct {
	template *template
	fixed    any
	list     []*data
	keys     []string
	values   map[string]*data
}

// readCall compiles a call that stands in the mapping v with exactly one of the
// verbs and the further keys of o that belong to calls.
func (s *scopeEnv) readCall(v *value, o *object, verbs []string, see string) *call {
	c := &call{}
	var path *value
	for _, verb := range verbs {
		if p := o.get(verb); p != nil {
			if path != nil {
				v.fail("there are two verbs; write one call for each")
			}
			c.verb, path = verb, p
		}
	}
	if path == nil {
		v.fail("there must be one of %s here", strings.Join(verbs, ", "))
		return c
	}
	c.path = s.path(path, see, slices.Contains(fileVerbs(), c.verb))
	if at := o.get("at"); at != nil {
		c.at = at.word(endpoint)
	}
	if host := o.get("host"); host != nil {
		if c.at == "" {
			host.fail("only another endpoint (at) is asked by another name")
		}
		c.host = s.template(host, see, false)
	}
	c.query = s.pairs(o.get("query"), see)
	if a := o.get("absent_ok"); a != nil {
		c.absentOK = a.truth()
	}
	return c
}

// readBody compiles what only a writing call has.
func (s *scopeEnv) readBody(v *value, o *object, c *call, see string) {
	bodies := 0
	if form := o.get("form"); form != nil {
		bodies++
		c.hasForm = true
		c.form = s.pairs(form, see)
	}
	if body := o.get("json"); body != nil {
		bodies++
		c.json = s.data(body, see)
	}
	if text := o.get("text"); text != nil {
		bodies++
		c.text = s.template(text, see, false)
	}
	if bodies > 1 {
		v.fail("a call has one body: form, json or text")
	}
	if m := o.get("if_match"); m != nil {
		c.ifMatch = s.template(m, see, false)
	}
}

// path compiles a path and checks its fixed parts.
func (s *scopeEnv) path(v *value, see string, file bool) *template {
	v.text()
	t := s.template(v, see, false)
	allowed, first := httpLiteral, "/"
	if file {
		allowed, first = fileLiteral, ""
	}
	shape := ""
	for _, p := range t.parts {
		if !allowed.MatchString(p.literal) {
			v.fail("the fixed part %q must match %s; a query goes under query", p.literal, allowed)
		}
		if shape += p.literal; p.expr != nil {
			shape += "x"
		}
	}
	if shape == "." && file {
		return t
	}
	for i, name := range strings.Split(strings.TrimPrefix(shape, first), "/") {
		end := !file && i > 0 && name == "" && strings.HasSuffix(shape, "/")
		if (name == "" && shape != "/" && !end) || name == "." || name == ".." {
			v.fail("the path has an empty name, . or .. in it")
			break
		}
	}
	if !file && len(t.parts) > 0 && !strings.HasPrefix(t.parts[0].literal, "/") {
		v.fail("the path must begin with /")
	}
	return t
}

// pairs compiles the values of a form or a query, in the order of their names.
func (s *scopeEnv) pairs(v *value, see string) []pair {
	o := v.mapping()
	var all []pair
	for _, name := range slices.Sorted(slices.Values(o.keys)) {
		all = append(all, pair{name, s.template(o.values[name], see, true)})
	}
	return all
}

// data compiles a JSON value. Names of members are fixed: no expression makes one.
func (s *scopeEnv) data(v *value, see string) *data {
	switch t := v.v.(type) {
	case string:
		return &data{template: s.template(v, see, true)}
	case []*value:
		d := &data{list: []*data{}}
		for _, e := range t {
			d.list = append(d.list, s.data(e, see))
		}
		return d
	case *object:
		d := &data{keys: t.keys, values: map[string]*data{}}
		for _, k := range t.keys {
			if strings.Contains(k, "${") {
				t.values[k].fail("the name of a member cannot have an expression in it")
			}
			d.values[k] = s.data(t.values[k], see)
		}
		return d
	}
	return &data{fixed: v.v}
}

// eval gives the value. A member or element that is absent is left out.
func (d *data) eval(in view) (v any, present bool, err error) {
	switch {
	case d.template != nil:
		return d.template.value(in)
	case d.list != nil:
		l := []any{}
		for _, e := range d.list {
			v, present, err := e.eval(in)
			if err != nil {
				return nil, false, err
			}
			if present {
				l = append(l, v)
			}
		}
		return l, true, nil
	case d.values != nil:
		m := map[string]any{}
		for _, k := range d.keys {
			v, present, err := d.values[k].eval(in)
			if err != nil {
				return nil, false, err
			}
			if present {
				m[k] = v
			}
		}
		return m, true, nil
	}
	return d.fixed, true, nil
}

// build evaluates a call.
func (c *call) build(in view) (Call, error) {
	out := Call{Verb: c.verb, At: c.at, AbsentOK: c.absentOK}
	escape := segment
	if slices.Contains(fileVerbs(), c.verb) {
		escape = tree
	}
	var err error
	if out.Path, err = c.path.build(in, escape); err != nil {
		return Call{}, err
	}
	if c.host != nil {
		if out.Host, err = c.host.build(in, header); err != nil {
			return Call{}, err
		}
		if !hostName.MatchString(out.Host) {
			return Call{}, refuse(nil, "The host made from %q is no host name.", c.host.source)
		}
	}
	if out.Query, err = buildPairs(c.query, in); err != nil {
		return Call{}, err
	}
	if out.Form, err = buildPairs(c.form, in); err != nil {
		return Call{}, err
	}
	if c.hasForm && out.Form == nil {
		out.Form = map[string]string{}
	}
	if err := c.buildBody(in, &out); err != nil {
		return Call{}, err
	}
	return out, nil
}

func (c *call) buildBody(in view, out *Call) error {
	if c.json != nil {
		v, present, err := c.json.eval(in)
		if err != nil {
			return err
		}
		if !present || v == nil {
			return refuse(nil, "The body of the call to %q is absent.", out.Path)
		}
		out.JSON = v
	}
	if c.text != nil {
		s, err := c.text.text(in)
		if err != nil {
			return err
		}
		out.Text = &s
	}
	if c.ifMatch != nil {
		s, err := c.ifMatch.build(in, header)
		if err != nil {
			return err
		}
		out.IfMatch = s
	}
	return nil
}

// buildPairs returns nil if there is nothing.
func buildPairs(pairs []pair, in view) (map[string]string, error) {
	var m map[string]string
	for _, p := range pairs {
		s, present, err := p.value.optional(in)
		if err != nil {
			return nil, err
		}
		if present {
			if m == nil {
				m = map[string]string{}
			}
			m[p.name] = s
		}
	}
	return m, nil
}

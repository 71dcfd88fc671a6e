package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"writ"
	"writ/fault"
)

var propertyName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// formats are the formats that bound a text by themselves.
var formats = []string{"ipv4", "ipv6", "hostname", "email", "date", "date-time", "uuid"}

// The bounds of what a schema may allow.
const (
	maxText  = 64 << 10 // maxLength
	maxItems = 1000
)

// schema is the checked JSON Schema of params or settings: an object without
// open ends, so that every value is bounded and has a type that CEL knows.
type schema struct {
	raw      map[string]any
	root     *shape
	compiled *jsonschema.Schema
}

// shape is what CEL and the defaults need to know of one level of a schema.
type shape struct {
	kind       string            // object, array, string, integer, boolean
	properties map[string]*shape // of an object
	required   []string
	items      *shape // of an array
	fallback   any    // the default; nil if there is none
}

// optional says that the member may be absent when expressions are evaluated.
func (s *shape) optional(name string) bool {
	return !slices.Contains(s.required, name) && s.properties[name].fallback == nil
}

// emptySchema accepts only the empty object.
func emptySchema() *schema {
	raw := map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
	s := &schema{raw: raw, root: &shape{kind: "object"}}
	s.compiled, _ = compileSchema(raw) // the schema is a constant
	return s
}

// readSchema checks a schema and compiles it. A nil value has the empty schema.
func readSchema(v *value) *schema {
	if v == nil {
		return emptySchema()
	}
	before := len(*v.file.problems)
	root := readShape(v)
	if root.kind != "object" {
		v.fail("the schema must have type object")
	}
	if len(*v.file.problems) > before {
		return &schema{raw: map[string]any{}, root: root}
	}
	s := &schema{raw: v.plain().(map[string]any), root: root}
	var err error
	if s.compiled, err = compileSchema(s.raw); err != nil {
		v.fail("this is not a JSON Schema: %v", err)
		return s
	}
	s.checkDefaults(v)
	return s
}

// nowhere loads nothing: a schema is complete in itself.
type nowhere struct{}

func (nowhere) Load(string) (any, error) { return nil, fs.ErrNotExist }

func compileSchema(raw map[string]any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.AssertFormat()
	if err := c.AddResource("mem:///schema", raw); err != nil {
		return nil, err
	}
	return c.Compile("mem:///schema")
}

// readShape checks one level of a schema.
func readShape(v *value) *shape {
	o := v.mapping("type", "title", "description", "default", "enum", "const",
		"properties", "required", "additionalProperties", "items", "minItems", "maxItems", "uniqueItems",
		"pattern", "minLength", "maxLength", "format", "minimum", "maximum")
	s := &shape{kind: o.need(v, "type").oneOf("object", "array", "string", "integer", "boolean")}
	if d := o.get("default"); d != nil {
		s.fallback = d.plain()
		if s.fallback == nil {
			d.fail("a default cannot be null; leave it out and reach the value with ?")
		}
	}
	switch s.kind {
	case "object":
		readObjectShape(v, o, s)
	case "array":
		if o.need(v, "maxItems") != nil {
			o.get("maxItems").within(maxItems)
		}
		if items := o.need(v, "items"); items != nil {
			s.items = readShape(items)
		}
	case "string":
		checkTextBound(v, o)
	case "integer":
		if o.get("enum") == nil && o.get("const") == nil && (o.get("minimum") == nil || o.get("maximum") == nil) {
			v.fail("an integer needs minimum and maximum, or enum")
		}
	}
	return s
}

func readObjectShape(v *value, o *object, s *shape) {
	if open := o.get("additionalProperties"); open == nil || open.v != false {
		v.fail("an object must be closed: additionalProperties: false")
	}
	props := o.get("properties").mapping()
	s.properties = map[string]*shape{}
	for _, name := range props.keys {
		if !propertyName.MatchString(name) {
			props.values[name].fail("the name must match %s", propertyName)
		}
		s.properties[name] = readShape(props.values[name])
	}
	for _, r := range o.get("required").list() {
		name := r.text()
		if s.properties[name] == nil {
			r.fail("%q is required but is not among the properties", name)
			continue
		}
		s.required = append(s.required, name)
	}
}

func (v *value) within(most int64) {
	if n, ok := v.v.(int64); !ok || n < 0 || n > most {
		v.fail("there must be a whole number from 0 to %d here", most)
	}
}

// checkTextBound wants every string to have an end.
func checkTextBound(v *value, o *object) {
	bounded := o.get("enum") != nil || o.get("const") != nil
	if m := o.get("maxLength"); m != nil {
		m.within(maxText)
		bounded = true
	}
	if f := o.get("format"); f != nil {
		f.oneOf(formats...)
		bounded = true
	}
	if p := o.get("pattern"); p != nil {
		pattern := p.text()
		if !anchored(pattern) {
			p.fail("the pattern must begin with ^ and end with $, around all alternatives")
		}
		bounded = true
	}
	if !bounded {
		v.fail("a string needs maxLength, an anchored pattern, enum, const or format")
	}
}

// anchored says whether a pattern can only match a text as a whole.
func anchored(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat {
		return false
	}
	last := re.Sub[len(re.Sub)-1]
	return re.Sub[0].Op == syntax.OpBeginText && last.Op == syntax.OpEndText
}

// checkDefaults wants every default to be allowed by its own schema.
func (s *schema) checkDefaults(v *value) {
	full := s.root.fill(map[string]any{}).(map[string]any)
	var err *jsonschema.ValidationError
	if !errors.As(s.compiled.Validate(full), &err) {
		return
	}
	for _, c := range leaves(err) {
		if len(c.InstanceLocation) > 0 {
			v.fail("the default of %s is not allowed by its own schema: %s", strings.Join(c.InstanceLocation, "."), describe(c))
		}
	}
}

// fill returns v with the defaults of everything that is absent.
func (s *shape) fill(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, p := range s.properties {
			if _, ok := v[name]; !ok && p.fallback != nil {
				v[name] = plain(p.fallback)
			}
			if e, ok := v[name]; ok {
				v[name] = p.fill(e)
			}
		}
	case []any:
		for i := range v {
			if s.items != nil {
				v[i] = s.items.fill(v[i])
			}
		}
	}
	return v
}

// accept checks a value against the schema and fills in the defaults. It
// reports everything that is wrong at once.
func (s *schema) accept(in writ.Object, what string) (writ.Object, error) {
	if in == nil {
		in = writ.Object{}
	}
	if _, err := writ.Canonical(in); err != nil {
		return nil, err
	}
	v := s.root.fill(plain(in)).(map[string]any)
	if err := s.compiled.Validate(v); err != nil {
		var failed *jsonschema.ValidationError
		if !errors.As(err, &failed) {
			return nil, fault.Wrap(fault.Invalid, err, "The %s cannot be checked against their schema.", what)
		}
		var lines []string
		for _, c := range leaves(failed) {
			lines = append(lines, fmt.Sprintf("%s: %s", strings.Join(append([]string{what}, c.InstanceLocation...), "."), describe(c)))
		}
		slices.Sort(lines)
		return nil, fault.New(fault.Invalid, "The %s are not accepted: %s.", what, strings.Join(slices.Compact(lines), "; "))
	}
	out, ok := objects(v).(writ.Object)
	if !ok {
		return nil, fault.New(fault.Invalid, "The %s are not accepted.", what)
	}
	return out, nil
}

// leaves returns the errors that have no further cause.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, c := range e.Causes {
		all = append(all, leaves(c)...)
	}
	return all
}

func describe(e *jsonschema.ValidationError) string {
	return cut(e.BasicOutput().Error.String(), 200)
}

// cut shortens a text to about n bytes, at the boundary of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// plain turns objects into the maps that CEL and the schema work on. It copies.
func plain(v any) any {
	switch v := v.(type) {
	case writ.Object:
		return plain(map[string]any(v))
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = plain(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = plain(e)
		}
		return l
	}
	return v
}

// objects is the reverse of plain. It copies.
func objects(v any) any {
	switch v := v.(type) {
	case map[string]any:
		o := make(writ.Object, len(v))
		for k, e := range v {
			o[k] = objects(e)
		}
		return o
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = objects(e)
		}
		return l
	}
	return v
}

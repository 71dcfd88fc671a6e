// Package form reads what an operation takes, strictly: a member that is
// unknown, spelt in another case or given twice is refused, and so is whatever
// two readers could understand in two ways. The schemas that it checks with are
// those that the ways in describe.
package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"writ"
	"writ/fault"
)

// Form is what one operation takes.
type Form struct {
	Params []Param
	Body   *huma.Schema // nil: the operation takes none

	of       reflect.Type
	registry huma.Registry
}

// Param is one value beside the body.
type Param struct {
	In     string // path, query or header
	Name   string
	Flat   string // its name where all values stand side by side
	Doc    string
	Schema *huma.Schema

	field []int
}

// New returns the form of an input: a struct whose fields are tagged with path,
// query or header and the name there; the field Body is the body. The tag tool
// gives a field another name for tools.
func New(registry huma.Registry, of reflect.Type, name string) *Form {
	f := &Form{of: of, registry: registry}
	for _, field := range reflect.VisibleFields(of) {
		if field.Anonymous {
			continue
		}
		if field.Name == "Body" {
			f.Body = registry.Schema(field.Type, true, name)
			notNull(registry, f.Body)
			continue
		}
		for _, place := range []string{"path", "query", "header"} {
			if found := field.Tag.Get(place); found != "" {
				p := Param{In: place, Name: found, Flat: found, Doc: field.Tag.Get("doc"), field: field.Index}
				if flat := field.Tag.Get("tool"); flat != "" {
					p.Flat = flat
				}
				p.Schema = huma.SchemaFromField(registry, field, name)
				f.Params = append(f.Params, p)
			}
		}
	}
	return f
}

// Texts returns a pointer to an input whose params are read from texts; unknown
// names what was given and is no param. A body is nil if there is none. A param
// may stand in the body too, under its flat name: some clients put there all
// that they have.
func (f *Form) Texts(given func(Param) []string, unknown []string, body []byte) (any, error) {
	out := reflect.New(f.of)
	var wrong problems
	body, repeated, err := f.repeated(body)
	if err != nil {
		return nil, err
	}
	for _, p := range f.Params {
		texts := given(p)
		text, again := repeated[p.Flat]
		if len(texts) == 0 && again {
			texts = []string{text}
		}
		switch {
		case len(texts) > 1:
			wrong.add(p.In+"."+p.Name, "is given more than once")
		case again && texts[0] != text:
			wrong.add("body."+p.Flat, "is not what stands in the "+p.In)
		case len(texts) == 1:
			f.set(&wrong, p, texts[0], out.Elem().FieldByIndex(p.field))
		}
	}
	for _, name := range unknown {
		wrong.add(name, "is not known")
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	if body == nil {
		return out.Interface(), nil
	}
	return out.Interface(), f.body("body", body, out.Elem())
}

// repeated takes the params out of a body that is an object: what is left, and
// the params as texts by their flat names.
func (f *Form) repeated(body []byte) (rest []byte, texts map[string]string, err error) {
	if body == nil || len(f.Params) == 0 {
		return body, nil, nil
	}
	// Before anything is taken for the only member of its name.
	if _, err := writ.Parse(body); err != nil {
		return nil, nil, err
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return body, nil, nil // it is told below what it should have been
	}
	texts = map[string]string{}
	for _, p := range f.Params {
		raw, ok := members[p.Flat]
		if !ok {
			continue
		}
		text := string(raw)
		if (raw[0] == '"') != (p.Schema.Type == huma.TypeString) {
			return nil, nil, fault.New(fault.Invalid, "The request is not valid: body.%s: is not of the type %s.", p.Flat, p.Schema.Type)
		}
		delete(members, p.Flat)
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, nil, fault.Wrap(fault.Invalid, err, "The body cannot be read as JSON.")
			}
		}
		texts[p.Flat] = text
	}
	if len(texts) == 0 {
		return body, nil, nil
	}
	rest, err = json.Marshal(members)
	return rest, texts, err
}

// BodySchema describes the body that Texts reads, headers under their flat names
// included. That path and query may be repeated is for clients that know no better.
func (f *Form) BodySchema() *huma.Schema {
	if f.Body == nil {
		return nil
	}
	described := *f.resolved(f.Body)
	described.Properties = maps.Clone(described.Properties)
	for _, p := range f.Params {
		if p.In == "header" {
			again := *p.Schema
			again.Description = p.Doc
			described.Properties[p.Flat] = &again
		}
	}
	if len(described.Properties) == len(f.resolved(f.Body).Properties) {
		return f.Body
	}
	return &described
}

func (f *Form) resolved(s *huma.Schema) *huma.Schema {
	if s.Ref != "" {
		return f.registry.SchemaFromRef(s.Ref)
	}
	return s
}

// notNull takes null out of what a list may be: left out and null are not the
// same, and null would be taken for nothing.
func notNull(registry huma.Registry, s *huma.Schema) {
	if s.Ref != "" {
		s = registry.SchemaFromRef(s.Ref)
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
		notNull(registry, s.Items)
	}
	for _, member := range s.Properties {
		notNull(registry, member)
	}
}

// Flat returns a pointer to an input that is read from one JSON object, in which
// the params and the members of the body stand side by side.
func (f *Form) Flat(data []byte) (any, error) {
	if len(data) == 0 {
		data = []byte("{}")
	}
	if _, err := writ.Parse(data); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The arguments are not an object.")
	}
	out := reflect.New(f.of)
	var wrong problems
	for _, p := range f.Params {
		where := "arguments." + p.Flat
		raw, given := members[p.Flat]
		delete(members, p.Flat)
		if !given {
			if p.In == "path" {
				wrong.add(where, "is missing")
			}
			continue
		}
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "The arguments cannot be read as JSON.")
		}
		wrong.validate(f.registry, p.Schema, where, value)
		if len(wrong) == 0 && json.Unmarshal(raw, out.Elem().FieldByIndex(p.field).Addr().Interface()) != nil {
			wrong.add(where, "is not of the type "+p.Schema.Type)
		}
	}
	if f.Body == nil {
		for name := range members {
			wrong.add("arguments."+name, "is not known")
		}
	}
	if err := wrong.err(); err != nil || f.Body == nil {
		return out.Interface(), err
	}
	body, err := json.Marshal(members)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The arguments cannot be read as JSON.")
	}
	return out.Interface(), f.body("arguments", body, out.Elem())
}

// FlatSchema describes what Flat reads.
func (f *Form) FlatSchema() *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}, AdditionalProperties: false, Required: []string{}}
	if body := f.Body; body != nil {
		body = f.resolved(body)
		maps.Copy(s.Properties, body.Properties)
		s.Required = append(s.Required, body.Required...)
	}
	for _, p := range f.Params {
		described := *p.Schema
		described.Description = p.Doc
		s.Properties[p.Flat] = &described
		if p.In == "path" {
			s.Required = append(s.Required, p.Flat)
		}
	}
	return s
}

// set parses one value and stores it.
func (f *Form) set(wrong *problems, p Param, text string, field reflect.Value) {
	var value any = text
	var err error
	switch field.Kind() {
	case reflect.Int64:
		value, err = strconv.ParseInt(text, 10, 64)
	case reflect.Bool:
		value, err = strconv.ParseBool(text)
	}
	if err != nil {
		wrong.add(p.In+"."+p.Name, "is not of the type "+p.Schema.Type)
		return
	}
	wrong.validate(f.registry, p.Schema, p.In+"."+p.Name, value)
	field.Set(reflect.ValueOf(value).Convert(field.Type()))
}

// body reads a body into the field Body.
func (f *Form) body(where string, data []byte, out reflect.Value) error {
	// Duplicate names and what else two readers could understand differently.
	if _, err := writ.Parse(data); err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return fault.Wrap(fault.Invalid, err, "The body cannot be read as JSON.")
	}
	schema := f.Body
	if schema == nil {
		schema = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false}
		schema.PrecomputeMessages()
	}
	var wrong problems
	wrong.spelling(f.registry, schema, where, value)
	if len(wrong) == 0 {
		wrong.validate(f.registry, schema, where, value)
	}
	if err := wrong.err(); err != nil || f.Body == nil {
		return err
	}
	if err := json.Unmarshal(data, out.FieldByName("Body").Addr().Interface()); err != nil {
		return fault.Wrap(fault.Invalid, err, "The body does not have the form that is expected here.")
	}
	return nil
}

// problems collects what is wrong with an input: where and what, never a value,
// since it may be a secret in the wrong place.
type problems []string

// maxProblems is how many are told at once.
const maxProblems = 20

func (p *problems) add(where, what string) {
	if len(*p) < maxProblems {
		*p = append(*p, fmt.Sprintf("%.200s: %s", where, what))
	}
}

func (p *problems) validate(registry huma.Registry, schema *huma.Schema, where string, value any) {
	var result huma.ValidateResult
	path := huma.NewPathBuffer(nil, 0)
	path.Push(where)
	huma.Validate(registry, schema, path, huma.ModeWriteToServer, value, &result)
	for _, err := range result.Errors {
		if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			p.add(detail.Location, detail.Message)
		} else {
			p.add(where, "is not valid")
		}
	}
}

// spelling checks the names of members as they are spelt, and that none is null:
// both huma and encoding/json would take one in another case, and null for nothing.
func (p *problems) spelling(registry huma.Registry, schema *huma.Schema, where string, value any) {
	if schema.Ref != "" {
		schema = registry.SchemaFromRef(schema.Ref)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if known := schema.Properties[name]; known != nil {
				if member == nil && !known.Nullable {
					p.add(where+"."+name, "is null; leave it out instead")
				}
				p.spelling(registry, known, where+"."+name, member)
			} else if schema.AdditionalProperties == false {
				p.add(where+"."+name, "is not known (names are case-sensitive)")
			}
		}
	case []any:
		if schema.Items != nil {
			for i, item := range value {
				p.spelling(registry, schema.Items, fmt.Sprintf("%s[%d]", where, i), item)
			}
		}
	}
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	slices.Sort(p)
	return fault.New(fault.Invalid, "The request is not valid: %s.", strings.Join(p, "; "))
}

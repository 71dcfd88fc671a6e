package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"writ"
	"writ/fault"
)

// input reads what an operation takes.
type input struct {
	of       reflect.Type
	registry huma.Registry
	params   []param
	body     *huma.Schema // nil: the operation takes none
}

// param is one value of the path, the query or a header.
type param struct {
	in, name string
	field    []int
	schema   *huma.Schema
}

// read returns a pointer to a filled input.
func (in *input) read(r *http.Request) (any, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The query cannot be read.")
	}
	out := reflect.New(in.of)
	var wrong problems
	for _, p := range in.params {
		var given []string
		switch p.in {
		case "path":
			given = []string{r.PathValue(p.name)}
		case "query":
			given = query[p.name]
			delete(query, p.name)
		case "header":
			given = r.Header.Values(p.name)
		}
		if len(given) > 1 {
			wrong.add(p.in+"."+p.name, "is given more than once")
		} else if len(given) == 1 {
			in.set(&wrong, p, given[0], out.Elem().FieldByIndex(p.field))
		}
	}
	for name := range query {
		wrong.add("query."+name, "is not known")
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	return out.Interface(), in.readBody(r, out.Elem())
}

// set parses one value and stores it.
func (in *input) set(wrong *problems, p param, text string, field reflect.Value) {
	var value any = text
	var err error
	switch field.Kind() {
	case reflect.Int64:
		value, err = strconv.ParseInt(text, 10, 64)
	case reflect.Bool:
		value, err = strconv.ParseBool(text)
	}
	if err != nil {
		wrong.add(p.in+"."+p.name, "is not of the type "+p.schema.Type)
		return
	}
	wrong.validate(in.registry, p.schema, p.in+"."+p.name, value)
	field.Set(reflect.ValueOf(value).Convert(field.Type()))
}

// readBody reads the body into the field Body, strictly.
func (in *input) readBody(r *http.Request, out reflect.Value) error {
	if r.Method != http.MethodPost {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, writ.MaxSize+1))
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "The body broke off.")
	}
	if len(data) == 0 && in.body == nil {
		return nil
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != "application/json" || charset != "" && charset != "utf-8" || r.Header.Get("Content-Encoding") != "" {
		return fault.New(fault.Invalid, "The body must be plain JSON, and the header Content-Type must say application/json.").Because("content_type")
	}
	// Duplicate names and what else two readers could understand differently.
	if _, err := writ.Parse(data); err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return fault.Wrap(fault.Invalid, err, "The body cannot be read as JSON.")
	}
	schema := in.body
	if schema == nil {
		schema = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false}
		schema.PrecomputeMessages()
	}
	var wrong problems
	wrong.spelling(in.registry, schema, "body", value)
	if len(wrong) == 0 {
		wrong.validate(in.registry, schema, "body", value)
	}
	if err := wrong.err(); err != nil || in.body == nil {
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

// spelling checks the names of members as they are spelt: both huma and
// encoding/json would take one in another case.
func (p *problems) spelling(registry huma.Registry, schema *huma.Schema, where string, value any) {
	if schema.Ref != "" {
		schema = registry.SchemaFromRef(schema.Ref)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if known := schema.Properties[name]; known != nil {
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

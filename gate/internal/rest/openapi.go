package rest

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"writ/api"
	"writ/fault"
	"writ/gate/internal/ops"
)

// description is the API as OpenAPI 3.1, made operation by operation from the
// same schemas that its input is checked with.
type description struct {
	api *huma.OpenAPI
}

func newDescription(version string) *description {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return &description{&huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "writ", Version: version,
			Description: "Ask for changes to infrastructure. Nothing is written without an approval of exactly what was shown.",
		},
		Servers: []*huma.Server{{URL: "/"}},
		Components: &huma.Components{
			Schemas:         registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}},
		},
		Security: []map[string][]string{{"token": {}}},
	}}
}

// add describes an operation and returns the reader of its input.
func (d *description) add(op *ops.Op) *input {
	registry := d.api.Components.Schemas
	described := &huma.Operation{
		OperationID: op.Name, Method: op.Method, Path: op.Path, Summary: op.Summary,
		Responses: map[string]*huma.Response{
			strconv.Itoa(http.StatusOK): {
				Description: "As asked",
				Content:     map[string]*huma.MediaType{"application/json": {Schema: registry.Schema(op.Out, true, op.Name)}},
			},
			"default": {
				Description: "Not as asked; the codes: " + codes(),
				Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: registry.Schema(reflect.TypeFor[api.Problem](), true, "Problem")}},
			},
		},
		Extensions: map[string]any{"x-writ-tool": op.Tool, "x-writ-roles": op.Roles},
	}
	in := &input{of: op.In, registry: registry}
	for _, f := range reflect.VisibleFields(op.In) {
		if f.Anonymous {
			continue
		}
		if f.Name == "Body" {
			in.body = registry.Schema(f.Type, true, op.Name)
			described.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: in.body}}}
			continue
		}
		for _, place := range []string{"path", "query", "header"} {
			if name := f.Tag.Get(place); name != "" {
				schema := huma.SchemaFromField(registry, f, op.Name)
				in.params = append(in.params, param{in: place, name: name, field: f.Index, schema: schema})
				described.Parameters = append(described.Parameters, &huma.Param{
					Name: name, In: place, Description: f.Tag.Get("doc"), Required: place == "path", Schema: schema,
				})
			}
		}
	}
	d.api.AddOperation(described)
	return in
}

func codes() string {
	list := ""
	for i, row := range fault.Table() {
		if i > 0 {
			list += ", "
		}
		list += string(row.Code)
	}
	return list
}

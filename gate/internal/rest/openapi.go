package rest

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"writ/api"
	"writ/fault"
	"writ/gate/internal/form"
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

// add describes an operation and returns the form of its input.
func (d *description) add(op *ops.Op) *form.Form {
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
		Extensions: map[string]any{"x-writ-tool": op.Tool != "", "x-writ-roles": op.Roles},
	}
	in := form.New(registry, op.In, op.Name)
	if in.Body != nil {
		described.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: in.Body}}}
	}
	for _, p := range in.Params {
		described.Parameters = append(described.Parameters, &huma.Param{
			Name: p.Name, In: p.In, Description: p.Doc, Required: p.In == "path", Schema: p.Schema,
		})
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

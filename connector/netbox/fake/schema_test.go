package fake_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// deviation is a place where the fake, like NetBox itself, is not what the schema says. One that no exchange needs
// any more fails the test.
type deviation struct {
	op     string // "GET /api/…/" with the schema's own placeholders
	where  string // "request", "response" or "query"
	says   string // part of the checker's complaint
	reason string
}

func deviations() []deviation {
	const (
		list  = "a list is taken too, and answered by a list; the generator knows the single object only"
		one   = "a single object is taken too, and answered by one; the generator knows the list only"
		none  = "the global table has no VRF; the serializer says allow_null"
		bare  = "a machine without an address has none; the serializer says allow_null"
		parts = "every view takes fields, omit and brief; the schema does not list them"
		cut   = "an object cut by fields, omit or brief"
	)
	return []deviation{
		{"GET /api/extras/tags/", "response", `"/count": Value is not nullable`, "a cursor page has no count"},
		{"GET /api/extras/tags/", "query", "slgu", "the test's own misspelt filter"},
		{"GET /api/extras/tags/", "query", "fields", parts},
		{"GET /api/extras/tags/", "response", "is missing", cut},
		{"GET /api/ipam/prefixes/{id}/", "query", "brief", parts},
		{"GET /api/ipam/prefixes/{id}/", "query", "omit", parts},
		{"GET /api/ipam/prefixes/{id}/", "response", "is missing", cut},
		{"POST /api/extras/tags/", "response", "value must be an object", list},
		{"PATCH /api/extras/tags/", "request", "is missing", "the derived bulk body asks for required members; PATCH does not"},
		{"DELETE /api/extras/tags/", "request", "is missing", "a bulk delete needs ids only"},
		{"GET /api/ipam/prefixes/{id}/available-ips/", "response", "/vrf\": Value is not nullable", none},
		{"GET /api/ipam/prefixes/{id}/available-ips/", "query", "limit", "the view reads limit itself, unseen by the generator"},
		{"POST /api/ipam/prefixes/{id}/available-ips/", "request", "value must be an array", one},
		{"POST /api/ipam/prefixes/{id}/available-ips/", "response", "value must be an array", one},
		{"GET /api/virtualization/virtual-machines/", "response", "/primary_ip\"", bare},
		{"GET /api/virtualization/virtual-machines/{id}/", "response", "/primary_ip\"", bare},
		{"PATCH /api/ipam/prefixes/{id}/", "request", "/tags", "a tag may be named by its id, its name or its slug alone"},
		{"POST /api/ipam/ip-addresses/", "response", "/dns_name", "blank is allowed beside the pattern"},
		{"PATCH /api/ipam/ip-addresses/{id}/", "request", "/dns_name", "blank is allowed beside the pattern"},
		{"PATCH /api/ipam/ip-addresses/{id}/", "response", "/dns_name", "blank is allowed beside the pattern"},
		{"POST /api/ipam/prefixes/{id}/available-ips/", "response", "/dns_name", "blank is allowed beside the pattern"},
	}
}

// checker holds exchanges against the vendor's schema.
type checker struct {
	doc     *openapi3.T
	allowed []deviation

	mu     sync.Mutex
	used   []bool
	shapes int // bodies that were checked
}

// openSpec loads a schema below WRIT_SPECS. In CI it must be there.
func openSpec(t *testing.T, name string) *openapi3.T {
	t.Helper()
	dir := os.Getenv("WRIT_SPECS")
	if dir == "" && os.Getenv("CI") == "true" {
		t.Fatal("WRIT_SPECS is not set: CI must check the fakes against the vendors' schemas")
	}
	if dir == "" {
		t.Skip("WRIT_SPECS is not set: set it to the directory of the vendors' schemas to check the fake against them")
	}
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range doc.Components.Schemas {
		for _, member := range schema.Value.Properties {
			// In OpenAPI 3.1 the empty schema allows everything; the validator still thinks of 3.0, without null.
			member.Value.Nullable = member.Value.Nullable || member.Value.IsEmpty()
		}
	}
	return doc
}

// operation finds the path of the schema that a request path fits.
func (k *checker) operation(method, path string) (string, *openapi3.Operation) {
	parts := strings.Split(path, "/")
	for template, item := range k.doc.Paths.Map() {
		names := strings.Split(template, "/")
		fits := slices.EqualFunc(names, parts, func(n, p string) bool {
			return n == p || strings.HasPrefix(n, "{") && p != ""
		})
		if fits {
			return method + " " + template, item.GetOperation(method)
		}
	}
	return "", nil
}

func (k *checker) see(t *testing.T, s step, status int, body []byte) {
	t.Helper()
	method, target, _ := strings.Cut(s.do, " ")
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	op, operation := k.operation(method, u.Path)
	if status >= 300 { // the schema has no errors; the rows themselves say what they look like
		return
	}
	if operation == nil {
		if u.Path != "/api/status/" {
			t.Errorf("%s succeeded, but the schema has no such operation", s.do)
		}
		return
	}
	for name := range u.Query() {
		if operation.Parameters.GetByInAndName("query", name) == nil {
			k.complain(t, op, "query", "the schema has no parameter "+name)
		}
	}
	if s.send != "" && operation.RequestBody != nil {
		k.visit(t, op, "request", operation.RequestBody.Value.Content, []byte(s.send))
	}
	answer := operation.Responses.Status(status)
	if answer == nil {
		k.complain(t, op, "response", fmt.Sprint("the schema has no status ", status))
		return
	}
	if len(answer.Value.Content) > 0 {
		k.visit(t, op, "response", answer.Value.Content, body)
	}
}

func (k *checker) visit(t *testing.T, op, where string, content openapi3.Content, body []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Errorf("%s %s: %v", op, where, err)
		return
	}
	k.mu.Lock()
	k.shapes++
	k.mu.Unlock()
	err := content.Get("application/json").Schema.Value.VisitJSON(v, openapi3.MultiErrors(),
		openapi3.SetSchemaRegexCompiler(python))
	for _, problem := range flat(err) {
		k.complain(t, op, where, problem)
	}
}

// python compiles a pattern as Python understands it: there \w is a letter of any script.
func python(pattern string) (openapi3.RegexMatcher, error) {
	return regexp.Compile(strings.ReplaceAll(pattern, `\w`, `\p{L}\p{N}\p{M}_`))
}

// flat lists the complaints of the validator, each with its place.
func flat(err error) []string {
	switch e := err.(type) {
	case nil:
		return nil
	case openapi3.MultiError:
		all := []string{}
		for _, one := range e {
			all = append(all, flat(one)...)
		}
		return all
	}
	line, _, _ := strings.Cut(err.Error(), "\nSchema:")
	return []string{line}
}

func (k *checker) complain(t *testing.T, op, where, problem string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, d := range k.allowed {
		if d.op == op && d.where == where && strings.Contains(problem, d.says) {
			k.used[i] = true
			return
		}
	}
	t.Errorf("%s: the %s is not what the schema says: %s", op, where, problem)
}

// TestSchema holds every exchange of the behaviour rows against NetBox's schema.
func TestSchema(t *testing.T) {
	t.Parallel()
	doc := openSpec(t, "netbox/netbox-4.6-derived-cut.json")
	k := &checker{doc: doc, allowed: deviations()}
	k.used = make([]bool, len(k.allowed))
	t.Run("rows", func(t *testing.T) {
		for _, r := range slices.Concat(accessRows(), tagRows(), prefixRows(), addressRows(), listRows(), changeRows()) {
			t.Run(r.name, func(t *testing.T) { play(t, r, k.see) })
		}
	})
	for i, d := range k.allowed {
		if !k.used[i] {
			t.Errorf("no exchange needs the deviation of the %s of %s any more (%q): remove it", d.where, d.op, d.says)
		}
	}
	t.Logf("%d bodies checked", k.shapes)
	if k.shapes < 100 {
		t.Errorf("only %d bodies were checked", k.shapes)
	}
}

// TestSchema_catches proves that the checker is not blind.
func TestSchema_catches(t *testing.T) {
	t.Parallel()
	k := &checker{doc: openSpec(t, "netbox/netbox-4.6-derived-cut.json")}
	_, operation := k.operation("GET", "/api/extras/tags/7/")
	schema := operation.Responses.Status(200).Value.Content.Get("application/json").Schema.Value
	for _, body := range []string{`{"id":7}`, `{"id":"7","url":1}`, `[]`} {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.VisitJSON(v); err == nil {
			t.Errorf("%s passes for a tag", body)
		}
	}
}

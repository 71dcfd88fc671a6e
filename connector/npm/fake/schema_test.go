package fake_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// deviation is a place where the fake, like the real server, is not what the server's own schema says. One that no
// exchange needs any more fails the test.
type deviation struct {
	op     string // "GET /…" with the schema's own placeholders; "" is every operation
	where  string // "request", "response" or "query"
	says   string // part of the checker's complaint
	reason string
}

func deviations() []deviation {
	const (
		never  = "a host that never had locations has null, as recorded"
		coerce = "the server coerces values, as recorded"
		expand = "the schema wants one name; the server takes a list and paths, as recorded"
	)
	return []deviation{
		{"", "response", `/locations": Value is not nullable`, never},
		{"", "response", `/access_list"`, "a host's list has is_deleted and no proxy_host_count, as recorded"},
		{"GET /nginx/proxy-hosts", "query", "query", "the schema does not list the search, which was recorded"},
		{"GET /nginx/proxy-hosts/{hostID}", "query", "expand", expand},
		{"GET /users/{userID}", "query", "expand", "the schema does not list it; it was seen on a real server"},
		{"GET /audit-log", "query", "expand", "the schema does not list it, which was recorded"},
		{"GET /audit-log", "response", `"is_deleted" is unsupported`, "the expanded user has it, as recorded"},
		{"GET /tokens", "query", "expiry", "the schema does not list it, which was recorded"},
		{"GET /nginx/access-lists", "response", "value must be an object", "the schema describes one list; the server answers all of them"},
		{"PUT /nginx/proxy-hosts/{hostID}", "request", "/forward_port", coerce},
		{"PUT /nginx/proxy-hosts/{hostID}", "request", "/forward_host", coerce},
		{"PUT /nginx/proxy-hosts/{hostID}", "request", "/caching_enabled", coerce},
		{"PUT /nginx/proxy-hosts/{hostID}", "request", "/block_exploits", coerce},
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

// openSpec loads the schema that the server publishes about itself. In CI it must be there.
func openSpec(t *testing.T) *openapi3.T {
	t.Helper()
	dir := os.Getenv("WRIT_SPECS")
	if dir == "" && os.Getenv("CI") == "true" {
		t.Fatal("WRIT_SPECS is not set: CI must check the fakes against the vendors' schemas")
	}
	if dir == "" {
		t.Skip("WRIT_SPECS is not set: set it to the directory of the vendors' schemas to check the fake against them")
	}
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join(dir, "npm/openapi-2.15.1-from-running-server.json"))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// operation finds the path of the schema that a request path fits.
func (k *checker) operation(method, path string) (string, *openapi3.Operation) {
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
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

func (k *checker) see(t *testing.T, method, target, sent string, status int, body []byte) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	op, operation := k.operation(method, u.Path)
	if operation == nil {
		if status < 300 {
			t.Errorf("%s %s succeeded, but the schema has no such operation", method, target)
		}
		return
	}
	if answer := operation.Responses.Status(status); answer != nil {
		k.visit(t, op, "response", answer.Value.Content, body)
	} else if status < 300 {
		t.Errorf("%s: the schema has no status %d", op, status)
	}
	if status >= 300 { // the rows themselves say what an error looks like; few operations describe any
		return
	}
	for name, values := range u.Query() {
		p := operation.Parameters.GetByInAndName("query", name)
		switch {
		case p == nil:
			k.complain(t, op, "query", "the schema has no parameter "+name)
		case p.Schema.Value.VisitJSON(values[0]) != nil:
			k.complain(t, op, "query", name+" is "+values[0])
		}
	}
	if operation.RequestBody != nil && (sent != "" || method == http.MethodPut) {
		k.visit(t, op, "request", operation.RequestBody.Value.Content, []byte(sent))
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
	for _, problem := range flat(content.Get("application/json").Schema.Value.VisitJSON(v, openapi3.MultiErrors())) {
		k.complain(t, op, where, problem)
	}
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
		if (d.op == op || d.op == "") && d.where == where && strings.Contains(problem, d.says) {
			k.used[i] = true
			return
		}
	}
	t.Errorf("%s: the %s is not what the schema says: %s", op, where, problem)
}

// TestSchema holds every exchange of the behaviour rows against the server's own schema.
func TestSchema(t *testing.T) {
	t.Parallel()
	k := &checker{doc: openSpec(t), allowed: deviations()}
	k.used = make([]bool, len(k.allowed))
	t.Run("rows", func(t *testing.T) {
		for _, r := range slices.Concat(accessRows(), bodyRows(), hostRows(), nginxRows(), listRows()) {
			t.Run(r.name, func(t *testing.T) { play(t, r, k.see) })
		}
	})
	for i, d := range k.allowed {
		if !k.used[i] {
			t.Errorf("no exchange needs the deviation of the %s of %s any more (%q): remove it", d.where, d.op, d.says)
		}
	}
	t.Logf("%d bodies checked", k.shapes)
	if k.shapes < 80 {
		t.Errorf("only %d bodies were checked", k.shapes)
	}
}

// TestSchema_catches proves that the checker is not blind.
func TestSchema_catches(t *testing.T) {
	t.Parallel()
	k := &checker{doc: openSpec(t)}
	_, operation := k.operation("GET", "/nginx/proxy-hosts/7")
	schema := operation.Responses.Status(200).Value.Content.Get("application/json").Schema.Value
	for _, body := range []string{`{"id":7}`, `[]`, `{"error":{}}`} {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.VisitJSON(v); err == nil {
			t.Errorf("%s passes for a proxy host", fmt.Sprint(body))
		}
	}
}

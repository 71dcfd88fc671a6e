// Package mock is a system in memory: it keeps values by name for as long as the
// target is open. It is for rehearsals and first steps, where a change has to go
// the whole way and touch nothing.
package mock

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/fault"
)

// New returns the driver of kind "mock": get and put of /name, with a JSON body.
func New() connector.Driver { return driver{} }

type driver struct{}

func (driver) Kind() string { return "mock" }

func (driver) Needs() []connector.Need { return nil }

func (driver) Verbs() map[string]bool { return map[string]bool{"get": false, "put": true} }

func (driver) Authenticate(connector.System, connector.Secrets, http.RoundTripper) http.RoundTripper {
	return nil
}

func (driver) Open(s connector.System) (connector.Target, error) {
	if len(s.Options) > 0 || s.BaseURL != "" || len(s.Endpoints) > 0 {
		return nil, fault.New(fault.Invalid, "System %q is of kind mock, which has neither options nor addresses; take them out of executor.yaml.", s.Name)
	}
	return &target{values: map[string]any{}}, nil
}

type target struct {
	mu     sync.Mutex
	values map[string]any
}

// Do reads or sets one value.
func (t *target) Do(ctx context.Context, c catalog.Call) (catalog.Seen, error) {
	refuse := func(reason, text string) (catalog.Seen, error) {
		return catalog.Seen{}, connector.Errorf(writ.NotExecuted, reason, 0, "%s", text)
	}
	if ctx.Err() != nil {
		return refuse("canceled", "The call was cancelled before it began.")
	}
	name := strings.TrimPrefix(c.Path, "/")
	if name == "" || strings.Contains(name, "/") || c.At != "" || c.Host != "" || c.Query != nil || c.Form != nil || c.Text != nil || c.IfMatch != "" {
		return refuse("bad_call", "A call of kind mock has a path /name and, to put, json; nothing else.")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case c.Verb == "put" && c.JSON != nil:
		t.values[name] = clone(c.JSON)
	case c.Verb == "get" && c.JSON == nil:
	default:
		return refuse("unknown_verb", "Kind mock gets without a body, and puts json.")
	}
	value, found := t.values[name]
	if !found && !c.AbsentOK {
		return refuse("not_found", "There is no value of that name.")
	}
	return catalog.Seen{Found: found, Data: clone(value)}, nil
}

// clone copies a JSON value, so that nobody outside holds what is kept.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for name, inner := range v {
			c[name] = clone(inner)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, inner := range v {
			c[i] = clone(inner)
		}
		return c
	}
	return v
}

// Check finds nothing wrong.
func (t *target) Check(context.Context) ([]string, error) { return nil, nil }

// Close forgets nothing that Open would keep.
func (t *target) Close() error { return nil }

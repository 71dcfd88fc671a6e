package connectortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"writ"
	"writ/catalog"
	"writ/connector"
	driver "writ/connector/http"
)

// vault is connector.Secrets from a map.
type vault map[string]string

func (v vault) Secret(name string) (connector.Secret, error) {
	value, ok := v[name]
	if !ok {
		return connector.Secret{}, fmt.Errorf("there is no secret %q", name)
	}
	return connector.NewSecret(value), nil
}

// session is an open target with the fake behind it.
type session struct {
	t      *testing.T
	suite  Suite
	world  World
	front  *front
	server *httptest.Server
	target connector.Target
}

// setup is what a row changes about a session.
type setup struct {
	secrets map[string]string                    // instead of the world's
	pin     func(server *httptest.Server) string // not nil: the server speaks TLS
	ends    map[string]string                    // endpoints
	options map[string]string                    // added to the world's
}

// open makes a world and opens it.
func open(t *testing.T, s Suite, with setup) *session {
	t.Helper()
	e := &session{t: t, suite: s, world: s.World(t)}
	target, err := e.open(with)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	e.target = target
	if e.world.Opened != nil {
		e.world.Opened(target)
	}
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

func (e *session) open(with setup) (connector.Target, error) {
	e.t.Helper()
	system := connector.System{Name: "world", Environment: "test", Options: map[string]string{}}
	for _, options := range []map[string]string{e.world.Options, with.options} {
		for name, value := range options {
			system.Options[name] = value
		}
	}
	if e.suite.HTTP == nil {
		return e.suite.Driver.Open(system)
	}
	e.front = &front{next: e.world.Fake}
	e.server = httptest.NewUnstartedServer(e.front)
	e.server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes
	pin := ""
	if with.pin != nil {
		e.server.StartTLS()
		pin = with.pin(e.server)
	} else {
		e.server.Start()
	}
	e.t.Cleanup(e.server.Close)
	e.t.Cleanup(e.world.Fake.Release) // before the server waits for its handlers
	system.BaseURL = e.server.URL + e.suite.HTTP.BasePath
	system.Endpoints = with.ends
	secrets := with.secrets
	if secrets == nil {
		secrets = e.world.Secrets
	}
	pinned, err := driver.Transport(pin, driver.Timeouts{})
	if err != nil {
		e.t.Fatalf("Transport: %v", err)
	}
	if system.Plain, err = driver.Transport("", driver.Timeouts{}); err != nil {
		e.t.Fatalf("Transport: %v", err)
	}
	system.Transport = e.suite.Driver.Authenticate(system, vault(secrets), pinned)
	return e.suite.Driver.Open(system)
}

// do makes a call. Whatever comes back is searched for secrets, and an error has
// to be of the right type.
func (e *session) do(ctx context.Context, call catalog.Call) (catalog.Seen, *connector.Error) {
	e.t.Helper()
	seen, err := e.target.Do(ctx, call)
	text, _ := json.Marshal(seen)
	e.clean(call.Verb+" answered", string(text))
	if err == nil {
		return seen, nil
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		e.clean(call.Verb+" failed with", fmt.Sprintf("%v %+v %#v", inner, inner, inner))
	}
	failed, ok := err.(*connector.Error)
	if !ok {
		e.t.Errorf("%s failed with a %T, want *connector.Error: %v", call.Verb, err, err)
		return seen, connector.Errorf("none", "none", 0, "%v", err)
	}
	switch failed.Outcome {
	case writ.NotExecuted, writ.Failed, writ.Unknown:
	default:
		e.t.Errorf("%s failed with outcome %q", call.Verb, failed.Outcome)
	}
	if failed.Reason == "" || strings.Trim(failed.Reason, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || failed.Text == "" {
		e.t.Errorf("%s failed with reason %q and text %q: a snake_case word and a sentence are needed", call.Verb, failed.Reason, failed.Text)
	}
	return seen, failed
}

// clean fails the test if text has a secret in it.
func (e *session) clean(what, text string) {
	e.t.Helper()
	secrets := []map[string]string{e.world.Secrets}
	if e.suite.HTTP != nil {
		secrets = append(secrets, e.suite.HTTP.Wrong, e.suite.HTTP.Powerless)
	}
	for _, known := range secrets {
		for name, value := range known {
			if value != "" && strings.Contains(text, value) {
				e.t.Errorf("%s the secret %q: %s", what, name, text)
			}
		}
	}
}

// ends checks how a call ended.
func (e *session) ends(what string, failed *connector.Error, outcome writ.Outcome, written bool) {
	e.t.Helper()
	if failed == nil {
		e.t.Errorf("%s: succeeded, want %s", what, outcome)
	} else if failed.Outcome != outcome {
		e.t.Errorf("%s: %s (%s: %s), want %s", what, failed.Outcome, failed.Reason, failed.Text, outcome)
	}
	if got := e.world.Written(); got != written {
		e.t.Errorf("%s: the effect is there: %v, want %v", what, got, written)
	}
}

// writes checks how many writes have reached the fake.
func (e *session) writes(what string, want int) {
	e.t.Helper()
	if e.world.Fake == nil {
		return
	}
	if got := e.world.Fake.Writes(); len(got) != want {
		e.t.Errorf("%s: %d writes reached the fake, want %d: %+v", what, len(got), want, got)
	}
}

// path is the escaped path of a call as it reaches the fake.
func (e *session) path(call catalog.Call) string { return e.suite.HTTP.BasePath + call.Path }

// front stands before the fake and sees what the recorder does not keep.
type front struct {
	next    http.Handler
	mu      sync.Mutex
	arrived []*http.Request
	instead func(http.ResponseWriter, *http.Request) bool // true: it has answered
}

func (f *front) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	f.mu.Lock()
	f.arrived = append(f.arrived, q)
	instead := f.instead
	f.mu.Unlock()
	if instead == nil || !instead(w, q) {
		f.next.ServeHTTP(w, q)
	}
}

func (f *front) requests() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*http.Request(nil), f.arrived...)
}

// answer makes the front answer the requests of a call itself.
func (e *session) answer(call catalog.Call, h http.HandlerFunc) {
	e.front.mu.Lock()
	defer e.front.mu.Unlock()
	path := e.path(call)
	e.front.instead = func(w http.ResponseWriter, q *http.Request) bool {
		if q.URL.EscapedPath() != path || !strings.EqualFold(q.Method, call.Verb) {
			return false
		}
		h(w, q)
		return true
	}
}

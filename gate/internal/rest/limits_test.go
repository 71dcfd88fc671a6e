package rest_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ/fault"
	"writ/gate/internal/auth"
	"writ/gate/internal/gatetest"
	"writ/gate/internal/rest"
	"writ/sys"
)

// limited is a gate with small limits, whose clock stands still.
func limited(t *testing.T, r auth.Rates) *gate {
	t.Helper()
	made := gatetest.New(t)
	s := sys.Real(slog.New(slog.DiscardHandler))
	now := s.Now()
	s.Now = func() time.Time { return now }
	made.Limits = auth.NewLimits(s, r)
	handler, err := rest.New(rest.Config{Gate: made.Gate, Who: made.Who, Log: s.Log})
	if err != nil {
		t.Fatal(err)
	}
	return &gate{t: t, handler: handler, tokens: made.Tokens}
}

// TestLimits: an agent that asks too much is told when to ask again, and keeps
// nobody else from being answered.
func TestLimits(t *testing.T) {
	t.Parallel()
	g := limited(t, auth.Rates{RequestsPerSecond: 5, ProposalsPerMinute: 2})
	tooMuch := func(method, path, body, reason string) {
		t.Helper()
		resp := g.serve(g.request("agent", method, path, body))
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, read(t, resp))
		}
		if p := g.refused(g.request("agent", method, path, body)); p.Code != fault.Exhausted || p.Reason != reason {
			t.Errorf("%+v", p)
		}
	}
	for range 2 {
		g.propose()
	}
	tooMuch("POST", "/v1/changes", proposal, "proposals_per_minute")
	// Nor by the paths of the system that came before, which answer in its words.
	old := g.serve(g.request("agent", "POST", "/controlled-execution/execute", controlled(t, nil)))
	if data := string(read(t, old)); old.StatusCode/100 != 4 || !strings.Contains(data, "proposals_per_minute") {
		t.Errorf("%d %s", old.StatusCode, data)
	}
	for range 5 {
		if resp := g.serve(g.request("agent", "GET", "/v1/policy", "")); resp.StatusCode != http.StatusOK {
			t.Errorf("%d %s", resp.StatusCode, read(t, resp))
		}
	}
	tooMuch("GET", "/v1/policy", "", "requests_per_second")
	for _, who := range []string{"approver", "other"} {
		if resp := g.serve(g.request(who, "GET", "/v1/policy", "")); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", who, resp.StatusCode)
		}
	}
}

// TestLimits_strangers: whoever has no token is counted too, and keeps nobody
// from being answered who calls from the same place with one.
func TestLimits_strangers(t *testing.T) {
	t.Parallel()
	g := limited(t, auth.Rates{RequestsPerSecond: 5, ProposalsPerMinute: 2})
	for range 20 {
		if p := g.refused(g.request("", "POST", "/v1/changes", proposal)); p.Code != fault.Unauthenticated {
			t.Fatalf("%+v", p)
		}
	}
	for range 3 {
		if p := g.refused(g.request("", "POST", "/v1/changes", proposal)); p.Code != fault.Exhausted || p.Reason != "strangers" {
			t.Errorf("%+v", p)
		}
	}
	g.propose()
}

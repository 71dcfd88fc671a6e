package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/ops"
)

const page = "https://chat.example.org"

// from makes a call from a page of an origin.
func (g *gate) from(origin, who, method, path, body string) *http.Request {
	r := g.request(who, method, path, body)
	r.Header.Set("Origin", origin)
	return r
}

// TestOrigins: a page of a configured origin may ask, and no other.
func TestOrigins(t *testing.T) {
	t.Parallel()
	g := newGate(t, page)
	resp := g.serve(g.from(page, "agent", "POST", "/v1/changes", proposal))
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Access-Control-Allow-Origin") != page || !slices.Contains(resp.Header.Values("Vary"), "Origin") {
		t.Errorf("asked: %d %v", resp.StatusCode, resp.Header)
	}
	if p := g.refused(g.from(page, "", "GET", "/v1/policy", "")); p.Code != fault.Unauthenticated {
		t.Errorf("without a token: %+v", p)
	}
	for _, other := range []string{"https://chat.example.org.evil.test", "http://chat.example.org", "https://chat.example.org:8443", "null", "*", ""} {
		r := g.from(other, "agent", "GET", "/v1/policy", "")
		if p := g.refused(r); p.Reason != "wrong_origin" {
			t.Errorf("%q: %+v", other, p)
		}
		if resp := g.serve(r); resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q is let in", other)
		}
	}
	two := g.from(page, "agent", "GET", "/v1/policy", "")
	two.Header.Add("Origin", page)
	if p := g.refused(two); p.Reason != "wrong_origin" {
		t.Errorf("two origins: %+v", p)
	}
	elsewhere := g.from(page, "agent", "GET", "/v1/policy", "")
	elsewhere.Host = "evil.test"
	if p := g.refused(elsewhere); p.Reason != "wrong_host" {
		t.Errorf("another host: %+v", p)
	}
}

// TestOrigins_preflight: browsers ask before they ask.
func TestOrigins_preflight(t *testing.T) {
	t.Parallel()
	g := newGate(t, page)
	ask := func(origin string) *http.Request {
		r := g.from(origin, "", "OPTIONS", "/v1/changes", "")
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
		return r
	}
	resp := g.serve(ask(page))
	h := resp.Header
	if resp.StatusCode != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != page || h.Get("Access-Control-Allow-Methods") != "GET, POST" ||
		!strings.HasPrefix(h.Get("Access-Control-Allow-Headers"), "Authorization, Content-Type, Idempotency-Key") || h.Get("Access-Control-Max-Age") == "" ||
		len(h.Values("Access-Control-Allow-Credentials")) != 0 {
		t.Errorf("%d %v", resp.StatusCode, h)
	}
	if p := g.refused(ask("https://evil.test")); p.Reason != "wrong_origin" {
		t.Errorf("%+v", p)
	}
	if resp := newGate(t).serve(ask(page)); resp.StatusCode != http.StatusForbidden || resp.Header.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("by default: %d %v", resp.StatusCode, resp.Header)
	}
}

// TestOrigins_decide: from another origin nobody decides, whatever the token.
func TestOrigins_decide(t *testing.T) {
	t.Parallel()
	g := newGate(t, page)
	id := g.propose().ID
	for _, op := range ops.All() {
		if !slices.Contains(op.Roles, model.Approver) {
			continue
		}
		if p := g.refused(g.from(page, "admin", op.Method, strings.Replace(op.Path, "{id}", id, 1), g.agreement(id))); p.Code != fault.Denied || p.Reason != "wrong_origin" {
			t.Errorf("%s: %+v", op.Name, p)
		}
	}
}

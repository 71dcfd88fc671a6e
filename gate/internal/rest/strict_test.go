package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"writ/fault"
)

// TestHostAndOrigin tries who may say what about where the call goes and comes from.
//
// Case: C143.
func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, c := range []struct {
		host    string
		origins []string
		reason  string
	}{
		{"localhost", nil, ""},
		{"LOCALHOST:7443", nil, ""},
		{"127.0.0.1", nil, ""},
		{"127.0.0.1:7443", nil, ""},
		{"[::1]:7443", nil, ""},
		{"[::1]", nil, ""},
		{"writ.example.org", nil, ""},
		{"Writ.Example.org:443", nil, ""},
		{"", nil, "wrong_host"},
		{"writ.example.org.", nil, "wrong_host"},
		{"writ.example.org.evil.test", nil, "wrong_host"},
		{"evil.test", nil, "wrong_host"},
		{"localhost.evil.test", nil, "wrong_host"},
		{"192.0.2.1", nil, "wrong_host"},
		{"0.0.0.0:7443", nil, "wrong_host"},
		{"127.0.0.1.evil.test:7443", nil, "wrong_host"},
		{"localhost:7443", []string{"http://localhost:7443"}, ""},
		{"writ.example.org", []string{"https://writ.example.org"}, ""},
		{"localhost:7443", []string{"http://localhost"}, "wrong_origin"},
		{"localhost:7443", []string{"http://127.0.0.1:7443"}, "wrong_origin"},
		{"localhost:7443", []string{"https://evil.test"}, "wrong_origin"},
		{"localhost:7443", []string{"null"}, "wrong_origin"},
		{"localhost:7443", []string{""}, "wrong_origin"},
		{"localhost:7443", []string{"http://localhost:7443", "https://evil.test"}, "wrong_origin"},
		{"localhost:7443", []string{"http://localhost:7443.evil.test"}, "wrong_origin"},
		{"localhost:7443", []string{"file://localhost:7443"}, "wrong_origin"},
	} {
		body := &reader{Reader: strings.NewReader(proposal)}
		r := g.request("agent", "POST", "/v1/changes", proposal)
		r.Host, r.Body = c.host, body
		if c.origins != nil {
			r.Header["Origin"] = c.origins
		}
		if c.reason == "" {
			if resp := g.serve(r); resp.StatusCode != http.StatusOK {
				t.Errorf("host %q, origin %q: %d %s", c.host, c.origins, resp.StatusCode, read(t, resp))
			}
			continue
		}
		if p := g.refused(r); p.Code != fault.Denied || p.Reason != c.reason || p.Status != 403 {
			t.Errorf("host %q, origin %q: %+v", c.host, c.origins, p)
		}
		if body.read {
			t.Errorf("host %q, origin %q: the body was read", c.host, c.origins)
		}
	}
}

// reader notes whether it was read.
type reader struct {
	*strings.Reader
	read bool
}

func (r *reader) Read(b []byte) (int, error) { r.read = true; return r.Reader.Read(b) }
func (r *reader) Close() error               { return nil }

func TestToken(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	good := g.tokens["agent"]
	for _, header := range [][]string{
		nil, {""}, {"Bearer"}, {"Bearer "}, {"Bearer x"}, {"Basic " + good}, {good}, {"Bearer  " + good},
		{"Bearer " + good, "Bearer " + good}, {"Bearer " + good + "," + good}, {"Bearer " + strings.ToUpper(good)},
	} {
		r := g.request("", "GET", "/v1/policy", "")
		r.Header["Authorization"] = header
		resp := g.serve(r)
		if resp.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%q: %d %v", header, resp.StatusCode, resp.Header)
		}
	}
	r := g.request("", "GET", "/v1/policy", "")
	r.Header.Set("Authorization", "bearer "+good) // RFC 9110: schemes have no case
	if resp := g.serve(r); resp.StatusCode != http.StatusOK {
		t.Errorf("bearer in lower case: %d", resp.StatusCode)
	}
	if strings.Contains(g.log.String(), good) {
		t.Error("the log holds a token")
	}
}

func TestBody_strict(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	step := `{"action_type":"mock.noop_change","params":{"value":"x"}}`
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	for name, body := range map[string]string{
		"duplicate member":     `{"steps":[` + step + `],"steps":[` + step + `]}`,
		"duplicate in a param": `{"steps":[{"action_type":"mock.noop_change","params":{"value":"x","value":"y"}}]}`,
		"other case":           `{"Steps":[` + step + `]}`,
		"other case beside":    `{"steps":[` + step + `],"PURPOSE":"x"}`,
		"unknown member":       `{"steps":[` + step + `],"approved":true}`,
		"unknown in a step":    `{"steps":[{"action_type":"mock.noop_change","params":{"value":"x"},"backup_required":false}]}`,
		"rollback_of":          `{"steps":[` + step + `],"rollback_of":"chg_x"}`,
		"no steps":             `{"steps":[]}`,
		"steps missing":        `{}`,
		"null":                 `null`,
		"null for a sentence":  `{"steps":[` + step + `],"purpose":null}`,
		"null in a step":       `{"steps":[{"action_type":"mock.noop_change","params":{"value":"x"},"needs":null}]}`,
		"list":                 `[` + step + `]`,
		"trailing data":        `{"steps":[` + step + `]}{}`,
		"fraction":             `{"steps":[{"action_type":"mock.noop_change","params":{"value":1.5}}]}`,
		"exponent":             `{"steps":[{"action_type":"mock.noop_change","params":{"value":1e3}}]}`,
		"big number":           `{"steps":[{"action_type":"mock.noop_change","params":{"value":9007199254740993}}]}`,
		"invalid UTF-8":        "{\"steps\":[" + step + "],\"purpose\":\"\xff\"}",
		"lone surrogate":       `{"steps":[` + step + `],"purpose":"\ud800"}`,
		"too deep":             `{"steps":[{"action_type":"mock.noop_change","params":` + deep + `}]}`,
		"too large":            `{"steps":[` + step + `],"purpose":"` + strings.Repeat("x", 1<<20) + `"}`,
		"sentence too long":    `{"steps":[` + step + `],"purpose":"` + strings.Repeat("x", 4001) + `"}`,
		"wrong type":           `{"steps":"all"}`,
		"unknown risk":         `{"steps":[` + step + `],"declared_risk":"none"}`,
		"not JSON":             `steps: []`,
		"nothing":              ``,
	} {
		r := g.request("agent", "POST", "/v1/changes", body)
		r.Header.Set("Content-Type", "application/json")
		if p := g.refused(r); p.Code != fault.Invalid || p.Status != 400 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if list := len(g.listed()); list != 0 {
		t.Errorf("%d changes were taken in", list)
	}
}

func (g *gate) listed() []any {
	g.t.Helper()
	return call[struct{ Changes []any }](g, "auditor", "GET", "/v1/changes", "").Changes
}

func TestBody_contentType(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json; charset=utf-16", "application/jsonx"} {
		r := g.request("agent", "POST", "/v1/changes", proposal)
		r.Header.Set("Content-Type", kind)
		if p := g.refused(r); p.Code != fault.Invalid || p.Reason != "content_type" {
			t.Errorf("%q: %+v", kind, p)
		}
	}
	r := g.request("agent", "POST", "/v1/changes", proposal)
	r.Header.Set("Content-Encoding", "gzip")
	if p := g.refused(r); p.Reason != "content_type" {
		t.Errorf("gzip: %+v", p)
	}
	// An operation without a body takes none, or an empty object.
	id := g.propose().ID
	if p := g.refused(g.request("agent", "POST", "/v1/changes/"+id+"/cancellation", `{"force":true}`)); p.Code != fault.Invalid {
		t.Errorf("a body where none belongs: %+v", p)
	}
	if resp := g.serve(g.request("agent", "POST", "/v1/changes/"+id+"/cancellation", `{}`)); resp.StatusCode != http.StatusOK {
		t.Errorf("an empty object: %d %s", resp.StatusCode, read(t, resp))
	}
}

func TestQuery_strict(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, query := range []string{
		"?limit=0", "?limit=1001", "?limit=x", "?limit=1&limit=2", "?Limit=1", "?limits=1", "?state=nonsense", "?limit=%zz", "?limit=1.0", "?limit=",
	} {
		if p := g.refused(g.request("auditor", "GET", "/v1/changes"+query, "")); p.Code != fault.Invalid {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// TestProblem_repeatsNoValue: what was sent may be a secret in the wrong place.
func TestProblem_repeatsNoValue(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	const secret = "hunter2-not-a-real-secret"
	for _, r := range []*http.Request{
		g.request("agent", "POST", "/v1/changes", `{"steps":"`+secret+`"}`),
		g.request("agent", "POST", "/v1/changes", `{"steps":[{"action_type":"mock.noop_change","params":{"value":7,"password":"`+secret+`"}}]}`),
		g.request("agent", "POST", "/v1/changes", `{"steps":[],"on_failure":"`+secret+`"}`),
		g.request("agent", "POST", "/v1/changes", `{"steps":[],"password":"`+secret+`"}`),
		g.request("agent", "POST", "/v1/changes", `{"steps":["`+secret),
		g.request("agent", "GET", "/v1/changes?state="+secret, ""),
		g.request("agent", "GET", "/v1/changes?limit="+secret, ""),
		g.request("agent", "GET", "/v1/actions/"+secret, ""),
	} {
		resp := g.serve(r)
		if data := read(t, resp); strings.Contains(string(data), secret) || resp.StatusCode/100 != 4 {
			t.Errorf("%s %s: %d %s", r.Method, r.URL.Path, resp.StatusCode, data)
		}
	}
	if strings.Contains(strings.ReplaceAll(g.log.String(), "/v1/actions/"+secret, ""), secret) {
		t.Errorf("the log holds it:\n%s", g.log)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, path := range []string{"/v1/policy", "/", "/docs", "/v1/changes/chg_x"} {
		resp := g.serve(g.request("agent", "GET", path, ""))
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if path != "/v1/policy" && resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: another origin is let in", path)
		}
	}
	for path, methods := range map[string]string{"/v1/policy": "GET", "/v1/changes": "GET, POST", "/v1/changes/x/rejection": "POST"} {
		for _, method := range []string{"DELETE", "PUT", "PATCH", "TRACE"} {
			r := g.request("agent", method, path, "")
			if p := g.refused(r); p.Status != http.StatusMethodNotAllowed || p.Code != fault.NotFound {
				t.Errorf("%s %s: %+v", method, path, p)
			}
			if resp := g.serve(r); resp.Header.Get("Allow") != methods {
				t.Errorf("%s %s: %q is allowed, and not %q", method, path, resp.Header.Get("Allow"), methods)
			}
		}
	}
}

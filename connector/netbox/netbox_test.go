package netbox_test

import (
	"errors"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/connectortest"
	"writ/connector/http"
	"writ/connector/netbox"
	"writ/connector/netbox/fake"
	"writ/connector/recorder"
)

// Tokens of the tests. They are made up.
const (
	old     = "0123456789abcdef0123456789abcdef01234567"
	full    = "nbt_fullfullfull.0000000000000000000000000000000000000000"
	blind   = "nbt_blindblindbl.0000000000000000000000000000000000000000"
	reading = "nbt_readreadread.0000000000000000000000000000000000000000"
	limited = "nbt_onlyonlyonly.0000000000000000000000000000000000000000"
	nobody  = "nbt_nobodynobody.0000000000000000000000000000000000000000"
)

func newFake(config fake.Config) *fake.Server {
	config.Demo = true
	config.Tokens = []fake.Token{
		{User: "old", Secret: old, Write: true}, {User: "full", Secret: full, Write: true},
		{User: "blind", Secret: blind, Write: true, Deny: []string{"view extras.tag"}},
		{User: "reading", Secret: reading},
		{User: "limited", Secret: limited, Write: true, Only: func(_ string, values map[string]any) bool { return values["name"] != "private" }},
	}
	return fake.New(config)
}

// has asks the fake itself whether a list is not empty.
func has(s *fake.Server, path string) bool {
	q := httptest.NewRequest(nethttp.MethodGet, path, nil)
	q.Header.Set("Authorization", "Bearer "+full)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, q)
	return !strings.Contains(w.Body.String(), `"count":0`)
}

func TestDriver(t *testing.T) {
	t.Parallel()
	for version, token := range map[string]string{"v1": old, "v2": full} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			connectortest.Run(t, connectortest.Suite{
				Driver: netbox.New(),
				World: func(*testing.T) connectortest.World {
					s := newFake(fake.Config{})
					return connectortest.World{Fake: s.Recorder, Secrets: map[string]string{"token": token},
						Written: func() bool { return has(s, "/api/extras/tags/?slug=suite") }}
				},
				Read:   catalog.Call{Verb: "get", Path: "/extras/tags/1/"},
				Write:  catalog.Call{Verb: "post", Path: "/extras/tags/", JSON: map[string]any{"name": "suite", "slug": "suite"}},
				Absent: catalog.Call{Verb: "get", Path: "/extras/tags/99/"},
				HTTP: &connectortest.HTTP{
					BasePath:  "/api",
					Wrong:     map[string]string{"token": nobody},
					Powerless: map[string]string{"token": blind},
					Privilege: "extras.view_tag",
					Answers:   answers,
				},
			})
		})
	}
}

// answers is what NetBox means by an answer to a write.
var answers = []connectortest.Answer{
	{Status: 202, Body: `{"id":1}`, Outcome: writ.Unknown, Reason: "only_accepted"},
	{Status: 301, Outcome: writ.NotExecuted, Reason: "redirect_refused"},
	{Status: 302, Outcome: writ.Unknown, Reason: "redirect_refused"},
	{Status: 400, Body: `{"slug":["This field is required."]}`, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 400, Body: `{"detail":"Tag x cannot be assigned to prefix objects."}`, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 400, Body: `[{},{"slug":["This field is required."]}]`, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 400, Body: `{"slug":["tag with this slug already exists."]}`, Outcome: writ.NotExecuted, Reason: "already_exists"},
	{Status: 400, Body: `{"address":["Duplicate IP address found in global table: 192.0.2.1/24"]}`, Outcome: writ.NotExecuted, Reason: "already_exists"},
	{Status: 400, Body: `{"prefix":["Duplicate prefix found in VRF x: 192.0.2.0/24"]}`, Outcome: writ.NotExecuted, Reason: "already_exists"},
	{Status: 400, Body: `{"detail":"x already exists."}`, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 403, Body: `{"detail":"You do not have permission to perform this action."}`, Outcome: writ.Failed, Reason: "permission_denied"},
	{Status: 403, Body: `{"detail":"Invalid v1 token"}`, Outcome: writ.NotExecuted, Reason: "unauthenticated"},
	{Status: 403, Body: `{"detail":"Token expired"}`, Outcome: writ.NotExecuted, Reason: "unauthenticated"},
	{Status: 403, Body: `{"detail":"Source IP 192.0.2.1 is not permitted to authenticate using this token."}`, Outcome: writ.NotExecuted, Reason: "unauthenticated"},
	{Status: 403, Body: "<h1>Forbidden</h1>", Outcome: writ.NotExecuted, Reason: "unauthenticated"},
	{Status: 404, Body: `{"detail":"No Tag matches the given query."}`, Outcome: writ.NotExecuted, Reason: "not_found"},
	{Status: 405, Outcome: writ.NotExecuted, Reason: "method_not_allowed"},
	{Status: 409, Body: `{"detail":"Insufficient resources are available to satisfy the request"}`, Outcome: writ.NotExecuted, Reason: "conflict"},
	{Status: 412, Body: `{"detail":"Precondition failed."}`, Outcome: writ.NotExecuted, Reason: "precondition_failed"},
	{Status: 415, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 429, Outcome: writ.NotExecuted, Reason: "rate_limited"},
	{Status: 500, Body: `{"error":"x","exception":"OperationalError"}`, Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 502, Body: "Bad Gateway", Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 503, Body: "Service Unavailable", Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 503, Body: `{"error":"NetBox is currently operating in maintenance mode and is unable to perform write operations. Please try again later.","exception":"InternalError"}`, Outcome: writ.NotExecuted, Reason: "maintenance"},
	{Status: 504, Outcome: writ.Unknown, Reason: "server_error"},
}

type vault map[string]string

func (v vault) Secret(name string) (connector.Secret, error) {
	if v[name] == "" {
		return connector.Secret{}, errors.New("no such secret")
	}
	return connector.NewSecret(v[name]), nil
}

func open(t *testing.T, s *fake.Server, token string) connector.Target {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	d := netbox.New()
	next, err := http.Transport("", http.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	system := connector.System{Name: "ipam", BaseURL: h.URL + "/api"}
	system.Transport = d.Authenticate(system, vault{"token": token}, next)
	target, err := d.Open(system)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestOutcome asks the fake itself, so that table and fake cannot both be wrong in the same way unseen: what is said
// not to have happened has not.
func TestOutcome(t *testing.T) {
	t.Parallel()
	tag := func(name string) any { return map[string]any{"name": name, "slug": name} }
	for name, c := range map[string]struct {
		config  fake.Config
		token   string
		call    catalog.Call
		outcome writ.Outcome // "" is success
		reason  string
		says    string
		left    string // list that is not empty afterwards
		none    string // list that is empty afterwards
	}{
		"created": {token: old, call: catalog.Call{Verb: "post", Path: "/extras/tags/", JSON: tag("x")}, left: "extras/tags/?slug=x"},
		"read-only token": {token: reading, call: catalog.Call{Verb: "post", Path: "/extras/tags/", JSON: tag("x")},
			outcome: writ.Failed, reason: "permission_denied", says: "You do not have permission", none: "extras/tags/?slug=x"},
		"rolled back": {token: limited, call: catalog.Call{Verb: "post", Path: "/extras/tags/", JSON: tag("private")},
			outcome: writ.Failed, reason: "permission_denied", none: "extras/tags/?slug=private"},
		"unknown token": {token: nobody, call: catalog.Call{Verb: "post", Path: "/extras/tags/", JSON: tag("x")},
			outcome: writ.NotExecuted, reason: "unauthenticated", says: "Invalid v2 token", none: "extras/tags/?slug=x"},
		"taken slug": {token: full, call: catalog.Call{Verb: "post", Path: "/extras/tags/", JSON: tag("managed")},
			outcome: writ.NotExecuted, reason: "already_exists", says: "tag with this name already exists."},
		"taken address": {config: fake.Config{EnforceUnique: true}, token: full,
			call:    catalog.Call{Verb: "post", Path: "/ipam/ip-addresses/", JSON: map[string]any{"address": "192.0.2.1/24", "description": "mine"}},
			outcome: writ.NotExecuted, reason: "already_exists", none: "ipam/ip-addresses/?description=mine"},
		"invalid": {token: full, call: catalog.Call{Verb: "post", Path: "/extras/tags/", JSON: map[string]any{"name": "x", "slug": "a b"}},
			outcome: writ.Failed, reason: "rejected", says: `Enter a valid \"slug\"`, none: "extras/tags/?name=x"},
		"no slash": {token: full, call: catalog.Call{Verb: "post", Path: "/extras/tags", JSON: tag("x")},
			outcome: writ.NotExecuted, reason: "redirect_refused", says: "trailing slash", none: "extras/tags/?slug=x"},
		"moved on": {token: full, call: catalog.Call{Verb: "patch", Path: "/extras/tags/1/", IfMatch: `W/"2020-01-01T00:00:00+00:00"`, JSON: map[string]any{"color": "000000"}},
			outcome: writ.NotExecuted, reason: "precondition_failed", none: "extras/tags/?color=000000"},
		"lost id": {token: full, call: catalog.Call{Verb: "patch", Path: "/extras/tags/", JSON: map[string]any{"color": "000000"}},
			outcome: writ.Failed, reason: "rejected", none: "extras/tags/?color=000000"},
		"maintenance": {config: fake.Config{Maintenance: true}, token: full, call: catalog.Call{Verb: "delete", Path: "/extras/tags/1/"},
			outcome: writ.NotExecuted, reason: "maintenance", left: "extras/tags/?slug=managed"},
		"deleted": {token: full, call: catalog.Call{Verb: "delete", Path: "/extras/tags/1/"}, none: "extras/tags/?slug=managed"},
		"gone":    {token: full, call: catalog.Call{Verb: "delete", Path: "/extras/tags/9/"}, outcome: writ.NotExecuted, reason: "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFake(c.config)
			_, err := open(t, s, c.token).Do(t.Context(), c.call)
			failed, _ := err.(*connector.Error)
			switch {
			case (err == nil) != (c.outcome == ""):
				t.Errorf("got %v, want outcome %q", err, c.outcome)
			case err != nil && (failed.Outcome != c.outcome || failed.Reason != c.reason || !strings.Contains(failed.Text, c.says)):
				t.Errorf("got %s, %s, %q; want %s, %s, %q", failed.Outcome, failed.Reason, failed.Text, c.outcome, c.reason, c.says)
			}
			if c.left != "" && !has(s, "/api/"+c.left) || c.none != "" && has(s, "/api/"+c.none) {
				t.Errorf("the fake does not have what %q says", c.outcome)
			}
			if n := len(s.Writes()); n != 1 {
				t.Errorf("%d writes arrived, want 1", n)
			}
		})
	}
}

// TestETag takes the version of an object from a read into a write.
func TestETag(t *testing.T) {
	t.Parallel()
	target := open(t, newFake(fake.Config{}), full)
	change := func(etag, color string) error {
		_, err := target.Do(t.Context(), catalog.Call{Verb: "patch", Path: "/extras/tags/1/", IfMatch: etag, JSON: map[string]any{"color": color}})
		return err
	}
	seen, err := target.Do(t.Context(), catalog.Call{Verb: "get", Path: "/extras/tags/1/"})
	if err != nil || seen.ETag == "" {
		t.Fatalf("%+v, %v", seen, err)
	}
	if err := change(seen.ETag, "000000"); err != nil {
		t.Errorf("with the ETag as read: %v", err)
	}
	if err := change(seen.ETag, "111111"); err == nil {
		t.Error("a second write with the old ETag succeeded")
	}
}

// TestAuthorization: the word goes with the version of the token. Some releases take a v2 token in no other way.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{old: "Token " + old, full: "Bearer " + full} {
		var got string
		send := netbox.New().Authenticate(connector.System{}, vault{"token": token}, http.RoundTripper(func(q *nethttp.Request) (*nethttp.Response, error) {
			got = q.Header.Get("Authorization")
			return httptest.NewRecorder().Result(), nil
		}))
		q := httptest.NewRequest(nethttp.MethodGet, "/api/status/", nil)
		if _, err := send.RoundTrip(q); err != nil || got != want || q.Header.Get("Authorization") != "" {
			t.Errorf("sent %q, %v, and left %q; want %q and the request as it was", got, err, q.Header.Get("Authorization"), want)
		}
	}
}

// TestAbsent: only NetBox itself can say that an object does not exist.
func TestAbsent(t *testing.T) {
	t.Parallel()
	s := newFake(fake.Config{})
	s.Inject(recorder.Fault{Path: "/api/dcim/sites/7/", Mode: "answer", Status: 404, Body: `{"detail":"Not found."}`})
	target := open(t, s, full)
	for path, absent := range map[string]bool{"/extras/tags/99/": true, "/extras/tagz/99/": false, "/dcim/sites/7/": false, "/ipam/prefixes/99/available-ips/": true} {
		seen, err := target.Do(t.Context(), catalog.Call{Verb: "get", Path: path, AbsentOK: true})
		if (err == nil) != absent || seen.Found {
			t.Errorf("%s: %+v, %v; want absent: %v", path, seen, err, absent)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{
		full: "", reading: "", old: "",
		nobody: "NetBox does not take the token.", blind: "The token's user lacks the permission extras.view_tag; grant it in NetBox.",
	} {
		wrong, err := open(t, newFake(fake.Config{}), token).Check(t.Context())
		if text := strings.Join(wrong, " "); err != nil || (want == "") != (text == "") || !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q, %v; want %q", token, text, err, want)
		}
	}
}

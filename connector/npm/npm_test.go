package npm_test

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
	"writ/connector/npm"
	"writ/connector/npm/fake"
	"writ/connector/recorder"
	"writ/fault"
)

const password = "made-up password"

// account is somebody who connects.
type account struct{ name, secret string }

func by(name string) account { return account{name, password} }

func (a account) options() map[string]string {
	return map[string]string{"identity": a.name + "@example.test"}
}

func newFake() *fake.Server {
	s := fake.New(fake.Config{
		Users: []fake.User{
			{Email: "admin@example.test", Secret: password, Admin: true},
			{Email: "viewer@example.test", Secret: password, Visibility: "all", ProxyHosts: "view"},
			{Email: "second@example.test", Secret: password, TOTP: true},
		},
		Hosts: []fake.Host{{Domain: "app.example.test", Scheme: "http", Forward: "127.0.0.1", Port: 8081}},
	})
	return s
}

var (
	read  = catalog.Call{Verb: "get", Path: "/nginx/proxy-hosts/1"}
	write = catalog.Call{Verb: "put", Path: "/nginx/proxy-hosts/1", JSON: map[string]any{"forward_port": int64(8082)}}
)

func TestDriver(t *testing.T) {
	t.Parallel()
	secret := map[string]string{"secret": password}
	connectortest.Run(t, connectortest.Suite{
		Driver: npm.New(),
		World: func(t *testing.T) connectortest.World {
			s := newFake()
			own, who := connected(t, s, by("admin")), by("admin")
			if strings.HasSuffix(t.Name(), "powerless_account") { // who it is stands in the options, not in the secrets
				who = by("viewer")
			}
			return connectortest.World{Fake: s.Recorder, Options: who.options(), Secrets: secret, Written: func() bool {
				seen, err := own.Do(t.Context(), catalog.Call{Verb: "get", Path: "/nginx/proxy-hosts"})
				if err != nil {
					t.Error(err)
					return false
				}
				return seen.Data.([]any)[0].(map[string]any)["forward_port"] == int64(8082)
			}}
		},
		Read:   read,
		Write:  write,
		Absent: catalog.Call{Verb: "get", Path: "/nginx/proxy-hosts/99"},
		HTTP: &connectortest.HTTP{
			BasePath:  "/api",
			Wrong:     map[string]string{"secret": "a wrong password"},
			Powerless: secret,
			Privilege: "proxy_hosts",
			Answers:   answers,
		},
	})
}

func said(message string) string { return `{"error":{"code":0,"message":"` + message + `"}}` }

// answers is what Nginx Proxy Manager means by an answer to a write.
var answers = []connectortest.Answer{
	{Status: 301, Outcome: writ.NotExecuted, Reason: "redirect_refused"},
	{Status: 400, Body: said("data must NOT have additional properties"), Outcome: writ.Failed, Reason: "rejected"},
	{Status: 400, Body: said("Internal Error"), Outcome: writ.Failed, Reason: "rejected"},
	{Status: 400, Body: said("app.example.test is already in use"), Outcome: writ.NotExecuted, Reason: "already_exists"},
	{Status: 400, Body: said("Host is already disabled"), Outcome: writ.NotExecuted, Reason: "conflict"},
	{Status: 400, Body: said("Token has expired"), Outcome: writ.NotExecuted, Reason: "unauthenticated"},
	{Status: 403, Body: said("Permission Denied"), Outcome: writ.NotExecuted, Reason: "permission_denied"},
	{Status: 404, Body: said("Not Found - /nginx/proxy-hosts/1"), Outcome: writ.NotExecuted, Reason: "permission_denied"},
	{Status: 404, Body: said("Not Found - 1"), Outcome: writ.NotExecuted, Reason: "not_found"},
	{Status: 500, Body: said("Internal Error"), Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 502, Body: "Bad Gateway", Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 504, Outcome: writ.Unknown, Reason: "server_error"},
}

type vault map[string]string

func (v vault) Secret(name string) (connector.Secret, error) {
	if v[name] == "" {
		return connector.Secret{}, errors.New("no such secret")
	}
	return connector.NewSecret(v[name]), nil
}

// connected opens the fake as a system, over a server of its own.
func connected(t *testing.T, s *fake.Server, who account) connector.Target {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	next, err := http.Transport("", http.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	return over(t, h.URL+"/api", next, who)
}

func over(t *testing.T, base string, next nethttp.RoundTripper, who account) connector.Target {
	t.Helper()
	d := npm.New()
	system := connector.System{Name: "proxy", BaseURL: base, Options: who.options()}
	system.Transport = d.Authenticate(system, vault{"secret": who.secret}, next)
	target, err := d.Open(system)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestOutcome_http: what nginx made of a change is no matter of the call: a 200 is a success, a 500 says nothing.
func TestOutcome_http(t *testing.T) {
	t.Parallel()
	s := newFake()
	target := connected(t, s, by("admin"))
	s.BreakNginx(1, "[emerg] made up")
	seen, err := target.Do(t.Context(), write)
	if err != nil {
		t.Fatalf("200 with nginx_online:false: %v", err)
	}
	meta, _ := seen.Data.(map[string]any)["meta"].(map[string]any)
	if meta["nginx_online"] != false || meta["nginx_err"] != "[emerg] made up" {
		t.Errorf("meta is %v", meta)
	}
	s.Repair()
	s.BreakOther()
	change := write
	change.JSON = map[string]any{"forward_port": int64(8090)}
	_, err = target.Do(t.Context(), change)
	failed, _ := err.(*connector.Error)
	if failed == nil || failed.Outcome != writ.Unknown || failed.Status != 500 {
		t.Errorf("500 after a PUT: %+v, want unknown", failed)
	}
	seen, err = target.Do(t.Context(), read)
	if err != nil || seen.Data.(map[string]any)["forward_port"] != int64(8090) {
		t.Errorf("the row after the 500: %+v, %v; want it changed", seen.Data, err)
	}
	if n := len(s.Writes()); n != 2 {
		t.Errorf("%d writes arrived, want 2", n)
	}
}

// TestAbsent: the 404 of a missing permission is not "there is no such host".
func TestAbsent(t *testing.T) {
	t.Parallel()
	s := newFake()
	for _, c := range []struct {
		who, path string
		absent    bool
	}{{"admin", "/nginx/proxy-hosts/99", true}, {"admin", "/nginx/proxy-hoasts/1", false}, {"second", "/nginx/proxy-hosts/1", false}, {"viewer", "/audit-log", false}} {
		seen, err := connected(t, s, by(c.who)).Do(t.Context(), catalog.Call{Verb: "get", Path: c.path, AbsentOK: true})
		if (err == nil) != c.absent || seen.Found {
			t.Errorf("%s %s: %+v, %v; want absent: %v", c.who, c.path, seen, err, c.absent)
		}
	}
	_, err := connected(t, s, by("viewer")).Do(t.Context(), write)
	failed, _ := err.(*connector.Error)
	if failed == nil || failed.Outcome != writ.NotExecuted || failed.Reason != "permission_denied" || !strings.Contains(failed.Text, "does not say which") {
		t.Errorf("a write without permission: %+v", failed)
	}
}

// TestLogin_refused: whatever is wrong with the login, the call was not sent.
func TestLogin_refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		who    account
		fault  recorder.Fault
		reason string
		says   string
	}{
		"wrong password": {who: account{"admin", "x"}, reason: "unauthenticated", says: "Invalid email or password"},
		"second factor":  {who: by("second"), reason: "second_factor", says: "account of its own"},
		"no secret":      {who: account{"admin", ""}, reason: "secret_missing", says: "nothing was sent"},
		"wrong path":     {who: by("admin"), fault: recorder.Fault{Status: 404, Body: "{}"}, reason: "login_failed", says: "404"},
		"no JSON":        {who: by("admin"), fault: recorder.Fault{Status: 200, Body: "<html>"}, reason: "login_failed", says: "base_url"},
		"redirect":       {who: by("admin"), fault: recorder.Fault{Status: 302}, reason: "redirect_refused", says: "base_url"},
		"broken server":  {who: by("admin"), fault: recorder.Fault{Status: 502}, reason: "login_failed", says: "502"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFake()
			if c.fault.Status != 0 {
				c.fault.Mode, c.fault.Path = "answer", "/api/tokens"
				s.Inject(c.fault)
			}
			_, err := connected(t, s, c.who).Do(t.Context(), write)
			failed, _ := err.(*connector.Error)
			if failed == nil || failed.Outcome != writ.NotExecuted || failed.Reason != c.reason || !strings.Contains(failed.Text, c.says) {
				t.Errorf("got %+v, want not_executed, %s, %q", failed, c.reason, c.says)
			}
			if n := len(s.Writes()); n != 0 {
				t.Errorf("%d writes arrived, want none", n)
			}
		})
	}
	s := newFake()
	s.Inject(recorder.Fault{Mode: "cut_after", Path: "/api/tokens"})
	_, err := connected(t, s, by("admin")).Do(t.Context(), write)
	if failed, _ := err.(*connector.Error); failed == nil || failed.Outcome != writ.NotExecuted || strings.Contains(failed.Text, "may have had its effect") {
		t.Errorf("a login cut off: %+v, want not_executed: the call was never sent", failed)
	}
}

func TestOpen_identity(t *testing.T) {
	t.Parallel()
	_, err := npm.New().Open(connector.System{Name: "proxy", BaseURL: "http://proxy.example.test/api", Transport: nethttp.DefaultTransport})
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "identity") {
		t.Errorf("without an identity: %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for who, want := range map[string]string{
		"admin": "", "viewer": "The account may not change proxy hosts: its permission proxy_hosts is view; set it to manage.",
		"nobody": "The system does not take the account: Invalid email or password. Correct the option identity, or the password in the vault.",
	} {
		wrong, err := connected(t, newFake(), by(who)).Check(t.Context())
		if text := strings.Join(wrong, " "); err != nil || text != want {
			t.Errorf("%s: %q, %v; want %q", who, text, err, want)
		}
	}
	if wrong, err := connected(t, newFake(), by("second")).Check(t.Context()); err == nil {
		t.Errorf("a second factor: %q, want an error", wrong)
	}
}

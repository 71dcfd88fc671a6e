package fake_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ/connector/connectortest"
	"writ/connector/npm/fake"
)

// step is one request and what must come back.
type step struct {
	do     string // "METHOD /path below /api"
	as     string // email of the user; empty is the administrator, "-" is nobody, "raw x" is the token x
	send   string // body
	form   bool   // the body is a form
	status int
	want   string             // JSON that the answer must contain, see contains
	before func(*fake.Server) // what happens to the server first
}

// row is one behaviour: steps against a new server with one proxy host, app.example.test.
type row struct {
	name  string
	steps []step
	audit int // entries that the audit log has at the end
}

const password = "made-up password"

func users() []fake.User {
	return []fake.User{
		{Email: "admin@example.test", Secret: password, Admin: true},
		{Email: "viewer@example.test", Secret: password, Visibility: "all", ProxyHosts: "view"},
		{Email: "owner@example.test", Secret: password, ProxyHosts: "manage"},
		{Email: "totp@example.test", Secret: password, TOTP: true},
		{Email: "gone@example.test", Secret: password, Admin: true, Disabled: true},
	}
}

// client asks one server, and logs in when it has to.
type client struct {
	base   string
	tokens map[string]string
}

func (c *client) ask(t *testing.T, s step) (int, http.Header, []byte) {
	t.Helper()
	method, path, _ := strings.Cut(s.do, " ")
	q, err := http.NewRequestWithContext(t.Context(), method, c.base+"/api"+path, strings.NewReader(s.send))
	if err != nil {
		t.Fatal(err)
	}
	if s.send != "" {
		q.Header.Set("Content-Type", map[bool]string{true: "application/x-www-form-urlencoded", false: "application/json"}[s.form])
	}
	if token, raw := strings.CutPrefix(s.as, "raw "); raw {
		q.Header.Set("Authorization", "Bearer "+token)
	} else if s.as != "-" {
		q.Header.Set("Authorization", "Bearer "+c.token(t, s.as))
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, a.Header, bytes.TrimSpace(body)
}

func (c *client) token(t *testing.T, email string) string {
	t.Helper()
	if email == "" {
		email = "admin@example.test"
	}
	if c.tokens[email] == "" {
		_, _, body := c.ask(t, step{do: "POST /tokens", as: "-", send: fmt.Sprintf(`{"identity":%q,"secret":%q}`, email, password)})
		var got struct{ Token string }
		if err := json.Unmarshal(body, &got); err != nil || got.Token == "" {
			t.Fatalf("%s cannot log in: %s", email, body)
		}
		c.tokens[email] = got.Token
	}
	return c.tokens[email]
}

func start(t *testing.T, config fake.Config) (*fake.Server, *client) {
	t.Helper()
	s := fake.New(config)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, &client{h.URL, map[string]string{}}
}

// play runs a row. seen, if not nil, looks at every exchange.
func play(t *testing.T, r row, seen func(t *testing.T, method, path, sent string, status int, body []byte)) {
	t.Helper()
	s, c := start(t, fake.Config{Users: users(), Hosts: []fake.Host{{Domain: "app.example.test", Scheme: "http", Forward: "127.0.0.1", Port: 8081}}})
	writes := []string{}
	for i, st := range r.steps {
		if st.before != nil {
			st.before(s)
		}
		status, head, body := c.ask(t, st)
		where := fmt.Sprintf("step %d, %s %s", i+1, st.do, st.send)
		if status != st.status {
			t.Fatalf("%s: status %d, want %d\n%s", where, status, st.status, body)
		}
		if problem := connectortest.Lacks(body, st.want); problem != "" {
			t.Errorf("%s: %s\n%s", where, problem, body)
		}
		if head.Get("ETag") != "" || head.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%s: headers %v", where, head)
		}
		method, path, _ := strings.Cut(st.do, " ")
		if method != "GET" && path != "/tokens" {
			writes = append(writes, fmt.Sprint(method, " /api", path, " ", status))
		}
		if seen != nil && !st.form {
			seen(t, method, path, st.send, status, body)
		}
	}
	got := []string{}
	for _, w := range s.Writes() {
		got = append(got, fmt.Sprint(w.Method, " ", w.Path, " ", w.Status))
	}
	if d := cmp.Diff(writes, got); d != "" {
		t.Errorf("writes recorded (-want +got):\n%s", d)
	}
	_, _, log := c.ask(t, step{do: "GET /audit-log"})
	var entries []any
	if err := json.Unmarshal(log, &entries); err != nil || len(entries) != r.audit {
		t.Errorf("%d audit entries, want %d: %s", len(entries), r.audit, log)
	}
}

func TestBehaviour(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(accessRows(), bodyRows(), hostRows(), nginxRows(), listRows()) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			play(t, r, nil)
		})
	}
}

// TestToken_period follows tokens through time.
func TestToken_period(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	_, c := start(t, fake.Config{Users: users(), Now: func() time.Time { return now }})
	for _, p := range []struct{ query, expires string }{
		{"", "2026-01-03T03:04:05.678Z"}, {"?expiry=10y", "2036-01-02T03:04:05.678Z"}, {"?expiry=2M", "2026-03-02T03:04:05.678Z"},
		{"?expiry=1w", "2026-01-09T03:04:05.678Z"}, {"?expiry=3d", "2026-01-05T03:04:05.678Z"}, {"?expiry=1h", "2026-01-02T04:04:05.678Z"},
		{"?expiry=1m", "2026-01-02T03:05:05.678Z"}, {"?expiry=1s", "2026-01-02T03:04:06.678Z"},
	} {
		_, _, body := c.ask(t, step{do: "GET /tokens" + p.query})
		if problem := connectortest.Lacks(body, `{"token":"*","expires":"`+p.expires+`"}`); problem != "" {
			t.Errorf("%q: %s", p.query, problem)
		}
	}
	old := c.token(t, "")
	now = now.AddDate(0, 0, 1)
	status, _, body := c.ask(t, step{do: "GET /nginx/proxy-hosts", as: "raw " + old})
	want := `{"error":{"code":400,"message":"Token has expired","message_i18n":{"name":"TokenExpiredError","message":"jwt expired","expiredAt":"2026-01-03T03:04:05.000Z"}}}`
	if problem := connectortest.Lacks(body, want); status != 400 || problem != "" {
		t.Errorf("%d, %s\n%s", status, problem, body)
	}
}

package fake_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/connector/connectortest"
	"writ/connector/netbox/fake"
)

// Tokens of the tests. They are made up.
const (
	writer = "Token 0123456789abcdef0123456789abcdef01234567"
	reader = "Bearer nbt_readreadread.0000000000000000000000000000000000000000"
	narrow = "Bearer nbt_onlyonlyonly.0000000000000000000000000000000000000000"
)

// step is one request and what must come back.
type step struct {
	do     string // "METHOD /path"
	as     string // Authorization; empty is writer, "-" is none
	send   string // body
	header string // "Name: value"
	status int
	want   string            // JSON that the answer must contain, see contains; empty: no body is expected
	heads  map[string]string // headers of the answer; "*" is any value, "" is none
}

// row is one behaviour: steps against a new demo world, and how many change records they leave.
type row struct {
	name    string
	config  fake.Config
	steps   []step
	changes int
}

// play runs a row. seen, if not nil, looks at every exchange.
func play(t *testing.T, r row, seen func(t *testing.T, s step, status int, body []byte)) {
	t.Helper()
	r.config.Demo = true
	r.config.Tokens = append(r.config.Tokens, tokens()...)
	s := fake.New(r.config)
	h := httptest.NewServer(s)
	defer h.Close()
	writes := []string{}
	for i, st := range r.steps {
		status, head, body := ask(t, h.URL, st)
		where := fmt.Sprintf("step %d, %s %s", i+1, st.do, st.send)
		if status != st.status {
			t.Fatalf("%s: status %d, want %d\n%s", where, status, st.status, body)
		}
		if problem := connectortest.Lacks(body, strings.ReplaceAll(st.want, "BASE", h.URL)); problem != "" {
			t.Errorf("%s: %s\n%s", where, problem, body)
		}
		for name, want := range st.heads {
			if got := head.Get(name); got != want && (want != "*" || got == "") {
				t.Errorf("%s: header %s is %q, want %q", where, name, got, want)
			}
		}
		if method, _, _ := strings.Cut(st.do, " "); method != "GET" {
			writes = append(writes, fmt.Sprint(st.do, " ", status))
		}
		if seen != nil {
			seen(t, st, status, body)
		}
	}
	got := []string{}
	for _, w := range s.Writes() {
		got = append(got, fmt.Sprint(w.Method, " ", w.Path, " ", w.Status))
	}
	if d := cmp.Diff(writes, got); d != "" {
		t.Errorf("writes recorded (-want +got):\n%s", d)
	}
	_, _, log := ask(t, h.URL, step{do: "GET /api/core/object-changes/?limit=0"})
	var list struct{ Count int }
	if err := json.Unmarshal(log, &list); err != nil || list.Count != r.changes {
		t.Errorf("%d change records, want %d: %s", list.Count, r.changes, log)
	}
}

func ask(t *testing.T, base string, s step) (int, http.Header, []byte) {
	t.Helper()
	method, path, _ := strings.Cut(s.do, " ")
	q, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(s.send))
	if err != nil {
		t.Fatal(err)
	}
	if s.send != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	if name, value, ok := strings.Cut(s.header, ": "); ok {
		q.Header.Set(name, value)
	}
	if s.as != "-" {
		q.Header.Set("Authorization", s.as)
		if s.as == "" {
			q.Header.Set("Authorization", writer)
		}
	}
	stay := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := stay.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, a.Header, body
}

// secret is the credential of an Authorization header.
func secret(authorization string) string {
	return strings.Fields(authorization)[1]
}

func tokens() []fake.Token {
	return []fake.Token{
		{User: "writer", Secret: secret(writer), Write: true},
		{User: "reader", Secret: secret(reader)},
		{User: "narrow", Secret: secret(narrow), Write: true, Deny: []string{"delete extras.tag"},
			Only: func(kind string, values map[string]any) bool {
				return kind != "ipam.prefix" && values["name"] != "private" && values["name"] != "managed"
			}},
	}
}

func TestBehaviour(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(accessRows(), tagRows(), prefixRows(), addressRows(), listRows(), changeRows()) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			play(t, r, nil)
		})
	}
}

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

	"github.com/google/go-cmp/cmp"

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
		if problem := expect(body, strings.ReplaceAll(st.want, "BASE", h.URL)); problem != "" {
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

// expect compares an answer with the JSON it must contain, and returns what is wrong.
func expect(body []byte, want string) string {
	if want == "" {
		if len(bytes.TrimSpace(body)) > 0 {
			return "a body came, none was expected"
		}
		return ""
	}
	var have, need any
	if err := json.Unmarshal([]byte(want), &need); err != nil {
		return "the test's own JSON: " + err.Error()
	}
	if err := json.Unmarshal(body, &have); err != nil {
		return err.Error()
	}
	return contains(have, need, "answer")
}

// contains says where have lacks what need asks for. An object may have more members than asked for, a list has
// exactly the elements asked for; "*" is anything but null.
func contains(have, need any, at string) string {
	switch need := need.(type) {
	case map[string]any:
		m, ok := have.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, not an object", at, have)
		}
		for name, v := range need {
			got, ok := m[name]
			if !ok {
				return fmt.Sprintf("%s has no member %s", at, name)
			}
			if problem := contains(got, v, at+"."+name); problem != "" {
				return problem
			}
		}
		return ""
	case []any:
		l, ok := have.([]any)
		if !ok || len(l) != len(need) {
			return fmt.Sprintf("%s is %v, want a list of %d", at, have, len(need))
		}
		for i := range need {
			if problem := contains(l[i], need[i], fmt.Sprintf("%s[%d]", at, i)); problem != "" {
				return problem
			}
		}
		return ""
	case string:
		if need == "*" && have != nil {
			return ""
		}
	}
	if have != need {
		return fmt.Sprintf("%s is %v, want %v", at, have, need)
	}
	return ""
}

// TestContains holds the oracle of all other tests to account.
func TestContains(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		have, need string
		ok         bool
	}{
		{`{"a":1,"b":2}`, `{"a":1}`, true}, {`{"a":1}`, `{"b":1}`, false}, {`{"a":1}`, `{"a":2}`, false},
		{`[1,2]`, `[1]`, false}, {`[{"a":1,"b":2}]`, `[{"b":2}]`, true}, {`{"a":null}`, `{"a":"*"}`, false},
		{`{"a":"x"}`, `{"a":"*"}`, true}, {`null`, `{}`, false}, {``, ``, true}, {`{}`, ``, false},
	} {
		if problem := expect([]byte(c.have), c.need); (problem == "") != c.ok {
			t.Errorf("expect(%s, %s) = %q", c.have, c.need, problem)
		}
	}
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

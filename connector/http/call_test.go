package http_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	nethttp "net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/http"
)

// answering opens a system whose transport keeps the last request and its body
// and gives one answer.
func answering(t testing.TB, status int, kind, body string) (target connector.Target, last *nethttp.Request, sent *string) {
	t.Helper()
	last, sent = &nethttp.Request{}, new(string)
	target, err := http.New(http.Generic()).Open(connector.System{
		Name: "s", BaseURL: "https://host.example.test/api/", Options: map[string]string{"auth": "none"},
		Transport: http.RoundTripper(func(q *nethttp.Request) (*nethttp.Response, error) {
			b, err := io.ReadAll(q.Body)
			if err != nil {
				return nil, err
			}
			*last, *sent = *q, string(b)
			return &nethttp.Response{StatusCode: status, Status: fmt.Sprint(status), Header: nethttp.Header{"Content-Type": {kind}, "Etag": {`"e"`}},
				Body: io.NopCloser(strings.NewReader(body))}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return target, last, sent
}

func TestDo_request(t *testing.T) {
	t.Parallel()
	text, nothing := "a=b&é", ""
	for name, c := range map[string]struct {
		call            catalog.Call
		url, kind, body string
		length          int64
		method, ifMatch string
	}{
		"plain":         {catalog.Call{Verb: "get", Path: "/a/b/"}, "/api/a/b/", "", "", 0, "GET", ""},
		"without slash": {catalog.Call{Verb: "get", Path: "a"}, "/api/a", "", "", 0, "GET", ""},
		"the root":      {catalog.Call{Verb: "get"}, "/api", "", "", 0, "GET", ""},
		"query":         {catalog.Call{Verb: "delete", Path: "/a", Query: map[string]string{"b": "c&d", "a": "é"}}, "/api/a?a=%C3%A9&b=c%26d", "", "", 0, "DELETE", ""},
		"form":          {catalog.Call{Verb: "put", Path: "/a", Form: map[string]string{"b": "c&d=e", "a": "1"}, IfMatch: `W/"x"`}, "/api/a", "application/x-www-form-urlencoded", "a=1&b=c%26d%3De", 15, "PUT", `W/"x"`},
		"json":          {catalog.Call{Verb: "post", Path: "/a", JSON: map[string]any{"t": "<&>", "n": int64(7)}}, "/api/a", "application/json", `{"n":7,"t":"<&>"}`, 17, "POST", ""},
		"text":          {catalog.Call{Verb: "patch", Path: "/a", Text: &text}, "/api/a", "text/plain; charset=utf-8", text, 6, "PATCH", ""},
		"empty text":    {catalog.Call{Verb: "post", Path: "/a", Text: &nothing}, "/api/a", "text/plain; charset=utf-8", "", 0, "POST", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, q, sent := answering(t, 204, "", "")
			if _, err := target.Do(t.Context(), c.call); err != nil {
				t.Fatal(err)
			}
			got := []any{q.Method, q.URL.RequestURI(), q.Host, q.Header.Get("Content-Type"), *sent, q.ContentLength, q.Header.Get("If-Match")}
			want := []any{c.method, c.url, "host.example.test", c.kind, c.body, c.length, c.ifMatch}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("request (-want +got):\n%s", d)
			}
			if q.GetBody != nil {
				t.Error("the body can be sent again")
			}
		})
	}
}

func TestDo_badCall(t *testing.T) {
	t.Parallel()
	text := "x"
	for name, call := range map[string]catalog.Call{
		"two bodies":         {Verb: "put", Form: map[string]string{}, Text: &text},
		"a read with a body": {Verb: "get", Text: &text},
		"a host of its own":  {Verb: "get", Host: "other.example.test"},
		"no entity tag":      {Verb: "put", IfMatch: "a\r\nX-Evil: b"},
		"not JSON":           {Verb: "put", JSON: math.NaN()},
	} {
		target, q, _ := answering(t, 204, "", "")
		fails(t, target, call, writ.NotExecuted, "bad_call")
		if q.URL != nil {
			t.Errorf("%s: was sent", name)
		}
	}
	target, err := http.New(http.Generic()).Open(connector.System{Name: "s", BaseURL: "http://a.example.test", Options: map[string]string{"auth": "none"},
		Endpoints: map[string]string{"site": "http://b.example.test"}, Transport: refuse(t), Plain: refuse(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"a b", "a\r\nX: y", "a/b", "u@a", "é.example.test"} {
		fails(t, target, catalog.Call{Verb: "get", At: "site", Host: host}, writ.NotExecuted, "bad_call")
	}
}

// refuse is a transport that must not be used.
func refuse(t *testing.T) nethttp.RoundTripper {
	return http.RoundTripper(func(q *nethttp.Request) (*nethttp.Response, error) {
		t.Errorf("%s %s was sent", q.Method, q.URL)
		return nil, io.ErrUnexpectedEOF
	})
}

// Case: C063.
func TestDo_answer(t *testing.T) {
	t.Parallel()
	const asJSON, asText = "application/json; charset=utf-8", "text/plain"
	for name, c := range map[string]struct {
		kind, body string
		want       catalog.Seen
	}{
		"object": {asJSON, `{"a":[1,-2,1.0,1.5,1e3,true,null,"s"],"b":{}}`, catalog.Seen{Data: map[string]any{
			"a": []any{int64(1), int64(-2), 1.0, 1.5, 1000.0, true, nil, "s"}, "b": map[string]any{}}}},
		"large numbers": {asJSON, `[9007199254740991,9007199254740992,-9007199254740992,99999999999999999999,1e999]`, catalog.Seen{Data: []any{
			int64(9007199254740991), "9007199254740992", "-9007199254740992", "99999999999999999999", "1e999"}}},
		"repeated key":         {asJSON, `{"a":1,"a":2}`, catalog.Seen{Data: map[string]any{"a": int64(2)}}},
		"problem":              {"application/problem+json", `"x"`, catalog.Seen{Data: "x"}},
		"null":                 {asJSON, `null`, catalog.Seen{}},
		"empty":                {asJSON, ` `, catalog.Seen{}},
		"undeclared JSON":      {asText, `{"a":1}`, catalog.Seen{Data: map[string]any{"a": int64(1)}}},
		"text":                 {asText, " 12\n", catalog.Seen{Text: " 12\n"}},
		"text that looks JSON": {asText, `{"a":`, catalog.Seen{Text: `{"a":`}},
		"not UTF-8":            {asText, "a\xff\xfeb", catalog.Seen{Text: "a\uFFFDb"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, _, _ := answering(t, 200, c.kind, c.body)
			seen, err := target.Do(t.Context(), catalog.Call{Verb: "get"})
			c.want.Found, c.want.Status, c.want.ETag = true, 200, `"e"`
			if d := cmp.Diff(c.want, seen); d != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
	for name, body := range map[string]string{
		"trailing text":   `{} {}`,
		"nothing in it":   `,`,
		"too deep":        strings.Repeat("[", 100_000),
		"too many values": "[" + strings.Repeat("[],", 1<<20) + "1]",
	} {
		target, _, _ := answering(t, 200, asJSON, body)
		t.Log(name)
		fails(t, target, catalog.Call{Verb: "put"}, writ.Unknown, "bad_answer")
		fails(t, target, catalog.Call{Verb: "get"}, writ.NotExecuted, "bad_answer")
	}
}

func TestDo_quotesTheTargetShortAndPrintable(t *testing.T) {
	t.Parallel()
	target, _, _ := answering(t, 400, "text/plain", "first\r\nsecond\x1b[31m\u202e\x00"+strings.Repeat("ä", 9_999_999))
	failed := fails(t, target, catalog.Call{Verb: "put", Path: "/a"}, writ.Failed, "rejected")
	before, quoted, _ := strings.Cut(failed.Text, "with 400: ")
	if before != "The system answered PUT /api/a " || utf8.RuneCountInString(quoted) != 300 || !strings.HasPrefix(quoted, "first  second\uFFFD[31m\uFFFD\uFFFDä") {
		t.Errorf("the error is %q", failed.Text)
	}
	if s := http.Quote(strings.Repeat("a", 300)); s != strings.Repeat("a", 300) {
		t.Errorf("300 characters became %q", s)
	}
}

func TestDo_transportWithAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		outcome writ.Outcome
		reason  string
	}{
		"that nobody knows": {io.ErrUnexpectedEOF, writ.Unknown, "bad_answer"},
		"of a login": {http.LoginFailed(connector.Errorf(writ.Unknown, "timeout", 0, "it may have happened")),
			writ.NotExecuted, "timeout"},
		"of a refused login": {fmt.Errorf("wrapped: %w", http.LoginFailed(connector.Errorf(writ.NotExecuted, "unauthenticated", 401, "who?"))),
			writ.NotExecuted, "unauthenticated"},
		"of a login, unknown": {http.LoginFailed(io.EOF), writ.NotExecuted, "login_failed"},
	} {
		target, err := http.New(http.Generic()).Open(connector.System{BaseURL: "http://a.example.test", Options: map[string]string{"auth": "none"},
			Transport: http.RoundTripper(func(*nethttp.Request) (*nethttp.Response, error) { return nil, c.err })})
		if err != nil {
			t.Fatal(err)
		}
		failed := fails(t, target, catalog.Call{Verb: "post"}, c.outcome, c.reason)
		if c.outcome == writ.NotExecuted && strings.Contains(failed.Text, "may have") {
			t.Errorf("%s: the call was not sent, but the text is %q", name, failed.Text)
		}
	}
}

func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	good := connector.System{Name: "s", BaseURL: "https://a.example.test:8006/api", Options: map[string]string{"auth": "none"},
		Endpoints: map[string]string{"site": "http://b.example.test"}, Transport: refuse(t), Plain: refuse(t)}
	if _, err := http.New(http.Generic()).Open(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*connector.System){
		"no address":            func(s *connector.System) { s.BaseURL = "" },
		"another scheme":        func(s *connector.System) { s.BaseURL = "ftp://a.example.test" },
		"no scheme":             func(s *connector.System) { s.BaseURL = "a.example.test:8006" },
		"a user":                func(s *connector.System) { s.BaseURL = "https://u:p@a.example.test" },
		"a query":               func(s *connector.System) { s.BaseURL = "https://a.example.test/?" },
		"a fragment":            func(s *connector.System) { s.BaseURL = "https://a.example.test/#" },
		"no host":               func(s *connector.System) { s.BaseURL = "https://:443" },
		"dots":                  func(s *connector.System) { s.BaseURL = "https://a.example.test/api/.." },
		"endpoint":              func(s *connector.System) { s.Endpoints = map[string]string{"site": "b.example.test"} },
		"no transport":          func(s *connector.System) { s.Transport = nil },
		"no plain transport":    func(s *connector.System) { s.Plain = nil },
		"no auth":               func(s *connector.System) { s.Options = nil },
		"unknown auth":          func(s *connector.System) { s.Options = map[string]string{"auth": "digest"} },
		"header without a name": func(s *connector.System) { s.Options = map[string]string{"auth": "header"} },
		"name that is no name":  func(s *connector.System) { s.Options = map[string]string{"auth": "header", "header": "a b"} },
		"name of nothing":       func(s *connector.System) { s.Options = map[string]string{"auth": "bearer", "header": "a"} },
		"a secret as an option": func(s *connector.System) { s.Options = map[string]string{"auth": "bearer", "token": "fake"} },
	} {
		s := good
		spoil(&s)
		if _, err := http.New(http.Generic()).Open(s); err == nil {
			t.Errorf("%s: was taken", name)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: the error has the password: %v", name, err)
		}
	}
}

func TestDialect_needs(t *testing.T) {
	t.Parallel()
	d := http.New(http.Dialect{Kind: "shop", Example: "https://shop.example.test", Path: "/v2", Needs: []connector.Need{
		{Name: "colour", Prompt: "Colour"}, {Name: "site", Prompt: "Site", Endpoint: true}, {Name: "token", Prompt: "Token", Secret: true}}})
	want := connector.Need{Name: http.BaseURL, Prompt: "Address, e.g. https://shop.example.test", Path: "/v2"}
	if got := d.Needs(); len(got) != 4 || got[0] != want {
		t.Errorf("needs %+v, want %+v first", got, want)
	}
	for option, ok := range map[string]bool{"colour": true, "site": false, "token": false, "base_url": false} {
		_, err := d.Open(connector.System{BaseURL: "https://shop.example.test", Options: map[string]string{option: "x"}, Transport: refuse(t)})
		if (err == nil) != ok {
			t.Errorf("option %s: %v", option, err)
		}
	}
}

type vault map[string]string

func (v vault) Secret(name string) (connector.Secret, error) {
	return connector.NewSecret(v[name]), nil
}

func TestAuthenticate_leavesTheRequestAsItWas(t *testing.T) {
	t.Parallel()
	var sent string
	via := http.New(http.Generic()).Authenticate(connector.System{Options: map[string]string{"auth": "bearer"}}, vault{"token": "fake-token"},
		http.RoundTripper(func(q *nethttp.Request) (*nethttp.Response, error) {
			sent = q.Header.Get("Authorization")
			return nil, io.EOF
		}))
	q, _ := nethttp.NewRequest("GET", "http://a.example.test", nil)
	via.RoundTrip(q)
	if sent != "Bearer fake-token" || len(q.Header) > 0 {
		t.Errorf("sent %q, and the request keeps %v", sent, q.Header)
	}
}

func TestCheck_unreachable(t *testing.T) {
	t.Parallel()
	wrong, err := open(t, "http://127.0.0.1:1", "", http.Timeouts{}).Check(t.Context())
	if err == nil || len(wrong) > 0 {
		t.Errorf("got %q, %v; want an error", wrong, err)
	}
}

// FuzzDo_path: whatever the path, a request goes to the path it says, below the
// base, or not at all.
func FuzzDo_path(f *testing.F) {
	for _, p := range []string{"/a/b", "a%2Fb", "/../x", "//h/x", "/a%2e./b", "/a\\..\\b", "/a;b=c/", "/é", "/%C3%A9", "/a:b@c", "/%", "/a?b", "/{", "/%7B"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		target, q, _ := answering(t, 204, "", "")
		if _, err := target.Do(context.Background(), catalog.Call{Verb: "get", Path: p}); err != nil {
			return
		}
		uri := "/api"
		if p != "" {
			uri += "/" + strings.TrimPrefix(p, "/")
		}
		if q.URL.RequestURI() != uri || q.URL.Host != "host.example.test" || q.Host != q.URL.Host {
			t.Errorf("%q became %s at %s", p, q.URL.RequestURI(), q.URL.Host)
		}
		plain, err := url.PathUnescape(uri)
		if clean := path.Clean(strings.ReplaceAll(plain, `\`, "/")); err != nil || clean != "/api" && !strings.HasPrefix(clean, "/api/") {
			t.Errorf("%q leads to %s", p, clean)
		}
	})
}

// FuzzDo_answer: whatever is answered, Seen has the promised types, and an error
// one printable line.
func FuzzDo_answer(f *testing.F) {
	f.Add(200, "application/json", `{"a":[1,2.5,"x",null,true]}`)
	f.Add(200, "text/plain", "\xff")
	f.Add(500, "", "\x1b[31m\r\n")
	f.Add(599, "application/json", `{"a":`)
	f.Fuzz(func(t *testing.T, status int, kind, body string) {
		target, _, _ := answering(t, status, kind, body)
		seen, err := target.Do(context.Background(), catalog.Call{Verb: "put"})
		if err != nil {
			failed, ok := errors.AsType[*connector.Error](err)
			if !ok || strings.ContainsFunc(failed.Text, func(r rune) bool { return !unicode.IsPrint(r) }) || len(failed.Text) > 2000 {
				t.Errorf("error %q", err)
			}
		}
		promised(t, seen.Data)
		if !utf8.ValidString(seen.Text) {
			t.Errorf("text %q", seen.Text)
		}
	})
}

func promised(t *testing.T, v any) {
	switch v := v.(type) {
	case nil, bool, int64, float64:
	case string:
		if !utf8.ValidString(v) {
			t.Errorf("string %q", v)
		}
	case []any:
		for _, inner := range v {
			promised(t, inner)
		}
	case map[string]any:
		for _, inner := range v {
			promised(t, inner)
		}
	default:
		t.Errorf("a %T", v)
	}
}

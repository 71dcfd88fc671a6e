package connectortest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"writ"
	"writ/catalog"
	"writ/connector/recorder"
)

// writeUnder warms a connection with a read, injects a fault and writes: a write
// that went over the warm connection could be sent a second time by net/http.
func writeUnder(t *testing.T, s Suite, mode string, written bool) {
	e := open(t, s, setup{})
	if _, failed := e.do(t.Context(), s.Read); failed != nil {
		t.Fatalf("read: %v", failed)
	}
	e.world.Fake.Inject(recorder.Fault{Method: strings.ToUpper(s.Write.Verb), Path: e.path(s.Write), Mode: mode})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if mode == "hang_after" {
		go func() {
			for !e.world.Written() && ctx.Err() == nil {
				runtime.Gosched()
			}
			cancel()
		}()
	}
	_, failed := e.do(ctx, s.Write)
	e.ends(mode, failed, writ.Unknown, written)
	e.writes(mode, 1)
}

func cutBefore(t *testing.T, s Suite)     { writeUnder(t, s, "cut_before", false) }
func cutAfter(t *testing.T, s Suite)      { writeUnder(t, s, "cut_after", true) }
func neverAnswered(t *testing.T, s Suite) { writeUnder(t, s, "hang_after", true) }

func connectionRefused(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	e.server.Close()
	_, failed := e.do(t.Context(), s.Write)
	e.ends("write", failed, writ.NotExecuted, false)
	_, failed = e.do(t.Context(), s.Read)
	e.ends("read", failed, writ.NotExecuted, false)
	e.nothingArrived("a refused connection")
}

func tableOfAnswers(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	for _, a := range s.HTTP.Answers {
		name := fmt.Sprintf("%d %s %s", a.Status, a.Phrase, a.Body)
		e.world.Fake.Release()
		e.world.Fake.Reset()
		for _, call := range []catalog.Call{s.Write, s.Read} {
			e.world.Fake.Inject(recorder.Fault{Method: strings.ToUpper(call.Verb), Path: e.path(call), Mode: "answer",
				Status: a.Status, Reason: a.Phrase, Body: a.Body})
		}
		_, failed := e.do(t.Context(), s.Write)
		e.ends("write, "+name, failed, a.Outcome, false)
		if failed != nil && (failed.Reason != a.Reason || failed.Status != a.Status) {
			t.Errorf("write, %s: reason %q, status %d; want %q and the status", name, failed.Reason, failed.Status, a.Reason)
		}
		e.writes("write, "+name, 1)
		_, failed = e.do(t.Context(), s.Read)
		e.ends("read, "+name, failed, writ.NotExecuted, false)
	}
}

func redirect(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	elsewhere := &front{next: http.NotFoundHandler()}
	server := httptest.NewServer(elsewhere)
	t.Cleanup(server.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, call := range []catalog.Call{s.Read, s.Write} {
			e.answer(call, func(w http.ResponseWriter, q *http.Request) {
				w.Header().Set("Location", server.URL+q.URL.Path)
				w.WriteHeader(status)
			})
			before := len(e.front.requests())
			_, failed := e.do(t.Context(), call)
			if failed == nil || failed.Reason != "redirect_refused" {
				t.Errorf("%s answered %d: %v, want redirect_refused", call.Verb, status, failed)
			}
			if n := len(e.front.requests()) - before; n > 2 { // a login may come first
				t.Errorf("%s answered %d: %d requests", call.Verb, status, n)
			}
		}
	}
	if got := elsewhere.requests(); len(got) > 0 {
		t.Errorf("a redirect was followed with %d requests", len(got))
	}
}

func oversized(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	block := []byte(strings.Repeat(" ", 1<<20))
	for _, call := range []catalog.Call{s.Read, s.Write} {
		var sent atomic.Int64
		e.answer(call, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for sent.Load() < 1<<30 {
				n, err := w.Write(block)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
		want := writ.NotExecuted
		if call.Verb == s.Write.Verb {
			want = writ.Unknown
		}
		_, failed := e.do(t.Context(), call)
		e.ends(call.Verb, failed, want, false)
		if n := sent.Load(); n > 64<<20 { // what is read, and what the kernel holds
			t.Errorf("%s took %d MiB of an endless answer", call.Verb, n>>20)
		}
	}
}

func compressed(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	e.answer(s.Write, func(w http.ResponseWriter, q *http.Request) {
		if strings.Contains(q.Header.Get("Accept-Encoding"), "gzip") {
			t.Error("the request asks for compression, which hides the size of an answer")
		}
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "\x1f\x8b\x08")
	})
	_, failed := e.do(t.Context(), s.Write)
	e.ends("write", failed, writ.Unknown, false)
}

// halfAnswer tries answers that break off although their status says success.
func halfAnswer(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	for name, half := range map[string]http.HandlerFunc{
		"body cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"data":`)
			panic(http.ErrAbortHandler)
		},
		"broken JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"data":`)
		},
	} {
		e.answer(s.Write, half)
		_, failed := e.do(t.Context(), s.Write)
		e.ends("write, "+name, failed, writ.Unknown, false)
		e.answer(s.Read, half)
		_, failed = e.do(t.Context(), s.Read)
		e.ends("read, "+name, failed, writ.NotExecuted, false)
	}
}

func tlsPin(t *testing.T, s Suite) {
	fingerprint := func(server *httptest.Server) string {
		sum := sha256.Sum256(server.Certificate().Raw)
		return hex.EncodeToString(sum[:])
	}
	good := open(t, s, setup{pin: fingerprint})
	if _, failed := good.do(t.Context(), s.Write); failed != nil || !good.world.Written() {
		t.Errorf("with the right pin: %v", failed)
	}
	for name, pin := range map[string]func(*httptest.Server) string{
		"another pin": func(server *httptest.Server) string {
			p := fingerprint(server)
			return p[1:] + p[:1]
		},
		"no pin": func(*httptest.Server) string { return "" },
	} {
		e := open(t, s, setup{pin: pin})
		for _, call := range []catalog.Call{s.Read, s.Write} {
			_, failed := e.do(t.Context(), call)
			e.ends(name+", "+call.Verb, failed, writ.NotExecuted, false)
			if failed != nil && failed.Reason != "wrong_target" {
				t.Errorf("%s, %s: reason %q, want wrong_target", name, call.Verb, failed.Reason)
			}
		}
		e.nothingArrived(name)
	}
}

func wrongCredential(t *testing.T, s Suite) {
	e := open(t, s, setup{secrets: s.HTTP.Wrong})
	for _, call := range []catalog.Call{s.Read, s.Write} {
		_, failed := e.do(t.Context(), call)
		e.ends(call.Verb, failed, writ.NotExecuted, false)
		if failed != nil && failed.Reason != "unauthenticated" && failed.Reason != "permission_denied" {
			t.Errorf("%s: reason %q, want unauthenticated or permission_denied", call.Verb, failed.Reason)
		}
	}
}

func missingSecret(t *testing.T, s Suite) {
	e := open(t, s, setup{secrets: map[string]string{}})
	_, failed := e.do(t.Context(), s.Write)
	e.ends("write", failed, writ.NotExecuted, false)
	e.nothingArrived("a missing secret")
}

func pathEscaped(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	const odd = "/a%2Fb%3Fc%23d%20e%25f%C3%A9;g=h%26"
	e.do(t.Context(), catalog.Call{Verb: "get", Path: odd, Query: map[string]string{"q": "a&b=c d#é"}})
	got := e.front.requests()
	want := s.HTTP.BasePath + odd + "?q=a%26b%3Dc+d%23%C3%A9"
	if len(got) == 0 || got[len(got)-1].RequestURI != want {
		t.Errorf("the fake was asked for %+v, want %s", got, want)
	}
}

func pathElsewhere(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	for _, path := range []string{"/../x", "/a/..", "/a/%2e%2E/b", "/a/..%2Fb", "/a/%2e%2e%5cb", "/./a", "//elsewhere.example.test/x", "/a//b", "/a//", "//",
		"/a?b=c", "/a#b", "/a b", "/a%0d%0ab", "/a\r\nb", "/a%zz", "/a{b", "https://elsewhere.example.test/x"} {
		for _, verb := range []string{"get", "delete"} {
			_, failed := e.do(t.Context(), catalog.Call{Verb: verb, Path: path})
			e.ends(verb+" "+path, failed, writ.NotExecuted, false)
		}
	}
	e.nothingArrived("paths that lead elsewhere")
}

func contentLength(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	form := catalog.Call{Verb: "post", Path: "/x", Form: map[string]string{"a": "b&c=d"}}
	text := strings.Repeat("é", 100_000)
	for _, call := range []catalog.Call{s.Write, form,
		{Verb: "put", Path: "/x", Text: &text}, {Verb: "patch", Path: "/x", JSON: map[string]any{"a": []any{int64(1), "<&>"}}},
		{Verb: "post", Path: "/x"}, {Verb: "put", Path: "/x", Form: map[string]string{}}} {
		e.do(t.Context(), call)
		got := e.front.requests()
		q := got[len(got)-1]
		if q.Method != strings.ToUpper(call.Verb) || q.ContentLength < 0 || len(q.TransferEncoding) > 0 {
			t.Errorf("%s: arrived as %s with length %d and transfer encoding %q", call.Verb, q.Method, q.ContentLength, q.TransferEncoding)
		}
	}
}

func endpoint(t *testing.T, s Suite) {
	elsewhere := &front{next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	})}
	server := httptest.NewServer(elsewhere)
	t.Cleanup(server.Close)
	e := open(t, s, setup{ends: map[string]string{"site": server.URL}})
	e.do(t.Context(), s.Read) // so that a session exists, if the kind has such a thing
	before := len(e.front.requests())
	seen, failed := e.do(t.Context(), catalog.Call{Verb: "get", At: "site", Host: "app.example.test", Path: "/"})
	if failed != nil || seen.Status != http.StatusBadGateway || !seen.Found {
		t.Errorf("got %+v, %v; want the status that the endpoint answered", seen, failed)
	}
	_, failed = e.do(t.Context(), catalog.Call{Verb: "put", At: "site", Path: "/"})
	e.ends("write to an endpoint", failed, writ.NotExecuted, false)
	_, failed = e.do(t.Context(), catalog.Call{Verb: "get", At: "nowhere", Path: "/"})
	e.ends("endpoint that is not configured", failed, writ.NotExecuted, false)
	got := elsewhere.requests()
	if len(got) != 1 || got[0].Host != "app.example.test" {
		t.Fatalf("%d requests reached the endpoint, want one for app.example.test", len(got))
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key"} {
		if got[0].Header.Get(name) != "" {
			t.Errorf("the endpoint was sent %s", name)
		}
	}
	e.clean("the endpoint was sent", fmt.Sprint(got[0].Header, got[0].RequestURI))
	if n := len(e.front.requests()); n != before {
		t.Errorf("a call of an endpoint reached the system itself")
	}
}

func checkPowerless(t *testing.T, s Suite) {
	e := open(t, s, setup{secrets: s.HTTP.Powerless})
	wrong, err := e.target.Check(t.Context())
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	if text := strings.Join(wrong, " "); !strings.Contains(text, s.HTTP.Privilege) {
		t.Errorf("Check says %q, want the privilege %q named", text, s.HTTP.Privilege)
	}
	e.writes("check", 0)
}

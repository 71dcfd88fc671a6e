package recorder_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/connector/recorder"
)

// world is a fake that counts effects, behind a recorder, behind a real server.
type world struct {
	*recorder.Recorder
	effects atomic.Int32
	srv     *httptest.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	w.Recorder = recorder.Wrap(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		w.effects.Add(1)
		if q.URL.Path == "/reason" {
			recorder.SetReason(rw, "CT is locked\r\n(disk)")
			rw.WriteHeader(http.StatusInternalServerError)
		}
		io.WriteString(rw, "did "+string(b))
	}), nil)
	w.srv = httptest.NewServer(w.Recorder)
	t.Cleanup(w.srv.Close)
	return w
}

// do sends one request on a connection of its own: a reused one would let net/http repeat a cut GET by itself.
func (w *world) do(ctx context.Context, method, path, body string) (status, text string, err error) {
	q, err := http.NewRequestWithContext(ctx, method, w.srv.URL+path, strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := client.Do(q)
	if err != nil {
		return "", "", err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	return a.Status, string(b), err
}

func TestRecorder_writesDownWhatArrived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(t.Context(), "GET", "/a%2Fb?x=1", "")
	w.do(t.Context(), "PUT", "/c", "k=v")
	w.do(t.Context(), "POST", "/reason", "")
	want := []recorder.Request{
		{Method: "GET", Path: "/a%2Fb?x=1", Status: 200},
		{Method: "PUT", Path: "/c", Body: "k=v", Status: 200, Write: true},
		{Method: "POST", Path: "/reason", Status: 500, Write: true},
	}
	if d := cmp.Diff(want, w.Requests()); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want[1:], w.Writes()); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
	w.Reset()
	if n := len(w.Requests()); n != 0 {
		t.Errorf("%d requests after Reset", n)
	}
}

func TestRecorder_fakeDecidesWhatIsAWrite(t *testing.T) {
	t.Parallel()
	var got string
	r := recorder.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		got = string(b)
	}), func(q *http.Request) bool {
		b, _ := io.ReadAll(q.Body)
		return string(b) == "write"
	})
	for _, body := range []string{"write", "login"} {
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)))
		if got != body {
			t.Errorf("the handler read %q after isWrite read the body, want %q", got, body)
		}
	}
	if n := len(r.Writes()); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

func TestRecorder_reasonPhrase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status, text, err := w.do(t.Context(), "GET", "/reason", "x")
	if err != nil || status != "500 CT is locked  (disk)" || text != "did x" {
		t.Errorf("got %q, %q, %v", status, text, err)
	}
	if status, text, err := w.do(t.Context(), "HEAD", "/reason", ""); err != nil || text != "" || !strings.HasPrefix(status, "500 CT") {
		t.Errorf("HEAD: got %q, %q, %v", status, text, err)
	}
}

func TestRecorder_reasonPhraseThroughTwo(t *testing.T) {
	t.Parallel()
	inner := newWorld(t)
	w := &world{srv: httptest.NewServer(recorder.Wrap(inner.Recorder, nil))}
	t.Cleanup(w.srv.Close)
	if status, _, err := w.do(t.Context(), "GET", "/reason", ""); err != nil || status != "500 CT is locked  (disk)" {
		t.Errorf("got %q, %v", status, err)
	}
}

func TestRecorder_reasonPhraseIsLostOverHTTP2(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv := httptest.NewUnstartedServer(w.Recorder)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	a, err := srv.Client().Get(srv.URL + "/reason")
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.ProtoMajor != 2 || a.Status != "500 Internal Server Error" {
		t.Errorf("HTTP/%d answered %q", a.ProtoMajor, a.Status)
	}
}

func TestFault_answer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Inject(recorder.Fault{Method: "PUT", Path: "/a", Mode: "answer", Status: 595, Reason: "no route to host", Body: `{"data":null}`, Skip: 1, Times: 1})
	var got []string
	for _, call := range [][2]string{{"PUT", "/b"}, {"GET", "/a"}, {"PUT", "/a/1"}, {"PUT", "/a/2"}, {"PUT", "/a/3"}} {
		status, _, err := w.do(t.Context(), call[0], call[1], "")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, status)
	}
	want := []string{"200 OK", "200 OK", "200 OK", "595 no route to host", "200 OK"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
	if n := w.effects.Load(); n != 4 {
		t.Errorf("%d effects, want 4: an answered fault has none", n)
	}
}

func TestFault_firstLiveOneWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Inject(recorder.Fault{Mode: "answer", Status: 500, Times: 2})
	w.Inject(recorder.Fault{Mode: "answer", Status: 403, Skip: 1})
	var got []string
	for range 5 {
		status, _, _ := w.do(t.Context(), "GET", "/", "")
		got = append(got, status[:3])
	}
	if d := cmp.Diff([]string{"500", "500", "200", "403", "403"}, got); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
}

func TestFault_cut(t *testing.T) {
	t.Parallel()
	for mode, effects := range map[string]int32{"cut_before": 0, "cut_after": 1} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Inject(recorder.Fault{Mode: mode})
			if status, _, err := w.do(t.Context(), "POST", "/", "b"); err == nil {
				t.Errorf("answered %q, want a cut connection", status)
			}
			if n := w.effects.Load(); n != effects {
				t.Errorf("%d effects, want %d", n, effects)
			}
			want := []recorder.Request{{Method: "POST", Path: "/", Body: "b", Write: true}}
			if d := cmp.Diff(want, w.Writes()); d != "" {
				t.Errorf("writes (-want +got):\n%s", d)
			}
		})
	}
}

func TestFault_hangUntilTheClientLeaves(t *testing.T) {
	t.Parallel()
	for mode, effects := range map[string]int32{"hang_before": 0, "hang_after": 1} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Inject(recorder.Fault{Mode: mode})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				w.reached(effects)
				cancel()
			}()
			if _, _, err := w.do(ctx, "POST", "/", "b"); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the client's own cancellation", err)
			}
			w.srv.Close() // waits for the handler
			if n := w.effects.Load(); n != effects {
				t.Errorf("%d effects, want %d", n, effects)
			}
			if got := w.Requests(); len(got) != 1 || got[0].Status != 0 {
				t.Errorf("recorded %+v, want one request without an answer", got)
			}
		})
	}
}

func TestFault_hangUntilRelease(t *testing.T) {
	t.Parallel()
	for mode, before := range map[string]int32{"hang_before": 0, "hang_after": 1} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Inject(recorder.Fault{Mode: mode})
			var early int32
			go func() {
				w.reached(before)
				early = w.effects.Load()
				w.Release()
			}()
			status, text, err := w.do(t.Context(), "POST", "/", "b")
			if err != nil || status != "200 OK" || text != "did b" {
				t.Errorf("after Release: %q, %q, %v", status, text, err)
			}
			if early != before || w.effects.Load() != 1 {
				t.Errorf("%d effects while hanging, %d after; want %d and 1", early, w.effects.Load(), before)
			}
			if status, _, err := w.do(t.Context(), "POST", "/", ""); err != nil || status != "200 OK" {
				t.Errorf("Release left a fault behind: %q, %v", status, err)
			}
		})
	}
}

// reached waits until a request has been recorded and had its effect, if it has one before it hangs.
func (w *world) reached(effects int32) {
	for len(w.Requests()) == 0 || w.effects.Load() < effects {
		runtime.Gosched()
	}
}

func TestInject_unknownModePanics(t *testing.T) {
	t.Parallel()
	for _, f := range []recorder.Fault{{Mode: "explode"}, {}, {Mode: "answer"}, {Mode: "answer", Status: 99}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was taken", f)
				}
			}()
			recorder.Wrap(http.NotFoundHandler(), nil).Inject(f)
		}()
	}
}

func TestRecorder_halfABodyHasNoEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv := httptest.NewTLSServer(w.Recorder)
	t.Cleanup(srv.Close)
	conn, err := tls.Dial("tcp", srv.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf")
	conn.CloseWrite()
	b, _ := io.ReadAll(conn)
	conn.Close()
	if len(b) != 0 || w.effects.Load() != 0 {
		t.Errorf("half a request was answered %q, %d effects", b, w.effects.Load())
	}
	want := []recorder.Request{{Method: "PUT", Path: "/x", Body: "half", Write: true}}
	if d := cmp.Diff(want, w.Requests()); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, step := range []struct{ method, path, body, status, text string }{
		{"GET", "/_fake/requests", "", "200 OK", `{"requests":[]}` + "\n"},
		{"GET", "/r", "", "200 OK", "did "},
		{"DELETE", "/w", "", "200 OK", "did "},
		{"GET", "/_fake/writes", "", "200 OK", `{"requests":[{"method":"DELETE","path":"/w","body":"","status":200,"write":true}]}` + "\n"},
		{"POST", "/_fake/faults", `{"method":"GET","path":"/r","mode":"answer","status":503}`, "204 No Content", ""},
		{"GET", "/r", "", "503 Service Unavailable", ""},
		{"DELETE", "/_fake/faults", "", "204 No Content", ""},
		{"GET", "/r", "", "200 OK", "did "},
		{"DELETE", "/_fake/requests", "", "204 No Content", ""},
		{"GET", "/_fake/requests", "", "200 OK", `{"requests":[]}` + "\n"},
		{"POST", "/_fake/faults", `{"mode":"explode"}`, "400 Bad Request", "unknown fault mode \"explode\": use answer, cut_before, cut_after, hang_before or hang_after\n"},
		{"POST", "/_fake/faults", `{"mode":"cut_after","tims":1}`, "400 Bad Request", "json: unknown field \"tims\"\n"},
		{"PUT", "/_fake/faults", "", "404 Not Found", "the recorder has GET and DELETE /_fake/requests, GET /_fake/writes, POST and DELETE /_fake/faults\n"},
	} {
		status, text, err := w.do(t.Context(), step.method, step.path, step.body)
		if err != nil || status != step.status || text != step.text {
			t.Errorf("%s %s: got %q %q %v, want %q %q", step.method, step.path, status, text, err, step.status, step.text)
		}
	}
}

package link_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/link"
	"writ/ledger"
)

// listen returns a Unix socket. Its path is short: a socket's may have no more
// than about a hundred bytes.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "link")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "x.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, path
}

// serve returns the path of a socket where a handler answers.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	l, path := listen(t)
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return path
}

func newKey(t *testing.T) (ed25519.PrivateKey, *link.Keys) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private, link.Trust(public)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// wantFault fails the test unless err has the code and the reason.
func wantFault(t *testing.T, err error, code fault.Code, reason string) {
	t.Helper()
	if fault.CodeOf(err) != code || fault.ReasonOf(err) != reason {
		t.Errorf("code %q, reason %q (%v), want %q, %q", fault.CodeOf(err), fault.ReasonOf(err), err, code, reason)
	}
}

func TestHello(t *testing.T) {
	t.Parallel()
	_, keys := newKey(t)
	_, known := keys.All().Last()
	want := writ.Hello{Executor: "ex1", KeyID: known, Epoch: 3, Locked: true, Systems: []writ.SystemInfo{{Name: "px", Kind: "proxmox", Environment: "lab"}}}
	path := serve(t, func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodGet || q.URL.Path != writ.PathHello {
			t.Errorf("asked for %s %s", q.Method, q.URL)
		}
		answer(w, http.StatusOK, want)
	})
	got, err := link.New(path, keys).Hello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer differs (-want +got):\n%s", diff)
	}
	_, others := newKey(t)
	_, err = link.New(path, others).Hello(t.Context())
	wantFault(t, err, fault.Refused, "untrusted_key")
}

func TestExecute_handsOverTheWritAsItIs(t *testing.T) {
	t.Parallel()
	sealed := []byte(`{"sealed":"<&>\u2028"}`)
	path := serve(t, func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil || string(body) != string(sealed) || q.Method != http.MethodPost || q.URL.Path != writ.PathWrits {
			t.Errorf("%s %s with %q, %v", q.Method, q.URL, body, err)
		}
		answer(w, http.StatusAccepted, writ.RunState{Run: "run_1"})
	})
	if err := link.New(path, nil).Execute(t.Context(), sealed); err != nil {
		t.Error(err)
	}
}

// A writ that nobody can have got says so; any other failure leaves it open.
func TestExecute_notSent(t *testing.T) {
	t.Parallel()
	l, closed := listen(t)
	unix, ok := l.(*net.UnixListener)
	if !ok {
		t.Fatal("not a Unix socket")
	}
	unix.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"no socket": file + ".sock", "nobody listens": closed, "a file": file} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := link.New(path, nil)
			wantFault(t, x.Execute(t.Context(), []byte("{}")), fault.Unavailable, link.NotSent)
			_, err := x.Hello(t.Context())
			wantFault(t, err, fault.Unavailable, link.NotSent)
		})
	}
}

func TestExecute_perhapsSent(t *testing.T) {
	t.Parallel()
	hijack := func(t *testing.T, w http.ResponseWriter, text string) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
	for name, h := range map[string]func(*testing.T, http.ResponseWriter, *http.Request){
		"cut before it was read": func(t *testing.T, w http.ResponseWriter, _ *http.Request) { hijack(t, w, "") },
		"cut after it was read": func(t *testing.T, w http.ResponseWriter, q *http.Request) {
			_, _ = io.Copy(io.Discard, q.Body)
			hijack(t, w, "")
		},
		"cut within the answer": func(t *testing.T, w http.ResponseWriter, q *http.Request) {
			_, _ = io.Copy(io.Discard, q.Body)
			hijack(t, w, "HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{\"run\":")
		},
		"no HTTP":   func(t *testing.T, w http.ResponseWriter, _ *http.Request) { hijack(t, w, "hello\r\n\r\n") },
		"no JSON":   func(_ *testing.T, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"no answer": func(_ *testing.T, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"a bare 500": func(_ *testing.T, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		},
		"no code": func(_ *testing.T, w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusForbidden, writ.Refusal{Text: "No."})
		},
		"an odd code": func(_ *testing.T, w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusTeapot, writ.Refusal{Code: "tea"})
		},
		"a reason that is ours": func(_ *testing.T, w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusServiceUnavailable, writ.Refusal{Code: fault.Unavailable, Reason: link.NotSent})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			path := serve(t, func(w http.ResponseWriter, q *http.Request) {
				calls.Add(1)
				h(t, w, q)
			})
			wantFault(t, link.New(path, nil).Execute(t.Context(), make([]byte, 1<<20)), fault.Unavailable, "")
			if n := calls.Load(); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

func TestExecute_cutWhenConnected(t *testing.T) {
	t.Parallel()
	l, path := listen(t)
	var calls atomic.Int32
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			_ = conn.Close()
		}
	}()
	wantFault(t, link.New(path, nil).Execute(t.Context(), []byte("{}")), fault.Unavailable, "")
	if n := calls.Load(); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

func TestExecute_callerGoesAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	path := serve(t, func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		cancel()
		<-q.Context().Done()
	})
	wantFault(t, link.New(path, nil).Execute(ctx, []byte("{}")), fault.Unavailable, "")
}

func TestExecute_isNotRedirected(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	path := serve(t, func(w http.ResponseWriter, q *http.Request) {
		calls.Add(1)
		http.Redirect(w, q, "/v1/writs?again", http.StatusTemporaryRedirect)
	})
	wantFault(t, link.New(path, nil).Execute(t.Context(), []byte("{}")), fault.Unavailable, "")
	if n := calls.Load(); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	for _, code := range []fault.Code{fault.Refused, fault.Denied, fault.Expired, fault.Spent, fault.Unavailable, fault.NotFound, fault.Internal} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			path := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				answer(w, code.Row().HTTP, writ.Refusal{Code: code, Reason: "why", Text: "Because."})
			})
			x := link.New(path, nil)
			_, hello := x.Hello(t.Context())
			_, observe := x.Observe(t.Context(), []byte("{}"))
			_, _, receipts := x.Receipts(t.Context(), "run_1", writ.Time{}, 0, 0)
			for _, err := range []error{hello, observe, receipts, x.Execute(t.Context(), []byte("{}"))} {
				wantFault(t, err, code, "why")
				if err.Error() != "Because." {
					t.Errorf("the sentence is %q", err)
				}
			}
		})
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	ours, keys := newKey(t)
	theirs, _ := newKey(t)
	sealed := []byte(`{"a":"writ"}`)
	good := writ.Observation{Format: writ.FormatObservation, Executor: "ex1", Run: "run_1", Step: "s1", WritDigest: writ.DigestBytes(sealed), ObservedAt: writ.At(time.Unix(0, 0)), Entity: "mock/a"}
	seal := func(kind writ.Kind, key ed25519.PrivateKey, edit func(*writ.Observation)) []byte {
		o := good
		if edit != nil {
			edit(&o)
		}
		b, err := writ.Seal(kind, o, key)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	altered := seal(writ.KindObservation, ours, nil)
	altered[len(altered)/2] ^= 1
	for _, c := range []struct {
		name   string
		sealed []byte
		reason string
	}{
		{"as it is", seal(writ.KindObservation, ours, nil), ""},
		{"by another key", seal(writ.KindObservation, theirs, nil), "unknown_key"},
		{"sealed as a receipt", seal(writ.KindReceipt, ours, nil), "bad_signature"},
		{"altered", altered, "*"},
		{"no seal", []byte(`{}`), "malformed"},
		{"nothing", nil, "malformed"},
		{"of another writ", seal(writ.KindObservation, ours, func(o *writ.Observation) { o.WritDigest = writ.DigestBytes(nil) }), "other_writ"},
		{"of another format", seal(writ.KindObservation, ours, func(o *writ.Observation) { o.Format = "observation/2" }), "other_writ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				answer(w, http.StatusOK, writ.Observations{Observations: [][]byte{seal(writ.KindObservation, ours, nil), c.sealed}})
			})
			got, err := link.New(path, keys).Observe(t.Context(), sealed)
			switch {
			case c.reason == "":
				if diff := cmp.Diff([]writ.Observation{good, good}, got); err != nil || diff != "" {
					t.Errorf("%v; the observations differ (-want +got):\n%s", err, diff)
				}
			case c.reason == "*":
				wantFault(t, err, fault.Refused, fault.ReasonOf(err))
			default:
				wantFault(t, err, fault.Refused, c.reason)
			}
			if err != nil && got != nil {
				t.Errorf("with an error there are observations: %v", got)
			}
		})
	}
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	ours, keys := newKey(t)
	theirs, _ := newKey(t)
	checkpoint := signed(t, ours, 5)
	receipt := func(kind writ.Kind, key ed25519.PrivateKey, run string, sequence int64, format string) []byte {
		b, err := writ.Seal(kind, writ.Receipt{Format: format, Run: run, Sequence: sequence, Step: "s1", Outcome: writ.Done, Checkpoint: checkpoint}, key)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := func(n int64) []byte { return receipt(writ.KindReceipt, ours, "run_1", n, writ.FormatReceipt) }
	with := func(sequence int64, checkpoint string) []byte {
		b, err := writ.Seal(writ.KindReceipt, writ.Receipt{Format: writ.FormatReceipt, Run: "run_1", Sequence: sequence, Checkpoint: checkpoint}, ours)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		name   string
		all    [][]byte
		reason string
	}{
		{"none", nil, ""},
		{"with checkpoints that grow", [][]byte{with(3, signed(t, ours, 2)), with(4, signed(t, ours, 2)), with(5, signed(t, ours, 3))}, ""},
		{"with a checkpoint that shrinks", [][]byte{with(3, signed(t, ours, 3)), with(4, signed(t, ours, 2))}, "bad_checkpoint"},
		{"with a checkpoint of nothing", [][]byte{with(3, signed(t, ours, 0))}, "bad_checkpoint"},
		{"with a checkpoint by another key", [][]byte{with(3, signed(t, theirs, 3))}, "bad_checkpoint"},
		{"with a checkpoint changed", [][]byte{with(3, strings.Replace(signed(t, ours, 3), "\n3\n", "\n4\n", 1))}, "bad_checkpoint"},
		{"without a checkpoint", [][]byte{with(3, "")}, "bad_checkpoint"},
		{"two", [][]byte{good(3), good(4)}, ""},
		{"with a gap", [][]byte{good(3), good(7)}, ""},
		{"one that was had before", [][]byte{good(2)}, "other_run"},
		{"one twice", [][]byte{good(3), good(3)}, "other_run"},
		{"backwards", [][]byte{good(4), good(3)}, "other_run"},
		{"of another run", [][]byte{good(3), receipt(writ.KindReceipt, ours, "run_2", 4, writ.FormatReceipt)}, "other_run"},
		{"of another format", [][]byte{receipt(writ.KindReceipt, ours, "run_1", 3, "receipt/2")}, "other_run"},
		{"by another key", [][]byte{good(3), receipt(writ.KindReceipt, theirs, "run_1", 4, writ.FormatReceipt)}, "unknown_key"},
		{"sealed as an observation", [][]byte{receipt(writ.KindObservation, ours, "run_1", 3, writ.FormatReceipt)}, "bad_signature"},
		{"no seal", [][]byte{[]byte("{}")}, "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := serve(t, func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Path == writ.PathHello { // whether a key follows
					answer(w, http.StatusOK, writ.Hello{KeyID: "ed25519:0"})
					return
				}
				if got := q.URL.String(); got != writ.PathRuns+"run_1?after=2&wait_ms=1500" {
					t.Errorf("asked for %s", got)
				}
				answer(w, http.StatusOK, writ.RunState{Run: "run_1", Finished: true, Receipts: c.all})
			})
			got, finished, err := link.New(path, keys).Receipts(t.Context(), "run_1", writ.Time{}, 2, 1500*time.Millisecond)
			if c.reason != "" {
				wantFault(t, err, fault.Refused, c.reason)
				if got != nil || finished {
					t.Errorf("with an error there are %d receipts, finished %t", len(got), finished)
				}
				return
			}
			sealed := [][]byte{}
			for _, r := range got {
				sealed = append(sealed, r.Sealed)
			}
			if err != nil || !finished || fmt.Sprint(sealed) != fmt.Sprint(append([][]byte{}, c.all...)) {
				t.Errorf("%d receipts, finished %t, %v", len(got), finished, err)
			}
		})
	}
}

// What names a run stands in a path, whatever it holds.
func TestReceipts_nameOfARun(t *testing.T) {
	t.Parallel()
	var asked string
	path := serve(t, func(w http.ResponseWriter, q *http.Request) {
		asked = q.URL.EscapedPath()
		answer(w, http.StatusOK, writ.RunState{})
	})
	if _, _, err := link.New(path, nil).Receipts(t.Context(), "../hello?x#y", writ.Time{}, 0, 0); err != nil {
		t.Fatal(err)
	}
	if asked != writ.PathRuns+"..%2Fhello%3Fx%23y" {
		t.Errorf("asked for %s", asked)
	}
}

// An answer that never ends is not read to its end.
// An executor that is there but waits for a target is not said to be away.
func TestObserve_slow(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	path := serve(t, func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body) // so that the server notices when the caller goes away
		close(asked)
		<-q.Context().Done()
	})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(50*time.Millisecond))
	defer cancel()
	_, err := link.New(path, nil).Observe(ctx, []byte("{}"))
	<-asked
	wantFault(t, err, fault.Unavailable, "")
	if !strings.Contains(err.Error(), "writ systems test") {
		t.Error(err)
	}
}

func TestAnswer_withoutEnd(t *testing.T) {
	t.Parallel()
	path := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"executor":"`)
		junk := make([]byte, 1<<20)
		for i := range junk {
			junk[i] = 'x'
		}
		for range 64 {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	})
	_, err := link.New(path, nil).Hello(t.Context())
	wantFault(t, err, fault.Unavailable, "")
}

// signed returns a checkpoint of n events, signed with a key.
func signed(t *testing.T, key ed25519.PrivateKey, n int) string {
	t.Helper()
	l, err := ledger.Open(filepath.Join(t.TempDir(), "audit"), ledger.Options{Name: "writ/executor/site-a", Key: key, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range n {
		line, err := ledger.Line(writ.Object{"sequence": int64(i + 1)})
		if err == nil {
			err = l.Append(line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := l.Sign()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Package recorder stands in front of a fake of a target system: it writes down every request that reached
// the fake, so that a test can prove "nothing was sent", and it makes chosen requests misbehave the way networks
// and servers do: a wrong answer, a connection that breaks before or after the effect, an answer that never comes.
//
// A fake that runs in another process is asked over HTTP, below /_fake/ (see control.go).
package recorder

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// maxBody bounds what is read of one request. No target here takes more; a longer request is cut off unanswered.
const maxBody = 16 << 20

// Request is one HTTP request as it reached the fake. Headers are not kept: they carry credentials.
type Request struct {
	Method string `json:"method"`
	Path   string `json:"path"` // escaped path with raw query, as received
	Body   string `json:"body"`
	Status int    `json:"status"` // 0 when the connection was cut, or while no answer was given yet
	Write  bool   `json:"write"`  // by the fake's own rule
}

// Fault makes matching requests misbehave. Faults are looked at in the order they were injected; the first that
// matches, has skipped enough and is not used up takes the request, and those after it do not count it.
//
// Mode is one of:
//   - "answer": Status, Reason and Body instead of the real handler, no effect;
//   - "cut_before": the connection is closed, no effect;
//   - "cut_after": the effect happens, the answer is never sent;
//   - "hang_before": blocks until the client goes away (then no effect) or Release (then it goes on as usual);
//   - "hang_after": the effect happens, then the answer is held back until Release, for ever if the client goes away.
type Fault struct {
	Method string `json:"method"` // "" = any
	Path   string `json:"path"`   // prefix of the escaped path
	Mode   string `json:"mode"`
	Status int    `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"` // HTTP/1.1 reason phrase, "" = standard text
	Body   string `json:"body,omitempty"`
	Skip   int    `json:"skip,omitempty"`  // let this many matching requests pass first
	Times  int    `json:"times,omitempty"` // 0 = for ever
}

// check says what is wrong with a fault before it is taken.
func (f Fault) check() error {
	switch f.Mode {
	case "answer":
		if f.Status < 200 || f.Status > 599 {
			return fmt.Errorf("fault mode answer needs a status from 200 to 599, not %d", f.Status)
		}
	case "cut_before", "cut_after", "hang_before", "hang_after":
	default:
		return fmt.Errorf("unknown fault mode %q: use answer, cut_before, cut_after, hang_before or hang_after", f.Mode)
	}
	return nil
}

// Recorder wraps a fake's handler. It is safe for concurrent use.
type Recorder struct {
	next    http.Handler
	isWrite func(*http.Request) bool

	mu       sync.Mutex
	requests []*Request
	faults   []*Fault
	released chan struct{} // closed and replaced by Release
}

// Wrap puts a recorder in front of h. isWrite decides what counts as a write; it may read the body. A nil isWrite
// counts every method but GET, HEAD and OPTIONS.
func Wrap(h http.Handler, isWrite func(*http.Request) bool) *Recorder {
	if isWrite == nil {
		isWrite = func(q *http.Request) bool {
			return !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, q.Method)
		}
	}
	return &Recorder{next: h, isWrite: isWrite, released: make(chan struct{})}
}

// ServeHTTP records the request, applies the fault that matches it, and otherwise lets the fake answer. A cut
// connection is http.ErrAbortHandler, which net/http's server understands.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if strings.HasPrefix(q.URL.Path, controlPrefix) {
		r.control(w, q)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBody))
	withBody := func() *http.Request {
		c := q.WithContext(q.Context())
		c.Body = io.NopCloser(bytes.NewReader(body))
		return c
	}
	seen := &Request{Method: q.Method, Path: q.URL.RequestURI(), Body: string(body), Write: r.isWrite(withBody())}
	fault, released := r.arrive(seen)
	if err != nil { // the request never arrived whole
		panic(http.ErrAbortHandler)
	}
	wait := func() {
		select {
		case <-released:
		case <-q.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	a := &answer{header: http.Header{}}
	switch fault.Mode {
	case "answer":
		a.fill(fault)
	case "cut_before":
		panic(http.ErrAbortHandler)
	case "cut_after":
		r.next.ServeHTTP(a, withBody())
		panic(http.ErrAbortHandler)
	case "hang_before":
		wait()
		r.next.ServeHTTP(a, withBody())
	case "hang_after":
		r.next.ServeHTTP(a, withBody())
		wait()
	default:
		r.next.ServeHTTP(a, withBody())
	}
	a.WriteHeader(http.StatusOK) // counts only if the handler gave no status
	r.mu.Lock()
	seen.Status = a.status // known before the client can have it, so that a test sees it too
	r.mu.Unlock()
	a.send(w, q)
}

// arrive records a request and picks its fault, in one step: what is recorded first is faulted first.
func (r *Recorder) arrive(seen *Request) (Fault, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, seen)
	for i, f := range r.faults {
		if f.Method != "" && f.Method != seen.Method || !strings.HasPrefix(seen.Path, f.Path) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		taken := *f
		if f.Times == 1 {
			r.faults = slices.Delete(r.faults, i, i+1)
		} else if f.Times > 1 {
			f.Times--
		}
		return taken, r.released
	}
	return Fault{}, r.released
}

// Requests lists what reached the fake, in order of arrival.
func (r *Recorder) Requests() []Request {
	return r.list(func(*Request) bool { return true })
}

// Writes lists the requests that the fake's rule calls writes, whether or not they had an effect.
func (r *Recorder) Writes() []Request {
	return r.list(func(q *Request) bool { return q.Write })
}

func (r *Recorder) list(keep func(*Request) bool) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := []Request{}
	for _, q := range r.requests {
		if keep(q) {
			kept = append(kept, *q)
		}
	}
	return kept
}

// Inject adds a fault. An unknown mode is a mistake in the test, so it panics.
func (r *Recorder) Inject(f Fault) {
	if err := f.check(); err != nil {
		panic("recorder: " + err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, &f)
}

// Release ends all hangs and drops all faults.
func (r *Recorder) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = nil
	close(r.released)
	r.released = make(chan struct{})
}

// Reset forgets the requests seen so far; faults stay.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

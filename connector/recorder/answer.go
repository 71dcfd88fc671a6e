package recorder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// answer collects what a handler says, so that it can be held back, thrown away, or sent with its own reason phrase.
type answer struct {
	header http.Header
	status int
	reason string
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// SetReason gives the answer of a handler behind a Recorder its own HTTP/1.1 reason phrase; some systems put their
// error text only there. It has no effect on other writers. As on the wire, HTTP/2 has no reason phrase: it is lost.
func SetReason(w http.ResponseWriter, reason string) {
	if a, ok := w.(*answer); ok {
		a.reason = reason
	}
}

// fill makes the answer that a fault of mode "answer" asks for.
func (a *answer) fill(f Fault) {
	a.status, a.reason = f.Status, f.Reason
	a.header.Set("Content-Type", "text/plain; charset=utf-8")
	if json.Valid([]byte(f.Body)) {
		a.header.Set("Content-Type", "application/json")
	}
	a.body.WriteString(f.Body)
}

// send puts the answer on the wire. net/http cannot set a reason phrase, so an answer that has one takes over the
// connection, and closes it.
func (a *answer) send(w http.ResponseWriter, q *http.Request) {
	hijacker, ok := w.(http.Hijacker)
	if a.reason == "" || !ok || q.ProtoMajor != 1 {
		for name, values := range a.header {
			w.Header()[name] = values
		}
		SetReason(w, a.reason) // if another Recorder stands before this one
		w.WriteHeader(a.status)
		w.Write(a.body.Bytes())
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	a.header.Set("Content-Length", strconv.Itoa(a.body.Len()))
	a.header.Set("Connection", "close")
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %03d %s\r\n", a.status, oneLine(a.reason))
	a.header.Write(&b)
	b.WriteString("\r\n")
	if q.Method != http.MethodHead {
		b.Write(a.body.Bytes())
	}
	conn.Write(b.Bytes())
}

// oneLine keeps a reason phrase from ending the status line early.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s))
}

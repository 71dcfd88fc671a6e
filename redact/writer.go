package redact

import (
	"io"
	"strings"
)

// Writer hides secrets in what is written through it, wherever one chunk ends
// and the next begins. It holds back as much as may be the beginning of a
// secret, so it must be closed.
type Writer struct {
	to   io.Writer
	r    *Redactor
	held []byte
	hold int // how much is held back at least
	full int // how much is held before it is looked at
	err  error
}

const (
	// layered is how many bytes one byte becomes under two layers of encoding.
	layered = 12
	// maxHeld is how much is held back of a value that does not end. Of the rest
	// nothing is shown either.
	maxHeld = 1 << 20
)

// Writer returns a Writer that hides before it writes to w.
func (r *Redactor) Writer(w io.Writer) *Writer {
	hold := 4096
	if r != nil && r.values != nil {
		hold = max(hold, layered*r.values.longest)
	}
	return &Writer{to: w, r: r, hold: hold, full: 4 * hold}
}

// Write takes p whole; an error of the writer below is told by the next call.
func (w *Writer) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	for w.err == nil && len(w.held) >= w.full {
		if w.flush() {
			w.full = 4 * w.hold
		} else {
			w.full = 2 * len(w.held) // or each write would look at everything again
		}
	}
	return len(p), w.err
}

// Close writes what was held back. It does not close the writer below.
func (w *Writer) Close() error {
	if w.err == nil {
		_, w.err = io.WriteString(w.to, w.r.String(string(w.held)))
	}
	w.held = nil
	return w.err
}

// flush writes what no later byte can change, and reports whether that was any.
func (w *Writer) flush() bool {
	text := string(w.held)
	cut := len(text) - w.hold
	if line := strings.LastIndexByte(text[:cut], '\n'); line >= 0 {
		cut = line + 1
	}
	spans := w.r.spans(text)
	var across span
	for i := len(spans) - 1; i >= 0; i-- {
		if s := spans[i]; s.begin < cut && cut < s.to {
			cut, across, i = s.begin, s, len(spans)
		}
	}
	keep := text[cut:]
	if cut == 0 {
		if len(text) < maxHeld {
			return false
		}
		// One secret fills everything: its name stays, so that what follows is
		// hidden too.
		cut = len(text) - w.hold
		keep = text[:across.from] + text[cut:]
		spans = []span{{from: across.from, to: cut, kind: across.kind}}
	}
	for len(spans) > 0 && spans[len(spans)-1].to > cut {
		spans = spans[:len(spans)-1]
	}
	_, w.err = io.WriteString(w.to, w.r.render(text[:cut], spans))
	w.held = append(w.held[:0], keep...)
	return w.err == nil
}

// Whole returns a writer for texts that come whole, such as lines of a log: each
// Write is redacted at once, by what now returns then.
func Whole(w io.Writer, now func() *Redactor) io.Writer { return &whole{w, now} }

type whole struct {
	to  io.Writer
	now func() *Redactor
}

func (w *whole) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.now().String(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

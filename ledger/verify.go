package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"writ"
	"writ/fault"
)

// Report is what is certain of an audit file: its first events, up to the first
// thing that is wrong.
type Report struct {
	Events int64       // lines in order, from the first on
	Bytes  int64       // what they take, their newlines included
	Head   writ.Digest // of the last of them; Start if there is none
	Torn   bool        // a torn line follows them
}

// String says no more than what is certain.
func (r Report) String() string {
	text := fmt.Sprintf("%d events, intact as a prefix; head %s", r.Events, r.Head)
	if r.Torn {
		text += "; a torn line follows"
	}
	return text
}

// Verify reads an audit file to its end or to the first line that is wrong,
// which is the one after the last that it reports. The error of a wrong line is
// fault.Invalid, with one of the reasons bad_form, not_canonical, sequence_gap
// and broken_link.
func Verify(r io.Reader) (Report, error) {
	report := Report{Head: Start}
	lines := bufio.NewReaderSize(r, writ.MaxSize+1)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			report.Torn = len(line) > 0
			return report, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return report, report.wrong("bad_form", "it is longer than %d bytes", writ.MaxSize)
		case err != nil:
			return report, fault.Wrap(fault.Unavailable, err, "The audit file cannot be read to its end. Check the disk and try again.")
		}
		if err := report.add(line[:len(line)-1]); err != nil {
			return report, err
		}
	}
}

// add extends the report by the line that follows, or says why it does not.
func (r *Report) add(line []byte) error {
	parsed, err := writ.Parse(line)
	if err != nil {
		return r.wrong("bad_form", "it is not strict JSON (%s)", fault.TextOf(err))
	}
	event, ok := parsed.(writ.Object)
	if !ok || event["format"] != Format {
		return r.wrong("bad_form", "it is not an event of the format %s", Format)
	}
	canonical, err := writ.Canonical(event)
	if err != nil || !bytes.Equal(canonical, line) {
		return r.wrong("not_canonical", "it is not in canonical form")
	}
	if n, ok := event["sequence"].(int64); !ok || n != r.Events+1 {
		return r.wrong("sequence_gap", "it does not have the sequence %d", r.Events+1)
	}
	if event["previous"] != string(r.Head) {
		return r.wrong("broken_link", "it does not hold the digest of the line before")
	}
	r.Events++
	r.Bytes += int64(len(line)) + 1
	r.Head = writ.DigestBytes(line)
	return nil
}

func (r *Report) wrong(reason, format string, args ...any) error {
	return fault.New(fault.Invalid, "Line %d of the audit file is wrong: %s. The lines before it are in order.",
		r.Events+1, fmt.Sprintf(format, args...)).Because(reason)
}

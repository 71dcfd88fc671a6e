// Package ledger is the format of an audit file and the one writer and the one
// reader of it. Both sides keep their account of what happened in this format.
//
// # Format event/1
//
// An audit file is a sequence of lines, each ended by one newline. A line is
// one JSON object of at most [writ.MaxSize] bytes in the canonical form of
// package writ. It has the members
//
//	"format"    "event/1"
//	"previous"  the digest of the bytes of the line before, without its
//	            newline; of the first line, [Start]
//	"sequence"  1 in the first line, then one more in each line
//
// and whatever else its writer says of the event. Because each line holds the
// digest of the one before, the digest of the last line stands for the whole
// file: whoever has noted that digest elsewhere can tell every later change,
// removal, insertion and reordering. Without such a note, a file that was cut
// after a whole line, or written anew from some line on, looks intact:
// [Verify] therefore never says more than "intact as a prefix".
//
// Bytes after the last newline are a torn line: a writer died before it could
// tell anybody that the line was there. They are no event.
package ledger

import (
	"encoding/json"

	"writ"
	"writ/fault"
)

// Format is the version of the format that this package writes and reads.
const Format = "event/1"

// Start stands in the first line in place of the digest of a line before.
const Start writ.Digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// Link returns event as the line that follows the line with digest previous,
// without the newline, and the digest of the new line. The event must encode as
// a JSON object that has a sequence and neither a format nor a previous.
func Link(previous writ.Digest, event any) ([]byte, writ.Digest, error) {
	text, err := json.Marshal(event)
	if err != nil {
		return nil, "", fault.Wrap(fault.Invalid, err, "The event cannot be written as JSON.")
	}
	parsed, err := writ.Parse(text)
	if err != nil {
		return nil, "", err
	}
	members, ok := parsed.(writ.Object)
	if !ok || !previous.Valid() {
		return nil, "", fault.New(fault.Internal, "An event must be a JSON object and follow a line with a digest.")
	}
	if n, ok := members["sequence"].(int64); !ok || n < 1 {
		return nil, "", fault.New(fault.Internal, "An event must have a sequence, counted from 1.")
	}
	for name, value := range map[string]string{"format": Format, "previous": string(previous)} {
		if _, taken := members[name]; taken {
			return nil, "", fault.New(fault.Internal, "An event must leave the member %s to the ledger.", name)
		}
		members[name] = value
	}
	line, err := writ.Canonical(members)
	if err != nil {
		return nil, "", err
	}
	if len(line) > writ.MaxSize {
		return nil, "", fault.New(fault.Invalid, "The event has %d bytes, more than the %d of a line of the audit file.", len(line), writ.MaxSize)
	}
	return line, writ.DigestBytes(line), nil
}

package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"

	"writ"
	"writ/fault"
)

// Format is the version of events that this package writes and reads.
const Format = "event/2"

// Line returns event as a line of a ledger, without the newline. The event must
// encode as a JSON object that has a sequence and no format.
func Line(event any) ([]byte, error) {
	text, err := json.Marshal(event)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The event cannot be written as JSON.")
	}
	parsed, err := writ.Parse(text)
	if err != nil {
		return nil, err
	}
	members, ok := parsed.(writ.Object)
	if !ok {
		return nil, fault.New(fault.Internal, "An event must be a JSON object.")
	}
	if n, ok := members["sequence"].(int64); !ok || n < 1 {
		return nil, fault.New(fault.Internal, "An event must have a sequence, counted from 1.")
	}
	if _, taken := members["format"]; taken {
		return nil, fault.New(fault.Internal, "An event must leave the member format to the ledger.")
	}
	members["format"] = Format
	line, err := writ.Canonical(members)
	if err != nil {
		return nil, err
	}
	if len(line) > writ.MaxSize {
		return nil, fault.New(fault.Invalid, "The event has %d bytes, more than the %d of a line of the audit.", len(line), writ.MaxSize)
	}
	return line, nil
}

// checkLine says what is wrong with the form of a line; "" if nothing is.
func checkLine(line []byte, sequence int64) string {
	parsed, err := writ.Parse(line)
	if err != nil {
		return fmt.Sprintf("it is not strict JSON (%s)", fault.TextOf(err))
	}
	event, ok := parsed.(writ.Object)
	if !ok || event["format"] != Format {
		return "it is not an event of the format " + Format
	}
	if canonical, err := writ.Canonical(event); err != nil || !bytes.Equal(canonical, line) {
		return "it is not in canonical form"
	}
	if n, ok := event["sequence"].(int64); !ok || n != sequence {
		return fmt.Sprintf("it does not have the sequence %d", sequence)
	}
	return ""
}

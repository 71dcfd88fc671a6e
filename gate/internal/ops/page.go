package ops

import (
	"encoding/base64"
	"strings"

	"writ/fault"
)

// A cursor is where the next page of a list begins, after the last thing on the
// page before: what is new meanwhile moves nothing. It names the list and what
// the list was asked for, so that it fits no other; whoever asks is checked as
// without it.
func cursor(list, of, after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + " " + of + " " + after))
}

// after returns where a cursor points to, "" for none.
func after(cursor, list, of string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	place, fits := strings.CutPrefix(string(text), list+" "+of+" ")
	if err != nil || !fits || place == "" {
		return "", fault.Wrap(fault.Invalid, err, "The cursor is none of this list, or the list is asked for something else than before. Begin without it.").Because("cursor")
	}
	return place, nil
}

// page returns the first limit things of a list that was asked for one more, and
// whether there are more.
func page[T any](list []T, limit int) ([]T, bool) {
	if len(list) <= limit {
		return list, false
	}
	return list[:limit], true
}

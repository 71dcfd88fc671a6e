package ops

import (
	"encoding/base64"
	"slices"
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

// paging is what a list takes that is looked through whole.
type paging struct {
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the page before, with the same selection"`
	Limit  int64  `query:"limit" minimum:"1" maximum:"1000" doc:"At most so many; 1000, if left out"`
}

// sheet returns one page of a whole list, in the order of the places that its
// things have, and the cursor of the next.
func sheet[T any](in paging, list []T, name, of string, order func(a, b string) int, place func(T) string) ([]T, string, error) {
	from, err := after(in.Cursor, name, of)
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(list, func(a, b T) int { return order(place(a), place(b)) })
	if from != "" {
		i, there := slices.BinarySearchFunc(list, from, func(t T, from string) int { return order(place(t), from) })
		if there {
			i++
		}
		list = list[i:]
	}
	if in.Limit == 0 {
		in.Limit = 1000
	}
	list, more := page(list, int(in.Limit))
	if !more {
		return list, "", nil
	}
	return list, cursor(name, of, place(list[len(list)-1])), nil
}

package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"writ/fault"
)

// TestFollow: a stream that breaks off goes on where it was, and ends with the change.
func TestFollow(t *testing.T) {
	t.Parallel()
	var asked []string
	c := dial(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Last-Event-ID")+" "+r.Header.Get("Accept"))
		switch len(asked) {
		case 1:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "retry: 1000\n\nid: 8\ndata: {\"a\":1}\n\n: nothing new\n\nid: 9\ndata: {\"a\":2}\n\nid: 10\n")
		case 2: // the gate is being started again
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"code":"unavailable","detail":"It stops."}`)
		case 3:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 10\ndata: {\"a\":3}\n\n")
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	got := ""
	err := c.Follow(t.Context(), "chg_1", 7, func(e json.RawMessage) error { got += string(e); return nil })
	if err != nil || got != `{"a":1}{"a":2}{"a":3}` {
		t.Errorf("%q %v", got, err)
	}
	const path = "/v1/changes/chg_1/events "
	if want := fmt.Sprint([]string{path + "7 text/event-stream", path + "9 text/event-stream", path + "9 text/event-stream", path + "10 text/event-stream"}); fmt.Sprint(asked) != want {
		t.Errorf("%v, not %v", asked, want)
	}
}

func TestFollow_stops(t *testing.T) {
	t.Parallel()
	refuse := dial(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"not_found","detail":"There is none."}`)
	}))
	if err := refuse.Follow(t.Context(), "chg_1", 0, nil); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("refused: %v", err)
	}
	if err := refuse.Follow(t.Context(), "..", 0, nil); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("another route: %v", err)
	}
	backwards := dial(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: 5\ndata: {}\n\n")
	}))
	if err := backwards.Follow(t.Context(), "chg_1", 5, nil); fault.CodeOf(err) != fault.Internal {
		t.Errorf("an event for the second time: %v", err)
	}
	enough := errors.New("enough")
	if err := backwards.Follow(t.Context(), "chg_1", 0, func(json.RawMessage) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("enough: %v", err)
	}
}

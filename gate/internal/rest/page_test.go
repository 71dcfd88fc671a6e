package rest_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ/api"
	"writ/fault"
)

// TestPages: pages are without gaps and without repetition, whatever is new meanwhile.
func TestPages(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	want := map[string]bool{}
	for range 5 {
		want[g.propose().ID] = true
	}
	next := ""
	for n := 0; len(want) > 0; n++ {
		list := call[api.Changes](g, "auditor", "GET", "/v1/changes?limit=2&cursor="+url.QueryEscape(next), "")
		for _, c := range list.Changes {
			if !want[c.ID] {
				t.Errorf("page %d has %s, which is new or was on a page before", n, c.ID)
			}
			delete(want, c.ID)
		}
		g.propose()
		if next = list.NextCursor; (next == "") != (len(want) == 0) || n > 5 {
			t.Fatalf("page %d: %d are missing, and the next page is %q", n, len(want), next)
		}
	}
	last := 0
	for n, next := 0, ""; n == 0 || next != ""; n++ {
		list := call[api.Events](g, "auditor", "GET", "/v1/events?limit=7&cursor="+url.QueryEscape(next), "")
		next, last = list.NextCursor, last+len(list.Events)
		if n > 50 {
			t.Fatal("the pages of events do not end")
		}
	}
	if all := len(call[api.Events](g, "auditor", "GET", "/v1/events", "").Events); all != last {
		t.Errorf("%d events on pages, %d in all", last, all)
	}
}

// TestPages_wholeLists: also the lists that are looked through whole have pages.
func TestPages_wholeLists(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for range 3 {
		call[api.Halt](g, "operator", "POST", "/v1/halts", `{"target":"mock/a","reason":"wait"}`)
	}
	for path, whole := range map[string]int{"/v1/actions?": 2, "/v1/systems?": 1, "/v1/halts?lifted=true&": 3, "/v1/locks?released=true&": 0} {
		all := call[map[string]any](g, "auditor", "GET", path, "")
		var got, want []any
		for n, next := 0, ""; n == 0 || next != ""; n++ {
			page := call[map[string]any](g, "auditor", "GET", path+"limit=1&cursor="+next, "")
			for name, list := range page {
				if things, ok := list.([]any); ok {
					got, want = append(got, things...), all[name].([]any)
				}
			}
			next, _ = page["next_cursor"].(string)
			if n > 100 {
				t.Fatalf("%s: the pages do not end", path)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || len(got) < whole {
			t.Errorf("%s: %d on pages (-whole +pages):\n%s", path, len(got), diff)
		}
		if p := g.refused(g.request("auditor", "GET", path+"cursor=x", "")); p.Status != 400 {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// TestPages_cursor: a cursor fits its own list only.
func TestPages_cursor(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.propose().ID
	g.propose()
	changes := call[api.Changes](g, "auditor", "GET", "/v1/changes?limit=1", "").NextCursor
	for _, none := range []string{"principal=nobody", "target=none", "action=none.*", "since=9999-01-01T00:00:00.000Z", "until=0001-01-01T00:00:00.000Z"} {
		if list := call[api.Events](g, "auditor", "GET", "/v1/events?"+none, ""); len(list.Events) != 0 {
			t.Errorf("%s selects %d events", none, len(list.Events))
		}
	}
	if p := g.refused(g.request("auditor", "GET", "/v1/events?since=yesterday", "")); p.Code != fault.Invalid {
		t.Errorf("since yesterday: %+v", p)
	}
	events := call[api.Events](g, "auditor", "GET", "/v1/events?limit=1", "").NextCursor
	for _, path := range []string{
		"/v1/changes?cursor=" + events, "/v1/events?cursor=" + changes, "/v1/changes?state=done&cursor=" + changes,
		"/v1/changes?before=" + id + "&cursor=" + changes, "/v1/events?after=1&cursor=" + events, "/v1/events?change=" + id + "&cursor=" + events, "/v1/events?target=x&cursor=" + events,
		"/v1/changes?cursor=x", "/v1/changes?cursor=AAAA", "/v1/events?cursor=" + fmt.Sprintf("%0600d", 0),
	} {
		if p := g.refused(g.request("auditor", "GET", path, "")); p.Status != 400 {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if list := call[api.Changes](g, "other", "GET", "/v1/changes?cursor="+changes, ""); len(list.Changes) != 0 {
		t.Error("a cursor shows somebody else's changes")
	}
}

package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ/api"
	"writ/fault"
	"writ/gate/internal/rest"
)

// listening is the gate on a port of loopback, as it serves.
func (g *gate) listening() (base string, stop func()) {
	g.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- rest.Serve(ctx, g.handler, slog.New(slog.DiscardHandler), time.Minute, l) }()
	return "http://" + l.Addr().String(), func() {
		cancel()
		if err := <-done; err != nil {
			g.t.Error(err)
		}
	}
}

// follow opens the stream of a change.
func (g *gate) follow(base, who, id, last string) *http.Response {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), "GET", base+"/v1/changes/"+id+"/events", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.tokens[who])
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// told reads a stream up to an event of a type, or to its end, and returns the
// events and the last id.
func told(t *testing.T, lines *bufio.Scanner, until string) (events []string, last string) {
	t.Helper()
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			last = id
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct{ Event string }
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, data)
		if e.Event == until {
			return events, last
		}
	}
	return events, last
}

// TestStream: who follows a change is told each event as it comes, once, also
// across a break, and that nothing more will come.
func TestStream(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	base, stop := g.listening()
	id := g.propose().ID
	first := g.follow(base, "agent", id, "")
	if kind := first.Header.Get("Content-Type"); kind != "text/event-stream" || first.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", first.StatusCode, first.Header)
	}
	live := bufio.NewScanner(first.Body)
	before, last := told(t, live, "change.decided")
	again := bufio.NewScanner(g.follow(base, "agent", id, last).Body)
	call[api.Change](g, "approver", "POST", "/v1/changes/"+id+"/approvals", g.agreement(id))
	after, end := told(t, live, "")
	resumed, _ := told(t, again, "")
	g.end(id)
	all := call[api.Events](g, "agent", "GET", "/v1/changes/"+id+"/events", "").Events
	if len(before) == 0 || len(after) == 0 || len(before)+len(after) != len(all) || len(resumed) != len(after) {
		t.Fatalf("%d events before, %d after, %d resumed, of %d", len(before), len(after), len(resumed), len(all))
	}
	for i, e := range append(before, after...) {
		if e != string(all[i]) {
			t.Errorf("event %d is %s, and not %s", i, e, all[i])
		}
	}
	for i := range resumed {
		if resumed[i] != after[i] {
			t.Errorf("resumed with %s, and not %s", resumed[i], after[i])
		}
	}
	if resp := g.follow(base, "agent", id, end); resp.StatusCode != http.StatusNoContent {
		t.Errorf("after the end: %d", resp.StatusCode)
	}
	if resp := g.follow(base, "other", id, ""); resp.StatusCode != http.StatusNotFound || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("somebody else's change: %d", resp.StatusCode)
	}
	stop()
}

// TestStream_bounds: one principal follows so many changes at once, and nobody
// keeps the gate from stopping.
func TestStream_bounds(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	base, stop := g.listening()
	id := g.propose().ID
	var open []*http.Response
	for range 8 {
		resp := g.follow(base, "agent", id, "")
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.StatusCode)
		}
		open = append(open, resp)
	}
	resp := g.follow(base, "agent", id, "")
	var p api.Problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || resp.StatusCode != http.StatusTooManyRequests || p.Code != fault.Exhausted {
		t.Errorf("one more: %d %+v", resp.StatusCode, p)
	}
	if resp := g.follow(base, "approver", id, ""); resp.StatusCode != http.StatusOK {
		t.Errorf("somebody else: %d", resp.StatusCode)
	}
	stop()
	for _, resp := range open {
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Errorf("a stream was torn: %v", err)
		}
	}
}

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/api"
	netbox "writ/connector/netbox/fake"
	"writ/e2e/fakes"
)

// wire is an installation that reaches its NetBox through a proxy.
type wire struct {
	*installation
	proxy  *proxy
	netbox *netbox.Server
	broken int
	states map[string]int
}

// TestWire breaks the connection between executor and target at every border of
// a message and inside: what is said of the write afterwards must not be what
// the target knows to be wrong.
func TestWire(t *testing.T) {
	t.Parallel()
	bin, err := programs.build()
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{installation: newInstallation(t, bin), states: map[string]int{}}
	w.netbox = netbox.New(netbox.Config{Demo: true, EnforceUnique: true, Tokens: []netbox.Token{{User: "writ", Secret: fakes.NetBoxToken, Write: true}}})
	server := httptest.NewServer(w.netbox)
	t.Cleanup(server.CloseClientConnections)
	w.proxy = newProxy(t, strings.TrimPrefix(server.URL, "http://"))
	w.writ("environment=lab\nbase_url=http://"+w.proxy.Addr().String()+"\ntoken="+fakes.NetBoxToken+"\n", "systems", "add", "netbox")
	w.raise()
	w.change(t.Context(), breach{after: 1 << 30}) // makes the tag
	w.change(t.Context(), breach{after: 1 << 30})
	request, answer := w.proxy.seen()
	if w.states["done"] != 2 || len(request) == 0 || len(answer) == 0 {
		t.Fatalf("without a breach: %v\n%s\n%s", w.states, request, answer)
	}
	begun := time.Now()
	all := breaches(request, answer)
	for n, b := range all {
		w.change(t.Context(), b)
		if t.Failed() {
			t.Fatalf("broken at %+v of\n%s\n%s", b, request, answer)
		}
		if (n+1)%100 == 0 {
			t.Logf("%d of %d breaches, %s", n+1, len(all), time.Since(begun).Round(time.Second))
		}
	}
	w.verified()
	var ends []string
	for _, s := range slices.Sorted(maps.Keys(w.states)) {
		ends = append(ends, fmt.Sprintf("%s %d", s, w.states[s]))
	}
	t.Logf("%d breaches in %s, of a request of %d bytes and an answer of %d: %s", w.broken, time.Since(begun).Round(time.Second), len(request), len(answer), strings.Join(ends, ", "))
	for _, s := range []string{"done", "unknown"} {
		if w.states[s] == 0 {
			t.Errorf("nothing ended as %s", s)
		}
	}
}

// breaches lists where to break: all of it in the whole run, else the borders
// and a part of what is between.
func breaches(request, answer []byte) (all []breach) {
	for i, message := range [][]byte{request, answer} {
		head := bytes.Index(message, []byte("\r\n\r\n"))
		places := []int{0, 1, bytes.IndexByte(message, '\n') + 1, head, head + 2, head + 4, head + 5, len(message) - 1, len(message)}
		step := len(message)/3 + 1
		if *crashWhole {
			step = 1
		}
		for at := 7; at < len(message); at += step {
			places = append(places, at)
		}
		slices.Sort(places)
		for _, at := range slices.Compact(places) {
			for _, how := range []string{breakCut, breakReset, breakHalf, breakDelay} {
				if how == breakDelay && at%97 != 0 && *crashWhole {
					continue
				}
				if inside := at > 1 && at < head; !*crashWhole && inside && how != breakCut {
					continue
				}
				all = append(all, breach{answer: i == 1, after: at, how: how})
			}
		}
	}
	return all
}

// change carries out one change through a breach, compares what is said of it
// with the target, and lets a person settle what is unknown.
func (w *wire) change(ctx context.Context, b breach) {
	w.t.Helper()
	w.next++
	w.broken++
	value := fmt.Sprintf("value %06d end", w.next)
	before := w.description(ctx)
	ch, err := w.agent.Propose(ctx, api.Proposal{Steps: []api.ProposedStep{{ActionType: "netbox.test_write", Params: writ.Object{"description": value}}}}, "")
	for err == nil && (ch.State == "proposed" || ch.State == "planned") {
		ch, err = w.alice.Wait(ctx, ch.ID, patience)
	}
	if err != nil || ch.State != "awaiting_approval" {
		w.t.Fatalf("propose: it is %s: %v %+v", ch.State, err, ch.Trouble)
	}
	review, err := w.alice.Review(ctx, ch.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	w.proxy.arm(b)
	if _, err = w.alice.Approve(ctx, ch.ID, api.Agreement{EnvelopeDigest: review.EnvelopeDigest, ShownDigest: review.ShownDigest, Phrase: review.Phrase}); err != nil {
		w.t.Fatal(err)
	}
	for !ch.Ended {
		if ch, err = w.alice.Wait(ctx, ch.ID, patience); err != nil {
			w.t.Fatal(err)
		}
	}
	after := w.description(ctx)
	w.states[ch.State]++
	happened := after == value
	if !happened && after != before {
		w.t.Errorf("the tag says %q", after)
	}
	switch ch.State {
	case "done", "unverified":
		if !happened {
			w.t.Errorf("it is %s, and had no effect", ch.State)
		}
	case "failed":
		if happened {
			w.t.Errorf("it is failed (%s), and had its effect", ch.Receipts[0].Outcome)
		}
	case "unknown":
		w.reconcile(ctx, ch.ID, happened)
	default:
		w.t.Errorf("it is %s: %+v", ch.State, ch.Trouble)
	}
}

// reconcile lets the executor look, which must see what is true, and settles it.
func (w *wire) reconcile(ctx context.Context, id string, happened bool) {
	probe, err := w.alice.Probe(ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	s := api.Settlement{ShownDigest: probe.ShownDigest, Phrase: probe.Phrase, Note: "looked", Resolution: "absent"}
	want := writ.DidNotHappen
	if happened {
		want, s.Resolution = writ.Happened, "adopt"
	}
	if probe.Verdict != want {
		w.t.Errorf("the probe says %s, and the target %s:\n%s", probe.Verdict, want, probe.Text)
	}
	if _, err := w.alice.Reconcile(ctx, id, s); err != nil {
		w.t.Fatalf("settle as %s: %v", s.Resolution, err)
	}
	if locks, err := w.alice.Locks(ctx, false); err != nil || len(locks.Locks) > 0 {
		w.t.Errorf("it was settled, and %d locks are left: %v", len(locks.Locks), err)
	}
}

// description is what the tag says, asked of the target itself.
func (w *wire) description(ctx context.Context) string {
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/extras/tags/?slug=writ-test", nil)
	req.Header.Set("Authorization", "Token "+fakes.NetBoxToken)
	answer := httptest.NewRecorder()
	w.netbox.ServeHTTP(answer, req)
	var list struct {
		Results []struct{ Description string }
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
		w.t.Fatalf("%v in %s", err, answer.Body)
	}
	if len(list.Results) == 0 {
		return ""
	}
	return list.Results[0].Description
}

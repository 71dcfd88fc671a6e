package mcp_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"writ/gate/internal/auth"
	"writ/sys"
)

// TestLimits: a model is told that it asks too much by the tool, any other message
// by its status.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clock := sys.Real(slog.New(slog.DiscardHandler))
	now := clock.Now()
	clock.Now = func() time.Time { return now }
	s := w.session("agent", "2025-11-25")
	w.Limits = auth.NewLimits(clock, auth.Rates{RequestsPerSecond: 4, ProposalsPerMinute: 1})
	if r := result(w, s, "propose_change", proposal); r.IsError {
		t.Fatal(textOf(t, r))
	}
	r := result(w, s, "propose_change", proposal)
	if text := textOf(t, r); !r.IsError || r.Meta["writ/code"] != "exhausted" || r.Meta["writ/retry_after"] != 60.0 || !strings.Contains(text, "reason proposals_per_minute") || !strings.Contains(text, "1m0s") {
		t.Errorf("%v %s", r.Meta, text)
	}
	for range 6 {
		if r := result(w, s, "get_policy", nil); r.IsError {
			t.Fatal(textOf(t, r))
		}
	}
	if r := result(w, s, "get_policy", nil); !r.IsError || r.Meta["writ/reason"] != "requests_per_second" || r.Meta["writ/retry_after"] != 1.0 {
		t.Errorf("%v %s", r.Meta, textOf(t, r))
	}
	if status, body := w.post("agent", list, nil); status != 429 || !strings.Contains(body, `"id":1`) || !strings.Contains(body, "Ask again in 1s") {
		t.Errorf("%d %s", status, body)
	}
	if r := result(w, w.session("other", ""), "get_policy", nil); r.IsError {
		t.Errorf("another agent: %s", textOf(t, r))
	}
}

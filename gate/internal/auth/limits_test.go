package auth_test

import (
	"fmt"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/auth"
	"writ/gate/internal/model"
)

func caller(name string) model.Caller {
	return model.Caller{Principal: writ.Principal{Name: name, Kind: writ.Agent}}
}

// TestLimits: each principal has a part of its own, which comes back with time.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := auth.NewLimits(c.Sys, auth.Rates{RequestsPerSecond: 5, ProposalsPerMinute: 3})
	for what, ask := range map[string]struct {
		one   func(model.Caller) error
		burst int
		every time.Duration
	}{
		"requests_per_second":  {l.Request, 10, 200 * time.Millisecond},
		"proposals_per_minute": {l.Proposal, 3, 20 * time.Second},
	} {
		for range ask.burst {
			if err := ask.one(caller("bot")); err != nil {
				t.Fatal(what, err)
			}
		}
		for range 1000 { // what is refused costs nothing
			err := ask.one(caller("bot"))
			if fault.CodeOf(err) != fault.Exhausted || fault.ReasonOf(err) != what || fault.AfterOf(err) != int64((ask.every+time.Second-1)/time.Second) {
				t.Fatalf("%v %s %d", err, fault.ReasonOf(err), fault.AfterOf(err))
			}
		}
		if err := ask.one(caller("ana")); err != nil {
			t.Errorf("%s of somebody else: %v", what, err)
		}
		c.at = c.at.Add(ask.every)
		if err := ask.one(caller("bot")); err != nil {
			t.Errorf("%s later: %v", what, err)
		}
		if err := ask.one(caller("bot")); err == nil {
			t.Errorf("%s: one time gave two", what)
		}
		c.at = c.at.Add(-time.Hour)
		if err := ask.one(caller("bot")); err == nil {
			t.Errorf("%s: a clock that was set back gave one", what)
		}
		c.at = c.at.Add(ask.every)
		if err := ask.one(caller("bot")); err != nil {
			t.Errorf("%s after the clock was set back: %v", what, err)
		}
	}
	var none *auth.Limits
	if none.Request(caller("bot")) != nil || none.Proposal(caller("bot")) != nil || none.Stranger("") != nil {
		t.Error("no limits limit")
	}
}

// TestLimits_strangers: who is not known is counted by where the call comes from,
// and however many there are, they take no more memory than a thousand.
func TestLimits_strangers(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := auth.NewLimits(c.Sys, auth.Rates{RequestsPerSecond: 5, ProposalsPerMinute: 3})
	tries := func(from func(int) string) int {
		n := 0
		for n < 5000 && l.Stranger(from(n)) == nil {
			n++
		}
		return n
	}
	same := func(address string) func(int) string { return func(int) string { return address } }
	if n := tries(same("192.0.2.1:4000")); n != 20 {
		t.Errorf("%d at once from one address", n)
	}
	if n := tries(func(i int) string { return fmt.Sprintf("192.0.2.1:%d", i) }); n != 0 {
		t.Errorf("%d more from other ports", n)
	}
	if n := tries(func(i int) string { return fmt.Sprintf("[2001:db8::%x]:1", i) }); n != 20 {
		t.Errorf("%d from one network", n)
	}
	if n := tries(same("@")); n != 20 {
		t.Errorf("%d from a socket", n)
	}
	many := func(i int) string { return fmt.Sprintf("198.51.%d.%d:1", i>>8&255, i&255) }
	if n := tries(many); n < 900 || n > 1100 {
		t.Errorf("%d from as many addresses", n)
	}
	c.at = c.at.Add(time.Minute)
	if n := tries(many); n < 900 {
		t.Errorf("%d later", n)
	}
}

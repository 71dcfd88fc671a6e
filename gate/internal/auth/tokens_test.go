package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/auth"
	"writ/gate/internal/model"
	"writ/sys"
)

// clock is a machine whose time a test sets.
type clock struct {
	sys.Sys
	at time.Time
}

func newClock() *clock {
	c := &clock{Sys: sys.Real(slog.New(slog.DiscardHandler)), at: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	c.Now = func() time.Time { return c.at }
	return c
}

// TestTokens: a token lasts until its end or until it is revoked, beside others
// of the same principal, and is refused with the reason from the next call on.
func TestTokens(t *testing.T) {
	t.Parallel()
	c, path := newClock(), filepath.Join(t.TempDir(), "principals.yaml")
	bot := auth.Principal{Name: "bot", Kind: writ.Agent, Roles: []model.Role{model.Requester}}
	first, err := auth.Add(c.Sys, path, bot, auth.New{Label: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := auth.AddToken(c.Sys, path, "bot", auth.New{Term: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	lasting, err := auth.AddToken(c.Sys, path, "bot", auth.New{Term: auth.Never})
	if err != nil {
		t.Fatal(err)
	}
	if first.ExpiresAt != c.at.Add(auth.AgentTerm) || second.ExpiresAt != c.at.Add(time.Hour) || !lasting.ExpiresAt.IsZero() {
		t.Errorf("they end %s, %s, %s", first.ExpiresAt, second.ExpiresAt, lasting.ExpiresAt)
	}
	p, err := auth.Open(c.Sys, path)
	if err != nil {
		t.Fatal(err)
	}
	wants := func(token, reason string) {
		t.Helper()
		who, err := p.Authenticate(token)
		switch {
		case reason == "" && (err != nil || who.Name != "bot"):
			t.Errorf("%+v, %v", who, err)
		case reason != "" && (fault.CodeOf(err) != fault.Unauthenticated || fault.ReasonOf(err) != reason || who.Name != "" || !strings.Contains(err.Error(), "writ tokens")):
			t.Errorf("%+v, %v, not %s", who, err, reason)
		}
	}
	for _, m := range []auth.Made{first, second, lasting} {
		wants(m.Token, "")
	}
	c.at = second.ExpiresAt.Add(-time.Millisecond)
	wants(second.Token, "")
	c.at = second.ExpiresAt
	wants(second.Token, "token_expired")
	wants(first.Token, "")
	if name, err := auth.Revoke(c.Sys, path, first.ID); err != nil || name != "bot" {
		t.Errorf("%q %v", name, err)
	}
	wants(first.Token, "token_revoked")
	wants(lasting.Token, "")
	if _, err := auth.Revoke(c.Sys, path, "tok_000000000000"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("revoking nothing: %v", err)
	}
	if _, err := auth.AddToken(c.Sys, path, "nobody", auth.New{}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a token for nobody: %v", err)
	}
	if gone, err := auth.Remove(path, "bot"); err != nil || gone.Kind != writ.Agent {
		t.Errorf("%+v %v", gone, err)
	}
	wants(lasting.Token, "unknown_token")
	if _, err := auth.Remove(path, "bot"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("removed twice: %v", err)
	}
}

// TestTokens_kept: what is not taken any more is forgotten in the end, and there
// is an end to how many there are.
func TestTokens_kept(t *testing.T) {
	t.Parallel()
	c, path := newClock(), filepath.Join(t.TempDir(), "principals.yaml")
	if _, err := auth.Add(c.Sys, path, auth.Principal{Name: "ana", Kind: writ.Human, Roles: []model.Role{model.Approver}}, auth.New{Term: auth.Never}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		c.at = c.at.Add(time.Hour)
		if _, err := auth.AddToken(c.Sys, path, "ana", auth.New{Term: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := auth.Open(c.Sys, path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.List()
	if err != nil || len(list[0].Tokens) != 10 || !list[0].Tokens[0].ExpiresAt.IsZero() {
		t.Errorf("%d tokens, %v", len(list[0].Tokens), err)
	}
	for err == nil {
		_, err = auth.AddToken(c.Sys, path, "ana", auth.New{Term: auth.Never})
	}
	if fault.CodeOf(err) != fault.Exhausted {
		t.Error(err)
	}
}

// TestOpen_old: a file from when a principal had one token works as it is, and
// the token can be revoked like any other.
func TestOpen_old(t *testing.T) {
	t.Parallel()
	c, path := newClock(), filepath.Join(t.TempDir(), "principals.yaml")
	const token, sum = "test", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	if err := os.WriteFile(path, []byte("- name: ana\n  kind: human\n  roles: [approver]\n  token_sha256: "+sum+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := auth.Open(c.Sys, path)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := p.Authenticate(token); err != nil || who.Name != "ana" {
		t.Errorf("%+v %v", who, err)
	}
	if _, err := auth.Revoke(c.Sys, path, "tok_9f86d081884c"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Authenticate(token); fault.ReasonOf(err) != "token_revoked" {
		t.Error(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), "token_sha256") || !strings.Contains(string(data), "sha256: "+sum) {
		t.Errorf("%s %v", data, err)
	}
}

// TestFollow: who may call is recorded, and each change before it takes effect.
func TestFollow(t *testing.T) {
	t.Parallel()
	c, path := newClock(), filepath.Join(t.TempDir(), "principals.yaml")
	ana := add(t, path, "ana", writ.Human, model.Approver)
	p, err := auth.Open(c.Sys, path)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	var full error
	if err := p.Follow(func(e model.EventType, detail writ.Object) error {
		if _, err := writ.Canonical(detail); err != nil {
			t.Error(err)
		}
		told = append(told, fmt.Sprint(e, detail))
		return full
	}); err != nil {
		t.Fatal(err)
	}
	bot := add(t, path, "bot", writ.Agent, model.Requester)
	full = errors.New("the disk is full")
	for range 2 {
		if _, err := p.Authenticate(ana); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("while nothing can be recorded: %v", err)
		}
	}
	full = nil
	for range 2 {
		if _, err := p.Authenticate(bot); err != nil {
			t.Error(err)
		}
	}
	list, err := p.List()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := auth.Revoke(c.Sys, path, list[1].Tokens[0].ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Authenticate(bot); fault.ReasonOf(err) != "token_revoked" {
		t.Error(err)
	}
	if _, err := auth.Remove(path, "ana"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Authenticate(ana); fault.ReasonOf(err) != "unknown_token" {
		t.Error(err)
	}
	if len(told) != 6 {
		t.Fatalf("%d events: %q", len(told), told)
	}
	for i, want := range []string{"principals.loaded", "added agent:bot", "added agent:bot", "added agent:bot", "revoked 2026-05-04T03:02:01.000Z", "removed human:ana"} {
		if !strings.Contains(told[i], want) || strings.Contains(told[i], ana) || strings.Contains(told[i], bot) {
			t.Errorf("event %d: %s", i, told[i])
		}
	}
}

// TestKeepUsed: when a token was used last is written down without a call
// waiting for it, and forgotten with the token.
func TestKeepUsed(t *testing.T) {
	t.Parallel()
	c, path := newClock(), filepath.Join(t.TempDir(), "principals.yaml")
	bot := add(t, path, "bot", writ.Agent, model.Requester)
	add(t, path, "ana", writ.Human, model.Approver)
	p, err := auth.Open(c.Sys, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Authenticate(bot); err != nil {
		t.Fatal(err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	p.KeepUsed(ended)
	list, err := p.List()
	if err != nil {
		t.Fatal(err)
	}
	used := auth.LastUsed(path)
	if at := used[list[0].Tokens[0].ID()]; len(used) != 1 || !at.Equal(c.at) {
		t.Errorf("%v", used)
	}
	if _, err := auth.Remove(path, "bot"); err != nil {
		t.Fatal(err)
	}
	if p, err = auth.Open(c.Sys, path); err != nil {
		t.Fatal(err)
	}
	p.KeepUsed(ended)
	if used := auth.LastUsed(path); len(used) != 0 {
		t.Errorf("%v", used)
	}
}

// TestEdit_alone: two who change the file at once lose nothing of each other.
func TestEdit_alone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "principals.yaml")
	add(t, path, "ana", writ.Human, model.Approver)
	if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.Remove(path, "ana"); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), path+".new") {
		t.Errorf("beside another: %v", err)
	}
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.Remove(path, "nobody"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if _, err := auth.Remove(path, "ana"); err != nil {
		t.Errorf("after one that failed: %v", err)
	}
}

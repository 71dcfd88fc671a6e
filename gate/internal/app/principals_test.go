package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/client"
	"writ/fault"
)

type person struct {
	Name   string `json:"name"`
	Tokens []struct {
		ID         string    `json:"id"`
		Label      string    `json:"label"`
		State      string    `json:"state"`
		ExpiresAt  writ.Time `json:"expires_at"`
		LastUsedAt writ.Time `json:"last_used_at"`
	} `json:"tokens"`
}

func (h *home) people() (all []person) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.must("list-principals")), &all); err != nil {
		h.t.Fatal(err)
	}
	return all
}

func (h *home) newToken(args ...string) (token, id string) {
	h.t.Helper()
	var made struct {
		Token string `json:"token"`
		ID    string `json:"token_id"`
	}
	if err := json.Unmarshal([]byte(h.must(append([]string{"add-token"}, args...)...)), &made); err != nil {
		h.t.Fatal(err)
	}
	return made.Token, made.ID
}

// TestTokens: what the commands do takes effect with the next call of a gate that
// runs, and is in its audit.
func TestTokens(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	g := h.start()
	ask := func(token string) error {
		t.Helper()
		c, err := client.New(h.path("gate.sock"), token)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Policy(t.Context())
		return err
	}
	second, id := h.newToken("ana", "--label", "phone", "--expires", "30d")
	for _, token := range []string{h.token, second} {
		if err := ask(token); err != nil {
			t.Error(err)
		}
	}
	h.must("revoke-token", id)
	if err := ask(second); fault.CodeOf(err) != fault.Unauthenticated || fault.ReasonOf(err) != "token_revoked" || !strings.Contains(err.Error(), id) {
		t.Errorf("a revoked token: %v", err)
	}
	h.must("add-principal", "bot", "--kind", "agent", "--role", "requester", "--expires", "never")
	h.must("remove-principal", "bot")
	if err := ask(h.token); err != nil {
		t.Error(err)
	}
	c, err := client.New(h.path("gate.sock"), h.token)
	if err != nil {
		t.Fatal(err)
	}
	events, err := c.Events(t.Context(), client.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range events.Events {
		if strings.Contains(string(e), `"event":"principals.`) {
			said = append(said, string(e))
		}
	}
	if len(said) != 3 || !strings.Contains(said[0], "human:ana") || !strings.Contains(said[1], "has the token "+id) || !strings.Contains(said[2], id+", ends") || !strings.Contains(said[2], "revoked") {
		t.Errorf("the audit says %s", said)
	}
	if i := slices.IndexFunc(said, func(e string) bool { return strings.Contains(e, second) || strings.Contains(e, h.token) }); i >= 0 {
		t.Errorf("it holds a token: %s", said[i])
	}
	g.stop()
	if status := <-g.ended; status != 0 {
		t.Errorf("stopped with %d: %s", status, g.log.text.String())
	}
	all := h.people()
	if len(all) != 1 || len(all[0].Tokens) != 2 || all[0].Tokens[0].LastUsedAt.IsZero() || all[0].Tokens[1].LastUsedAt.IsZero() ||
		all[0].Tokens[1].Label != "phone" || all[0].Tokens[0].State != "active" || all[0].Tokens[1].State != "revoked" {
		t.Errorf("%+v", all)
	}
}

func TestTokens_flags(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, bad := range []string{"0d", "-1d", "3651d", "99999999d", "x", "1", "1.5d", "-5m"} {
		if r := h.run("add-token", "ana", "--expires", bad); r.status != fault.Invalid.Row().Exit || !strings.Contains(r.stderr, "30d") {
			t.Errorf("%s: %d %s", bad, r.status, r.stderr)
		}
	}
	if r := h.run("add-token", "ana", "--label", "a\nb"); r.status != fault.Invalid.Row().Exit || !strings.Contains(r.stderr, "a label has") {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	// The doctor speaks of who will soon be without a token.
	h.must("doctor")
	h.newToken("ana", "--expires", "2h")
	h.must("doctor")
	first := h.people()[0].Tokens[0].ID
	h.must("revoke-token", first)
	if r := h.run("doctor"); r.status == 0 || !strings.Contains(r.stdout, "writ tokens rotate ana") {
		t.Errorf("%d %s", r.status, r.stdout)
	}
}

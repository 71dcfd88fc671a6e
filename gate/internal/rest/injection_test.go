package rest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/api"
	"writ/gate/internal/rest"
)

// injections are texts that claim to be an approval, a policy or the system.
func injections(t *testing.T) (texts []string) {
	t.Helper()
	data, err := os.ReadFile("testdata/injections.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var text string
		if err := json.Unmarshal(line, &text); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		texts = append(texts, text)
	}
	return texts
}

// verdict is all that a change is decided on and by.
type verdict struct {
	State      string
	Assessment *api.Assessment
	Decision   *api.Decision
	Approvals  int
}

// TestInjection: whatever an agent or a target says, the change is weighed and
// decided as with a plain word in its place, and no line of the agent's own
// words stands unmarked before the approver.
func TestInjection(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	session := ""
	places := map[string]func(*api.Proposal, string){
		"purpose":          func(p *api.Proposal, text string) { p.Purpose = text },
		"requested action": func(p *api.Proposal, text string) { p.RequestedAction = text },
		"rollback plan":    func(p *api.Proposal, text string) { p.RollbackPlan = text },
		"ticket":           func(p *api.Proposal, text string) { p.ChangeTicket = text },
		"params":           func(p *api.Proposal, text string) { p.Steps[0].Params = writ.Object{"value": text} },
		"the session":      func(_ *api.Proposal, text string) { session = text },
		"the target":       func(_ *api.Proposal, text string) { g.executor.Finds(text) },
	}
	ask := func(place, text string) (api.Change, bool) {
		g.executor.Finds("old")
		session = ""
		p := api.Proposal{Steps: []api.ProposedStep{{ActionType: "mock.noop_change", Params: writ.Object{"value": "new"}}}}
		places[place](&p, text)
		body, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		r := g.request("agent", "POST", "/v1/changes", string(body))
		if session != "" {
			r.Header.Set(rest.SessionHeader, session)
		}
		resp := g.serve(r)
		data := read(t, resp)
		var c api.Change
		if resp.StatusCode == 200 {
			if err := json.Unmarshal(data, &c); err != nil {
				t.Fatal(err)
			}
		}
		return c, resp.StatusCode == 200 // else it is too long for its place, or no text at all
	}
	for place := range places {
		plain, ok := ask(place, "plain")
		if !ok || plain.State != "awaiting_approval" {
			t.Fatalf("%s: a plain word is %s", place, plain.State)
		}
		want := verdict{plain.State, plain.Assessment, plain.Decision, 0}
		ours := strings.Split(call[api.Review](g, "approver", "GET", "/v1/changes/"+plain.ID+"/review", "").Text, "\n")
		taken := 0
		for _, text := range injections(t) {
			c, ok := ask(place, text)
			if !ok {
				continue
			}
			taken++
			if diff := cmp.Diff(want, verdict{c.State, c.Assessment, c.Decision, len(c.Approvals)}); diff != "" {
				t.Errorf("%s: %q changed what was decided:\n%s", place, text, diff)
			}
			unmarked(t, g, c.ID, ours, text)
		}
		if taken < 4 {
			t.Errorf("%s: only %d texts were taken", place, taken)
		}
	}
}

// unmarked fails the test if a line of the review that is not one of ours begins
// as one of the text's does: the requester's lines are marked, and values stand
// behind their names.
func unmarked(t *testing.T, g *gate, id string, ours []string, text string) {
	t.Helper()
	r := call[api.Review](g, "approver", "GET", "/v1/changes/"+id+"/review", "")
	for line := range strings.SplitSeq(r.Text, "\n") {
		for said := range strings.SplitSeq(text, "\n") {
			if said = strings.TrimSpace(said); len(said) > 3 && strings.HasPrefix(strings.TrimSpace(line), said) && !slices.Contains(ours, line) {
				t.Errorf("%q stands before the approver as a line of its own: %q", said, line)
			}
		}
	}
	for _, r := range r.Text {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029) {
			t.Errorf("%q shows %U", text, r)
		}
	}
}

package artifact_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/artifact"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

const sections = "approval_request execution_chain_plan risk_summary lock_summary backup_summary rollback_summary " +
	"recovery_summary verification_summary audit_references operator_summary timeline"

// everyState returns a change in each state, with as much as it has then.
func everyState() map[model.State]*model.Change {
	all := map[model.State]*model.Change{}
	for _, s := range model.States() {
		c, _, _, _ := halfway()
		c.State = s
		switch s {
		case model.Proposed:
			c = &model.Change{ID: c.ID, State: s, RequestedBy: c.RequestedBy, Request: c.Request}
		case model.Planned:
			c.Assessment, c.Decision, c.Envelope, c.Approvals, c.Receipts, c.Trouble = nil, nil, nil, nil, nil, nil
		case model.Denied:
			c.Envelope, c.Approvals, c.Receipts = nil, nil, nil
			c.Decision.Effect, c.Decision.Reasons = model.Deny, []string{"Not here."}
		case model.Rejected:
			c.Receipts, c.Rejection = nil, &model.Rejection{By: writ.Principal{Name: "bob", Kind: writ.Human}, At: at(9), Reason: "no <b>way</b>"}
		case model.AwaitingApproval, model.Approved, model.Claimed:
			c.Receipts, c.Trouble = nil, nil
		case model.Cancelled, model.Expired:
			c.Receipts = nil
		case model.Executing:
			c.Receipts, c.Trouble = c.Receipts[:1], nil
		case model.Done:
			c.Receipts, c.Trouble = c.Receipts[:2], nil
		case model.Failed, model.Unverified, model.Unknown:
			c.Receipts = c.Receipts[:3]
		}
		all[s] = c
	}
	return all
}

func TestArtifact_hasExactlyItsSections(t *testing.T) {
	t.Parallel()
	_, events, locks, undone := halfway()
	for state, c := range everyState() {
		for _, c := range []*model.Change{c, spoiled(c)} {
			a, err := artifact.New(c, events, locks, undone)
			if err != nil {
				t.Fatalf("%s: %v", state, err)
			}
			text, err := json.Marshal(a)
			if err != nil {
				t.Fatalf("%s: %v", state, err)
			}
			parsed, err := writ.Parse(text) // strict: no name stands twice
			if err != nil {
				t.Fatalf("%s: the JSON is not strict: %v\n%s", state, fault.TextOf(err), text)
			}
			o, ok := parsed.(writ.Object)
			if !ok || o["format"] != "artifact/1" || o["change_id"] != c.ID || len(o) != 2+len(strings.Fields(sections)) {
				t.Errorf("%s: the members are %v", state, o)
			}
			for _, name := range strings.Fields(sections) {
				if _, ok := o[name].(writ.Object); !ok {
					t.Errorf("%s: the section %s is %v", state, name, o[name])
				}
			}
			for _, b := range text {
				if b < ' ' || b > '~' {
					t.Errorf("%s: the JSON has the byte %#x", state, b)
					break
				}
			}
			var headings []string
			for line := range strings.SplitSeq(a.Markdown(), "\n") {
				if heading, ok := strings.CutPrefix(line, "## "); ok {
					headings = append(headings, strings.ReplaceAll(heading, " ", "_"))
				}
			}
			if diff := cmp.Diff(strings.Fields(sections), headings); diff != "" {
				t.Errorf("%s: the headings differ (-want +got):\n%s", state, diff)
			}
		}
	}
}

// spoiled returns a copy of a change with attacks in it, as far as it has places for them.
func spoiled(c *model.Change) *model.Change {
	if len(c.Steps) < 2 {
		return c
	}
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err) // the changes are constants
	}
	var twin model.Change
	if err := json.Unmarshal(raw, &twin); err != nil {
		panic(err)
	}
	return hostile(&twin, "")
}

// What JSON says is what was said, to the last invisible character.
func TestArtifact_jsonLosesNothing(t *testing.T) {
	t.Parallel()
	c := waiting()
	purpose := "a\u202eb\u200b\U0001f642 \"quoted\" \\ <b>\n\x00"
	c.Request.Purpose = model.Prose(purpose)
	a, err := artifact.New(c, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ApprovalRequest struct{ Purpose string } `json:"approval_request"`
	}
	if err := json.Unmarshal(text, &got); err != nil || got.ApprovalRequest.Purpose != purpose {
		t.Errorf("the purpose is %+q, %v", got.ApprovalRequest.Purpose, err)
	}
}

// TestArtifact_markdownCannotBeBrokenOut compares the Markdown of a change full
// of attacks with that of the same change full of harmless words.
func TestArtifact_markdownCannotBeBrokenOut(t *testing.T) {
	t.Parallel()
	for _, attack := range attacks() {
		checkMarkdown(t, attack)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range attacks() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s != "" && utf8.ValidString(s) {
			checkMarkdown(t, s)
		}
	})
}

func checkMarkdown(t *testing.T, attack string) {
	t.Helper()
	got, want := markdownOf(t, attack), markdownOf(t, "harmless")
	if len(got) != len(want) {
		t.Fatalf("with %+q there are %d lines instead of %d:\n%s", attack, len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		before, _, _ := strings.Cut(want[i], "harmless")
		if !strings.HasPrefix(got[i], strings.TrimSuffix(before, `"`)) {
			t.Errorf("with %+q the line %q is %q", attack, want[i], got[i])
		}
		if sign := activeIn(got[i]); sign != "" {
			t.Errorf("with %+q the line %q has an active %q", attack, got[i], sign)
		}
	}
}

func markdownOf(t *testing.T, attack string) []string {
	t.Helper()
	c, events, locks, undone := halfway()
	locks[0].Entity = "px/" + attack
	locks[0].ChangeID = c.ID
	a, err := artifact.New(hostile(c, attack), events, locks, undone)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(a.Markdown(), "\n")
}

// activeIn returns the first sign in a line that Markdown would act on: one that
// is not escaped and is none of ours.
func activeIn(line string) string {
	line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "## "), "# "), "  ")
	line = strings.TrimPrefix(line, "- ")
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			i++
		case c == '&':
			entity, _, ok := strings.Cut(line[i:], ";")
			if !ok || entity != "&lt" && entity != "&gt" && entity != "&amp" {
				return line[i:]
			}
		case strings.IndexByte("<>`*[|#~", c) >= 0:
			return line[i:]
		case c == '_' && (i == 0 || i+1 == len(line) || !inWord(line[i-1]) || !inWord(line[i+1])):
			return line[i:]
		case i == 0 && strings.IndexByte("-+=", c) >= 0:
			return line
		}
	}
	return ""
}

func inWord(c byte) bool {
	return c >= utf8.RuneSelf || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func TestArtifact_damagedEvent(t *testing.T) {
	t.Parallel()
	if _, err := artifact.New(waiting(), []store.Line{{Sequence: 1, Bytes: []byte("{")}}, nil, nil); err == nil {
		t.Error("an event that cannot be read is left out in silence")
	}
}

func TestSummary_everyState(t *testing.T) {
	t.Parallel()
	for state, c := range everyState() {
		for _, c := range []*model.Change{c, spoiled(c)} {
			text := artifact.Summary(c)
			if text == "" || strings.ContainsAny(text, "\n\x1b\u202e\u200b") {
				t.Errorf("%s: the summary is %q", state, text)
			}
			untouched := c.State.Ended() && c.RunID == "" || state == model.Denied || state == model.Rejected || state == model.Expired || state == model.Cancelled
			if untouched && !strings.Contains(text, "Nothing was changed.") {
				t.Errorf("%s: the summary does not say that nothing was changed: %q", state, text)
			}
			if c.Held() && !strings.Contains(text, "lock") {
				t.Errorf("%s: the summary does not speak of the locks: %q", state, text)
			}
		}
	}
	failed := &model.Change{State: model.Failed, Trouble: &model.Trouble{Text: "No\u202e."}}
	if got := artifact.Summary(failed); got != `It failed, and the targets are as before. No\u{202e}.` {
		t.Errorf("the summary of a failure is %q", got)
	}
	denied := &model.Change{State: model.Denied, Trouble: &model.Trouble{Text: "No\u202e."}}
	if got := artifact.Summary(denied); got != `It was denied: No\u{202e}. Nothing was changed.` {
		t.Errorf("the summary of a denial is %q", got)
	}
	held := &model.Change{State: model.Approved, Trouble: &model.Trouble{Text: "The vault is\u202e locked."}}
	if got := artifact.Summary(held); !strings.HasSuffix(got, `Nothing was changed. In its way: The vault is\u{202e} locked.`) {
		t.Errorf("the summary of what is held up is %q", got)
	}
	done := &model.Change{State: model.Done}
	if got := artifact.Summary(done); !strings.Contains(got, "changed nothing") {
		t.Errorf("the summary of a run that changed nothing is %q", got)
	}
}

// What somebody pasted into a request does not go into what is handed on.
func TestArtifact_hidesSecrets(t *testing.T) {
	t.Parallel()
	c, events, locks, undone := halfway()
	c.Request.Purpose = "use password=fake-pasted-1 for it"
	c.Rejection = &model.Rejection{By: writ.Principal{Name: "bob", Kind: writ.Human}, At: at(9), Reason: "mine is Authorization: Bearer fake-pasted-2"}
	a, err := artifact.New(c, events, locks, undone)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	text := a.Markdown() + "\n" + string(encoded)
	if strings.Contains(text, "fake-pasted") || strings.Count(text, "redacted:") < 4 {
		t.Errorf("a secret is still there:\n%s", text)
	}
}

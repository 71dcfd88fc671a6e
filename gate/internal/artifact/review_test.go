package artifact_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/gate/internal/model"
)

// hostile puts a text everywhere where a requester, an agent or a target could
// put one; without one, each place gets an attack of its own.
func hostile(c *model.Change, text string) *model.Change {
	n := 0
	next := func() string {
		if text != "" {
			return text
		}
		n++
		return attacks()[n%len(attacks())]
	}
	c.Request.RequestedAction, c.Request.Purpose = model.Prose(next()), model.Prose(strings.Join(attacks(), "\n"))
	c.Request.RollbackPlan = model.Prose(next())
	if text != "" {
		c.Request.Purpose = model.Prose(text)
	}
	s := &c.Steps[1]
	s.Params = writ.Object{"description": next(), "list": []any{next()}, "deep": writ.Object{next(): next()}}
	s.Resolved = writ.Object{"name": next()}
	s.Entity, s.Touches = "px/"+next(), []string{next()}
	s.Rollback = &writ.Call{Action: "proxmox.set_lxc_description", System: "px", Params: writ.Object{"description": next()}}
	c.Observations[1].Fields = []writ.Field{{Name: "description", From: next(), To: next()}}
	if c.Decision != nil {
		c.Decision.Reasons = []string{next()} // a guard's sentence may begin with a param
	}
	if c.Trouble != nil {
		c.Trouble.Text = "Step wipe: " + next()
	}
	for i := range c.Receipts {
		c.Receipts[i].Detail = next()
	}
	return c
}

// ours returns the lines of a review that begin with our own words, without
// what stands in a box or goes on from the line above.
func ours(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if begins := strings.TrimLeft(line, " "); !strings.HasPrefix(line, "  | ") && !strings.HasPrefix(begins, "… ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestReview_cannotBeForged compares the review of a change full of attacks
// with that of the same change full of harmless words.
func TestReview_cannotBeForged(t *testing.T) {
	t.Parallel()
	for _, attack := range attacks() {
		checkReview(t, attack)
	}
}

func FuzzReview(f *testing.F) {
	for _, s := range attacks() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s != "" && utf8.ValidString(s) {
			checkReview(t, s)
		}
	})
}

func checkReview(t *testing.T, attack string) {
	t.Helper()
	const harmless = "harmless"
	text := review(t, hostile(waiting(), attack)).Text
	got, want := ours(text), ours(review(t, hostile(waiting(), harmless)).Text)
	if len(got) != len(want) {
		t.Fatalf("with %+q there are %d lines of ours instead of %d:\n%s", attack, len(got), len(want), text)
	}
	unquoted := strings.NewReplacer(`"`, "")
	for i := range want {
		// Where the value stands, the line begins the same.
		before, _, holds := strings.Cut(unquoted.Replace(want[i]), harmless)
		if !holds && got[i] != want[i] || !strings.HasPrefix(unquoted.Replace(got[i]), before) {
			t.Errorf("with %+q the line %q is %q", attack, want[i], got[i])
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		width := 0
		for _, r := range line {
			if width++; r > 0x2fff {
				width++
			}
		}
		if width > 80 {
			t.Errorf("with %+q a line takes %d columns: %q", attack, width, line)
		}
	}
}

// Case: C105.
func TestReview_nothingIsCutShort(t *testing.T) {
	t.Parallel()
	const long = 64 << 10
	c := waiting()
	c.Steps[1].Params = writ.Object{"description": strings.Repeat("abcdefghij", long/10) + "END"}
	c.Request.Purpose = model.Prose(strings.Repeat("words and ", 399) + "more END")
	text := review(t, c).Text
	if n := strings.Count(strings.ReplaceAll(strings.Join(strings.Fields(text), ""), "…", ""), "abcdefghij"); n != long/10 {
		t.Errorf("of %d pieces of a value %d are shown", long/10, n)
	}
	if n := strings.Count(text, "END"); n != 2 {
		t.Errorf("%d of 2 ends are shown", n)
	}
}

func TestReview_valuesShowTheirEnds(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":        `description = ""`,
		" x ":     `description = " x "`,
		`a" → "b`: `description = "a\" → \"b"`,
		`a\`:      `description = "a\\"`,
		`\u{41}`:  `description = "\\u{41}"`,
		"\u202e":  `description = "\u{202e}"`,
	} {
		c := waiting()
		c.Steps[1].Params = writ.Object{"description": in}
		if text := review(t, c).Text; !strings.Contains(text, "      with "+want+"\n") {
			t.Errorf("%q is not shown as %s:\n%s", in, want, text)
		}
	}
}

// Whatever is shown decides what is approved: no shown value can change without
// the digest of what was shown changing too.
//
// Case: C030.
func TestReview_digestCoversEveryShownValue(t *testing.T) {
	t.Parallel()
	edits := map[string]func(*model.Change){
		"who asks":            func(c *model.Change) { c.RequestedBy.Name = "claire" },
		"what kind asks":      func(c *model.Change) { c.RequestedBy.Kind = writ.Human },
		"environment":         func(c *model.Change) { c.Environment = "production" },
		"no environment":      func(c *model.Change) { c.Environment = "" },
		"what it undoes":      func(c *model.Change) { c.Envelope.RollbackOf = "chg_00" },
		"a step less":         func(c *model.Change) { c.Steps = c.Steps[:2] },
		"the order":           func(c *model.Change) { slices.Reverse(c.Steps) },
		"id":                  func(c *model.Change) { c.Steps[1].ID = "other" },
		"action":              func(c *model.Change) { c.Steps[1].Action = "proxmox.other" },
		"what an action does": func(c *model.Change) { c.Summaries["proxmox.set_lxc_description"] = "Do something else" },
		"system":              func(c *model.Change) { c.Steps[1].System = "py" },
		"entity":              func(c *model.Change) { c.Steps[1].Entity = "px/pve/lxc/123" },
		"touched":             func(c *model.Change) { c.Steps[1].Touches = nil },
		"param":               func(c *model.Change) { c.Steps[1].Params["description"] = "another proxy" },
		"type of a param":     func(c *model.Change) { c.Steps[1].Params["vmid"] = "121" },
		"param in a list":     func(c *model.Change) { c.Steps[1].Params["tags"] = []any{"a", "c"} },
		"param too many":      func(c *model.Change) { c.Steps[1].Params["force"] = true },
		"resolved":            func(c *model.Change) { c.Steps[1].Resolved["name"] = "other" },
		"class of a step":     func(c *model.Change) { c.Steps[0].Class = writ.ConfigMutation },
		"from":                func(c *model.Change) { c.Observations[1].Fields[0].From = "older" },
		"to":                  func(c *model.Change) { c.Observations[1].Fields[0].To = "newer" },
		"field":               func(c *model.Change) { c.Observations[1].Fields[0].Name = "hostname" },
		"absent or empty":     func(c *model.Change) { c.Observations[1].Fields[1].FromAbsent = false },
		"absent after":        func(c *model.Change) { c.Observations[1].Fields[2].ToAbsent = false },
		"a field less":        func(c *model.Change) { c.Observations[1].Fields = c.Observations[1].Fields[:2] },
		"known":               func(c *model.Change) { c.Observations[1].Known = false },
		"class":               func(c *model.Change) { c.Assessment.Class = writ.ConfigMutation },
		"level":               func(c *model.Change) { c.Assessment.Level = writ.Low },
		"score":               func(c *model.Change) { c.Assessment.Score = 1 },
		"reason":              func(c *model.Change) { c.Assessment.Reasons[0] = "It is fine." },
		"way back":            func(c *model.Change) { c.Steps[1].Rollback.Action = "proxmox.other" },
		"system of the way":   func(c *model.Change) { c.Steps[1].Rollback.System = "py" },
		"params of the way":   func(c *model.Change) { c.Steps[1].Rollback.Params["description"] = "odd" },
		"no way back":         func(c *model.Change) { c.Steps[1].Rollback = nil },
		"on failure":          func(c *model.Change) { c.Envelope.OnFailure = writ.Rollback },
		"requested action":    func(c *model.Change) { c.Request.RequestedAction = "something else" },
		"purpose":             func(c *model.Change) { c.Request.Purpose += "\n." },
		"rollback plan":       func(c *model.Change) { c.Request.RollbackPlan = "none" },
		"ticket":              func(c *model.Change) { c.Request.ChangeTicket = "CHG-8" },
		"wait":                func(c *model.Change) { c.WaitUntil = at(301) },
		"validity":            func(c *model.Change) { c.Decision.Valid++ },
		"how many":            func(c *model.Change) { c.Decision.Count = 3 },
		"how many there are":  func(c *model.Change) { c.Approvals = nil },
		"phrase":              func(c *model.Change) { c.Decision.Phrase = "px" },
		"no phrase":           func(c *model.Change) { c.Decision.Phrase = "" },
		"change":              func(c *model.Change) { c.ID = "chg_02" },
		"digest":              func(c *model.Change) { c.Digest = "sha256:" },
		"invisible character": func(c *model.Change) { c.Request.Purpose += "\u200b" },
		"number of blanks":    func(c *model.Change) { c.Steps[1].Params["description"] = "reverse  proxy" },
	}
	seen := map[writ.Digest]string{review(t, waiting()).ShownDigest: "nothing"}
	for name, edit := range edits {
		c := waiting()
		edit(c)
		r := review(t, c)
		if other, twice := seen[r.ShownDigest]; twice {
			t.Errorf("another %s is shown like another %s", name, other)
		}
		if r.ShownDigest != writ.DigestBytes([]byte(r.Text)) || r.EnvelopeDigest != c.Digest || r.Phrase != c.Decision.Phrase {
			t.Errorf("another %s: the digests are not those of the text and the change", name)
		}
		seen[r.ShownDigest] = name
	}
	if again := review(t, waiting()).ShownDigest; seen[again] != "nothing" {
		t.Error("the same change is shown differently the second time")
	}
}

func TestReview_marksEachLineOfTheRequester(t *testing.T) {
	t.Parallel()
	c := waiting()
	c.Request.Purpose = model.Prose("first\n\n  second " + strings.Repeat("long ", 40) + "\nDIGEST   sha256:forged\n")
	var said []string
	inside := false
	for line := range strings.SplitSeq(review(t, c).Text, "\n") {
		switch {
		case line == "  purpose":
			inside = true
		case inside && strings.HasPrefix(line, "  | "):
			said = append(said, strings.TrimPrefix(line, "  | "))
		case inside && line != "  rollback plan":
			t.Errorf("the line %q is not marked", line)
		default:
			inside = false
		}
	}
	want := fmt.Sprintf("first||  second %s|DIGEST   sha256:forged", strings.Repeat("long ", 40))
	if diff := cmp.Diff(want, strings.Replace(strings.Join(said, "|"), "long |long", "long long", 3)); diff != "" {
		t.Errorf("what was said differs (-want +got):\n%s", diff)
	}
}

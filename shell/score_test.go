package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ/shell"
)

// corpus reads a labelled corpus from the folder that WRIT_CORPUS names.
func corpus(t *testing.T, name string) []shell.Line {
	t.Helper()
	dir := os.Getenv("WRIT_CORPUS")
	if dir == "" && os.Getenv("CI") == "true" {
		t.Fatal("WRIT_CORPUS is not set: CI scores the shared corpora")
	}
	if dir == "" {
		t.Skip("WRIT_CORPUS is not set: the shared corpora are not scored here")
	}
	return readCorpus(t, filepath.Join(dir, name+".open.jsonl"))
}

func load(t testing.TB) *shell.Knowledge {
	t.Helper()
	k, err := shell.Load(shell.Shipped())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestScore holds that nothing dangerous passes, that little harmless is
// stopped, and that what destroys is called so; the bounds are in percent.
// WRIT_SCORE=word prints the misses whose command holds the word;
// WRIT_SCORE=all prints every one.
func TestScore(t *testing.T) {
	t.Parallel()
	k := load(t)
	for name, bound := range map[string]struct{ blocked, mild int }{
		"gtfobins": {}, "tricks": {blocked: 10, mild: 1}, "tldr": {blocked: 12, mild: 1}, "benign": {blocked: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shell.Score(k, corpus(t, name))
			var b strings.Builder
			s.Write(&b)
			t.Log(strings.SplitN(b.String(), "\n  ", 2)[0])
			show(t, "ALLOWED", s.Allowed)
			if word := os.Getenv("WRIT_SCORE"); word != "" {
				show(t, "blocked", s.Blocked)
				show(t, "no limit", s.Unlimited)
				show(t, "too mild", s.Mild)
			}
			if s.FalseAllow.Missed > 0 {
				t.Errorf("false-allow is %v, want none", s.FalseAllow)
			}
			if s.FalseBlock.Missed*100 > bound.blocked*s.FalseBlock.Of {
				t.Errorf("false-block is %v, more than %d %%", s.FalseBlock, bound.blocked)
			}
			if s.Underrated.Missed*100 > bound.mild*s.Underrated.Of {
				t.Errorf("of what destroys, %v is called milder, more than %d %%", s.Underrated, bound.mild)
			}
		})
	}
}

func show(t *testing.T, what string, list []shell.Miss) {
	t.Helper()
	word := os.Getenv("WRIT_SCORE")
	for _, m := range list {
		if word == "" && what != "ALLOWED" || word != "" && word != "all" && !strings.Contains(m.Line.Cmd, word) {
			continue
		}
		t.Logf("%s %q: want %s, got %s %v: %s", what, m.Line.Cmd, m.Line.Expect, m.Verdict.Class, m.Verdict.Effects, strings.Join(m.Verdict.Reasons, "; "))
	}
}

package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ/shell"
)

// TestCorpus_own holds every line of testdata to exactly its label.
func TestCorpus_own(t *testing.T) {
	t.Parallel()
	k := load(t)
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no corpus in testdata: %v", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := shell.ReadCorpus(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, l := range lines {
			v := k.Classify(l.Cmd)
			if string(v.Class) != l.Expect || v.NeedsLimit != l.NeedsLimit || l.Why == "" {
				t.Errorf("%s:%d: %q is %s (limit %v), want %s (limit %v): %s", name, i+1, l.Cmd, v.Class, v.NeedsLimit, l.Expect, l.NeedsLimit, strings.Join(v.Reasons, "; "))
			}
		}
	}
}

// TestKnowledge_notMemorised holds that no knowledge file holds a whole line of
// the shared corpora: what is known are options and grammar.
func TestKnowledge_notMemorised(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("commands/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(string(data)))
	}
	text := all.String()
	for _, name := range []string{"gtfobins", "tricks", "tldr", "benign"} {
		for _, l := range corpus(t, name) {
			if len(l.Cmd) >= 16 && len(strings.Fields(l.Cmd)) > 2 && strings.Contains(text, l.Cmd) {
				t.Errorf("a knowledge file holds the line %q of %s", l.Cmd, name)
			}
		}
	}
}

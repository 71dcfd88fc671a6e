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
	for _, l := range ownCorpus(t) {
		v := k.Classify(l.Cmd)
		if string(v.Class) != l.Expect || v.NeedsLimit != l.NeedsLimit || l.Why == "" {
			t.Errorf("%q is %s (limit %v), want %s (limit %v): %s", l.Cmd, v.Class, v.NeedsLimit, l.Expect, l.NeedsLimit, strings.Join(v.Reasons, "; "))
		}
	}
}

// ownCorpus reads testdata.
func ownCorpus(t *testing.T) (all []shell.Line) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no corpus in testdata: %v", err)
	}
	for _, name := range files {
		all = append(all, readCorpus(t, name)...)
	}
	return all
}

func readCorpus(t testing.TB, name string) []shell.Line {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := shell.ReadCorpus(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return lines
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

// TestCorpus_metamorphic holds that no other spelling of a line, nor a wrapper
// or more commands around it, makes its class milder.
func TestCorpus_metamorphic(t *testing.T) {
	t.Parallel()
	k := load(t)
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	whole := []func(string) string{ // of any text
		func(s string) string { return "  " + s + "\n# comment" },
		func(s string) string { return "ls; " + s },
		func(s string) string { return s + "\ndf -h" },
		func(s string) string { return "{ " + s + "\n} | sort" },
		func(s string) string { return "df -h && {\n" + s + "\n}" },
		func(s string) string { return "echo \"$(" + s + "\n)\"" },
		func(s string) string { return "if " + s + "\nthen :; fi" },
		func(s string) string { return "bash -c " + quote(s) },
		func(s string) string { return "timeout 9 bash -c " + quote(s) + " 2>&1" },
	}
	words := []func(string) string{ // of a simple command
		func(s string) string { return "env LC_ALL=C " + s },
		func(s string) string { return "timeout -k 1 9 " + s },
		func(s string) string { return "sudo -n " + s },
		func(s string) string { return "nice -n 5 nohup " + s + " > /dev/null" },
		func(s string) string { return strings.ReplaceAll(s, " ", "   ") },
		func(s string) string {
			list := strings.Fields(s)
			for i := range list {
				list[i] = list[i][:1] + quote(list[i][1:])
			}
			return strings.Join(list, " ")
		},
		func(s string) string { return "eval " + quote(s) },
	}
	for _, l := range ownCorpus(t) {
		class := k.Classify(l.Cmd).Class
		changes := whole
		if strings.Trim(l.Cmd, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ./,:@%-_") == "" && !strings.HasPrefix(l.Cmd, "time ") {
			changes = append(words, whole...)
		}
		for _, change := range changes {
			if v := k.Classify(change(l.Cmd)); v.Class.Rank() < class.Rank() {
				t.Errorf("%q is %s, and %q only %s", l.Cmd, class, change(l.Cmd), v.Class)
			}
		}
	}
}

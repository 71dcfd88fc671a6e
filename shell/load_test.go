package shell_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"writ/shell"
)

// TestLoad_everything reads every shipped file in full and checks its examples.
// WRIT_MINE, a pattern of files such as "systemd*.yaml", checks only those
// against the rest: for whoever writes them while others write theirs.
func TestLoad_everything(t *testing.T) {
	t.Parallel()
	pattern := os.Getenv("WRIT_MINE")
	if pattern == "" {
		if _, err := shell.Load(os.DirFS(".")); err != nil {
			t.Fatal(err)
		}
		return
	}
	files, err := filepath.Glob(filepath.Join("commands", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file is called commands/%s", pattern)
	}
	mine := fstest.MapFS{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		mine[f] = &fstest.MapFile{Data: data}
	}
	if _, err := shell.Load(shell.Shipped(), mine); err != nil {
		t.Fatal(err)
	}
}

func file(name, text string) fs.FS { return fstest.MapFS{name: &fstest.MapFile{Data: []byte(text)}} }

func TestLoad_extra(t *testing.T) {
	t.Parallel()
	const looser = "command: rm\nabout: does as it is told\nanything: false\noperands: text*\noptions: -r -f\nexamples:\n  %s: [rm -r x]\n"
	k, err := shell.Load(shell.Shipped(), file("mine.yaml", strings.ReplaceAll(looser, "%s", "destructive")))
	if err != nil {
		t.Fatal(err)
	}
	if v := k.Classify("rm -r x"); v.Class != ds {
		t.Errorf("without override, rm became %s", v.Class)
	}
	k, err = shell.Load(shell.Shipped(), file("mine.yaml", "override: true\n"+strings.ReplaceAll(looser, "%s", "read_only")))
	if err != nil {
		t.Fatal(err)
	}
	if v := k.Classify("rm -r x"); v.Class != ro {
		t.Errorf("with override, rm stayed %s", v.Class)
	}
	k, err = shell.Load(shell.Shipped(), file("mine.yaml", "command: ls\nabout: is watched here\noperands: path_meta*\noptions: -l !config\nexamples:\n  read_only: [ls]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if v := k.Classify("ls -l"); v.Class != cm {
		t.Errorf("an extra file did not make ls -l stricter: %s", v.Class)
	}
}

func TestLoad_problems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"command: x\nabout: y\n": "x has no examples",
		"command: x\n":           "at least command and about",
		"command: x\nabout: y\nunheard: 1\nexamples: {read_only: [x]}\n":                               "unheard",
		"command: x\nabout: y\noptions: -a =nothing\nexamples: {read_only: [x]}\n":                     "is no kind of value",
		"command: x\nabout: y\noptions: -a !nothing\nexamples: {read_only: [x]}\n":                     "names no effect and no mark",
		"command: x\nabout: y\noptions: |\n  -a\n  -a\nexamples: {read_only: [x]}\n":                   "stands twice",
		"command: x\nabout: y\noptions: \"@none\"\nexamples: {read_only: [x]}\n":                       "does not exist",
		"command: x\nabout: y\nanything: true\nexamples: {read_only: [x]}\n":                           "anything is only for",
		"command: x\nabout: y\nhook: none\nexamples: {read_only: [x]}\n":                               "there is no hook",
		"command: x\nabout: y\ngrammar: none\nexamples: {read_only: [x]}\n":                            "grammar is one of",
		"command: x\nabout: y\nexamples: {harmless: [x]}\n":                                            "examples are lists under a class",
		"command: x\nabout: y\nexamples: {destructive: [x]}\n":                                         "is read_only",
		"command: x\nabout: y\ncommands: {a: {like: b}}\nexamples: {read_only: [x]}\n":                 "no verb \"b\"",
		"command: x\nabout: y\ncommands: {a: {optoins: -x}}\nexamples: {read_only: [x]}\n":             "optoins",
		"command: x\nabout: y\ncommands: {a: text*, \"b|a\": text*}\nexamples: {read_only: [x a]}\n":   "the verb a stands twice",
		"command: x\nabout: y\noperands: command text\nexamples: {read_only: [x]}\n":                   "it comes last",
		"command: x\nabout: y\noperands: text* text*\nexamples: {read_only: [x]}\n":                    "only one operand may repeat",
		"command: x\nabout: y\nexamples: {read_only: [x]}\n---\ncommand: z\nexamples: {read_only: []}": "at least command and about",
	} {
		_, err := shell.Load(shell.Shipped(), file("mine.yaml", text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%q) = %v, want %q", text, err, want)
		}
	}
	_, err := shell.Load(shell.Shipped(), file("policy.yaml", "public: ['*.key']\n"))
	if err == nil || !strings.Contains(err.Error(), "only the shipped policy") {
		t.Errorf("an extra policy that loosens: %v", err)
	}
	k, err := shell.Load(shell.Shipped(), file("policy.yaml", "secrets: [/srv/app/plan.txt]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if v := k.Classify("cat /srv/app/plan.txt"); v.Class != cm {
		t.Errorf("a secret of the operator's is %s", v.Class)
	}
}

// TestShipped_names holds that the quick index of the shipped files names the
// same commands as reading them in full does.
func TestShipped_names(t *testing.T) {
	t.Parallel()
	quick := load(t)
	full, err := shell.Load(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := strings.Join(quick.Names(), " "), strings.Join(full.Names(), " "); a != b {
		t.Errorf("the index has %s\nthe files have %s", a, b)
	}
	for _, name := range quick.Names() {
		if i, ok := quick.Command(name); !ok || i.About == "" {
			t.Errorf("%s cannot be read when it is met", name)
		}
	}
}

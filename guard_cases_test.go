package writ_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const guardCasesFile = "docs/cases.md"

// guardCase is one row of docs/cases.md.
type guardCase struct {
	id, source string
	tests      []string // "e2e/x.txtar" or "package.TestX"
	waits      string   // what of it needs something that is not there yet
}

// guardCases reads the table of docs/cases.md.
func (tree *guardTree) guardCases() (all []guardCase) {
	for line := range strings.Lines(string(tree.texts[guardCasesFile])) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 7 || !regexp.MustCompile(`^ C\d{3} $`).MatchString(cells[1]) {
			continue
		}
		c := guardCase{id: strings.TrimSpace(cells[1]), source: strings.TrimSpace(cells[2]), waits: strings.TrimSpace(cells[5])}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[4], -1) {
			c.tests = append(c.tests, m[1])
		}
		all = append(all, c)
	}
	return all
}

// checkCases: a case of docs/cases.md is held by tests that are there, one of which names it, or says what it waits for.
func checkCases(tree *guardTree) (problems []string) {
	seen := map[string]bool{}
	for _, c := range tree.guardCases() {
		wrong := func(format string, args ...any) {
			problems = append(problems, guardCasesFile+": "+c.id+" "+fmt.Sprintf(format, args...))
		}
		if seen[c.id] {
			wrong("stands twice")
		}
		seen[c.id] = true
		if len(c.tests) == 0 && c.waits == "" {
			wrong("neither names a test nor says what it waits for")
		}
		named := len(c.tests) == 0
		for _, test := range c.tests {
			text, ok := tree.testText(test)
			if !ok {
				wrong("is held by %s, which is not there", test)
			}
			named = named || regexp.MustCompile(`\b`+c.id+`\b`).MatchString(text)
		}
		if !named {
			wrong("is named in none of its tests: say so in one of them")
		}
	}
	return problems
}

// testText returns the text of a script, or of a test function and its comment.
func (tree *guardTree) testText(name string) (text string, ok bool) {
	if path.Ext(name) == ".txtar" {
		script, ok := tree.texts[name]
		return string(script), ok
	}
	pkg, fn, _ := strings.Cut(path.Base(name), ".")
	pkg = path.Join(path.Dir(name), pkg)
	for _, f := range tree.files {
		if !f.test || f.pkg != pkg {
			continue
		}
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == fn {
				from := d.Pos()
				if d.Doc != nil {
					from = d.Doc.Pos()
				}
				return string(tree.texts[f.path][tree.fset.Position(from).Offset:tree.fset.Position(d.End()).Offset]), true
			}
		}
	}
	return "", false
}

// TestCases_areAllThere holds docs/cases.md to the collection of cases that it is about.
func TestCases_areAllThere(t *testing.T) {
	t.Parallel()
	file := os.Getenv("WRIT_CASES")
	if corpus := os.Getenv("WRIT_CORPUS"); file == "" && corpus != "" {
		file = filepath.Join(filepath.Dir(filepath.Clean(corpus)), "cases.jsonl")
	}
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI compares %s with the cases themselves: %v", guardCasesFile, err)
		}
		t.Skipf("WRIT_CASES names no collection of cases, so %s is not compared with it", guardCasesFile)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want, got []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct{ ID, Source string }
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		want = append(want, c.ID+" "+c.Source)
	}
	for _, c := range loadGuardTree(t, ".").guardCases() {
		got = append(got, c.id+" "+c.source)
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s has no row %q", guardCasesFile, w)
		}
	}
	if len(want) == 0 || len(got) != len(want) {
		t.Errorf("%s has %d rows, there are %d cases", guardCasesFile, len(got), len(want))
	}
}

package writ_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// guardUpdate rewrites what programs link in deps.txt.
var guardUpdate = flag.Bool("update", false, "rewrite the lists of deps.txt that are derived")

// guardDeps is deps.txt: a reason for each module we import, and what each program links.
type guardDeps struct {
	direct   map[string]string   // module → reason
	programs map[string][]string // package of the program → modules
	head     string              // everything before the derived lists
	problems []string
}

func parseGuardDeps(text string) guardDeps {
	deps := guardDeps{direct: map[string]string{}, programs: map[string][]string{}}
	section := ""
	for i, line := range strings.SplitAfter(text, "\n") {
		name, isHead := strings.CutPrefix(strings.TrimSpace(line), "[")
		if isHead {
			section = strings.TrimSuffix(name, "]")
		}
		if section == "" || section == "direct" {
			deps.head += line
		}
		line = strings.TrimSpace(line)
		switch {
		case isHead, line == "", strings.HasPrefix(line, "#"):
		case section == "direct":
			module, why, _ := strings.Cut(line, ": ")
			if strings.TrimSpace(why) == "" {
				deps.problems = append(deps.problems, fmt.Sprintf("deps.txt:%d: write \"module: why we need it\"", i+1))
			}
			deps.direct[module] = why
		default:
			deps.programs[section] = append(deps.programs[section], line)
		}
	}
	return deps
}

// checkDeps: deps.txt names what we import, with a reason, and what each program links.
func checkDeps(tree *guardTree) []string {
	deps := parseGuardDeps(string(tree.texts["deps.txt"]))
	problems := deps.problems
	direct := tree.direct()
	for _, module := range slices.Sorted(maps.Keys(direct)) {
		if deps.direct[module] == "" {
			problems = append(problems, fmt.Sprintf("%s imports %s, which has no line in deps.txt: say there why we need it", direct[module], module))
		}
	}
	for _, module := range slices.Sorted(maps.Keys(deps.direct)) {
		if direct[module] == "" && !tree.building() {
			problems = append(problems, fmt.Sprintf("deps.txt gives a reason for %s, but nothing imports it: take the line away and run go mod tidy", module))
		}
	}
	for _, r := range tree.requires {
		if by := direct[r.Path]; r.Indirect == (by != "") && !tree.building() {
			problems = append(problems, fmt.Sprintf("go.mod is wrong about whether we import %s ourselves: run go mod tidy", r.Path))
		}
	}
	linked := tree.linked()
	for _, program := range slices.Sorted(maps.Keys(linked)) {
		if !slices.Equal(deps.programs[program], linked[program]) {
			problems = append(problems, fmt.Sprintf("deps.txt is wrong about what %s links%s: look at the difference, then run go test . -run Guard -update",
				program, difference(deps.programs[program], linked[program])))
		}
	}
	for _, program := range slices.Sorted(maps.Keys(deps.programs)) {
		if _, ok := linked[program]; !ok {
			problems = append(problems, fmt.Sprintf("deps.txt has a list for %s, which is no program: run go test . -run Guard -update", program))
		}
	}
	return problems
}

// building says whether the tree has packages that are still planned: then a module may wait for its importer.
func (tree *guardTree) building() bool { return tree.arch.building("*/...") }

// direct is every module that a file of ours imports, with one such file.
func (tree *guardTree) direct() map[string]string {
	direct := map[string]string{}
	for _, f := range tree.files {
		for _, use := range f.imports {
			best := ""
			for _, r := range tree.requires {
				if matchName(r.Path+"/...", use.name) && len(r.Path) > len(best) {
					best = r.Path
				}
			}
			if best != "" && direct[best] == "" {
				direct[best] = use.where
			}
		}
	}
	return direct
}

// linked is the modules of each program, sorted.
func (tree *guardTree) linked() map[string][]string {
	linked := map[string][]string{}
	for _, program := range tree.programs() {
		modules := map[string]bool{}
		for _, dep := range tree.listed[program].Deps {
			if m := tree.listed[treeName(dep)].Module; m != nil && m.Path != guardModule {
				modules[m.Path] = true
			}
		}
		linked[program] = slices.Sorted(maps.Keys(modules))
	}
	return linked
}

// difference says what is new and what is gone.
func difference(old, now []string) string {
	text := ""
	for _, m := range now {
		if !slices.Contains(old, m) {
			text += " +" + m
		}
	}
	for _, m := range old {
		if !slices.Contains(now, m) {
			text += " -" + m
		}
	}
	return text
}

// rewriteDeps writes the derived lists of deps.txt anew.
func (tree *guardTree) rewriteDeps(t *testing.T) {
	t.Helper()
	text := strings.TrimRight(parseGuardDeps(string(tree.texts["deps.txt"])).head, "\n") + "\n"
	linked := tree.linked()
	for _, program := range slices.Sorted(maps.Keys(linked)) {
		text += fmt.Sprintf("\n[%s]\n%s\n", program, strings.Join(linked[program], "\n"))
	}
	if err := os.WriteFile(filepath.Join(tree.root, "deps.txt"), []byte(text), 0o644); err != nil {
		t.Fatalf("write deps.txt: %v", err)
	}
}

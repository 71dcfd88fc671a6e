package writ_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// guardArch is what the tables of ARCHITECTURE.md say.
type guardArch struct {
	packages     []archPackage
	walls        []archWall
	capabilities []archCapability
	contracts    []archContract
	problems     []string // rows that cannot be read
}

type archPackage struct {
	name    string
	floor   int
	planned bool
}

type archWall struct {
	who, never []string
	because    string
}

type archCapability struct {
	what, holders []string
	because       string
}

type archContract struct {
	name, suite string
	by          []string
}

// parseGuardArch reads every table whose first header cell is one of floor, who, capability or contract.
func parseGuardArch(text string) guardArch {
	var arch guardArch
	kind := ""
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			kind = ""
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		switch {
		case kind == "":
			kind = cells[0]
		case strings.HasPrefix(cells[0], "-"): // the rule under the header
		case !slices.Contains([]string{"floor", "who", "capability", "contract"}, kind):
		case len(cells) != 3 || slices.Contains(cells, ""):
			arch.problems = append(arch.problems, fmt.Sprintf("ARCHITECTURE.md:%d: a row of this table has three cells, none of them empty", i+1))
		default:
			arch.add(kind, cells, i+1)
		}
	}
	return arch
}

func (arch *guardArch) add(kind string, cells []string, line int) {
	first, second := quoted(cells[0]), quoted(cells[1])
	switch kind {
	case "floor":
		floor, err := strconv.Atoi(cells[0])
		if err != nil || len(second) != 1 {
			arch.problems = append(arch.problems, fmt.Sprintf("ARCHITECTURE.md:%d: a row of floors is a number, one `package`, and what it is for", line))
			return
		}
		arch.packages = append(arch.packages, archPackage{second[0], floor, strings.Contains(cells[1], "planned")})
	case "who":
		arch.walls = append(arch.walls, archWall{first, second, cells[2]})
	case "capability":
		if len(second) == 0 && cells[1] != "nobody" {
			arch.problems = append(arch.problems, fmt.Sprintf("ARCHITECTURE.md:%d: name the holders, or write nobody", line))
		}
		arch.capabilities = append(arch.capabilities, archCapability{first, second, cells[2]})
	case "contract":
		if len(first) != 1 || len(second) != 1 {
			arch.problems = append(arch.problems, fmt.Sprintf("ARCHITECTURE.md:%d: a contract is one `package.Interface` and one `suite`", line))
			return
		}
		arch.contracts = append(arch.contracts, archContract{first[0], second[0], quoted(cells[2])})
	}
}

// quoted is every `name` of a cell.
func quoted(cell string) []string {
	var names []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		names = append(names, m[1])
	}
	return names
}

// floor is the floor of a package of the tree.
func (arch *guardArch) floor(name string) (int, bool) {
	for _, p := range arch.packages {
		if p.name == name {
			return p.floor, true
		}
	}
	return 0, false
}

// ours says whether a pattern names packages of the tree.
func (arch *guardArch) ours(pattern string) bool {
	return slices.ContainsFunc(arch.packages, func(p archPackage) bool { return matchName(pattern, p.name) })
}

// building says whether a pattern names a package that is still planned.
func (arch *guardArch) building(pattern string) bool {
	return slices.ContainsFunc(arch.packages, func(p archPackage) bool { return p.planned && matchName(pattern, p.name) })
}

// unlisted is every package outside the module that the tables name, as import paths without patterns, unless `go list`
// met it on the way.
func (tree *guardTree) unlisted() []string {
	var paths []string
	add := func(pattern string) {
		name := strings.TrimSuffix(pattern, "/...")
		if _, known := tree.listed[name]; !known && !tree.arch.ours(pattern) {
			paths = append(paths, name)
		}
	}
	for _, w := range tree.arch.walls {
		for _, pattern := range w.never {
			add(pattern)
		}
	}
	for _, c := range tree.arch.capabilities {
		for _, what := range c.what {
			pkg, _ := splitSymbol(what)
			add(pkg)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(paths)))
}

// splitSymbol parts "time.Now" into package and name; an import path has no name.
func splitSymbol(what string) (pkg, name string) {
	m := regexp.MustCompile(`^(.+)\.([A-Z]\w*)$`).FindStringSubmatch(what)
	if m == nil {
		return what, ""
	}
	return m[1], m[2]
}

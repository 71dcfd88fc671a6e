package writ_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// checkLoads: every package, and all it imports, loads. The compiler's own walls (internal) show here.
func checkLoads(tree *guardTree) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(tree.packages)) {
		if _, ok := tree.listed[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s has Go files, but go list ./... does not name it: is it a module of its own, or built for another system only?", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tree.listed)) {
		if p := tree.listed[name]; p.Error != nil {
			problems = append(problems, fmt.Sprintf("%s does not load: %s", name, p.Error.Err))
		}
	}
	return problems
}

// checkTable: the table of packages and the tree are the same.
func checkTable(tree *guardTree) []string {
	problems := tree.arch.problems
	seen := map[string]bool{}
	for _, p := range tree.arch.packages {
		exists := tree.packages[p.name]
		switch {
		case seen[p.name]:
			problems = append(problems, fmt.Sprintf("ARCHITECTURE.md has two rows for %s: keep one", p.name))
		case p.planned && exists:
			problems = append(problems, fmt.Sprintf("ARCHITECTURE.md calls %s planned, but it exists: take the mark away", p.name))
		case !p.planned && !exists:
			problems = append(problems, fmt.Sprintf("ARCHITECTURE.md has a row for %s, but no such package exists: take the row away", p.name))
		}
		seen[p.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(tree.packages)) {
		if !seen[name] {
			problems = append(problems, fmt.Sprintf("%s has no row in ARCHITECTURE.md: give it a floor and say what it is for", name))
		}
	}
	return problems
}

// checkFloors: imports go down.
func checkFloors(tree *guardTree) (problems []string) {
	for _, f := range tree.files {
		from, ok := tree.arch.floor(f.pkg)
		if f.test || !ok {
			continue
		}
		for _, use := range f.imports {
			if to, ok := tree.arch.floor(use.name); ok && to >= from {
				problems = append(problems, fmt.Sprintf("%s: %s (floor %d) imports %s (floor %d): a package imports lower floors only; move the code, or argue another floor in ARCHITECTURE.md",
					use.where, f.pkg, from, use.name, to))
			}
		}
	}
	return problems
}

// checkWalls: what a package links never contains what its row forbids.
func checkWalls(tree *guardTree) (problems []string) {
	for _, wall := range tree.arch.walls {
		problems = append(problems, tree.unknown(wall.never...)...)
		for _, pattern := range wall.who {
			if !tree.arch.ours(pattern) {
				problems = append(problems, fmt.Sprintf("ARCHITECTURE.md has a wall around %s, but no package has that name: a renamed package must take its wall along", pattern))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(tree.packages)) {
			if !matchAny(wall.who, name) {
				continue
			}
			for _, dep := range tree.listed[name].Deps {
				if dep = treeName(dep); matchAny(wall.never, dep) {
					problems = append(problems, fmt.Sprintf("%s reaches %s (%s): %s", name, dep, tree.chain(name, dep), wall.because))
				}
			}
		}
	}
	return problems
}

// chain is a shortest way by which a package reaches another.
func (tree *guardTree) chain(from, to string) string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range tree.listed[queue[0]].Imports {
			next = treeName(next)
			if _, seen := came[next]; !seen {
				came[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	way := []string{to}
	for at := came[to]; at != ""; at = came[at] {
		way = append(way, at)
	}
	slices.Reverse(way)
	return strings.Join(way, " → ")
}

// unknown reports patterns of forbidden things that name nothing: they would forbid nothing.
func (tree *guardTree) unknown(patterns ...string) (problems []string) {
	for _, what := range patterns {
		pkg, symbol := splitSymbol(what)
		if tree.arch.ours(pkg) {
			continue
		}
		name := strings.TrimSuffix(pkg, "/...")
		p, ok := tree.listed[name]
		if !ok {
			p, ok = tree.outside[name]
		}
		if !ok || p.Error != nil || symbol != "" && !declares(p, symbol) {
			problems = append(problems, fmt.Sprintf("ARCHITECTURE.md forbids %s, but nothing has that name: correct it or take it away", what))
		}
	}
	return problems
}

// declares says whether a package has an exported function of this name.
func declares(p guardListed, name string) bool {
	for _, file := range p.GoFiles {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return false
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == name {
				return true
			}
		}
	}
	return false
}

// checkCapabilities: only the holders import or call what a row names, and each of them does.
func checkCapabilities(tree *guardTree) (problems []string) {
	for _, capability := range tree.arch.capabilities {
		problems = append(problems, tree.unknown(capability.what...)...)
		used := map[string]bool{}
		for _, f := range tree.files {
			if f.test {
				continue
			}
			for _, use := range slices.Concat(f.imports, f.symbols) {
				if !matchAny(capability.what, use.name) {
					continue
				}
				used[f.pkg] = true
				if !matchAny(capability.holders, f.pkg) {
					problems = append(problems, fmt.Sprintf("%s: %s uses %s, which %s may: %s",
						use.where, f.pkg, use.name, only(capability.holders), capability.because))
				}
			}
		}
		for _, holder := range capability.holders {
			inUse := slices.ContainsFunc(slices.Collect(maps.Keys(used)), func(p string) bool { return matchName(holder, p) })
			if !inUse && !tree.arch.building(holder) {
				problems = append(problems, fmt.Sprintf("ARCHITECTURE.md lets %s use %s, but it does not: take it off the list", holder, strings.Join(capability.what, ", ")))
			}
		}
	}
	return problems
}

func only(holders []string) string {
	if len(holders) == 0 {
		return "nobody"
	}
	return "only " + strings.Join(holders, ", ")
}

// checkContracts: a big interface is a contract; a contract has a suite; who implements it passes the suite and is
// linked into a program.
func checkContracts(tree *guardTree) (problems []string) {
	isContract := map[string]bool{}
	for _, c := range tree.arch.contracts {
		isContract[c.name] = true
	}
	methods := map[string]int{}
	for _, f := range tree.files {
		for name, spec := range typeSpecs(f.ast) {
			if i, ok := spec.Type.(*ast.InterfaceType); ok && !f.test {
				full := f.pkg + "." + name
				methods[full] = len(i.Methods.List)
				if methods[full] > 5 && !isContract[full] {
					problems = append(problems, fmt.Sprintf("%s: interface %s has %d methods: part it by who uses it (at most 5), or make it a contract with a suite in ARCHITECTURE.md", tree.where(spec), full, methods[full]))
				}
			}
		}
	}
	for _, c := range tree.arch.contracts {
		problems = append(problems, tree.checkContract(c, methods)...)
	}
	return problems
}

func (tree *guardTree) checkContract(c archContract, methods map[string]int) (problems []string) {
	pkg, _ := splitSymbol(c.name)
	if _, ok := methods[c.name]; !ok && !tree.arch.building(pkg) {
		problems = append(problems, fmt.Sprintf("ARCHITECTURE.md calls %s a contract, but no interface has that name", c.name))
	}
	if !tree.arch.ours(c.suite) {
		problems = append(problems, fmt.Sprintf("ARCHITECTURE.md names %s as the suite of %s, but no package has that name", c.suite, c.name))
	}
	implementers := 0
	for _, name := range slices.Sorted(maps.Keys(tree.packages)) {
		if name == c.suite || !matchAny(c.by, name) || !tree.imports(name, pkg, false) {
			continue
		}
		implementers++
		if tree.packages[c.suite] && !tree.imports(name, c.suite, true) {
			problems = append(problems, fmt.Sprintf("%s implements %s, but no test of it runs %s", name, c.name, c.suite))
		}
		linked := func(program string) bool { return slices.Contains(tree.listed[program].Deps, importPath(name)) }
		if programs := tree.programs(); len(programs) > 0 && !slices.ContainsFunc(programs, linked) {
			problems = append(problems, fmt.Sprintf("%s implements %s, but no program links it: add it to the list in app", name, c.name))
		}
	}
	if implementers == 0 && !slices.ContainsFunc(c.by, tree.arch.building) {
		problems = append(problems, fmt.Sprintf("nothing implements the contract %s: take its row out of ARCHITECTURE.md", c.name))
	}
	return problems
}

// imports says whether a package imports another, in its tests or in what is built.
func (tree *guardTree) imports(from, to string, test bool) bool {
	return slices.ContainsFunc(tree.files, func(f guardFile) bool {
		return f.pkg == from && f.test == test && slices.ContainsFunc(f.imports, func(u guardUse) bool { return u.name == to })
	})
}

// programs is every main package but those that serve the tests.
func (tree *guardTree) programs() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(tree.packages)) {
		if tree.listed[name].Name == "main" && !matchName("e2e/...", name) {
			names = append(names, name)
		}
	}
	return names
}

// typeSpecs is every type a file declares at the top.
func typeSpecs(f *ast.File) map[string]*ast.TypeSpec {
	specs := map[string]*ast.TypeSpec{}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			for _, s := range g.Specs {
				spec := s.(*ast.TypeSpec)
				specs[spec.Name.Name] = spec
			}
		}
	}
	return specs
}

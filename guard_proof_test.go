package writ_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A guardBreach is one violation and the words that refuse it. Breaches live together in one copy of the tree, so each
// names a package or file of its own.
type guardBreach struct {
	name string
	file string // appended to, so that the tables and deps.txt can be broken too
	text string
	want string // "" for what is allowed, or only completes another breach
}

// TestGuard_refuses breaks every rule in a copy of the tree.
func TestGuard_refuses(t *testing.T) {
	t.Parallel()
	breaches := slices.Concat(wallBreaches(), tableBreaches(), shapeBreaches(), depsBreaches(), caseBreaches())
	root := copyTree(t)
	for _, b := range breaches {
		appendFile(t, root, b.file, b.text)
	}
	tree := loadGuardTree(t, root)
	found := map[string][]string{}
	for _, rule := range guardRules() {
		found[rule.name] = rule.check(tree)
	}
	for rule, problems := range found {
		if len(problems) == 0 {
			t.Errorf("no breach breaks the rule %q: plant one", rule)
		}
	}
	for _, b := range breaches {
		refused := false
		for _, problems := range found {
			refused = refused || slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, b.want) })
		}
		if !refused {
			t.Errorf("%s: nothing says %q", b.name, b.want)
		}
	}
	for _, problem := range slices.Concat(found["sizes"], found["words"]) {
		if strings.Contains(problem, "onpurpose") {
			t.Errorf("what is allowed was refused: %s", problem)
		}
	}
}

// TestGuard_update rewrites the derived lists of deps.txt and nothing else.
func TestGuard_update(t *testing.T) {
	t.Parallel()
	root := copyTree(t)
	appendFile(t, root, "planted/cmd/main.go", "// Command cmd asks.\npackage main\n\nimport \"golang.org/x/term\"\n\nfunc main() { _ = term.IsTerminal }\n")
	appendFile(t, root, "deps.txt", "\n[planted/gone]\nexample.com/x\n")
	tree := loadGuardTree(t, root)
	before := parseGuardDeps(string(tree.texts["deps.txt"]))
	tree.rewriteDeps(t)
	tree = loadGuardTree(t, root)
	after := parseGuardDeps(string(tree.texts["deps.txt"]))
	if strings.TrimSpace(after.head) != strings.TrimSpace(before.head) {
		t.Errorf("the reasons were changed:\n%s", after.head)
	}
	if got := after.programs["planted/cmd"]; !slices.Equal(got, []string{"golang.org/x/sys", "golang.org/x/term"}) {
		t.Errorf("planted/cmd links %q", got)
	}
	for _, problem := range checkDeps(tree) {
		if strings.Contains(problem, "-update") {
			t.Errorf("after the update: %s", problem)
		}
	}
}

// copyTree copies every text file of the tree to a scratch folder.
func copyTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range loadGuardTree(t, ".").texts {
		appendFile(t, root, name, string(text))
	}
	return root
}

func appendFile(t *testing.T, root, name, text string) {
	t.Helper()
	full := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(full, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func wallBreaches() []guardBreach {
	return []guardBreach{
		{"a driver in the gate", "gate/internal/app/planted_driver.go", "package app\n\nimport \"writ/connector/proxmox\"\n\nvar _ = proxmox.New\n",
			"gate/internal/app reaches connector/proxmox (gate/internal/app → connector/proxmox): the gate holds no driver"},
		{"the vault's cipher in the gate", "gate/internal/model/planted_age.go", "package model\n\nimport \"filippo.io/age\"\n\nvar _ = age.Decrypt\n",
			"gate/internal/model reaches filippo.io/age (gate/internal/model → filippo.io/age): the gate can open no vault"},
		{"the executor's inside in the gate", "gate/internal/artifact/planted_vault.go", "package artifact\n\nimport \"writ/executor/internal/vault\"\n\nvar _ = vault.Open\n",
			"use of internal package writ/executor/internal/vault not allowed"},
		{"that inside", "executor/internal/vault/planted.go", "package vault\n", ""},
		{"a page in the executor", "executor/internal/run/planted_page.go", "package run\n\nimport \"html/template\"\n\nvar _ = template.New\n",
			"executor/internal/run reaches html/template"},
		{"a driver in the command line", "ctl/internal/cli/planted_driver.go", "package cli\n\nimport \"writ/connector/mock\"\n\nvar _ = mock.New\n",
			"ctl/internal/cli reaches connector/mock"},
		{"the network two steps from the catalog", "planted/far/far.go", "// Package far is far.\npackage far\n\nimport \"net/http\"\n\nvar _ = http.Get\n",
			"catalog/planted reaches net/http (catalog/planted → planted/far → net/http): the words both sides speak reach nothing"},
		{"the near step", "catalog/planted/planted.go", "// Package planted is near.\npackage planted\n\nimport \"writ/planted/far\"\n\nvar _ = far.X\n",
			"catalog/planted has no row in ARCHITECTURE.md"},
		{"an import across one floor", "ledger/planted_floor.go", "package ledger\n\nimport \"writ/redact\"\n\nvar _ = redact.New\n",
			"ledger (floor 2) imports redact (floor 2)"},
		{"an import of a higher floor", "redact/planted_floor.go", "package redact\n\nimport \"writ/connector/recorder\"\n\nvar _ = recorder.Wrap\n",
			"redact (floor 2) imports connector/recorder (floor 4)"},
		{"the clock", "catalog/planted_clock.go", "package catalog\n\nimport clock \"time\"\n\nvar now = clock.Now\n",
			"catalog/planted_clock.go:5: catalog uses time.Now, which only sys"},
		{"the clock on another system", "api/planted_windows.go", "package api\n\nimport \"time\"\n\nvar age = time.Since\n",
			"api/planted_windows.go:5: api uses time.Since, which only sys"},
		{"the environment", "redact/planted_env.go", "package redact\n\nimport \"os\"\n\nvar home = os.Getenv(\"HOME\")\n",
			"redact/planted_env.go:5: redact uses os.Getenv, which"},
		{"the end of the process", "redact/planted_exit.go", "package redact\n\nimport \"os\"\n\nfunc end() { os.Exit(1) }\n",
			"redact/planted_exit.go:5: redact uses os.Exit, which"},
		{"a process", "gate/internal/policy/planted_exec.go", "package policy\n\nimport \"os/exec\"\n\nvar _ = exec.Command\n",
			"gate/internal/policy/planted_exec.go:3: gate/internal/policy uses os/exec, which"},
		{"the random source", "client/planted_rand.go", "package client\n\nimport \"crypto/rand\"\n\nvar _ = rand.Text\n",
			"client/planted_rand.go:3: client uses crypto/rand, which only sys"},
		{"a package that does not exist", "gate/internal/policy/planted_none.go", "package policy\n\nimport \"writ/planted/none\"\n\nvar _ = none.X\n",
			"planted/none does not load"},
		{"SQL outside a store", "gate/internal/ops/planted_sql.go", "package ops\n\nimport \"database/sql\"\n\nvar _ = sql.Open\n",
			"gate/internal/ops/planted_sql.go:3: gate/internal/ops uses database/sql, which"},
	}
}

func tableBreaches() []guardBreach {
	const (
		floors       = "\n\n| floor | package | what |\n|---|---|---|\n"
		walls        = "\n\n| who | never | because |\n|---|---|---|\n"
		capabilities = "\n\n| capability | holders | because |\n|---|---|---|\n"
		contracts    = "\n\n| contract | suite | passed by |\n|---|---|---|\n"
		arch         = "ARCHITECTURE.md"
	)
	return []guardBreach{
		{"a row without a package", arch, floors + "| 3 | `planted/nowhere` | nothing |", "ARCHITECTURE.md has a row for planted/nowhere, but no such package exists"},
		{"a planned package that exists", arch, floors + "| 0 | `planted/far` *(planned)* | nothing |", "ARCHITECTURE.md calls planted/far planned, but it exists"},
		{"two rows", arch, floors + "| 0 | `fault` | again |", "ARCHITECTURE.md has two rows for fault"},
		{"a row without a reason", arch, walls + "| `fault` | `net/http` | |", "a row of this table has three cells, none of them empty"},
		{"a row without a number", arch, floors + "| low | `planted/low` | nothing |", "a row of floors is a number"},
		{"a wall around nothing", arch, walls + "| `planted/gone/...` | `net/http` | why |", "ARCHITECTURE.md has a wall around planted/gone/..., but no package has that name"},
		{"a wall against nothing", arch, walls + "| `fault` | `net/gopher` | why |", "ARCHITECTURE.md forbids net/gopher, but nothing has that name"},
		{"a capability that is nothing", arch, capabilities + "| `time.Nwo` | nobody | why |", "ARCHITECTURE.md forbids time.Nwo, but nothing has that name"},
		{"a holder that does not use it", arch, capabilities + "| `net/smtp` | `fault` | why |", "ARCHITECTURE.md lets fault use net/smtp, but it does not"},
		{"a holder that does not exist", arch, capabilities + "| `net/textproto` | `planted/gone` | why |", "ARCHITECTURE.md lets planted/gone use net/textproto, but it does not"},
		{"no holder", arch, capabilities + "| `net/mail` | some | why |", "name the holders, or write nobody"},
		{"a contract that is nothing", arch, contracts + "| `fault.Gone` | `planted/suite` | `fault` |", "ARCHITECTURE.md calls fault.Gone a contract, but no interface has that name"},
		{"a contract without its suite", arch, contracts + "| `fault.Gone2` | `planted/nosuite` | `fault` |", "ARCHITECTURE.md names planted/nosuite as the suite of fault.Gone2"},
		{"a contract nobody passes", arch, contracts + "| `fault.Gone3` | `sys` | `planted/gone` |", "nothing implements the contract fault.Gone3"},
		{"a contract", arch, contracts + "| `planted/contract.Big` | `planted/suite` | `planted/by` |" + floors + "| 3 | `planted/suite` | the suite |", "planted/by implements planted/contract.Big, but no test of it runs planted/suite"},
		{"its package", "planted/contract/contract.go", "// Package contract is big.\npackage contract\n\n// Big is big.\ntype Big interface{ A(); B(); C(); D(); E(); F() }\n", "planted/contract has no row"},
		{"its suite", "planted/suite/suite.go", "// Package suite tests.\npackage suite\n", ""},
		{"its implementation, in no list", "planted/by/by.go", "// Package by implements.\npackage by\n\nimport \"writ/planted/contract\"\n\nvar _ contract.Big\n", "planted/by implements planted/contract.Big, but no program links it"},
	}
}

func shapeBreaches() []guardBreach {
	line := "\t_ = 0\n"
	return []guardBreach{
		{"a second package comment", "fault/planted_doc.go", "// Package fault is said again.\npackage fault\n", "fault has 2 package comments"},
		{"no package comment", "planted/undoc/undoc.go", "package undoc\n", "planted/undoc has no package comment"},
		{"a package comment that begins otherwise", "planted/odd/odd.go", "// This is odd.\npackage odd\n", "planted/odd/odd.go: the package comment begins with \"Package odd\""},
		{"a long file", "planted/odd/long.go", "package odd\n" + strings.Repeat("\n", 600), "planted/odd/long.go has 601 lines"},
		{"a long file on purpose", "planted/odd/onpurpose.go", "// Long on purpose: a table.\n\npackage odd\n" + strings.Repeat("\n", 600), ""},
		{"a long function", "planted/odd/func.go", "package odd\n\nfunc long() {\n" + strings.Repeat(line, 80) + "}\n", "func long has 82 lines"},
		{"a long function on purpose", "planted/odd/func2.go", "package odd\n\n// onpurpose is long. Long on purpose: one switch.\nfunc onpurpose() {\n" + strings.Repeat(line, 80) + "}\n", ""},
		{"a long main", "planted/cmd/main.go", "// Command cmd does too much.\npackage main\n\nfunc main() {\n" + strings.Repeat(line, 19) + "}\n", "planted/cmd/main.go:4: func main has 21 lines"},
		{"an init", "planted/odd/init.go", "package odd\n\nfunc init() {}\n", "planted/odd/init.go:3: init runs unasked"},
		{"a big interface", "planted/odd/big.go", "package odd\n\ntype big interface {\n\tA()\n\tB()\n\tC()\n\tD()\n\tE()\n\tF()\n}\n", "interface planted/odd.big has 6 methods"},
		{"a context in a struct", "planted/odd/ctx.go", "package odd\n\nimport \"context\"\n\ntype s struct{ ctx context.Context }\n", "planted/odd/ctx.go:5: a context is not kept in a struct"},
		{"a context in second place", "planted/odd/ctx2.go", "package odd\n\nimport \"context\"\n\nfunc f(n int, ctx context.Context) {}\n", "planted/odd/ctx2.go:5: a context is the first argument"},
		{"a dot import", "planted/odd/dot.go", "package odd\n\nimport . \"strings\"\n", "planted/odd/dot.go:3: a dot import of strings"},
		{"a blank import", "planted/odd/blank.go", "package odd\n\nimport _ \"image/png\"\n", "planted/odd/blank.go:3: a blank import of image/png"},
		{"a package called util", "planted/util/util.go", "// Package util is everything.\npackage util\n", "a package called util says nothing"},
		{"a sleep in a test", "planted/odd/odd_test.go", "package odd_test\n\nimport \"time\"\n\nfunc nap() { time.Sleep(1) }\n", "planted/odd/odd_test.go:5: a test does not sleep"},
		{"a skip", "planted/odd/skip_test.go", "package odd_test\n\nimport \"testing\"\n\nfunc TestSkip(t *testing.T) { t.Skip() }\n", "planted/odd/skip_test.go:5: a test that is left out"},
		{"a path of one machine", "planted/notes.md", "See /wo" + "rk/notes.\n", "planted/notes.md:1: says \"/wo" + "rk/\""},
		{"who wrote it", "planted/who.md", "\nWritten by Cla" + "ude.\n", "planted/who.md:2: says \"cla" + "ude\""},
		{"a product by its name", "planted/onpurpose.md", "Connect Cla" + "ude Code.\n", ""},
		{"a promise", "planted/odd/later.go", "package odd\n\n// TO" + "DO: finish\n", "planted/odd/later.go:3: says \"to" + "do:\""},
	}
}

func depsBreaches() []guardBreach {
	return []guardBreach{
		{"a module without a reason", "planted/odd/dep.go", "package odd\n\nimport \"github.com/inconshreveable/mousetrap\"\n\nvar _ = mousetrap.X\n", "planted/odd/dep.go:3 imports github.com/inconshreveable/mousetrap, which has no line in deps.txt"},
		{"an empty reason", "deps.txt", "\n[direct]\nexample.com/empty:\n", "write \"module: why we need it\""},
		{"a list for no program", "deps.txt", "\n[planted/gone]\nexample.com/x\n", "deps.txt has a list for planted/gone, which is no program"},
		{"a program without its list", "planted/cmd/dep.go", "package main\n\nimport \"golang.org/x/term\"\n\nvar _ = term.X\n", "deps.txt is wrong about what planted/cmd links +golang.org/x/sys +golang.org/x/term"},
	}
}

func caseBreaches() []guardBreach {
	row := func(tests, waits string) string {
		return "| C999 | nobody#1 | Planted. | " + tests + " | " + waits + " |\n"
	}
	return []guardBreach{
		{"a case that nothing holds", guardCasesFile, row("", ""), "C999 neither names a test nor says what it waits for"},
		{"a case that stands twice", guardCasesFile, row("", "later"), "C999 stands twice"},
		{"a test that is not there", guardCasesFile, row("`fault.TestGone`", ""), "C999 is held by fault.TestGone, which is not there"},
		{"a script that is not there", guardCasesFile, row("`e2e/gone.txtar`", ""), "C999 is held by e2e/gone.txtar, which is not there"},
		{"a test that does not name its case", guardCasesFile, row("`fault.TestCodeOf`", ""), "C999 is named in none of its tests"},
	}
}

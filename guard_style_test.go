package writ_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	maxFileLines = 600
	maxFuncLines = 80
	maxMainLines = 20

	// longOnPurpose, with a reason after it, is the only way past the first two.
	longOnPurpose = "Long on purpose: "
)

// checkDocs: exactly one file of a package says what the package is for.
func checkDocs(tree *guardTree) (problems []string) {
	docs := map[string][]string{}
	built := map[string]bool{} // packages with more than tests
	for _, f := range tree.files {
		built[f.pkg] = built[f.pkg] || !f.test
	}
	for _, f := range tree.files {
		if f.test && built[f.pkg] || f.ast.Doc == nil {
			continue
		}
		docs[f.pkg] = append(docs[f.pkg], f.path)
		name := f.ast.Name.Name
		if !f.test && name != "main" && !strings.HasPrefix(f.ast.Doc.Text(), "Package "+name+" ") {
			problems = append(problems, fmt.Sprintf("%s: the package comment begins with \"Package %s\" and says what it is for", f.path, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tree.packages)) {
		switch n := len(docs[name]); {
		case n == 0 && (name != guardModule || built[name]):
			problems = append(problems, fmt.Sprintf("%s has no package comment: say in one file what it is for", name))
		case n > 1:
			problems = append(problems, fmt.Sprintf("%s has %d package comments (%s): keep one", name, n, strings.Join(docs[name], ", ")))
		}
	}
	return problems
}

// checkSizes: files and functions stay readable, main does nothing.
func checkSizes(tree *guardTree) (problems []string) {
	for _, f := range tree.files {
		if n := bytes.Count(tree.texts[f.path], []byte("\n")); n > maxFileLines && !f.longOnPurpose() {
			problems = append(problems, fmt.Sprintf("%s has %d lines: part it by subject (at most %d), or say above the package clause %q", f.path, n, maxFileLines, longOnPurpose+"why"))
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n, limit := tree.lines(fn), maxFuncLines
			if fn.Name.Name == "main" && fn.Recv == nil {
				limit = maxMainLines
			}
			if n > limit && !strings.Contains(fn.Doc.Text(), longOnPurpose) {
				problems = append(problems, fmt.Sprintf("%s: func %s has %d lines: part it (at most %d), or say in its comment %q", tree.where(fn), fn.Name.Name, n, limit, longOnPurpose+"why"))
			}
		}
	}
	return problems
}

// longOnPurpose says whether a comment above the package clause excuses the length of the file.
func (f guardFile) longOnPurpose() bool {
	return slices.ContainsFunc(f.ast.Comments, func(c *ast.CommentGroup) bool {
		return c.Pos() < f.ast.Package && strings.Contains(c.Text(), longOnPurpose)
	})
}

// checkShape: what the language allows and this tree does not.
func checkShape(tree *guardTree) (problems []string) {
	empty := []string{"util", "utils", "common", "helper", "helpers", "types", "base", "manager", "misc", "shared"}
	for _, f := range tree.files {
		if slices.Contains(empty, path.Base(f.pkg)) {
			problems = append(problems, fmt.Sprintf("%s: a package called %s says nothing: name it for what it does", f.path, path.Base(f.pkg)))
		}
		for _, use := range f.imports {
			if use.alias == "." {
				problems = append(problems, fmt.Sprintf("%s: a dot import of %s hides what is used: import it by name", use.where, use.name))
			}
			// A database driver has no other door than its own init.
			if use.alias == "_" && use.name != "embed" && use.name != "modernc.org/sqlite" {
				problems = append(problems, fmt.Sprintf("%s: a blank import of %s works by side effect: register by a list", use.where, use.name))
			}
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				problems = append(problems, fmt.Sprintf("%s: init runs unasked: call it from where it is needed", tree.where(fn)))
			}
		}
		if f.test {
			problems = append(problems, tree.sleeps(f)...)
			problems = append(problems, tree.skips(f)...)
		} else {
			problems = append(problems, tree.contexts(f)...)
		}
	}
	return problems
}

// sleeps: a test that sleeps is slow or flaky; in a synctest bubble sleeping is free and exact.
func (tree *guardTree) sleeps(f guardFile) (problems []string) {
	if slices.ContainsFunc(f.imports, func(u guardUse) bool { return u.name == "testing/synctest" }) {
		return nil
	}
	for _, use := range f.symbols {
		if use.name == "time.Sleep" {
			problems = append(problems, fmt.Sprintf("%s: a test does not sleep: wait for the thing itself, or use testing/synctest", use.where))
		}
	}
	return problems
}

// skips: a test that may be left out looks at CI first, because there it has to run.
func (tree *guardTree) skips(f guardFile) (problems []string) {
	if bytes.Contains(tree.texts[f.path], []byte(`"CI"`)) {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
			problems = append(problems, fmt.Sprintf("%s: a test that is left out proves nothing: fail when CI is \"true\", or take it away", tree.where(call)))
		}
		return true
	})
	return problems
}

// contexts: ctx is the first argument and never a field.
func (tree *guardTree) contexts(f guardFile) (problems []string) {
	isContext := func(e ast.Expr) bool {
		sel, ok := e.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Context" {
			return false
		}
		x, ok := sel.X.(*ast.Ident)
		return ok && x.Name == "context"
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if isContext(field.Type) {
					problems = append(problems, fmt.Sprintf("%s: a context is not kept in a struct: pass it as the first argument", tree.where(field)))
				}
			}
		case *ast.FuncType:
			for i, field := range n.Params.List {
				if i > 0 && isContext(field.Type) {
					problems = append(problems, fmt.Sprintf("%s: a context is the first argument", tree.where(field)))
				}
			}
		}
		return true
	})
	return problems
}

// checkWords: no text of the tree speaks of where or how it was made, or promises to be finished later. The words are
// put together here so that this file does not contain them.
func checkWords(tree *guardTree) (problems []string) {
	words := []struct{ word, because string }{
		{"/wo" + "rk/", "a path of one machine means nothing elsewhere"},
		{"/tmp/br" + "ief", "a path of one machine means nothing elsewhere"},
		{"proxy.gol" + "ang.org", "where modules come from is the builder's choice"},
		{"cla" + "ude", "the text is about the product, not about who wrote it"},
		{"anthr" + "opic", "the text is about the product, not about who wrote it"},
		{"to" + "do:", "finish it, or write down in docs what is missing"},
		{"to" + "do(", "finish it, or write down in docs what is missing"},
		{"fix" + "me", "finish it, or write down in docs what is missing"},
	}
	client := regexp.MustCompile(`\.?cla` + `ude([ -]?code|tools|\.json|/)`) // an MCP client, which users know by this name, and its files
	tracker := regexp.MustCompile(`[\w.-]+/[\w.-]+#\d+`)                     // a public tracker, where cases come from
	for _, name := range slices.Sorted(maps.Keys(tree.texts)) {
		for i, line := range bytes.Split(bytes.ToLower(tree.texts[name]), []byte("\n")) {
			line = client.ReplaceAll(tracker.ReplaceAll(line, nil), nil)
			for _, w := range words {
				if bytes.Contains(line, []byte(w.word)) {
					problems = append(problems, fmt.Sprintf("%s:%d: says %q: %s", name, i+1, w.word, w.because))
				}
			}
		}
	}
	return problems
}

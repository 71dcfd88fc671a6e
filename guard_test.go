package writ_test

// The guard holds the tree to ARCHITECTURE.md, STYLE.md and deps.txt. It reads the Go files themselves (so that files of
// every build tag count) and `go list -deps` (so that what a package links counts, however many steps away).
// guard_proof_test.go breaks each rule in a copy of the tree and sees it refused.

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// guardModule is the path of this module; the root package is known by the same word.
const guardModule = "writ"

func TestGuard(t *testing.T) {
	t.Parallel()
	tree := loadGuardTree(t, ".")
	if *guardUpdate {
		tree.rewriteDeps(t)
		tree = loadGuardTree(t, ".")
	}
	for _, rule := range guardRules() {
		t.Run(rule.name, func(t *testing.T) {
			for _, problem := range rule.check(tree) {
				t.Error(problem)
			}
		})
	}
}

// A guardRule reports each breach as a sentence that says what to do.
type guardRule struct {
	name  string
	check func(*guardTree) []string
}

func guardRules() []guardRule {
	return []guardRule{
		{"loads", checkLoads},
		{"table", checkTable},
		{"floors", checkFloors},
		{"walls", checkWalls},
		{"capabilities", checkCapabilities},
		{"contracts", checkContracts},
		{"docs", checkDocs},
		{"sizes", checkSizes},
		{"shape", checkShape},
		{"words", checkWords},
		{"deps", checkDeps},
		{"cases", checkCases},
	}
}

// guardTree is everything the rules look at.
type guardTree struct {
	root     string
	arch     guardArch
	fset     *token.FileSet
	texts    map[string][]byte // every text file, by slash path
	files    []guardFile       // every Go file
	packages map[string]bool   // every package with a Go file, by tree name
	listed   map[string]guardListed
	outside  map[string]guardListed // packages outside the module that ARCHITECTURE.md names
	requires []guardRequire         // go.mod
}

// guardFile is one parsed Go file.
type guardFile struct {
	path    string // from the root, with slashes
	pkg     string // tree name of its package
	test    bool
	ast     *ast.File
	imports []guardUse // name: tree name or import path
	symbols []guardUse // name: "time.Now", whatever the file calls the package
}

// guardUse is one place where a name is used.
type guardUse struct {
	name  string
	where string // path:line
	alias string // of an import, "" if it has none
}

// guardListed is what `go list` says of a package.
type guardListed struct {
	ImportPath, Name, Dir string
	GoFiles, Imports      []string
	Deps                  []string
	Module                *struct{ Path string }
	Error                 *struct{ Err string }
}

// guardRequire is one line of go.mod.
type guardRequire struct {
	Path     string
	Indirect bool
}

func loadGuardTree(t *testing.T, root string) *guardTree {
	t.Helper()
	tree := &guardTree{root: root, fset: token.NewFileSet(), texts: map[string][]byte{}, packages: map[string]bool{}}
	if err := fs.WalkDir(os.DirFS(root), ".", tree.visit); err != nil {
		t.Fatalf("read the tree: %v", err)
	}
	tree.arch = parseGuardArch(string(tree.texts["ARCHITECTURE.md"]))
	tree.listed = goList(t, root, "-deps", "./...")
	if missing := tree.unlisted(); len(missing) > 0 {
		tree.outside = goList(t, root, append([]string{"-find"}, missing...)...)
	}
	var mod struct{ Require []guardRequire }
	if err := json.Unmarshal(goCommand(t, root, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatalf("read go.mod: %v", err)
	}
	tree.requires = mod.Require
	return tree
}

// visit reads one file of the tree.
func (tree *guardTree) visit(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if d.IsDir() {
		hidden := strings.HasPrefix(d.Name(), ".") && name != "." && name != ".ci"
		_, err := os.Stat(filepath.Join(tree.root, filepath.FromSlash(name), "go.mod"))
		inner := err == nil && name != "." // a module of its own: nothing here can import it
		if hidden || inner || name == "bin" {
			return fs.SkipDir
		}
		return nil
	}
	if !d.Type().IsRegular() {
		return nil
	}
	src, err := os.ReadFile(filepath.Join(tree.root, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a temporary file that is gone again
	}
	if err != nil {
		return err
	}
	if bytes.IndexByte(src, 0) >= 0 {
		return nil // not text
	}
	tree.texts[name] = src
	if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
		return nil
	}
	return tree.parse(name, src)
}

// parse adds one Go file.
func (tree *guardTree) parse(name string, src []byte) error {
	parsed, err := parser.ParseFile(tree.fset, name, src, parser.ParseComments)
	if err != nil {
		return err
	}
	f := guardFile{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), ast: parsed}
	if f.pkg == "." {
		f.pkg = guardModule
	}
	local := map[string]string{} // what the file calls a package → its import path
	for _, spec := range parsed.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		use := guardUse{name: treeName(importPath), where: tree.where(spec)}
		called := regexp.MustCompile(`/v\d+$`).ReplaceAllString(importPath, "")
		local[path.Base(called)] = importPath
		if spec.Name != nil {
			use.alias = spec.Name.Name
			local[spec.Name.Name] = importPath
		}
		f.imports = append(f.imports, use)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if ok && x.Obj == nil && local[x.Name] != "" { // Obj is set where a variable hides the import
			f.symbols = append(f.symbols, guardUse{name: local[x.Name] + "." + sel.Sel.Name, where: tree.where(sel)})
		}
		return true
	})
	tree.files = append(tree.files, f)
	tree.packages[f.pkg] = true
	return nil
}

func (tree *guardTree) where(n ast.Node) string {
	p := tree.fset.Position(n.Pos())
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// lines is how many lines a node takes.
func (tree *guardTree) lines(n ast.Node) int {
	return tree.fset.Position(n.End()).Line - tree.fset.Position(n.Pos()).Line + 1
}

// treeName is what ARCHITECTURE.md calls an import path: packages of this module go by their folder.
func treeName(importPath string) string {
	return strings.TrimPrefix(importPath, guardModule+"/")
}

// importPath undoes treeName for a package of this module.
func importPath(tree string) string {
	if tree == guardModule {
		return guardModule
	}
	return guardModule + "/" + tree
}

// matchName says whether a name falls under a pattern: "/..." at the end is a package and all below it, "*" is one
// path element.
func matchName(pattern, name string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	for {
		if ok, err := path.Match(base, name); err == nil && ok {
			return true
		}
		up := path.Dir(name)
		if !below || up == name || up == "." {
			return false
		}
		name = up
	}
}

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if matchName(p, name) {
			return true
		}
	}
	return false
}

// goList asks go list about packages; a package that does not load is in the answer, with its error.
func goList(t *testing.T, dir string, args ...string) map[string]guardListed {
	t.Helper()
	fields := "-json=ImportPath,Name,Dir,GoFiles,Imports,Deps,Module,Error"
	dec := json.NewDecoder(bytes.NewReader(goCommand(t, dir, append([]string{"list", "-e", fields}, args...)...)))
	listed := map[string]guardListed{}
	for {
		var p guardListed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return listed
		}
		if err != nil {
			t.Fatalf("go list answered something that is not JSON: %v", err)
		}
		listed[treeName(p.ImportPath)] = p
	}
}

func goCommand(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

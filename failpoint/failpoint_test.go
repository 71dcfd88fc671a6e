package failpoint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/failpoint"
)

// Every point of the list is reached somewhere in the code, and nothing else is.
func TestAll_areReached(t *testing.T) {
	t.Parallel()
	named := constants(t)
	listed := map[string]bool{}
	for _, p := range failpoint.All() {
		if listed[string(p)] {
			t.Errorf("%s is in the list twice", p)
		}
		listed[string(p)] = true
	}
	for name, value := range named {
		if !listed[value] {
			t.Errorf("All lacks %s", name)
		}
	}
	if len(named) != len(listed) {
		t.Errorf("there are %d names for %d points", len(named), len(listed))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(named)), uses(t)); diff != "" {
		t.Errorf("points that are named and points that are reached, each at one place (-named +reached):\n%s", diff)
	}
}

// constants returns the names of the points, with their values.
func constants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "list.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			named[v.Names[0].Name] = strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)
		}
		return true
	})
	return named
}

// uses returns the points that the code reaches, as often as it does.
func uses(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && isFailpoint(f, "Reach") {
				p, ok := call.Args[0].(*ast.SelectorExpr)
				if !ok || !isFailpoint(p, p.Sel.Name) {
					t.Errorf("%s reaches a point that is not named there", path)
					return true
				}
				found = append(found, p.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(found))
}

func isFailpoint(s *ast.SelectorExpr, name string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "failpoint" && s.Sel.Name == name
}

// In an ordinary build a point is nothing, whatever the environment says.
func TestReach_isNothing(t *testing.T) {
	for _, p := range failpoint.All() {
		t.Setenv("WRIT_FAILPOINT", string(p)+":1")
		failpoint.Reach(p)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.GoFiles}} {{.Imports}}", ".").Output()
	if err != nil || strings.TrimSpace(string(out)) != "[list.go off.go] []" {
		t.Errorf("an ordinary build has %s: %v", out, err)
	}
}

// A build with the tag kills itself where it is told to, and counts.
func TestReach_kills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	if err := os.WriteFile(main, []byte(`package main

import "writ/failpoint"

func main() {
	for range 3 {
		failpoint.Reach(failpoint.GateCommit)
		print("passed ")
	}
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "failpoint", "-o", program, main).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	file := filepath.Join(dir, "armed")
	if err := os.WriteFile(file, []byte("gate.commit:3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for armed, want := range map[string]string{
		"": "passed passed passed ", "gate.commit:2": "passed ", "gate.commit:4": "passed passed passed ", "gate.committed:1": "passed passed passed ",
		"@" + file: "passed passed ", "@" + file + ".none": "passed passed passed ",
	} {
		cmd := exec.CommandContext(t.Context(), program)
		log := filepath.Join(t.TempDir(), "log")
		cmd.Env = []string{"WRIT_FAILPOINT=" + armed, "WRIT_FAILPOINT_LOG=" + log}
		out, err := cmd.CombinedOutput()
		killed := cmd.ProcessState.ExitCode() == -1
		if string(out) != want || killed != (want != "passed passed passed ") {
			t.Errorf("armed with %q it said %q and ended with %v", armed, out, err)
		}
		reached, err := os.ReadFile(log)
		if n := strings.Count(string(reached), "gate.commit\n"); err != nil || n != strings.Count(want, "passed ")+map[bool]int{true: 1}[killed] {
			t.Errorf("armed with %q it noted %q: %v", armed, reached, err)
		}
	}
}

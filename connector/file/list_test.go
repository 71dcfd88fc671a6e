package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/catalog"
)

func list(path string, query map[string]string) catalog.Call {
	return catalog.Call{Verb: "list", Path: path, Query: query}
}

// site is a small site, as a tree.
func site(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "mkdocs.yml", "nav: [index.md]\n")
	put(t, dir, "docs/index.md", "see [web](hosts/web.md)\n")
	put(t, dir, "docs/hosts/web.md", "# Web\n")
	put(t, dir, "docs/hosts/web.png", "\x89PNG web.md")
	put(t, dir, ".git/notes.md", "web.md")
	put(t, dir, "docs/.hidden.md", "web.md")
	return dir
}

func TestList(t *testing.T) {
	t.Parallel()
	dir := site(t)
	target := open(t, dir)
	entry := func(path string, size int, isDir bool) map[string]any {
		return map[string]any{"path": path, "size": int64(size), "dir": isDir}
	}
	for name, c := range map[string]struct {
		call catalog.Call
		want []any
	}{
		"everything": {list(".", nil), []any{entry("docs", 0, true), entry("docs/hosts", 0, true), entry("docs/hosts/web.md", 6, false),
			entry("docs/hosts/web.png", 11, false), entry("docs/index.md", 24, false), entry("mkdocs.yml", 16, false)}},
		"a subtree":      {list("docs/hosts", nil), []any{entry("docs/hosts/web.md", 6, false), entry("docs/hosts/web.png", 11, false)}},
		"suffix":         {list(".", map[string]string{"suffix": ".yml"}), []any{entry("mkdocs.yml", 16, false)}},
		"text":           {list("docs", map[string]string{"contains": "web.md"}), []any{entry("docs/hosts/web.png", 11, false), entry("docs/index.md", 24, false)}},
		"text in pages":  {list("docs", map[string]string{"contains": "web.md", "suffix": ".md"}), []any{entry("docs/index.md", 24, false)}},
		"text, nowhere":  {list("docs", map[string]string{"contains": "no such text"}), []any{}},
		"hidden by name": {list(".git", nil), []any{entry(".git/notes.md", 6, false)}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(catalog.Seen{Found: true, Data: c.want}, did(t, target, c.call)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	refused(t, target, list("docs/index.md", nil), "not_a_directory")
	refused(t, target, list("none", nil), "not_found")
	absent := list("none", nil)
	absent.AbsentOK = true
	if seen := did(t, target, absent); seen.Found {
		t.Error("a directory that is not there was found")
	}
}

// TestList_searchesAllOrFails: an empty answer has to mean that the text is nowhere.
func TestList_searchesAllOrFails(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	put(t, outside, "x.md", "web.md")
	for name, c := range map[string]struct {
		spoil  func(docs string) error
		reason string // "" is fine
	}{
		"large page":                 {func(d string) error { return os.WriteFile(d+"/x.md", make([]byte, 1<<20+1), 0o644) }, "too_large"},
		"large picture":              {func(d string) error { return os.WriteFile(d+"/x.png", make([]byte, 1<<20+1), 0o644) }, ""},
		"page that is a link out":    {func(d string) error { return os.Symlink(outside+"/x.md", d+"/x.md") }, "unusable_path"},
		"pages behind a link out":    {func(d string) error { return os.Symlink(outside, d+"/x") }, "irregular_file"},
		"pages behind a link inside": {func(d string) error { return os.Symlink("hosts", d+"/x") }, "irregular_file"},
		"page that is a link inside": {func(d string) error { return os.Symlink("../README.md", d+"/x.md") }, ""},
		"picture that is a link":     {func(d string) error { return os.Symlink("../README.md", d+"/x.png") }, ""},
		"dangling page":              {func(d string) error { return os.Symlink("none", d+"/x.md") }, "changing"},
		"page with two names":        {func(d string) error { return os.Link(outside+"/x.md", d+"/x.md") }, "irregular_file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := site(t)
			put(t, dir, "README.md", "read me")
			if err := c.spoil(filepath.Join(dir, "docs")); err != nil {
				t.Fatal(err)
			}
			target := open(t, dir)
			search := list("docs", map[string]string{"contains": "web.md", "suffix": ".md"})
			search.AbsentOK = true
			if c.reason != "" {
				refused(t, target, search, c.reason)
			} else if seen := did(t, target, search); len(seen.Data.([]any)) != 1 {
				t.Errorf("found %v, want docs/index.md", seen.Data)
			}
			did(t, target, list("docs", nil))
		})
	}
}

func TestList_tooMany(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 10_000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, open(t, dir), list(".", map[string]string{"suffix": "x"}), "too_many")
}

func TestCheck_missingPrivilege(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o100); err != nil {
		t.Fatal(err)
	}
	target := open(t, dir)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // and never unlocked: the thread ends with what it has become
			syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534)
		}
		wrong, err := target.Check(t.Context())
		if text := strings.Join(wrong, " "); err != nil || !strings.Contains(text, "may not list") || !strings.Contains(text, "may not write") {
			t.Errorf("got %q, %v", wrong, err)
		}
	}()
	<-done
	os.Chmod(dir, 0o700)
}

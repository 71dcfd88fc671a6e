package file_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/connectortest"
	"writ/connector/file"
	"writ/sys"
)

func newDriver() connector.Driver { return file.New(sys.Real(slog.New(slog.DiscardHandler))) }

func read(path string) catalog.Call { return catalog.Call{Verb: "read", Path: path} }

func write(path, text, ifMatch string) catalog.Call {
	return catalog.Call{Verb: "write", Path: path, Text: &text, IfMatch: ifMatch}
}

func remove(path, ifMatch string) catalog.Call {
	return catalog.Call{Verb: "remove", Path: path, IfMatch: ifMatch}
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

func TestDriver(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Suite{
		Driver: newDriver(),
		World: func(t *testing.T) connectortest.World {
			dir := t.TempDir()
			put(t, dir, "first.md", "# First\n")
			return connectortest.World{Options: map[string]string{"root": dir}, Written: func() bool {
				b, err := os.ReadFile(filepath.Join(dir, "docs/second.md"))
				return err == nil && string(b) == "# Second\n"
			}}
		},
		Read:   read("first.md"),
		Write:  write("docs/second.md", "# Second\n", ""),
		Absent: read("docs/none.md"),
	})
}

// put writes a file below dir, the way a test does.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree is all that is below dir: name to content, or to what else it is.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name)
		switch {
		case err != nil:
			return err
		case d.Type().IsRegular():
			b, err := os.ReadFile(name)
			all[rel] = string(b)
			return err
		case name != dir:
			all[rel] = d.Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func open(t *testing.T, dir string) connector.Target {
	t.Helper()
	target, err := newDriver().Open(connector.System{Name: "wiki", Options: map[string]string{"root": dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

// refused makes a call that has to be refused, and to leave the trees as they are.
func refused(t *testing.T, target connector.Target, c catalog.Call, reason string, dirs ...string) {
	t.Helper()
	var before []map[string]string
	for _, dir := range dirs {
		before = append(before, tree(t, dir))
	}
	seen, err := target.Do(t.Context(), c)
	failed, ok := errors.AsType[*connector.Error](err)
	if !ok {
		t.Errorf("%s %q: got %+v, %v; want it refused with %s", c.Verb, c.Path, seen, err, reason)
	} else if failed.Outcome != writ.NotExecuted || failed.Reason != reason {
		t.Errorf("%s %q: %s, %s (%v), want not_executed, %s", c.Verb, c.Path, failed.Outcome, failed.Reason, failed.Cause, reason)
	}
	for i, dir := range dirs {
		if d := cmp.Diff(before[i], tree(t, dir)); d != "" {
			t.Errorf("%s %q changed a tree (-before +after):\n%s", c.Verb, c.Path, d)
		}
	}
}

func did(t *testing.T, target connector.Target, c catalog.Call) catalog.Seen {
	t.Helper()
	seen, err := target.Do(t.Context(), c)
	if err != nil {
		t.Fatalf("%s %q: %v (%v)", c.Verb, c.Path, err, errors.Unwrap(err))
	}
	return seen
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := open(t, dir)
	put(t, dir, "a b.md", "é\n")
	want := catalog.Seen{Found: true, Text: "é\n", ETag: sum("é\n"), Data: map[string]any{"content": "é\n", "sha256": sum("é\n"), "size": int64(3)}}
	if d := cmp.Diff(want, did(t, target, read("a b.md"))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	put(t, dir, "full", strings.Repeat("x", 1<<20))
	did(t, target, read("full"))
	put(t, dir, "large", strings.Repeat("x", 1<<20+1))
	refused(t, target, read("large"), "too_large")
	put(t, dir, "binary", "a\xffb")
	refused(t, target, read("binary"), "not_text")
	refused(t, target, read("a b.md/x"), "unusable_path")
	refused(t, target, read("."), "bad_call")
}

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := open(t, dir)
	seen := did(t, target, write("docs/deep/a.md", "one", ""))
	if want := (catalog.Seen{Found: true, ETag: sum("one"), Data: map[string]any{"sha256": sum("one"), "size": int64(3)}}); !cmp.Equal(want, seen) {
		t.Errorf("got %+v", seen)
	}
	refused(t, target, write("docs/deep/a.md", "two", ""), "already_exists", dir)
	refused(t, target, write("docs/deep/a.md", "two", sum("other")), "precondition_failed", dir)
	refused(t, target, write("docs/deep/a.md", "two", "*"), "precondition_failed", dir)
	refused(t, target, write("docs/none.md", "two", sum("one")), "not_found", dir)
	refused(t, target, write("no/such/dir.md", "two", sum("one")), "not_found", dir)
	refused(t, target, write("docs/deep/a.md/b.md", "two", ""), "unusable_path", dir)
	refused(t, target, write("docs/deep", "two", ""), "already_exists", dir)
	refused(t, target, write("docs/deep", "two", sum("")), "irregular_file", dir)
	refused(t, target, write("large.md", strings.Repeat("x", 1<<20+1), ""), "bad_call", dir)
	refused(t, target, write("binary.md", "\xff", ""), "bad_call", dir)
	did(t, target, write("docs/deep/a.md", "two", sum("one")))
	if d := cmp.Diff(map[string]string{"docs": "d---------", "docs/deep": "d---------", "docs/deep/a.md": "two"}, tree(t, dir)); d != "" {
		t.Errorf("nothing else may be left behind (-want +got):\n%s", d)
	}
}

func TestWrite_mode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, err := newDriver().Open(connector.System{Options: map[string]string{"root": dir, "mode": "0640"}})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	mode := func() os.FileMode {
		info, err := os.Stat(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	did(t, target, write("a", "one", ""))
	if mode() != 0o640 {
		t.Errorf("a new file has mode %v, want that of the option", mode())
	}
	os.Chmod(filepath.Join(dir, "a"), 0o666) // which the umask would not give
	owner := os.Geteuid()
	if owner == 0 { // only root can give a file away
		owner = 12345
		os.Chown(filepath.Join(dir, "a"), owner, owner)
	}
	did(t, target, write("a", "two", sum("one")))
	if mode() != 0o666 {
		t.Errorf("a replaced file has mode %v, want the one it had", mode())
	}
	if info, _ := os.Stat(filepath.Join(dir, "a")); info.Sys().(*syscall.Stat_t).Uid != uint32(owner) {
		t.Error("a replaced file has another owner")
	}
}

func TestWrite_newFileIsNeverPutInPlaceOfAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	var mu sync.Mutex
	var winners []string
	for i := range 8 { // each with a target of its own: no lock of ours helps
		target := open(t, dir)
		all.Go(func() {
			text := fmt.Sprint("from ", i)
			if _, err := target.Do(t.Context(), write("docs/a.md", text, "")); err == nil {
				mu.Lock()
				winners = append(winners, text)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if got := tree(t, dir)["docs/a.md"]; len(winners) != 1 || got != winners[0] {
		t.Errorf("%q say that they made the file, which has %q", winners, got)
	}
}

func TestWrite_ifMatchAmongCallsOfOneTarget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := open(t, dir)
	for range 40 {
		put(t, dir, "a", "start")
		var all sync.WaitGroup
		won := make(chan string, 8)
		for i := range 8 {
			all.Go(func() {
				text := fmt.Sprint("from ", i)
				if _, err := target.Do(t.Context(), write("a", text, sum("start"))); err == nil {
					won <- text
				}
			})
		}
		all.Wait()
		if len(won) != 1 || tree(t, dir)["a"] != <-won {
			t.Fatalf("%d more writes say that they replaced the same content", len(won))
		}
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := open(t, dir)
	put(t, dir, "docs/a.md", "one")
	refused(t, target, remove("docs/a.md", ""), "bad_call", dir)
	refused(t, target, remove("docs/a.md", sum("two")), "precondition_failed", dir)
	refused(t, target, remove("docs", sum("")), "irregular_file", dir)
	refused(t, target, remove("docs/b.md", sum("one")), "not_found", dir)
	did(t, target, remove("docs/a.md", sum("one")))
	if d := cmp.Diff(map[string]string{"docs": "d---------"}, tree(t, dir)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDo_pathsThatAreNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	put(t, dir, "outside.md", "secret")
	put(t, inside, "a.md", "one")
	target := open(t, inside)
	for _, p := range []string{"", "/a.md", "../outside.md", "x/../../outside.md", "x/../a.md", "./a.md", "a.md/", "x//a.md", "..", ".",
		"a\nb", "a\x00b", "a\x7fb", "a\u0085b", "a\xffb", ".writ-0011", "x/.writ-0011"} {
		for _, c := range []catalog.Call{read(p), write(p, "x", ""), write(p, "x", sum("secret")), remove(p, sum("secret"))} {
			refused(t, target, c, "bad_call", dir)
		}
	}
	for _, p := range []string{"..", "/", "", "docs/."} {
		refused(t, target, catalog.Call{Verb: "list", Path: p}, "bad_call", dir)
	}
}

func TestDo_callsThatSayTooMuch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a", "one")
	target := open(t, dir)
	text := "x"
	for name, c := range map[string]catalog.Call{
		"read with text":       {Verb: "read", Path: "a", Text: &text},
		"read with if_match":   {Verb: "read", Path: "a", IfMatch: sum("two")},
		"read with query":      {Verb: "read", Path: "a", Query: map[string]string{"suffix": "x"}},
		"list of what":         {Verb: "list", Path: ".", Query: map[string]string{"sufix": "x"}},
		"write without text":   {Verb: "write", Path: "b"},
		"write of json":        {Verb: "write", Path: "b", JSON: 1, Text: &text},
		"write of a form":      {Verb: "write", Path: "b", Form: map[string]string{}, Text: &text},
		"endpoint":             {Verb: "read", Path: "a", At: "x"},
		"host":                 {Verb: "read", Path: "a", Host: "x"},
		"remove with a text":   {Verb: "remove", Path: "a", Text: &text, IfMatch: sum("one")},
		"remove with no match": {Verb: "remove", Path: "a"},
	} {
		t.Log(name)
		refused(t, target, c, "bad_call", dir)
	}
}

// TestDo_linksAndOddFiles has in the tree what an attacker who may write there
// would put there.
//
// Case: C108.
func TestDo_linksAndOddFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	put(t, dir, "outside/secret.md", "secret")
	put(t, inside, "docs/a.md", "one")
	in := func(name string) string { return filepath.Join(inside, name) }
	for _, err := range []error{
		os.Symlink(filepath.Join(dir, "outside/secret.md"), in("absolute.md")),
		os.Symlink("../outside/secret.md", in("relative.md")),
		os.Symlink("../outside", in("out")),
		os.Symlink("../outside/not-there-yet.md", in("dangling.md")),
		os.Symlink("docs/a.md", in("same.md")),
		os.Symlink("docs", in("alias")),
		os.Link(filepath.Join(dir, "outside/secret.md"), in("hard.md")),
		syscall.Mkfifo(in("pipe.md"), 0o644),
		os.Mkdir(in("dir.md"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", in("socket.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	odd := []struct{ name, read, change string }{
		{"absolute.md", "unusable_path", "irregular_file"},
		{"relative.md", "unusable_path", "irregular_file"},
		{"out/secret.md", "unusable_path", "unusable_path"},
		{"hard.md", "irregular_file", "irregular_file"},
		{"pipe.md", "irregular_file", "irregular_file"},
		{"dir.md", "irregular_file", "irregular_file"},
		{"socket.md", "irregular_file", "irregular_file"},
	}
	if err := syscall.Mknod(in("null.md"), syscall.S_IFCHR|0o666, 1<<8|3); err == nil { // needs root
		odd = append(odd, struct{ name, read, change string }{"null.md", "irregular_file", "irregular_file"})
	}
	target := open(t, inside)
	names := map[string]string{}
	for _, o := range odd {
		refused(t, target, read(o.name), o.read)
		for _, content := range []string{"secret", ""} {
			refused(t, target, write(o.name, "x", sum(content)), o.change)
			refused(t, target, remove(o.name, sum(content)), o.change)
		}
		names[o.name] = o.change
	}
	for _, name := range []string{"absolute.md", "dangling.md", "hard.md", "pipe.md", "dir.md", "same.md"} {
		refused(t, target, write(name, "x", ""), "already_exists")
	}
	refused(t, target, write("out/new.md", "x", ""), "unusable_path")
	refused(t, target, write("out/new/new.md", "x", ""), "unusable_path")

	// A link that stays inside is read, and a directory behind one is used; but a
	// file is not replaced through its link, which would only replace the link.
	if seen := did(t, target, read("same.md")); seen.Text != "one" {
		t.Errorf("same.md has %q", seen.Text)
	}
	refused(t, target, write("same.md", "x", sum("one")), "irregular_file")
	refused(t, target, remove("same.md", sum("one")), "irregular_file")
	did(t, target, write("alias/b.md", "two", ""))
	if b, _ := os.ReadFile(in("docs/b.md")); string(b) != "two" {
		t.Errorf("docs/b.md has %q", b)
	}
	if d := cmp.Diff(map[string]string{"secret.md": "secret"}, tree(t, filepath.Join(dir, "outside"))); d != "" {
		t.Errorf("outside (-want +got):\n%s", d)
	}
}

// TestDo_swapped swaps a directory for a link out of the tree, and a file for a
// link to another outside, all the time, while files are used through them.
//
// Case: C109.
func TestDo_swapped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	put(t, dir, "outside/a.md", "secret")
	put(t, inside, "docs/a.md", "one")
	before := tree(t, filepath.Join(dir, "outside"))
	if err := os.Symlink("../outside", filepath.Join(inside, "link")); err != nil {
		t.Fatal(err)
	}
	top, err := os.Open(inside)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.Open(filepath.Join(inside, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	swap := func(d *os.File, one, other string) {
		if err := unix.Renameat2(int(d.Fd()), one, int(d.Fd()), other, unix.RENAME_EXCHANGE); err != nil {
			t.Errorf("the swap does not work: %v", err)
			stop()
		}
	}
	all.Go(func() {
		for ctx.Err() == nil {
			swap(top, "docs", "link")
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			unix.Unlinkat(int(docs.Fd()), "link.md", 0)
			unix.Symlinkat("../../outside/a.md", int(docs.Fd()), "link.md")
			swap(docs, "a.md", "link.md")
			swap(docs, "a.md", "link.md")
		}
	})
	target := open(t, inside)
	done := map[string]int{}
	for i := 0; ctx.Err() == nil && i < 20_000 && min(done["read"], done["write"]) < 20; i++ {
		for _, c := range []catalog.Call{
			read("docs/a.md"), write("docs/a.md", "overwritten", sum("secret")), remove("docs/a.md", sum("secret")),
			write(fmt.Sprintf("docs/new-%d.md", i), "new", ""), write("docs/a.md", "one", sum("one")),
			{Verb: "list", Path: "docs", Query: map[string]string{"contains": "secret"}},
		} {
			seen, err := target.Do(t.Context(), c)
			if err == nil {
				done[c.Verb]++
			}
			if entries, _ := seen.Data.([]any); seen.Text == "secret" || len(entries) > 0 {
				t.Errorf("%s got out: %+v", c.Verb, seen)
			}
			if failed, ok := errors.AsType[*connector.Error](err); ok && failed.Outcome != writ.NotExecuted {
				t.Errorf("%s: %v", c.Verb, err)
			}
		}
	}
	stop()
	all.Wait()
	if d := cmp.Diff(before, tree(t, filepath.Join(dir, "outside"))); d != "" {
		t.Errorf("outside was changed (-before +after):\n%s", d)
	}
	if min(done["read"], done["write"]) < 20 {
		t.Errorf("done %v: too little, so this test proves nothing", done)
	}
	if done["remove"] > 0 {
		t.Error("something with the content of a file outside was removed")
	}
	t.Log(done)
}

// TestRead_swappedForAPipe swaps a file for a pipe, which holds whoever opens it
// in the ordinary way until somebody writes.
func TestRead_swappedForAPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a", "one")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "a"), unix.AT_FDCWD, filepath.Join(dir, "pipe"), unix.RENAME_EXCHANGE)
		}
	})
	target := open(t, dir)
	for range 5000 {
		if seen, err := target.Do(t.Context(), read("a")); err == nil && seen.Text != "one" {
			t.Errorf("got %+v", seen)
		}
	}
	stop()
	all.Wait()
}

func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a", "")
	for name, s := range map[string]connector.System{
		"no root":      {},
		"relative":     {Options: map[string]string{"root": "."}},
		"everything":   {Options: map[string]string{"root": "/tmp/.."}},
		"not there":    {Options: map[string]string{"root": dir + "/none"}},
		"a file":       {Options: map[string]string{"root": dir + "/a"}},
		"odd mode":     {Options: map[string]string{"root": dir, "mode": "rw"}},
		"setuid":       {Options: map[string]string{"root": dir, "mode": "4755"}},
		"unreadable":   {Options: map[string]string{"root": dir, "mode": "0200"}},
		"an address":   {Options: map[string]string{"root": dir}, BaseURL: "http://a.example.test"},
		"an endpoint":  {Options: map[string]string{"root": dir}, Endpoints: map[string]string{"a": "http://a.example.test"}},
		"another word": {Options: map[string]string{"root": dir, "roots": dir}},
	} {
		if target, err := newDriver().Open(s); err == nil {
			target.Close()
			t.Errorf("%s: was taken", name)
		}
	}
}

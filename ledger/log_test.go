package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/fault"
	"writ/ledger"
)

func TestLog(t *testing.T) {
	t.Parallel()
	dir, o := filepath.Join(t.TempDir(), "audit"), options()
	o.Events = 2
	want := ""
	for i := range 7 {
		l := open(t, dir, o)
		if l.Size() != int64(i) {
			t.Fatalf("it holds %d events, want %d", l.Size(), i)
		}
		if err := l.Append(); err != nil {
			t.Fatal(err)
		}
		grow(t, l, 1)
		want += string(event(t, int64(i+1))) + "\n"
		if i%3 == 1 {
			checkpoint(t, l)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if report, err := ledger.Verify(dir, ledger.Against{}); err != nil || report.Events != int64(i+1) {
			t.Fatalf("after %d events: %s %v", i+1, report, err)
		}
	}
	got, segments := "", 0
	for name, text := range files(t, dir) {
		if strings.HasPrefix(name, "segment/") {
			segments++
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v (%v): %s", name, info.Mode(), err, text)
		}
	}
	for i := range segments {
		_, lines, _ := strings.Cut(files(t, dir)[fmt.Sprintf("segment/%012d.jsonl", i)], "\n")
		got += lines
	}
	if segments != 4 || got != want {
		t.Errorf("%d segments, want 4: %s", segments, cmp.Diff(want, got))
	}
}

// Many lines at once go into as many segments as they need, and the tiles are
// those of the tree.
func TestLog_many(t *testing.T) {
	t.Parallel()
	o := options()
	o.Bytes = 20_000
	dir, kept := made(t, 1000, o)
	report, err := ledger.Verify(dir, ledger.Against{Checkpoint: kept})
	if err != nil || report.Events != 1000 || report.Kept != 1000 || report.Segments < 3 {
		t.Fatalf("%s %v", report, err)
	}
	var tiles []string
	for name := range files(t, dir) {
		if strings.HasPrefix(name, "tile") {
			tiles = append(tiles, name)
		}
	}
	slices.Sort(tiles)
	want := []string{"tile/0/000", "tile/0/001", "tile/0/002", "tile/0/003.p/232", "tile/1/000.p/3"}
	if diff := cmp.Diff(want, tiles); diff != "" {
		t.Errorf("the tiles: %s", diff)
	}
	r, err := ledger.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, c := r.Checkpoint()
	count := int64(0)
	err = r.Each(0, func(sequence int64, line []byte) error {
		count++
		if string(line) != string(event(t, sequence)) || sequence != count {
			t.Fatalf("event %d is %s", sequence, line)
		}
		proof, err := r.Prove(sequence)
		if err != nil {
			return err
		}
		if err := ledger.Proves(c, sequence, line, proof); err != nil {
			return err
		}
		if err := ledger.Proves(c, sequence, event(t, sequence+1), proof); err == nil {
			t.Fatalf("the proof of event %d proves another line", sequence)
		}
		return nil
	})
	if err != nil || count != 1000 {
		t.Errorf("%d events: %v", count, err)
	}
	first := int64(0)
	_ = r.Each(997, func(sequence int64, _ []byte) error {
		first = max(first, sequence)
		return nil
	})
	if first != 1000 {
		t.Errorf("the last after 997 is %d", first)
	}
	if _, err := r.Prove(1001); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an event that is not there: %v", err)
	}
}

func TestLog_isForOneWriter(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, options())
	if _, err := ledger.Open(dir, options()); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "Another process") {
		t.Errorf("a second writer got %v, want unavailable", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(event(t, 1)); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a closed log gave %v, want unavailable", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	open(t, dir, options())
}

// What stands in the way of a ledger, or was done to one, refuses it.
func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(dir string) error
		want string
	}{
		{"a link", func(dir string) error { return relink(dir) }, "no link"},
		{"a file", func(dir string) error { return replaceWith(dir, "x") }, "cannot be"},
		{"open to others", func(dir string) error { return os.Chmod(dir, 0o750) }, "chmod 700"},
		{"a segment open to others", func(dir string) error { return os.Chmod(segment(dir, 0), 0o640) }, "chmod 600"},
		{"a segment with a second name", func(dir string) error { return os.Link(segment(dir, 0), dir+".1") }, "second name"},
		{"a segment that is a link", func(dir string) error { return relink(segment(dir, 1)) }, "is a link"},
		{"no checkpoint", func(dir string) error { return os.Remove(filepath.Join(dir, "checkpoint")) }, "no checkpoint"},
		{"no segments", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "segment")) }, "no segments"},
		{"a segment missing", func(dir string) error { return os.Remove(segment(dir, 0)) }, "is missing"},
		{"the last segment missing", func(dir string) error { return os.Remove(segment(dir, 2)) }, "Event 9 is wrong: it is missing"},
		{"an event changed", func(dir string) error { return sed(segment(dir, 1), "planner", "nobody1") }, "Event 5 is wrong"},
		{"a tile missing", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "tile/0/000.p")) }, "tile/0/000.p/10 is not what they give"},
		{"a file too many", func(dir string) error { return os.WriteFile(segment(dir, 1)+".1", nil, 0o600) }, "does not belong there"},
		{"another key", func(dir string) error { return nil }, "signed with the key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options()
			o.Events = 4
			dir, _ := made(t, 10, o)
			if err := c.do(dir); err != nil {
				t.Fatal(err)
			}
			if c.name == "another key" {
				o.Key = key("second")
			}
			_, err := ledger.Open(dir, o)
			if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want unavailable and %q", err, c.want)
			}
		})
	}
}

// relink replaces a file or directory by a link to it.
func relink(path string) error {
	if err := os.Rename(path, path+".moved"); err != nil {
		return err
	}
	return os.Symlink(path+".moved", path)
}

func replaceWith(path, text string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func sed(path, old, with string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(b), old, with, 1)), 0o600)
}

// What happens to the files behind the writer's back ends the writer, before it
// writes and also if it has nothing to write.
func TestAppend_noticesWhatOthersDid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(dir string) error
	}{
		{"the segment removed", func(dir string) error { return os.Remove(segment(dir, 2)) }},
		{"an earlier segment removed", func(dir string) error { return os.Remove(segment(dir, 0)) }},
		{"the segment moved away", func(dir string) error { return os.Rename(segment(dir, 2), dir+".1") }},
		{"the segment replaced by a copy", func(dir string) error {
			b, err := os.ReadFile(segment(dir, 2))
			if err == nil {
				err = os.Remove(segment(dir, 2))
			}
			if err != nil {
				return err
			}
			return os.WriteFile(segment(dir, 2), b, 0o600)
		}},
		{"the segment replaced by a link to itself", func(dir string) error { return relink(segment(dir, 2)) }},
		{"the segment linked", func(dir string) error { return os.Link(segment(dir, 2), dir+".1") }},
		{"the segment cut", func(dir string) error { return os.Truncate(segment(dir, 2), 10) }},
		{"an earlier segment cut", func(dir string) error { return os.Truncate(segment(dir, 1), 10) }},
		{"the segment appended to", func(dir string) error { return sed(segment(dir, 2), "\n", "\n{}\n") }},
		{"the segment opened to others", func(dir string) error { return os.Chmod(segment(dir, 2), 0o644) }},
		{"the directory opened to others", func(dir string) error { return os.Chmod(dir, 0o755) }},
		{"the directory moved", func(dir string) error { return os.Rename(dir, dir+".1") }},
		{"the directory replaced by a link to itself", relink},
		{"the segments moved", func(dir string) error { return os.Rename(filepath.Join(dir, "segment"), dir+".1") }},
		{"the checkpoint removed", func(dir string) error { return os.Remove(filepath.Join(dir, "checkpoint")) }},
		{"the checkpoint changed", func(dir string) error { return os.Truncate(filepath.Join(dir, "checkpoint"), 10) }},
	} {
		for _, more := range []int{0, 1} {
			o := options()
			o.Events = 4
			dir := filepath.Join(t.TempDir(), "audit")
			l := open(t, dir, o)
			grow(t, l, 10)
			checkpoint(t, l)
			var lines [][]byte
			if more == 1 {
				lines = append(lines, event(t, 11))
			}
			if err := l.Append(lines...); err != nil {
				t.Fatalf("%s: before: %v", c.name, err)
			}
			if err := c.do(dir); err != nil {
				t.Fatal(err)
			}
			if err := l.Append(lines...); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("%s: appending %d lines gave %v, want unavailable", c.name, len(lines), err)
			}
			if err := l.Append(); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("%s: the log did not stay closed: %v", c.name, err)
			}
		}
	}
}

// However little of the last line was written, exactly that is cut.
func TestCut(t *testing.T) {
	t.Parallel()
	dir, _ := made(t, 3, options())
	line := string(event(t, 4))
	good := files(t, dir)["segment/000000000000.jsonl"]
	for n := range len(line) {
		edit(t, segment(dir, 0), func(string) string { return good + line[:n+1] })
		if report, err := ledger.Verify(dir, ledger.Against{}); err != nil || !report.Torn || report.Events != 3 {
			t.Fatalf("%d bytes of a line: %s %v", n+1, report, err)
		}
		l := open(t, dir, options())
		if l.Torn() != int64(n+1) || l.Size() != 3 {
			t.Fatalf("%d bytes of a line: %d torn after %d", n+1, l.Torn(), l.Size())
		}
		if err := l.Cut(); err != nil || l.Torn() != 0 {
			t.Fatal(l.Torn(), err)
		}
		grow(t, l, 1)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := files(t, dir)["segment/000000000000.jsonl"]; got != good+line+"\n" {
			t.Fatalf("the segment holds\n%s\nwant\n%s", got, good+line)
		}
	}
	edit(t, segment(dir, 0), func(string) string { return good + "{" })
	l := open(t, dir, options())
	if err := l.Append(event(t, 4)); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("appended to a torn line: %v", err)
	}
	if err := l.Cut(); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("cut a closed log: %v", err)
	}
}

// A crash may leave behind what was not durable yet: tiles beyond the
// checkpoint, files on their way, a ledger that was being made.
func TestOpen_afterACrash(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(dir string) error{
		"nothing":      func(string) error { return nil },
		"a tile lost":  func(dir string) error { return os.Remove(filepath.Join(dir, "tile/0/001")) },
		"a tile empty": func(dir string) error { return os.WriteFile(filepath.Join(dir, "tile/0/001"), nil, 0o600) },
		"a checkpoint on its way": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "checkpoint.new"), []byte("wri"), 0o600)
		},
		"a segment on its way":     func(dir string) error { return os.WriteFile(filepath.Join(dir, "segment.next"), []byte("{"), 0o600) },
		"all tiles removed":        func(dir string) error { return os.RemoveAll(filepath.Join(dir, "tile")) },
		"an old tile left behind":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "tile/0/000.p", "7"), nil, 0o600) },
		"a directory where begun":  func(dir string) error { return os.RemoveAll(dir) },
		"a seam and nothing after": func(dir string) error { return onlyTheSeam(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "audit")
			l := open(t, dir, options())
			grow(t, l, 200)
			checkpoint(t, l)
			grow(t, l, 400)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := crash(dir); err != nil {
				t.Fatal(err)
			}
			l = open(t, dir, options())
			want := l.Size() + 100
			grow(t, l, 100)
			kept := checkpoint(t, l)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if report, err := ledger.Verify(dir, ledger.Against{Checkpoint: kept}); err != nil || report.Kept != want {
				t.Errorf("%s %v, want %d events", report, err, want)
			}
		})
	}
}

// onlyTheSeam leaves of a ledger what is there when it has just been begun.
func onlyTheSeam(dir string) error {
	for _, path := range []string{"tile", "checkpoint"} {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(segment(dir, 0))
	if err != nil {
		return err
	}
	seam, _, _ := strings.Cut(string(b), "\n")
	return os.WriteFile(segment(dir, 0), []byte(seam+"\n"), 0o600)
}

// 1,000 new segments and 20 new keys give no false alarm and lose nothing.
func TestRotate_often(t *testing.T) {
	t.Parallel()
	dir, o := filepath.Join(t.TempDir(), "audit"), options()
	o.Events = 1
	turns, keys := 100, 5
	if os.Getenv("WRIT_TAMPER") != "" {
		turns, keys = 1000, 20
	}
	l := open(t, dir, o)
	var kept [][]byte
	for i := range turns {
		grow(t, l, 1)
		if i%(turns/keys) == 0 {
			kept = append(kept, checkpoint(t, l))
			if err := l.Rotate(key(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
			kept = append(kept, checkpoint(t, l))
		}
	}
	checkpoint(t, l)
	first := ""
	for _, c := range kept {
		report, err := ledger.Verify(dir, ledger.Against{Checkpoint: c, Key: first})
		if err != nil || report.Events != int64(turns) || !report.Compared {
			t.Fatalf("%s %v", report, err)
		}
		r, err := ledger.Read(dir)
		if err != nil || len(r.Keys()) != keys+1 {
			t.Fatalf("%d keys, want %d: %v", len(r.Keys()), keys+1, err)
		}
		first = r.Keys()[0]
		r.Close()
	}
}

package ledger_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ/fault"
	"writ/ledger"
)

// openFile opens the audit file of dir.
func openFile(t *testing.T, dir string) *ledger.File {
	t.Helper()
	f, err := ledger.Open(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatalf("open the audit file: %v", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func read(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, dir string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "audit.jsonl"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	dir, lines := t.TempDir(), chain(t, 4)
	f := openFile(t, dir)
	if err := f.Append(lines[:1]...); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(lines[1:3]...); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = openFile(t, dir)
	if err := f.Append(lines[3]); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, dir), text(lines...); !bytes.Equal(got, want) {
		t.Errorf("the file holds\n%s\nwant\n%s", got, want)
	}
	want, err := ledger.Verify(bytes.NewReader(text(lines...)))
	if err != nil || f.Report() != want {
		t.Errorf("the report is %+v, want %+v (%v)", f.Report(), want, err)
	}
	info, err := os.Stat(filepath.Join(dir, "audit.jsonl"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v), want 0600", info.Mode(), err)
	}
}

func TestFile_isForOneWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openFile(t, dir)
	if _, err := ledger.Open(filepath.Join(dir, "audit.jsonl")); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a second writer got %v, want unavailable", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(chain(t, 1)...); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a closed file gave %v, want unavailable", err)
	}
	openFile(t, dir)
}

func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	lines := chain(t, 3)
	for _, c := range []struct {
		name    string
		prepare func(dir, path string) error
		want    string
	}{
		{"a symbolic link", func(dir, path string) error { return os.Symlink(filepath.Join(dir, "other"), path) }, "no link"},
		{"a link to a file", func(dir, path string) error {
			if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(dir, "other"), path)
		}, "no link"},
		{"a second name", func(dir, path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Link(path, filepath.Join(dir, "other"))
		}, "second name"},
		{"a directory", func(_, path string) error { return os.Mkdir(path, 0o700) }, "cannot be opened"},
		{"a file that others read", func(_, path string) error { return os.WriteFile(path, nil, 0o640) }, "chmod 600"},
		{"a line removed", func(_, path string) error { return os.WriteFile(path, text(lines[0], lines[2]), 0o600) }, "Line 2 of the audit file is wrong"},
		{"no directory", func(dir, _ string) error { return os.Remove(dir) }, "cannot be opened"},
	} {
		dir := filepath.Join(t.TempDir(), "audit")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "audit.jsonl")
		if err := c.prepare(dir, path); err != nil {
			t.Fatal(err)
		}
		_, err := ledger.Open(path)
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want unavailable and %q", c.name, err, c.want)
		}
	}
}

// What happens to the file behind the writer's back ends the writer.
func TestAppend_noticesWhatOthersDid(t *testing.T) {
	t.Parallel()
	lines := chain(t, 3)
	for _, c := range []struct {
		name string
		do   func(path string) error
	}{
		{"removed", os.Remove},
		{"moved away", func(path string) error { return os.Rename(path, path+".1") }},
		{"replaced by a copy", func(path string) error {
			if err := os.Rename(path, path+".1"); err != nil {
				return err
			}
			return os.WriteFile(path, text(lines[0]), 0o600)
		}},
		{"replaced by a link to itself", func(path string) error {
			if err := os.Rename(path, path+".1"); err != nil {
				return err
			}
			return os.Symlink(path+".1", path)
		}},
		{"linked", func(path string) error { return os.Link(path, path+".1") }},
		{"cut", func(path string) error { return os.Truncate(path, 10) }},
		{"emptied", func(path string) error { return os.Truncate(path, 0) }},
		{"appended to", func(path string) error { return os.WriteFile(path, text(lines[:2]...), 0o600) }},
		{"opened to others", func(path string) error { return os.Chmod(path, 0o644) }},
	} {
		for _, next := range [][][]byte{lines[1:2], nil} {
			dir := t.TempDir()
			f := openFile(t, dir)
			if err := f.Append(lines[0]); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "audit.jsonl")
			if err := c.do(path); err != nil {
				t.Fatal(err)
			}
			if err := f.Append(next...); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("%s: appending %d lines gave %v, want unavailable", c.name, len(next), err)
			}
			if err := f.Append(); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("%s: the file did not stay closed: %v", c.name, err)
			}
		}
	}
}

func TestAppend_refusesWhatDoesNotFollow(t *testing.T) {
	t.Parallel()
	dir, lines := t.TempDir(), chain(t, 3)
	f := openFile(t, dir)
	if err := f.Append(lines[0], lines[2]); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
	if got := read(t, dir); len(got) > 0 {
		t.Errorf("the file holds %q, want nothing", got)
	}
}

// However little of the last line was written, exactly that is cut.
func TestCut(t *testing.T) {
	t.Parallel()
	dir, lines := t.TempDir(), chain(t, 2)
	for n := range len(lines[1]) {
		write(t, dir, append(text(lines[0]), lines[1][:n+1]...))
		f := openFile(t, dir)
		if !f.Report().Torn || f.Report().Events != 1 {
			t.Fatalf("%d bytes of a line: %s", n+1, f.Report())
		}
		if err := f.Cut(); err != nil {
			t.Fatal(err)
		}
		if err := f.Append(lines[1]); err != nil {
			t.Fatal(err)
		}
		if got, want := read(t, dir), text(lines...); !bytes.Equal(got, want) {
			t.Fatalf("the file holds\n%s\nwant\n%s", got, want)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCut_leavesWhatIsNotTorn(t *testing.T) {
	t.Parallel()
	dir, lines := t.TempDir(), chain(t, 2)
	write(t, dir, append(text(lines[0]), '{'))
	f := openFile(t, dir)
	if err := f.Append(lines[1]); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("appended to a torn line: %v", err)
	}
	if err := f.Cut(); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("cut a closed file: %v", err)
	}
	write(t, dir, text(lines...))
	f = openFile(t, dir)
	if err := f.Cut(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir); !bytes.Equal(got, text(lines...)) {
		t.Errorf("the file holds %q", got)
	}
}

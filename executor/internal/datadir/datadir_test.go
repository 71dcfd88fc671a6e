package datadir_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"writ/executor/internal/datadir"
	"writ/fault"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(dir string) error
		text string
	}{
		"good":           {func(dir string) error { return os.Mkdir(dir, 0o700) }, ""},
		"missing":        {func(string) error { return nil }, "writ-executor init"},
		"open to others": {func(dir string) error { return os.Mkdir(dir, 0o750) }, "chmod 700"},
		"a link":         {func(dir string) error { return os.Symlink(filepath.Dir(dir), dir) }, "not a link"},
		"a file":         {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "must be a directory"},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := c.make(dir); err != nil {
			t.Fatal(err)
		}
		err := datadir.Check(dir)
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Case: C120.
func TestReplace_isWholeAndPrivate(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	if err := datadir.Create(file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := datadir.Create(file, []byte("two")); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("Create over a file: %v", err)
	}
	if err := os.WriteFile(file+".new", []byte("left over by a crash"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := datadir.Replace(file, []byte("three")); err != nil {
		t.Fatal(err)
	}
	content, err := datadir.Read(file)
	if err != nil || string(content) != "three" {
		t.Errorf("Read = %q, %v", content, err)
	}
	if info, _ := os.Stat(file); info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// Another process cannot take a directory that is taken, and can once its holder is gone.
func TestLock_twoProcesses(t *testing.T) {
	if dir := os.Getenv("DATADIR_TEST_LOCK"); dir != "" { // the other process
		if _, err := datadir.Lock(dir, "lock"); err != nil {
			t.Fatal(fault.CodeOf(err))
		}
		return
	}
	t.Parallel()
	dir := t.TempDir()
	other := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLock_twoProcesses$")
		cmd.Env = append(os.Environ(), "DATADIR_TEST_LOCK="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	release, err := datadir.Lock(dir, "lock")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := other(); err == nil || !strings.Contains(out, string(fault.Conflict)) {
		t.Errorf("the other process got the lock: %v\n%s", err, out)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if out, err := other(); err != nil {
		t.Errorf("the other process did not get the lock: %v\n%s", err, out)
	}
}

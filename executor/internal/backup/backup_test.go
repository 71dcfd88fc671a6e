package backup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/executor/internal/backup"
	"writ/fault"
)

func seen() backup.Seen {
	return backup.Seen{
		"config": {Found: true, Status: 200, ETag: `"e"`, Data: map[string]any{
			"n": int64(9007199254740993), "f": 0.5, "list": []any{int64(1), "<x>", nil, true}}},
		"none": {Text: "gone"},
	}
}

func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "backups")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Case: C125.
func TestSave_readsBackWhatWasSeen(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := backup.New(dir, "site-a")
	saved, err := s.Save("run_1", "s1", seen())
	if err != nil {
		t.Fatal(err)
	}
	if saved.Reference != "backup:site-a/run_1/s1" || !saved.Digest.Valid() {
		t.Errorf("Saved = %+v", saved)
	}
	want := []writ.Check{{Name: "backup_file_exists", Passed: true}, {Name: "backup_file_nonempty", Passed: true}, {Name: "backup_file_private", Passed: true}}
	if diff := cmp.Diff(want, saved.Checks); diff != "" {
		t.Errorf("checks (-want +got)\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(dir, "run_1", "s1.json"))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	back, err := s.Load("run_1", "s1", saved.Digest)
	if diff := cmp.Diff(seen(), back); diff != "" || err != nil {
		t.Errorf("Load: %v (-want +got)\n%s", err, diff)
	}
	if again, err := s.Save("run_1", "s2", seen()); err != nil || again.Digest != saved.Digest {
		t.Errorf("the same state has digest %s, then %s (%v)", saved.Digest, again.Digest, err)
	}
}

// Case: C119.
func TestSave_refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil     func(t *testing.T, dir string)
		run, step string
		text      string
	}{
		"open to others": {spoil: func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o755)) }, text: "chmod 700 "},
		"no directory":   {spoil: func(t *testing.T, dir string) { must(t, os.Remove(dir)) }, text: "install -d -m 700 "},
		"a link": {spoil: func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+".real"))
			must(t, os.Symlink(dir+".real", dir))
		}, text: "not a link"},
		"a file": {spoil: func(t *testing.T, dir string) {
			must(t, os.Remove(dir))
			must(t, os.WriteFile(dir, nil, 0o600))
		}, text: "not a link or a file"},
		"run directory open": {spoil: func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "run_1"), 0o700))
			must(t, os.Chmod(filepath.Join(dir, "run_1"), 0o750))
		}, text: "chmod 700 "},
		"run directory leads out": {spoil: func(t *testing.T, dir string) {
			must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "run_1")))
		}, text: "missing"},
		"file exists": {spoil: func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "run_1"), 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "run_1", "s1.json"), nil, 0o600))
		}, text: "could not be written"},
		"file is a link": {spoil: func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "run_1"), 0o700))
			must(t, os.Symlink("elsewhere", filepath.Join(dir, "run_1", "s1.json")))
		}, text: "could not be written"},
		"another owner": {spoil: func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				must(t, os.Chmod(dir, 0o755)) // only root can give a directory away
				return
			}
			must(t, os.Chown(dir, 65534, 65534))
		}, text: dirCommand()},
		"run outside":  {run: "../x", text: "not fit for a directory"},
		"step outside": {step: "a/b", text: "not fit for a file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			if c.spoil != nil {
				c.spoil(t, dir)
			}
			run, step := "run_1", "s1"
			if c.run != "" {
				run = c.run
			}
			if c.step != "" {
				step = c.step
			}
			_, err := backup.New(dir, "site-a").Save(run, step, seen())
			if fault.ReasonOf(err) != "backup_refused" || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %q", err, c.text)
			}
		})
	}
}

// dirCommand is the command that mends a directory of another owner.
func dirCommand() string {
	if os.Geteuid() != 0 {
		return "chmod 700 "
	}
	return "chown 0 "
}

func TestLoad_refuses(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := backup.New(dir, "site-a")
	saved, err := s.Save("run_1", "s1", seen())
	must(t, err)
	if _, err := s.Load("run_2", "s1", saved.Digest); fault.ReasonOf(err) != "backup_refused" {
		t.Errorf("another run: %v", err)
	}
	file := filepath.Join(dir, "run_1", "s1.json")
	must(t, os.WriteFile(file, []byte(`{}`), 0o600))
	if _, err := s.Load("run_1", "s1", saved.Digest); fault.ReasonOf(err) != "backup_refused" {
		t.Errorf("a changed file: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

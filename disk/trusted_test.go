package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ/disk"
	"writ/fault"
)

func TestTrusted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open  func(dir string) error
		names string // what the refusal names; "": it is trusted
	}{
		"only its owner writes":         {func(string) error { return nil }, ""},
		"its group writes to a file":    {func(dir string) error { return os.Chmod(filepath.Join(dir, "below", "a.yaml"), 0o664) }, "below/a.yaml"},
		"anybody makes files below":     {func(dir string) error { return os.Chmod(filepath.Join(dir, "below"), 0o777) }, "below"},
		"anybody makes files in it":     {func(dir string) error { return os.Chmod(dir, 0o777) }, "actions"},
		"a link leads to such a file":   {func(dir string) error { return leads(dir, 0o666) }, "link.yaml"},
		"a link leads to another file":  {func(dir string) error { return leads(dir, 0o644) }, ""},
		"a link leads nowhere":          {func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "link.yaml")) }, "link.yaml"},
		"nobody gets to what they open": {func(dir string) error { return hide(dir) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dir := filepath.Join(top, "actions")
			if err := os.MkdirAll(filepath.Join(dir, "below"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{filepath.Dir(top), top, dir, filepath.Join(dir, "below")} { // whatever the umask
				if err := os.Chmod(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "below", "a.yaml"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.open(dir); err != nil {
				t.Fatal(err)
			}
			err := disk.Trusted(dir)
			if (err == nil) != (c.names == "") || !strings.Contains(fault.TextOf(err), c.names) {
				t.Errorf("%v, want a refusal that names %q", err, c.names)
			}
		})
	}
}

func leads(dir string, mode os.FileMode) error {
	file := filepath.Join(filepath.Dir(dir), "elsewhere.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(file, mode); err != nil {
		return err
	}
	return os.Symlink(file, filepath.Join(dir, "link.yaml"))
}

// hide lets nobody else enter the directory above.
func hide(dir string) error {
	if err := os.Chmod(filepath.Join(dir, "below", "a.yaml"), 0o666); err != nil {
		return err
	}
	return os.Chmod(filepath.Dir(dir), 0o700)
}

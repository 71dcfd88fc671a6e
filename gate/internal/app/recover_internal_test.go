package app

import (
	"os"
	"path/filepath"
	"testing"

	"writ/fault"
	"writ/gate/internal/config"
)

// The rest of gate.yaml stays as people wrote it.
func TestSetEpoch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after string }{
		"as it is made":      {"epoch: 1   # why\nfirst_answer: 1s\n", "epoch: 7   # why\nfirst_answer: 1s\n"},
		"left out":           {"first_answer: 1s # no line at the end", "first_answer: 1s # no line at the end\nepoch: 7\n"},
		"only in a comment":  {"# epoch: 1\n", "# epoch: 1\n\nepoch: 7\n"},
		"not to be replaced": {"\"epoch\": 1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, config.File)
			rest := "listen: {tcp: '127.0.0.1:7443'}\nexecutor: {name: a, socket: s, key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}\n"
			if err := os.WriteFile(path, []byte(rest+c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			err := setEpoch(path, 7)
			text, readErr := os.ReadFile(path)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if c.after == "" {
				if fault.CodeOf(err) != fault.Invalid {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || string(text) != rest+c.after {
				t.Errorf("%v\n%s", err, text)
			}
			if err := setEpoch(path, 8); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

func TestSetAside_overwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"audit", "aside"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := setAside(filepath.Join(dir, "audit"), filepath.Join(dir, "aside")); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("%v", err)
	}
	if err := setAside(filepath.Join(dir, "audit"), filepath.Join(dir, "free")); err != nil {
		t.Error(err)
	}
}

package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestHashKey: init makes the key of the hashes, and a start without it makes
// another.
func TestHashKey(t *testing.T) {
	t.Parallel()
	dir, _ := initialised(t)
	file := filepath.Join(dir, "redact.key")
	first, err := os.ReadFile(file)
	if err != nil || len(first) < 32 {
		t.Fatalf("the key is %d bytes: %v", len(first), err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if status := running(t, dir)(); status != 0 {
		t.Errorf("ended with %d", status)
	}
	second, err := os.ReadFile(file)
	if err != nil || bytes.Equal(first, second) {
		t.Errorf("%q %v", second, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

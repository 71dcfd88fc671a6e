package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ/catalog"
)

// What was changed on the disk is not in use before the next start: doctor says so.
func TestDoctor_changedCatalog(t *testing.T) {
	t.Parallel()
	dir, _ := initialised(t)
	actions := filepath.Join(dir, "actions")
	if err := os.CopyFS(actions, catalog.Builtin()); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(actions, "settings.yaml")
	if err := os.Chmod(settings, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "executor.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "catalog: ''", "catalog: actions", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	stop := running(t, dir)
	if out, _, status := command(t, dir, "", "doctor"); status != 0 || !strings.Contains(out, "ok    current") {
		t.Errorf("%d %s", status, out)
	}
	if err := os.WriteFile(settings, []byte("proxmox.*:\n  writable_vmids: [121]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, status := command(t, dir, "", "doctor"); status != 1 || !strings.Contains(out, "FAIL  current") {
		t.Errorf("with other settings: %d %s", status, out)
	}
	stop()
	running(t, dir)
	if out, _, status := command(t, dir, "", "doctor"); status != 0 {
		t.Errorf("started again: %d %s", status, out)
	}
}

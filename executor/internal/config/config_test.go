package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/executor/internal/config"
)

func folder(t *testing.T, text string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		if err := os.WriteFile(filepath.Join(dir, config.File), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSave_thenLoad(t *testing.T) {
	t.Parallel()
	c := config.New(folder(t, ""), "site-a")
	c.Approvers = []string{"mara"}
	c.GateKeys = []string{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}
	c.Systems = []config.System{{Name: "pve", Kind: "proxmox", Environment: "lab", BaseURL: "https://pve.example.test:8006",
		TLSPin: strings.Repeat("ab", 32), Options: map[string]string{"realm": "pve"}, Secrets: map[string]string{"token": "pve.token"}}}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	back, err := config.Load(c.Dir)
	text, _ := os.ReadFile(c.Path(config.File))
	c.Digest = writ.DigestBytes(text)
	if diff := cmp.Diff(c, back); err != nil || diff != "" {
		t.Errorf("Load: %v (-want +got)\n%s", err, diff)
	}
	if keys, _, err := back.Keys(); err != nil || len(keys) != 1 {
		t.Errorf("Keys = %v, %v", keys, err)
	}
	if s, ok := back.System("pve"); !ok || s.Kind != "proxmox" {
		t.Errorf("System = %+v, %v", s, ok)
	}
	if _, ok := back.System("nope"); ok {
		t.Error("a system that is not configured was found")
	}
	if back.Path("x") != filepath.Join(c.Dir, "x") || back.Path("/x") != "/x" {
		t.Error("Path does not resolve from the data directory")
	}
}

func TestLoad_namesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := config.Load(folder(t, `
executor: Not A Name
socket: ""
gate_keys: [x]
approvers: [" a", b, b]
backups: ""
vault: {file: "", key_file: k}
limits: {observe_per_minute: 0}
systems:
  - {name: a, kind: mock, environment: lab}
  - {name: a, kind: "", environment: ""}
`))
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{"executor:", "socket:", "gate_keys:", "approvers[0]", "approvers[2]", "backups:", "vault:", "limits.", "systems[1].kind", "systems[1].environment", "systems[1].name"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in %v", want, err)
		}
	}
}

func TestLoad_refuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"unknown key":   "executor: a\ncolour: red\n",
		"twice":         "executor: a\nexecutor: b\n",
		"two documents": "executor: a\n---\nexecutor: b\n",
		"long socket":   "executor: a\nsocket: /" + strings.Repeat("x", 120) + "\n",
		"wrong type":    "executor: [a]\n",
	} {
		if c, err := config.Load(folder(t, text)); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	dir := folder(t, "executor: a\n")
	if err := os.Chmod(filepath.Join(dir, config.File), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("readable by others: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(dir); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("directory open to others: %v", err)
	}
}

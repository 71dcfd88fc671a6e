package app_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ/catalog"
	"writ/executor/internal/journal"
	"writ/sys"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	dir, _ := initialised(t)
	type finding struct {
		Name, Text, Fix string
		OK              bool
	}
	examine := func() (map[string]finding, int) {
		out, _, status := command(t, dir, "", "doctor", "--json")
		var list []finding
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		all := map[string]finding{}
		for _, f := range list {
			all[f.Name] = f
		}
		return all, status
	}
	stop := running(t, dir)
	if all, status := examine(); status != 0 || len(all) != 14 {
		t.Errorf("a healthy executor: %d %+v", status, all)
	}
	ok(t, dir, "", "vault", "lock")
	if all, status := examine(); status != 1 || !strings.HasPrefix(all["running"].Fix, "writ-executor vault unlock") {
		t.Errorf("locked: %d %+v", status, all["running"])
	}
	stop()
	if err := os.Chmod(filepath.Join(dir, "backups"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "executor.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	all, status := examine()
	if status != 1 || all["backups"].Fix != "chmod 700 "+filepath.Join(dir, "backups") || all["key"].Fix != "chmod 600 "+filepath.Join(dir, "executor.key") {
		t.Errorf("wrong modes: %d %+v", status, all)
	}
	if all["running"].OK || !all["vault"].OK || all["running"].Fix == "" {
		t.Errorf("%+v", all)
	}
	if out, _, _ := command(t, dir, "", "doctor"); !strings.Contains(out, "FAIL  backups") || !strings.Contains(out, "ok    catalog") {
		t.Errorf("for people: %s", out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if all, status := examine(); status != 1 || len(all) != 1 || all["config"].Fix != "chmod 700 "+dir {
		t.Errorf("an open directory: %d %+v", status, all)
	}
}

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

// Each state in which nothing may be done is found, with what mends it.
func TestDoctor_ofWhatIsKept(t *testing.T) {
	t.Parallel()
	segment := filepath.Join("audit", "segment", "000000000000.jsonl")
	for name, c := range map[string]struct {
		spoil            func(dir, other string) error
		check, text, fix string
	}{
		"a damaged journal": {func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, "journal.db"), make([]byte, 8192), 0o600)
		}, "journal", "journal", "writ "},
		"another one's log": {func(dir, other string) error {
			stop := running(t, other)
			log, err := os.ReadFile(filepath.Join(other, "journal.db-wal"))
			stop()
			return errors.Join(err, os.WriteFile(filepath.Join(dir, "journal.db-wal"), log, 0o600))
		}, "journal", "another copy", "mv "},
		"an open journal": {func(dir, _ string) error { return os.Chmod(filepath.Join(dir, "journal.db"), 0o644) }, "journal", "only its owner", "chmod 600 "},
		"a second name": {func(dir, _ string) error {
			return os.Link(filepath.Join(dir, "journal.db"), filepath.Join(dir, "x"))
		}, "journal", "second name", ""},
		"no way in":      {func(dir, _ string) error { return os.Chmod(dir, 0o500) }, "config", "must be its owner's", "chmod 700 "},
		"an open key":    {func(dir, _ string) error { return os.Chmod(filepath.Join(dir, "executor.key"), 0o604) }, "key", "Others may read", "chmod 600 "},
		"an open vault":  {func(dir, _ string) error { return os.Chmod(filepath.Join(dir, "vault.age"), 0o620) }, "vault", "Others may read", "chmod 600 "},
		"a hidden vault": {func(dir, _ string) error { return os.Chmod(filepath.Join(dir, "vault.key"), 0) }, "vault", "may not read", "chmod 600 "},
		"open hashes":    {func(dir, _ string) error { return os.Chmod(filepath.Join(dir, "redact.key"), 0o640) }, "hashes", "Others may read", "chmod 600 "},
		"open backups":   {func(dir, _ string) error { return os.Chmod(filepath.Join(dir, "backups"), 0o750) }, "backups", "nobody else's", "chmod 700 "},
		"no backups":     {func(dir, _ string) error { return os.Remove(filepath.Join(dir, "backups")) }, "backups", "cannot be read", "install -d -m 700 "},
		"no segment":     {func(dir, _ string) error { return os.Remove(filepath.Join(dir, segment)) }, "audit", "Put it back", "writ audit verify "},
		"no checkpoint":  {func(dir, _ string) error { return os.Remove(filepath.Join(dir, "audit", "checkpoint")) }, "audit", "Put it back", "writ audit verify "},
		"an open audit":  {func(dir, _ string) error { return os.Chmod(filepath.Join(dir, segment), 0o640) }, "audit", "by others", "chown "},
		"the clock is behind": {func(dir, _ string) error {
			s := sys.Real(slog.New(slog.DiscardHandler))
			s.Now = func() time.Time { return time.Now().Add(time.Hour) }
			j, err := journal.Open(t.Context(), filepath.Join(dir, "journal.db"), s)
			if err != nil {
				return err
			}
			return errors.Join(j.Drained(t.Context()), j.Close())
		}, "ready", "The clock is", "writ recover --new-epoch"},
	} {
		dir, _ := initialised(t)
		other, _ := initialised(t)
		running(t, dir)()
		if err := c.spoil(dir, other); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out, _, status := command(t, dir, "", "doctor", "--json")
		var list []struct {
			Name, Text, Fix string
			OK              bool
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		mend, found := "", false
		for _, f := range list {
			if f.Name == c.check && !f.OK && strings.Contains(f.Text, c.text) && strings.HasPrefix(f.Fix, c.fix) {
				mend, found = f.Fix, true
			}
		}
		if !found || status == 0 {
			t.Errorf("%s: %d %s", name, status, out)
		}
		if c.check != "ready" && c.check != "backups" { // with these it starts, and writes nothing
			if _, _, status := command(t, dir, "", "run"); status == 0 {
				t.Errorf("%s: an executor ran", name)
			}
		}
		if mend != "" && !strings.HasPrefix(mend, "writ ") { // else people have to look, and put back what was there
			mends(t, dir, mend)
		}
	}
}

// mends runs a command that doctor printed: then all is well.
func mends(t *testing.T, dir, fix string) {
	t.Helper()
	if said, err := exec.CommandContext(t.Context(), "sh", "-c", fix).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", fix, err, said)
	}
	stop := running(t, dir)
	if out, _, status := command(t, dir, "", "doctor"); status != 0 {
		t.Errorf("after %s: %s", fix, out)
	}
	stop()
}

// That the executor was asked to end, and had nothing under way, is its last event.
func TestRun_drained(t *testing.T) {
	t.Parallel()
	dir, _ := initialised(t)
	if status := running(t, dir)(); status != 0 {
		t.Fatalf("it ended with %d", status)
	}
	data, err := os.ReadFile(filepath.Join(dir, "audit", "segment", "000000000000.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"event":"executor.drained"`) || strings.Count(string(data), "executor.drained") != 1 {
		t.Errorf("the last event is %s", last)
	}
}

package app_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/api"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
)

// ran starts and stops the gate once, and leaves its log as a crash would.
func (h *home) ran() (log []byte) {
	h.t.Helper()
	g := h.start()
	log, err := os.ReadFile(h.path("gate.db-wal"))
	g.stop()
	if status := <-g.ended; status != 0 || err != nil {
		h.t.Fatalf("the gate ended with %d: %s %v", status, g.log.String(), err)
	}
	return log
}

// Each state in which no gate can start is found, with what mends it; and no gate
// starts in it.
func TestDoctor_ofWhatIsKept(t *testing.T) {
	t.Parallel()
	segment := filepath.Join("audit", "segment", "000000000000.jsonl")
	for name, c := range map[string]struct {
		spoil      func(h, other *home, log []byte) error
		text, mend string
		starts     bool // the gate does, and carries nothing out
	}{
		"a damaged store":   {func(h, _ *home, _ []byte) error { return os.WriteFile(h.path("gate.db"), make([]byte, 8192), 0o600) }, "is damaged", "writ recover", false},
		"another one's log": {func(h, _ *home, log []byte) error { return os.WriteFile(h.path("gate.db-wal"), log, 0o600) }, "another copy", "mv ", false},
		"an open store":     {func(h, _ *home, _ []byte) error { return os.Chmod(h.path("gate.db"), 0o644) }, "by others", "chmod go-rwx ", false},
		"a second name":     {func(h, _ *home, _ []byte) error { return os.Link(h.path("gate.db"), h.path("x")) }, "second name", "", false},
		"no way in":         {func(h, _ *home, _ []byte) error { return os.Chmod(h.dir, 0o500) }, "may not use", "chmod 700 ", false},
		"an open key":       {func(h, _ *home, _ []byte) error { return os.Chmod(h.path("gate.key"), 0o640) }, "Others may use", "chmod 600 ", false},
		"open principals":   {func(h, _ *home, _ []byte) error { return os.Chmod(h.path("principals.yaml"), 0o604) }, "Others may use", "chmod 600 ", false},
		"a hidden policy":   {func(h, _ *home, _ []byte) error { return os.Chmod(h.path("policy.yaml"), 0o200) }, "may not use", "chmod 600 ", false},
		"an open config":    {func(h, _ *home, _ []byte) error { return os.Chmod(h.path("gate.yaml"), 0o660) }, "Others may use", "chmod 600 ", false},
		"no audit":          {func(h, _ *home, _ []byte) error { return os.RemoveAll(h.path("audit")) }, "Put it back", "writ audit verify ", false},
		"no segment":        {func(h, _ *home, _ []byte) error { return os.Remove(h.path(segment)) }, "Put it back", "writ audit verify ", false},
		"no checkpoint":     {func(h, _ *home, _ []byte) error { return os.Remove(h.path("audit/checkpoint")) }, "Put it back", "writ audit verify ", false},
		"another's segment": {func(h, other *home, _ []byte) error {
			data, err := os.ReadFile(other.path(segment))
			return errors.Join(err, os.WriteFile(h.path(segment), data, 0o600))
		}, "Put it back", "writ audit verify ", false},
		"an open audit": {func(h, _ *home, _ []byte) error { return os.Chmod(h.path("audit"), 0o755) }, "by others", "chown ", false},
		"the clock is behind": {func(h, _ *home, _ []byte) error {
			s, err := sqlite.Open(t.Context(), h.path("gate.db"))
			if err != nil {
				return err
			}
			e := &model.Event{ID: "evt_late", Type: model.GateStarted, Timestamp: writ.At(time.Now().Add(time.Hour)), User: model.Writ, Detail: writ.Object{}}
			return errors.Join(s.Update(t.Context(), func(tx store.Tx) error { return tx.Append(e) }), s.Close())
		}, "The clock is", "writ recover --new-epoch", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, other := newHome(t), newHome(t)
			h.ran()
			if r := h.run("doctor"); r.status != 0 {
				t.Fatalf("doctor of a sound directory: %s", r.stdout)
			}
			if err := c.spoil(h, other, other.ran()); err != nil {
				t.Fatal(err)
			}
			var checks []api.HealthCheck
			if err := json.Unmarshal([]byte(h.run("doctor", "--json").stdout), &checks); err != nil {
				t.Fatal(err)
			}
			text, mend := "", ""
			for _, check := range checks {
				if !check.OK {
					text, mend = text+check.Text, mend+check.Fix
				}
			}
			if !strings.Contains(text, c.text) || !strings.HasPrefix(mend, c.mend) || c.mend == "" && mend != "" {
				t.Errorf("doctor says %q, and to run %q", text, mend)
			}
			if r := h.run("doctor"); r.status == 0 {
				t.Error("doctor is content")
			}
			if c.starts {
				return
			}
			if r := h.run("run"); r.status == 0 {
				t.Errorf("a gate ran: %s", r.stderr)
			}
			if strings.HasPrefix(mend, "writ ") || mend == "" {
				return // people have to look, and put back what was there
			}
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", mend).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v %s", mend, err, out)
			}
			if r := h.run("doctor"); r.status != 0 {
				t.Errorf("after %s: %s", mend, r.stdout)
			}
		})
	}
}

// That the gate was asked to end, and had nothing under way, is its last event.
func TestRun_drained(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.ran()
	data, err := os.ReadFile(h.path("audit/segment/000000000000.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"event":"gate.drained"`) || strings.Count(string(data), "gate.drained") != 1 {
		t.Errorf("the last event is %s", last)
	}
	if r := h.run("doctor"); r.status != 0 {
		t.Errorf("%s", r.stdout)
	}
}

package cli_test

import (
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/ledger"
)

// keepAudit makes an audit of n events by agent:a, agent:b and so on, and
// returns the file of its checkpoint.
func keepAudit(t *testing.T, dir string, n int) (kept string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	l, err := ledger.Open(dir, ledger.Options{Name: "writ/test", Key: key, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		line, err := ledger.Line(writ.Object{
			"sequence": int64(i + 1), "event": "change.proposed", "timestamp": writ.At(at.Add(time.Duration(i) * time.Hour)).String(),
			"user": "agent:" + string(rune('a'+i)), "change_id": "chg_" + strconv.Itoa(i%2),
			"target_system": []string{"px", "nb"}[i%2], "entity": []string{"px/pve/lxc/121", "nb/ip/7"}[i%2],
			"action_type": []string{"proxmox.set", "netbox.tag"}[i%2],
		})
		if err == nil {
			err = l.Append(line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	signed, err := l.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	kept = filepath.Join(t.TempDir(), "checkpoint")
	if err := os.WriteFile(kept, signed, 0o600); err != nil {
		t.Fatal(err)
	}
	return kept
}

// The same filters select the same events of a directory and of a gate.
func TestAuditList_filters(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	dir := filepath.Join(g.home, "gate", "audit")
	keepAudit(t, dir, 4)
	r, err := ledger.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var page api.Events
	err = r.Each(0, func(_ int64, line []byte) error {
		page.Events = append(page.Events, slices.Clone(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	g.tell(api.EventList, page)
	for _, c := range []struct{ flags, want string }{
		{"", "1 2 3 4"},
		{"--change chg_1", "2 4"},
		{"--principal b", "2"},
		{"--principal agent:c", "3"},
		{"--principal human:c", ""},
		{"--target px", "1 3"},
		{"--target px/pve/lxc", "1 3"},
		{"--target px/pve/lx", ""},
		{"--action netbox.tag", "2 4"},
		{"--action proxmox.*", "1 3"},
		{"--since 2026-05-04T04:00:00Z", "2 3 4"},
		{"--until 2026-05-04T04:00:00Z", "1 2"},
		{"--since 2026-05-04T04:30:00Z --target nb", "4"},
		{"--since 1h", ""},
	} {
		for _, where := range [][]string{nil, {"--ledger", dir}} {
			args := append(append([]string{"audit", "list", "--json"}, strings.Fields(c.flags)...), where...)
			var got []string
			for text := range strings.Lines(g.expect(0, args...).stdout) {
				var e struct{ Sequence int }
				if err := json.Unmarshal([]byte(text), &e); err != nil {
					t.Fatal(err)
				}
				got = append(got, strconv.Itoa(e.Sequence))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v: events %v, want %s", args, got, c.want)
			}
		}
	}
	g.expect(fault.Invalid.Row().Exit, "audit", "list", "--since", "yesterday")

	out := filepath.Join(t.TempDir(), "out.jsonl")
	g.expect(0, "audit", "export", "-o", out, "--ledger", dir, "--change", "chg_1")
	if text, err := os.ReadFile(out); err != nil || string(text) != string(page.Events[1])+"\n"+string(page.Events[3])+"\n" {
		t.Errorf("exported %s %v", text, err)
	}
	g.expect(fault.Conflict.Row().Exit, "audit", "export", "-o", out, "--ledger", dir)
}

func TestAuditShow_proves(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	dir := filepath.Join(g.home, "gate", "audit")
	keepAudit(t, dir, 4)
	var shown struct {
		Sequence int64
		Event    struct{ User string }
		Proof    []string
	}
	if err := json.Unmarshal([]byte(g.expect(0, "audit", "show", "3", "--ledger", dir).stdout), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Sequence != 3 || shown.Event.User != "agent:c" || len(shown.Proof) != 2 {
		t.Errorf("%+v", shown)
	}
	g.expect(fault.NotFound.Row().Exit, "audit", "show", "5", "--ledger", dir)
	g.expect(fault.Invalid.Row().Exit, "audit", "show", "x")
}

// A witness that is asked for must have signed; its key must be one.
func TestAuditVerify_witness(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	dir := filepath.Join(t.TempDir(), "audit")
	keepAudit(t, dir, 2)
	g.expect(0, "audit", "verify", dir)
	r := g.expect(fault.Invalid.Row().Exit, "audit", "verify", dir, "--witness", "w+680f52bc+BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	if !strings.Contains(r.stderr, "no cosignature of the witness w") {
		t.Errorf("%s", r.stderr)
	}
	r = g.expect(fault.Invalid.Row().Exit, "audit", "verify", dir, "--witness", "w")
	if !strings.Contains(r.stderr, "no public key of a witness") {
		t.Errorf("%s", r.stderr)
	}
}

// A checkpoint that is printed into a file is one to verify with.
func TestAuditCheckpoint(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.tell(api.CheckpointGet, api.Checkpoint{Checkpoint: "origin\n0\nx\n\n— signature\n", Origin: "origin"})
	if r := g.expect(0, "audit", "checkpoint"); r.stdout != "origin\n0\nx\n\n— signature\n" {
		t.Errorf("%q", r.stdout)
	}
}

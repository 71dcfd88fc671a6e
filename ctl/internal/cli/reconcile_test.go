package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/api"
	"writ/fault"
)

func probeOf(text string, choices ...string) api.Probe {
	return api.Probe{ChangeID: changeID, Text: text, ShownDigest: writ.DigestBytes([]byte(text)), Verdict: writ.Happened, Choices: choices}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	found := probeOf("IT HAPPENED: the change is at the target.\n", "adopt", "roll_back")
	g.tell(api.ChangeProbe, found)
	g.tell(api.ChangeSettle, change("done", ""))
	invalid, refused := fault.Invalid.Row().Exit, fault.Refused.Row().Exit

	// Looking decides nothing, nor does anything that leaves it open what is decided.
	if r := g.expect(0, "reconcile", "--look", changeID); !strings.HasPrefix(r.stdout, found.Text) {
		t.Error(r.stdout)
	}
	if r := g.expect(invalid, "reconcile", changeID); !strings.Contains(r.stderr, "--yes and one of --adopt, --roll-back") {
		t.Error(r.stderr)
	}
	g.expect(invalid, "reconcile", "--yes", changeID)
	g.expect(invalid, "reconcile", "--adopt", changeID)
	g.expect(invalid, "reconcile", "--adopt", "--roll-back", "--yes", changeID)
	g.expect(refused, "reconcile", "--absent", "--yes", changeID)
	if r := g.runWith("adopt\n", "reconcile", changeID); r.status != invalid { // words on standard input are no person
		t.Errorf("%d %s", r.status, r.stderr)
	}
	if n := len(g.of(api.ChangeSettle)); n != 0 {
		t.Fatalf("%d decisions were sent", n)
	}

	if r := g.expect(0, "reconcile", "--adopt", "--yes", "--note", "n", "--phrase", "not asked for", changeID); !strings.Contains(r.stdout, "it counts as done") {
		t.Error(r.stdout)
	}
	want := []asked{{operation: api.ChangeSettle, token: approverToken, body: writ.Object{
		"shown_digest": string(found.ShownDigest), "resolution": "adopt", "note": "n",
	}}}
	if diff := cmp.Diff(want, g.of(api.ChangeSettle), cmp.AllowUnexported(asked{})); diff != "" {
		t.Error(diff)
	}
	undoing := change("awaiting_approval", fault.ApprovalMissing)
	undoing.ID = "chg_undoing"
	g.tell(api.ChangeSettle, undoing)
	if r := g.expect(0, "reconcile", "--roll-back", "--yes", changeID); !strings.Contains(r.stdout, "chg_undoing, which needs its own approval") {
		t.Error(r.stdout)
	}
}

func TestReconcile_vouchedFor(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	found := probeOf("IT CANNOT BE TOLD\n", "adopt", "absent")
	found.Phrase = "lab/vm/100"
	g.tell(api.ChangeProbe, found)
	g.tell(api.ChangeSettle, change("failed", fault.Failed))
	for _, args := range []string{"", " --note seen", " --phrase lab/vm/100"} {
		r := g.expect(fault.Invalid.Row().Exit, append([]string{"reconcile", "--absent", "--yes", changeID}, strings.Fields(args)...)...)
		if !strings.Contains(r.stderr, `--phrase "lab/vm/100"`) {
			t.Error(r.stderr)
		}
	}
	g.expect(0, "reconcile", "--absent", "--yes", "--note", "seen", "--phrase", "lab/vm/100", changeID)
	if got := g.of(api.ChangeSettle); len(got) != 1 || got[0].body["phrase"] != "lab/vm/100" || got[0].body["note"] != "seen" {
		t.Errorf("%+v", got)
	}
}

func TestReconcile_refusesWhatWasNotShown(t *testing.T) {
	t.Parallel()
	for name, found := range map[string]api.Probe{
		"another digest":   {Text: "a", ShownDigest: writ.DigestBytes([]byte("b"))},
		"control sequence": probeOf("a\x1b[1A", "adopt"),
	} {
		g := newGate(t)
		found.Choices = []string{"adopt"}
		g.tell(api.ChangeProbe, found)
		g.expect(fault.Stale.Row().Exit, "reconcile", "--adopt", "--yes", changeID)
		if n := len(g.of(api.ChangeSettle)); n != 0 {
			t.Errorf("%s: %d decisions were sent", name, n)
		}
	}
}

func TestLocks_leadOn(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.tell(api.LockList, api.Locks{Locks: []api.Lock{{Entity: "a", State: "orphaned", ChangeID: "chg_1"}, {Entity: "b", State: "orphaned", ChangeID: "chg_1"},
		{Entity: "c", State: "active", ChangeID: "chg_2"}}})
	r := g.expect(0, "locks")
	if strings.Count(r.stdout, "writ reconcile chg_1") != 1 || strings.Contains(r.stdout, "writ reconcile chg_2") {
		t.Error(r.stdout)
	}
}

package cli_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/api"
	"writ/ctl/internal/cli"
	"writ/fault"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestOperations_haveVerbs: whatever can be asked of the gate can be asked from
// the command line.
func TestOperations_haveVerbs(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	review := api.Review{Text: "all of it\n", ShownDigest: writ.DigestBytes([]byte("all of it\n")), EnvelopeDigest: writ.DigestBytes(nil)}
	g.tell(api.ChangeReview, review)
	g.tell(api.ChangeProbe, api.Probe{ChangeID: changeID, Text: "found\n", ShownDigest: writ.DigestBytes([]byte("found\n")), Choices: []string{"adopt"}})
	for _, op := range []string{api.ChangeSettle, api.ChangeLift, api.ChangeGet, api.ChangePropose, api.ChangeApprove, api.ChangeExecute, api.ChangeRollback} {
		g.tell(op, change("done", ""))
	}
	g.tell(api.ChangeGet, change("executing", ""))
	g.tell(api.ChangeWait, change("done", ""))
	for _, args := range []string{
		"policy", "actions", "actions mock.noop_change", "systems", "facts", "facts mock/demo", "propose mock.noop_change value=x", "list", "show ID", "wait ID",
		"approve ID --yes", "reject ID --reason no", "cancel ID", "execute ID", "rollback ID", "artifact ID", "audit tail", "audit tail --follow --change ID", "audit checkpoint", "explain ID", "locks", "doctor",
		"reconcile ID --adopt --yes", "lift ID", "halt --reason why", "halts", "lift halt_1",
	} {
		g.run(strings.Fields(strings.ReplaceAll(args, "ID", changeID))...)
	}
	for _, op := range api.Operations() {
		if len(g.of(op.Name)) == 0 {
			t.Errorf("no command asked for %s", op.Name)
		}
	}
}

func TestHelp_golden(t *testing.T) {
	t.Parallel()
	text := run(t, nil, "", "--help").stdout
	for _, path := range cli.CommandPaths() {
		r := run(t, nil, "", append([]string{"help"}, strings.Fields(path)...)...)
		if r.status != 0 || r.stderr != "" {
			t.Errorf("help %s: %d %s", path, r.status, r.stderr)
		}
		if strings.HasPrefix(path, "completion") || path == "help" { // cobra's own
			continue
		}
		text += "\n=== writ " + path + "\n" + r.stdout
	}
	golden := filepath.Join("testdata", "help.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("help (-want +got; if it is meant: go test ./ctl/internal/cli -update):\n%s", diff)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"bogus":          `no command "bogus"`,
		"audit bogus":    `no command "bogus"`,
		"audit tial":     "Is it tail?",
		"systems bogus":  `no command "bogus"`,
		"approve":        "used like this: writ approve ID",
		"list --nope":    "unknown flag",
		"reject chg_x":   "reason",
		"propose":        "Name either an action or a --file",
		"init a b":       "used like this: writ init",
		"list --limit x": "limit",
	} {
		r := run(t, []string{"WRIT_DIR=/nonexistent"}, "", strings.Fields(args)...)
		if r.status != fault.Invalid.Row().Exit || !strings.Contains(r.stderr, want) {
			t.Errorf("writ %s: %d %s", args, r.status, r.stderr)
		}
	}
}

// TestFaults: every code comes out as its exit status, its sentence on the
// standard error, as text or as JSON.
func TestFaults(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, row := range fault.Table() {
		g.tell(api.ChangeGet, fault.New(row.Code, "A sentence.").Because("why"))
		if r := g.expect(row.Exit, "show", changeID); r.stderr != "writ: A sentence.\n" || r.stdout != "" {
			t.Errorf("%s: %q %q", row.Code, r.stdout, r.stderr)
		}
		r := g.expect(row.Exit, "show", changeID, "--json")
		var p api.Problem
		if err := json.Unmarshal([]byte(r.stderr), &p); err != nil || p.Code != row.Code || p.Reason != "why" || p.Detail != "A sentence." || p.Status != row.HTTP {
			t.Errorf("%s: %q %v", row.Code, r.stderr, err)
		}
	}
}

func TestHome(t *testing.T) {
	g := newGate(t)
	g.tell(api.ChangeList, api.Changes{})
	deep := filepath.Join(g.home, "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
	if r := run(t, nil, "", "list"); r.status != 0 {
		t.Errorf("from a directory below: %d %s", r.status, r.stderr)
	}
	if r := run(t, []string{"WRIT_DIR=/nonexistent"}, "", "list"); r.status != fault.NotFound.Row().Exit {
		t.Errorf("$WRIT_DIR goes before what is above: %d %s", r.status, r.stderr)
	}
	if r := run(t, []string{"WRIT_DIR=/nonexistent"}, "", "--dir", g.home, "list"); r.status != 0 {
		t.Errorf("--dir goes before $WRIT_DIR: %d %s", r.status, r.stderr)
	}
	write(t, g.home, "writ.yaml", "gate: run/gate.sock\nask_as: agent\napprove_as: ana\ntoken: x\n")
	if r := run(t, nil, "", "list"); r.status != fault.Invalid.Row().Exit || !strings.Contains(r.stderr, "token") {
		t.Errorf("an unknown key: %d %s", r.status, r.stderr)
	}
	if err := os.Chmod(filepath.Join(g.home, "writ.yaml"), 0o620); err != nil {
		t.Fatal(err)
	}
	if r := run(t, nil, "", "list"); r.status != fault.Refused.Row().Exit || !strings.Contains(r.stderr, "chmod 600") {
		t.Errorf("a writ.yaml that others can write: %d %s", r.status, r.stderr)
	}
	if err := os.Chmod(filepath.Join(g.home, "writ.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, g.home, "writ.yaml", "ask_as: agent\n")
	if r := run(t, nil, "", "list"); r.status != fault.Invalid.Row().Exit || !strings.Contains(r.stderr, "approve_as") {
		t.Errorf("missing keys: %d %s", r.status, r.stderr)
	}
}

// TestTokens: who asks, by verb and by --as.
func TestTokens(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.tell(api.ChangeList, api.Changes{})
	last := func() string { return g.asked[len(g.asked)-1].token }
	if g.run("cancel", changeID); last() != agentToken {
		t.Error("cancel asks as the approver")
	}
	if g.run("reject", changeID, "--reason", "no"); last() != approverToken {
		t.Error("reject asks as the agent")
	}
	if g.run("list"); last() != approverToken {
		t.Error("list looks as the agent although the approver's token is there")
	}
	if g.run("--as", "agent", "list"); last() != agentToken {
		t.Error("--as is not heeded")
	}
	for _, name := range []string{"../agent", "nobody", "", "Agent"} {
		if r := g.run("list", "--as="+name); name != "" && r.status == 0 {
			t.Errorf("--as %q: %s", name, r.stdout)
		}
	}
	if err := os.Chmod(filepath.Join(g.home, "tokens/ana.token"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"reject", changeID, "--reason", "no"}, {"list"}} {
		if r := g.expect(fault.Refused.Row().Exit, args...); !strings.Contains(r.stderr, "chmod 600") {
			t.Errorf("%v with a token that others can read: %s", args, r.stderr)
		}
	}
	if err := os.Remove(filepath.Join(g.home, "tokens/ana.token")); err != nil {
		t.Fatal(err)
	}
	if g.run("list"); last() != agentToken {
		t.Error("without the approver's token, list does not look as the agent")
	}
}

// TestShown_plain: whatever the gate sends, nothing of it draws on the terminal.
func TestShown_plain(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	evil := "a\x1b[2Jb\u202ec\u200bd\ne\x07\u009b31mf"
	c := change("failed", fault.Failed)
	c.ID, c.State, c.Next, c.RequestedBy.Name = evil, evil, evil, evil
	c.Trouble = &api.Trouble{Text: evil}
	s := &c.Plan[0]
	s.ID, s.ActionType, s.Entity, s.Params, s.Resolved = evil, evil, evil, writ.Object{evil: evil}, writ.Object{"x": []any{evil}}
	s.Rollback = &writ.Call{Action: evil, Params: writ.Object{evil: evil}}
	s.Preview = &api.Preview{Fields: []writ.Field{{Name: evil, From: evil, To: evil}}, Refusals: []string{evil}, Detail: evil}
	c.Assessment = &api.Assessment{Class: writ.Class(evil), RiskLevel: writ.Level(evil), Reasons: []string{evil}}
	c.Decision = &api.Decision{Effect: "deny", Rules: []string{evil}, Reasons: []string{evil}}
	c.Approvals = []api.Approval{{ApprovedBy: evil}}
	c.Rejection = &api.Rejected{RejectedBy: evil, Reason: evil}
	begun := c
	begun.Receipts = []writ.Receipt{{Step: evil, Outcome: writ.Outcome(evil), Reason: evil, Detail: evil, BackupStatus: evil, BackupReference: evil,
		Checks: []writ.Check{{Name: evil}}, Outputs: writ.Object{evil: evil}}}
	g.tell(api.ChangeGet, c, begun)
	g.tell(api.ChangeList, api.Changes{Changes: []api.Change{c}})
	g.tell(api.ChangeReview, api.Review{Text: evil, ShownDigest: writ.DigestBytes([]byte(evil))})
	g.tell(api.ChangeArtifact, api.Artifact{Markdown: evil})
	g.tell(api.LockList, api.Locks{Locks: []api.Lock{{Entity: evil, Kind: evil, State: evil, ChangeID: evil}}})
	g.tell(api.HaltList, api.Halts{Halts: []api.Halt{{ID: evil, Target: evil, HaltedBy: evil, Reason: evil, LiftedBy: evil}}})
	g.tell(api.HaltSet, api.Halt{ID: evil, Principal: evil, Running: []api.Running{{ChangeID: evil}, {ChangeID: evil, Halted: true}}})
	g.tell(api.HaltLift, api.Halt{Target: evil})
	g.tell(api.PolicyGet, api.Policy{Source: evil})
	g.tell(api.ActionList, api.Actions{Actions: []api.Action{{Name: evil, Class: writ.Class(evil), Summary: evil, FactsOf: evil}}})
	g.tell(api.ActionGet, api.Action{Name: evil, Summary: evil, System: evil, Source: evil, Irreversible: evil,
		Params: json.RawMessage(fmt.Sprintf(`{"properties":{%[1]q:{"type":%[1]q,"description":%[1]q,"enum":[%[1]q],"pattern":%[1]q,"default":%[1]q}},"required":[%[1]q]}`, "a\u202eb"))})
	g.tell(api.SystemList, api.Systems{Systems: []writ.SystemInfo{{Name: evil, Kind: evil, Environment: evil}}})
	g.tell(api.FactsGet, api.Facts{Entity: evil, ActionType: evil, Summary: evil, System: writ.SystemInfo{Name: evil, Environment: evil},
		Facts:     []api.Fact{{Name: evil, Type: "string", Value: evil}, {Name: evil, Type: evil, Value: evil}, {Name: evil, Withheld: evil}},
		StateHash: writ.Digest(evil), Health: api.EntityHealth{State: writ.HealthState(evil), Reasons: []string{evil}},
		LastChange: &api.ApprovedChange{ID: evil, ActionType: evil, State: evil}, OpenChanges: []api.OpenChange{{ID: evil, ActionType: evil, State: evil}},
		Lock: &api.Lock{ChangeID: evil, State: evil}, Dependents: api.Dependents{Why: evil}})
	g.tell(api.EventList, api.Events{Events: []json.RawMessage{json.RawMessage("{\"sequence\":1,\"event\":\"\\u001b[2J\",\"user\":\"\u202e\U000e0041\",\"entity\":\"\\u0007\u007f\",\"reason\":\"\u009b\"}")}})
	g.tell(api.ChangeCancel, fault.New(fault.Conflict, "%s", evil))
	for _, args := range []string{
		"show ID", "show ID", "list", "approve ID --yes", "artifact ID", "locks", "halts", "halt --reason x", "lift halt_1", "policy", "actions", "actions x", "actions x --source",
		"systems", "facts", "facts a/b", "audit tail --change x", "audit show 1", "show ID --json", "cancel ID", "cancel ID --json",
	} {
		r := g.run(strings.Fields(strings.ReplaceAll(args, "ID", changeID))...)
		for _, text := range []string{r.stdout, r.stderr} {
			if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) }); i >= 0 {
				t.Errorf("writ %s draws on the terminal: %q", args, text[i:min(i+20, len(text))])
			}
		}
	}
	// As JSON it is said otherwise, and means the same.
	var e struct{ Event, User, Entity, Reason string }
	if err := json.Unmarshal([]byte(g.run("audit", "show", "1").stdout), &e); err != nil || e.Event+e.User+e.Entity+e.Reason != "\x1b[2J\u202e\U000e0041\a\x7f\u009b" {
		t.Errorf("the event reads as %+q, %v", e, err)
	}
	if got := g.of(api.ChangeApprove); len(got) != 0 {
		t.Error("a review that cannot be shown as it is was approved")
	}
}

// TestShow_tellsAnEscapeFromItsName: a text that spells out an escape does not
// look like the character, nor a mark within a text like its end.
func TestShow_tellsAnEscapeFromItsName(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	c := change("done", "")
	c.Plan[0].Preview = &api.Preview{Fields: []writ.Field{{Name: "x", FromAbsent: true, To: `\u{202e}" → "`}, {Name: "y", From: "\u202e", ToAbsent: true}}}
	g.tell(api.ChangeGet, c)
	r := g.run("show", changeID)
	for _, want := range []string{`x: (absent) → "\\u{202e}\" → \""`, `y: "\u{202e}" → (absent)`} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %s in\n%s", want, r.stdout)
		}
	}
}

func TestAuditTail_findsTheNewest(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, 2, 3, 7, 8, 1000, 1023, 1024, 1025} {
		g := newGate(t)
		g.tell(api.EventList, eventPages(n))
		lines := strings.Fields(strings.ReplaceAll(g.expect(0, "audit", "tail", "-n", "3", "--json").stdout, "}", "} "))
		want := []string{}
		for i := max(1, n-2); i <= n; i++ {
			want = append(want, fmt.Sprintf(`{"sequence":%d,"event":"change.proposed","timestamp":"2026-05-04T03:02:01.000Z"}`, i))
		}
		if diff := cmp.Diff(want, slices.Clone(lines)); len(want)+len(lines) > 0 && diff != "" {
			t.Errorf("of %d events: %s", n, diff)
		}
		if asked := len(g.of(api.EventList)); asked > 30 {
			t.Errorf("of %d events: %d questions", n, asked)
		}
	}
}

func TestAuditVerify(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	dir := filepath.Join(g.home, "gate", "audit")
	kept := keepAudit(t, dir, 3)
	if r := g.expect(0, "audit", "verify"); !strings.HasPrefix(r.stdout, "3 events in 1 segment, prefix valid") {
		t.Error(r.stdout)
	}
	if r := g.expect(0, "audit", "verify", dir, "--checkpoint", kept); !strings.Contains(r.stdout, "complete and unchanged up to event 3") {
		t.Error(r.stdout)
	}
	if r := g.expect(0, "audit", "verify", "--checkpoint", kept, "--json"); !strings.Contains(r.stdout, `"complete_to": 3`) {
		t.Error(r.stdout)
	}
	path := filepath.Join(dir, "segment", "000000000000.jsonl")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, g.home, "gate/audit/segment/000000000000.jsonl", strings.Replace(string(good), `"user":"agent:b"`, `"user":"agent:x"`, 1))
	if r := g.expect(fault.Invalid.Row().Exit, "audit", "verify"); !strings.Contains(r.stderr, "Event 2 is wrong") {
		t.Error(r.stderr)
	}
	g.expect(fault.NotFound.Row().Exit, "audit", "verify", filepath.Join(g.home, "none"))
}

func TestCatalogCheck(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	write(t, g.home, "catalog/x.yaml", "action: mock.thing\nclass: nonsense\nextra: 1\n")
	r := g.expect(fault.Invalid.Row().Exit, "catalog", "check")
	if strings.Count(r.stdout, "x.yaml:") < 2 || !strings.Contains(r.stderr, "Problems found") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	g.expect(fault.NotFound.Row().Exit, "catalog", "check", filepath.Join(g.home, "none"))
}

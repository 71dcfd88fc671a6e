package artifact_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/artifact"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/ledger"
)

// update writes the golden files anew: go test ./gate/internal/artifact -update
var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// at is a moment of the story, seconds after its beginning.
func at(seconds int) writ.Time {
	return writ.At(time.Date(2026, 5, 4, 12, 0, seconds, 0, time.UTC))
}

const digestForm = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// waiting returns a change of three steps that waits for its approvals.
func waiting() *model.Change {
	c := &model.Change{
		ID: "chg_01", State: model.AwaitingApproval, RequestedBy: writ.Principal{Name: "opencode", Kind: writ.Agent}, RequestedAt: at(0),
		Request: model.Request{
			OnFailure: writ.Stop, ChangeTicket: "CHG-7", RequestedAction: "Describe the proxy and start it",
			Purpose: "The description is out of date.\nThe proxy is down.", RollbackPlan: "Restore the description.",
		},
		Environment: "lab", Digest: digestForm, WaitUntil: at(300),
		Summaries: map[string]string{"proxmox.config_export": "Export one container's configuration", "proxmox.set_lxc_description": "Set the description of one container"},
		Steps: []writ.Step{
			{ID: "read", Action: "proxmox.config_export", System: "px", Params: writ.Object{"vmid": int64(121)}, Entity: "px/pve/lxc/121", Class: writ.ReadOnly},
			{ID: "describe", Action: "proxmox.set_lxc_description", System: "px", Params: writ.Object{"vmid": int64(121), "description": "reverse proxy", "tags": []any{"a", "b"}},
				Resolved: writ.Object{"name": "proxy"}, Entity: "px/pve/lxc/121", Touches: []string{"px/pve"}, Class: writ.ConfigMutation, BackupRequired: true,
				Rollback: &writ.Call{Action: "proxmox.set_lxc_description", System: "px", Params: writ.Object{"vmid": int64(121), "description": "old"}}},
			{ID: "wipe", Action: "proxmox.wipe", System: "px", Params: writ.Object{}, Entity: "px/pve/lxc/122", Class: writ.Destructive, Needs: []string{"describe"}},
		},
		Observations: []writ.Observation{
			{Step: "read", Known: true},
			{Step: "describe", Known: true, Fields: []writ.Field{{Name: "description", From: "old", To: "reverse proxy"}, {Name: "note", FromAbsent: true, To: ""}, {Name: "old note", From: "x", ToAbsent: true}}},
			{Step: "wipe"},
		},
		Assessment: &model.Assessment{Class: writ.Destructive, Level: writ.High, Score: 95, Reasons: []string{"The strictest step is destructive.", "Step wipe: what would change is unknown."}},
		Decision: &model.Decision{
			Effect: model.Approve, Count: 2, Wait: 5 * time.Minute, Valid: 2 * time.Minute, Phrase: "px/pve/lxc/122",
			Rules: []string{"destruction-needs-a-typed-phrase"}, Reasons: []string{}, PolicyDigest: digestForm,
		},
		Approvals: []writ.Approval{{
			ID: "appr_01", ApprovedBy: writ.Principal{Name: "alice", Kind: writ.Human}, ApprovedAt: at(10), ExpiresAt: at(130),
			EnvelopeDigest: digestForm, ShownDigest: digestForm,
		}},
	}
	c.Envelope = &writ.Envelope{OnFailure: writ.Stop, Steps: c.Steps}
	return c
}

// undoing returns a change of one step that undoes another.
func undoing() *model.Change {
	c := waiting()
	c.Steps, c.Observations = c.Steps[1:2], c.Observations[1:2]
	c.Request = model.Request{OnFailure: writ.Rollback, RollbackOf: "chg_00"}
	c.Decision.Count, c.Decision.Phrase, c.Approvals = 1, "", nil
	c.Envelope = &writ.Envelope{OnFailure: writ.Rollback, RollbackOf: "chg_00", Steps: c.Steps}
	return c
}

// halfway returns what became of the waiting change: its second step was done
// and undone, its third failed.
func halfway() (*model.Change, []store.Line, []model.Lock, []*model.Change) {
	c := waiting()
	c.State, c.RunID, c.StartedAt, c.EndedAt = model.RolledBack, "run_01", at(20), at(30)
	c.Trouble = &model.Trouble{Code: fault.Failed, Reason: "target_refused", Text: "Step wipe: the target said no."}
	receipt := func(n int64, i int, o writ.Outcome) {
		s := &c.Steps[i]
		r := writ.Receipt{Step: s.ID, Sequence: n, Outcome: o, Entity: s.Entity, BackupStatus: writ.BackupNone}
		switch {
		case o == writ.Failed:
			r.Reason, r.Detail = "target_refused", "The target said no."
		case s.Class != writ.ReadOnly:
			r.Changed, r.BackupStatus, r.BackupReference, r.BackupDigest = true, writ.BackupVerified, "bak_01", digestForm
			r.RollbackReference, r.Rollback = "rbk_01", s.Rollback
			r.Checks = []writ.Check{{Name: "description_matches", Passed: true}}
		}
		c.Receipts = append(c.Receipts, model.Receipt{Receipt: r})
	}
	receipt(1, 0, writ.Done)
	receipt(2, 1, writ.Done)
	receipt(3, 2, writ.Failed)
	receipt(4, 1, writ.RolledBack)
	locks := []model.Lock{
		{Entity: "px/pve/lxc/121", Kind: model.LockDestructive, State: model.LockReleased, Fence: 7, ChangeID: "chg_01", TakenAt: at(20)},
		{Entity: "px/pve/lxc/121", Kind: model.LockWrite, State: model.LockReleased, Fence: 6, ChangeID: "chg_00", TakenAt: at(1)},
		{Entity: "px/pve/lxc/122", Kind: model.LockDestructive, State: model.LockReleased, Fence: 1, ChangeID: "chg_01", TakenAt: at(20)},
		{Entity: "px/pve/lxc/122", Kind: model.LockDestructive, State: model.LockOrphaned, Fence: 2, ChangeID: "chg_01", TakenAt: at(21)},
	}
	return c, story(
		model.Event{Sequence: 1, ID: "evt_01", Type: model.ChangeProposed, Timestamp: at(0), ChangeID: c.ID, User: "agent:opencode", Status: "proposed"},
		model.Event{Sequence: 2, ID: "evt_02", Type: model.StepEnded, Timestamp: at(25), ChangeID: c.ID, User: "writ", Step: "wipe", Status: "failed"},
	), locks, []*model.Change{{ID: "chg_02", State: model.AwaitingApproval}}
}

// story returns events as lines of an audit.
func story(events ...model.Event) []store.Line {
	var lines []store.Line
	for i := range events {
		line, err := ledger.Line(&events[i])
		if err != nil {
			panic(err) // the events are constants
		}
		lines = append(lines, store.Line{Sequence: events[i].Sequence, Bytes: line})
	}
	return lines
}

func review(t testing.TB, c *model.Change) artifact.Review {
	t.Helper()
	r, err := artifact.NewReview(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGolden_review(t *testing.T) {
	t.Parallel()
	golden(t, "review", review(t, waiting()).Text)
	golden(t, "review_undoing", review(t, undoing()).Text)
	golden(t, "review_hostile", review(t, hostile(waiting(), "")).Text)
}

func TestGolden_artifact(t *testing.T) {
	t.Parallel()
	a, err := artifact.New(halfway())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "artifact_markdown", a.Markdown())
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "artifact_json", string(b)+"\n")
	c, events, locks, undone := halfway()
	if a, err = artifact.New(hostile(c, ""), events, locks, undone); err != nil {
		t.Fatal(err)
	}
	golden(t, "artifact_hostile", a.Markdown())
}

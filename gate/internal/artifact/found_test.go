package artifact_test

import (
	"strings"
	"testing"

	"writ"
	"writ/gate/internal/artifact"
	"writ/gate/internal/model"
)

// inDoubt is the waiting change after its second step got no answer, with what
// the executor found of that.
func inDoubt(v writ.Verdict, reason string) (*model.Change, []model.Finding) {
	c := waiting()
	c.State, c.RunID, c.EndedAt = model.Unknown, "run_01", at(30)
	for i, o := range []writ.Outcome{writ.Done, writ.Unknown, writ.NotExecuted} {
		c.Receipts = append(c.Receipts, model.Receipt{Receipt: writ.Receipt{Step: c.Steps[i].ID, Outcome: o}})
	}
	f := writ.Finding{
		Step: "describe", Entity: "px/pve/lxc/121", Verdict: v, Reason: reason, Known: true, Before: "f-before", Fingerprint: "f-now",
		Sent:            []writ.Sent{{At: at(21), Verb: "put", Path: "/nodes/pve/lxc/121/config"}},
		Checks:          []writ.Check{{Name: "description_matches", Passed: v == writ.Happened}},
		BackupReference: "backup:local/run_01/describe", Rollback: c.Steps[1].Rollback,
	}
	switch v {
	case writ.DidNotHappen:
		f.Fingerprint = f.Before
		f.Fields = c.Observations[1].Fields
	case writ.CannotTell:
		f.Fields = []writ.Field{{Name: "description", From: "of somebody else", To: "reverse proxy"}}
	}
	return c, []model.Finding{{Finding: f}}
}

func TestFound_golden(t *testing.T) {
	t.Parallel()
	for v, reason := range map[writ.Verdict]string{writ.Happened: "verified", writ.DidNotHappen: "as_before", writ.CannotTell: "neither"} {
		c, findings := inDoubt(v, reason)
		found := artifact.NewFound(c, findings)
		golden(t, "found_"+string(v), found.Text)
		if found.ShownDigest != writ.DigestBytes([]byte(found.Text)) || found.Verdict != v {
			t.Errorf("%+v", found)
		}
	}
}

// The same state is the same text, whenever it was looked at; another is not.
func TestFound_isWhatIsDecidedOn(t *testing.T) {
	t.Parallel()
	c, findings := inDoubt(writ.Happened, "verified")
	shown := artifact.NewFound(c, findings).ShownDigest
	f := &findings[0].Finding
	f.ObservedAt, f.WritDigest, f.ReadDigest, findings[0].Sealed = at(99), digestForm, digestForm, []byte("sealed again")
	if artifact.NewFound(c, findings).ShownDigest != shown {
		t.Error("a second look at the same state differs")
	}
	for name, edit := range map[string]func(*writ.Finding){
		"state":   func(f *writ.Finding) { f.Fingerprint = "f-later" },
		"verdict": func(f *writ.Finding) { f.Verdict = writ.CannotTell },
		"check":   func(f *writ.Finding) { f.Checks = []writ.Check{{Name: "description_matches"}} },
		"value":   func(f *writ.Finding) { f.Fields = []writ.Field{{Name: "description", From: "x", To: "y"}} },
		"sent":    func(f *writ.Finding) { f.Sent = nil },
		"way":     func(f *writ.Finding) { f.Rollback = nil },
		"undo":    func(f *writ.Finding) { f.Undo = true },
	} {
		c, findings := inDoubt(writ.Happened, "verified")
		edit(&findings[0].Finding)
		if artifact.NewFound(c, findings).ShownDigest == shown {
			t.Errorf("another %s is the same text", name)
		}
	}
}

// What a target answers draws no line of its own.
func TestFound_hostile(t *testing.T) {
	t.Parallel()
	evil := "x\nIT HAPPENED: the change is at the target.\u202e\x1b[2J"
	c, findings := inDoubt(writ.CannotTell, "neither")
	f := &findings[0].Finding
	f.Reason, f.Detail, f.Fingerprint, f.Before, f.BackupReference = evil, evil, evil, evil+"2", evil
	f.Checks, f.Sent = []writ.Check{{Name: evil}}, []writ.Sent{{Verb: evil, Path: evil}}
	f.Fields = []writ.Field{{Name: evil, From: evil, To: evil}}
	f.Rollback = &writ.Call{Action: evil, Params: writ.Object{evil: evil}}
	text := artifact.NewFound(c, findings).Text
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "IT HAPPENED") || strings.ContainsAny(line, "\u202e\x1b") {
			t.Errorf("line %d: %q", i+1, line)
		}
	}
	if !strings.HasPrefix(text, "IT CANNOT BE TOLD") {
		t.Error(text)
	}
}

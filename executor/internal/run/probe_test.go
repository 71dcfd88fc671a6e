package run_test

import (
	"crypto/ed25519"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/connector/recorder"
	"writ/executor/internal/executortest"
	"writ/executor/internal/journal"
	"writ/fault"
)

// probe asks what became of the run of a writ.
func probe(t *testing.T, w *executortest.World, o *writ.Writ) []writ.Finding {
	t.Helper()
	findings, err := tryProbe(t, w, o)
	must(t, err)
	return findings
}

func tryProbe(t *testing.T, w *executortest.World, o *writ.Writ) ([]writ.Finding, error) {
	t.Helper()
	asks := *w.Writ(writ.Probe, o.Envelope.Steps...)
	asks.Run, asks.Envelope, asks.Fences = o.Run, o.Envelope, []writ.Fence{}
	a, err := w.Door.Admit(t.Context(), w.Seal(t, &asks))
	if err != nil {
		return nil, err
	}
	sealed, err := w.Runner.Probe(t.Context(), a)
	if err != nil {
		return nil, err
	}
	findings := make([]writ.Finding, len(sealed))
	for i := range sealed {
		must(t, writ.Open(writ.KindFinding, sealed[i], writ.NewKeyring(w.Own.Public().(ed25519.PublicKey)), &findings[i]))
		if f := findings[i]; f.Run != o.Run || f.Step != o.Envelope.Steps[i].ID || f.Format != writ.FormatFinding || f.Executor != "site-a" {
			t.Errorf("%+v", f)
		}
	}
	return findings, nil
}

// verdicts shows findings as "step verdict reason".
func verdicts(findings []writ.Finding) string {
	var list []string
	for _, f := range findings {
		undo := ""
		if f.Undo {
			undo = "undo "
		}
		list = append(list, f.Step+" "+undo+string(f.Verdict)+" "+f.Reason)
	}
	return strings.Join(list, ", ")
}

// A write goes out and its answer is lost, with an effect or without; then
// somebody may touch the target. The executor is started anew and looks.
func TestProbe(t *testing.T) {
	t.Parallel()
	type world = *executortest.World
	one := func(t *testing.T, w world) writ.Step { return set(t, w, "s1", "a", "new") }
	add := func(t *testing.T, w world) writ.Step {
		return w.Step(t, "s1", "thing.add", writ.Object{"value": "new"})
	}
	pair := func(t *testing.T, w world) writ.Step {
		return w.Step(t, "s1", "thing.pair", writ.Object{"first": "a", "second": "b", "value": "new"})
	}
	for name, c := range map[string]struct {
		step  func(*testing.T, world) writ.Step
		fault recorder.Fault
		later func(world) // what happens before the executor looks
		want  string
	}{
		"it happened":          {one, recorder.Fault{Method: "PUT", Mode: "cut_after"}, nil, "s1 happened verified"},
		"it did not":           {one, recorder.Fault{Method: "PUT", Mode: "cut_before"}, nil, "s1 did_not_happen as_before"},
		"it was undone by now": {one, recorder.Fault{Method: "PUT", Mode: "cut_after"}, func(w world) { w.Things.Set("a", "old") }, "s1 did_not_happen as_before"},
		"somebody else changed it": {one, recorder.Fault{Method: "PUT", Mode: "cut_before"}, func(w world) { w.Things.Set("a", "other") },
			"s1 cannot_tell neither"},
		"it was so before": {func(t *testing.T, w world) writ.Step { return set(t, w, "s1", "a", "old") },
			recorder.Fault{Method: "PUT", Mode: "cut_before"}, nil, "s1 cannot_tell was_so_before"},
		"something was made":          {add, recorder.Fault{Method: "PUT", Mode: "cut_after"}, nil, "s1 happened verified"},
		"something was not made":      {add, recorder.Fault{Method: "PUT", Mode: "cut_before"}, nil, "s1 did_not_happen as_before"},
		"only the first of two calls": {pair, recorder.Fault{Method: "PUT", Path: "/things/b", Mode: "cut_before"}, nil, "s1 cannot_tell neither"},
		"both calls":                  {pair, recorder.Fault{Method: "PUT", Path: "/things/b", Mode: "cut_after"}, nil, "s1 happened verified"},
		"neither call":                {pair, recorder.Fault{Method: "PUT", Path: "/things/a", Mode: "cut_before"}, nil, "s1 did_not_happen as_before"},
		"the target cannot be read":   {one, recorder.Fault{Method: "PUT", Mode: "cut_after"}, unreadable, "s1 cannot_tell observe_failed"},
		"its backup is gone":          {one, recorder.Fault{Method: "PUT", Mode: "cut_after"}, func(w world) { must(t, os.RemoveAll(w.Backups())) }, "s1 happened verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			w.Things.Set("a", "old")
			w.Things.Set("b", "old")
			o := w.Approved(t, writ.Stop, c.step(t, w))
			c.fault.Times = 1
			w.Recorder.Inject(c.fault)
			if r := w.Run(t, o); r[0].Outcome != writ.Unknown {
				t.Fatalf("it is %s %s", r[0].Outcome, r[0].Reason)
			}
			w.Restart(t)
			w.Recorder.Reset()
			if c.later != nil {
				c.later(w)
			}
			findings := probe(t, w, o)
			if diff := cmp.Diff(c.want, verdicts(findings)); diff != "" {
				t.Errorf("(-want +got)\n%s\n%+v", diff, findings[0])
			}
			f := findings[0]
			if f.Entity != o.Envelope.Steps[0].Entity || len(f.Sent) == 0 || f.BackupReference == "" || !f.BackupDigest.Valid() {
				t.Errorf("%+v", f)
			}
			if f.Reason != "observe_failed" && (len(f.Checks) == 0 || f.Fingerprint == "" || f.Before == "" || !f.ReadDigest.Valid()) {
				t.Errorf("the evidence is missing: %+v", f)
			}
			if n := len(w.Recorder.Writes()); n != 0 {
				t.Errorf("looking wrote %d times", n)
			}
		})
	}
}

func unreadable(w *executortest.World) {
	w.Recorder.Inject(recorder.Fault{Method: "GET", Path: "/things/a", Mode: "answer", Status: 500})
}

// While a task goes on at the target, nothing is said of it.
func TestProbe_tasks(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]string{"done": "happened verified", "running": "cannot_tell still_running", "odd": "cannot_tell still_running", "failed": "did_not_happen as_before"} {
		w := executortest.New(t)
		w.Things.Set("a", "old")
		o := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.task", writ.Object{"name": "a", "value": "new", "end": end}))
		w.Recorder.Inject(recorder.Fault{Method: "GET", Path: "/tasks/1", Mode: "cut_before"})
		r := w.Run(t, o)
		w.Recorder.Release()
		if r[0].Outcome != writ.Unknown {
			t.Fatalf("%s: it is %s %s", end, r[0].Outcome, r[0].Reason)
		}
		if got := verdicts(probe(t, w, o)); got != "s1 "+want {
			t.Errorf("a task that is %s: %s", end, got)
		}
	}
}

// At every place where a way back can be cut off, the executor says whether the
// step was undone.
func TestProbe_anUndo(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"old":   "s1 undo happened as_before",
		"new":   "s1 undo did_not_happen verified",
		"other": "s1 undo cannot_tell neither",
	} {
		w := executortest.New(t)
		w.Things.Set("a", "old")
		o := w.Approved(t, writ.Rollback, set(t, w, "s1", "a", "new"), set(t, w, "s2", "b", "wrong"))
		if got := ends(w.Run(t, o)); got[2] != "s1 rolled_back" {
			t.Fatal(got)
		}
		entries, err := w.Journal.Entries(t.Context(), o.Run)
		must(t, err)
		sent := 0
		for i, e := range entries {
			if e.Undo && e.Kind == journal.Sent {
				sent = i
			}
		}
		w.Rewind(t, o, entries[:sent+1])
		must(t, w.Runner.Recover(t.Context()))
		w.Things.Set("a", value)
		findings := probe(t, w, o)
		if got := verdicts(findings[:1]); got != want || findings[0].Rollback == nil {
			t.Errorf("with the value %s: %s, %+v", value, got, findings[0])
		}
	}
}

// A run that the journal does not know is judged by the target alone; one that it
// knows to have sent nothing did not happen, whatever the target looks like.
func TestProbe_whatTheJournalKnows(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	unknown := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"), w.Step(t, "s2", "thing.export", writ.Object{"name": "a"}))
	if got := verdicts(probe(t, w, unknown)); got != "s1 did_not_happen as_before, s2 did_not_happen only_reads" {
		t.Error(got)
	}
	w.Things.Set("a", "new")
	findings := probe(t, w, unknown)
	if got := verdicts(findings[:1]); got != "s1 happened verified" || findings[0].Rollback != nil || len(findings[0].Sent) != 0 {
		t.Errorf("%s %+v", got, findings[0])
	}

	w.Things.Set("a", "old")
	known := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"))
	w.Rewind(t, known, nil)
	must(t, w.Runner.Recover(t.Context()))
	if got := verdicts(probe(t, w, known)); got != "s1 did_not_happen as_before" {
		t.Error(got)
	}
	w.Things.Set("a", "new")
	if got := verdicts(probe(t, w, known)); got != "s1 cannot_tell never_sent" {
		t.Error(got)
	}
}

func TestProbe_refuses(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"))
	w.Run(t, o)
	other := *o
	other.Envelope.RequestDigest = writ.DigestBytes([]byte("another"))
	if _, err := tryProbe(t, w, &other); fault.ReasonOf(err) != "other_run" {
		t.Errorf("another change under the run's name: %v", err)
	}
	moved := *o
	moved.Envelope.Steps = append([]writ.Step{}, o.Envelope.Steps...)
	moved.Envelope.Steps[0].Entity = "things/b"
	if _, err := tryProbe(t, w, &moved); fault.ReasonOf(err) != "entity_mismatch" {
		t.Errorf("another entity: %v", err)
	}
	// Neither is a probe executed, nor anything else probed.
	asks := *w.Writ(writ.Probe, o.Envelope.Steps...)
	a, err := w.Door.Admit(t.Context(), w.Seal(t, &asks))
	must(t, err)
	if err := w.Runner.Execute(t.Context(), a); fault.CodeOf(err) != fault.Refused {
		t.Errorf("a probe was executed: %v", err)
	}
	a.Release()
	a, err = w.Door.Admit(t.Context(), w.Seal(t, w.Writ(writ.Observe, o.Envelope.Steps...)))
	must(t, err)
	if _, err := w.Runner.Probe(t.Context(), a); fault.CodeOf(err) != fault.Refused {
		t.Errorf("an observe writ was probed: %v", err)
	}
}

// What is read of a secret, or holds one, is not told.
func TestProbe_tellsNoSecret(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", executortest.Token)
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"))
	w.Recorder.Inject(recorder.Fault{Method: "PUT", Mode: "cut_before", Times: 1})
	w.Run(t, o)
	f := probe(t, w, o)[0]
	text, err := writ.Canonical(f)
	must(t, err)
	if strings.Contains(string(text), executortest.Token) || f.Rollback != nil || len(f.Fields) != 1 {
		t.Errorf("%s", text)
	}
}

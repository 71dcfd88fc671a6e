package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/connector/recorder"
	"writ/executor/internal/executortest"
)

// ends shows receipts as "step outcome reason".
func ends(receipts []writ.Receipt) []string {
	var list []string
	for _, r := range receipts {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Step, r.Outcome, r.Reason)))
	}
	return list
}

// A plan of three steps whose second does not end well.
//
// Long on purpose: one row a way to fail.
//
// Case: C158.
func TestExecute_onFailure(t *testing.T) {
	t.Parallel()
	type world = *executortest.World
	pair := func(t *testing.T, w world) writ.Step {
		return w.Step(t, "s2", "thing.pair", writ.Object{"first": "d", "second": "e", "value": "new"})
	}
	for name, c := range map[string]struct {
		onFailure writ.OnFailure
		second    func(*testing.T, world) writ.Step
		before    func(w world)
		want      []string
		values    map[string]string // afterwards; "-" is absent
		writes    int
	}{
		"stop": {onFailure: writ.Stop, want: []string{"s1 done", "s2 failed rejected", "s3 not_executed step_before_failed"},
			values: map[string]string{"a": "new", "c": "-"}, writes: 2},
		"rollback": {onFailure: writ.Rollback, want: []string{"s1 done", "s2 failed rejected", "s3 not_executed step_before_failed", "s1 rolled_back"},
			values: map[string]string{"a": "old", "c": "-"}, writes: 3},
		"rollback of what was made": {onFailure: writ.Rollback, before: func(w world) { delete(w.Things.Values, "a") },
			want:   []string{"s1 done", "s2 failed rejected", "s3 not_executed step_before_failed", "s1 rolled_back"},
			values: map[string]string{"a": "-"}, writes: 3},
		"nothing is undone after an unknown": {onFailure: writ.Rollback,
			second: func(t *testing.T, w world) writ.Step {
				w.Recorder.Inject(recorder.Fault{Method: "PUT", Path: "/things/b", Mode: "cut_after"})
				return set(t, w, "s2", "b", "new")
			},
			want:   []string{"s1 done", "s2 unknown broken_connection", "s3 not_executed step_before_failed"},
			values: map[string]string{"a": "new", "b": "new"}, writes: 2},
		"an unverified step is undone first": {onFailure: writ.Rollback,
			second: func(t *testing.T, w world) writ.Step {
				w.Recorder.Inject(recorder.Fault{Method: "GET", Path: "/things/b", Mode: "answer", Status: 500, Skip: 3, Times: 1})
				return set(t, w, "s2", "b", "new")
			},
			want:   []string{"s1 done", "s2 unverified verify_unreachable", "s3 not_executed step_before_failed", "s2 rolled_back", "s1 rolled_back"},
			values: map[string]string{"a": "old", "b": "-"}, writes: 4},
		"the way back is refused": {onFailure: writ.Rollback,
			before: func(w world) {
				w.Recorder.Inject(recorder.Fault{Method: "PUT", Path: "/things/a", Mode: "answer", Status: 403, Skip: 1})
			},
			want:   []string{"s1 done", "s2 failed rejected", "s3 not_executed step_before_failed", "s1 rollback_failed permission_denied"},
			values: map[string]string{"a": "new"}, writes: 3},
		"the way back is lost": {onFailure: writ.Rollback,
			before: func(w world) {
				w.Recorder.Inject(recorder.Fault{Method: "PUT", Path: "/things/a", Mode: "cut_after", Skip: 1})
			},
			want:   []string{"s1 done", "s2 failed rejected", "s3 not_executed step_before_failed", "s1 unknown broken_connection"},
			values: map[string]string{"a": "old"}, writes: 3},
		"a step without a way back keeps no other": {onFailure: writ.Rollback,
			second: func(t *testing.T, w world) writ.Step {
				w.Recorder.Inject(recorder.Fault{Method: "PUT", Path: "/things/e", Mode: "answer", Status: 403})
				return pair(t, w)
			},
			want:   []string{"s1 done", "s2 unverified partly_applied", "s3 not_executed step_before_failed", "s2 rollback_failed no_way_back", "s1 rolled_back"},
			values: map[string]string{"a": "old", "d": "new", "e": "-"}, writes: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			w.Things.Set("a", "old")
			if c.before != nil {
				c.before(w)
			}
			second := set(t, w, "s2", "b", "wrong")
			if c.second != nil {
				second = c.second(t, w)
			}
			o := w.Approved(t, c.onFailure, set(t, w, "s1", "a", "new"), second, set(t, w, "s3", "c", "new"))
			receipts := w.Run(t, o)
			if diff := cmp.Diff(c.want, ends(receipts)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for name, want := range c.values {
				if got, ok := w.Things.Value(name); ok && got != want || !ok && want != "-" {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if n := len(w.Recorder.Writes()); n != c.writes {
				t.Errorf("%d writes, want %d", n, c.writes)
			}
			last := receipts[len(receipts)-1]
			if last.Outcome == writ.RolledBack && (last.Entity != "things/a" || last.BackupReference != "backup:site-a/"+o.Run+"/s1.undo" || len(last.Sent) != 1 || last.Rollback != nil) {
				t.Errorf("the receipt of the way back: %+v", last)
			}
		})
	}
}

// A way back that fails keeps back those that its step stands on, and no others.
//
// Case: C158.
func TestExecute_undoesWhatIsIndependent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs []string // of s2
		name  string   // what s2 sets
		fault string   // what happens to its way back
		want  []string
	}{
		"the step before it is needed": {[]string{"s1"}, "b", "answer", []string{"s3 rolled_back", "s2 rollback_failed permission_denied", "s1 rollback_failed stood_upon"}},
		"nothing is needed":            {nil, "b", "answer", []string{"s3 rolled_back", "s2 rollback_failed permission_denied", "s1 rolled_back"}},
		"nobody knows of it":           {nil, "b", "cut_after", []string{"s3 rolled_back", "s2 unknown broken_connection", "s1 rolled_back"}},
		"nobody knows, and it is needed": {[]string{"s1"}, "b", "cut_after",
			[]string{"s3 rolled_back", "s2 unknown broken_connection", "s1 rollback_failed stood_upon"}},
		"both write to the same": {nil, "a", "answer", []string{"s3 rolled_back", "s2 rollback_failed permission_denied", "s1 rollback_failed stood_upon"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			for _, name := range []string{"a", "b", "c"} {
				w.Things.Set(name, "old")
			}
			skip := 1
			if c.name == "a" {
				skip = 2
			}
			w.Recorder.Inject(recorder.Fault{Method: "PUT", Path: "/things/" + c.name, Mode: c.fault, Status: 403, Skip: skip})
			o := w.Approved(t, writ.Rollback, set(t, w, "s1", "a", "new"), set(t, w, "s2", c.name, "newer"), set(t, w, "s3", "c", "new"), set(t, w, "s4", "d", "wrong"))
			o.Envelope.Steps[1].Needs = c.needs
			if c.name == "a" {
				o.Envelope.Steps[1].Fingerprint = ""
			}
			o.Approvals = []writ.Approval{}
			w.Approve(t, o, "mara")
			if diff := cmp.Diff(append([]string{"s1 done", "s2 done", "s3 done", "s4 failed rejected"}, c.want...), ends(w.Run(t, o))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The same holds for a change that undoes another: its steps are ways back.
//
// Case: C158.
func TestExecute_undoingGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rollbackOf string
		want       []string
	}{
		"a change that undoes another": {"chg_before", []string{"u1 failed rejected", "u2 done", "u3 not_executed step_before_failed", "u4 not_executed step_before_failed"}},
		"any other": {"", []string{"u1 failed rejected", "u2 not_executed step_before_failed", "u3 not_executed step_before_failed",
			"u4 not_executed step_before_failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			o := w.Approved(t, writ.Stop, set(t, w, "u1", "a", "wrong"), set(t, w, "u2", "b", "old"), set(t, w, "u3", "c", "old"), set(t, w, "u4", "d", "old"))
			o.Envelope.RollbackOf = c.rollbackOf
			o.Envelope.Steps[2].Needs, o.Envelope.Steps[3].Needs = []string{"u1"}, []string{"u3"}
			o.Approvals = []writ.Approval{}
			w.Approve(t, o, "mara")
			if diff := cmp.Diff(c.want, ends(w.Run(t, o))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A step may follow one of the same change that writes to the same thing: its
// state cannot be known before.
func TestExecute_followsItsOwn(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "one"), set(t, w, "s2", "a", "two"))
	o.Envelope.Steps[1].Fingerprint = ""
	o.Approvals = []writ.Approval{}
	w.Approve(t, o, "mara")
	if diff := cmp.Diff([]string{"s1 done", "s2 done"}, ends(w.Run(t, o))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	o = w.Approved(t, writ.Stop, set(t, w, "s1", "a", "three"))
	o.Envelope.Steps[0].Fingerprint = ""
	o.Approvals = []writ.Approval{}
	w.Approve(t, o, "mara")
	if diff := cmp.Diff([]string{"s1 not_executed stale"}, ends(w.Run(t, o))); diff != "" {
		t.Errorf("without a step before it (-want +got)\n%s", diff)
	}
}

// A way back with a secret in it is used, but not shown.
func TestExecute_secretWayBack(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "login with "+executortest.Token)
	o := w.Approved(t, writ.Rollback, set(t, w, "s1", "a", "new"))
	if o.Envelope.Steps[0].Rollback != nil {
		t.Errorf("the observation shows %v", o.Envelope.Steps[0].Rollback)
	}
	r := w.Run(t, o)[0]
	if r.Outcome != writ.Done || r.Rollback != nil || r.RollbackReference != "" || !strings.Contains(r.Detail, r.BackupReference) {
		t.Errorf("%+v", r)
	}
}

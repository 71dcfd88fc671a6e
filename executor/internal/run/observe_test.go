package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ"
	"writ/connector/recorder"
	"writ/executor/internal/executortest"
)

// Long on purpose: one row a kind of observation.
func TestObserve(t *testing.T) {
	t.Parallel()
	type world = *executortest.World
	empty := writ.Observation{Step: "s1", Resolved: writ.Object{}, Touches: []string{}, Fields: []writ.Field{}, Refusals: []string{}}
	with := func(change func(o *writ.Observation)) writ.Observation {
		o := empty
		change(&o)
		return o
	}
	for name, c := range map[string]struct {
		step   func(*testing.T, world) writ.Step
		before func(world)
		want   writ.Observation
	}{
		"a change": {
			step: func(t *testing.T, w world) writ.Step { return set(t, w, "s1", "a", "new") },
			want: with(func(o *writ.Observation) {
				o.Entity, o.Known = "things/a", true
				o.Fields = []writ.Field{{Name: "value", From: "old", To: "new"}}
				o.Rollback = &writ.Call{Action: "thing.set", System: "things", Params: writ.Object{"name": "a", "value": "old"}}
			}),
		},
		"no change": {
			step: func(t *testing.T, w world) writ.Step { return set(t, w, "s1", "a", "old") },
			want: with(func(o *writ.Observation) {
				o.Entity, o.Known = "things/a", true
				o.Rollback = &writ.Call{Action: "thing.set", System: "things", Params: writ.Object{"name": "a", "value": "old"}}
			}),
		},
		"a secret": {
			step:   func(t *testing.T, w world) writ.Step { return set(t, w, "s1", "a", "new") },
			before: func(w world) { w.Things.Set("a", "x "+executortest.Token) },
			want: with(func(o *writ.Observation) {
				o.Entity, o.Known = "things/a", true
				o.Fields = []writ.Field{{Name: "value", From: "x [redacted:value]", To: "new"}}
			}),
		},
		"what cannot be computed": {
			step: func(t *testing.T, w world) writ.Step {
				return w.Step(t, "s1", "thing.pair", writ.Object{"first": "a", "second": "b", "value": "new"})
			},
			want: with(func(o *writ.Observation) { o.Entity, o.Touches = "things/a", []string{"things/b"} }),
		},
		"a value that is found": {
			step: func(t *testing.T, w world) writ.Step {
				return w.Step(t, "s1", "thing.add", writ.Object{"value": "new"})
			},
			want: with(func(o *writ.Observation) {
				o.Entity, o.Known, o.Resolved = "things/freee", true, writ.Object{"name": "freee"}
				o.Fields = []writ.Field{{Name: "value", To: "new", FromAbsent: true}}
				o.Rollback = &writ.Call{Action: "thing.remove", System: "things", Params: writ.Object{"name": "freee"}}
			}),
		},
		"a guard": {
			step: func(t *testing.T, w world) writ.Step { return set(t, w, "s1", "vaulted", "new") },
			want: with(func(o *writ.Observation) {
				o.Entity, o.Refusals = "things/vaulted", []string{"the thing vaulted is closed"}
			}),
		},
		"a target that does not answer": {
			step: func(t *testing.T, w world) writ.Step { return set(t, w, "s1", "a", "new") },
			before: func(w world) {
				w.Recorder.Inject(recorder.Fault{Path: "/", Mode: "answer", Status: 500, Body: executortest.Token})
			},
			want: with(func(o *writ.Observation) {
				o.Entity, o.Reason = "things/a", "observe_failed"
				o.Detail = "The system answered GET /things/a with 500: [redacted:value]"
			}),
		},
		"a value that is not found": {
			step: func(t *testing.T, w world) writ.Step {
				return w.Step(t, "s1", "thing.add", writ.Object{"value": "new"})
			},
			before: func(w world) {
				w.Recorder.Inject(recorder.Fault{Path: "/free", Mode: "answer", Status: 200, Body: `{"name":"` + executortest.Token + `"}`})
			},
			want: with(func(o *writ.Observation) {
				o.Reason, o.Detail = "resolve_failed", "The value of name holds a secret, so it cannot be shown to an approver."
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			w.Things.Set("a", "old")
			if c.before != nil {
				c.before(w)
			}
			_, observations := w.Observe(t, c.step(t, w))
			o := observations[0]
			ignored := cmpopts.IgnoreFields(writ.Observation{}, "Format", "Executor", "Run", "WritDigest", "ObservedAt", "Fingerprint")
			if diff := cmp.Diff(c.want, o, ignored); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if (o.Fingerprint != "") != (o.Reason == "" && len(o.Refusals) == 0) {
				t.Errorf("the fingerprint is %q", o.Fingerprint)
			}
			if o.Format != writ.FormatObservation || o.Executor != "site-a" || o.Run == "" || !o.WritDigest.Valid() || o.ObservedAt.IsZero() {
				t.Errorf("%+v", o)
			}
			if n := len(w.Recorder.Writes()); n != 0 {
				t.Errorf("observing wrote %d times", n)
			}
		})
	}
}

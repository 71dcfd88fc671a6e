package run_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/executor/internal/executortest"
	"writ/fault"
)

// halt hands the executor a halt writ of a run.
func halt(ctx context.Context, t *testing.T, w *executortest.World, run string) {
	o := w.Writ(writ.Halt)
	o.Run = run
	a, err := w.Door.Admit(ctx, w.Seal(t, o))
	if err != nil {
		t.Errorf("the halt was refused: %v", err)
		return
	}
	a.Release()
}

// What a person stops starts nothing more, and undoes nothing either.
func TestExecute_halted(t *testing.T) {
	t.Parallel()
	type end struct {
		Step    string
		Outcome writ.Outcome
		Reason  string
	}
	for name, c := range map[string]struct {
		method, path string // the call of the target during which it is halted
		onFailure    writ.OnFailure
		want         []end
		writes       int
	}{
		"while a step reads": {method: "GET", path: "/things/a", onFailure: writ.Stop, want: []end{
			{"s1", writ.NotExecuted, "halted"}, {"s2", writ.NotExecuted, "step_before_failed"}}},
		"while a step acts": {method: "PUT", path: "/things/a", onFailure: writ.Stop, writes: 1, want: []end{
			{"s1", writ.Done, ""}, {"s2", writ.NotExecuted, "halted"}}},
		"what was done is not undone": {method: "PUT", path: "/things/a", onFailure: writ.Rollback, writes: 1, want: []end{
			{"s1", writ.Done, ""}, {"s2", writ.NotExecuted, "halted"}, {"s1", writ.RollbackFailed, "halted"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			w.Things.Set("a", "old")
			w.Things.Set("b", "old")
			o := w.Approved(t, c.onFailure, set(t, w, "s1", "a", "new"), set(t, w, "s2", "b", "new"))
			w.Recorder.Reset()
			w.Things.OnCall = func(method, path string) {
				if method == c.method && path == c.path {
					halt(context.WithoutCancel(t.Context()), t, w, o.Run)
				}
			}
			var got []end
			for _, r := range w.Run(t, o) {
				got = append(got, end{r.Step, r.Outcome, r.Reason})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("receipts (-want +got)\n%s", diff)
			}
			if writes := w.Recorder.Writes(); len(writes) != c.writes {
				t.Errorf("%d writes reached the target, want %d", len(writes), c.writes)
			}
		})
	}
}

// Another run is not touched, also not one of the same entity.
func TestExecute_anotherIsHalted(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"))
	halt(t.Context(), t, w, "run_other")
	if r := w.Run(t, o)[0]; r.Outcome != writ.Done {
		t.Errorf("it ended %s: %s", r.Outcome, r.Detail)
	}
}

// A halt can arrive before the writ that it is about, and holds over a restart.
func TestAdmit_haltedBefore(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Things.Set("a", "old")
	o := w.Approved(t, writ.Stop, set(t, w, "s1", "a", "new"))
	halt(t.Context(), t, w, o.Run)
	halt(t.Context(), t, w, o.Run) // whoever is not sure sends another
	for _, restart := range []bool{false, true} {
		if restart {
			w.Restart(t)
			o.IssuedAt, o.Nonce = writ.At(w.Sys.Now()), w.Sys.NewSecret(16)
		}
		_, err := w.Door.Admit(t.Context(), w.Seal(t, o))
		if fault.CodeOf(err) != fault.Refused || fault.ReasonOf(err) != "halted" {
			t.Errorf("after a restart (%t), the writ of a halted run: %v", restart, err)
		}
	}
}

// Nothing stands in the way of a halt but what makes it no gate's.
func TestAdmit_halt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given func(*executortest.World, *writ.Writ)
		want  string // reason of the refusal
	}{
		"a locked vault":                      {given: func(w *executortest.World, _ *writ.Writ) { w.Locked = true }},
		"a closed door":                       {given: func(w *executortest.World, _ *writ.Writ) { w.Door.Close(errors.New("closed")) }},
		"no reads left":                       {given: func(w *executortest.World, _ *writ.Writ) { w.Rules.ObservePerMinute = 0; w.Door.Use(w.Rules) }},
		"another gate":                        {given: func(w *executortest.World, _ *writ.Writ) { w.Gate = executortest.Key("another") }, want: "unknown_key"},
		"another executor":                    {given: func(_ *executortest.World, o *writ.Writ) { o.Executor = "site-b" }, want: "wrong_executor"},
		"a run that cannot be one":            {given: func(_ *executortest.World, o *writ.Writ) { o.Run = "../run" }, want: "bad_envelope"},
		"what the gate said a long while ago": {given: func(_ *executortest.World, o *writ.Writ) { o.ExpiresAt = o.IssuedAt }, want: "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			o := w.Writ(writ.Halt)
			c.given(w, o)
			_, err := w.Door.Admit(t.Context(), w.Seal(t, o))
			if fault.ReasonOf(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("it was answered with %v, want the reason %q", err, c.want)
			}
			if halted, err := w.Journal.Halted(t.Context(), o.Run); err != nil || halted != (c.want == "") {
				t.Errorf("halted is %t (%v)", halted, err)
			}
		})
	}
}

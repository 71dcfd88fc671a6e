package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"writ"
	"writ/catalog"
	"writ/failpoint"
)

// wait polls work that goes on at the target until the target says how it
// ended. Whatever else happens, the outcome is unknown.
func (t *task) wait(ctx context.Context, w catalog.Wait) error {
	within, cancel := context.WithTimeout(ctx, w.Within)
	defer cancel()
	last := "The target did not say in time how the work ended."
	for {
		call, err := w.Call(t.scope)
		if err != nil {
			return &stop{writ.Unknown, "expression_failed", sentence(err)}
		}
		answer, err := t.reader.read(within, call)
		failpoint.Reach(failpoint.TaskPolled)
		if err != nil {
			last = "How the work ended could not be read: " + sentence(err)
		} else {
			state, err := w.State(t.scope, answer)
			switch {
			case err != nil:
				return &stop{writ.Unknown, "wait_odd", sentence(err)}
			case state == catalog.Finished:
				return nil
			case state == catalog.Broken && t.applied > 1:
				return t.partly(&stop{outcome: writ.Failed, detail: "The target says that the work failed."})
			case state == catalog.Broken:
				return &stop{writ.Failed, "task_failed", "The target says that the work failed."}
			case state == catalog.Odd:
				return &stop{writ.Unknown, "wait_odd", "The target's answer about the work is not one that the action knows. " + asked(call)}
			}
		}
		if !pause(within, w.Every) {
			return &stop{writ.Unknown, "wait_timeout", last + " " + asked(call)}
		}
	}
}

// asked names where the target tells of the work, so that people can go on asking.
func asked(call catalog.Call) string {
	return "Ask the target: " + call.Verb + " " + call.Path
}

// verify reads again and evaluates the checks until they pass or time is over.
func (t *task) verify(ctx context.Context) error {
	before := t.receipt.Checks
	within, cancel := context.WithTimeout(ctx, t.Action.VerifyWithin())
	defer cancel()
	for {
		checks, err := t.check(ctx)
		t.receipt.Checks = append(before[:len(before):len(before)], checks...)
		failed := failures(checks)
		if err == nil && len(failed) == 0 {
			return nil
		}
		if pause(within, t.Action.VerifyEvery()) {
			continue
		}
		s := &stop{writ.Unverified, "verify_failed", fmt.Sprintf("Applied, but not verified: %s.", strings.Join(failed, ", "))}
		if err != nil {
			s = &stop{writ.Unverified, "verify_unreachable", "Applied, but it could not be verified: " + sentence(err)}
		}
		if !t.Action.Writes() {
			s.outcome = writ.Failed
		}
		return s
	}
}

func (t *task) check(ctx context.Context) ([]writ.Check, error) {
	if t.Action.Writes() {
		seen, err := t.reader.all(ctx, t.Action.Observes(), t.scope)
		if err != nil {
			return nil, err
		}
		t.scope.Observed = seen
	}
	probed, err := t.reader.all(ctx, t.Action.Probes(), t.scope)
	if err != nil {
		return nil, err
	}
	t.scope.Probed = probed
	failpoint.Reach(failpoint.VerifyRead)
	return t.Action.Verify(t.scope)
}

func failures(checks []writ.Check) (names []string) {
	for _, c := range checks {
		if !c.Passed {
			names = append(names, c.Name)
		}
	}
	return names
}

// pause waits, and reports whether there is still time afterwards.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

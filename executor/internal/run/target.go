package run

import (
	"context"
	"errors"
	"fmt"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/disk"
	"writ/executor/internal/journal"
	"writ/failpoint"
	"writ/fault"
)

// reader is a system that can only be read.
type reader System

// read makes one reading call.
func (r reader) read(ctx context.Context, call catalog.Call) (catalog.Seen, error) {
	if writes, known := r.Verbs[call.Verb]; writes || !known {
		return catalog.Seen{}, connector.Errorf(writ.NotExecuted, "not_a_read", 0, "The verb %s does not read, and only reading is allowed here.", call.Verb)
	}
	return r.Target.Do(ctx, call)
}

// all makes the readings of an action.
func (r reader) all(ctx context.Context, readings []catalog.Reading, scope *catalog.Scope) (map[string]catalog.Seen, error) {
	seen := map[string]catalog.Seen{}
	for _, reading := range readings {
		call, err := reading.Call(scope)
		if err != nil {
			return nil, err
		}
		if seen[reading.Name], err = r.read(ctx, call); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// result is what the journal keeps of what came of one write.
type result struct {
	Name    string       `json:"name"` // what its answer is called
	Outcome writ.Outcome `json:"outcome"`
	Reason  string       `json:"reason"`
	Text    string       `json:"text"`
	Seen    catalog.Seen `json:"seen"` // redacted
}

// write makes the writing calls of the step and waits until their work is done.
func (t *task) write(ctx, keep context.Context, system System) error {
	t.scope.Applied = map[string]catalog.Seen{}
	for i, apply := range t.Action.Applies() {
		wanted, err := apply.Wanted(t.scope)
		if err != nil {
			return t.partly(&stop{writ.NotExecuted, "expression_failed", sentence(err)})
		}
		if !wanted {
			continue
		}
		call, err := apply.Call(t.scope)
		if err != nil {
			return t.partly(&stop{writ.NotExecuted, "expression_failed", sentence(err)})
		}
		answer, err := t.send(ctx, keep, system, i, apply.Name, call)
		if err != nil {
			return err
		}
		t.applied++
		if apply.Name != "" {
			t.scope.Applied[apply.Name] = answer
		}
	}
	for _, wait := range t.Action.Waits() {
		if err := t.wait(ctx, wait); err != nil {
			return err
		}
	}
	return t.Journal.Append(keep, t.entry(journal.Applied, writ.At(t.Sys.Now()), body(nil)))
}

// send is the only place from which a write leaves for a target: after its
// intent is on disk, and once.
func (t *task) send(ctx, keep context.Context, system System, number int, name string, call catalog.Call) (catalog.Seen, error) {
	if !system.Verbs[call.Verb] {
		return catalog.Seen{}, t.partly(&stop{writ.NotExecuted, "not_a_write", fmt.Sprintf("The system has no writing verb %s.", call.Verb)})
	}
	if ctx.Err() != nil {
		return catalog.Seen{}, t.partly(&stop{writ.NotExecuted, "timeout", "The time of the step was over before it could act."})
	}
	sent := writ.Sent{
		At: writ.At(t.Sys.Now()), Verb: call.Verb, Path: t.clean(call.Path),
		Digest: catalog.StableDigest(call), Mark: t.Sys.NewID("mark"),
	}
	entry := t.entry(journal.Sent, sent.At, body(sent))
	entry.Call, entry.Mark = number, sent.Mark
	if err := t.Journal.Append(keep, entry); fault.ReasonOf(err) == disk.Full {
		return catalog.Seen{}, t.partly(&stop{writ.NotExecuted, disk.Full, fault.TextOf(err)})
	} else if err != nil {
		return catalog.Seen{}, err
	}
	t.receipt.Sent = append(t.receipt.Sent, sent)

	failpoint.Reach(failpoint.SendRecorded)
	answer, failure := system.Target.Do(ctx, call)

	failpoint.Reach(failpoint.SendRead)
	came := result{Name: name, Outcome: writ.Done, Seen: t.shown(answer)}
	if failure != nil {
		came = blame(failure)
		came.Text = t.clean(came.Text)
	}
	entry = t.entry(journal.Result, writ.At(t.Sys.Now()), body(came))
	entry.Call, entry.Mark = number, sent.Mark
	if err := t.Journal.Append(keep, entry); err != nil {
		return catalog.Seen{}, err
	}
	failpoint.Reach(failpoint.ResultRecorded)
	return answer, t.judge(came)
}

// blame reads what a driver says of a write that failed. Whatever it does not
// say clearly is unknown.
func blame(err error) result {
	e, ok := errors.AsType[*connector.Error](err)
	if !ok {
		return result{Outcome: writ.Unknown, Reason: "unknown_outcome", Text: "The write was sent, and what became of it is not known."}
	}
	outcome := e.Outcome
	if outcome != writ.NotExecuted && outcome != writ.Failed {
		outcome = writ.Unknown
	}
	return result{Outcome: outcome, Reason: e.Reason, Text: e.Text}
}

// judge turns what came of a write into the end of the step, nil if it goes on.
func (t *task) judge(came result) error {
	switch came.Outcome {
	case writ.Done:
		return nil
	case writ.NotExecuted, writ.Failed:
		return t.partly(&stop{came.Outcome, came.Reason, came.Text})
	}
	return &stop{writ.Unknown, came.Reason, came.Text}
}

// partly is for a step that ends although one of its writes had been applied:
// the target is then neither as before nor as it should be.
func (t *task) partly(s *stop) *stop {
	if t.applied == 0 || s.outcome == writ.Unknown {
		return s
	}
	return &stop{writ.Unverified, "partly_applied", "Only a part of the step was applied. " + s.detail}
}

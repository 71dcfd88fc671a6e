package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/store"
)

func TestWait(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.propose(request(step("s1", "set", "a"))).ID
		for _, c := range []struct{ asked, took time.Duration }{
			{3 * time.Second, 3 * time.Second}, {0, 0}, {-time.Hour, 0}, {time.Hour, 20 * time.Second},
		} {
			begin := time.Now()
			got, err := w.Wait(t.Context(), planner, id, c.asked)
			if took := time.Since(begin); err != nil || got.State != model.AwaitingApproval || took != c.took {
				t.Errorf("waiting %s took %s: %v, %v", c.asked, took, got, err)
			}
		}
		type answer struct {
			c   *model.Change
			err error
		}
		answers := make(chan answer, 8)
		for range cap(answers) {
			go func() {
				c, err := w.Wait(t.Context(), planner, id, 20*time.Second)
				answers <- answer{c, err}
			}()
		}
		w.settle()
		begin := time.Now()
		w.approve(id, alice)
		for range cap(answers) {
			if a := <-answers; a.err != nil || a.c.State == model.AwaitingApproval {
				t.Errorf("whoever waited was told %v, %v", a.c, a.err)
			}
		}
		if c, err := w.Wait(t.Context(), planner, id, time.Hour); err != nil || c.State != model.Done || time.Since(begin) != 0 {
			t.Errorf("waiting for what is done took %s: %v, %v", time.Since(begin), c, err)
		}
	})
}

func TestWait_endsWithItsCaller(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		id := w.propose(request(step("s1", "set", "a"))).ID
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := w.Wait(ctx, planner, id, 20*time.Second); fault.CodeOf(err) != fault.Timeout || time.Since(begin) != time.Second {
			t.Errorf("after %s it answers %v", time.Since(begin), err)
		}
		_, err := w.Wait(t.Context(), stranger, id, time.Hour)
		refused(t, "wait for what one may not see", err, fault.NotFound, "")
		_, err = w.Wait(t.Context(), planner, "chg_none", time.Hour)
		refused(t, "wait for nothing", err, fault.NotFound, "")
	})
}

// What another agent proposed does not exist for an agent.
func TestVisibility(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		mine := w.propose(request(step("s1", "set", "a"))).ID
		theirs, err := w.Propose(t.Context(), stranger, request(step("s1", "set", "b")), "")
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		_, none := w.Change(t.Context(), planner, "chg_none")
		for name, read := range map[string]func(model.Caller, string) error{
			"change":   func(who model.Caller, id string) error { _, err := w.Change(t.Context(), who, id); return err },
			"review":   func(who model.Caller, id string) error { _, err := w.Review(t.Context(), who, id); return err },
			"artifact": func(who model.Caller, id string) error { _, err := w.Artifact(t.Context(), who, id); return err },
			"events": func(who model.Caller, id string) error {
				_, err := w.Events(t.Context(), who, store.EventFilter{ChangeID: id})
				return err
			},
		} {
			if err := read(planner, mine); err != nil {
				t.Errorf("read the %s of one's own: %v", name, err)
			}
			for _, who := range []model.Caller{alice, olga, audrey} {
				if err := read(who, theirs.ID); err != nil {
					t.Errorf("read the %s as %s: %v", name, who.Name, err)
				}
			}
			err := read(planner, theirs.ID)
			refused(t, "read the "+name+" of another's", err, fault.NotFound, "")
			if strings.ReplaceAll(err.Error(), theirs.ID, "chg_none") != none.Error() {
				t.Errorf("the %s of another's is %q, that of nothing is %q", name, err, none)
			}
		}
		_, err = w.Events(t.Context(), planner, store.EventFilter{})
		refused(t, "read all events", err, fault.Denied, "")
		for who, want := range map[string][]string{"planner": {mine}, "audrey": {mine, theirs.ID}} {
			list, err := w.Changes(t.Context(), map[string]model.Caller{"planner": planner, "audrey": audrey}[who], store.ChangeFilter{Requester: ""})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range list {
				got = append(got, c.ID)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s sees %v, want %v", who, got, want)
			}
		}
		list, err := w.Changes(t.Context(), planner, store.ChangeFilter{Requester: "stranger"})
		if err != nil || len(list) != 1 || list[0].ID != mine {
			t.Errorf("asking for another's changes gave %v, %v", list, err)
		}
	})
}

func TestArtifact_ofARun(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		original, undoing := w.halfway()
		w.approve(undoing.ID, alice)
		a, err := w.Artifact(t.Context(), planner, original.ID)
		if err != nil {
			t.Fatal(err)
		}
		text := a.Markdown()
		for _, want := range []string{undoing.ID, "approved_by human:alice", "bak_s1", "value_matches passed=true", "step.ended by agent:planner s2 failed", "mock/a", "released"} {
			if !strings.Contains(text, want) {
				t.Errorf("the artifact does not say %q:\n%s", want, text)
			}
		}
	})
}

// A policy may allow what it likes: what is forbidden stays so, and what writes
// waits for a person.
//
// Case: C138.
func TestDecide_policyThatAllowsEverything(t *testing.T) {
	t.Parallel()
	const lax = `
policy: lax
irreversible_allowed: [mock.burn]
rules: [{id: all, when: 'true', effect: auto}]
examples: [{name: a read, change: {class: read_only}, expect: auto}]
`
	for action, want := range map[string]model.State{
		"read": model.Done, "set": model.AwaitingApproval, "burn": model.AwaitingApproval, "wipe": model.AwaitingApproval, "never": model.Denied,
	} {
		t.Run(action, func(t *testing.T) {
			runWith(t, lax, func(t *testing.T, w *world) {
				if c := w.propose(request(step("s1", action, "a"))); c.State != want {
					t.Errorf("it is %s, want %s", c.State, want)
				}
			})
		})
	}
}

// Whatever a policy cannot judge is denied.
//
// Case: C023.
func TestDecide_policyThatFails(t *testing.T) {
	runWith(t, `
policy: broken
rules:
  - {id: all, when: 'true', effect: auto}
  - {id: breaks, when: 'change.entities[1] == "x"', effect: deny, reason: Never.}
examples: [{name: two, change: {class: read_only, entities: [a, b]}, expect: auto}]
`, func(t *testing.T, w *world) {
		if c := w.propose(request(step("s1", "read", "a"))); c.State != model.Denied || c.Code() != fault.Denied {
			t.Errorf("it is %s", c.State)
		}
	})
}

func TestPipeline_manyChangesAtOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		errs := w.atOnce(24, func(who model.Caller, i int) error {
			c, err := w.Propose(t.Context(), planner, request(step("s1", "set", string(rune('a'+i%8)))), fmt.Sprint(i))
			if err != nil {
				return err
			}
			r, err := w.Review(t.Context(), who, c.ID)
			if err != nil {
				return err
			}
			if _, err := w.Approve(t.Context(), who, c.ID, pipeline.Agreement{EnvelopeDigest: r.EnvelopeDigest, ShownDigest: r.ShownDigest}); err != nil {
				return err
			}
			for range 100 {
				if c, err = w.Wait(t.Context(), planner, c.ID, 50*time.Millisecond); err != nil || c.State.Ended() {
					return err
				}
				if _, err := w.Execute(t.Context(), olga, c.ID); err != nil && fault.CodeOf(err) != fault.Conflict && fault.CodeOf(err) != fault.Spent {
					return err
				}
			}
			return fault.New(fault.Timeout, "%s is still %s", c.ID, c.State)
		})
		for i, err := range errs {
			if err != nil {
				t.Errorf("change %d: %v", i, err)
			}
		}
		if n := w.executor.sent(); n != 24 {
			t.Errorf("%d writs were sent for 24 changes", n)
		}
	})
}

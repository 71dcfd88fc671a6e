package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"writ"
	"writ/api"
	"writ/client"
	"writ/connector/recorder"
	"writ/fault"
)

// The kinds of changes that are crashed.
const (
	kindSet       = "set"       // one step
	kindStop      = "stop"      // two steps, the second is refused; what undoes the first is approved
	kindRollback  = "rollback"  // the same, and undoing it was approved with it
	kindCreate    = "create"    // work that goes on at the target
	kindReconcile = "reconcile" // the answer is lost; a person settles it
	kindAway      = "away"      // the executor is not there when it is approved
)

// arm is a point at which a program kills itself.
type arm struct{ victim, where string }

// cycle is one change, from its proposal to its end, with crashes in between.
type cycle struct {
	*installation
	kind     string
	key      string
	proposal api.Proposal
	patience time.Duration // how long it is driven between two crashes
	values   []string      // what each step leaves at the target, unlike anything else
	vmids    []int         // 0 for a container that is made

	id        string // acknowledged
	approved  map[string]bool
	settled   map[string]bool
	undo      string
	late      string // of the two changes the one that is claimed, and whose writ never arrived: it ends when that is out of date
	killed    bool   // a crash came
	problems  []string
	unknowns  int
	undecided int // the probe could not tell
}

func (in *installation) newCycle(kind string) *cycle {
	in.next++
	c := &cycle{installation: in, kind: kind, key: fmt.Sprintf("key-%d", in.next), patience: 4 * patience, approved: map[string]bool{}, settled: map[string]bool{}}
	steps := 1
	if kind == kindStop || kind == kindRollback {
		steps = 2
	}
	for i := range steps {
		value := fmt.Sprintf("value-%d-%d-end", in.next, i)
		if kind == kindCreate {
			c.add(0, value, "proxmox.create_lxc", writ.Object{"node": "pve", "hostname": value, "storage": "local-lvm", "disk_gib": int64(1),
				"ostemplate": "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"})
			continue
		}
		vmid := in.free()
		c.add(vmid, value, "proxmox.set_lxc_description", writ.Object{"node": "pve", "vmid": int64(vmid), "description": value})
	}
	c.proposal.OnFailure = writ.Stop
	last := fmt.Sprintf("/api2/json/nodes/pve/lxc/%d/config", c.vmids[len(c.vmids)-1])
	switch kind {
	case kindRollback:
		c.proposal.OnFailure = writ.Rollback
		fallthrough
	case kindStop:
		in.pve.Inject(recorder.Fault{Method: http.MethodPut, Path: last, Mode: "answer", Status: http.StatusForbidden, Body: `{"data":null}`, Times: 1})
	case kindReconcile:
		in.pve.Inject(recorder.Fault{Method: http.MethodPut, Path: last, Mode: "cut_after", Times: 1})
	}
	return c
}

func (c *cycle) add(vmid int, value, action string, params writ.Object) {
	s := api.ProposedStep{ID: fmt.Sprintf("s%d", len(c.values)+1), ActionType: action, Params: params}
	if n := len(c.values); n > 0 {
		s.Needs = []string{fmt.Sprintf("s%d", n)}
	}
	c.proposal.Steps = append(c.proposal.Steps, s)
	c.values, c.vmids = append(c.values, value), append(c.vmids, vmid)
}

func (c *cycle) wrong(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// struck reports whether what does not run was killed, as only a point does that
// it is armed with: nothing else ends a program that way.
func (in *installation) struck() bool {
	for _, v := range []*victim{in.acts, in.gate} {
		if v.alive() {
			continue
		}
		if s, ok := v.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
			return false
		}
	}
	return !in.up()
}

// up reports whether both programs run.
func (in *installation) up() bool { return in.gate.alive() && in.acts.alive() }

// raise starts what does not run and says whether all of it came to answer.
func (in *installation) raise() bool {
	ok := true
	for _, v := range []*victim{in.acts, in.gate} {
		if !v.alive() {
			ok = v.start() && ok
		}
	}
	return ok
}

// run drives the change through the crashes, one after the other, and at last
// without any. What then still moves is waited for.
func (c *cycle) run(ctx context.Context, arms []arm) {
	for _, a := range arms {
		c.victim(a.victim).arm(a.where)
		c.raise()
		c.drive(ctx)
		if !c.up() {
			c.killed = true
		}
		c.gate.arm("")
		c.acts.arm("")
	}
	c.finish(ctx)
}

// finish lets it come to its end without a crash, and then looks at everything.
func (c *cycle) finish(ctx context.Context) {
	if !c.raise() {
		c.t.Fatalf("a program does not start again:\n%s\n%s", c.gate.log(), c.acts.log())
	}
	over := c.drive(ctx)
	if !over && c.struck() { // by a point that it came to after it was driven, and before it was disarmed
		c.killed = true
		c.raise()
		over = c.drive(ctx)
	}
	if !over {
		c.t.Fatalf("%s does not come to its end: %s", c.kind, c.story(c.id))
	}
	c.pve.Release()
	c.judge(ctx)
}

func (c *cycle) victim(name string) *victim {
	if name == "gate" {
		return c.gate
	}
	return c.acts
}

// drive does what requester and approver do until the change has ended, and says
// whether it has. It gives up when a program is gone.
func (c *cycle) drive(ctx context.Context) bool {
	deadline := time.Now().Add(c.patience)
	for c.up() && time.Now().Before(deadline) {
		if c.id == "" {
			ch, err := c.agent.Propose(ctx, c.proposal, c.key)
			if err != nil {
				c.pause(ctx)
				continue
			}
			c.id = ch.ID
		}
		if over := c.push(ctx, c.id); !over {
			continue
		}
		if c.kind != kindStop || c.late != "" {
			return true
		}
		if over, asks := c.pushUndo(ctx); !asks || over {
			return true
		}
	}
	return false
}

// pause lets a little time go by before something is tried again.
func (in *installation) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// pushUndo drives the change that undoes the first step, if there is to be one.
func (c *cycle) pushUndo(ctx context.Context) (over, asks bool) {
	if c.undo == "" {
		ch, err := c.alice.Change(ctx, c.id)
		if err != nil {
			return false, true
		}
		half := ch.State == "failed" && len(ch.Receipts) > 0 && ch.Receipts[0].Outcome == writ.Done
		if !half {
			return true, false
		}
		list, err := c.alice.Changes(ctx, client.ChangeFilter{Limit: 5})
		at := slices.IndexFunc(list.Changes, func(u api.Change) bool { return u.RollbackOf == c.id })
		if err != nil || at < 0 {
			c.pause(ctx) // the gate proposes it by itself
			return false, true
		}
		c.undo = list.Changes[at].ID
	}
	return c.push(ctx, c.undo), true
}

// push does the next thing that a change waits for, and says whether it has ended.
func (c *cycle) push(ctx context.Context, id string) bool {
	ch, err := c.alice.Change(ctx, id)
	if err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			c.wrong("%s was acknowledged and is gone", id)
			return true
		}
		c.pause(ctx)
		return false
	}
	switch {
	case ch.State == "awaiting_approval":
		if c.approved[id] {
			c.wrong("the approval of %s was acknowledged and is gone", id)
		}
		c.approve(ctx, id)
	case ch.State == "approved":
		if ch.Trouble != nil { // held up
			_, _ = c.agent.Execute(ctx, id)
		}
		c.pause(ctx)
	case ch.State == "unknown" && (!c.settled[id] && c.kind == kindReconcile):
		c.settle(ctx, ch)
	case ch.Ended:
		return true
	case ch.State == "claimed" && c.never(ctx, ch):
		c.late = id
		return true
	default:
		c.pause(ctx)
	}
	return false
}

func (c *cycle) approve(ctx context.Context, id string) {
	review, err := c.alice.Review(ctx, id)
	if err != nil {
		return
	}
	if c.kind == kindAway && !c.killed && id == c.id && c.acts.alive() {
		c.acts.kill()
		defer c.acts.start()
	}
	_, err = c.alice.Approve(ctx, id, api.Agreement{EnvelopeDigest: review.EnvelopeDigest, ShownDigest: review.ShownDigest, Phrase: review.Phrase})
	if err == nil {
		c.approved[id] = true
		if c.kind == kindAway {
			c.heldUp(ctx, id)
		}
	}
}

// heldUp waits until the gate has noticed that the executor is away.
func (c *cycle) heldUp(ctx context.Context, id string) {
	for c.gate.alive() {
		if ch, err := c.alice.Change(ctx, id); err == nil && (ch.State != "approved" || ch.Trouble != nil) {
			return
		}
		c.pause(ctx)
	}
}

// never reports whether the executor runs and does not know a run: its writ was
// lost with the process.
func (c *cycle) never(ctx context.Context, ch api.Change) bool {
	var n int
	err := c.journal().QueryRowContext(ctx, "SELECT count(*) FROM writs WHERE run = ?", ch.RunID).Scan(&n)
	if err != nil || n > 0 {
		return false
	}
	// It may just be handed over: only what the gate asked for in vain is lost.
	ch, err = c.alice.Wait(ctx, ch.ID, 700*time.Millisecond)
	if err != nil || ch.State != "claimed" {
		return false
	}
	err = c.journal().QueryRowContext(ctx, "SELECT count(*) FROM writs WHERE run = ?", ch.RunID).Scan(&n)
	return err == nil && n == 0 && c.up()
}

// settle lets the executor look and decides what fits what it found, which must
// be what the target knows.
func (c *cycle) settle(ctx context.Context, ch api.Change) {
	probe, err := c.alice.Probe(ctx, ch.ID)
	if err != nil {
		if code := fault.CodeOf(err); code == fault.Conflict {
			c.wrong("an unknown change cannot be reconciled: %v", err)
			c.settled[ch.ID] = true
		}
		c.pause(ctx)
		return
	}
	c.take()
	s := api.Settlement{ShownDigest: probe.ShownDigest, Phrase: probe.Phrase, Note: "looked at the target"}
	switch c.truth(probe) {
	case writ.Happened:
		s.Resolution = "adopt"
	case writ.DidNotHappen:
		s.Resolution = "absent"
	}
	if !slices.Contains(probe.Choices, s.Resolution) {
		c.wrong("what is true (%s) is not among the choices %v:\n%s", s.Resolution, probe.Choices, probe.Text)
		c.settled[ch.ID] = true
		return
	}
	if _, err := c.alice.Reconcile(ctx, ch.ID, s); err == nil {
		c.settled[ch.ID] = true
	}
}

// truth compares each finding with what the target took, and sums it up.
func (c *cycle) truth(probe api.Probe) writ.Verdict {
	all := writ.DidNotHappen
	for _, f := range probe.Findings {
		at := slices.IndexFunc(c.proposal.Steps, func(s api.ProposedStep) bool { return s.ID == f.Step })
		if at < 0 {
			continue // of what undoes a change
		}
		_, done := c.effects(c.values[at])
		is := writ.DidNotHappen
		there := done > 0
		if f.Undo { // it is asked whether the way back happened
			there = c.present(at)
		}
		if there != f.Undo {
			is = writ.Happened
		}
		switch f.Verdict {
		case is:
		case writ.CannotTell:
			c.undecided++
		default:
			c.wrong("the executor says of %s that it %s, and the target knows that it %s:\n%s", f.Step, f.Verdict, is, probe.Text)
		}
	}
	for i := range c.values {
		if c.present(i) {
			all = writ.Happened
		}
	}
	return all
}

// present reports whether a value is at the target now.
func (c *cycle) present(i int) bool {
	if c.vmids[i] == 0 {
		for _, g := range c.pve.Guests() {
			if g.Name == c.values[i] {
				return true
			}
		}
		return false
	}
	return strings.Contains(c.pve.ConfigText(c.vmids[i]), c.values[i])
}

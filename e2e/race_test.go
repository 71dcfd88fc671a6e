package e2e_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"writ"
	"writ/api"
	"writ/client"
	"writ/fault"
)

// racers is how many try the same thing at the same time, each over connections
// of its own. In the whole run those who execute are processes.
const racers = 64

// TestRace lets many at once approve, execute, spend and lock the same thing,
// and checks with porcupine that what they were told is a history of one ticket
// that is used once, and of one lock that one holds at a time.
func TestRace(t *testing.T) {
	t.Parallel()
	bin, err := crashBuild()
	if err != nil {
		t.Fatal(err)
	}
	in := newInstallation(t, bin)
	in.raise()
	ctx := t.Context()
	t.Run("approve", func(t *testing.T) {
		id, agree := in.asked(ctx, in.free())
		linear(t, ticketModel(), in.race(ticket, func(c *client.Client, _ int) error {
			_, err := c.Approve(ctx, id, agree)
			return err
		}))
	})
	t.Run("execute", func(t *testing.T) {
		id := in.held(ctx, []int{in.free()})[0]
		linear(t, ticketModel(), in.race(ticket, func(c *client.Client, _ int) error {
			if *crashWhole {
				return in.process("execute", id)
			}
			_, err := c.Execute(ctx, id)
			return err
		}))
	})
	t.Run("lock", func(t *testing.T) {
		vmid := in.free()
		ids := in.held(ctx, repeat(vmid, racers))
		linear(t, lockModel(), in.raceLock(ctx, ids))
	})
	t.Run("spend", func(t *testing.T) {
		sealed := in.undelivered(ctx)
		linear(t, ticketModel(), in.race(ticket, func(*client.Client, int) error { return in.post(ctx, sealed) }))
	})
	in.take()
	for _, w := range in.writes {
		if n, _ := in.effects(w.text); n > 1 {
			t.Errorf("%s reached the target %d times", w.text, n)
		}
	}
	in.verified()
}

func repeat(vmid, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = vmid
	}
	return all
}

// asked proposes a change of a container and returns what agrees to it.
func (in *installation) asked(ctx context.Context, vmid int) (string, api.Agreement) {
	in.t.Helper()
	in.next++
	params := writ.Object{"node": "pve", "vmid": int64(vmid), "description": fmt.Sprintf("race-%d-end", in.next)}
	ch, err := in.agent.Propose(ctx, api.Proposal{Steps: []api.ProposedStep{{ActionType: "proxmox.set_lxc_description", Params: params}}}, "")
	for err == nil && (ch.State == "proposed" || ch.State == "planned") {
		ch, err = in.alice.Wait(ctx, ch.ID, patience)
	}
	if err != nil {
		in.t.Fatal(err)
	}
	review, err := in.alice.Review(ctx, ch.ID)
	if err != nil {
		in.t.Fatal(err)
	}
	return ch.ID, api.Agreement{EnvelopeDigest: review.EnvelopeDigest, ShownDigest: review.ShownDigest, Phrase: review.Phrase}
}

// held returns changes that are approved and wait because the executor was away.
func (in *installation) held(ctx context.Context, vmids []int) (ids []string) {
	in.t.Helper()
	agreements := map[string]api.Agreement{}
	for _, vmid := range vmids {
		id, agree := in.asked(ctx, vmid)
		ids, agreements[id] = append(ids, id), agree
	}
	in.acts.kill()
	for _, id := range ids {
		if _, err := in.alice.Approve(ctx, id, agreements[id]); err != nil {
			in.t.Fatal(err)
		}
	}
	for _, id := range ids {
		for {
			ch, err := in.alice.Change(ctx, id)
			if err != nil || ch.State != "approved" {
				in.t.Fatalf("%s is %s: %v", id, ch.State, err)
			}
			if ch.Trouble != nil {
				break
			}
			in.pause(ctx)
		}
	}
	in.acts.start()
	return ids
}

// undelivered returns a sealed writ that the gate made and never handed over.
func (in *installation) undelivered(ctx context.Context) []byte {
	in.t.Helper()
	id, agree := in.asked(ctx, in.free())
	in.gate.arm("dispatch.audited:1")
	_, _ = in.alice.Approve(ctx, id, agree)
	<-in.gate.gone
	in.gate.arm("")
	file := url.URL{Scheme: "file", Path: in.path("gate/gate.db"), RawQuery: "mode=ro"}
	db, err := sql.Open("sqlite", file.String())
	if err != nil {
		in.t.Fatal(err)
	}
	defer db.Close()
	var body []byte
	if err := db.QueryRowContext(ctx, "SELECT body FROM changes WHERE id = ?", id).Scan(&body); err != nil {
		in.t.Fatal(err)
	}
	var c struct{ Writ []byte }
	if err := json.Unmarshal(body, &c); err != nil || len(c.Writ) == 0 {
		in.t.Fatalf("there is no writ: %v", err)
	}
	return c.Writ
}

// post hands a writ to the executor, as the gate does.
func (in *installation) post(ctx context.Context, sealed []byte) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", in.path("run/executor.sock"))
	}
	c := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://executor"+writ.PathWrits, bytes.NewReader(sealed))
	if err != nil {
		return err
	}
	answer, err := c.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusAccepted {
		return nil
	}
	var r writ.Refusal
	if err := json.NewDecoder(answer.Body).Decode(&r); err != nil {
		return err
	}
	return fault.New(r.Code, "%s", r.Text)
}

// process runs the command line as a process of its own, and returns what its
// status stands for.
func (in *installation) process(args ...string) error {
	cmd := exec.Command(filepath.Join(in.bin, "writ"), args...)
	cmd.Env = in.env
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	for _, code := range []fault.Code{fault.Spent, fault.Conflict} {
		if cmd.ProcessState.ExitCode() == code.Row().Exit {
			return fault.New(code, "%s", out)
		}
	}
	return fmt.Errorf("%w: %s", err, out)
}

// input is what a racer did.
type input struct {
	what string
	who  int
}

const (
	ticket  = "use"
	acquire = "acquire"
	release = "release"
)

// race lets all do the same at once and returns what each was told, and when.
func (in *installation) race(what string, do func(c *client.Client, i int) error) []porcupine.Operation {
	in.t.Helper()
	history := make([]porcupine.Operation, racers)
	begin := make(chan struct{})
	clock := time.Now()
	var all sync.WaitGroup
	for i := range history {
		c := in.caller("alice")
		all.Go(func() {
			<-begin
			call := time.Since(clock).Nanoseconds()
			err := do(c, i)
			history[i] = porcupine.Operation{ClientId: i, Input: input{what, i}, Output: fault.CodeOf(err), Call: call, Return: time.Since(clock).Nanoseconds()}
			if err == nil {
				history[i].Output = fault.Code("")
			}
		})
	}
	close(begin)
	all.Wait()
	return history
}

// raceLock lets each execute its own change of the same container until it has
// ended. What is read of its locks afterwards says how long it held them.
func (in *installation) raceLock(ctx context.Context, ids []string) []porcupine.Operation {
	clock := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	note := func(i int, what string, call int64, code fault.Code) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: i, Input: input{what, i}, Output: code, Call: call, Return: time.Since(clock).Nanoseconds()})
	}
	in.race(acquire, func(c *client.Client, i int) error {
		var call int64
		for {
			call = time.Since(clock).Nanoseconds()
			_, err := c.Execute(ctx, ids[i])
			code := fault.CodeOf(err)
			if err == nil {
				code = ""
			}
			if code != "" && code != fault.Conflict {
				return err // too late
			}
			note(i, acquire, call, code)
			if code == "" {
				break
			}
			if time.Since(clock) > 5*time.Second && !*crashWhole {
				return nil
			}
		}
		// It may be given back before the call that took it has returned.
		for {
			ch, err := c.Wait(ctx, ids[i], patience)
			if err != nil || ch.Ended {
				note(i, release, call, "")
				return err
			}
		}
	})
	return history
}

// ticketModel is a ticket: it can be used once, and whoever comes later is told so.
func ticketModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return false },
		Step: func(state, in, out any) (bool, any) {
			if used := state.(bool); used {
				return out == fault.Spent, true
			}
			return out == fault.Code(""), true
		},
		DescribeOperation: describe,
	}
}

// lockModel is a lock: one holds it at a time, and only who holds it gives it back.
func lockModel() porcupine.Model {
	const nobody = -1
	return porcupine.Model{
		Init: func() any { return nobody },
		Step: func(state, in, out any) (bool, any) {
			holder, op := state.(int), in.(input)
			switch {
			case op.what == release:
				return holder == op.who, nobody
			case out == fault.Conflict:
				return holder != nobody, holder
			}
			return holder == nobody, op.who
		},
		DescribeOperation: describe,
	}
}

func describe(in, out any) string {
	op := in.(input)
	return strings.TrimSpace(fmt.Sprintf("%s by %d: %v", op.what, op.who, out))
}

// linear fails the test unless the history is one of the model.
func linear(t *testing.T, m porcupine.Model, history []porcupine.Operation) {
	t.Helper()
	count := map[string]int{}
	for _, op := range history {
		count[fmt.Sprintf("%s %q", op.Input.(input).what, op.Output)]++
	}
	t.Logf("%d operations: %v", len(history), count)
	if len(history) < racers/2 {
		t.Errorf("there are only %d operations", len(history))
	}
	if result := porcupine.CheckOperationsTimeout(m, history, patience); result != porcupine.Ok {
		for _, op := range history {
			t.Logf("%d to %d: %s", op.Call, op.Return, describe(op.Input, op.Output))
		}
		t.Errorf("no order of these operations explains what was told: %s", result)
	}
}

package ops

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"writ"
	"writ/api"
	"writ/disk"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// healthGet looks at everything that a change needs on its way.
func healthGet(ctx context.Context, g *Gate, _ model.Caller, _ *none) (api.Health, error) {
	h := api.Health{OK: true, Version: g.Version}
	check := func(name string, holds bool, good, bad, fix string) {
		c := api.HealthCheck{Name: name, OK: holds, Text: good}
		if !holds {
			c.Text, c.Fix, h.OK = bad, fix, false
		}
		h.Checks = append(h.Checks, c)
	}

	counts, holder, err := g.counts(ctx)
	h.Counts = counts
	check("store", err == nil, "the gate's memory can be read", fault.TextOf(err), "see the log of the gate")

	err = g.Pipeline.Audit.CatchUp(ctx)
	auditFix := "make room on the disk of the audit, then stop both and start again: writ up"
	if fault.ReasonOf(err) == disk.Full {
		_, auditFix, _ = strings.Cut(fault.TextOf(err), "Run: ") // it goes on by itself
	}
	check("audit", err == nil, "every event is in the audit", fault.TextOf(err), auditFix)
	err = g.Pipeline.OnTime(ctx)
	check("clock", err == nil, "the clock is not behind what was written", fault.TextOf(err), "writ recover --new-epoch")
	halts, err := g.Pipeline.Halts(ctx, false)
	halt := ""
	if err == nil && len(halts) > 0 {
		halt = halts[0].ID
		err = fault.New(fault.Denied, "%s stopped %s at %s, so none of it is done", model.User(halts[0].By), halts[0].What(), halts[0].At)
	}
	check("halts", err == nil, "nobody has stopped anything", fault.TextOf(err), "writ lift "+halt)
	if where, err := g.Record.CopyState(); where != "" {
		check("checkpoint", err == nil, "the newest checkpoint is copied to "+where, fault.TextOf(err), "see that the gate can write to "+where)
	}
	for _, w := range g.Record.WitnessStates() {
		check("witness "+w.Name, w.Err == nil, fmt.Sprintf("the witness has signed the first %d events", w.Events), fault.TextOf(w.Err), witnessFix(w.Err))
	}

	hello, err := g.Pipeline.Executor.Hello(ctx)
	check("executor", err == nil, "the executor "+hello.Executor+" answers", fault.TextOf(err), helloFix(err))
	if err != nil {
		return h, nil
	}
	if r := hello.Refuses; r != nil {
		_, fix, _ := strings.Cut(r.Text, "Run: ")
		check("executor ready", false, "", "The executor takes nothing now. "+r.Text, fix)
	}
	public, _ := g.Pipeline.Key.Public().(ed25519.PublicKey)
	check("trust", slices.Contains(hello.GateKeyIDs, writ.KeyID(public)), "the executor takes the writs of this gate",
		"the executor takes the writs of other gates only", "writ-executor set-gate-key "+base64.StdEncoding.EncodeToString(public)+" --dir EXECUTOR")
	check("vault", !hello.Locked, "the vault is unlocked", "the vault is locked, so the executor refuses everything", "writ vault unlock")
	check("catalog", hello.CatalogDigest == g.Pipeline.Catalog.Digest(), "gate and executor know the same actions",
		"gate and executor know different actions, so the executor refuses what was changed",
		"give both the same catalog in gate.yaml and executor.yaml, then start both again: writ up")
	err = g.Pipeline.Remembers(ctx, hello)
	check("memory", err == nil, "gate and executor remember the same", fault.TextOf(err), "writ recover")
	check("locks", counts.Orphaned == 0, "no lock is orphaned",
		"a change left a lock behind, which keeps others away until somebody has looked at the target", "writ reconcile "+holder)
	return h, nil
}

// witnessFix says what makes a witness sign.
func witnessFix(err error) string {
	if _, fix, ok := strings.Cut(fault.TextOf(err), "Run: "); ok {
		return fix
	}
	return "see that the gate can reach the witness, and that checkpoint.witnesses in gate.yaml is right"
}

// helloFix says what makes an executor answer.
func helloFix(err error) string {
	if _, fix, ok := strings.Cut(fault.TextOf(err), "Run: "); ok {
		return fix
	}
	return "writ up"
}

// counts counts what an operator may have to look at, and names a change that
// left a lock behind.
func (g *Gate) counts(ctx context.Context) (n api.HealthCounts, holder string, err error) {
	err = g.Pipeline.Store.View(ctx, func(r store.Reader) error {
		waiting, err := r.Changes(store.ChangeFilter{States: []model.State{model.AwaitingApproval}, Limit: countTo})
		if err != nil {
			return err
		}
		running, err := r.Changes(store.ChangeFilter{
			States: []model.State{model.Claimed, model.Executing, model.Verifying, model.RollingBack}, Limit: countTo,
		})
		if err != nil {
			return err
		}
		locks, err := r.Locks(false)
		if err != nil {
			return err
		}
		n.Waiting, n.Running = int64(len(waiting)), int64(len(running))
		for _, l := range locks {
			if l.State == model.LockOrphaned {
				n.Orphaned++
				holder = l.ChangeID
			}
		}
		return nil
	})
	return n, holder, err
}

// countTo is where counting stops.
const countTo = 1000

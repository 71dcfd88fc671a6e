package ops

import (
	"context"

	"writ/api"
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

	counts, err := g.counts(ctx)
	h.Counts = counts
	check("store", err == nil, "the gate's memory can be read", fault.TextOf(err), "see the log of the gate")

	err = g.Pipeline.Audit.CatchUp(ctx)
	check("audit", err == nil, "every event is in the audit file", fault.TextOf(err), "see the log of the gate; nothing is carried out until the audit file can be written")

	hello, err := g.Pipeline.Executor.Hello(ctx)
	check("executor", err == nil, "the executor "+hello.Executor+" answers", fault.TextOf(err), "writ up")
	if err != nil {
		return h, nil
	}
	check("vault", !hello.Locked, "the vault is unlocked", "the vault is locked, so the executor refuses everything", "writ vault unlock")
	check("catalog", hello.CatalogDigest == g.Pipeline.Catalog.Digest(), "gate and executor know the same actions",
		"gate and executor know different actions, so the executor refuses what was changed",
		"give both the same catalog in gate.yaml and executor.yaml, then start both again: writ up")
	check("epoch", hello.Epoch <= g.Pipeline.Epoch, "the epoch is current",
		"the executor has seen a later epoch than the gate's, so it refuses everything", "raise epoch in gate.yaml, then start the gate again: writ up")
	return h, nil
}

// counts counts what an operator may have to look at.
func (g *Gate) counts(ctx context.Context) (n api.HealthCounts, err error) {
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
			}
		}
		return nil
	})
	return n, err
}

// countTo is where counting stops.
const countTo = 1000

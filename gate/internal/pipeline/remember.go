package pipeline

import (
	"context"
	"encoding/json"
	"slices"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// The reasons why nothing that writes is carried out until somebody has looked:
// one of the two memories is older than the other.
const (
	storeRestored   = "store_restored"
	journalRestored = "journal_restored"
	oldEpoch        = "old_epoch"
)

// remembers fails if this gate does not know what its executor did last, or the
// other way round: then an old copy was put in the place of a memory, and what
// was done since is not known here. What only reads may go on.
func (p *Pipeline) remembers(ctx context.Context, id string, hello writ.Hello) error {
	c, err := p.load(ctx, id)
	if err != nil || c.Assessment != nil && c.Assessment.Class == writ.ReadOnly {
		return err
	}
	return p.Remembers(ctx, hello)
}

// Remembers compares what gate and executor remember; see [Pipeline.Start].
func (p *Pipeline) Remembers(ctx context.Context, hello writ.Hello) error {
	if hello.Epoch > p.Epoch {
		return fault.New(fault.Unavailable, "The executor has seen epoch %d, the gate is in epoch %d: its directory was restored from an old copy. "+
			"Nothing is changed until somebody has looked. Run: writ recover", hello.Epoch, p.Epoch).Because(oldEpoch)
	}
	if last := hello.Last; last.Run != "" && p.ownKeys()[last.KeyID] != nil {
		c, err := p.load(ctx, last.ChangeID)
		if code := fault.CodeOf(err); err != nil && code != fault.NotFound {
			return err
		}
		if err != nil || c.RunID != last.Run {
			return fault.New(fault.Unavailable, "The executor carried out %s, which the gate does not remember: its memory was restored from an old copy. "+
				"Nothing is changed until somebody has looked. Run: writ recover", last.Run).Because(storeRestored)
		}
	}
	forgot, err := p.forgot(ctx, hello)
	if err == nil && forgot {
		err = fault.New(fault.Unavailable, "The executor does not remember %s, which it accounted for: its journal was restored from an old copy. "+
			"Nothing is changed until somebody has looked. Run: writ recover", p.newest.Load().run).Because(journalRestored)
	}
	return err
}

// beyond is a sequence that no receipt has.
const beyond = 1 << 30

// account is the newest receipt of this epoch that tells of something sent.
type account struct{ run, key string }

// accountOf returns the account that the receipts of a change are, nil if they
// tell of nothing that was sent: reads go on beside a memory that is too old.
func accountOf(c *model.Change) *account {
	for _, r := range slices.Backward(c.Receipts) {
		if len(r.Sent) == 0 {
			continue
		}
		return &account{c.RunID, writ.SealedBy(r.Sealed)}
	}
	return nil
}

// forgot reports whether the executor does not know the run that it accounted
// for last. Another executor, with a key that does not follow, need not know it.
func (p *Pipeline) forgot(ctx context.Context, hello writ.Hello) (bool, error) {
	newest := p.newest.Load()
	former := func(f writ.FormerKey) bool { return f.KeyID == newest.key }
	if newest == nil || newest.key != hello.KeyID && !slices.ContainsFunc(hello.Former, former) {
		return false, nil
	}
	_, _, err := p.Executor.Receipts(ctx, newest.run, writ.Time{}, beyond, 0)
	if fault.CodeOf(err) == fault.NotFound {
		return true, nil
	}
	return false, err
}

// recent is how many changes are looked through for the newest receipt.
const recent = 200

// recall finds the run of the newest receipt of this epoch. What was accounted
// for in an earlier one, a recovery has looked at.
func (p *Pipeline) recall(ctx context.Context) error {
	var newest writ.Time
	err := p.Store.View(ctx, func(r store.Reader) error {
		ends, err := r.Changes(store.ChangeFilter{Limit: recent, States: []model.State{
			model.Executing, model.Done, model.Failed, model.Unverified, model.Unknown, model.RolledBack, model.RollbackFailed,
		}})
		for _, c := range ends {
			if a := accountOf(c); a != nil && writOf(c).Epoch == p.Epoch && c.EndedAt.After(newest.Time) {
				newest = c.EndedAt
				p.newest.Store(a)
			}
		}
		return err
	})
	return err
}

// stamp is when a writ was issued, and in which epoch.
type stamp struct {
	Epoch    int64     `json:"epoch"`
	IssuedAt writ.Time `json:"issued_at"`
}

// writOf returns the stamp of the writ that a change became; the zero stamp is none.
func writOf(c *model.Change) stamp {
	var sealed struct {
		Payload stamp `json:"payload"`
	}
	if json.Unmarshal(c.Writ, &sealed) != nil {
		return stamp{}
	}
	return sealed.Payload
}

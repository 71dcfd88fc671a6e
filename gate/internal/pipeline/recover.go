package pipeline

import (
	"context"
	"crypto/ed25519"
	"maps"
	"slices"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// Spent is what an executor tells of all that it ever admitted.
type Spent interface {
	// Admitted returns a page of it, by run, from the one after a run on; an empty
	// page is the end.
	Admitted(ctx context.Context, after string) ([]writ.Admitted, error)
	// Raise sends a raise writ.
	Raise(ctx context.Context, sealed []byte) error
}

// Comparison is what gate and executor do not remember alike.
type Comparison struct {
	Epoch, Next int64 // the epoch that is in force, and the one that a recovery raises it to
	Spent       int64 // writs of this gate that the executor has spent
	Foreign     int64 // writs of other gates
	Differences []Difference

	forgotten []forgotten
}

// Difference is one change that a recovery does something about.
type Difference struct {
	Kind     DifferenceKind
	ChangeID string
	RunID    string
	Was      model.State // in the store; "" if it is not there
	Entities []string    // what will be locked
}

// DifferenceKind says what is different, and what a recovery makes of it.
type DifferenceKind string

// The kinds of differences. ForgottenByGate: the executor carried out a run that
// the store does not know; it becomes unknown, and what it wrote to is locked.
// ForgottenByExecutor: the store waits for a run that the executor does not know;
// it becomes unknown. AccountedFor: the executor gave receipts and no longer knows
// of it; the receipts stand. Void: it was open, and is ended.
const (
	ForgottenByGate     DifferenceKind = "forgotten_by_gate"
	ForgottenByExecutor DifferenceKind = "forgotten_by_executor"
	AccountedFor        DifferenceKind = "accounted_for"
	Void                DifferenceKind = "void"
)

// forgotten is a run that the store does not know.
type forgotten struct {
	writ   *writ.Writ
	sealed []byte
}

// Compare lists what gate and executor do not remember alike. It changes nothing.
// The pipeline must not have been started.
func (p *Pipeline) Compare(ctx context.Context, executor Spent) (*Comparison, error) {
	hello, err := p.Executor.Hello(ctx)
	if err != nil {
		return nil, err
	}
	found := &Comparison{Epoch: p.Epoch, Next: max(p.Epoch, hello.Epoch) + 1}
	spent := map[string]bool{}
	taken := map[string]bool{} // changes that are told of already
	keys := p.ownKeys()
	for after := ""; ; {
		page, err := executor.Admitted(ctx, after)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, a := range page {
			w := new(writ.Writ)
			if writ.Open(writ.KindWrit, a.Sealed, keys, w) != nil || w.Purpose != writ.Execute || w.Run != a.Run || a.Run <= after {
				found.Foreign++
				after = max(after, a.Run)
				continue
			}
			found.Spent++
			after, spent[w.Run] = w.Run, true
			was, err := p.load(ctx, w.Envelope.ChangeID)
			if code := fault.CodeOf(err); err != nil && code != fault.NotFound {
				return nil, err
			}
			if err == nil && was.RunID == w.Run {
				continue
			}
			d := Difference{Kind: ForgottenByGate, ChangeID: w.Envelope.ChangeID, RunID: w.Run, Entities: written(&w.Envelope)}
			if err == nil {
				d.Was = was.State
			}
			taken[d.ChangeID] = true
			found.Differences = append(found.Differences, d)
			found.forgotten = append(found.forgotten, forgotten{w, a.Sealed})
		}
	}
	return found, p.compareStore(ctx, found, spent, taken)
}

// compareStore adds what the store holds and the executor does not know.
func (p *Pipeline) compareStore(ctx context.Context, found *Comparison, spent, taken map[string]bool) error {
	all, err := p.inState(ctx, model.States()...)
	if err != nil {
		return err
	}
	for _, c := range slices.Backward(all) {
		d := Difference{ChangeID: c.ID, RunID: c.RunID, Was: c.State, Entities: []string{}}
		switch {
		case taken[c.ID] || c.RunID != "" && spent[c.RunID]:
			continue
		case c.State == model.Claimed, c.State == model.Executing:
			d.Kind, d.Entities = ForgottenByExecutor, c.Entities()
		case !c.State.Ended():
			d.Kind = Void
		case len(c.Receipts) > 0 && writOf(c).Epoch == p.Epoch:
			d.Kind = AccountedFor
		default:
			continue
		}
		found.Differences = append(found.Differences, d)
	}
	return nil
}

// ownKeys returns the keys with which the gate ever signed writs.
func (p *Pipeline) ownKeys() writ.Keyring {
	keys := writ.NewKeyring(p.Key.Public().(ed25519.PublicKey))
	maps.Copy(keys, p.Former)
	return keys
}

// written returns the entities that the steps of an envelope write to.
func written(e *writ.Envelope) []string {
	c := model.Change{Steps: e.Steps}
	return append([]string{}, c.Entities()...)
}

// Recover stores what a comparison found, in one transaction: what was forgotten
// becomes unknown, with its locks, and what was open ends. Then the executor takes
// note of the new epoch and takes no writ of an earlier one. The seam says what
// became of the audit; told reports whether the executor answered.
func (p *Pipeline) Recover(ctx context.Context, executor Spent, found *Comparison, seam writ.Object) (told error, err error) {
	p.Epoch = found.Next
	err = p.update(ctx, func(tx store.Tx, now writ.Time) error {
		counts := map[DifferenceKind]int64{}
		for _, d := range found.Differences {
			counts[d.Kind]++
			if err := p.mend(tx, d, found, now); err != nil {
				return err
			}
		}
		return tx.Append(&model.Event{
			ID: p.Sys.NewID("evt"), Type: model.EpochRaised, Timestamp: now, User: model.Writ, Detail: writ.Object{
				"epoch": found.Next, "was": found.Epoch, "writs_spent": found.Spent, "audit": map[string]any(seam),
				"forgotten_by_gate": counts[ForgottenByGate], "forgotten_by_executor": counts[ForgottenByExecutor],
				"accounted_for": counts[AccountedFor], "void": counts[Void],
			},
		})
	})
	if err != nil {
		return nil, err
	}
	return p.raise(ctx, executor), nil
}

// mend does what a recovery does about one difference.
func (p *Pipeline) mend(tx store.Tx, d Difference, found *Comparison, now writ.Time) error {
	switch d.Kind {
	case Void:
		return p.void(tx, d.ChangeID, now)
	case ForgottenByExecutor:
		c, err := tx.Change(d.ChangeID)
		if err != nil {
			return err
		}
		return p.recovered(tx, c, found.Next, now)
	case ForgottenByGate:
		at := slices.IndexFunc(found.forgotten, func(f forgotten) bool { return f.writ.Run == d.RunID })
		f := found.forgotten[at]
		c, err := tx.Change(d.ChangeID)
		if fault.CodeOf(err) == fault.NotFound {
			c, err = remembered(f.writ), nil
			if err := tx.Insert(c); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		e := f.writ.Envelope
		digest, err := e.Digest()
		if err != nil {
			return err
		}
		c.Steps, c.Envelope, c.Digest, c.Environment, c.Approvals = e.Steps, &e, digest, e.Environment, f.writ.Approvals
		c.RunID, c.Writ, c.Receipts, c.StartedAt = f.writ.Run, f.sealed, nil, f.writ.IssuedAt
		return p.recovered(tx, c, found.Next, now)
	}
	return nil
}

// remembered is what a writ tells of a change that the store has lost. What was
// asked for in words, and what was previewed, is gone.
func remembered(w *writ.Writ) *model.Change {
	e := &w.Envelope
	return &model.Change{
		ID: e.ChangeID, State: model.Proposed, RequestedBy: e.RequestedBy, RequestedAt: w.IssuedAt, UpdatedAt: w.IssuedAt,
		Request: model.Request{OnFailure: e.OnFailure, RollbackOf: e.RollbackOf}, RequestDigest: e.RequestDigest, Summaries: map[string]string{},
		Assessment: &model.Assessment{Class: e.Class, Level: e.RiskLevel, Reasons: []string{}},
		Decision:   &model.Decision{Effect: model.Approve, Count: int64(len(w.Approvals)), PolicyDigest: e.PolicyDigest},
		ValidUntil: w.ExpiresAt,
	}
}

// recovered ends a change whose run one of the two had forgotten: unknown, with a
// lock on all that it wrote to. What only reads left nothing behind.
func (p *Pipeline) recovered(tx store.Tx, c *model.Change, epoch int64, now writ.Time) error {
	from := c.State
	c.Recovery = &model.Recovery{At: now, Epoch: epoch, Was: from}
	c.State, c.UpdatedAt, c.EndedAt, c.Reconciliation = model.Unknown, now, now, nil
	c.Trouble = &model.Trouble{Code: fault.Unknown, Reason: "recovered", Text: "It was carried out, but what came of it was forgotten when a memory was restored from an old copy."}
	if c.Assessment.Class == writ.ReadOnly {
		c.State, c.Trouble.Code = model.Failed, fault.Failed
	}
	if err := tx.Move(c, from); err != nil {
		return err
	}
	e := p.event(c, model.ChangeRecovered, model.Writ, now)
	e.Detail = writ.Object{"epoch": epoch, "was": string(from)}
	if err := tx.Append(e); err != nil {
		return err
	}
	if c.State != model.Unknown {
		return nil
	}
	locks, err := tx.Locks(false)
	if err != nil {
		return err
	}
	for _, entity := range c.OrphanedEntities() {
		at := slices.IndexFunc(locks, func(l model.Lock) bool { return l.Entity == entity })
		switch {
		case at < 0 || locks[at].ChangeID == c.Request.RollbackOf && locks[at].State == model.LockOrphaned:
			err = p.returnLock(tx, c, entity, now)
		case locks[at].ChangeID == c.ID && locks[at].State == model.LockActive:
			if err = tx.EndLock(entity, c.ID, model.LockOrphaned, now); err == nil {
				err = tx.Append(p.lockEvent(c, model.LockLeft, entity, now))
			}
		} // else somebody holds it, and hands it on when they are done
		if err != nil {
			return err
		}
	}
	return nil
}

// handOn gives an entity that is free again to a recovered change that waited for
// it: what is unknown stays locked.
func (p *Pipeline) handOn(tx store.Tx, entity string, now writ.Time) error {
	unknown, err := tx.Changes(store.ChangeFilter{States: []model.State{model.Unknown}, Limit: 1000})
	if err != nil {
		return err
	}
	for _, c := range slices.Backward(unknown) {
		if c.Recovery != nil && slices.Contains(c.OrphanedEntities(), entity) {
			return p.returnLock(tx, c, entity, now)
		}
	}
	return nil
}

// void ends a change that was open when a memory was restored.
func (p *Pipeline) void(tx store.Tx, id string, now writ.Time) error {
	c, err := tx.Change(id)
	if err != nil {
		return err
	}
	from, event := c.State, model.ChangeExpired
	c.State, c.UpdatedAt, c.EndedAt = model.Expired, now, now
	c.Trouble = &model.Trouble{Code: fault.Expired, Reason: "new_epoch", Text: expiredText("new_epoch")}
	if !from.May(model.Expired) {
		c.State, c.Trouble.Code, event = model.Cancelled, fault.Canceled, model.ChangeCancelled
	}
	if err := tx.Move(c, from); err != nil {
		return err
	}
	return tx.Append(p.event(c, event, model.Writ, now))
}

// raise tells the executor of the epoch.
func (p *Pipeline) raise(ctx context.Context, executor Spent) error {
	sealed, err := p.stepless(ctx, writ.Raise, p.Sys.NewID("run"), "")
	if err != nil {
		return err
	}
	return executor.Raise(ctx, sealed)
}

// stepless seals a writ for the executor that there is, which tells it something
// and lets it do nothing.
func (p *Pipeline) stepless(ctx context.Context, purpose writ.Purpose, run, changeID string) ([]byte, error) {
	hello, err := p.Executor.Hello(ctx)
	if err != nil {
		return nil, err
	}
	now := p.Sys.Now()
	return writ.Seal(writ.KindWrit, &writ.Writ{
		Format: writ.FormatWrit, Purpose: purpose, Run: run, Executor: hello.Executor, Nonce: p.Sys.NewSecret(16), Epoch: p.Epoch,
		IssuedAt: writ.At(now), ExpiresAt: writ.At(now.Add(observeFor)), Fences: []writ.Fence{}, Approvals: []writ.Approval{},
		Envelope: writ.Envelope{ChangeID: changeID, Steps: []writ.Step{}},
	}, p.Key)
}

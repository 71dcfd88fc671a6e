package pipeline

import (
	"context"
	"slices"
	"strings"

	"writ"
	"writ/failpoint"
	"writ/fault"
	"writ/gate/internal/artifact"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// Settlement is what an approver decides on a change that left its target in
// doubt: on exactly the text that was shown.
type Settlement struct {
	ShownDigest writ.Digest
	Resolution  model.Resolution
	Phrase      string // the typed phrase, where the executor could not tell
	Note        model.Prose
}

// Probe lets the executor look at what a change, named by its id or by that of
// its run, left in doubt. Nothing is written at the target, and nothing decided.
func (p *Pipeline) Probe(ctx context.Context, who model.Caller, id string) (*model.Change, artifact.Found, []model.Finding, error) {
	c, err := p.doubted(ctx, who, id)
	if err != nil {
		return nil, artifact.Found{}, nil, err
	}
	findings, err := p.probe(ctx, c)
	if err != nil {
		return nil, artifact.Found{}, nil, err
	}
	found := artifact.NewFound(c, findings)
	err = p.update(ctx, func(tx store.Tx, now writ.Time) error {
		e := p.event(c, model.ChangeProbed, who.User(), now)
		e.Detail = evidence(found, findings)
		return tx.Append(e)
	})
	return c, found, findings, err
}

// doubted returns a change that left its target in doubt.
func (p *Pipeline) doubted(ctx context.Context, who model.Caller, id string) (*model.Change, error) {
	if strings.HasPrefix(id, "run_") {
		found, err := p.Changes(ctx, who, store.ChangeFilter{RunID: id, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fault.New(fault.NotFound, "There is no run %.60q. List the changes to find it.", id)
		}
		id = found[0].ID
	}
	c, err := p.Change(ctx, who, id)
	if err != nil {
		return nil, err
	}
	if c.Held() && c.Awaited() {
		if c, err = p.heard(ctx, c); err != nil {
			return nil, err
		}
	}
	if c.UndoneBy != "" {
		return nil, undoneBefore(c.ID, c.UndoneBy)
	}
	if !c.Held() {
		return nil, fault.New(fault.Conflict, "%s is %s and holds no target in doubt: there is nothing to reconcile.", c.ID, c.State).Because("not_in_doubt")
	}
	return c, p.Store.View(ctx, func(r store.Reader) error {
		_, err := openRollbacks(r, c)
		return err
	})
}

// openRollbacks returns what waits to undo a change. It fails if the change was
// undone, or may just be.
func openRollbacks(r store.Reader, c *model.Change) ([]*model.Change, error) {
	tries, err := r.Changes(store.ChangeFilter{RollbackOf: c.ID})
	if err != nil {
		return nil, err
	}
	var open []*model.Change
	for _, t := range tries {
		switch {
		case t.State == model.Done:
			return nil, undoneBefore(c.ID, t.ID)
		case t.State == model.Unknown:
			return nil, fault.New(fault.Conflict, "What became of %s, which was to undo %s, is in doubt. First: writ reconcile %s", t.ID, c.ID, t.ID).Because("rollback_in_doubt")
		case t.State.May(model.Cancelled):
			open = append(open, t)
		case !t.State.Ended():
			return nil, fault.New(fault.Conflict, "%s is being undone by %s. Wait for what comes of it.", c.ID, t.ID).Because("being_undone")
		}
	}
	return open, nil
}

func undoneBefore(id, by string) error {
	return fault.New(fault.Conflict, "%s was undone by %s: there is nothing to reconcile.", id, by).Because("undone_before")
}

// probe asks the executor about the doubtful steps. One that will not look, say
// because the action is no longer what it was, leaves it to people.
func (p *Pipeline) probe(ctx context.Context, c *model.Change) ([]model.Finding, error) {
	doubtful := c.Doubtful()
	if len(doubtful) == 0 {
		return nil, nil // what was done is known; it only stopped half-way
	}
	hello, err := p.Executor.Hello(ctx)
	if err != nil {
		return nil, err
	}
	now := p.Sys.Now()
	sealed, err := writ.Seal(writ.KindWrit, &writ.Writ{
		Format: writ.FormatWrit, Purpose: writ.Probe, Run: c.RunID, Executor: hello.Executor, Nonce: p.Sys.NewSecret(16), Epoch: p.Epoch,
		IssuedAt: writ.At(now), ExpiresAt: writ.At(now.Add(observeFor)), Fences: []writ.Fence{}, Approvals: []writ.Approval{}, Envelope: *c.Envelope,
	}, p.Key)
	if err != nil {
		return nil, err
	}
	all, err := p.Executor.Probe(ctx, sealed)
	failpoint.Reach(failpoint.ProbeAnswered)
	if code := fault.CodeOf(err); code == fault.Refused || code == fault.Denied {
		return unseen(c, doubtful, err), nil
	}
	if err != nil {
		return nil, err
	}
	var findings []model.Finding
	for _, s := range doubtful {
		at := slices.IndexFunc(all, func(f model.Finding) bool { return f.Step == s.ID })
		if at < 0 || all[at].Run != c.RunID || all[at].Executor != hello.Executor || all[at].Entity != s.Entity {
			return nil, fault.New(fault.Refused, "The executor answered about another run or step than %s.", c.ID).Because("other_step")
		}
		findings = append(findings, all[at])
	}
	return findings, nil
}

// unseen is what is known where the executor would not look.
func unseen(c *model.Change, doubtful []*writ.Step, why error) []model.Finding {
	var findings []model.Finding
	for _, s := range doubtful {
		findings = append(findings, model.Finding{Finding: writ.Finding{
			Run: c.RunID, Step: s.ID, Entity: s.Entity, Verdict: writ.CannotTell, Reason: fault.ReasonOf(why), Detail: fault.TextOf(why),
			Sent: []writ.Sent{}, Checks: []writ.Check{}, Fields: []writ.Field{},
		}})
	}
	return findings
}

// Reconcile records one person's decision on what was in doubt, and frees what it
// held. The executor looks once more: what it finds must be what was shown. For
// a roll back, the change that undoes it is returned, which waits for its own
// approval.
func (p *Pipeline) Reconcile(ctx context.Context, who model.Caller, id string, s Settlement) (*model.Change, error) {
	if who.Kind != writ.Human || !who.Has(model.Approver) {
		return nil, fault.New(fault.Denied, "%s may not decide: only a human with the role approver may.", who.User()).Because("not_an_approver")
	}
	c, err := p.doubted(ctx, who, id)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(c.RequestedBy.Name, who.Name) {
		return nil, fault.New(fault.Denied, "You proposed %s yourself; somebody else decides.", c.ID).Because("self_approval")
	}
	findings, err := p.probe(ctx, c)
	if err != nil {
		return nil, err
	}
	found := artifact.NewFound(c, findings)
	if err := s.fits(c, found); err != nil {
		return nil, err
	}
	seen := c.Version
	c, err = p.change(ctx, c.ID, func(tx store.Tx, c *model.Change, now writ.Time) error {
		if c.Version != seen {
			return fault.New(fault.Stale, "%s is no longer as you were shown. Look at it again.", c.ID).Because("shown_differs")
		}
		return p.reconcile(tx, c, who, s, found, findings, now)
	})
	failpoint.Reach(failpoint.ChangeSettled)
	if err != nil || s.Resolution != model.RollBack {
		return c, err
	}
	return p.proposeRollback(ctx, model.Caller{Principal: c.RequestedBy, Roles: []model.Role{model.Requester}}, c)
}

// fits checks a decision against what was found.
func (s *Settlement) fits(c *model.Change, found artifact.Found) error {
	switch {
	case s.ShownDigest != found.ShownDigest:
		return fault.New(fault.Stale, "What you were shown is not what is found now. Look at it again: writ reconcile %s", c.ID).Because("shown_differs")
	case !slices.Contains(found.Choices, s.Resolution):
		return fault.New(fault.Refused, "%s cannot be decided as %q: what was found leaves %v.", c.ID, s.Resolution, found.Choices).Because("does_not_fit")
	case found.Phrase != "" && strings.TrimSpace(s.Phrase) != found.Phrase:
		return fault.New(fault.Denied, "%s needs the typed phrase that was shown.", c.ID).Because("phrase_missing")
	case found.Phrase != "" && strings.TrimSpace(string(s.Note)) == "":
		return fault.New(fault.Denied, "The executor cannot tell, so you vouch for it: say in a note what you saw at the target.").Because("note_missing")
	case len(s.Note) > maxProse:
		return fault.New(fault.Invalid, "A note has up to %d bytes.", maxProse)
	}
	return nil
}

// reconcile stores the decision, moves the change to the end that it makes, and
// frees its locks in the same transaction.
func (p *Pipeline) reconcile(tx store.Tx, c *model.Change, who model.Caller, s Settlement, found artifact.Found, findings []model.Finding, now writ.Time) error {
	from := c.State
	locks, err := tx.Locks(false)
	if err != nil {
		return err
	}
	if s.Resolution != model.RollBack {
		if err := p.withdrawRollbacks(tx, c, who, now); err != nil {
			return err
		}
	}
	all := slices.Clone(findings)
	if before := c.Reconciliation; before != nil {
		for _, f := range before.Findings {
			if !slices.ContainsFunc(findings, func(newer model.Finding) bool { return newer.Step == f.Step }) {
				all = append(all, f)
			}
		}
	}
	c.Reconciliation = &model.Reconciliation{
		By: who.Principal, At: now, Resolution: s.Resolution, Verdict: found.Verdict, Note: s.Note, ShownDigest: found.ShownDigest, Findings: all,
	}
	c.State, c.UpdatedAt = model.StateOf(c.Outcomes()), now
	if c.State == model.Done {
		c.Trouble = nil
	} else if c.Trouble != nil {
		c.Trouble.Code = c.Code()
	}
	if c.State == from {
		err = tx.Amend(c)
	} else {
		err = tx.Move(c, from)
	}
	if err != nil {
		return err
	}
	e := p.event(c, model.ChangeSettled, who.User(), now)
	e.Detail = evidence(found, findings)
	e.Detail["resolution"], e.Detail["was"], e.Detail["note"] = string(s.Resolution), string(from), told(s.Note)
	if err := tx.Append(e); err != nil {
		return err
	}
	if err := p.freeLocks(tx, c, who, locks, now); err != nil {
		return err
	}
	return p.undid(tx, c, now)
}

// freeLocks releases what a reconciled change held, but for what is still to be
// undone. What a rollback held goes back to the change that it was to undo, if it
// did not.
func (p *Pipeline) freeLocks(tx store.Tx, c *model.Change, who model.Caller, locks []model.Lock, now writ.Time) error {
	var original *model.Change
	var back []string
	var err error
	if c.Request.RollbackOf != "" && c.State != model.Done {
		if original, err = tx.Change(c.Request.RollbackOf); err != nil {
			return err
		}
		back = original.OrphanedEntities()
	}
	kept := c.OrphanedEntities()
	for _, l := range locks {
		if l.ChangeID != c.ID || slices.Contains(kept, l.Entity) {
			continue
		}
		if err = tx.EndLock(l.Entity, c.ID, model.LockReleased, now); err != nil {
			return err
		}
		e := p.lockEvent(c, model.LockFreed, l.Entity, now)
		e.User = who.User()
		if err = tx.Append(e); err != nil {
			return err
		}
		if slices.Contains(back, l.Entity) {
			err = p.returnLock(tx, original, l.Entity, now)
		} else {
			err = p.handOn(tx, l.Entity, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withdrawRollbacks takes back what was to undo a change that people now leave
// as it is.
func (p *Pipeline) withdrawRollbacks(tx store.Tx, c *model.Change, who model.Caller, now writ.Time) error {
	open, err := openRollbacks(tx, c)
	if err != nil {
		return err
	}
	for _, t := range open {
		from := t.State
		t.State, t.UpdatedAt, t.EndedAt = model.Cancelled, now, now
		t.Trouble = &model.Trouble{Code: fault.Canceled, Reason: "reconciled", Text: "The change that it was to undo was reconciled."}
		if err := tx.Move(t, from); err != nil {
			return err
		}
		if err := tx.Append(p.event(t, model.ChangeCancelled, who.User(), now)); err != nil {
			return err
		}
	}
	return nil
}

// evidence is what an event keeps of a look at the target.
func evidence(found artifact.Found, findings []model.Finding) writ.Object {
	list := []any{}
	for _, f := range findings {
		checks := []any{}
		for _, c := range f.Checks {
			checks = append(checks, writ.Object{"name": c.Name, "passed": c.Passed})
		}
		list = append(list, writ.Object{
			"step": f.Step, "entity": f.Entity, "undo": f.Undo, "verdict": string(f.Verdict), "reason": f.Reason, "checks": checks,
			"fingerprint": f.Fingerprint, "before": f.Before, "read_digest": string(f.ReadDigest), "writes_sent": int64(len(f.Sent)),
			"finding_digest": string(writ.DigestBytes(f.Sealed)), "executor": f.Executor, "observed_at": f.ObservedAt.String(),
		})
	}
	return writ.Object{"verdict": string(found.Verdict), "shown_digest": string(found.ShownDigest), "findings": list}
}

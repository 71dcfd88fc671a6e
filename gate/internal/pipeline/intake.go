package pipeline

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"writ"
	"writ/catalog"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// The bounds of what a requester may write.
const (
	maxSentence  = 500  // bytes of requested_action
	maxProse     = 4000 // bytes of purpose and of rollback_plan
	maxClientKey = 200  // bytes
)

var (
	stepIDForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	ticketForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._:/#-]{0,99}$`)
	keyForm    = regexp.MustCompile(`^[\x21-\x7e]{1,200}$`)
)

// intake checks what a requester hands over and stores it as a proposed change,
// or returns the change that it became before. A request that is not valid
// leaves nothing but an event.
func (p *Pipeline) intake(ctx context.Context, who model.Caller, r model.Request, clientKey string) (c *model.Change, isNew bool, err error) {
	if !who.Has(model.Requester) && !who.Has(model.Operator) {
		return nil, false, fault.New(fault.Denied, "%s may not propose changes: the role requester is missing.", who.User())
	}
	steps, err := p.checkRequest(&r, clientKey)
	if err == nil && r.RollbackOf == "" { // the way back may be planned, and waits
		err = p.Store.View(ctx, func(tx store.Reader) error {
			asked := &model.Change{RequestedBy: who.Principal, Steps: steps}
			return halted(tx, func(h *model.Halt) bool { return h.Covers(asked) })
		})
	}
	if err != nil {
		return nil, false, p.refuseRequest(ctx, who, err)
	}
	digest, err := writ.DigestOf(r)
	if err != nil {
		return nil, false, err
	}
	if r.RollbackOf == "" { // the way back is never closed
		done, err := p.reserve(ctx, who)
		if fault.CodeOf(err) == fault.Exhausted {
			if c, wrong := p.earlier(ctx, who, &r, clientKey, digest); c != nil || wrong != nil {
				return c, false, wrong
			}
			return nil, false, p.refuseRequest(ctx, who, err)
		}
		if err != nil {
			return nil, false, err
		}
		defer func() { done(isNew && err == nil) }()
	}
	err = p.update(ctx, func(tx store.Tx, now writ.Time) (err error) {
		if c, err = p.became(tx, who, &r, clientKey, digest, now); c != nil || err != nil {
			return err
		}
		isNew = true
		c = &model.Change{
			ID: p.Sys.NewID("chg"), State: model.Proposed, RequestedBy: who.Principal, RequestedAt: now, UpdatedAt: now,
			ClientKey: clientKey, Request: r, RequestDigest: digest, Session: who.Session,
		}
		if err := tx.Insert(c); err != nil {
			return err
		}
		e := p.event(c, model.ChangeProposed, who.User(), now)
		e.Detail = writ.Object{
			"request_digest": string(digest), "change_ticket": r.ChangeTicket,
			"requested_action": told(r.RequestedAction), "rollback_of": r.RollbackOf,
		}
		if s := who.Session; s != nil {
			e.Detail["session"] = session(s)
		}
		if who.Tools != "" {
			e.Detail["tools_digest"] = string(who.Tools)
		}
		return tx.Append(e)
	})
	return c, isNew, err
}

// session is what a requester's program says of itself, for an event.
func session(s *model.Session) writ.Object {
	chain := []any{}
	for _, link := range s.Chain {
		chain = append(chain, told(link))
	}
	return writ.Object{"client": told(s.Client), "version": told(s.Version), "chain": chain}
}

// earlier returns the change that a request became before, nil if there is none.
func (p *Pipeline) earlier(ctx context.Context, who model.Caller, r *model.Request, clientKey string, digest writ.Digest) (c *model.Change, err error) {
	err = p.Store.View(ctx, func(tx store.Reader) (err error) {
		c, err = p.became(tx, who, r, clientKey, digest, writ.At(p.Sys.Now()))
		return err
	})
	return c, err
}

// became returns the change that a request became before, nil if there is none:
// under the same idempotency key; without a key, as the same request that has
// not ended; or as a try to undo the same change.
func (p *Pipeline) became(tx store.Reader, who model.Caller, r *model.Request, clientKey string, digest writ.Digest, now writ.Time) (*model.Change, error) {
	if r.RollbackOf != "" {
		return tried(tx, r.RollbackOf)
	}
	if clientKey == "" {
		return p.stillOpen(tx, who, digest, now)
	}
	earlier, err := tx.ByClientKey(who.Name, clientKey)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case earlier.RequestDigest != digest:
		return nil, fault.New(fault.Conflict, "The idempotency key was used for another request, which became %s. Use a new key.", earlier.ID).Because("client_key_used")
	}
	return earlier, nil
}

// stillOpen returns the newest change that the same requester asked for in the
// same words and that has not ended, nil if there is none.
func (p *Pipeline) stillOpen(tx store.Reader, who model.Caller, digest writ.Digest, now writ.Time) (*model.Change, error) {
	open := slices.DeleteFunc(model.States(), model.State.Ended)
	found, err := tx.Changes(store.ChangeFilter{States: open, Requester: who.Name, RequestDigest: digest, Limit: 1})
	if err != nil || len(found) == 0 || p.overdue(found[0], now.Time) {
		return nil, err
	}
	return found[0], nil
}

// checkRequest fills in what may be left out, reports what is wrong, and returns
// the steps in their order.
func (p *Pipeline) checkRequest(r *model.Request, clientKey string) ([]writ.Step, error) {
	if r.OnFailure == "" {
		r.OnFailure = writ.Stop
	}
	switch {
	case len(r.Steps) == 0 || len(r.Steps) > writ.MaxSteps:
		return nil, fault.New(fault.Invalid, "A request has 1 to %d steps, this one has %d.", writ.MaxSteps, len(r.Steps))
	case r.OnFailure != writ.Stop && r.OnFailure != writ.Rollback:
		return nil, fault.New(fault.Invalid, "on_failure is %q; it must be stop or rollback.", r.OnFailure)
	case r.DeclaredRisk != "" && !slices.Contains(writ.Levels(), r.DeclaredRisk):
		return nil, fault.New(fault.Invalid, "declared_risk is %q; it must be one of %v or be left out.", r.DeclaredRisk, writ.Levels())
	case len(r.RequestedAction) > maxSentence, len(r.Purpose) > maxProse, len(r.RollbackPlan) > maxProse:
		return nil, fault.New(fault.Invalid, "requested_action may have %d bytes, purpose and rollback_plan %d each.", maxSentence, maxProse)
	case r.ChangeTicket != "" && !ticketForm.MatchString(r.ChangeTicket):
		return nil, fault.New(fault.Invalid, "change_ticket has up to 100 letters, digits and . _ : / # - characters.")
	case clientKey != "" && !keyForm.MatchString(clientKey):
		return nil, fault.New(fault.Invalid, "The idempotency key has up to %d visible ASCII characters.", maxClientKey)
	}
	for i := range r.Steps {
		if r.Steps[i].ID == "" {
			r.Steps[i].ID = fmt.Sprintf("s%d", i+1)
		}
		if r.Steps[i].Params == nil {
			r.Steps[i].Params = writ.Object{}
		}
	}
	return planSteps(p.Catalog, r)
}

// refuseRequest records that a request was refused, and returns why.
func (p *Pipeline) refuseRequest(ctx context.Context, who model.Caller, why error) error {
	trouble := model.TroubleOf(why)
	err := p.update(ctx, func(tx store.Tx, now writ.Time) error {
		return tx.Append(&model.Event{
			ID: p.Sys.NewID("evt"), Type: model.RequestRefused, Timestamp: now, User: who.User(),
			Status: string(trouble.Code), Reason: trouble.Reason, Detail: writ.Object{},
		})
	})
	if err != nil {
		return err
	}
	return why
}

// planSteps puts the steps of a request into the order in which they run,
// each with its action's typed params. It is pure.
func planSteps(actions *catalog.Catalog, r *model.Request) ([]writ.Step, error) {
	byID := map[string]*model.RequestStep{}
	for i := range r.Steps {
		s := &r.Steps[i]
		if !stepIDForm.MatchString(s.ID) || byID[s.ID] != nil {
			return nil, fault.New(fault.Invalid, "The step id %.40q is used twice or has not the form of a short lower-case word.", s.ID)
		}
		byID[s.ID] = s
	}
	ordered := make([]writ.Step, 0, len(r.Steps))
	placed := map[string]bool{}
	for len(ordered) < len(r.Steps) {
		before := len(ordered)
		for i := range r.Steps {
			s := &r.Steps[i]
			if placed[s.ID] || !all(s.Needs, placed) {
				continue
			}
			step, err := planStep(actions, s)
			if err != nil {
				return nil, err
			}
			ordered, placed[s.ID] = append(ordered, step), true
		}
		if len(ordered) == before {
			return nil, fault.New(fault.Invalid, "The steps need each other in a circle, or need a step that does not exist.").Because("needs_unmet")
		}
	}
	return ordered, nil
}

func all(needs []string, placed map[string]bool) bool {
	return !slices.ContainsFunc(needs, func(n string) bool { return !placed[n] })
}

func planStep(actions *catalog.Catalog, s *model.RequestStep) (writ.Step, error) {
	a, ok := actions.Action(s.Action)
	if !ok {
		return writ.Step{}, fault.New(fault.Invalid, "There is no action %.80q. \"writ actions\" lists them.", s.Action).Because("unknown_action")
	}
	if a.IsFacts() {
		return writ.Step{}, fault.New(fault.Invalid, "%s is a set of facts: it changes nothing and is not proposed. Ask for the facts of an entity %s instead: writ facts ENTITY", a.Name, a.Shape()).Because("facts_only")
	}
	params, err := a.Params(s.Params)
	if err != nil {
		return writ.Step{}, fault.Wrap(fault.Invalid, err, "Step %s: %s", s.ID, fault.TextOf(err)).Because("params_refused")
	}
	system := s.System
	if system == "" {
		system = a.System
	}
	return writ.Step{
		ID: s.ID, Needs: append([]string{}, s.Needs...), Action: a.Name, ActionDigest: a.Digest, System: system,
		Params: params, Resolved: writ.Object{}, Touches: []string{}, Class: a.Class, BackupRequired: a.Class != writ.ReadOnly,
	}, nil
}

package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"writ"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// maxDenials is how many earlier noes of a kind a change carries. It is no less
// than any limit of a policy.
const maxDenials = 20

// denials returns the noes of late to what a change would do, newest first, be
// they people's or the policy's, and to whom they were said.
func (p *Pipeline) denials(r store.Reader, c *model.Change, now time.Time) ([]model.Denial, error) {
	if c.Request.RollbackOf != "" {
		return nil, nil // what is half done is always a person's to decide
	}
	var all []model.Denial
	// The policy says no without limit, and must not push people's noes out.
	for _, state := range []model.State{model.Rejected, model.Denied} {
		f := store.ChangeFilter{States: []model.State{state}, EndedSince: writ.At(now.Add(-p.Policy.Denials().Remember)), Limit: 1000}
		ended, err := r.Changes(f)
		if err != nil {
			return nil, err
		}
		var found []model.Denial
		for _, earlier := range ended {
			if d, ok := model.DenialOf(earlier); ok && earlier.ID != c.ID && earlier.SameEffect(c) {
				found = append(found, d)
			}
		}
		slices.SortStableFunc(found, func(a, b model.Denial) int { return b.At.Compare(a.At.Time) })
		all = append(all, found[:min(len(found), maxDenials)]...)
	}
	slices.SortStableFunc(all, func(a, b model.Denial) int { return cmp.Compare(b.At.UnixMilli(), a.At.UnixMilli()) })
	return all, nil
}

// deniedBefore says why nobody is asked any more, "" if people are.
func (p *Pipeline) deniedBefore(c *model.Change) string {
	rule, noes := p.Policy.Denials(), c.Rejections()
	if int64(len(noes)) < rule.Limit {
		return ""
	}
	again := noes[rule.Limit-1].At.Add(rule.Remember)
	return fmt.Sprintf("People said no to the same effect %d times within %s, the last of them %s. Nobody is asked again before %s, unless an approver lifts it: writ lift %s",
		len(noes), rule.Remember, noes[0].By, writ.At(again), noes[0].ChangeID)
}

// remind shows a new no to those who still have to decide about the same effect.
func (p *Pipeline) remind(tx store.Tx, denied *model.Change, now writ.Time) error {
	waiting, err := tx.Changes(store.ChangeFilter{States: []model.State{model.AwaitingApproval}, Limit: 1000})
	if err != nil {
		return err
	}
	for _, c := range waiting {
		if !c.SameEffect(denied) {
			continue
		}
		if c.Denials, err = p.denials(tx, c, now.Time); err != nil {
			return err
		}
		if err := tx.Amend(c); err != nil {
			return err
		}
	}
	return nil
}

package storetest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

func changeTests() []test {
	return []test{
		{"a change is read as it was stored", changeRoundTrip},
		{"a change that is not there", changeMissing},
		{"a client key is taken once for a requester", clientKey},
		{"a client key is raced for", clientKeyRace},
		{"a change moves as its states allow", moves},
		{"a move needs the state and the version that were read", moveConflict},
		{"a move is raced for", moveRace},
		{"a change is amended", amend},
		{"amendments in one update each do not get lost", amendRace},
		{"the origin of a change stays", origin},
		{"changes are selected and paged", changes},
		{"changes are found by what they act on", entities},
	}
}

// changeRoundTrip: sealed bytes included, and texts that an encoder may alter.
func changeRoundTrip(t *testing.T, k *kit) {
	sealed := json.RawMessage(`{"payload":{"text":"<a href=\"x\">&` + "\u2028" + `</a>"}}`)
	want := k.change()
	want.ClientKey = "key"
	want.Request = model.Request{
		Steps: []model.RequestStep{{ID: "a", Action: "mock.noop_change", Params: writ.Object{
			"n": int64(writ.MaxInt), "list": []any{nil, true, "ü\u2028<>&"}, "o": writ.Object{},
		}, Needs: []string{}}},
		Purpose: "<b>why</b> & \u2028 \x00",
	}
	want.Writ = sealed
	want.Receipts = []model.Receipt{{Receipt: writ.Receipt{Step: "a", Outcome: writ.Done, StartedAt: now()}, Sealed: sealed}}
	want.Decision = &model.Decision{Effect: model.Approve, Count: 2, Valid: 1e9}
	want.Trouble = &model.Trouble{Code: fault.Failed, Reason: "r", Text: "t"}
	plain := k.change()
	k.update(t, func(tx store.Tx) error {
		if err := tx.Insert(want); err != nil {
			return err
		}
		return tx.Insert(plain)
	})
	k.reopen(t)
	for _, c := range []*model.Change{want, plain} {
		if diff := cmp.Diff(c, k.read(t, c.ID)); diff != "" {
			t.Errorf("the change read is not the one stored (-stored +read):\n%s", diff)
		}
	}
}

// read returns a change.
func (k *kit) read(t *testing.T, id string) (c *model.Change) {
	t.Helper()
	k.view(t, func(r store.Reader) (err error) {
		c, err = r.Change(id)
		return err
	})
	return c
}

func changeMissing(t *testing.T, k *kit) {
	k.insert(t)
	for _, id := range []string{"", "chg_other"} {
		err := k.View(t.Context(), func(r store.Reader) error {
			_, err := r.Change(id)
			return err
		})
		wantCode(t, "read "+id, err, fault.NotFound)
	}
}

func clientKey(t *testing.T, k *kit) {
	first := k.insert(t, func(c *model.Change) { c.ClientKey = "key" })
	k.insert(t, func(c *model.Change) { c.ClientKey = "key2" })
	k.insert(t, func(c *model.Change) { c.ClientKey, c.RequestedBy.Name = "key", "other" })
	k.insert(t)
	k.insert(t) // "" is no key and is never taken
	again := k.change()
	again.ClientKey = "key"
	err := k.Update(t.Context(), func(tx store.Tx) error { return tx.Insert(again) })
	wantCode(t, "insert with a key that is taken", err, fault.Conflict)
	err = k.Update(t.Context(), func(tx store.Tx) error { return tx.Insert(first) })
	wantCode(t, "insert the same change twice", err, fault.Conflict)
	k.view(t, func(r store.Reader) error {
		found, err := r.ByClientKey("planner", "key")
		if err == nil && found.ID != first.ID {
			t.Errorf("the key belongs to %s, want %s", found.ID, first.ID)
		}
		for _, other := range []struct{ requester, key string }{{"planner", ""}, {"other", "key2"}, {"", "key"}} {
			_, err := r.ByClientKey(other.requester, other.key)
			wantCode(t, "look for a key that is not there", err, fault.NotFound)
		}
		return err
	})
}

func clientKeyRace(t *testing.T, k *kit) {
	oneWins(t, k.race(func(int) error {
		c := k.change()
		c.ClientKey = "key"
		return k.Update(t.Context(), func(tx store.Tx) error { return tx.Insert(c) })
	}))
	k.view(t, func(r store.Reader) error {
		all, err := r.Changes(store.ChangeFilter{})
		if len(all) != 1 {
			t.Errorf("%d changes have the key, want 1", len(all))
		}
		return err
	})
}

func moves(t *testing.T, k *kit) {
	for _, from := range model.States() {
		k.update(t, func(tx store.Tx) error {
			for _, to := range model.States() {
				c := k.change()
				c.State = from
				if err := tx.Insert(c); err != nil {
					return err
				}
				c.State = to
				want := fault.Internal
				if from.May(to) {
					want = ""
				}
				wantCode(t, string(from+" → "+to), tx.Move(c, from), want)
				now, err := tx.Change(c.ID)
				if err != nil {
					return err
				}
				if moved := now.State == to && now.Version == 1; moved != from.May(to) {
					t.Errorf("%s → %s: the change is %s with version %d", from, to, now.State, now.Version)
				}
			}
			return nil
		})
	}
}

func moveConflict(t *testing.T, k *kit) {
	c := k.insert(t)
	old := *c
	move := func(c *model.Change, from, to model.State) error {
		c.State = to
		return k.Update(t.Context(), func(tx store.Tx) error { return tx.Move(c, from) })
	}
	if err := move(c, model.Proposed, model.Planned); err != nil || c.Version != 1 {
		t.Fatalf("move: %v, version %d, want 1", err, c.Version)
	}
	wantCode(t, "move with a version that is gone", move(&old, model.Proposed, model.Cancelled), fault.Conflict)
	if old.Version != 0 {
		t.Errorf("a move that failed raised the version to %d", old.Version)
	}
	wantCode(t, "move from a state that is gone", move(&model.Change{ID: c.ID, Version: 1, RequestedBy: c.RequestedBy}, model.AwaitingApproval, model.Approved), fault.Conflict)
	wantCode(t, "move a change that is not there", move(k.change(), model.Proposed, model.Planned), fault.Conflict)
	if got := k.read(t, c.ID); got.State != model.Planned || got.Version != 1 {
		t.Errorf("the change is %s with version %d, want planned with 1", got.State, got.Version)
	}
}

func moveRace(t *testing.T, k *kit) {
	c := k.insert(t, func(c *model.Change) { c.State = model.AwaitingApproval })
	oneWins(t, k.race(func(i int) error {
		mine := *c
		mine.State = []model.State{model.Approved, model.Rejected}[i%2]
		return k.Update(t.Context(), func(tx store.Tx) error {
			if err := tx.Move(&mine, model.AwaitingApproval); err != nil {
				return err
			}
			return tx.Append(k.event(c.ID))
		})
	}))
	if n := len(k.lines(t, store.EventFilter{})); n != 1 {
		t.Errorf("there are %d events, want that of the winner", n)
	}
}

func amend(t *testing.T, k *kit) {
	c := k.insert(t)
	old := *c
	c.RunID = "run_2"
	k.update(t, func(tx store.Tx) error { return tx.Amend(c) })
	if got := k.read(t, c.ID); got.RunID != "run_2" || got.Version != 1 || c.Version != 1 {
		t.Errorf("the change has run %s and version %d, want run_2 and 1", got.RunID, got.Version)
	}
	err := k.Update(t.Context(), func(tx store.Tx) error { return tx.Amend(&old) })
	wantCode(t, "amend with a version that is gone", err, fault.Conflict)
	other := *c
	other.State = model.Planned
	err = k.Update(t.Context(), func(tx store.Tx) error { return tx.Amend(&other) })
	wantCode(t, "move by amending", err, fault.Conflict)
}

func amendRace(t *testing.T, k *kit) {
	c := k.insert(t)
	counts := k.race(func(int) error {
		return k.Update(t.Context(), func(tx store.Tx) error {
			now, err := tx.Change(c.ID)
			if err != nil {
				return err
			}
			now.Approvals = append(now.Approvals, writ.Approval{ID: k.id("appr")})
			return tx.Amend(now)
		})
	})
	got := k.read(t, c.ID)
	if counts[""] != crowd || len(got.Approvals) != crowd || got.Version != crowd {
		t.Errorf("%v left %d approvals and version %d, want %d", counts, len(got.Approvals), got.Version, crowd)
	}
}

func origin(t *testing.T, k *kit) {
	c := k.insert(t, func(c *model.Change) { c.ClientKey = "key" })
	for name, change := range map[string]func(*model.Change){
		"requester":   func(c *model.Change) { c.RequestedBy.Name = "other" },
		"client key":  func(c *model.Change) { c.ClientKey = "other" },
		"rollback of": func(c *model.Change) { c.Request.RollbackOf = "chg_other" },
	} {
		other := *c
		change(&other)
		err := k.Update(t.Context(), func(tx store.Tx) error { return tx.Amend(&other) })
		wantCode(t, "change the "+name, err, fault.Internal)
	}
	if diff := cmp.Diff(c, k.read(t, c.ID)); diff != "" {
		t.Errorf("the change is not as before (-before +after):\n%s", diff)
	}
}

func changes(t *testing.T, k *kit) {
	var ids []string // newest first
	ended := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	k.update(t, func(tx store.Tx) error {
		for i := range 150 {
			c := k.change()
			c.State = []model.State{model.Proposed, model.Planned, model.Denied}[i%3]
			c.RequestedBy.Name = []string{"planner", "other"}[i%2]
			c.RequestDigest = "sha256:first"
			if i%5 == 4 {
				c.RequestDigest = "sha256:second"
			}
			if i%50 == 49 {
				c.Request.RollbackOf = ids[len(ids)-1]
			}
			if i >= 146 {
				c.EndedAt = writ.At(ended.Add(time.Duration(i) * time.Millisecond))
			}
			ids = slices.Insert(ids, 0, c.ID)
			if err := tx.Insert(c); err != nil {
				return err
			}
		}
		return nil
	})
	every := func(n, from int) (some []string) {
		for i := from; i < len(ids); i += n {
			some = append(some, ids[i])
		}
		return some
	}
	oldest := ids[len(ids)-1]
	for _, c := range []struct {
		name   string
		filter store.ChangeFilter
		want   []string
	}{
		{"no filter", store.ChangeFilter{}, ids[:100]},
		{"a limit", store.ChangeFilter{Limit: 3}, ids[:3]},
		{"a high limit", store.ChangeFilter{Limit: 1000}, ids},
		{"the next page", store.ChangeFilter{Before: ids[99]}, ids[100:]},
		{"after the last page", store.ChangeFilter{Before: oldest}, nil},
		{"a state", store.ChangeFilter{States: []model.State{model.Denied}}, every(3, 0)},
		{"two states", store.ChangeFilter{States: []model.State{model.Planned, model.Denied}, Limit: 4}, []string{ids[0], ids[1], ids[3], ids[4]}},
		{"a state that no change has", store.ChangeFilter{States: []model.State{model.Done}}, nil},
		{"a requester", store.ChangeFilter{Requester: "other"}, every(2, 0)},
		{"what undoes a change", store.ChangeFilter{RollbackOf: oldest}, every(50, 0)},
		{"a request", store.ChangeFilter{RequestDigest: "sha256:second"}, every(5, 0)},
		{"a request that nobody made", store.ChangeFilter{RequestDigest: "sha256:third"}, nil},
		{"ended since", store.ChangeFilter{EndedSince: writ.At(ended.Add(148 * time.Millisecond))}, ids[:2]},
		{"ended after the last", store.ChangeFilter{EndedSince: writ.At(ended.Add(time.Second))}, nil},
		{"all at once", store.ChangeFilter{States: []model.State{model.Denied}, Requester: "other", RollbackOf: oldest, Before: ids[1]}, []string{}},
	} {
		k.view(t, func(r store.Reader) error {
			got, err := r.Changes(c.filter)
			var gotIDs []string
			for _, g := range got {
				gotIDs = append(gotIDs, g.ID)
			}
			if !slices.Equal(gotIDs, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, gotIDs, c.want)
			}
			return err
		})
	}
}

// entities: a change is found by each thing that it was decided on, once it was.
func entities(t *testing.T, k *kit) {
	step := func(entity string, touches ...string) writ.Step {
		return writ.Step{ID: entity, Entity: entity, Touches: append([]string{}, touches...)}
	}
	planned := k.change()
	planned.State = model.Planned
	denied := k.change()
	denied.State = model.Planned
	approved := k.change()
	approved.State = model.Approved
	approved.Steps = []writ.Step{step("pve/lxc/1")}
	approved.Approvals = []writ.Approval{{ID: "appr_1"}}
	k.update(t, func(tx store.Tx) error {
		for _, c := range []*model.Change{planned, denied, approved} {
			if err := tx.Insert(c); err != nil {
				return err
			}
		}
		for c, to := range map[*model.Change]model.State{planned: model.AwaitingApproval, denied: model.Denied} {
			c.Steps = []writ.Step{step("pve/lxc/1", "pve/storage", "pve/lxc/1"), step("pve/lxc/2", "pve/storage")}
			c.State = to
			if err := tx.Move(c, model.Planned); err != nil {
				return err
			}
		}
		return nil
	})
	k.reopen(t)
	for _, c := range []struct {
		name   string
		filter store.ChangeFilter
		want   []string
	}{
		{"the entity of two, newest first", store.ChangeFilter{Entity: "pve/lxc/1"}, []string{approved.ID, planned.ID}},
		{"the entity of a second step", store.ChangeFilter{Entity: "pve/lxc/2"}, []string{planned.ID}},
		{"what is touched", store.ChangeFilter{Entity: "pve/storage"}, []string{planned.ID}},
		{"what nothing acts on", store.ChangeFilter{Entity: "pve/lxc"}, nil},
		{"approved", store.ChangeFilter{Entity: "pve/lxc/1", Approved: true}, []string{approved.ID}},
		{"approved, whatever it acts on", store.ChangeFilter{Approved: true}, []string{approved.ID}},
		{"none approved", store.ChangeFilter{Entity: "pve/lxc/2", Approved: true}, nil},
	} {
		k.view(t, func(r store.Reader) error {
			got, err := r.Changes(c.filter)
			var ids []string
			for _, g := range got {
				ids = append(ids, g.ID)
			}
			if !slices.Equal(ids, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, ids, c.want)
			}
			return err
		})
	}
}

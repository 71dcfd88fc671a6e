package storetest

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/ledger"
)

func eventTests() []test {
	return []test{
		{"an event is read as it was appended", eventRoundTrip},
		{"events have no gaps and each its leaf, also under concurrency", eventChain},
		{"events are selected and paged", events},
		{"events are selected by who, what and when", selection},
		{"lines come with the tree of the same moment", since},
		{"an event needs an id of its own", eventID},
		{"what was exported only rises", exported},
	}
}

// lines returns events.
func (k *kit) lines(t *testing.T, f store.EventFilter) (all []store.Line) {
	t.Helper()
	k.view(t, func(r store.Reader) (err error) {
		all, err = r.Events(f)
		return err
	})
	return all
}

// verified returns how many events the store has, in order and each with its leaf.
func (k *kit) verified(t *testing.T) int64 {
	t.Helper()
	var tree ledger.Tree
	for i, l := range k.lines(t, store.EventFilter{Limit: 1 << 20}) {
		if l.Sequence != int64(i+1) {
			t.Errorf("event %d has the sequence %d", i+1, l.Sequence)
		}
		tree = tree.Add(ledger.Leaf(l.Bytes))
	}
	_, kept, err := k.Since(t.Context(), 0, 1)
	if err != nil || kept.Size() != tree.Size() || kept.Root() != tree.Root() {
		t.Errorf("the tree of %d events is not that of the %d events (%v)", kept.Size(), tree.Size(), err)
	}
	return tree.Size()
}

func eventRoundTrip(t *testing.T, k *kit) {
	want := k.event("chg_1")
	want.Detail = writ.Object{"text": "<&>\u2028", "n": int64(3)}
	k.update(t, func(tx store.Tx) error { return tx.Append(want) })
	if want.Sequence != 1 {
		t.Errorf("the first event has the sequence %d", want.Sequence)
	}
	k.reopen(t)
	lines := k.lines(t, store.EventFilter{})
	line, err := ledger.Line(want)
	if err != nil || len(lines) != 1 || lines[0].Sequence != 1 || !bytes.Equal(lines[0].Bytes, line) {
		t.Errorf("the events are %+v, want %s (%v)", lines, line, err)
	}
}

func eventChain(t *testing.T, k *kit) {
	refuse := errors.New("refused")
	counts := k.race(func(i int) error {
		return k.Update(t.Context(), func(tx store.Tx) error {
			for range 3 {
				if err := tx.Append(k.event("")); err != nil {
					return err
				}
			}
			if i%4 == 0 {
				return refuse
			}
			return nil
		})
	})
	k.reopen(t)
	k.update(t, func(tx store.Tx) error { return tx.Append(k.event("")) })
	if got, want := k.verified(t), int64(counts[""]*3+1); got != want || counts[""] != crowd*3/4 {
		t.Errorf("%d events after %v, want %d", got, counts, want)
	}
}

func events(t *testing.T, k *kit) {
	k.update(t, func(tx store.Tx) error {
		for i := range 1100 {
			if err := tx.Append(k.event([]string{"", "chg_a", "chg_b"}[i%3])); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range []struct {
		name   string
		filter store.EventFilter
		count  int
		first  int64
	}{
		{"no filter", store.EventFilter{}, 1000, 1},
		{"the next page", store.EventFilter{After: 1000}, 100, 1001},
		{"after the last", store.EventFilter{After: 1100}, 0, 0},
		{"a limit", store.EventFilter{After: 7, Limit: 2}, 2, 8},
		{"a change", store.EventFilter{ChangeID: "chg_b"}, 366, 3},
		{"a change, the next page", store.EventFilter{ChangeID: "chg_b", After: 3, Limit: 5}, 5, 6},
		{"another change", store.EventFilter{ChangeID: "chg_c"}, 0, 0},
		{"nobody's", store.EventFilter{User: "nobody"}, 0, 0},
		{"about nothing", store.EventFilter{Target: "none"}, 0, 0},
		{"no action", store.EventFilter{Action: "none.*"}, 0, 0},
		{"too late", store.EventFilter{Since: "9999-01-01T00:00:00.000Z"}, 0, 0},
		{"too early", store.EventFilter{Until: "0001-01-01T00:00:00.000Z", ChangeID: "chg_c"}, 0, 0},
	} {
		lines := k.lines(t, c.filter)
		var first int64
		if len(lines) > 0 {
			first = lines[0].Sequence
		}
		ordered := slices.IsSortedFunc(lines, func(a, b store.Line) int { return int(a.Sequence - b.Sequence) })
		if len(lines) != c.count || first != c.first || !ordered {
			t.Errorf("%s: %d events from %d, in order %t; want %d from %d", c.name, len(lines), first, ordered, c.count, c.first)
		}
	}
}

func selection(t *testing.T, k *kit) {
	k.update(t, func(tx store.Tx) error {
		for i, f := range []struct{ user, system, entity, action string }{
			{"agent:a", "px", "px/pve/lxc/1", "proxmox.set"},
			{"human:a", "nb", "nb/x", "netbox.tag"},
			{"writ", "", "", ""},
			{"agent:b", "px", "px/pve/lxcx", "proxmox.get"},
		} {
			e := k.event("")
			e.User, e.TargetSystem, e.Entity, e.ActionType, e.Timestamp = f.user, f.system, f.entity, f.action, writ.At(now().Add(time.Duration(i)*time.Hour))
			if err := tx.Append(e); err != nil {
				return err
			}
		}
		return nil
	})
	second := writ.At(now().Add(time.Hour)).String()
	for _, c := range []struct {
		filter store.EventFilter
		want   []int64
	}{
		{store.EventFilter{User: "a"}, []int64{1, 2}},
		{store.EventFilter{User: "agent:a"}, []int64{1}},
		{store.EventFilter{User: "agent"}, nil},
		{store.EventFilter{User: "writ"}, []int64{3}},
		{store.EventFilter{Target: "px"}, []int64{1, 4}},
		{store.EventFilter{Target: "px/pve/lxc"}, []int64{1}},
		{store.EventFilter{Target: "px/pve/lxc/1"}, []int64{1}},
		{store.EventFilter{Target: "px/%"}, nil},
		{store.EventFilter{Action: "proxmox.*"}, []int64{1, 4}},
		{store.EventFilter{Action: "proxmox.set"}, []int64{1}},
		{store.EventFilter{Action: "*"}, []int64{1, 2, 3, 4}},
		{store.EventFilter{Action: "proxmox"}, nil},
		{store.EventFilter{Since: second}, []int64{2, 3, 4}},
		{store.EventFilter{Until: second}, []int64{1, 2}},
		{store.EventFilter{Since: second, Target: "px"}, []int64{4}},
		{store.EventFilter{Target: "px", After: 1, Limit: 1}, []int64{4}},
	} {
		var got []int64
		for _, l := range k.lines(t, c.filter) {
			got = append(got, l.Sequence)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: events %v, want %v", c.filter, got, c.want)
		}
	}
}

func since(t *testing.T, k *kit) {
	k.update(t, func(tx store.Tx) error {
		for range 10 {
			if err := tx.Append(k.event("")); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range []struct{ after, limit, want int }{{0, 4, 4}, {4, 100, 6}, {10, 5, 0}, {11, 5, 0}} {
		lines, tree, err := k.Since(t.Context(), int64(c.after), c.limit)
		if err != nil || len(lines) != c.want || tree.Size() != 10 {
			t.Errorf("%d after %d: %d lines of %d events, %v, want %d of 10", c.limit, c.after, len(lines), tree.Size(), err, c.want)
		}
	}
}

func eventID(t *testing.T, k *kit) {
	e := k.event("")
	k.update(t, func(tx store.Tx) error { return tx.Append(e) })
	for _, id := range []string{e.ID, ""} {
		again := &model.Event{ID: id}
		err := k.Update(t.Context(), func(tx store.Tx) error { return tx.Append(again) })
		wantCode(t, "append an event with the id "+id, err, fault.Internal)
		if again.Sequence != 0 {
			t.Errorf("an event that was refused got the sequence %d", again.Sequence)
		}
	}
}

func exported(t *testing.T, k *kit) {
	k.update(t, func(tx store.Tx) error {
		for range 5 {
			if err := tx.Append(k.event("")); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range []struct {
		set, want int64
		code      fault.Code
	}{
		{0, 0, ""}, {3, 3, ""}, {2, 3, ""}, {6, 3, fault.Internal}, {-1, 3, ""}, {5, 5, ""},
	} {
		wantCode(t, "set exported", k.SetExported(t.Context(), c.set), c.code)
		k.reopen(t)
		if got, err := k.Exported(t.Context()); err != nil || got != c.want {
			t.Errorf("after %d, Exported() = %d, %v, want %d", c.set, got, err, c.want)
		}
	}
}

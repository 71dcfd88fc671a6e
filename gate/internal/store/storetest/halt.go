package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

func haltTests() []test {
	return []test{
		{"a halt is read as it was set", haltRoundTrip},
		{"a halt is lifted once, and otherwise never changes", haltLifted},
	}
}

func (k *kit) halt(t *testing.T, edit func(*model.Halt)) model.Halt {
	t.Helper()
	h := model.Halt{ID: k.id("halt"), By: writ.Principal{Name: "mara", Kind: writ.Human}, At: now(), Reason: "what is <this>?"}
	edit(&h)
	k.update(t, func(tx store.Tx) error { return tx.SetHalt(h) })
	return h
}

func (k *kit) halts(t *testing.T, lifted bool) (all []model.Halt) {
	t.Helper()
	k.view(t, func(r store.Reader) (err error) {
		all, err = r.Halts(lifted)
		return err
	})
	return all
}

func haltRoundTrip(t *testing.T, k *kit) {
	first := k.halt(t, func(h *model.Halt) { h.Target = "proxmox/pve" })
	second := k.halt(t, func(h *model.Halt) { h.Principal = "planner" })
	third := k.halt(t, func(*model.Halt) {})
	k.reopen(t)
	if diff := cmp.Diff([]model.Halt{third, second, first}, k.halts(t, false)); diff != "" {
		t.Errorf("the halts in force differ (-want +got):\n%s", diff)
	}
	second.LiftedBy, second.LiftedAt = "human:mara", now()
	k.update(t, func(tx store.Tx) error { return tx.SetHalt(second) })
	if diff := cmp.Diff([]model.Halt{third, first}, k.halts(t, false)); diff != "" {
		t.Errorf("the halts in force differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]model.Halt{third, second, first}, k.halts(t, true)); diff != "" {
		t.Errorf("all halts differ (-want +got):\n%s", diff)
	}
}

func haltLifted(t *testing.T, k *kit) {
	set := func(h model.Halt) error {
		return k.Update(t.Context(), func(tx store.Tx) error { return tx.SetHalt(h) })
	}
	h := k.halt(t, func(*model.Halt) {})
	other := h
	other.Target = "proxmox"
	wantCode(t, "narrow a halt", set(other), fault.Internal)
	other.LiftedBy, other.LiftedAt = "human:mara", now()
	wantCode(t, "narrow a halt while it is lifted", set(other), fault.Internal)
	wantCode(t, "set a halt again", set(h), fault.Internal)
	lifted := h
	lifted.LiftedBy, lifted.LiftedAt = "human:mara", now()
	if err := set(lifted); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "lift a halt twice", set(lifted), fault.Internal)
	wantCode(t, "put a lifted halt in force", set(h), fault.Internal)
	if diff := cmp.Diff([]model.Halt{lifted}, k.halts(t, true)); diff != "" {
		t.Errorf("the halt differs (-want +got):\n%s", diff)
	}
}

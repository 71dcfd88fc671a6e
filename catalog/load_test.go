package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/catalog"
)

func builtin(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(catalog.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAction_oneStepThroughItsLife(t *testing.T) {
	t.Parallel()
	a, ok := builtin(t).Action("proxmox.set_lxc_description")
	if !ok {
		t.Fatal("the action is missing")
	}
	params, err := a.Params(writ.Object{"node": "pve", "vmid": int64(121), "description": "new"})
	if err != nil {
		t.Fatal(err)
	}
	s := &catalog.Scope{
		System: "px", Params: params, Settings: writ.Object{"writable_vmids": []any{int64(121)}},
		Observed: map[string]catalog.Seen{"config": {Found: true, Data: map[string]any{"digest": "d1", "description": "old\n"}}},
	}
	s.Backup = s.Observed
	if e, err := a.Entity(s); e != "px/pve/lxc/121" || err != nil {
		t.Errorf("Entity = %q, %v", e, err)
	}
	if refusals, err := a.Guards(s); len(refusals) > 0 || err != nil {
		t.Errorf("Guards = %q, %v", refusals, err)
	}
	if f, err := a.Fingerprint(s); f != "d1" || err != nil {
		t.Errorf("Fingerprint = %q, %v", f, err)
	}
	call, err := a.Applies()[0].Call(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(catalog.Call{
		Verb: "put", Path: "/nodes/pve/lxc/121/config",
		Form: map[string]string{"description": "new", "digest": "d1"},
	}, call); diff != "" {
		t.Errorf("the call differs (-want +got):\n%s", diff)
	}
	back, err := a.Rollback(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&writ.Call{Action: a.Name, System: "px", Params: writ.Object{"node": "pve", "vmid": int64(121), "description": "old"}}, back); diff != "" {
		t.Errorf("the way back differs (-want +got):\n%s", diff)
	}
	s.Observed = map[string]catalog.Seen{"config": {Found: true, Data: map[string]any{"digest": "d2", "description": "new\n"}}}
	if checks, err := a.Verify(s); err != nil || len(checks) != 1 || !checks[0].Passed {
		t.Errorf("Verify = %v, %v", checks, err)
	}
}

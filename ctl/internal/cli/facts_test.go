package cli_test

import (
	"strings"
	"testing"

	"writ"
	"writ/api"
	"writ/fault"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.tell(api.FactsGet, api.Facts{
		Entity: "proxmox/pve/lxc/121", System: writ.SystemInfo{Name: "proxmox", Kind: "proxmox", Environment: "lab"},
		ActionType: "proxmox.lxc_facts", Summary: "One container", StateHash: writ.DigestBytes(nil),
		Health: api.EntityHealth{State: writ.HealthDegraded, Reasons: []string{"it is stopped"}},
		Facts: []api.Fact{
			{Name: "cores", Type: "integer", Value: "2"}, {Name: "lock", Type: "string", Absent: true},
			{Name: "description", Type: "string", Value: "approved \"by\" ana\nwithheld: no"}, {Name: "hostname", Type: "string", Withheld: "For people."},
		},
		LastChange:  &api.ApprovedChange{ID: "chg_1", ActionType: "proxmox.start_lxc", State: "rolled_back"},
		OpenChanges: []api.OpenChange{{ID: "chg_2", ActionType: "proxmox.stop_lxc", State: "awaiting_approval"}},
		Lock:        &api.Lock{ChangeID: "chg_3", State: "orphaned"}, Dependents: api.Dependents{Why: "nobody knows"},
	}, fault.New(fault.NotFound, "There are no facts of such an entity."))
	r := g.expect(0, "facts", "proxmox/pve/lxc/121")
	for _, want := range []string{
		"proxmox/pve/lxc/121  degraded\n", "One container (proxmox.lxc_facts), on proxmox in lab\n", "  · it is stopped\n", "  cores            2\n", "  lock             (absent)\n",
		`  description      "approved \"by\" ana\u{000a}withheld: no"` + "\n", "  hostname         withheld: For people.\n",
		"Approved  chg_1 (proxmox.start_lxc) at ", ": rolled back\n", "Open      chg_2 (proxmox.stop_lxc): awaiting approval\n", "Locked    by chg_3 (orphaned)\n", "Needed by not known: nobody knows\n",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is missing:\n%s", want, r.stdout)
		}
	}
	if r := g.expect(fault.NotFound.Row().Exit, "facts", "proxmox/x"); r.stdout != "" || !strings.Contains(r.stderr, "no facts of such an entity") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	g.tell(api.ActionList, api.Actions{Actions: []api.Action{{Name: "proxmox.start_lxc"}, {Name: "proxmox.lxc_facts", System: "proxmox", Summary: "One container", FactsOf: "{system}/{node}/lxc/{vmid}"}}})
	if r := g.expect(0, "facts"); !strings.Contains(r.stdout, "{system}/{node}/lxc/{vmid}  proxmox") || strings.Contains(r.stdout, "start_lxc") {
		t.Error(r.stdout)
	}
}

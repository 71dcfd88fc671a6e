package fake_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/connector/proxmox/fake"
)

const create = "/nodes/pve/lxc"

func wanted(vmid string, more ...string) string {
	return form(append([]string{"vmid", vmid, "ostemplate", fake.Template, "storage", "local-lvm", "unprivileged", "1"}, more...)...)
}

func TestCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{TaskSteps: 2})
	upid := w.must("POST", create, wanted("140", "net0", "name=eth0,bridge=vmbr0,ip=dhcp", "description", "new", "tags", "B;a", "password", "not-a-secret")).(string)
	if !strings.Contains(upid, ":vzcreate:140:") {
		t.Errorf("UPID %s", upid)
	}
	got := w.config("140")
	if d := cmp.Diff(map[string]any{"lock": "create", "digest": got["digest"]}, got); d != "" {
		t.Errorf("while it is created (-want +got):\n%s", d)
	}
	// The worker holds the file lock: everything else has to wait, and gives up.
	const held = "can't lock file '/run/lock/lxc/pve-config-140.lock' - got timeout"
	if a := w.call("PUT", create+"/140/config", "cores=2"); a.Status != "500 "+held {
		t.Errorf("a change meanwhile: %s", a.Status)
	}
	start := w.must("POST", create+"/140/status/start", "")
	if a := w.call("DELETE", create+"/140", ""); a.Status != "500 CT is locked (create)" {
		t.Errorf("a destroy meanwhile: %s", a.Status)
	}
	if exit := w.task(upid); exit != "OK" {
		t.Fatal(exit)
	}
	if exit := w.task(start); exit != held {
		t.Errorf("a start meanwhile ended with %q", exit)
	}
	got = w.config("140")
	hwaddr := strings.Split(strings.Split(got["net0"].(string), "hwaddr=")[1], ",")[0]
	want := map[string]any{
		"arch": "amd64", "description": "new\n", "hostname": "CT140", "memory": json.Number("512"), "ostype": "debian",
		"net0":   "name=eth0,bridge=vmbr0,hwaddr=" + hwaddr + ",ip=dhcp,type=veth",
		"rootfs": "local-lvm:vm-140-disk-0,size=4G", "swap": json.Number("512"), "tags": "a;b", "unprivileged": json.Number("1"),
		"digest": got["digest"],
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what was made (-want +got):\n%s", d)
	}
	if strings.Contains(w.ConfigText(140), "not-a-secret") {
		t.Error("the password is in the configuration")
	}
}

func TestCreate_variants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	made := func(vmid, body string) map[string]any {
		t.Helper()
		if exit := w.task(w.must("POST", create, body)); exit != "OK" {
			t.Fatal(exit)
		}
		return w.config(vmid)
	}
	if got := made("140", wanted("140", "start", "1", "rootfs", "8")); got["rootfs"] != "local-lvm:vm-140-disk-0,size=8G" {
		t.Errorf("a bare size goes to the default storage: %v", got["rootfs"])
	}
	if a := w.call("POST", create+"/140/status/start", ""); a.Status != "500 CT 140 already running" {
		t.Errorf("start after a create with start=1: %s", a.Status)
	}
	got := made("141", form("vmid", "141", "ostemplate", fake.Template, "rootfs", "local-lvm:2"))
	if got["unprivileged"] != json.Number("1") || got["rootfs"] != "local-lvm:vm-141-disk-0,size=2G" {
		t.Errorf("unprivileged is the default since PVE 9: %v", got)
	}
	got = made("142", form("vmid", "142", "ostemplate", fake.Template, "storage", "local-lvm", "unprivileged", "0", "ha-managed", "1"))
	ha := w.must("GET", create+"/142/status/current", "").(map[string]any)["ha"]
	if got["unprivileged"] != nil || ha.(map[string]any)["managed"] != json.Number("1") {
		t.Errorf("a privileged one, managed by HA: %v %v", got, ha)
	}
	w.EndNextTask("WARNINGS: 1")
	if exit := w.task(w.must("POST", create, wanted("143"))); exit != "WARNINGS: 1" || w.ConfigText(143) == "" {
		t.Errorf("with warnings the container exists all the same: %s", exit)
	}
}

func TestCreate_refusals(t *testing.T) {
	t.Parallel()
	post := func(name, body, status string) row {
		return row{name: name, call: "POST " + create, body: body, status: status, writes: 1}
	}
	taken := func(s *fake.Server) { s.AddVM(140) }
	noTemplates := without("Datastore.AllocateSpace", "Datastore.Audit")
	noSpace := without("")
	noSpace.Tokens[limited].Privileges["/storage/local-lvm"] = []string{"Datastore.Audit"}
	runRows(t, []row{
		post("used", wanted("121"), "500 CT 121 already exists on node 'pve'"),
		post("used, with force", wanted("121", "force", "1"), "500 CT 121 already exists on node 'pve'"),
		{name: "used by a machine", prepare: taken, call: "POST " + create, body: wanted("140"), status: "500 VM 140 already exists on node 'pve'", writes: 1},
		{name: "default storage", call: "POST " + create, body: form("vmid", "140", "ostemplate", fake.Template), status: failed400,
			errors: map[string]string{"storage": "storage 'local' does not support container directories"}, writes: 1},
		post("unknown storage", form("vmid", "140", "ostemplate", fake.Template, "storage", "ceph"), "500 storage 'ceph' does not exist"),
		post("mount point alone", wanted("140", "mp0", "local-lvm:1,mp=/d"), "500 mount points configured, but 'rootfs' not set - aborting"),
		post("mount point", wanted("140", "mp0", "local-lvm:1,mp=/d", "rootfs", "4"), "500 this fake does not imitate option 'mp0'"),
		post("old volume", wanted("140", "rootfs", "local-lvm:vm-9-disk-0"), "500 this fake does not imitate option 'rootfs=local-lvm:vm-9-disk-0'"),
		post("restore", wanted("140", "restore", "1"), "500 this fake does not imitate option 'restore'"),
		post("pool", wanted("140", "pool", "lab"), "403 Permission check failed (pool 'lab' does not exist)"),
		post("empty features", wanted("140", "features", ""), "403 Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)"),
		{name: "privileged", config: without("Sys.Modify"), token: limited, call: "POST " + create, status: "403 Permission check failed (/, Sys.Modify)", writes: 1,
			body: form("vmid", "140", "ostemplate", fake.Template, "storage", "local-lvm", "unprivileged", "0")},
		{name: "templates", config: noTemplates, token: limited, call: "POST " + create, body: wanted("140"),
			status: "403 Permission check failed (/storage/local, Datastore.AllocateSpace|Datastore.Audit)", writes: 1},
		{name: "space", config: noSpace, token: limited, call: "POST " + create, body: wanted("140"),
			status: "403 Permission check failed (/storage/local-lvm, Datastore.AllocateSpace)", writes: 1},
	})
	runTaskRows(t, []taskRow{
		{name: "no such template", call: "POST " + create, body: form("vmid", "140", "ostemplate", "local:vztmpl/none.tar.zst", "storage", "local-lvm"),
			exit: "unable to create CT 140 - volume 'local:vztmpl/none.tar.zst' does not exist"},
		{name: "disk full", prepare: func(w *world) { w.FailNextTask("unable to create CT 140 - no space left") }, call: "POST " + create,
			body: wanted("140"), exit: "unable to create CT 140 - no space left"},
	})
}

func TestCreate_lostRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	if id := w.must("GET", "/cluster/nextid", ""); id != "100" {
		t.Errorf("next id %#v, want the string 100", id)
	}
	w.LoseNextCreate()
	if a := w.call("POST", create, wanted("100", "hostname", "mine")); a.Status != "500 unable to create CT 100 - CT 100 already exists on node 'pve'" {
		t.Errorf("answered %q", a.Status)
	}
	if got := w.config("100"); got["hostname"] != "rival" {
		t.Errorf("the guest is the other's: %v", got)
	}
	if id := w.must("GET", "/cluster/nextid", ""); id != "101" {
		t.Errorf("next id %#v", id)
	}
	if exit := w.task(w.must("POST", create, wanted("101"))); exit != "OK" {
		t.Error(exit)
	}
}

func TestNextID(t *testing.T) {
	t.Parallel()
	runRows(t, []row{
		{name: "lowest", call: "GET /cluster/nextid", status: "200 OK", data: `"100"`},
		{name: "not over machines", prepare: func(s *fake.Server) { s.AddVM(100) }, call: "GET /cluster/nextid", status: "200 OK", data: `"101"`},
		{name: "free", call: "GET /cluster/nextid?vmid=120", status: "200 OK", data: `"120"`},
		{name: "used", call: "GET /cluster/nextid?vmid=121", status: failed400, errors: map[string]string{"vmid": "VM 121 already exists"}},
	})
}

func TestDestroy(t *testing.T) {
	t.Parallel()
	destroy := func(name, call, status string, prepare func(*fake.Server)) row {
		return row{name: name, prepare: prepare, call: "DELETE " + call, status: status, writes: 1}
	}
	runRows(t, []row{
		destroy("not there", create+"/999", "500 Configuration file 'nodes/pve/lxc/999.conf' does not exist", nil),
		destroy("protected", stopped, "500 can't remove CT 121 - protection mode enabled", func(s *fake.Server) { s.Set(121, "protection", "1") }),
		destroy("locked", stopped, "500 CT is locked (backup)", func(s *fake.Server) { s.Lock(121, "backup") }),
		destroy("HA", create+"/130", "500 unable to remove CT 130 - used in HA resources and purge parameter not set.",
			func(s *fake.Server) { s.AddLXC(130, fake.Guest{HA: true}) }),
		destroy("running", running, "500 unable to destroy CT 122 - container is running", nil),
	})
	for _, path := range []string{stopped, running + "?force=1", create + "/130?purge=1&destroy-unreferenced-disks=1"} {
		w := newWorld(t, fake.Config{})
		w.AddLXC(130, fake.Guest{HA: true})
		upid := w.must("DELETE", path, "")
		if got := w.must("GET", strings.Split(path, "?")[0]+"/config", "").(map[string]any); got["lock"] != "destroyed" {
			t.Errorf("%s: lock %v while it is destroyed", path, got["lock"])
		}
		if exit := w.task(upid); exit != "OK" || len(w.Guests()) != 2 || !strings.Contains(upid.(string), ":vzdestroy:") {
			t.Errorf("%s: %s, %+v", path, exit, w.Guests())
		}
	}
	runTaskRows(t, []taskRow{{name: "failed", prepare: func(w *world) { w.FailNextTask("zfs error: dataset is busy") }, call: "DELETE " + stopped, exit: "zfs error: dataset is busy"}})
}

func TestLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{Nodes: []string{"pve", "pve2"}})
	w.AddLXC(130, fake.Guest{Node: "pve2"})
	w.AddVM(131)
	names := func(path, key string) (names []string) {
		t.Helper()
		for _, item := range w.must("GET", path, "").([]any) {
			name, _ := item.(map[string]any)[key].(string)
			names = append(names, name)
		}
		return names
	}
	for _, c := range []struct {
		path, key string
		want      []string
	}{
		{"/nodes", "node", []string{"pve", "pve2"}},
		{"/nodes/pve/lxc", "name", []string{"docs", "proxy"}},
		{"/nodes/pve2/lxc", "name", []string{"CT130"}},
		{"/cluster/resources?type=vm", "id", []string{"lxc/121", "lxc/122", "lxc/130", "qemu/131"}},
		{"/cluster/resources?type=node", "id", []string{"node/pve", "node/pve2"}},
		{"/cluster/resources?type=storage", "storage", []string{"local", "local-lvm", "local", "local-lvm"}},
		{"/cluster/resources?type=sdn", "id", nil},
		{"/nodes/pve/storage/local/content?content=vztmpl", "volid", []string{fake.Template}},
		{"/nodes/pve/storage/local/content?content=backup", "volid", nil},
		{"/nodes/pve/storage/local-lvm/content?vmid=122", "volid", []string{"local-lvm:vm-122-disk-0"}},
	} {
		if d := cmp.Diff(c.want, names(c.path, c.key)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, d)
		}
	}
	if a := w.call("GET", "/nodes/pve/storage/ceph/content", ""); a.Status != "500 storage 'ceph' does not exist" {
		t.Errorf("unknown storage: %s", a.Status)
	}
}

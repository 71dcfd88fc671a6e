package fake_test

import (
	"testing"

	"writ/connector/proxmox/fake"
)

// limited is a token with these privileges on container 121, and nothing else anywhere.
const limited = "writ@pve!limited"

func only(privileges ...string) fake.Config {
	return fake.Config{Tokens: map[string]fake.Token{limited: {Secret: secret, Privileges: map[string][]string{"/vms/121": privileges}}}}
}

func without(privileges ...string) fake.Config {
	all := []string{}
	for _, p := range fake.Administrator() {
		keep := true
		for _, not := range privileges {
			keep = keep && p != not
		}
		if keep {
			all = append(all, p)
		}
	}
	return fake.Config{Tokens: map[string]fake.Token{limited: {Secret: secret, Privileges: map[string][]string{"/": all}}}}
}

func TestPrivileges_byCall(t *testing.T) {
	t.Parallel()
	const anyConfig = "403 Permission check failed (/vms/121, VM.Config.Disk|VM.Config.CPU|VM.Config.Memory|VM.Config.Network|VM.Config.Options)"
	deny := func(name, call, body, status string) row {
		writes := 1
		if call[:3] == "GET" {
			writes = 0
		}
		return row{name: name, config: only(), token: limited, call: call, body: body, status: status, writes: writes}
	}
	runRows(t, []row{
		deny("config", "GET "+stopped+"/config", "", "403 Permission check failed (/vms/121, VM.Audit)"),
		deny("pending", "GET "+stopped+"/pending", "", "403 Permission check failed (/vms/121, VM.Audit)"),
		deny("current", "GET "+stopped+"/status/current", "", "403 Permission check failed (/vms/121, VM.Audit)"),
		deny("put", "PUT "+stopped+"/config", "cores=2", anyConfig),
		deny("before the parameters", "PUT "+stopped+"/config", "nonsense=2", anyConfig),
		deny("start", "POST "+stopped+"/status/start", "", "403 Permission check failed (/vms/121, VM.PowerMgmt)"),
		deny("stop", "POST "+stopped+"/status/stop", "", "403 Permission check failed (/vms/121, VM.PowerMgmt)"),
		deny("shutdown", "POST "+stopped+"/status/shutdown", "", "403 Permission check failed (/vms/121, VM.PowerMgmt)"),
		deny("snapshot", "POST "+stopped+"/snapshot", "snapname=ab", "403 Permission check failed (/vms/121, VM.Snapshot)"),
		deny("snapshots", "GET "+stopped+"/snapshot", "", "403 Permission check failed (/vms/121, VM.Audit)"),
		deny("snapshot config", "GET "+stopped+"/snapshot/ab/config", "", "403 Permission check failed (/vms/121, VM.Snapshot|VM.Snapshot.Rollback|VM.Audit)"),
		deny("delete snapshot", "DELETE "+stopped+"/snapshot/ab", "", "403 Permission check failed (/vms/121, VM.Snapshot)"),
		deny("destroy", "DELETE "+stopped, "", "403 Permission check failed (/vms/121, VM.Allocate)"),
		deny("storage", "GET /nodes/pve/storage/local/content", "", "403 Permission check failed (/storage/local, Datastore.Audit|Datastore.AllocateSpace)"),
		deny("create", "POST /nodes/pve/lxc", form("vmid", "140", "ostemplate", fake.Template, "storage", "local-lvm", "unprivileged", "1"), "403 Permission check failed"),
		deny("other permissions", "GET /access/permissions?userid=root%40pam%21writ", "", "403 Permission check failed (/access, Sys.Audit)"),
		{name: "no guest is seen", config: only(), token: limited, call: "GET /nodes/pve/lxc", status: "200 OK", data: "[]"},
		{name: "nor as a resource", config: only(), token: limited, call: "GET /cluster/resources?type=vm", status: "200 OK", data: "[]"},
		{name: "nodes are seen", config: only(), token: limited, call: "GET /nodes", status: "200 OK"},
	})
}

func TestPrivileges_byOption(t *testing.T) {
	t.Parallel()
	const vm = "403 Permission check failed (/vms/121, "
	put := func(name, lacking, body, status string) row {
		return row{name: name, config: without(lacking), token: limited, call: "PUT " + stopped + "/config", body: body, status: status, writes: 1}
	}
	nic := form("net0", "name=eth0,bridge=vmbr1")
	runRows(t, []row{
		put("cores", "VM.Config.CPU", "cores=2", vm+"VM.Config.CPU)"),
		put("cpulimit", "VM.Config.CPU", "delete=cpulimit", vm+"VM.Config.CPU)"),
		put("memory", "VM.Config.Memory", "memory=1024", vm+"VM.Config.Memory)"),
		put("hostname", "VM.Config.Network", "hostname=a", vm+"VM.Config.Network)"),
		put("net", "VM.Config.Network", nic, vm+"VM.Config.Network)"),
		put("bridge", "SDN.Use", nic, "403 Permission check failed (/sdn/zones/localnetwork/vmbr0, SDN.Use)"),
		put("description", "VM.Config.Options", "description=a", vm+"VM.Config.Options)"),
		put("tags", "VM.Config.Options", "tags=a", vm+"VM.Config.Options)"),
		put("reverted", "VM.Config.Options", "revert=timezone", vm+"VM.Config.Options)"),
		put("disk", "VM.Config.Disk", "mp0=local-lvm%3A4%2Cmp%3D%2Fd", vm+"VM.Config.Disk)"),
		put("space", "Datastore.AllocateSpace", "mp0=local-lvm%3A4%2Cmp%3D%2Fd", "403 Permission check failed (/storage/local-lvm, Datastore.AllocateSpace)"),
		put("bind mount", "", "mp0=%2Fetc%2Cmp%3D%2Fd", "403 Permission check failed (mount point type bind is only allowed for root@pam)"),
		put("device mount", "", "mp0=%2Fdev%2Fsda%2Cmp%3D%2Fd", "403 Permission check failed (mount point type device is only allowed for root@pam)"),
		put("device", "", "dev0=%2Fdev%2Fkvm", "403 Permission check failed (configuring device passthrough is only allowed for root@pam)"),
		put("hookscript", "", "hookscript=local%3Asnippets%2Fa.sh", "403 Permission check failed (changing the hookscript is only allowed for root@pam)"),
		put("keyctl", "", "features=nesting%3D1%2Ckeyctl%3D1", "403 Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)"),
		put("empty features", "", "features=", "403 Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)"),
		put("nesting", "VM.Allocate", "features=nesting%3D1", vm+"VM.Allocate)"),
		{name: "nesting allowed", call: "PUT " + stopped + "/config", body: "features=nesting%3D1", status: "200 OK", data: "null", writes: 1},
		{name: "features of a privileged container", prepare: func(s *fake.Server) { s.Set(121, "unprivileged", "") }, call: "PUT " + stopped + "/config",
			body: "features=nesting%3D1", status: "403 Permission check failed (changing feature flags for privileged container is only allowed for root@pam)", writes: 1},
	})
}

func TestPrivileges_tags(t *testing.T) {
	t.Parallel()
	config := without("Sys.Modify")
	config.AllowedTags = []string{"web"}
	const mine = "403 Permission check failed (/, Sys.Modify for modifying tag 'mine')"
	runRows(t, []row{
		{name: "listed", config: config, token: limited, call: "PUT " + stopped + "/config", body: "tags=docs%3Bweb", status: "200 OK", writes: 1},
		{name: "unlisted", config: config, token: limited, call: "PUT " + stopped + "/config", body: "tags=docs%3Bmine", status: mine, writes: 1},
		{name: "unlisted, with Sys.Modify", config: config, call: "PUT " + stopped + "/config", body: "tags=docs%3Bmine", status: "200 OK", writes: 1},
		{name: "an unlisted one goes", config: config, token: limited, call: "PUT " + stopped + "/config", body: "delete=tags",
			status: "403 Permission check failed (/, Sys.Modify for modifying tag 'docs')", writes: 1},
		{name: "no list, any tag", config: without("Sys.Modify"), token: limited, call: "PUT " + stopped + "/config", body: "tags=mine", status: "200 OK", writes: 1},
	})
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	config := fake.Config{Tokens: map[string]fake.Token{
		limited: {Secret: secret, Privileges: map[string][]string{"/vms": {"VM.Audit", "VM.PowerMgmt"}, "/vms/122": {"VM.Audit"}}},
	}}
	runRows(t, []row{
		{name: "own", config: config, token: limited, call: "GET /access/permissions", status: "200 OK",
			data: `{"/vms":{"VM.Audit":1,"VM.PowerMgmt":1},"/vms/122":{"VM.Audit":1}}`},
		{name: "one path", config: config, token: limited, call: "GET /access/permissions?path=%2Fvms%2F121", status: "200 OK",
			data: `{"/vms/121":{"VM.Audit":1,"VM.PowerMgmt":1}}`},
		{name: "of another", config: config, call: "GET /access/permissions?userid=writ%40pve%21limited&path=%2F", status: "200 OK", data: `{"/":{}}`},
		{name: "a token without rights", config: fake.Config{Tokens: map[string]fake.Token{limited: {Secret: secret}}}, token: limited,
			call: "GET /access/permissions", status: "200 OK", data: `{}`},
		{name: "a longer path replaces", config: config, token: limited, call: "POST " + running + "/status/stop",
			status: "403 Permission check failed (/vms/122, VM.PowerMgmt)", writes: 1},
		{name: "what holds above holds below", config: config, token: limited, call: "POST " + stopped + "/status/start", status: "200 OK", writes: 1},
	})
}

package fake_test

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/connector/proxmox/fake"
)

const (
	stopped = "/nodes/pve/lxc/121" // docs
	running = "/nodes/pve/lxc/122" // proxy
)

func TestConfig_text(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.AddLXC(130, fake.Guest{
		Hostname: "raw", Running: true, Description: "50% of: ü\n\nend\n\n",
		Options: map[string]string{"cpulimit": "1.5", "features": "nesting=1,keyctl=1"},
		LXC:     [][2]string{{"lxc.idmap", "u 0 100000 65536"}},
	})
	w.must("PUT", "/nodes/pve/lxc/130/config", "nameserver=192.0.2.53&delete=cpulimit")
	if a := w.call("PUT", "/nodes/pve/lxc/130/config", "delete=features"); a.Status[:3] != "403" {
		t.Fatalf("deleting keyctl: %s", a.Status)
	}
	upid := w.must("POST", "/nodes/pve/lxc/130/snapshot", "snapname=before&description=first%0A")
	if exit := w.task(upid); exit != "OK" {
		t.Fatal(exit)
	}
	want := `#50%25 of%3A %C3%BC
#
#end
arch: amd64
features: nesting=1,keyctl=1
hostname: raw
memory: 512
ostype: debian
parent: before
rootfs: local-lvm:vm-130-disk-0,size=4G
swap: 512
unprivileged: 1
lxc.idmap: u 0 100000 65536

[pve:pending]
nameserver: 192.0.2.53

[before]
#first
arch: amd64
features: nesting=1,keyctl=1
hostname: raw
memory: 512
ostype: debian
rootfs: local-lvm:vm-130-disk-0,size=4G
snaptime: 1777881601
swap: 512
unprivileged: 1
lxc.idmap: u 0 100000 65536
`
	got := regexp.MustCompile(`snaptime: \d+`).ReplaceAllString(w.ConfigText(130), "snaptime: 1777881601")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("file (-want +got):\n%s", d)
	}
	sum := sha1.Sum([]byte(w.ConfigText(130)))
	shown := w.config("130")
	if shown["digest"] != hex.EncodeToString(sum[:]) {
		t.Errorf("digest %v is not the SHA-1 of the file", shown["digest"])
	}
	if shown["description"] != "50% of: ü\n\nend\n" || shown["memory"] != json.Number("512") {
		t.Errorf("shown %v", shown)
	}
	if d := cmp.Diff([]any{[]any{"lxc.idmap", "u 0 100000 65536"}}, shown["lxc"]); d != "" {
		t.Errorf("lxc (-want +got):\n%s", d)
	}
}

func TestConfig_description(t *testing.T) {
	t.Parallel()
	for written, read := range map[string]any{
		"a": "a\n", "a\n": "a\n", "a\n\n\n": "a\n", "": nil, "\n\n": nil, "a\n\nb": "a\n\nb\n", "\na": "\na\n",
		"ü: 100%\t!": "ü: 100%\t!\n", "a\r\nb": "a\r\nb\n", "0": nil, "00": "00\n", "# a": "# a\n", strings.Repeat("ä", 8192): strings.Repeat("ä", 8192) + "\n",
	} {
		w := newWorld(t, fake.Config{})
		w.must("PUT", running+"/config", form("description", written))
		if got := w.config("122")["description"]; got != read {
			t.Errorf("%.20q reads %.20q, want %.20q", written, got, read)
		}
		w.must("PUT", running+"/config", "delete=description")
		if got, ok := w.config("122")["description"]; ok {
			t.Errorf("deleted, but reads %q", got)
		}
	}
}

func TestConfig_digest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	seen := map[any]string{w.config("122")["digest"]: "the beginning"}
	step := func(what string) {
		t.Helper()
		digest := w.config("122")["digest"]
		if before, ok := seen[digest]; ok {
			t.Errorf("%s leaves the digest of %s", what, before)
		}
		seen[digest] = what
	}
	old := w.config("122")["digest"].(string)
	w.must("PUT", running+"/config", form("digest", old, "cores", "4"))
	step("an option")
	w.must("PUT", running+"/config", "timezone=host")
	step("a pending change")
	w.task(w.must("POST", running+"/snapshot", "snapname=one"))
	step("a snapshot")
	w.Touch(122)
	step("somebody else")
	const mismatch = "500 detected modified configuration - file changed by other user? Try again."
	if a := w.call("PUT", running+"/config", form("digest", old, "cores", "5")); a.Status != mismatch {
		t.Errorf("an old digest: %s", a.Status)
	}
	w.must("PUT", running+"/config", "digest=&cores=6") // empty: not checked
	if got := w.config("122")["cores"]; got != json.Number("6") {
		t.Errorf("cores %v", got)
	}
}

func TestConfig_refusals(t *testing.T) {
	t.Parallel()
	put := func(name, body, status string, errors map[string]string) row {
		return row{name: name, call: "PUT " + running + "/config", body: body, status: status, errors: errors, writes: 1}
	}
	const readOnly = "500 unable to modify read-only option: 'unprivileged'"
	rows := []row{
		put("nothing", "", "500 no options specified", nil),
		put("digest alone", "digest="+strings.Repeat("0", 40), "500 no options specified", nil),
		put("unknown option deleted", "delete=colour", failed400, map[string]string{"delete": "unknown option 'colour'"}),
		put("unknown option reverted", "revert=colour", failed400, map[string]string{"revert": "unknown option 'colour'"}),
		put("set and deleted", "delete=cores&cores=2", failed400, map[string]string{"delete": "you can't use '-cores' and -delete cores' at the same time"}),
		put("memory deleted", "delete=memory", "500 unable to delete required option 'memory'", nil),
		put("rootfs deleted", "delete=rootfs", "500 unable to delete required option 'rootfs'", nil),
		put("ostype deleted", "delete=cores%2Costype", "500 unable to delete required option 'ostype'", nil),
		put("unprivileged deleted", "delete=unprivileged", "500 unable to delete read-only option: 'unprivileged'", nil),
		put("unprivileged set", "unprivileged=0", readOnly, nil),
		put("unprivileged set to what it is", "unprivileged=1&cores=8", readOnly, nil),
		put("newline", "startup=order%3D1%0Aup%3D2", "500 detected invalid newline inside property 'startup'", nil),
		put("volume", "mp0=local-lvm%3A4%2Cmp%3D%2Fdata", "500 this fake does not imitate option 'mp0'", nil),
		put("mtu", form("net0", "name=eth0,bridge=vmbr0,mtu=9000"), "500 net0: MTU size '9000' is bigger than bridge MTU '1500'", nil),
		put("net without name", form("net0", "bridge=vmbr0,tag=4095"), failed400, map[string]string{
			"net0": "invalid format - format error\nname: property is missing and it is not optional\ntag: value must have a maximum value of 4094\n"}),
		put("net ip", form("net0", "name=eth0,ip=192.0.2.1"), failed400, map[string]string{
			"net0": "invalid format - format error\nip: invalid format - value does not look like a valid ipv4 network configuration\n\n"}),
		put("net gateway", form("net0", "name=eth0,gw=fe80::1"), failed400, map[string]string{
			"net0": "invalid format - format error\ngw: invalid format - value does not look like a valid IPv4 address\n\n"}),
		put("net MAC address", form("net0", "name=eth0,hwaddr=01:00:5E:00:00:01"), failed400, map[string]string{
			"net0": "invalid format - format error\nhwaddr: invalid format - value does not look like a valid unicast MAC address\n\n"}),
		put("net key twice", form("net0", "name=eth0,name=eth1"), failed400, map[string]string{
			"net0": "invalid format - duplicate key in comma-separated list property: name\n"}),
		put("net without keys", "net0=eth0", failed400, map[string]string{
			"net0": "invalid format - value without key, but schema does not define a default key\n"}),
		put("net key without value", form("net0", "name=eth0,tag="), failed400, map[string]string{
			"net0": "invalid format - missing key in comma-separated list property\n"}),
		put("net key", form("net0", "name=eth0,colour=red"), failed400, map[string]string{
			"net0": "invalid format - invalid key in comma-separated list property: colour\n"}),
	}
	for _, lock := range []string{"backup", "migrate", "snapshot"} {
		rows = append(rows, row{name: "locked " + lock, prepare: func(s *fake.Server) { s.Lock(122, lock) }, call: "PUT " + running + "/config",
			body: form("cores", "3", "digest", "0000"), status: "500 CT is locked (" + lock + ")", writes: 1})
	}
	rows = append(rows, row{name: "snapshot and current", call: "GET " + stopped + "/config?snapshot=ab&current=1", status: failed400,
		errors: map[string]string{"snapshot": "cannot use 'snapshot' parameter with 'current'", "current": "cannot use 'snapshot' parameter with 'current'"}})
	runRows(t, rows)
}

func TestConfig_refusalChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	before := w.ConfigText(122)
	w.call("PUT", running+"/config", "cores=8&description=new&delete=memory")
	w.call("PUT", running+"/config", "cores=8&unprivileged=0")
	if d := cmp.Diff(before, w.ConfigText(122)); d != "" {
		t.Errorf("a refused change was written in part (-before +after):\n%s", d)
	}
}

func TestConfig_pending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.must("PUT", running+"/config", form("nameserver", "192.0.2.53", "memory", "2048", "cores", "04", "tags", "Web;b,web", "searchdomain", "example.test"))
	applied := w.config("122")
	if applied["memory"] != json.Number("2048") || applied["cores"] != json.Number("4") || applied["tags"] != "b;web" || applied["nameserver"] != nil {
		t.Errorf("applied on a running container: %v", applied)
	}
	merged := w.must("GET", running+"/config", "").(map[string]any)
	if merged["nameserver"] != "192.0.2.53" {
		t.Errorf("without current=1 the pending value shows: %v", merged)
	}
	w.must("PUT", running+"/config", "revert=searchdomain")
	want := map[string]map[string]any{
		"nameserver": {"key": "nameserver", "pending": "192.0.2.53"},
		"memory":     {"key": "memory", "value": json.Number("2048")},
		"digest":     {"key": "digest", "value": applied["digest"]},
	}
	got := map[string]map[string]any{}
	for _, item := range w.must("GET", running+"/pending", "").([]any) {
		item := item.(map[string]any)
		got[item["key"].(string)] = item
	}
	want["digest"]["value"] = w.config("122")["digest"]
	for key, item := range want {
		if d := cmp.Diff(item, got[key]); d != "" {
			t.Errorf("%s (-want +got):\n%s", key, d)
		}
	}
	if _, ok := got["searchdomain"]; ok {
		t.Error("searchdomain was reverted, but is pending")
	}
	w.task(w.must("POST", running+"/status/stop", ""))
	if w.config("122")["nameserver"] != nil {
		t.Error("a stop applies what is pending")
	}
	w.task(w.must("POST", running+"/status/start", ""))
	if w.config("122")["nameserver"] != "192.0.2.53" || strings.Contains(w.ConfigText(122), "pending") {
		t.Errorf("a start does not apply what is pending:\n%s", w.ConfigText(122))
	}
	w.must("PUT", running+"/config", "delete=nameserver")
	if w.config("122")["nameserver"] == nil || !strings.Contains(w.ConfigText(122), "\n[pve:pending]\ndelete: nameserver\n") {
		t.Errorf("deleting it on a running container is not pending:\n%s", w.ConfigText(122))
	}
	w.must("PUT", running+"/config", "nameserver=192.0.2.53") // what it is already
	if strings.Contains(w.ConfigText(122), "pending") {
		t.Errorf("setting the current value leaves something pending:\n%s", w.ConfigText(122))
	}
	w.must("PUT", running+"/config", "delete=nameserver")
	w.task(w.must("POST", running+"/status/shutdown", ""))
	w.task(w.must("POST", running+"/status/start", ""))
	if w.config("122")["nameserver"] != nil || strings.Contains(w.ConfigText(122), "pending") {
		t.Errorf("a start does not delete what is to be deleted:\n%s", w.ConfigText(122))
	}
}

func TestConfig_stoppedAppliesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.must("PUT", stopped+"/config", "nameserver=192.0.2.53&delete=tags%2Ctimezone") // timezone is not set: no error
	if got := w.config("121"); got["nameserver"] != "192.0.2.53" || got["tags"] != nil {
		t.Errorf("%v", got)
	}
}

func TestConfig_net(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.must("PUT", running+"/config", form("net1", "ip=dhcp,tag=20,bridge=vmbr0,name=eth1,firewall=1"))
	w.must("PUT", running+"/config", form("net2", "name=eth2,ip=manual,ip6=auto,gw=192.0.2.1,gw6=fe80::1,mtu=1500,rate=1.5,trunks=2;3"))
	first := w.config("122")["net1"].(string)
	if !regexp.MustCompile(`^name=eth1,bridge=vmbr0,firewall=1,hwaddr=BC:24:11(:[0-9A-F]{2}){3},ip=dhcp,tag=20,type=veth$`).MatchString(first) {
		t.Errorf("net1 reads %q", first)
	}
	w.must("PUT", running+"/config", form("net1", "ip=dhcp,tag=20,bridge=vmbr0,name=eth1,firewall=1"))
	if w.config("122")["net1"] == first {
		t.Error("without hwaddr every write makes a new MAC address")
	}
	w.must("PUT", running+"/config", form("net1", first))
	if w.config("122")["net1"] != first {
		t.Error("with hwaddr the value is kept")
	}
	w.must("PUT", running+"/config", form("net10", "name=eth10"))
	w.must("PUT", running+"/config", "delete=net1%2Cnet10")
	got := w.config("122")
	if got["net1"] != nil || got["net10"] == nil {
		t.Errorf("on a running container net1 goes at once and net10 at the next start: %v", got)
	}
}

func TestConfig_failedHotplug(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.FailHotplug("net0", "no such bridge")
	before := w.ConfigText(122)
	change := func(net string) {
		t.Helper()
		a := w.call("PUT", running+"/config", form("cores", "7", "net0", net))
		want := map[string]any{"net0": "unable to hotplug net0: no such bridge"}
		if d := cmp.Diff(want, a.Errors); a.Status != failed400 || d != "" {
			t.Fatalf("%s, errors (-want +got):\n%s", a.Status, d)
		}
	}
	change("name=eth0,bridge=vmbr9,hwaddr=BC:24:11:00:01:22,ip=192.0.2.122/24")
	if d := cmp.Diff(before, w.ConfigText(122)); d != "" {
		t.Errorf("the configuration was written (-before +after):\n%s", d)
	}
	change("name=eth0,bridge=vmbr9")
	if got := w.config("122"); got["net0"] != nil || got["cores"] != json.Number("2") {
		t.Errorf("a failed change of the MAC address loses the interface and nothing else: %v", got)
	}
	w.must("PUT", stopped+"/config", form("net0", "name=eth0,bridge=vmbr9")) // stopped: nothing to plug
}

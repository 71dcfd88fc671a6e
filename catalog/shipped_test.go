package catalog_test

import (
	"fmt"
	"log/slog"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/file"
	"writ/connector/http"
	"writ/connector/mock"
	"writ/connector/netbox"
	netboxfake "writ/connector/netbox/fake"
	"writ/connector/npm"
	npmfake "writ/connector/npm/fake"
	"writ/connector/proxmox"
	proxmoxfake "writ/connector/proxmox/fake"
	"writ/sys"
)

// The shipped actions against the fakes of the systems, through their drivers:
// what no example can tell is whether the paths and fields are those of the API.

// vault is connector.Secrets with one secret for every name.
type vault string

func (v vault) Secret(string) (connector.Secret, error) { return connector.NewSecret(string(v)), nil }

// world is one system with the shipped catalog.
type world struct {
	t        *testing.T
	c        *catalog.Catalog
	target   connector.Target
	settings writ.Object
}

func connect(t *testing.T, d connector.Driver, s connector.System, secret string, settings writ.Object) *world {
	t.Helper()
	if s.BaseURL != "" {
		base, err := http.Transport("", http.Timeouts{})
		if err != nil {
			t.Fatal(err)
		}
		s.Transport, s.Plain = d.Authenticate(s, vault(secret), base), base
	}
	target, err := d.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })
	return &world{t, builtin(t), target, settings}
}

func builtin(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(catalog.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serve(t *testing.T, h nethttp.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// done is what a step leads to.
type done struct {
	fields   []writ.Field
	refusals []string
	checks   []writ.Check
	rollback *writ.Call
	outputs  writ.Object
	err      error // of a write
}

// step does what the executor does with a step, without its safeguards.
func (w *world) step(name string, params writ.Object) done {
	w.t.Helper()
	a, ok := w.c.Action(name)
	if !ok {
		w.t.Fatalf("there is no action %s", name)
	}
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
	}
	s := &catalog.Scope{System: "sys", Resolved: writ.Object{}, Settings: w.c.Settings(name), Applied: map[string]catalog.Seen{}}
	for key := range s.Settings {
		if v, ok := w.settings[key]; ok {
			s.Settings[key] = v
		}
	}
	var err error
	s.Params, err = a.Params(params)
	must(err)
	for _, r := range a.Resolves() {
		answer, err := w.call(r.Call(s))
		must(err)
		s.Resolved[r.Name], err = r.Value(s, answer)
		must(err)
	}
	s.Observed = w.readings(name, a.Observes(), s)
	s.Backup = s.Observed
	var d done
	d.refusals, err = a.Guards(s)
	must(err)
	if len(d.refusals) > 0 {
		return d
	}
	if f, err := a.Fingerprint(s); err != nil || f == "" {
		w.t.Fatalf("%s: the fingerprint is %q, %v", name, f, err)
	}
	d.fields, _, err = a.Preview(s)
	must(err)
	d.rollback, err = a.Rollback(s)
	must(err)
	if d.err = w.apply(a, s); d.err != nil || !a.Writes() {
		d.outputs, err = a.Outputs(s)
		must(err)
		return d
	}
	d.checks = w.verify(a, s)
	d.outputs, err = a.Outputs(s)
	must(err)
	return d
}

func (w *world) call(c catalog.Call, err error) (catalog.Seen, error) {
	if err != nil {
		return catalog.Seen{}, err
	}
	return w.target.Do(w.t.Context(), c)
}

func (w *world) readings(name string, readings []catalog.Reading, s *catalog.Scope) map[string]catalog.Seen {
	w.t.Helper()
	seen := map[string]catalog.Seen{}
	for _, r := range readings {
		answer, err := w.call(r.Call(s))
		if err != nil {
			w.t.Fatalf("%s: reading %s: %v", name, r.Name, err)
		}
		seen[r.Name] = answer
	}
	return seen
}

func (w *world) apply(a *catalog.Action, s *catalog.Scope) error {
	w.t.Helper()
	for _, p := range a.Applies() {
		wanted, err := p.Wanted(s)
		if err != nil {
			w.t.Fatalf("%s: %v", a.Name, err)
		}
		if !wanted {
			continue
		}
		answer, err := w.call(p.Call(s))
		if err != nil {
			return err
		}
		if p.Name != "" {
			s.Applied[p.Name] = answer
		}
	}
	for _, wait := range a.Waits() {
		for state := catalog.Pending; state != catalog.Finished; {
			answer, err := w.call(wait.Call(s))
			if err == nil {
				state, err = wait.State(s, answer)
			}
			if err != nil || state == catalog.Broken || state == catalog.Odd {
				return fmt.Errorf("the work is %s: %v, %w", state, answer.Data, err)
			}
		}
	}
	return nil
}

// verify looks again until everything passes, at most a few times.
func (w *world) verify(a *catalog.Action, s *catalog.Scope) (checks []writ.Check) {
	w.t.Helper()
	for range 6 {
		s.Observed = w.readings(a.Name, a.Observes(), s)
		s.Probed = w.readings(a.Name, a.Probes(), s)
		checks, _ = a.Verify(s)
		if passed(checks) || a.VerifyWithin() == 0 {
			break
		}
	}
	return checks
}

func passed(checks []writ.Check) bool {
	for _, c := range checks {
		if !c.Passed {
			return false
		}
	}
	return len(checks) > 0
}

// does wants a step to go through, and returns it.
func (w *world) does(name string, params writ.Object) done {
	w.t.Helper()
	d := w.step(name, params)
	if len(d.refusals) > 0 || d.err != nil || !passed(d.checks) {
		w.t.Fatalf("%s: refused %q, error %v, checks %v", name, d.refusals, d.err, d.checks)
	}
	return d
}

// undoes wants the way back to go through.
func (w *world) undoes(d done) done {
	w.t.Helper()
	if d.rollback == nil {
		w.t.Fatal("there is no way back")
	}
	return w.does(d.rollback.Action, d.rollback.Params)
}

// facts wants what is told of an entity to have values, and each named one its own.
func (w *world) facts(entity string, health writ.HealthState, want map[string]string) {
	w.t.Helper()
	kind, _, _ := strings.Cut(entity, "/")
	a, params, err := w.c.FactsOf(kind, entity)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &catalog.Scope{System: kind, Params: params, Settings: w.c.Settings(a.Name), Resolved: writ.Object{}}
	s.Observed = w.readings(a.Name, a.Observes(), s)
	if refusals, err := a.Guards(s); err != nil || len(refusals) > 0 {
		w.t.Fatalf("%s: %q, %v", entity, refusals, err)
	}
	if hash, err := a.Fingerprint(s); err != nil || hash == "" {
		w.t.Errorf("%s: the fingerprint is %q, %v", entity, hash, err)
	}
	if state, reasons := a.Health(s); state != health {
		w.t.Errorf("%s: health is %s %q, want %s", entity, state, reasons, health)
	}
	told := map[string]string{}
	for _, f := range a.Facts(s) {
		if f.Err != nil {
			w.t.Errorf("%s: %s: %v", entity, f.Name, f.Err)
		}
		if _, asked := want[f.Name]; asked {
			if told[f.Name] = f.Text; f.Absent {
				told[f.Name] = "absent"
			}
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		w.t.Errorf("%s: the facts differ (-want +got):\n%s", entity, diff)
	}
}

// refuses wants a guard to say so.
func (w *world) refuses(name string, params writ.Object, why string) {
	w.t.Helper()
	if d := w.step(name, params); !strings.Contains(strings.Join(d.refusals, "; "), why) {
		w.t.Errorf("%s: the refusals %q do not say %q; error %v", name, d.refusals, why, d.err)
	}
}

func TestShipped_mock(t *testing.T) {
	t.Parallel()
	w := connect(t, mock.New(), connector.System{}, "", nil)
	w.facts("mock/demo", writ.HealthDegraded, map[string]string{"value": "absent"})
	w.undoes(w.does("mock.noop_change", writ.Object{"value": "hello"}))
	d := w.does("mock.noop_change", writ.Object{"value": "again"})
	if diff := cmp.Diff([]writ.Field{{Name: "value", From: "", To: "again"}}, d.fields); diff != "" {
		t.Error(diff)
	}
	w.facts("mock/demo", writ.HealthOK, map[string]string{"value": "again"})
}

func newProxmox(t *testing.T) (*world, *proxmoxfake.Server) {
	t.Helper()
	const id = "writ@pve!executor"
	server := proxmoxfake.NewDemo(proxmoxfake.Config{Tokens: map[string]proxmoxfake.Token{
		id: {Secret: "fake", Privileges: map[string][]string{"/": proxmoxfake.Administrator()}},
	}})
	s := connector.System{BaseURL: serve(t, server) + "/api2/json", Options: map[string]string{"token_id": id}}
	return connect(t, proxmox.New(), s, "fake", writ.Object{"writable_vmids": []any{int64(121), int64(122)}, "nodes": []any{"pve"}}), server
}

func ct(vmid int64) writ.Object { return writ.Object{"node": "pve", "vmid": vmid} }

func with(o writ.Object, key string, value any) writ.Object {
	o[key] = value
	return o
}

func TestShipped_proxmox(t *testing.T) {
	t.Parallel()
	w, server := newProxmox(t)
	before := server.ConfigText(121)
	if d := w.step("proxmox.config_export", ct(121)); d.err != nil || d.outputs["restorable"] != true || !strings.Contains(d.outputs["config"].(string), `"hostname":"docs"`) {
		t.Errorf("the export is %v, %v", d.outputs, d.err)
	}
	d := w.does("proxmox.set_lxc_description", with(ct(121), "description", "two\nlines: 100 %"))
	w.undoes(d)
	if after := server.ConfigText(121); after != before {
		t.Errorf("the way back leads to\n%s\nnot to\n%s", after, before)
	}
	w.undoes(w.undoes(w.does("proxmox.start_lxc", ct(121)))) // shut down, start again
	w.undoes(w.does("proxmox.shutdown_lxc", with(ct(122), "timeout_seconds", int64(10))))
	w.undoes(w.does("proxmox.stop_lxc", ct(122)))
	w.refuses("proxmox.start_lxc", ct(122), "is running, not stopped")

	d = w.does("proxmox.snapshot_lxc", with(with(ct(121), "name", "before-upgrade"), "note", "a note"))
	w.refuses("proxmox.snapshot_lxc", with(ct(121), "name", "before-upgrade"), "already")
	w.undoes(d)
	w.refuses("proxmox.delete_snapshot_lxc", with(ct(121), "name", "current"), "our mark")
	w.does("proxmox.snapshot_lxc", with(ct(121), "name", "no-note"))

	server.Set(121, "onboot", "1")
	w.facts("proxmox/pve/lxc/121", writ.HealthOK, map[string]string{"status": "running", "hostname": "docs", "memory_mib": "512", "onboot": "true", "lock": "absent"})
	server.SetRunning(121, false)
	server.Lock(121, "backup")
	w.facts("proxmox/pve/lxc/121", writ.HealthDegraded, map[string]string{"status": "stopped", "lock": "backup"})
	w.refuses("proxmox.set_lxc_description", with(ct(121), "description", "x"), "locked (backup)")
}

func TestShipped_proxmoxCreate(t *testing.T) {
	t.Parallel()
	w, server := newProxmox(t)
	params := func() writ.Object {
		return writ.Object{"node": "pve", "hostname": "web-1", "ostemplate": proxmoxfake.Template, "storage": "local-lvm", "disk_gib": int64(8),
			"ip": "192.0.2.50/24", "gateway": "192.0.2.1", "vlan": int64(20), "description": "made by a test"}
	}
	d := w.does("proxmox.create_lxc", params())
	if d.outputs["vmid"] != int64(100) || d.rollback != nil {
		t.Errorf("the outputs are %v, the way back %v", d.outputs, d.rollback)
	}
	if text := server.ConfigText(100); !strings.Contains(text, "ip=192.0.2.50/24") || !strings.Contains(text, "tag=20") || !strings.Contains(text, "unprivileged: 1") {
		t.Errorf("the container is\n%s", text)
	}
	server.LoseNextCreate()
	d = w.step("proxmox.create_lxc", params())
	if e, ok := d.err.(*connector.Error); !ok || e.Outcome != writ.NotExecuted || e.Reason != "already_exists" {
		t.Errorf("a lost race is %v", d.err)
	}
	if text := server.ConfigText(101); !strings.Contains(text, "hostname: rival") {
		t.Errorf("the guest that was met is\n%s", text)
	}
	d = w.step("proxmox.create_lxc", with(params(), "ostemplate", "local:vztmpl/none.tar.zst"))
	if d.err == nil || !strings.Contains(d.err.Error(), "broken") {
		t.Errorf("a create that fails in its task is %v", d.err)
	}
	for _, end := range []struct {
		exit string
		set  func(string)
		want string // "" is success
	}{
		{"WARNINGS: 1", server.EndNextTask, ""},
		{"unexpected status", server.EndNextTask, "odd"},
		{"CT is locked (disk)", server.FailNextTask, "broken"},
	} {
		end.set(end.exit)
		d = w.step("proxmox.create_lxc", params())
		if (d.err == nil) != (end.want == "") || end.want != "" && !strings.Contains(d.err.Error(), end.want) {
			t.Errorf("a task that ends with %q is %v", end.exit, d.err)
		}
	}
}

func TestShipped_netbox(t *testing.T) {
	t.Parallel()
	const token = "nbt_fullfullfull.0000000000000000000000000000000000000000"
	server := netboxfake.New(netboxfake.Config{Demo: true, Tokens: []netboxfake.Token{{User: "writ", Secret: token, Write: true}}})
	w := connect(t, netbox.New(), connector.System{BaseURL: serve(t, server) + "/api"}, token, writ.Object{"prefix_ids": []any{int64(1)}})

	if d := w.step("netbox.export_object", writ.Object{"type": "ipam/prefixes", "id": int64(1)}); d.err != nil || d.outputs["display"] != "192.0.2.0/24" {
		t.Errorf("the export is %v, %v", d.outputs, d.err)
	}
	w.facts("netbox/ipam/prefixes/1", writ.HealthOK, map[string]string{"prefix": "192.0.2.0/24", "next_free": "192.0.2.2/24", "vrf": "absent", "tags": "[]"})
	w.facts("netbox/ipam/0/192.0.2.2", writ.HealthOK, map[string]string{"count": "0", "status": "absent"})
	made := w.does("netbox.test_write", writ.Object{"description": "first"})
	w.facts("netbox/extras/tags/writ-test", writ.HealthOK, map[string]string{"name": "writ test", "description": "first", "tagged_items": "0"})
	changed := w.does("netbox.test_write", writ.Object{"description": "second"})
	w.refuses("netbox.delete_test_tag", writ.Object{"description": "first"}, "no longer what we made")
	w.undoes(w.undoes(changed)) // back to the first, and to the second again
	w.undoes(changed)
	w.undoes(w.undoes(made)) // gone, and there again
	w.undoes(made)
	w.refuses("netbox.restore_test_tag", writ.Object{"name": "x", "description": "x"}, "there is no tag")

	ip := w.does("netbox.reserve_ip", writ.Object{"prefix_id": int64(1), "description": "for web-1", "dns_name": "web-1.lab.example"})
	if ip.outputs["address"] != "192.0.2.2/24" {
		t.Errorf("the address is %v", ip.outputs)
	}
	w.facts("netbox/ipam/0/192.0.2.2", writ.HealthOK, map[string]string{"count": "1", "status": "reserved", "dns_name": "web-1.lab.example"})
	next := w.does("netbox.reserve_ip", writ.Object{"prefix_id": int64(1), "description": "for web-2"})
	if next.outputs["address"] != "192.0.2.3/24" {
		t.Errorf("the next address is %v", next.outputs)
	}
	w.settings["prefix_ids"] = []any{int64(2)}
	w.refuses("netbox.reserve_ip", writ.Object{"prefix_id": int64(1), "description": "x"}, "settings.prefix_ids")
	w.refuses("netbox.release_ip", with(ip.rollback.Params, "description", "for somebody"), "no longer what we made")
	w.does("netbox.release_ip", with(ip.rollback.Params, "description", "for web-1"))
	w.refuses("netbox.release_ip", ip.rollback.Params, "not exactly one")
}

func TestShipped_npm(t *testing.T) {
	t.Parallel()
	page := func(text string) (string, int64) {
		u := serve(t, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { fmt.Fprint(w, text) }))
		var port int64
		if _, err := fmt.Sscanf(u, "http://127.0.0.1:%d", &port); err != nil {
			t.Fatal(err)
		}
		return "127.0.0.1", port
	}
	host, first := page("the first page")
	_, second := page("the second page")
	server := npmfake.New(npmfake.Config{
		Users: []npmfake.User{{Email: "writ@example.test", Secret: "fake", Admin: true}},
		Hosts: []npmfake.Host{{Domain: "app.example.test", Scheme: "http", Forward: host, Port: int(first)}},
	})
	s := connector.System{BaseURL: serve(t, server) + "/api", Endpoints: map[string]string{"site": serve(t, server.ProxyHandler())},
		Options: map[string]string{"identity": "writ@example.test"}}
	w := connect(t, npm.New(), s, "fake", writ.Object{"writable_ids": []any{int64(1)}})

	if d := w.step("npm.export_proxy_host", writ.Object{"id": int64(1)}); d.err != nil || !cmp.Equal(d.outputs["domain_names"], any([]any{"app.example.test"})) {
		t.Errorf("the export is %v, %v", d.outputs, d.err)
	}
	w.facts("npm/proxy-hosts/1", writ.HealthOK, map[string]string{"domain_names": `["app.example.test"]`, "enabled": "true", "online": "true", "certificate_id": "0", "own_config": "false"})
	params := writ.Object{"id": int64(1), "forward_scheme": "http", "forward_host": host, "forward_port": second, "expect": "the second page"}
	d := w.does("npm.update_backend", params) // the first requests still reach the old backend
	w.undoes(w.undoes(d))
	w.undoes(d)

	server.BreakNginx(1, "nginx: [emerg] made up")
	d = w.step("npm.update_backend", params)
	w.facts("npm/proxy-hosts/1", writ.HealthDegraded, map[string]string{"online": "false"})
	if d.err != nil || passed(d.checks) || d.checks[1].Passed {
		t.Errorf("nginx refuses the configuration, and the checks are %v, %v", d.checks, d.err)
	}
}

func TestShipped_mkdocs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("docs/index.md", "# Home\n")
	w := connect(t, file.New(sys.Real(slog.New(slog.DiscardHandler))), connector.System{Options: map[string]string{"root": root}}, "", nil)
	params := writ.Object{"path": "hosts/web-1.md", "title": "Web 1", "summary": "The first web server."}
	w.facts("file/docs/hosts/web-1.md", writ.HealthDegraded, map[string]string{"exists": "false", "title": "absent"})
	d := w.does("mkdocs.create_doc_stub", params)
	w.facts("file/docs/hosts/web-1.md", writ.HealthOK, map[string]string{"exists": "true", "title": "Web 1", "size": "31"})
	w.refuses("mkdocs.create_doc_stub", params, "already")
	page := filepath.Join(root, "docs/hosts/web-1.md")
	was, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	w.undoes(w.undoes(d)) // gone, and there again
	if again, err := os.ReadFile(page); err != nil || string(again) != string(was) {
		t.Errorf("the way back leads to %q, %v", again, err)
	}
	back := d.rollback.Params
	write("docs/index.md", "# Home\n\n[Web](hosts/web-1.md)\n")
	w.refuses("mkdocs.remove_doc_stub", back, "other pages link")
	write("docs/index.md", "# Home\n")
	write("mkdocs.yml", "nav:\n  - hosts/web-1.md\n")
	w.refuses("mkdocs.remove_doc_stub", back, "navigation")
	write("mkdocs.yml", "nav: []\n")
	write("docs/hosts/web-1.md", "# Web 1\n\nChanged.\n")
	w.refuses("mkdocs.remove_doc_stub", back, "no longer what was written")
}

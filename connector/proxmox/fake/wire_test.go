package fake_test

import (
	"io"
	"strings"
	"testing"

	"writ/connector/proxmox/fake"
	"writ/connector/recorder"
)

const failed400 = "400 Parameter verification failed."

func TestWire(t *testing.T) {
	t.Parallel()
	const conf = "/nodes/pve/lxc/121/config"
	lock := func(s *fake.Server) { s.Lock(121, "disk") }
	runRows(t, []row{
		{name: "version", call: "GET /version", status: "200 OK", data: `{"version":"9.1.3","release":"9.1","repoid":"0123456789abcdef"}`},
		{name: "nodes", call: "GET /nodes", status: "200 OK"},
		{name: "unknown method", call: "GET /foo", status: "501 Method 'GET /foo' not implemented"},
		{name: "known path, unknown method", call: "POST /version", status: "501 Method 'POST /version' not implemented", writes: 1},
		{name: "PATCH", call: "PATCH " + conf, status: "501 method 'PATCH' not available", raw: true, writes: 1},
		{name: "body on GET", call: "GET " + conf, body: "current=1", status: "501 Unexpected content for method 'GET'", raw: true},
		{name: "body on DELETE", call: "DELETE /nodes/pve/lxc/121", body: "purge=1", status: "501 Unexpected content for method 'DELETE'", raw: true, writes: 1},
		{name: "body at the limit", call: "PUT " + conf, body: "description=" + strings.Repeat("x", 512<<10-12), status: failed400,
			errors: map[string]string{"description": "value may only be 8192 characters long"}, writes: 1},
		{name: "body beyond the limit", call: "PUT " + conf, body: "description=" + strings.Repeat("x", 512<<10), status: "501 for data too large", raw: true, writes: 1},
		{name: "reason and message", prepare: lock, call: "PUT " + conf, body: "cores=2", status: "500 CT is locked (disk)", writes: 1},
		{name: "reason only, old server", config: fake.Config{LegacyErrors: true}, prepare: lock, call: "PUT " + conf, body: "cores=2",
			status: "500 CT is locked (disk)", writes: 1},
		{name: "errors, old server", config: fake.Config{LegacyErrors: true}, call: "PUT " + conf, body: "memory=15", status: failed400,
			errors: map[string]string{"memory": "value must have a minimum value of 16"}, writes: 1},
		{name: "unknown node", call: "GET /nodes/elsewhere/lxc",
			status: "500 hostname lookup 'elsewhere' failed - failed to get address info for: elsewhere: Name or service not known"},
		{name: "missing guest", call: "GET /nodes/pve/lxc/999/config", status: "500 Configuration file 'nodes/pve/lxc/999.conf' does not exist"},
		{name: "guest of another node", config: fake.Config{Nodes: []string{"pve", "pve2"}}, call: "GET /nodes/pve2/lxc/121/config",
			status: "500 Configuration file 'nodes/pve2/lxc/121.conf' does not exist"},
		{name: "a virtual machine is no container", prepare: func(s *fake.Server) { s.AddVM(130) }, call: "GET /nodes/pve/lxc/130/config",
			status: "500 Configuration file 'nodes/pve/lxc/130.conf' does not exist"},
		{name: "an escaped slash is a slash", call: "GET /nodes/pve%2Flxc/121/config", status: "200 OK"},
		{name: "slashes in a row are one", call: "GET //nodes//pve/lxc", status: "200 OK"},
	})
}

func TestParameters(t *testing.T) {
	t.Parallel()
	const put = "PUT /nodes/pve/lxc/121/config"
	bad := func(name, call, body, param, text string) row {
		writes := 1
		if strings.HasPrefix(call, "GET") {
			writes = 0
		}
		return row{name: name, call: call, body: body, status: failed400, errors: map[string]string{param: text}, writes: writes}
	}
	const unknown = "property is not defined in schema and the schema does not allow additional properties"
	runRows(t, []row{
		bad("unknown", put, "descripton=x", "descripton", unknown),
		bad("vmstate", "POST /nodes/pve/lxc/121/snapshot", "snapname=ab&vmstate=1", "vmstate", unknown),
		bad("net beyond 31", put, "net32=name%3Deth0", "net32", unknown),
		bad("net[n] itself", put, "net%5Bn%5D=name%3Deth0", "net[n]", unknown),
		bad("missing", "POST /nodes/pve/lxc", "vmid=140", "ostemplate", "property is missing and it is not optional"),
		bad("too long", put, "description="+strings.Repeat("ä", 8193), "description", "value may only be 8192 characters long"),
		bad("too short", "POST /nodes/pve/lxc", form("vmid", "140", "ostemplate", fake.Template, "password", "1234"), "password", "value must be at least 5 characters long"),
		bad("too small", put, "memory=15", "memory", "value must have a minimum value of 16"),
		bad("too big", put, "cores=8193", "cores", "value must have a maximum value of 8192"),
		bad("not an integer", put, "memory=x", "memory", "type check ('integer') failed - got 'x'"),
		bad("a fraction", put, "cores=1.5", "cores", "type check ('integer') failed - got '1.5'"),
		bad("not a number", put, "cpulimit=much", "cpulimit", "type check ('number') failed - got 'much'"),
		bad("not a boolean", "GET /nodes/pve/lxc/121/config?current=true", "", "current", "type check ('boolean') failed - got 'true'"),
		bad("not in the enumeration", put, "cmode=screen", "cmode", "value 'screen' does not have a value in the enumeration 'shell, console, tty'"),
		bad("hostname", put, "hostname=a_b", "hostname", "invalid format - value does not look like a valid DNS name\n"),
		bad("tag", put, "tags=a%2Cb%21", "tags", "invalid format - invalid characters in tag\n"),
		bad("snapshot name", "POST /nodes/pve/lxc/121/snapshot", "snapname=1st", "snapname", "invalid format - invalid configuration ID '1st'\n"),
		bad("long snapshot name", "POST /nodes/pve/lxc/121/snapshot", "snapname="+strings.Repeat("a", 41), "snapname", "value may only be 40 characters long"),
		bad("list of options", put, "delete=cores%2C1x", "delete", "invalid format - invalid configuration ID '1x'\n"),
		bad("vmid", "GET /nodes/pve/lxc/abc/config", "", "vmid", "type check ('integer') failed - got 'abc'"),
		bad("vmid too small", "GET /nodes/pve/lxc/99/config", "", "vmid", "invalid format - value does not look like a valid VM ID\n"),
		bad("negative", "POST /nodes/pve/lxc/121/status/shutdown", "timeout=-1", "timeout", "value must have a minimum value of 0"),
		bad("pattern", "GET /access/permissions?userid=nobody", "", "userid", "value does not match the regex pattern"),
		bad("storage", "GET /nodes/pve/storage/1st/content", "", "storage", "invalid format - storage ID '1st' contains illegal characters\n"),
		bad("requires", "POST /nodes/pve/lxc", form("vmid", "140", "ostemplate", fake.Template, "unique", "1"), "restore", "missing property - 'unique' requires this property"),
		bad("conflict with the path", put, "vmid=122&cores=2", "vmid", "duplicate parameter (already defined in URI) with conflicting values!"),
		{name: "the path's value again", call: put, body: "vmid=121&cores=2", status: "200 OK", data: "null", writes: 1},
		bad("query wins", put+"?cores=0", "cores=2", "cores", "value must have a minimum value of 1"),
		bad("given twice", put, "cores=1&cores=2", "cores", "type check ('integer') failed - got '1\x002'"),
		bad("a name without a value", put, "cores", "cores", "type check ('integer') failed - got ''"),
		{name: "a broken escape is kept as it is", call: put, body: "description=100%+sure&cores=2", status: "200 OK", writes: 1},
		{name: "a value ends at a second =", call: put, body: "tags=a=b!", status: "200 OK", writes: 1},
		{name: "time stamp against caches", call: "GET /version?_dc=123", status: "200 OK"},
	})
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	for header, status := range map[string]string{
		"Basic cm9vdDpyb290":                      "401 No ticket",
		"PVEAPIToken=" + admin + "=wrong":         "401 invalid token value!",
		"PVEAPIToken=" + admin:                    "401 invalid token value!",
		"PVEAPIToken=root@pam!other=" + secret:    "401 no such token 'other' for user 'root@pam'",
		"PVEAPIToken=" + auditor + "=" + secret:   "200 OK",
		"Bearer PVEAPIToken=" + admin + secret:    "401 No ticket",
		"PVEAPIToken " + admin + "=" + secret:     "401 No ticket",
		"PVEAPIToken=" + admin + "=" + secret[1:]: "401 invalid token value!",
	} {
		w := newWorld(t, fake.Config{})
		q := w.request("GET", "/api2/json/version", "")
		q.Header.Set("Authorization", header)
		a := w.send(q)
		if a.Status != status {
			t.Errorf("%q: %q, want %q", header, a.Status, status)
		}
		if status[:3] == "401" && a.Raw != "" {
			t.Errorf("%q: body %q, want none", header, a.Raw)
		}
	}
}

func TestWire_bodies(t *testing.T) {
	t.Parallel()
	const path = "/api2/json/nodes/pve/lxc/121/config"
	for _, c := range []struct {
		name, kind, body string
		chunked          bool
		status           string
	}{
		{name: "JSON", kind: "application/json", body: `{"memory":1024,"onboot":true,"description":"x","tags":null}`, status: "200 OK"},
		{name: "JSON with a list", kind: "application/json", body: `{"tags":["a"]}`, status: failed400},
		{name: "broken JSON", kind: "application/json", body: `{"memory":`, status: "501 malformed JSON string"},
		{name: "no content type", body: "cores=2", status: "200 OK"},
		{name: "form with charset", kind: "application/x-www-form-urlencoded; charset=utf-8", body: "cores=2", status: "200 OK"},
		{name: "multipart", kind: "multipart/form-data", body: "cores=2", status: "506 upload 'Content-Type 'multipart/form-data' not implemented"},
		{name: "chunked", kind: "application/x-www-form-urlencoded", body: "cores=2", chunked: true, status: "501 chunked transfer encoding not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			q := w.request("PUT", path, c.body)
			if c.kind != "" {
				q.Header.Set("Content-Type", c.kind)
			}
			if c.chunked {
				q.Body, q.GetBody, q.ContentLength = io.NopCloser(strings.NewReader(c.body)), nil, -1
			}
			if a := w.send(q); a.Status != c.status {
				t.Fatalf("answered %q %s, want %q", a.Status, a.Raw, c.status)
			}
			if want := "arch: amd64\ncores: 1\n"; c.status != "200 OK" && !strings.HasPrefix(w.ConfigText(121), want) {
				t.Errorf("a refused body changed the container:\n%s", w.ConfigText(121))
			}
			if c.name == "JSON" && !strings.Contains(w.ConfigText(121), "#x\narch: amd64\ncores: 1\nhostname: docs\nmemory: 1024\n") {
				t.Errorf("JSON was not applied:\n%s", w.ConfigText(121))
			}
		})
	}
}

func TestWire_outsideTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	for _, path := range []string{"/", "/api2/jsonx/version", "/api2/extjs/version"} {
		if a := w.send(w.request("GET", path, "")); a.Status != "501 no such file '"+path+"'" || a.Raw != "" {
			t.Errorf("%s: %q %q", path, a.Status, a.Raw)
		}
	}
}

// The recorder's faults reach through: the other node does not answer, and nothing was done.
func TestWire_faults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.Inject(recorder.Fault{Method: "PUT", Path: "/api2/json/nodes/pve/lxc/121", Mode: "answer", Status: 595, Reason: "Connection refused"})
	if a := w.call("PUT", "/nodes/pve/lxc/121/config", "cores=2"); a.Status != "595 Connection refused" {
		t.Errorf("answered %q", a.Status)
	}
	if !strings.Contains(w.ConfigText(121), "cores: 1\n") || len(w.Writes()) != 1 {
		t.Errorf("%d writes, configuration:\n%s", len(w.Writes()), w.ConfigText(121))
	}
}

package proxmox_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/connectortest"
	driver "writ/connector/http"
	"writ/connector/proxmox"
	"writ/connector/proxmox/fake"
	"writ/connector/recorder"
)

const (
	tokenID   = "writ@pve!executor"
	goodToken = "00000000-fake-4000-good-000000000001"
	poorToken = "00000000-fake-4000-poor-000000000002"
)

// newFake returns a demo cluster that knows two secrets for one token id: the suite changes secrets only.
func newFake(legacy bool) (*fake.Server, *recorder.Recorder) {
	const poor = "writ@pve!poor"
	server := fake.NewDemo(fake.Config{LegacyErrors: legacy, Tokens: map[string]fake.Token{
		tokenID: {Secret: goodToken, Privileges: map[string][]string{"/": fake.Administrator()}},
		poor:    {Secret: poorToken},
	}})
	return server, recorder.Wrap(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q.Header.Set("Authorization", strings.Replace(q.Header.Get("Authorization"), tokenID+"="+poorToken, poor+"="+poorToken, 1))
		server.ServeHTTP(w, q)
	}), nil)
}

func TestDriver(t *testing.T) {
	t.Parallel()
	for name, legacy := range map[string]bool{"current": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connectortest.Run(t, connectortest.Suite{
				Driver: proxmox.New(),
				World: func(*testing.T) connectortest.World {
					server, front := newFake(legacy)
					return connectortest.World{
						Options: map[string]string{"token_id": tokenID},
						Secrets: map[string]string{"token": goodToken},
						Fake:    front,
						Written: func() bool { return strings.HasPrefix(server.ConfigText(121), "#by the suite\n") },
					}
				},
				Read:   catalog.Call{Verb: "get", Path: "/nodes/pve/lxc/121/config", Query: map[string]string{"current": "1"}},
				Write:  catalog.Call{Verb: "put", Path: "/nodes/pve/lxc/121/config", Form: map[string]string{"description": "by the suite"}},
				Absent: catalog.Call{Verb: "get", Path: "/nodes/pve/lxc/999/config"},
				HTTP: &connectortest.HTTP{
					BasePath:  "/api2/json",
					Wrong:     map[string]string{"token": "00000000-fake-4000-none-000000000003"},
					Powerless: map[string]string{"token": poorToken},
					Privilege: "VM.Audit",
					Answers:   answers(),
				},
			})
		})
	}
}

// answers is what Proxmox means by what it says, in the reason phrase or in the body.
func answers() []connectortest.Answer {
	const legacy = `{"data":null}`
	phrase := func(status int, phrase string, outcome writ.Outcome, reason string) connectortest.Answer {
		return connectortest.Answer{Status: status, Phrase: phrase, Body: legacy, Outcome: outcome, Reason: reason}
	}
	body := func(status int, body string, outcome writ.Outcome, reason string) connectortest.Answer {
		return connectortest.Answer{Status: status, Body: body, Outcome: outcome, Reason: reason}
	}
	return []connectortest.Answer{
		phrase(500, "CT is locked (backup)", writ.Failed, "locked"),
		phrase(500, "can't lock file '/run/lock/lxc/pve-config-121.lock' - got timeout", writ.Failed, "locked"),
		phrase(500, "CT 121 already exists on node 'pve'", writ.NotExecuted, "already_exists"),
		phrase(500, "VM 121 already exists on node 'pve'", writ.NotExecuted, "already_exists"),
		phrase(500, "unable to create CT 121 - CT 121 already exists on node 'pve'", writ.NotExecuted, "already_exists"),
		phrase(500, "unable to create CT 121 - no space left", writ.Unknown, "server_error"),
		phrase(500, "detected modified configuration - file changed by other user? Try again.", writ.NotExecuted, "conflict"),
		phrase(500, "Configuration file 'nodes/pve/lxc/121.conf' does not exist", writ.NotExecuted, "not_found"),
		phrase(500, "hostname lookup 'pve9' failed - failed to get address info for: pve9: Name or service not known", writ.NotExecuted, "not_found"),
		phrase(500, "storage 'ceph' does not exist", writ.NotExecuted, "not_found"),
		phrase(500, "snapshot 'none' does not exist", writ.NotExecuted, "not_found"),
		phrase(500, "no such resource 'ct:121'", writ.NotExecuted, "not_found"),
		phrase(500, "CT 121 already running", writ.NotExecuted, "wrong_state"),
		phrase(500, "CT 121 not running", writ.NotExecuted, "wrong_state"),
		phrase(500, "unable to destroy CT 121 - container is running", writ.NotExecuted, "wrong_state"),
		phrase(500, "can't remove CT 121 - protection mode enabled", writ.NotExecuted, "protected"),
		phrase(500, "unable to remove CT 121 - used in HA resources and purge parameter not set.", writ.NotExecuted, "protected"),
		phrase(500, "cluster not ready - no quorum?", writ.NotExecuted, "no_quorum"),
		phrase(500, "no options specified", writ.NotExecuted, "rejected"),
		phrase(500, "unable to modify read-only option: 'unprivileged'", writ.NotExecuted, "rejected"),
		phrase(500, "unable to delete required option 'memory'", writ.NotExecuted, "rejected"),
		phrase(500, "unable to use snapshot name 'current' (reserved name)", writ.NotExecuted, "rejected"),
		phrase(500, "mount points configured, but 'rootfs' not set - aborting", writ.NotExecuted, "rejected"),
		phrase(500, "detected invalid newline inside property 'tags'", writ.NotExecuted, "rejected"),
		phrase(500, "net0: MTU size '9000' is bigger than bridge MTU '1500'", writ.NotExecuted, "rejected"),
		phrase(500, "something nobody has heard of", writ.Unknown, "server_error"),
		phrase(500, "failed on 'CT is locked (x)'", writ.Unknown, "server_error"), // quoted, not said
		body(500, `{"data":null,"message":"CT is locked (disk)\n"}`, writ.Failed, "locked"),
		body(500, `{"data":null,"message":"rbd error: timed out\nCT is locked (disk)\n"}`, writ.Unknown, "server_error"),
		body(500, legacy, writ.Unknown, "server_error"), // behind a proxy that drops the phrase
		body(500, "", writ.Unknown, "server_error"),
		body(400, `{"data":null,"message":"Parameter verification failed.\n","errors":{"memory":"value must have a minimum value of 16"}}`, writ.NotExecuted, "rejected"),
		body(400, `{"data":null,"errors":{"net0":"unable to hotplug net0: no such bridge"}}`, writ.Unknown, "hotplug_failed"),
		body(400, `{"data":null,"errors":{"cores":"x","mp0":"unable to apply pending change mp0 : y"}}`, writ.Unknown, "hotplug_failed"),
		phrase(400, "bad request", writ.NotExecuted, "rejected"),
		phrase(401, "No ticket", writ.NotExecuted, "unauthenticated"),
		phrase(403, "Permission check failed (/vms/121, VM.Config.Options)", writ.NotExecuted, "permission_denied"),
		phrase(501, "Method 'PUT /foo' not implemented", writ.NotExecuted, "unsupported"),
		phrase(501, "method 'PATCH' not available", writ.NotExecuted, "unsupported"),
		phrase(501, "chunked transfer encoding not supported", writ.NotExecuted, "unsupported"),
		phrase(501, "Unexpected content for method 'DELETE'", writ.NotExecuted, "unsupported"),
		phrase(501, "for data too large", writ.NotExecuted, "unsupported"),
		phrase(501, "no such uri", writ.NotExecuted, "unsupported"),
		phrase(501, "Can't locate object method", writ.Unknown, "server_error"),
		phrase(595, "Connection refused", writ.Unknown, "node_unreachable"),
		phrase(596, "Connection timed out", writ.Unknown, "node_unreachable"),
		phrase(599, "Too many redirections", writ.Unknown, "node_unreachable"),
		phrase(502, "Bad Gateway", writ.Unknown, "server_error"),
		phrase(302, "Found", writ.Unknown, "redirect_refused"),
		body(200, "<html>Please log in</html>", writ.Unknown, "bad_answer"),
		body(200, `{"success":1}`, writ.Unknown, "bad_answer"),
		body(200, `{"Data":null}`, writ.Unknown, "bad_answer"),
		body(204, "", writ.Unknown, "unexpected_status"),
	}
}

// open opens a target to a fake, as the executor does.
func open(t *testing.T, options map[string]string, base string, s http.Handler) (connector.Target, error) {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	transport, err := driver.Transport("", driver.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	d := proxmox.New()
	system := connector.System{Name: "pve-test", BaseURL: srv.URL + base, Options: options}
	system.Transport = d.Authenticate(system, vault{}, transport)
	return d.Open(system)
}

type vault struct{}

func (vault) Secret(string) (connector.Secret, error) { return connector.NewSecret(goodToken), nil }

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		granted    map[string][]string
		privileges string
		base       string
		want       string // all of what is wrong; "" is nothing
	}{
		"all that is asked for": {map[string][]string{"/vms": {"VM.Audit"}, "/vms/121": {"VM.PowerMgmt"}}, "VM.Audit VM.PowerMgmt", "/api2/json", ""},
		"nothing asked for":     {map[string][]string{"/": {"VM.Audit"}}, "", "/api2/json/", ""},
		"two are missing": {map[string][]string{"/": {"VM.Audit"}}, "VM.Audit VM.Snapshot VM.PowerMgmt", "/api2/json",
			"The API token " + tokenID + " lacks VM.Snapshot, VM.PowerMgmt; grant it to the token itself under Datacenter, Permissions: " +
				"a token with privilege separation has none of its user's privileges."},
		"wrong path": {nil, "", "", "The base_url does not end in /api2/json; it looks like https://host.example.test:8006/api2/json."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fake.NewDemo(fake.Config{Tokens: map[string]fake.Token{tokenID: {Secret: goodToken, Privileges: c.granted}}})
			target, err := open(t, map[string]string{"token_id": tokenID, "privileges": c.privileges}, c.base, server)
			if err != nil {
				t.Fatal(err)
			}
			wrong, err := target.Check(t.Context())
			if err != nil || strings.Join(wrong, "|") != c.want {
				t.Errorf("Check: %q, %v; want %q", wrong, err, c.want)
			}
			if c.base == "" && len(server.Requests()) > 0 {
				t.Error("the credential was sent to a path that is not Proxmox's")
			}
		})
	}
}

func TestCheck_unknownToken(t *testing.T) {
	t.Parallel()
	target, err := open(t, map[string]string{"token_id": tokenID}, "/api2/json", fake.NewDemo(fake.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := target.Check(t.Context())
	if err != nil || len(wrong) != 1 || !strings.HasPrefix(wrong[0], "Proxmox does not accept the API token "+tokenID+";") {
		t.Errorf("Check: %q, %v", wrong, err)
	}
}

func TestOpen_options(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id, privileges string
		ok             bool
	}{
		{"writ@pve!executor", "", true},
		{"writ@pve!executor", "VM.Audit VM.Config.Options", true},
		{"writ@pve", "", false},
		{"", "", false},
		{"writ@pve!executor=" + goodToken, "", false},
		{"writ@pve!a\r\nX: y", "", false},
		{"writ@pve!executor", "VM.Audit,VM.PowerMgmt", false},
		{"writ@pve!executor", "everything", false},
	} {
		_, err := open(t, map[string]string{"token_id": c.id, "privileges": c.privileges}, "/api2/json", http.NotFoundHandler())
		if (err == nil) != c.ok {
			t.Errorf("token_id %q, privileges %q: %v", c.id, c.privileges, err)
		}
		if err != nil && strings.Contains(err.Error(), goodToken) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

// A whole change of the kind that the actions make: what came back is what went in, and a lost race is not an unknown.
func TestDriver_lifeOfAContainer(t *testing.T) {
	t.Parallel()
	server := fake.NewDemo(fake.Config{LegacyErrors: true, Tokens: map[string]fake.Token{
		tokenID: {Secret: goodToken, Privileges: map[string][]string{"/": fake.Administrator()}}}})
	target, err := open(t, map[string]string{"token_id": tokenID}, "/api2/json", server)
	if err != nil {
		t.Fatal(err)
	}
	do := func(call catalog.Call) (any, *connector.Error) {
		t.Helper()
		seen, err := target.Do(t.Context(), call)
		if err != nil {
			return nil, err.(*connector.Error)
		}
		return seen.Data, nil
	}
	id, refused := do(catalog.Call{Verb: "get", Path: "/cluster/nextid"})
	if refused != nil || id != "100" {
		t.Fatalf("next id: %v, %v", id, refused)
	}
	create := catalog.Call{Verb: "post", Path: "/nodes/pve/lxc", Form: map[string]string{
		"vmid": "100", "ostemplate": fake.Template, "storage": "local-lvm", "unprivileged": "1", "description": "50% ü&;=+ \n"}}
	server.LoseNextCreate()
	if _, refused = do(create); refused == nil || refused.Outcome != writ.NotExecuted || refused.Reason != "already_exists" {
		t.Fatalf("a lost race: %+v", refused)
	}
	create.Form["vmid"] = "101"
	upid, refused := do(create)
	if refused != nil {
		t.Fatal(refused)
	}
	server.FinishTasks()
	status, refused := do(catalog.Call{Verb: "get", Path: "/nodes/pve/tasks/" + upid.(string) + "/status"})
	if refused != nil || status.(map[string]any)["exitstatus"] != "OK" {
		t.Fatalf("task: %v, %v", status, refused)
	}
	config, refused := do(catalog.Call{Verb: "get", Path: "/nodes/pve/lxc/101/config"})
	if refused != nil || config.(map[string]any)["description"] != "50% ü&;=+ \n" || config.(map[string]any)["memory"] != int64(512) {
		t.Errorf("config: %v, %v", config, refused)
	}
	_, refused = do(catalog.Call{Verb: "delete", Path: "/nodes/pve/lxc/122"})
	if refused == nil || refused.Reason != "wrong_state" || !strings.Contains(refused.Text, "unable to destroy CT 122 - container is running") {
		t.Errorf("destroy of a running container: %+v", refused)
	}
}

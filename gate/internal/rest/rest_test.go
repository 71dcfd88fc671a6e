package rest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/ops"
	"writ/gate/internal/rest"
	"writ/ledger"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestChange_fromProposalToRollback(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	c := g.propose()
	if c.State != "awaiting_approval" || c.Code != fault.ApprovalMissing || c.Ended || c.RequestedBy.Name != "opencode" ||
		len(c.Plan) != 1 || c.Plan[0].Preview == nil || c.Plan[0].Preview.Fields[0].From != "old <&> value" ||
		c.Decision == nil || c.Decision.Count != 1 || c.Decision.WaitSeconds != 24*3600 || !strings.Contains(c.Next, "writ approve "+c.ID) {
		t.Errorf("proposed: %+v", c)
	}
	approved := call[api.Change](g, "approver", "POST", "/v1/changes/"+c.ID+"/approvals", g.agreement(c.ID))
	if len(approved.Approvals) != 1 || approved.Approvals[0].ApprovedBy != "ana" {
		t.Errorf("approved: %+v", approved)
	}
	done := g.end(c.ID)
	if done.State != "done" || done.Code != "" || len(done.Receipts) != 1 || done.Receipts[0].BackupReference == "" || !strings.Contains(done.Next, "writ rollback") {
		t.Errorf("done: %+v", done)
	}
	undo := call[api.Change](g, "agent", "POST", "/v1/changes/"+c.ID+"/rollback", "")
	if undo.RollbackOf != c.ID || undo.State != "awaiting_approval" {
		t.Errorf("rollback: %+v", undo)
	}
	rejected := call[api.Change](g, "approver", "POST", "/v1/changes/"+undo.ID+"/rejection", `{"reason":"It is needed."}`)
	if rejected.State != "rejected" || rejected.Code != fault.Denied || rejected.Rejection.Reason != "It is needed." {
		t.Errorf("rejected: %+v", rejected)
	}
	a := call[api.Artifact](g, "auditor", "GET", "/v1/changes/"+c.ID+"/artifact", "")
	var sections map[string]any
	if err := json.Unmarshal(a.Sections, &sections); err != nil || sections["approval_request"] == nil || !strings.Contains(a.Markdown, c.ID) {
		t.Errorf("artifact: %v %v", sections, err)
	}
}

func TestEvents_areTheLinesOfTheAudit(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	c := call[api.Change](g, "agent", "POST", "/v1/changes", `{"steps":[{"action_type":"mock.noop_change","params":{"value":"x"}}],"requested_action":"a <b> & c"}`)
	call[api.Health](g, "auditor", "GET", "/v1/health", "") // catches up
	file, err := os.ReadFile(filepath.Join(g.dir, "audit", "segment", "000000000000.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	page := call[api.Events](g, "auditor", "GET", "/v1/events?after=1&limit=1000", "")
	lines := bytes.Split(bytes.TrimSpace(file), []byte("\n"))[1:] // after the seam
	if len(page.Events) == 0 || len(page.Events) != len(lines)-1 {
		t.Fatalf("%d events, %d lines", len(page.Events), len(lines))
	}
	for i, e := range page.Events {
		if !bytes.Equal(e, lines[i+1]) {
			t.Errorf("event %d differs:\n%s\n%s", i, e, lines[i+1])
		}
	}
	signed := call[api.Checkpoint](g, "agent", "GET", "/v1/checkpoint", "")
	if signed.Events != int64(len(lines)) {
		t.Errorf("the checkpoint covers %d events, and not %d", signed.Events, len(lines))
	}
	if _, err := ledger.Verify(filepath.Join(g.dir, "audit"), ledger.Against{Checkpoint: []byte(signed.Checkpoint)}); err != nil {
		t.Errorf("the audit does not fit its checkpoint: %v", err)
	}
	own := call[api.Events](g, "agent", "GET", "/v1/events?change="+c.ID, "")
	if len(own.Events) == 0 || len(own.Events) >= len(lines) {
		t.Errorf("the requester sees %d of %d events", len(own.Events), len(lines))
	}
	if p := g.refused(g.request("other", "GET", "/v1/events?change="+c.ID, "")); p.Code != fault.NotFound {
		t.Errorf("another requester: %+v", p)
	}
	if p := g.refused(g.request("other", "GET", "/v1/events", "")); p.Code != fault.Denied {
		t.Errorf("all events as a requester: %+v", p)
	}
}

// TestRoles tries every operation as every role: exactly those whom the table
// names get past the check of roles.
func TestRoles(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	body := map[string]func(id string) string{
		api.ChangePropose: func(string) string { return proposal },
		api.ChangeApprove: g.agreement,
		api.ChangeReject:  func(string) string { return `{"reason":"no"}` },
		api.ChangeSettle:  func(string) string { return settlement },
		api.HaltSet:       func(string) string { return `{"target":"mock/elsewhere","reason":"why"}` },
	}
	roles := map[string]model.Role{"agent": model.Requester, "approver": model.Approver, "operator": model.Operator, "auditor": model.Auditor, "admin": model.Admin}
	for _, op := range ops.All() {
		if p := g.refused(g.request("", op.Method, strings.NewReplacer("{id}", "chg_x", "{name}", "x").Replace(op.Path), "")); p.Code != fault.Unauthenticated || p.Status != 401 {
			t.Errorf("%s without a token: %+v", op.Name, p)
		}
		for who, role := range roles {
			id := g.propose().ID
			path := strings.NewReplacer("{id}", id, "{name}", "mock.noop_change").Replace(op.Path)
			if op.Name == api.ChangeWait {
				path += "?timeout_ms=1"
			}
			text := ""
			if make := body[op.Name]; make != nil {
				text = make(id)
			}
			resp := g.serve(g.request(who, op.Method, path, text))
			var p api.Problem
			data := read(t, resp)
			if err := json.Unmarshal(data, &p); err != nil {
				t.Fatal(err)
			}
			allowed := len(op.Roles) == 0 || role == model.Admin || slices.Contains(op.Roles, role)
			if missing := p.Reason == "role_missing"; missing == allowed {
				t.Errorf("%s as %s: %d %s; the table says %v", op.Name, role, resp.StatusCode, data, op.Roles)
			}
			if !allowed && resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s as %s: %d", op.Name, role, resp.StatusCode)
			}
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	for _, op := range ops.All() {
		if op.In == nil || op.Out == nil || op.Summary == "" {
			t.Errorf("%s is not in the table", op.Name)
		}
		decides := op.Name == api.ChangeApprove || op.Name == api.ChangeReject || op.Name == api.ChangeLift || op.Name == api.ChangeSettle || op.Name == api.HaltSet || slices.Contains(op.Roles, model.Approver)
		if decides && op.Tool != "" {
			t.Errorf("%s decides, so it must not be a tool", op.Name)
		}
		if decides && op.Method == http.MethodGet {
			t.Errorf("%s decides, so it must not be a GET", op.Name)
		}
	}
}

// TestSight: what somebody may not see does not exist for them.
func TestSight(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	id := g.propose().ID
	for _, op := range ops.All() {
		if op.Parameter() != "id" || slices.Contains(op.Roles, model.Approver) {
			continue
		}
		path := strings.Replace(op.Path, "{id}", id, 1)
		if p := g.refused(g.request("other", op.Method, path, "")); p.Code != fault.NotFound {
			t.Errorf("%s of somebody else's change: %+v", op.Name, p)
		}
	}
	if list := call[api.Changes](g, "other", "GET", "/v1/changes", ""); len(list.Changes) != 0 {
		t.Errorf("another requester lists %d changes", len(list.Changes))
	}
	if list := call[api.Changes](g, "auditor", "GET", "/v1/changes?state=awaiting_approval&limit=5", ""); len(list.Changes) != 1 {
		t.Errorf("the auditor lists %d changes", len(list.Changes))
	}
}

func TestPropose_idempotent(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	ids := map[string]bool{}
	for range 3 {
		r := g.request("agent", "POST", "/v1/changes", proposal)
		r.Header.Set("Idempotency-Key", "k1")
		resp := g.serve(r)
		var c api.Change
		if err := json.Unmarshal(read(t, resp), &c); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.StatusCode, err)
		}
		ids[c.ID] = true
	}
	if len(ids) != 1 {
		t.Errorf("one key made %d changes", len(ids))
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.propose()
	h := call[api.Health](g, "agent", "GET", "/v1/health", "")
	if !h.OK || h.Version != "test" || h.Counts.Waiting != 1 || len(h.Checks) != 10 {
		t.Errorf("%+v", h)
	}
	fails := func(name, fix string) {
		t.Helper()
		h := call[api.Health](g, "agent", "GET", "/v1/health", "")
		i := slices.IndexFunc(h.Checks, func(c api.HealthCheck) bool { return c.Name == name })
		if h.OK || i < 0 || h.Checks[i].OK || !strings.Contains(h.Checks[i].Fix, fix) {
			t.Errorf("%s: %+v", name, h)
		}
	}
	// A target that is null is no target, and everything would be stopped.
	if p := g.refused(g.request("operator", "POST", "/v1/halts", `{"reason":"why","target":null}`)); p.Code != fault.Invalid {
		t.Errorf("%+v", p)
	}
	halt := call[api.Halt](g, "operator", "POST", "/v1/halts", `{"reason":"why"}`)
	fails("halts", "writ lift "+halt.ID)
	call[api.Halt](g, "approver", "POST", "/v1/halts/"+halt.ID+"/lift", "")
	if h := call[api.Health](g, "agent", "GET", "/v1/health", ""); !h.OK {
		t.Errorf("%+v", h)
	}
	g.executor.Gate = writ.Keyring{}
	fails("trust", "writ-executor set-gate-key ")
	g.executor.Leave(fault.New(fault.Unavailable, "The executor does not answer."))
	fails("executor", "writ up")
	g.executor.Leave(fault.New(fault.Refused, "It signs with another key. Run: writ-executor doctor --dir EXECUTOR").Because("untrusted_key"))
	fails("executor", "writ-executor doctor")
}

func TestActions(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	all := call[api.Actions](g, "agent", "GET", "/v1/actions", "")
	if !slices.ContainsFunc(all.Actions, func(a api.Action) bool { return a.Name == "mock.noop_change" && a.Class == writ.ReversibleLow }) {
		t.Errorf("%+v", all)
	}
	one := call[api.Action](g, "agent", "GET", "/v1/actions/mock.noop_change", "")
	if !bytes.Contains(one.Params, []byte(`"properties"`)) || !strings.Contains(one.Source, "action: mock.noop_change") {
		t.Errorf("%+v", one)
	}
	if p := g.refused(g.request("agent", "GET", "/v1/actions/mock.none", "")); p.Code != fault.NotFound {
		t.Errorf("%+v", p)
	}
	if s := call[api.Systems](g, "agent", "GET", "/v1/systems", ""); len(s.Systems) != 1 {
		t.Errorf("%+v", s)
	}
	if p := call[api.Policy](g, "agent", "GET", "/v1/policy", ""); !p.Digest.Valid() || !strings.Contains(p.Source, "reads-run-alone") {
		t.Errorf("%+v", p)
	}
}

// TestGolden: the shape of problems and the description of the API do not
// change by accident. With -update they are rewritten.
func TestGolden(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	golden(t, "problem-no-token.json", read(t, g.serve(g.request("", "POST", "/v1/changes", proposal))))
	golden(t, "problem-role.json", read(t, g.serve(g.request("agent", "POST", "/v1/changes/chg_x/approvals", "{}"))))
	golden(t, "problem-invalid.json", read(t, g.serve(g.request("agent", "POST", "/v1/changes", `{"steps":[{"action_type":7}],"on_failure":"hope"}`))))
	var described bytes.Buffer
	if err := json.Indent(&described, read(t, g.serve(g.request("admin", "GET", rest.PathOpenAPI, ""))), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "openapi.json", described.Bytes())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; if it is meant: go test ./gate/internal/rest -update):\n%s", name, diff)
	}
}

package mcp_test

import (
	"strings"
	"testing"

	"writ/api"
	"writ/gate/internal/ops"
)

// TestTyped: with typed tools each action that may run is a tool under the name
// that agents know, takes the action's params, and proposes nothing but it.
func TestTyped(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, true)
	s := w.session("agent", "")
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string]bool{}
	for _, tool := range list.Tools {
		offered[tool.Name] = true
		if len(tool.Name) > 59 { // clients put their own word before it, and 64 is the most
			t.Errorf("%s is too long a name", tool.Name)
		}
		compiled(t, tool.InputSchema)
	}
	typed := 0
	for _, name := range w.Pipeline.Catalog.Names() {
		if a, _ := w.Pipeline.Catalog.Action(name); a.Forbidden == "" && !a.IsFacts() {
			typed++
		} else if offered["controlled_execution_"+strings.ReplaceAll(name, ".", "_")] {
			t.Errorf("%s never runs and is offered", name)
		}
	}
	for _, known := range []string{"mock_noop", "proxmox_config_export", "proxmox_set_lxc_description", "npm_proxy_export", "netbox_object_export", "netbox_test_write"} {
		if !offered["controlled_execution_"+known] {
			t.Errorf("%s is not offered", known)
		}
	}
	plain := 0
	for _, op := range ops.All() {
		if op.Tool != "" {
			plain++
		}
	}
	if len(list.Tools) != typed+plain {
		t.Errorf("%d tools, of which %d are typed and %d are operations", len(list.Tools), typed, plain)
	}
	const tool = "controlled_execution_mock_noop"
	args := map[string]any{"value": "new", "purpose": "to see it work", "client_key": "typed"}
	_, c := call[api.Change](w, s, tool, args)
	if c.State != "awaiting_approval" || len(c.Plan) != 1 || c.Plan[0].ActionType != "mock.noop_change" || c.Request.Purpose != "to see it work" {
		t.Errorf("%+v", c)
	}
	again := map[string]any{"steps": []any{map[string]any{"action_type": "mock.noop_change", "params": map[string]any{"value": "new"}}}, "purpose": "to see it work", "client_key": "typed"}
	if _, same := call[api.Change](w, s, "propose_change", again); same.ID != c.ID {
		t.Error("propose_change makes another change of the same")
	}
	for _, wrong := range []map[string]any{{}, {"value": 7}, {"value": "new", "approved": true}, {"value": "new", "steps": []any{}}, {"value": "new", "Purpose": "x"}, {"value": "new", "client_key": 7}} {
		if r := result(w, s, tool, wrong); !r.IsError || r.Meta["writ/code"] != "invalid" {
			t.Errorf("%v: %s", wrong, textOf(t, r))
		}
	}
	if r := result(w, w.session("auditor", ""), tool, args); r.Meta["writ/code"] != "denied" {
		t.Errorf("an auditor: %s", textOf(t, r))
	}
	if w.tool.Digest() == newWorld(t).tool.Digest() {
		t.Error("the digest is that of the tools without these")
	}
}

// TestDigest: the event of a proposal says which tools the model was shown.
func TestDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, c := call[api.Change](w, w.session("agent", ""), "propose_change", proposal)
	events := ask[api.Events](w, "admin", "GET", "/v1/events?change="+c.ID, "")
	if len(events.Events) == 0 || !strings.Contains(string(events.Events[0]), `"tools_digest":"`+string(w.tool.Digest())+`"`) {
		t.Errorf("%s", events.Events)
	}
}

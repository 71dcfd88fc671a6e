package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ/api"
)

// inspector asks a server as the protocol's own inspector does on a terminal.
func inspector(t *testing.T, server []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := node(ctx, t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js", append(append([]string{"--cli"}, server...), args...)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, problems.String())
	}
	// What it says beside the answer is what it finds wrong with the schemas.
	if problems.Len() > 0 {
		t.Errorf("%v: %s", args, problems.String())
	}
	return out.String()
}

// TestInspector: the protocol's own inspector lists the tools and calls them,
// over HTTP and on standard input and output.
func TestInspector(t *testing.T) {
	t.Parallel()
	clients(t)
	r := startAll(t)
	for name, server := range map[string][]string{
		"http":  {r.http + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + r.token(t, "agent")},
		"stdio": {filepath.Join(r.bin, "writ"), "mcp", "-e", "WRIT_DIR=" + r.dir},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list struct{ Tools []struct{ Name string } }
			decode(t, inspector(t, server, "--method", "tools/list", "--strict"), &list)
			if len(list.Tools) < 12 {
				t.Errorf("%d tools", len(list.Tools))
			}
			call := func(tool string, args ...string) (text string, c api.Change) {
				t.Helper()
				var result struct {
					Content           []struct{ Text string }
					StructuredContent *api.Change
				}
				result.StructuredContent = &c
				call := []string{"--method", "tools/call", "--tool-name", tool}
				for _, arg := range args {
					call = append(call, "--tool-arg", arg)
				}
				decode(t, inspector(t, server, call...), &result)
				if len(result.Content) != 1 {
					t.Fatalf("%s: %d contents", tool, len(result.Content))
				}
				return result.Content[0].Text, c
			}
			if text, _ := call("list_actions"); !strings.Contains(text, "mock.noop_change") {
				t.Error(text)
			}
			text, c := call("propose_change", `steps=[{"action_type":"mock.noop_change","params":{"value":"`+name+`"}}]`, "client_key=inspector-"+name)
			if c.State != "awaiting_approval" || !strings.Contains(text, "writ approve "+c.ID) {
				t.Errorf("%s: %s", c.State, text)
			}
			if _, again := call("get_change", "id="+c.ID); again.ID != c.ID {
				t.Errorf("get_change answers %s", again.ID)
			}
			if _, c = call("cancel_change", "id="+c.ID); c.State != "cancelled" {
				t.Errorf("cancelled, it is %s", c.State)
			}
		})
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

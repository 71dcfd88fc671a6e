package connect_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"writ/ctl/internal/connect"
	"writ/fault"
)

var server = connect.Server{
	Command: []string{"/opt/writ", "mcp", "--token-file", "/home/ops/agent.token", "--gate", "/run/gate.sock"},
	URL:     "http://127.0.0.1:8787", Token: "/home/ops/agent.token", Private: "/home/ops",
}

func place(have ...string) connect.Place {
	return connect.Place{Dir: "/srv/agent", Have: func(path string) bool { return slices.Contains(have, path) }}
}

// file returns what a client wants in a file of the working directory.
func file(t *testing.T, client, path string, lockdown bool) connect.File {
	t.Helper()
	c, err := connect.Find(client)
	if err != nil {
		t.Fatal(err)
	}
	files, err := c.Files(place(), server, lockdown)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(files, func(f connect.File) bool { return f.Path == filepath.Join("/srv/agent", path) })
	if i < 0 {
		t.Fatalf("%s has no %s", client, path)
	}
	return files[i]
}

// lookup returns a value of a text, as the client reads it.
func lookup(t *testing.T, path string, text []byte, names ...string) any {
	t.Helper()
	var v any
	if strings.HasSuffix(path, ".toml") {
		m := map[string]any{}
		if err := toml.Unmarshal(text, &m); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		v = m
	} else {
		standard, err := hujson.Standardize(bytes.Clone(text))
		if err == nil {
			err = json.Unmarshal(standard, &v)
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// TestFiles: each client is told to start the command with the file of the
// token, and the lockdown takes away what acts.
func TestFiles(t *testing.T) {
	t.Parallel()
	args := []any{"mcp", "--token-file", "/home/ops/agent.token", "--gate", "/run/gate.sock"}
	for _, c := range []struct {
		client, path string
		names        []string
		want         any
	}{
		{"opencode", "opencode.json", []string{"mcp", "writ", "command"}, append([]any{"/opt/writ"}, args...)},
		{"opencode", "opencode.json", []string{"permission"}, map[string]any{"*": "deny", "writ_*": "allow"}},
		{"claude-code", ".mcp.json", []string{"mcpServers", "writ"}, map[string]any{"type": "stdio", "command": "/opt/writ", "args": args}},
		{"claude-code", ".claude/settings.json", []string{"enabledMcpjsonServers"}, []any{"writ"}},
		{"claude-code", ".claude/settings.json", []string{"permissions", "defaultMode"}, "dontAsk"},
		{"codex", ".codex/config.toml", []string{"mcp_servers", "writ", "args"}, args},
		{"codex", ".codex/config.toml", []string{"sandbox_mode"}, "read-only"},
		{"codex", ".codex/config.toml", []string{"features"}, map[string]any{"shell_tool": false, "unified_exec": false}},
		{"gemini", ".gemini/settings.json", []string{"mcpServers", "writ", "args"}, args},
	} {
		text, err := file(t, c.client, c.path, true).Text()
		if err != nil {
			t.Errorf("%s: %v", c.client, err)
			continue
		}
		if diff := cmp.Diff(c.want, lookup(t, c.path, text, c.names...)); diff != "" {
			t.Errorf("%s %s %v:\n%s", c.client, c.path, c.names, diff)
		}
	}
	for client, path := range map[string]string{"claude-code": ".claude/settings.json", "gemini": ".gemini/settings.json"} {
		text, err := file(t, client, path, true).Text()
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range map[string][]string{"claude-code": {"Bash", "Edit", "Write", "Read(//home/ops/**)"}, "gemini": {"run_shell_command", "write_file", "replace"}}[client] {
			if !strings.Contains(string(text), `"`+tool+`"`) {
				t.Errorf("the lockdown of %s leaves %s", client, tool)
			}
		}
	}
}

// TestFiles_withoutLockdown: nothing is taken away that nobody asked to take.
func TestFiles_withoutLockdown(t *testing.T) {
	t.Parallel()
	for _, c := range connect.Clients() {
		files, err := c.Files(place(), server, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := f.Text()
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"deny", "read-only", "exclude"} {
				if strings.Contains(string(text), word) {
					t.Errorf("%s without lockdown says %s:\n%s", c.Name, word, text)
				}
			}
		}
	}
}

func TestFiles_refused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		client   string
		server   connect.Server
		lockdown bool
		reason   string
		code     fault.Code
	}{
		{"open-webui", server, true, "no_lockdown", fault.Refused},
		{"json", server, true, "no_lockdown", fault.Refused},
		{"open-webui", connect.Server{Command: server.Command, URL: "127.0.0.1:8787"}, false, "", fault.Invalid},
	} {
		client, err := connect.Find(c.client)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Files(place(), c.server, c.lockdown); fault.CodeOf(err) != c.code || fault.ReasonOf(err) != c.reason {
			t.Errorf("%s: %v", c.client, err)
		}
	}
	if _, err := connect.Find("emacs"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unknown client: %v", err)
	}
}

func TestFiles_ofTheUser(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"opencode": {"/home/ops/.config/opencode/opencode.jsonc"}, "claude-code": {"/home/ops/.claude.json"},
		"codex": {"/home/ops/.codex/config.toml"}, "gemini": {"/home/ops/.gemini/settings.json"},
		"open-webui": {""}, "json": {""},
	}
	at := place("/home/ops/.config/opencode/opencode.jsonc")
	at.Home = "/home/ops"
	for _, c := range connect.Clients() {
		files, err := c.Files(at, server, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, f.Path)
		}
		if diff := cmp.Diff(want[c.Name], got); diff != "" {
			t.Errorf("%s:\n%s", c.Name, diff)
		}
	}
}

const openCodeBefore = `{
  // which model
  "model": "local/m", // mine
  "mcp": {
    "other": {"type": "local", "command": ["x"]} // keep
  },
  "permission": {"bash": "allow"},
}
`

const openCodeAfter = `{
  // which model
  "model": "local/m", // mine
  "mcp": {
    "other": {"type": "local", "command": ["x"]}, // keep
    "writ": {
      "command": [
        "/opt/writ",
        "mcp",
        "--token-file",
        "/home/ops/agent.token",
        "--gate",
        "/run/gate.sock"
      ],
      "enabled": true,
      "timeout": 60000,
      "type": "local"
    }
  },
  "permission": {
    "*": "deny",
    "writ_*": "allow"
  },
}
`

const codexBefore = `# mine
model = "m" # this one
approval_policy = "on-request"

# what is on
[features] # few
web = true

# last
[mcp_servers.other]
command = "x"
`

const codexAfter = `# mine
model = "m" # this one
approval_policy = "never"
sandbox_mode = "read-only"
web_search = "disabled"

# what is on
[features] # few
web = true
shell_tool = false
unified_exec = false

# last
[mcp_servers.other]
command = "x"

[mcp_servers.writ]
command = "/opt/writ"
args = ["mcp","--token-file","/home/ops/agent.token","--gate","/run/gate.sock"]
default_tools_approval_mode = "approve"
`

// TestMerge: what else is in a file stays as it was written, and merging again
// changes nothing.
func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ client, path, before, after string }{
		{"opencode", "opencode.json", openCodeBefore, openCodeAfter},
		{"codex", ".codex/config.toml", codexBefore, codexAfter},
	} {
		f := file(t, c.client, c.path, true)
		once, err := f.Merge([]byte(c.before))
		if err != nil {
			t.Errorf("%s: %v", c.client, err)
			continue
		}
		if diff := cmp.Diff(c.after, string(once)); diff != "" {
			t.Errorf("%s:\n%s", c.client, diff)
		}
		if again, err := f.Merge(once); err != nil || !bytes.Equal(again, once) {
			t.Errorf("%s, merged again: %v\n%s", c.client, err, cmp.Diff(string(once), string(again)))
		}
	}
}

// TestMerge_lists: a list keeps what it has, whatever it looks like.
func TestMerge_lists(t *testing.T) {
	t.Parallel()
	f := file(t, "gemini", ".gemini/settings.json", true)
	for _, before := range []string{
		`{"tools": {"exclude": ["mine", "write_file"]}}`,
		"{\"tools\": {\"exclude\": [\n  \"mine\", // this\n  \"write_file\", // and this\n]}}",
		`{"tools": {"exclude": ["mine", "write_file",],},}`,
	} {
		text, err := f.Merge([]byte(before))
		if err != nil {
			t.Fatal(err)
		}
		want := []any{"mine", "write_file", "activate_skill", "google_web_search", "invoke_agent", "replace", "run_shell_command", "web_fetch"}
		if diff := cmp.Diff(want, lookup(t, f.Path, text, "tools", "exclude")); diff != "" {
			t.Errorf("%s\n%s\n%s", before, diff, text)
		}
		if strings.Count(string(text), "//") != strings.Count(before, "//") {
			t.Errorf("a comment is lost:\n%s", text)
		}
	}
}

// TestMerge_refuses: a text that cannot be read, or cannot be edited so that it
// says what it should, is left alone.
func TestMerge_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		client, path, before string
		code                 fault.Code
	}{
		{"opencode", "opencode.json", `{"mcp": `, fault.Invalid},
		{"opencode", "opencode.json", `[]`, fault.Invalid},
		{"opencode", "opencode.json", `{"mcp": "none"}`, fault.Conflict},
		{"gemini", ".gemini/settings.json", `{"tools": {"exclude": "all"}}`, fault.Conflict},
		{"codex", ".codex/config.toml", "model = ", fault.Invalid},
		{"codex", ".codex/config.toml", "features = 3\n", fault.Conflict},
		{"codex", ".codex/config.toml", "features = { web = true }\n", fault.Conflict},
		{"codex", ".codex/config.toml", "note = \"\"\"\nsandbox_mode = 1\n\"\"\"\n", fault.Conflict},
		{"codex", ".codex/config.toml", "approval_policy = [\n\"a\",\n]\n", fault.Conflict},
		{"codex", ".codex/config.toml", "[[mcp_servers]]\nname = \"x\"\n", fault.Conflict},
	} {
		text, err := file(t, c.client, c.path, true).Merge([]byte(c.before))
		if fault.CodeOf(err) != c.code || text != nil {
			t.Errorf("%s\n%v\n%s", c.before, err, text)
		}
	}
}

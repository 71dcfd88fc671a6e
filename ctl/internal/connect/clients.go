package connect

import (
	"strings"

	"writ/fault"
)

// name is what clients call this server. Their rules name its tools after it.
const name = "writ"

// Clients are the clients that are known, in the order in which they are listed.
func Clients() []Client {
	return []Client{opencode(), claudeCode(), openWebUI(), codex(), gemini(), anyJSON()}
}

// Find returns the client of a name.
func Find(wanted string) (Client, error) {
	var names []string
	for _, c := range Clients() {
		if c.Name == wanted {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Client{}, fault.New(fault.NotFound, "There is no client %q here. It is one of: %s. For another that takes mcpServers, use json.", wanted, strings.Join(names, ", "))
}

// opencode: the last rule that fits decides, and * comes before w.
func opencode() Client {
	file := func(p Place) string {
		path := p.at(".config/opencode/opencode.json", "opencode.json")
		if !p.Have(path) && p.Have(path+"c") {
			return path + "c"
		}
		return path
	}
	return Client{
		Name: "opencode", Title: "OpenCode",
		server: func(p Place, s Server) []File {
			return []File{{Path: file(p), Settings: []Setting{
				{Path: []string{"mcp", name}, Value: map[string]any{"type": "local", "command": s.Command, "enabled": true, "timeout": 60000}},
			}}}
		},
		lockdown: func(p Place, _ Server) []File {
			return []File{{Path: file(p), Settings: []Setting{{Path: []string{"permission"}, Value: map[string]string{"*": "deny", name + "_*": "allow"}}}}}
		},
		Notes: []string{"An agent of OpenCode with permissions of its own (agent.NAME.permission, .opencode/agent/) goes by those: look whether there is one."},
	}
}

// claudeTools are the tools of Claude Code that act, by themselves or by
// somebody they start.
var claudeTools = []string{
	"Agent", "Artifact", "Bash", "CronCreate", "Edit", "EnterWorktree", "Monitor", "NotebookEdit", "PowerShell", "RemoteTrigger",
	"ScheduleWakeup", "SendMessage", "Skill", "Task", "WebFetch", "WebSearch", "Workflow", "Write",
}

func claudeCode() Client {
	settings := func(p Place) string { return p.at(".claude/settings.json", ".claude/settings.json") }
	return Client{
		Name: "claude-code", Title: "Claude Code",
		server: func(p Place, s Server) []File {
			files := []File{{Path: p.at(".claude.json", ".mcp.json"), Settings: []Setting{{Path: []string{"mcpServers", name}, Value: map[string]any{
				"type": "stdio", "command": s.Command[0], "args": s.Command[1:],
			}}}}}
			if p.Home == "" {
				files = append(files, File{Path: settings(p), Settings: []Setting{{Path: []string{"enabledMcpjsonServers"}, Value: []string{name}, Among: true}}})
			}
			return files
		},
		lockdown: func(p Place, s Server) []File {
			return []File{{Path: settings(p), Settings: []Setting{
				{Path: []string{"permissions", "defaultMode"}, Value: "dontAsk"},
				{Path: []string{"permissions", "disableBypassPermissionsMode"}, Value: "disable"},
				{Path: []string{"permissions", "allow"}, Value: []string{"mcp__" + name}, Among: true},
				{Path: []string{"permissions", "deny"}, Value: append([]string{"Read(/" + s.Private + "/**)"}, claudeTools...), Among: true},
			}}}
		},
		Notes: []string{"Claude Code heeds what a directory allows once somebody has started it there and trusted the directory."},
	}
}

func codex() Client {
	file := func(p Place) string { return p.at(".codex/config.toml", ".codex/config.toml") }
	return Client{
		Name: "codex", Title: "Codex",
		server: func(p Place, s Server) []File {
			table := []string{"mcp_servers", name}
			return []File{{Path: file(p), Settings: []Setting{
				{Path: append(table, "command"), Value: s.Command[0]},
				{Path: []string{"mcp_servers", name, "args"}, Value: s.Command[1:]},
				{Path: []string{"mcp_servers", name, "default_tools_approval_mode"}, Value: "approve"},
			}}}
		},
		lockdown: func(p Place, _ Server) []File {
			return []File{{Path: file(p), Settings: []Setting{
				{Path: []string{"sandbox_mode"}, Value: "read-only"},
				{Path: []string{"approval_policy"}, Value: "never"},
				{Path: []string{"web_search"}, Value: "disabled"},
				{Path: []string{"features", "shell_tool"}, Value: false},
				{Path: []string{"features", "unified_exec"}, Value: false},
			}}}
		},
		Notes: []string{"Codex reads the file of a directory once somebody has started it there and trusted the directory."},
	}
}

// geminiTools are the tools of Gemini CLI that act, by themselves or by
// somebody they start.
var geminiTools = []string{"activate_skill", "google_web_search", "invoke_agent", "replace", "run_shell_command", "web_fetch", "write_file"}

func gemini() Client {
	file := func(p Place) string { return p.at(".gemini/settings.json", ".gemini/settings.json") }
	return Client{
		Name: "gemini", Title: "Gemini CLI",
		server: func(p Place, s Server) []File {
			return []File{{Path: file(p), Settings: []Setting{{Path: []string{"mcpServers", name}, Value: map[string]any{
				"command": s.Command[0], "args": s.Command[1:], "timeout": 60000, "trust": true,
			}}}}}
		},
		lockdown: func(p Place, _ Server) []File {
			return []File{{Path: file(p), Settings: []Setting{{Path: []string{"tools", "exclude"}, Value: geminiTools, Among: true}}}}
		},
	}
}

func openWebUI() Client {
	return Client{
		Name: "open-webui", Title: "Open WebUI", needsURL: true,
		server: func(_ Place, s Server) []File {
			return []File{{Settings: []Setting{{Value: []any{map[string]any{
				"type": "mcp", "url": strings.TrimSuffix(s.URL, "/") + "/mcp", "path": "", "auth_type": "bearer", "key": "the content of " + s.Token,
				"config": map[string]any{"enable": true},
				"info":   map[string]any{"id": name, "name": name, "description": "Changes to infrastructure, each approved by a human before it happens"},
			}}}}}}
		},
		Notes: []string{
			"Open WebUI keeps this in its database: add it under Admin Settings, External Tools (type MCP), or give it in the environment variable TOOL_SERVER_CONNECTIONS at the first start.",
			"It can name no file for the token: put the token itself where the text says so.",
		},
		Unlocked: "What else a model may use is set in its own admin pages: turn off Code Execution and Code Interpreter, and give the model no other tools.",
	}
}

func anyJSON() Client {
	return Client{
		Name: "json", Title: "A client that takes mcpServers",
		server: func(_ Place, s Server) []File {
			return []File{{Settings: []Setting{{Path: []string{"mcpServers", name}, Value: map[string]any{"command": s.Command[0], "args": s.Command[1:]}}}}}
		},
		Unlocked: "How its shell and its editor are taken away is in its own documentation.",
	}
}

package e2e_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpCommands ask as an agent does, with the SDK's client over writ mcp.
//
//	agent REVISION    start writ mcp and speak this revision with it
//	tool NAME JSON    call a tool; its whole result goes to stdout
//	told PATH=VALUE…  what the last tool answered, see match
//	keep VAR PATH     put a value of it into $VAR
//	finish ID         call wait_change as a client of 5 seconds does, until the change has ended
func mcpCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"agent": func(s *script, args []string) {
			s.need(args, 1, "agent REVISION")
			if s.session != nil {
				s.Check(s.session.Close())
			}
			cmd := exec.Command(s.bin+"/writ", "mcp")
			cmd.Env = []string{"WRIT_DIR=" + s.dir}
			client := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil)
			session, err := client.Connect(context.Background(), &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: args[0]})
			s.Check(err)
			s.session = session
			s.Defer(func() { _ = session.Close() })
			if got := session.InitializeResult().ProtocolVersion; got != args[0] {
				s.Fatalf("it speaks %s", got)
			}
		},
		"tool": func(s *script, args []string) {
			s.need(args, 2, "tool NAME JSON")
			s.tool(args[0], strings.Join(args[1:], " "))
		},
		"told": func(s *script, args []string) { s.match(s.answered, args) },
		"keep": func(s *script, args []string) {
			s.need(args, 2, "keep VAR PATH")
			s.Setenv(args[0], s.value(s.answered, args[1]))
		},
		"finish": func(s *script, args []string) {
			s.need(args, 1, "finish ID")
			s.eventually(args[0]+" has ended", func() (bool, string) {
				s.tool("wait_change", `{"id":"`+args[0]+`","timeout_ms":2000}`)
				state := s.value(s.answered, "structuredContent.state")
				return s.value(s.answered, "structuredContent.ended") == "true", state
			})
		},
	}
}

func (s *script) tool(name, args string) {
	r, err := s.session.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	s.Check(err)
	data, err := json.Marshal(r)
	s.Check(err)
	s.answered = string(data)
	_, err = s.Stdout().Write(append(data, '\n'))
	s.Check(err)
}

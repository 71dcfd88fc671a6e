package mcp

import (
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ/catalog"
	"writ/fault"
)

// typedPrefix begins the names of typed tools, as operators' agents know them.
const typedPrefix = "controlled_execution_"

// typedName is the name of the tool of an action.
func typedName(action string) string {
	switch action { // had another name there
	case "mock.noop_change":
		return typedPrefix + "mock_noop"
	case "npm.export_proxy_host":
		return typedPrefix + "npm_proxy_export"
	case "netbox.export_object":
		return typedPrefix + "netbox_object_export"
	}
	return typedPrefix + strings.ReplaceAll(action, ".", "_")
}

// beside is what a typed tool takes beside the params of its action, as far as
// these have other names.
var beside = []string{"client_key", "purpose", "target_system"}

// typed returns a tool that proposes one action, with the action's own params
// side by side, and the way from its arguments to those of propose.
func typed(a *catalog.Action, propose *sdk.Tool) (*sdk.Tool, func(json.RawMessage) (json.RawMessage, error)) {
	in := a.Schema()
	properties, _ := in["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
		in["properties"] = properties
	}
	more, _ := propose.InputSchema.(map[string]any)["properties"].(map[string]any)
	step := map[string]any{"type": "string", "maxLength": 64, "description": "Left out, the system named like the action's kind"}
	var ours []string
	for _, name := range beside {
		if properties[name] != nil {
			continue
		}
		ours = append(ours, name)
		if properties[name] = more[name]; name == "target_system" {
			properties[name] = step
		}
	}
	reads := !a.Writes()
	annotations := *propose.Annotations
	annotations.Title, annotations.ReadOnlyHint = a.Summary, reads
	tool := &sdk.Tool{
		Name: typedName(a.Name), Title: a.Summary,
		Description: a.Summary + ". Proposes the action " + a.Name + " and nothing else, as propose_change does: if it writes, a human decides elsewhere; then call wait_change.",
		InputSchema: in, OutputSchema: propose.OutputSchema, Annotations: &annotations,
	}
	return tool, func(args json.RawMessage) (json.RawMessage, error) {
		params := map[string]json.RawMessage{}
		if len(args) > 0 {
			if err := json.Unmarshal(args, &params); err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "The arguments are not an object.")
			}
		}
		whole, step := map[string]any{}, map[string]any{"action_type": a.Name, "params": params}
		for _, name := range ours {
			given, ok := params[name]
			if !ok {
				continue
			}
			delete(params, name)
			if name == "target_system" {
				step[name] = given
			} else {
				whole[name] = given
			}
		}
		whole["steps"] = []any{step}
		return json.Marshal(whole)
	}
}

// through hands a call on with other arguments.
func (s *Server) through(next sdk.ToolHandler, args func(json.RawMessage) (json.RawMessage, error)) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		made, err := args(r.Params.Arguments)
		if err != nil {
			return s.failed(r.Params.Name, err), nil
		}
		as, params := *r, *r.Params
		params.Arguments = made
		as.Params = &params
		return next(ctx, &as)
	}
}

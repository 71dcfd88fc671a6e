// Package mcp renders the table of operations as tools of the Model Context
// Protocol over streamable HTTP, for agents. What no agent may be given is not
// in the table as a tool, so it is not here either.
//
// The server keeps nothing between calls: a call that broke off is asked again,
// and a gate that was started again knows its clients as before. The list of
// tools is the same for everybody and does not change while the gate runs.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/gate/internal/form"
	"writ/gate/internal/model"
	"writ/gate/internal/ops"
)

// Path is where the server answers.
const Path = "/mcp"

// revisions are those of the protocol that are spoken.
var revisions = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

const instructions = `Ask for changes to infrastructure. Nothing is written before a human has approved exactly what was shown to them; you cannot approve.
The way: list_actions, describe_action, propose_change, then wait_change until the state no longer moves. A human decides elsewhere, and that may take hours.
Proposing again is never the way to carry something out.`

// Server is the tools of one gate.
type Server struct {
	gate    *ops.Gate
	log     *slog.Logger
	handler http.Handler
	digest  writ.Digest
}

// New returns the server. With typedTools there is one more tool for each action
// that may run, which proposes just that.
func New(g *ops.Gate, log *slog.Logger, typedTools bool) (*Server, error) {
	s := &Server{gate: g, log: log}
	server := sdk.NewServer(&sdk.Implementation{Name: "writ", Version: g.Version}, &sdk.ServerOptions{
		Instructions: instructions, Logger: slog.New(slog.DiscardHandler),
		Capabilities:              &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		SupportedProtocolVersions: revisions,
	})
	var list []*sdk.Tool
	registry := huma.NewMapRegistry(refPrefix, huma.DefaultSchemaNamer)
	for _, op := range ops.All() {
		if op.Tool == "" {
			continue
		}
		f := form.New(registry, op.In, op.Name)
		tool, err := describe(&op, f, registry)
		if err != nil {
			return nil, err
		}
		list = append(list, tool)
		server.AddTool(tool, s.answer(&op, f))
		if op.Name != api.ChangePropose || !typedTools {
			continue
		}
		for _, name := range g.Pipeline.Catalog.Names() {
			if a, ok := g.Pipeline.Catalog.Action(name); ok && a.Forbidden == "" && !a.IsFacts() {
				one, args := typed(a, tool)
				list = append(list, one)
				server.AddTool(one, s.through(s.answer(&op, f), args))
			}
		}
	}
	server.AddReceivingMiddleware(onlyTools)
	described, err := json.Marshal(list)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "The tools cannot be described.")
	}
	s.digest = writ.DigestBytes(described)
	// Host, Origin and token were looked at before: package rest stands in front.
	known := auth.RequireBearerToken(caller, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})
	s.handler = known(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: writ.MaxSize,
	}))
	return s, nil
}

// onlyTools answers what belongs to capabilities that the server does not
// declare as it should be: there is no such method. The SDK would answer with
// empty lists.
func onlyTools(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		of, _, _ := strings.Cut(method, "/")
		if slices.Contains([]string{"prompts", "resources", "completion", "logging"}, of) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
		}
		return next(ctx, method, r)
	}
}

// Digest is of the list of tools as clients see it.
func (s *Server) Digest() writ.Digest { return s.digest }

type callerKey struct{}

// calling is who calls, and why a tool is not to be answered.
type calling struct {
	who     model.Caller
	tooMuch error
}

// Serve answers a call of somebody who has proved who it is.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, who model.Caller) {
	body, err := io.ReadAll(io.LimitReader(r.Body, writ.MaxSize+1))
	if err != nil {
		return // nobody is there any more
	}
	tooMuch := s.gate.Limits.Request(who)
	if tooMuch != nil && !callsTool(body) {
		w.Header().Set("Retry-After", strconv.FormatInt(fault.AfterOf(tooMuch), 10))
		reply(w, http.StatusTooManyRequests, body, -32603, tooMuch)
		return
	}
	// The SDK takes the last of two members of one name; another reader in the
	// way may have looked at the first.
	if _, err := writ.Parse(body); r.Method == http.MethodPost && err != nil {
		reply(w, http.StatusOK, body, -32700, err)
		return
	}
	s.remember(w, body)
	who.Session = remembered(r).With(who.Session)
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, calling{who, tooMuch}))
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.handler.ServeHTTP(w, r)
}

// caller hands on who was let in, in the one way in which the SDK takes it to
// the handlers of tools.
func caller(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	c, ok := ctx.Value(callerKey{}).(calling)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: c.who.User(), Extra: map[string]any{"caller": c}}, nil
}

// callsTool reports whether a message calls a tool: the tool itself then says
// what is wrong, where a model reads it.
func callsTool(body []byte) bool {
	var message struct {
		Method string `json:"method"`
	}
	return json.Unmarshal(body, &message) == nil && message.Method == "tools/call"
}

// reply answers a message with an error, before anything is made of it.
func reply(w http.ResponseWriter, status int, body []byte, code int, why error) {
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(body, &message) != nil || len(message.ID) == 0 {
		status, message.ID = max(status, http.StatusBadRequest), json.RawMessage("null")
	}
	answer, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": message.ID, "error": map[string]any{"code": code, "message": fault.TextOf(why)},
	})
	if err != nil {
		status, answer = http.StatusBadRequest, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer) // whoever went away asks again
}

// answer is the handler of one tool.
func (s *Server) answer(op *ops.Op, f *form.Form) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (result *sdk.CallToolResult, _ error) {
		defer func() { // the SDK calls it in a goroutine of its own
			if p := recover(); p != nil {
				s.log.Error("a tool panicked", "tool", op.Tool, "panic", p, "stack", string(debug.Stack()))
				result = s.failed(op.Tool, fault.New(fault.Internal, "Something went wrong inside writ. The log of the gate has the cause."))
			}
		}()
		out, err := s.call(ctx, op, f, r)
		if err != nil {
			return s.failed(op.Tool, err), nil
		}
		structured := reflect.New(op.Out)
		structured.Elem().Set(reflect.ValueOf(out))
		filled(structured)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: tell(out)}}, StructuredContent: structured.Interface()}, nil
	}
}

func (s *Server) call(ctx context.Context, op *ops.Op, f *form.Form, r *sdk.CallToolRequest) (any, error) {
	var c calling
	if r.Extra != nil && r.Extra.TokenInfo != nil {
		c, _ = r.Extra.TokenInfo.Extra["caller"].(calling)
	}
	who := c.who
	if who.Name == "" {
		return nil, fault.New(fault.Unauthenticated, "Who is calling is not known.")
	}
	if c.tooMuch != nil {
		return nil, c.tooMuch
	}
	if err := op.Allow(who); err != nil {
		return nil, err
	}
	who.Session, who.Tools = who.Session.With(session(r)), s.digest
	in, err := f.Flat(r.Params.Arguments)
	if err != nil {
		return nil, err
	}
	return op.Call(ctx, s.gate, who, in)
}

// delegation is the member of _meta in which a client says on whose behalf it
// asks: a list of names, the nearest first.
const delegation = "writ/delegation"

// session is what a client says of itself, in the call or when it was connected.
func session(r *sdk.CallToolRequest) *model.Session {
	var client, version string
	if info := r.ClientInfo(); info != nil {
		client, version = info.Name, info.Version
	}
	var chain []string
	links, _ := r.Params.Meta[delegation].([]any)
	for _, link := range links {
		if name, ok := link.(string); ok {
			chain = append(chain, name)
		}
	}
	return model.NewSession(client, version, chain)
}

// failed is the result of a call that was not answered as asked. It has no
// structured content: clients hold that to the schema of the answer.
func (s *Server) failed(tool string, err error) *sdk.CallToolResult {
	row := fault.CodeOf(err).Row()
	level := slog.LevelDebug
	if row.HTTP >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	s.log.Log(context.Background(), level, "a tool was not answered as asked", "tool", tool, "code", row.Code, "reason", fault.ReasonOf(err), "error", err)
	meta := sdk.Meta{"writ/code": string(row.Code), "writ/reason": fault.ReasonOf(err), "writ/retry": row.Retry}
	if wait := fault.AfterOf(err); wait > 0 {
		meta["writ/retry_after"] = wait
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: tellFault(err)}}, Meta: meta}
}

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ/api"
	"writ/gate/internal/gatetest"
	"writ/gate/internal/mcp"
	"writ/gate/internal/rest"
)

// world is a gate with its tools, as clients reach it.
type world struct {
	*gatetest.Gate
	t    *testing.T
	tool *mcp.Server
	url  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, false)
}

func newWorldWith(t *testing.T, typedTools bool) *world {
	t.Helper()
	w := &world{Gate: gatetest.New(t), t: t}
	log := slog.New(slog.DiscardHandler)
	var err error
	if w.tool, err = mcp.New(w.Gate.Gate, log, typedTools); err != nil {
		t.Fatal(err)
	}
	handler, err := rest.New(rest.Config{
		Gate: w.Gate.Gate, Who: w.Who, Hosts: []string{"writ.example.org"}, Log: log, More: map[string]rest.Way{mcp.Path: w.tool.Serve},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// bearer puts a token on every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// session connects somebody with the SDK's client; revision "" is the newest.
func (w *world) session(who, revision string) *sdk.ClientSession {
	w.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(w.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: w.url + mcp.Path, HTTPClient: &http.Client{Transport: bearer(w.Tokens[who])},
	}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// call calls a tool and returns its text and its structured content.
func call[T any](w *world, s *sdk.ClientSession, tool string, args any) (text string, out T) {
	w.t.Helper()
	r := result(w, s, tool, args)
	if r.IsError {
		w.t.Fatalf("%s: %s", tool, textOf(w.t, r))
	}
	data, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return textOf(w.t, r), out
}

func result(w *world, s *sdk.ClientSession, tool string, args any) *sdk.CallToolResult {
	w.t.Helper()
	r, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		w.t.Fatalf("%s: %v", tool, err)
	}
	return r
}

func textOf(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("%d contents", len(r.Content))
	}
	text, ok := r.Content[0].(*sdk.TextContent)
	if !ok || text.Text == "" {
		t.Fatalf("the content is %T", r.Content[0])
	}
	return text.Text
}

// post sends one message past the SDK's client.
func (w *world) post(who, body string, header map[string]string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+mcp.Path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+w.Tokens[who])
	}
	for name, value := range header {
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(bytes.TrimSpace(data))
}

// rest asks past the tools.
func ask[T any](w *world, who, method, path, body string) (out T) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.Tokens[who])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == http.StatusOK {
		err = json.Unmarshal(data, &out)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s (%v)", method, path, resp.StatusCode, data, err)
	}
	return out
}

// approve does what an approver does who has read the review.
func (w *world) approve(id string) {
	w.t.Helper()
	review := ask[api.Review](w, "approver", "GET", "/v1/changes/"+id+"/review", "")
	body, err := json.Marshal(api.Agreement{EnvelopeDigest: review.EnvelopeDigest, ShownDigest: review.ShownDigest, Phrase: review.Phrase})
	if err != nil {
		w.t.Fatal(err)
	}
	ask[api.Change](w, "approver", "POST", "/v1/changes/"+id+"/approvals", string(body))
}

var proposal = map[string]any{"steps": []any{map[string]any{"action_type": "mock.noop_change", "params": map[string]any{"value": "new"}}}, "purpose": "to see it work"}

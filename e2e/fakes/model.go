package fakes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
)

// Model is a language model behind the API that most clients speak: chat
// completions, streamed. It says what it is told to say.
type Model struct {
	URL string // below which the API is

	say    func(results []string) Reply
	server *httptest.Server
}

// Reply is what a model says next: a call of a tool, or a text.
type Reply struct {
	Tool      string
	Arguments map[string]any
	Text      string
}

// StartModel starts a model that says what say returns, which is given what the
// tools that were called so far answered. Close ends it.
func StartModel(say func(results []string) Reply) *Model {
	m := &Model{say: say}
	m.server = httptest.NewServer(m)
	m.URL = m.server.URL + "/v1"
	return m
}

// Close ends it.
func (m *Model) Close() {
	m.server.CloseClientConnections()
	m.server.Close()
}

// conversation is what a model looks at of a request.
type conversation struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []json.RawMessage `json:"tools"`
}

// ServeHTTP answers one turn.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c conversation
	if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&c) != nil {
		http.Error(w, `{"error":{"message":"only chat completions"}}`, http.StatusNotFound)
		return
	}
	reply := Reply{Text: "a title"} // who offers no tools asks for one
	if len(c.Tools) > 0 {
		var results []string
		for _, message := range c.Messages {
			if message.Role == "tool" {
				results = append(results, textOf(message.Content))
			}
		}
		reply = m.say(results)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	delta, end := map[string]any{"role": "assistant", "content": reply.Text}, "stop"
	if reply.Tool != "" {
		arguments, _ := json.Marshal(reply.Arguments) // what a test made
		delta["tool_calls"] = []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("call_%d", len(c.Messages)), "type": "function",
			"function": map[string]any{"name": reply.Tool, "arguments": string(arguments)},
		}}
		delete(delta, "content")
		end = "tool_calls"
	}
	chunk(w, delta, nil)
	chunk(w, map[string]any{}, &end)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n") // a client that is gone wants none
}

func chunk(w http.ResponseWriter, delta map[string]any, end *string) {
	data, _ := json.Marshal(map[string]any{
		"id": "turn", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": end}},
	})
	_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
}

// textOf reads a content, which is a text or parts of one.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts) // anything else has no text
	for _, p := range parts {
		text += p.Text
	}
	return text
}

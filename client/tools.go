package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"

	"writ/fault"
)

// toolsPath is where the gate speaks the Model Context Protocol.
const toolsPath = "/mcp"

// sessionHeader is where a program says what it is.
const sessionHeader = "Writ-Session"

var headerForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)

// Message hands one message of the Model Context Protocol to the gate, and
// returns the answer, nil if there is none. Revision is the one that was agreed
// on, "" before; a message that names its own needs none. Session is what the
// program that asks says of itself, "name/version", or "".
func (c *Client) Message(ctx context.Context, message []byte, revision, session string) ([]byte, error) {
	var m struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
			Meta struct {
				Revision string `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
		} `json:"params"`
	}
	// What cannot be read is the gate's to refuse.
	_ = json.Unmarshal(message, &m)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+toolsPath, bytes.NewReader(message))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "The message cannot be sent.")
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set(sessionHeader, session)
	}
	headers := map[string]string{"Mcp-Protocol-Version": revision}
	if m.Params.Meta.Revision != "" {
		headers = map[string]string{"Mcp-Protocol-Version": m.Params.Meta.Revision, "Mcp-Method": m.Method, "Mcp-Name": m.Params.Name}
	}
	for name, value := range headers {
		if headerForm.MatchString(value) {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if len(data) > maxAnswer {
		return nil, fault.New(fault.Internal, "The gate at %s answered more than %d bytes.", c.at, maxAnswer)
	}
	var answer struct {
		Version string `json:"jsonrpc"`
	}
	switch {
	case resp.StatusCode == http.StatusAccepted:
		return nil, nil
	case json.Unmarshal(data, &answer) == nil && answer.Version == "2.0":
		return data, nil
	}
	return nil, c.problem(resp.StatusCode, data)
}

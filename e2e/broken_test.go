package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"writ/api"
	"writ/client"
)

// message is a call of a tool, as it goes over the wire.
func message(tool string, args map[string]any) string {
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(data)
}

// wire is a message as an HTTP request, byte by byte.
func (r running) wire(token, body string) string {
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", strings.TrimPrefix(r.http, "http://"), token, len(body), body)
}

// cutOff sends a request and hangs up: after so many bytes of it or, if that is
// not less than all, after so many bytes of the answer.
func (r running) cutOff(request string, after int) error {
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.http, "http://"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, request[:min(after, len(request))]); err != nil || after <= len(request) {
		return err
	}
	_, err = io.CopyN(io.Discard, conn, int64(after-len(request)))
	return err
}

// tool calls a tool over HTTP and returns the change that it answers with.
func (r running) tool(ctx context.Context, token, body string) (c api.Change, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.http+"/mcp", strings.NewReader(body))
	if err != nil {
		return c, err
	}
	q.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return c, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Result struct {
			IsError           bool
			Content           []struct{ Text string }
			StructuredContent api.Change
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return c, err
	}
	if answer.Result.IsError || answer.Result.StructuredContent.ID == "" {
		return c, fmt.Errorf("%s: %+v", body, answer.Result.Content)
	}
	return answer.Result.StructuredContent, nil
}

// approve does what a person does who has read what is shown.
func (r running) approve(ctx context.Context, id string) error {
	review, err := r.human.Review(ctx, id)
	if err == nil {
		_, err = r.human.Approve(ctx, id, api.Agreement{EnvelopeDigest: review.EnvelopeDigest, ShownDigest: review.ShownDigest})
	}
	return err
}

// inParallel runs f n times in so many workers, and fails with each error.
func inParallel(t *testing.T, workers, n int, f func(i int) error) {
	t.Helper()
	next := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// TestDisconnects: an agent that loses the connection somewhere in each message
// of a call, 200 times, and asks again under the same key, gets one change and
// one result each time, and no step runs twice.
func TestDisconnects(t *testing.T) {
	t.Parallel()
	r, ctx := startAll(t), t.Context()
	token := r.token(t, "agent")
	const calls, answer = 200, 300 // bytes of an answer, which is longer
	inParallel(t, 8, calls, func(i int) error {
		again := func(tool string, args map[string]any) (api.Change, error) {
			body := message(tool, args)
			whole := r.wire(token, body)
			// Spread over all of the request and the beginning of the answer.
			if err := r.cutOff(whole, 1+i*(len(whole)+answer)/calls); err != nil {
				return api.Change{}, err
			}
			return r.tool(ctx, token, body)
		}
		c, err := again("propose_change", map[string]any{
			"steps":      []any{map[string]any{"action_type": "mock.noop_change", "params": map[string]any{"name": fmt.Sprint("n", i), "value": fmt.Sprint(i)}}},
			"client_key": fmt.Sprint("key-", i),
		})
		for err == nil && (c.State == "proposed" || c.State == "planned") {
			c, err = again("wait_change", map[string]any{"id": c.ID, "timeout_ms": 100})
		}
		if err == nil {
			err = r.approve(ctx, c.ID)
		}
		for err == nil && !c.Ended {
			c, err = again("wait_change", map[string]any{"id": c.ID, "timeout_ms": 1000})
		}
		if err == nil && (c.State != "done" || len(c.Receipts) != 1) {
			err = fmt.Errorf("it is %s after %d steps", c.State, len(c.Receipts))
		}
		return err
	})
	all, err := r.human.Changes(ctx, client.ChangeFilter{Limit: 1000})
	if err != nil || len(all.Changes) != calls {
		t.Errorf("there are %d changes, %v", len(all.Changes), err)
	}
}

// TestRepeated: 1,000 proposals under one key, over both ways, are one change.
func TestRepeated(t *testing.T) {
	t.Parallel()
	r, ctx := startAll(t), t.Context()
	token := r.token(t, "agent")
	body := message("propose_change", map[string]any{
		"steps": []any{map[string]any{"action_type": "mock.noop_change", "params": map[string]any{"value": "once"}}}, "client_key": "once",
	})
	inParallel(t, 16, 1000, func(i int) (err error) {
		if i%2 == 0 {
			_, err = r.tool(ctx, token, body)
			return err
		}
		_, err = r.agent.Propose(ctx, api.Proposal{Steps: []api.ProposedStep{{ActionType: "mock.noop_change", Params: map[string]any{"value": "once"}}}}, "once")
		return err
	})
	all, err := r.human.Changes(ctx, client.ChangeFilter{})
	if err != nil || len(all.Changes) != 1 {
		t.Errorf("there are %d changes, %v", len(all.Changes), err)
	}
}

// TestCancel_stdio: a client that cancels a call over writ mcp is told no more
// than that, and the command does not wait for the gate's answer.
func TestCancel_stdio(t *testing.T) {
	t.Parallel()
	r, ctx := startAll(t), t.Context()
	token := r.token(t, "agent")
	c, err := r.tool(ctx, token, message("propose_change", map[string]any{
		"steps": []any{map[string]any{"action_type": "mock.noop_change", "params": map[string]any{"value": "x"}}},
	}))
	for err == nil && c.State != "awaiting_approval" {
		c, err = r.tool(ctx, token, message("wait_change", map[string]any{"id": c.ID}))
	}
	if err != nil {
		t.Fatal(err)
	}
	shim := exec.CommandContext(ctx, filepath.Join(r.bin, "writ"), "mcp")
	shim.Env = r.env
	in, err := shim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	shim.Stderr = &problems
	if err := shim.Start(); err != nil {
		t.Fatal(err)
	}
	wait := message("wait_change", map[string]any{"id": c.ID, "timeout_ms": 20_000})
	for _, line := range []string{
		strings.Replace(wait, `"id":1,`, `"id":"long",`, 1),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long","reason":"no longer needed"}}`,
		message("get_change", map[string]any{"id": c.ID}),
	} {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var answers []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		answers = append(answers, lines.Text())
	}
	// What was not cancelled would be waited for.
	if err := shim.Wait(); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("it ended after %s: %v %s", time.Since(began), err, problems.String())
	}
	asked := 0
	for _, answer := range answers {
		switch {
		case strings.Contains(answer, `"id":1,`) && strings.Contains(answer, c.ID):
			asked++
		case !strings.Contains(answer, `"id":"long"`) || !strings.Contains(answer, `"writ/code":"canceled"`):
			t.Errorf("it answered %s", answer)
		}
	}
	if asked != 1 {
		t.Errorf("it answered %q", answers)
	}
}

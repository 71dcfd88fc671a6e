package client

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"writ/api"
	"writ/fault"
)

// comeBack is how long a stream that broke off is left alone.
const comeBack = time.Second

// Follow gives each audit event of a change with a sequence higher than after to
// do, as it comes, until the change has ended or do fails. A stream that breaks
// off, as it does when the gate is started again, goes on where it was.
func (c *Client) Follow(ctx context.Context, id string, after int64, do func(event json.RawMessage) error) error {
	op, _ := api.OperationOf(api.ChangeEvents)
	if strings.Trim(id, ".") == "" {
		return fault.New(fault.Invalid, "%q is not the id of anything.", id)
	}
	target := c.base + strings.Replace(op.Path, "{id}", url.PathEscape(id), 1)
	for heard := false; ; heard = true {
		var ended bool
		var err error
		after, ended, err = c.stream(ctx, target, after, do)
		code := fault.CodeOf(err)
		if away := code == fault.Unavailable || code == fault.Timeout; ended || err != nil && (!heard || !away) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(comeBack):
		}
	}
}

// stream reads one stream to its end and returns the last sequence, and whether
// nothing more will come.
func (c *Client) stream(ctx context.Context, target string, after int64, do func(json.RawMessage) error) (int64, bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return after, true, fault.Wrap(fault.Invalid, err, "The request does not name anything that can be asked for.")
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	resp, err := c.http.Do(req)
	if err != nil {
		return after, false, c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return after, true, nil
	case resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		data, err := c.whole(ctx, resp)
		if err == nil {
			err = c.problem(resp.StatusCode, data)
		}
		return after, fault.CodeOf(err) != fault.Unavailable, err
	}
	sequence := after
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			if sequence, err = strconv.ParseInt(value, 10, 64); err != nil || sequence <= after {
				return after, true, fault.Wrap(fault.Internal, err, "What answers at %s is not a gate of this version.", c.at)
			}
		case "data":
			if err := do(json.RawMessage(value)); err != nil {
				return after, true, err
			}
			after = sequence
		}
	}
	return after, false, ctx.Err()
}

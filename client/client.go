// Package client asks the gate over its REST API, on a Unix socket, on loopback
// or over TLS. Its errors carry the code, the reason and the sentence that the
// gate answered with.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"writ"
	"writ/api"
	"writ/fault"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 32 << 20

// maxWait is the longest that one call waits for a change to move on.
const maxWait = 20 * time.Second

// Client asks one gate as one principal. It is safe for concurrent use.
type Client struct {
	base  string // scheme and host of every URL
	at    string // where the gate is, for people
	token string
	http  *http.Client
}

// New returns a client for the gate at an address: the path of its Unix socket,
// host:port on loopback, or https://host:port anywhere. The certificate of the
// last must be vouched for by one of the machine's authorities.
func New(address, token string) (*Client, error) { return newClient(address, token, nil) }

// NewTrusting is New for a gate whose certificate, or the authority that vouches
// for it, is in a PEM file; "" is New.
func NewTrusting(address, token, file string) (*Client, error) {
	if file == "" {
		return New(address, token)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The authority of the gate's certificate cannot be read from %s.", file)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return nil, fault.New(fault.Invalid, "There is no certificate in PEM in %s.", file)
	}
	return newClient(address, token, roots)
}

func newClient(address, token string, roots *x509.CertPool) (*Client, error) {
	var d net.Dialer
	dialed := address
	t := &http.Transport{
		// No proxy: the token goes to the gate and nowhere else.
		Proxy:             nil,
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if strings.HasPrefix(address, "/") {
				return d.DialContext(ctx, "unix", address)
			}
			return d.DialContext(ctx, "tcp", dialed)
		},
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}
	c := &Client{base: "http://localhost", at: address, token: token}
	switch host, _, err := net.SplitHostPort(address); {
	case strings.HasPrefix(address, "/"):
	case strings.HasPrefix(address, "https://"):
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" || u.User != nil {
			return nil, fault.New(fault.Invalid, "%q is no place of a gate: give https://, its name and its port, and nothing else.", address)
		}
		c.base, dialed = "https://"+u.Host, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))
	case err == nil && loopback(host):
		c.base = "http://" + address
	default:
		return nil, fault.New(fault.Invalid, "%q is no place of a gate: give the path of its socket, 127.0.0.1 and a port, or https://, its name and its port.", address)
	}
	c.http = &http.Client{
		Transport: t,
		// A redirect would carry the token to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// call is one request: what is named in the path, the query, a body, headers.
type call struct {
	operation string
	of        string
	query     url.Values
	key       string
	body      any
}

func (c *Client) do(ctx context.Context, k call, out any) error {
	op, ok := api.OperationOf(k.operation)
	if !ok {
		return fault.New(fault.Internal, "There is no operation %s.", k.operation)
	}
	path := op.Path
	if name := op.Parameter(); name != "" {
		// "", "." and ".." would name another route.
		if strings.Trim(k.of, ".") == "" {
			return fault.New(fault.Invalid, "%q is not the %s of anything.", k.of, name)
		}
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(k.of), 1)
	}
	var body io.Reader
	if op.Method == http.MethodPost {
		if k.body == nil {
			k.body = struct{}{}
		}
		b, err := json.Marshal(k.body)
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "The request cannot be written as JSON.")
		}
		body = bytes.NewReader(b)
	}
	target := c.base + path
	if len(k.query) > 0 {
		target += "?" + k.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, op.Method, target, body)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "The request does not name anything that can be asked for.")
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if k.key != "" {
		req.Header.Set("Idempotency-Key", k.key)
	}
	return c.send(req, out)
}

func (c *Client) send(req *http.Request, out any) error {
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(req.Context(), err)
	}
	defer resp.Body.Close()
	data, err := c.whole(req.Context(), resp)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 == 2 {
		if err := json.Unmarshal(data, out); err != nil {
			return fault.Wrap(fault.Internal, err, "What answers at %s is not a gate of this version.", c.at)
		}
		return nil
	}
	return c.problem(resp.StatusCode, data)
}

// whole is all of an answer.
func (c *Client) whole(ctx context.Context, resp *http.Response) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if len(data) > maxAnswer {
		return nil, fault.New(fault.Internal, "The gate at %s answered more than %d bytes.", c.at, maxAnswer)
	}
	return data, nil
}

// problem is an answer that is not a success, as an error.
func (c *Client) problem(status int, data []byte) error {
	var p api.Problem
	if err := json.Unmarshal(data, &p); err != nil || p.Code == "" {
		return fault.Wrap(fault.Internal, err, "What answers at %s with status %d is not a gate.", c.at, status)
	}
	return fault.New(p.Code, "%s", p.Detail).Because(p.Reason)
}

// unreachable says that the gate did not answer; if the request may have left
// before, that it may have been taken in.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &cert):
		return fault.Wrap(fault.Unavailable, err, "The certificate of what answers at %s is not one to trust: %v. If it is your gate, name the file of its authority: gate_ca in writ.yaml, or --ca", c.at, cert.Err).Because("certificate")
	case errors.Is(err, syscall.EACCES):
		return fault.Wrap(fault.Denied, err, "The socket %s is not yours. Run this as the user that runs the gate.", c.at)
	case errors.As(err, &op) && op.Op == "dial":
		return fault.Wrap(fault.Unavailable, err, "No gate answers at %s. Start it in another terminal: writ up", c.at)
	}
	return fault.Wrap(fault.Timeout, err, "The gate at %s went away before it answered. See what it took in: writ list", c.at)
}

// Policy returns the policy that decides.
func (c *Client) Policy(ctx context.Context) (out api.Policy, err error) {
	return out, c.do(ctx, call{operation: api.PolicyGet}, &out)
}

// Actions returns the catalog, without schemas and sources.
func (c *Client) Actions(ctx context.Context) (out api.Actions, err error) {
	out.Actions = []api.Action{}
	return out, pages(api.ActionList, url.Values{}, func(q call) (string, error) {
		var page api.Actions
		err := c.do(ctx, q, &page)
		out.Actions = append(out.Actions, page.Actions...)
		return page.NextCursor, err
	})
}

// Action returns one action with its schema and its source.
func (c *Client) Action(ctx context.Context, name string) (out api.Action, err error) {
	return out, c.do(ctx, call{operation: api.ActionGet, of: name}, &out)
}

// Systems returns the systems that the executor can reach.
func (c *Client) Systems(ctx context.Context) (out api.Systems, err error) {
	out.Systems = []writ.SystemInfo{}
	return out, pages(api.SystemList, url.Values{}, func(q call) (string, error) {
		var page api.Systems
		err := c.do(ctx, q, &page)
		out.Systems = append(out.Systems, page.Systems...)
		return page.NextCursor, err
	})
}

// pages asks for one page of a list after the other; ask returns where the next
// one begins, and "" after the last.
func pages(list string, q url.Values, ask func(call) (next string, err error)) error {
	for {
		next, err := ask(call{operation: list, query: q})
		if err != nil || next == "" {
			return err
		}
		if next == q.Get("cursor") {
			return fault.New(fault.Internal, "The gate answers with the same page again and again.")
		}
		q.Set("cursor", next)
	}
}

// Facts returns what is told of one entity.
func (c *Client) Facts(ctx context.Context, entity string) (out api.Facts, err error) {
	q := url.Values{}
	set(q, "entity", entity)
	return out, c.do(ctx, call{operation: api.FactsGet, query: q}, &out)
}

// Propose asks for a change. The same key, if not "", gives the same change.
func (c *Client) Propose(ctx context.Context, p api.Proposal, key string) (out api.Change, err error) {
	return out, c.do(ctx, call{operation: api.ChangePropose, body: p, key: key}, &out)
}

// ChangeFilter selects changes; its zero value selects the newest.
type ChangeFilter struct {
	State  string
	Before string // ids older than this one
	Limit  int
}

// Changes returns changes, newest first.
func (c *Client) Changes(ctx context.Context, f ChangeFilter) (out api.Changes, err error) {
	q := url.Values{}
	set(q, "state", f.State)
	set(q, "before", f.Before)
	setInt(q, "limit", int64(f.Limit))
	return out, c.do(ctx, call{operation: api.ChangeList, query: q}, &out)
}

// Change returns one change.
func (c *Client) Change(ctx context.Context, id string) (out api.Change, err error) {
	return out, c.do(ctx, call{operation: api.ChangeGet, of: id}, &out)
}

// Wait returns one change as soon as its state differs from the one at the time
// of the call, or after timeout, at most 20 seconds.
func (c *Client) Wait(ctx context.Context, id string, timeout time.Duration) (out api.Change, err error) {
	q := url.Values{}
	setInt(q, "timeout_ms", min(timeout, maxWait).Milliseconds())
	return out, c.do(ctx, call{operation: api.ChangeWait, of: id, query: q}, &out)
}

// Review returns what an approver must read before deciding.
func (c *Client) Review(ctx context.Context, id string) (out api.Review, err error) {
	return out, c.do(ctx, call{operation: api.ChangeReview, of: id}, &out)
}

// Approve approves exactly what a review showed.
func (c *Client) Approve(ctx context.Context, id string, a api.Agreement) (out api.Change, err error) {
	return out, c.do(ctx, call{operation: api.ChangeApprove, of: id, body: a}, &out)
}

// Reject says no, with a reason.
func (c *Client) Reject(ctx context.Context, id, reason string) (out api.Change, err error) {
	return out, c.do(ctx, call{operation: api.ChangeReject, of: id, body: api.Rejection{Reason: reason}}, &out)
}

// Lift lets what was rejected be asked again.
func (c *Client) Lift(ctx context.Context, id string) (out api.Change, err error) {
	return out, c.do(ctx, call{operation: api.ChangeLift, of: id}, &out)
}

// Cancel withdraws a change that was not begun.
func (c *Client) Cancel(ctx context.Context, id string) (out api.Change, err error) {
	return out, c.do(ctx, call{operation: api.ChangeCancel, of: id}, &out)
}

// Execute carries out an approved change that was held up.
func (c *Client) Execute(ctx context.Context, id string) (out api.Change, err error) {
	return out, c.do(ctx, call{operation: api.ChangeExecute, of: id}, &out)
}

// Probe lets the executor look at what a change left in doubt.
func (c *Client) Probe(ctx context.Context, id string) (out api.Probe, err error) {
	return out, c.do(ctx, call{operation: api.ChangeProbe, of: id}, &out)
}

// Reconcile decides on exactly what a probe showed.
func (c *Client) Reconcile(ctx context.Context, id string, s api.Settlement) (out api.Change, err error) {
	return out, c.do(ctx, call{operation: api.ChangeSettle, of: id, body: s}, &out)
}

// Rollback proposes the change that undoes a change, and returns the new one.
func (c *Client) Rollback(ctx context.Context, id string) (out api.Change, err error) {
	return out, c.do(ctx, call{operation: api.ChangeRollback, of: id}, &out)
}

// Artifact returns the account of one change.
func (c *Client) Artifact(ctx context.Context, id string) (out api.Artifact, err error) {
	return out, c.do(ctx, call{operation: api.ChangeArtifact, of: id}, &out)
}

// EventFilter selects audit events; its zero value selects the first ones.
type EventFilter struct {
	ChangeID string
	User     string // a name, human:NAME or agent:NAME
	Target   string // a system, or an entity and all below it
	Action   string // an action, or all that begin as the text before a *
	Since    writ.Time
	Until    writ.Time
	After    int64 // sequences higher than this
	Limit    int
}

// Events returns audit events, oldest first.
func (c *Client) Events(ctx context.Context, f EventFilter) (out api.Events, err error) {
	q := url.Values{}
	set(q, "change", f.ChangeID)
	set(q, "principal", f.User)
	set(q, "target", f.Target)
	set(q, "action", f.Action)
	for name, at := range map[string]writ.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			q.Set(name, at.String())
		}
	}
	setInt(q, "after", f.After)
	setInt(q, "limit", int64(f.Limit))
	return out, c.do(ctx, call{operation: api.EventList, query: q}, &out)
}

// Evidence returns all that proves what became of a change.
func (c *Client) Evidence(ctx context.Context, id string) (out api.Evidence, err error) {
	return out, c.do(ctx, call{operation: api.ChangeEvidence, of: id}, &out)
}

// Checkpoint returns a signed checkpoint of all audit events.
func (c *Client) Checkpoint(ctx context.Context) (out api.Checkpoint, err error) {
	return out, c.do(ctx, call{operation: api.CheckpointGet}, &out)
}

// Locks returns the locks that hold; released ones too if asked for.
func (c *Client) Locks(ctx context.Context, released bool) (out api.Locks, err error) {
	q := url.Values{}
	if released {
		q.Set("released", "true")
	}
	out.Locks = []api.Lock{}
	return out, pages(api.LockList, q, func(q call) (string, error) {
		var page api.Locks
		err := c.do(ctx, q, &page)
		out.Locks = append(out.Locks, page.Locks...)
		return page.NextCursor, err
	})
}

// Halts returns the halts that are in force; lifted ones too if asked for.
func (c *Client) Halts(ctx context.Context, lifted bool) (out api.Halts, err error) {
	q := url.Values{}
	if lifted {
		q.Set("lifted", "true")
	}
	out.Halts = []api.Halt{}
	return out, pages(api.HaltList, q, func(q call) (string, error) {
		var page api.Halts
		err := c.do(ctx, q, &page)
		out.Halts = append(out.Halts, page.Halts...)
		return page.NextCursor, err
	})
}

// Halt stops everything, a target or a principal.
func (c *Client) Halt(ctx context.Context, s api.Stop) (out api.Halt, err error) {
	return out, c.do(ctx, call{operation: api.HaltSet, body: s}, &out)
}

// LiftHalt lets go on what was stopped.
func (c *Client) LiftHalt(ctx context.Context, id string) (out api.Halt, err error) {
	return out, c.do(ctx, call{operation: api.HaltLift, of: id}, &out)
}

// Health returns whether everything is as it should be.
func (c *Client) Health(ctx context.Context) (out api.Health, err error) {
	return out, c.do(ctx, call{operation: api.HealthGet}, &out)
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func setInt(q url.Values, name string, value int64) {
	if value != 0 {
		q.Set(name, strconv.FormatInt(value, 10))
	}
}

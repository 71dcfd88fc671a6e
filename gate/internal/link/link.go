// Package link is the gate's way to the executor: HTTP over its Unix socket, as
// the root package writ describes it. What comes back is believed only if the
// executor signed it.
package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/ledger"
)

// The limits of a call. A preview may take as long as the slowest target: the
// executor gives a step a minute and then says which system was slow, so it is
// waited for a little longer.
const (
	observeTimeout = 90 * time.Second
	callTimeout    = 10 * time.Second
	maxAnswer      = 16 << 20 // bytes
)

// Executor is the way to one executor.
type Executor struct {
	client http.Client
	socket string
	keys   *Keys
}

// New returns the way to the executor that listens on a Unix socket and signs
// with the last of the keys.
func New(socket string, keys *Keys) *Executor {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
	return &Executor{
		socket: socket,
		keys:   keys,
		client: http.Client{
			// A connection is used once: on a reused one, a failed send would not
			// tell whether the writ left.
			Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
			// A redirection would send the writ a second time.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// dialError says that no connection was made, so that nothing was sent.
type dialError struct{ cause error }

func (e *dialError) Error() string { return e.cause.Error() }
func (e *dialError) Unwrap() error { return e.cause }

// Hello asks the executor who it is. One that signs with a key that is not
// trusted, and cannot prove that it follows from the one that is, is refused here,
// before it gets a writ.
func (e *Executor) Hello(ctx context.Context) (writ.Hello, error) {
	var h writ.Hello
	if err := e.call(ctx, callTimeout, http.MethodGet, writ.PathHello, nil, &h); err != nil {
		return h, err
	}
	return h, e.keys.follow(h)
}

// open opens what the executor sealed just now.
func (e *Executor) open(ctx context.Context, kind writ.Kind, sealed []byte, out any) error {
	return e.again(ctx, func(keys ledger.Signers) error {
		return writ.Open(kind, sealed, keys[max(len(keys)-1, 0):].Keyring(), out)
	})
}

// again does something with the keys, and once more if the executor turns out to
// have another one since it was asked last.
func (e *Executor) again(ctx context.Context, do func(ledger.Signers) error) error {
	err := do(e.keys.All())
	if fault.ReasonOf(err) == "unknown_key" {
		if _, stranger := e.Hello(ctx); stranger == nil {
			err = do(e.keys.All())
		}
	}
	return err
}

// Observe sends an observe writ and returns its observations, signatures checked.
func (e *Executor) Observe(ctx context.Context, sealed []byte) ([]writ.Observation, error) {
	var answer writ.Observations
	if err := e.call(ctx, observeTimeout, http.MethodPost, writ.PathWrits, sealed, &answer); err != nil {
		return nil, err
	}
	observations := make([]writ.Observation, len(answer.Observations))
	for i, raw := range answer.Observations {
		o := &observations[i]
		if err := e.open(ctx, writ.KindObservation, raw, o); err != nil {
			return nil, err
		}
		if o.Format != writ.FormatObservation || o.WritDigest != writ.DigestBytes(sealed) {
			return nil, fault.New(fault.Refused, "The executor answered another writ than the one it was sent.").Because("other_writ")
		}
	}
	return observations, nil
}

// Probe sends a probe writ and returns its findings, signatures checked.
func (e *Executor) Probe(ctx context.Context, sealed []byte) ([]model.Finding, error) {
	var answer writ.Findings
	if err := e.call(ctx, observeTimeout, http.MethodPost, writ.PathWrits, sealed, &answer); err != nil {
		return nil, err
	}
	findings := make([]model.Finding, len(answer.Findings))
	for i, raw := range answer.Findings {
		f := &findings[i]
		if err := e.open(ctx, writ.KindFinding, raw, &f.Finding); err != nil {
			return nil, err
		}
		if f.Format != writ.FormatFinding || f.WritDigest != writ.DigestBytes(sealed) {
			return nil, fault.New(fault.Refused, "The executor answered another writ than the one it was sent.").Because("other_writ")
		}
		f.Sealed = raw
	}
	return findings, nil
}

// Raise sends a raise writ: the executor takes note of its epoch.
func (e *Executor) Raise(ctx context.Context, sealed []byte) error {
	var none writ.Findings
	return e.call(ctx, callTimeout, http.MethodPost, writ.PathWrits, sealed, &none)
}

// Admitted returns a page of what the executor ever admitted, by run, from the one
// after a run on; an empty page is the end. What is in it is as the executor says:
// the caller checks its own signature.
func (e *Executor) Admitted(ctx context.Context, after string) ([]writ.Admitted, error) {
	var answer writ.Admissions
	err := e.call(ctx, callTimeout, http.MethodGet, writ.PathSpent+"?after="+url.QueryEscape(after), nil, &answer)
	return answer.Admitted, err
}

// Execute hands a writ over.
func (e *Executor) Execute(ctx context.Context, sealed []byte) error {
	var state writ.RunState
	return e.call(ctx, callTimeout, http.MethodPost, writ.PathWrits, sealed, &state)
}

// Receipts returns the receipts of a run, whose writ was issued at a time, after a
// sequence. Each is signed with the key that was valid for it, and that the present
// one follows from without people having named one since.
func (e *Executor) Receipts(ctx context.Context, run string, issued writ.Time, after int64, wait time.Duration) ([]model.Receipt, bool, error) {
	var state writ.RunState
	path := fmt.Sprintf("%s%s?after=%d&wait_ms=%d", writ.PathRuns, url.PathEscape(run), after, wait.Milliseconds())
	if err := e.call(ctx, wait+callTimeout, http.MethodGet, path, nil, &state); err != nil {
		return nil, false, err
	}
	receipts := make([]model.Receipt, len(state.Receipts))
	var covered int64 // events of the executor's audit
	for i, raw := range state.Receipts {
		r := &receipts[i]
		var c ledger.Checkpoint
		err := e.again(ctx, func(keys ledger.Signers) (err error) {
			c, err = keys.Unbroken().OpenReceipt(raw, issued, &r.Receipt)
			return err
		})
		if err != nil {
			return nil, false, err
		}
		if r.Format != writ.FormatReceipt || r.Run != run || r.Sequence <= after {
			return nil, false, fault.New(fault.Refused, "The executor answered with a receipt of another run.").Because("other_run")
		}
		if c.Size < max(covered, 1) {
			return nil, false, fault.New(fault.Refused, "The executor answered with a receipt whose checkpoint of its audit is older than the one before.").Because("bad_checkpoint")
		}
		r.Sealed, after, covered = raw, r.Sequence, c.Size
	}
	return receipts, state.Finished, nil
}

// call makes one call. A failure to connect is fault.Unavailable with reason
// not_sent; any other failure to get an answer is fault.Unavailable without it,
// since what was sent may have arrived.
func (e *Executor) call(ctx context.Context, limit time.Duration, method, path string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://executor"+path, bytes.NewReader(body))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "The call to the executor could not be made.")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		lost := fault.Wrap(fault.Unavailable, err, "The executor does not answer on %s. Start it, or see \"writ doctor\".", e.socket)
		if errors.Is(err, context.DeadlineExceeded) {
			lost.Text = fmt.Sprintf("The executor did not answer within %s. It may be waiting for a slow system: see which with \"writ systems test NAME\".", limit)
		}
		if _, ok := errors.AsType[*dialError](err); ok {
			lost.Reason = NotSent
		}
		return lost
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "The executor's answer broke off.")
	}
	if resp.StatusCode >= 300 {
		return refusal(resp.StatusCode, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The executor's answer cannot be read. Do both programs have the same version?")
	}
	return nil
}

// NotSent is the reason of an error after which it is certain that nothing was sent.
const NotSent = "not_sent"

func refusal(status int, answer []byte) error {
	var r writ.Refusal
	// A code that is not in the table, or a reason that is ours alone to give,
	// would be taken for more than it says.
	if err := json.Unmarshal(answer, &r); err != nil || r.Code.Row().Code != r.Code || r.Reason == NotSent {
		return fault.Wrap(fault.Unavailable, err, "The executor answered with status %d and no reason that is known here. Do both programs have the same version?", status)
	}
	return &fault.Error{Code: r.Code, Reason: r.Reason, Text: r.Text}
}

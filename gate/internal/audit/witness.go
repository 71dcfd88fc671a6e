package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"writ"
	"writ/evidence"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/ledger"
)

// Witness is somebody who is asked over HTTP to sign checkpoints, as C2SP
// tlog-witness says.
type Witness struct {
	ledger.Witness
	URL string // to which /add-checkpoint is added
}

// WitnessState is how far a witness is.
type WitnessState struct {
	ledger.Cosigned
	Name string
	Err  error // why the last call of it failed
}

// witnessStates reads what the witnesses have signed before.
func witnessStates(c Config) (all []WitnessState) {
	for _, w := range c.Witnesses {
		s := WitnessState{Name: w.Name}
		if note, err := w.Kept(c.Log.Dir()); err == nil {
			s.Cosigned, _, _ = w.Open(note) // one that is damaged is made anew
		}
		all = append(all, s)
	}
	return all
}

// WitnessStates returns how far each witness is.
func (a *Audit) WitnessStates() []WitnessState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]WitnessState(nil), a.states...)
}

// attend asks one witness from time to time.
func (a *Audit) attend(ctx context.Context, i int) {
	ticker := time.NewTicker(a.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := a.witness(ctx, i); err != nil && ctx.Err() == nil {
			a.Sys.Log.Error("what a witness answered cannot be recorded", "error", err, "cause", errors.Unwrap(err))
		}
	}
}

// witness asks one witness to sign the newest checkpoint, unless it has. That it
// began to fail, or signs again, is an event.
func (a *Audit) witness(ctx context.Context, i int) error {
	a.mu.Lock()
	was := a.states[i]
	a.mu.Unlock()
	now := was
	now.Cosigned, now.Err = a.ask(ctx, a.Witnesses[i], was.Events)
	if now.Err != nil {
		if ctx.Err() != nil {
			return nil // the gate stops; that says nothing of the witness
		}
		now.Cosigned = was.Cosigned
	}
	a.mu.Lock()
	a.states[i] = now
	a.mu.Unlock()
	if (was.Err == nil) == (now.Err == nil) {
		return nil
	}
	e := a.event(model.WitnessSigns)
	e.Detail = writ.Object{"witness": now.Name}
	if now.Err != nil {
		a.Sys.Log.Warn("a witness did not sign", "witness", now.Name, "error", now.Err, "cause", errors.Unwrap(now.Err))
		e = a.event(model.WitnessFailed)
		e.Reason, e.Detail = fault.ReasonOf(now.Err), writ.Object{"witness": now.Name, "error": fault.TextOf(now.Err)}
	}
	return a.Store.Update(context.WithoutCancel(ctx), func(tx store.Tx) error { return tx.Append(e) })
}

// ask lets a witness sign the checkpoint that lies there, of which it has signed so
// many events.
func (a *Audit) ask(ctx context.Context, w Witness, size int64) (seen ledger.Cosigned, err error) {
	if kept, err := w.Kept(a.Log.Dir()); err == nil {
		seen, old, err := w.Open(kept)
		now, wrong := os.ReadFile(filepath.Join(a.Log.Dir(), "checkpoint"))
		if err == nil && wrong == nil && bytes.Equal(old, now) {
			return seen, nil
		}
	}
	r, err := ledger.Read(a.Log.Dir())
	if err != nil {
		return seen, err
	}
	defer r.Close()
	signed, c := r.Checkpoint()
	if c.Size == 0 {
		return seen, nil
	}
	if size > c.Size {
		size = 0 // the witness will say how much it has seen
	}
	for again := true; ; again = false {
		answer, has, err := w.add(ctx, r, signed, size)
		if again && has >= 0 && has <= c.Size && has != size {
			size = has // it knows better how far it is
			continue
		}
		if err != nil {
			return seen, err
		}
		note, err := w.Cosign(signed, answer)
		if err == nil {
			seen, _, err = w.Open(note)
		}
		if err == nil {
			err = w.Keep(a.Log.Dir(), note)
		}
		return seen, err
	}
}

// maxAnswer bounds what is read of a witness's answer, in bytes.
const maxAnswer = 16 << 10

// add sends one call. If the witness has signed another size than it was told,
// that is returned, otherwise -1.
func (w Witness) add(ctx context.Context, r *ledger.Reader, signed []byte, size int64) (answer []byte, has int64, err error) {
	proof, err := r.ProveFrom(size)
	if err != nil {
		return nil, -1, err
	}
	body := fmt.Appendf(nil, "old %d\n", size)
	for _, h := range proof {
		body = append(base64.StdEncoding.AppendEncode(body, h[:]), '\n')
	}
	body = append(append(body, '\n'), signed...)
	status, kind, answer, err := postTo(ctx, strings.TrimSuffix(w.URL, "/")+"/add-checkpoint", body)
	if err != nil {
		return nil, -1, fault.Wrap(fault.Unavailable, err, "The witness %s cannot be asked at %s.", w.Name, w.URL).Because("witness_unreachable")
	}
	refused := func(reason, format string, args ...any) ([]byte, int64, error) {
		return nil, -1, fault.New(fault.Unavailable, "The witness %s does not sign: "+format, append([]any{w.Name}, args...)...).Because(reason)
	}
	keys := r.Keys()
	switch status {
	case http.StatusOK:
		return answer, -1, nil
	case http.StatusNotFound, http.StatusForbidden:
		return refused("witness_unknown", "it does not know the audit, or its key. Let its operator add the key %s", keys[len(keys)-1])
	case http.StatusUnprocessableEntity:
		return refused("witness_refused", "it has signed something that this audit does not continue. Somebody changed or replaced the audit, or shows others another one. Run: writ audit verify")
	case http.StatusConflict:
		has, err := strconv.ParseInt(strings.TrimSuffix(string(answer), "\n"), 10, 64)
		if kind != "text/x.tlog.size" || err != nil || has < 0 {
			has = size
		}
		_, c := r.Checkpoint()
		if has > c.Size {
			_, _, err := refused("witness_ahead", "it has seen %d events, and the audit has %d. The audit was set back to an earlier state. Run: writ audit verify", has, c.Size)
			return nil, has, err
		}
		_, _, err = refused("witness_refused", "it has signed %d events, and not these. Somebody changed or replaced the audit, or shows others another one. Run: writ audit verify", has)
		return nil, has, err
	}
	return refused("witness_failed", "it answered with status %d.", status)
}

// postTo sends a text and returns what comes back, in bounds. A redirection is
// an answer like another.
func postTo(ctx context.Context, url string, body []byte) (status int, kind string, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, resp.Header.Get("Content-Type"), answer, errors.Join(err, resp.Body.Close())
}

// cosigned returns what the witnesses have signed, with the proofs that the
// ledger continues it.
func (a *Audit) cosigned(r *ledger.Reader) (all []evidence.Cosigned, err error) {
	for _, w := range a.Witnesses {
		note, err := w.Kept(a.Log.Dir())
		if err != nil {
			continue // it has signed nothing yet
		}
		seen, _, err := w.Open(note)
		if _, c := r.Checkpoint(); err != nil || seen.Events > c.Size {
			continue
		}
		proof, err := r.ProveFrom(seen.Events)
		if err != nil {
			return nil, err
		}
		all = append(all, evidence.Cosigned{Checkpoint: string(note), Proof: proof})
	}
	return all, nil
}

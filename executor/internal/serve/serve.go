// Package serve is how the executor is reached: HTTP over two Unix sockets. On
// one the gate hands over writs and collects receipts; nothing there acts
// without a writ. On the other, which only the executor's own user can open,
// the operator unlocks the vault and reloads the configuration.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"writ"
	"writ/executor/internal/admit"
	"writ/executor/internal/journal"
	"writ/executor/internal/run"
	"writ/failpoint"
	"writ/fault"
	"writ/redact"
)

const (
	// maxWrit is how much is read of a request, in bytes: the largest sealed
	// writ, and room to say that a larger one is too large.
	maxWrit = 2 << 20
	maxWait = 25 * time.Second
)

// Link is what the gate talks to.
type Link struct {
	Log     *slog.Logger
	Door    *admit.Door
	Runner  *run.Runner
	Journal *journal.Journal
	Hello   func(context.Context) (writ.Hello, error)
}

// Handler answers the gate.
func (l *Link) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+writ.PathHello, l.hello)
	mux.HandleFunc("POST "+writ.PathWrits, l.take)
	mux.HandleFunc("GET "+writ.PathRuns+"{run}", l.state)
	mux.HandleFunc("GET "+writ.PathSpent, l.spent)
	mux.HandleFunc("/", nowhere(l.Log))
	return mux
}

func nowhere(log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, log, fault.New(fault.NotFound, "The executor has no such call.").Because("unknown_call"))
	}
}

func (l *Link) hello(w http.ResponseWriter, q *http.Request) {
	h, err := l.Hello(q.Context())
	if err != nil {
		refuse(w, l.Log, err)
		return
	}
	answer(w, http.StatusOK, h)
}

// take is the only call that can lead to anything, and it does so only by way of the door.
func (l *Link) take(w http.ResponseWriter, q *http.Request) {
	sealed, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxWrit))
	if err != nil {
		refuse(w, l.Log, fault.Wrap(fault.Refused, err, "The writ could not be read, or is larger than 2 MiB.").Because("malformed"))
		return
	}
	admitted, err := l.Door.Admit(q.Context(), sealed)
	if err != nil {
		refuse(w, l.Log, err)
		return
	}
	var found [][]byte
	switch admitted.Writ().Purpose {
	case writ.Execute:
		l.Runner.Start(q.Context(), admitted)
		failpoint.Reach(failpoint.RunStarted)
		answer(w, http.StatusAccepted, writ.RunState{Run: admitted.Writ().Run, Receipts: [][]byte{}})
	case writ.Raise, writ.Halt:
		admitted.Release()
		answer(w, http.StatusOK, writ.Findings{Findings: [][]byte{}})
	case writ.Probe:
		if found, err = l.Runner.Probe(q.Context(), admitted); err == nil {
			answer(w, http.StatusOK, writ.Findings{Findings: found})
		}
	default:
		if found, err = l.Runner.Observe(q.Context(), admitted); err == nil {
			answer(w, http.StatusOK, writ.Observations{Observations: found})
		}
	}
	if err != nil {
		refuse(w, l.Log, err)
	}
}

// spentPage is how many admissions one answer holds. A sealed writ can be large.
const spentPage = 20

// spent tells what was ever admitted. It holds nothing that a gate did not seal.
func (l *Link) spent(w http.ResponseWriter, q *http.Request) {
	admitted, err := l.Journal.Admitted(q.Context(), q.URL.Query().Get("after"), spentPage)
	if err != nil {
		refuse(w, l.Log, err)
		return
	}
	answer(w, http.StatusOK, writ.Admissions{Admitted: admitted})
}

func (l *Link) state(w http.ResponseWriter, q *http.Request) {
	after, err1 := number(q, "after")
	wait, err2 := number(q, "wait_ms")
	if err := errors.Join(err1, err2); err != nil {
		refuse(w, l.Log, fault.Wrap(fault.Invalid, err, "after and wait_ms are whole numbers, zero or above."))
		return
	}
	ctx, cancel := context.WithTimeout(q.Context(), min(time.Duration(wait)*time.Millisecond, maxWait))
	defer cancel()
	for {
		news := l.Runner.News() // before reading, so that nothing is missed in between
		state, err := l.Journal.State(context.WithoutCancel(ctx), q.PathValue("run"), after)
		if err != nil {
			refuse(w, l.Log, err)
			return
		}
		if state.Finished || len(state.Receipts) > 0 || ctx.Err() != nil {
			answer(w, http.StatusOK, state)
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// number reads a whole number of a query, 0 if it is not given.
func number(q *http.Request, name string) (int64, error) {
	text := q.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	return int64(n), err
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the caller has gone away; it can ask again
}

func refuse(w http.ResponseWriter, log *slog.Logger, err error) {
	code := fault.CodeOf(err)
	log.Warn("refused", "code", code, "reason", fault.ReasonOf(err), "text", fault.TextOf(err), "cause", errors.Unwrap(err))
	text := new(redact.Redactor).String(fault.TextOf(err)) // it may quote a writ
	answer(w, code.Row().HTTP, writ.Refusal{Code: code, Reason: fault.ReasonOf(err), Text: text})
}

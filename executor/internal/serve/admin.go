package serve

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"writ"
	"writ/fault"
)

// Status is what the operator is told.
type Status struct {
	Executor string      `json:"executor"`
	Locked   bool        `json:"locked"`
	Closed   string      `json:"closed"`  // why nothing is admitted; "" while writs are taken
	Catalog  writ.Digest `json:"catalog"` // of the definitions and the settings that are in use
}

// Operator is what the operator can do to a running executor.
type Operator interface {
	Unlock(ctx context.Context, passphrase string) error
	Lock()
	Reload(context.Context) error
	Status() Status
}

// Admin answers the operator.
func Admin(o Operator, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /unlock", func(w http.ResponseWriter, q *http.Request) {
		passphrase, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 4<<10))
		if err != nil {
			refuse(w, log, fault.Wrap(fault.Invalid, err, "The passphrase could not be read."))
			return
		}
		settle(w, log, o, o.Unlock(q.Context(), string(passphrase)))
	})
	mux.HandleFunc("POST /lock", func(w http.ResponseWriter, _ *http.Request) {
		o.Lock()
		settle(w, log, o, nil)
	})
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, q *http.Request) { settle(w, log, o, o.Reload(q.Context())) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { settle(w, log, o, nil) })
	mux.HandleFunc("/", nowhere(log))
	return mux
}

func settle(w http.ResponseWriter, log *slog.Logger, o Operator, err error) {
	if err != nil {
		refuse(w, log, err)
		return
	}
	answer(w, http.StatusOK, o.Status())
}

package rest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"writ/fault"
)

// The limits of a connection. A call that waits for a change takes 20 seconds,
// and a proposal as long as its first answer.
const (
	readTimeout  = 10 * time.Second
	writeTimeout = 60 * time.Second
	idleTimeout  = 60 * time.Second
	maxHeaders   = 32 << 10 // bytes
)

// Serve answers on the listeners until ctx ends, then lets the calls that are
// being answered finish for at most grace. It returns nil if it was told to stop.
func Serve(ctx context.Context, h http.Handler, log *slog.Logger, grace time.Duration, listeners ...net.Listener) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaders,
		// Streams end when the server is to stop.
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx.Done())
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- server.Serve(l) }()
	}
	var broken error
	select {
	case <-ctx.Done():
	case broken = <-ended:
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		_ = server.Close() // whoever still waits asks again
	}
	if broken != nil && !errors.Is(broken, http.ErrServerClosed) {
		return fault.Wrap(fault.Unavailable, broken, "The gate can no longer listen.")
	}
	return nil
}

package serve

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"writ/fault"
)

// Listen opens a Unix socket of the mode. A socket that nobody listens on any
// more is replaced; one that somebody listens on is not.
func Listen(ctx context.Context, file string, mode fs.FileMode) (net.Listener, error) {
	info, err := os.Lstat(file)
	if err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, fault.New(fault.Conflict, "%s is in the way, and it is no socket. Move it away.", file)
		}
		dialer := net.Dialer{Timeout: time.Second}
		if conn, err := dialer.DialContext(ctx, "unix", file); err == nil {
			return nil, errors.Join(fault.New(fault.Conflict, "Another process listens on %s. Stop it first.", file), conn.Close())
		}
		if err := os.Remove(file); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "The old socket %s cannot be removed.", file)
		}
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", file)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The socket %s cannot be opened. Check its directory.", file)
	}
	if err := os.Chmod(file, mode); err != nil {
		return nil, errors.Join(fault.Wrap(fault.Unavailable, err, "The mode of %s cannot be set.", file), l.Close())
	}
	return l, nil
}

// Server returns a server with the limits that a local caller needs.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
}

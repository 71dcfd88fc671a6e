package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/ops"
)

// A stream is as server-sent events: each event of the audit as it stands there,
// with its sequence as the id, so that Last-Event-ID goes on where it broke off.
// It ends when the change has; asked again after that, there is no content, upon
// which a browser stops asking.
const (
	eventStream = "text/event-stream"
	heartbeat   = 10 * time.Second // a comment, if there is nothing else to send
	maxStream   = 5 * time.Minute  // then the caller comes back with its token
	maxStreams  = 8                // of one principal at once
)

// streams counts the streams of each principal.
type streams struct {
	mu   sync.Mutex
	open map[string]int
}

// enter counts a stream; what it returns takes it off again.
func (s *streams) enter(user string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[user] >= maxStreams {
		return nil, fault.New(fault.Exhausted, "%s follows %d changes at once already. End one of them first.", user, maxStreams).Because("streams")
	}
	s.open[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[user]--; s.open[user] == 0 {
			delete(s.open, user)
		}
	}, nil
}

// streamed reports whether the answer to a call is to be a stream.
func streamed(op *ops.Op, r *http.Request) bool {
	if !op.Live {
		return false
	}
	for _, kind := range strings.Split(r.Header.Get("Accept"), ",") {
		kind, _, _ = strings.Cut(kind, ";")
		if strings.EqualFold(strings.TrimSpace(kind), eventStream) {
			return true
		}
	}
	return false
}

// stream sends a timeline until the change has ended.
func (s *server) stream(w http.ResponseWriter, r *http.Request, who model.Caller, input any) error {
	leave, err := s.streams.enter(who.User())
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), maxStream)
	defer cancel()
	if stopping, ok := ctx.Value(stoppingKey{}).(<-chan struct{}); ok {
		go func() {
			select {
			case <-stopping:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	timeline, err := s.Gate.Follow(ctx, who, input)
	if err != nil {
		return err
	}
	begun, patience := false, time.Duration(0) // whoever asks learns at once that it is heard
	for ; ; patience = heartbeat {
		lines, ended, err := timeline.Next(ctx, patience)
		switch {
		case err != nil && !begun && ctx.Err() != nil:
			return fault.New(fault.Unavailable, "The gate stops. Ask again when it is back.")
		case err != nil && !begun:
			return err
		case err != nil:
			return nil // the caller comes back and is told then
		case ended && len(lines) == 0 && !begun:
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		var text strings.Builder
		if !begun {
			w.Header().Set("Content-Type", eventStream)
			w.Header().Set("X-Accel-Buffering", "no") // a proxy would keep it back
			text.WriteString("retry: 1000\n\n")
			begun = true
		}
		for _, l := range lines {
			fmt.Fprintf(&text, "id: %d\ndata: %s\n\n", l.Sequence, l.Bytes)
		}
		if len(lines) == 0 {
			text.WriteString(": nothing new\n\n")
		}
		if !s.push(w, text.String()) || ended {
			return nil
		}
	}
}

// push sends a part of an answer at once, and reports whether somebody is there.
func (s *server) push(w http.ResponseWriter, text string) bool {
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(s.Gate.Pipeline.Sys.Now().Add(writeTimeout)) // from now on, and not from the call
	if _, err := w.Write([]byte(text)); err != nil {
		return false
	}
	return c.Flush() == nil
}

type stoppingKey struct{}

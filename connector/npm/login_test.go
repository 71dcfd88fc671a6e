package npm_test

import (
	"context"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"writ"
	"writ/connector"
	"writ/connector/http"
	"writ/connector/npm/fake"
	"writ/connector/recorder"
)

// direct calls the fake without a network, for tests in a bubble of time.
func direct(s *fake.Server) nethttp.RoundTripper {
	return http.RoundTripper(func(q *nethttp.Request) (*nethttp.Response, error) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, q)
		return w.Result(), nil
	})
}

// logins counts the logins that arrived.
func logins(s *fake.Server) int {
	n := 0
	for _, q := range s.Requests() {
		if strings.HasPrefix(q.Path, "/api/tokens") {
			n++
		}
	}
	return n
}

// TestLogin_once: one login serves many calls, also when they come at once.
func TestLogin_once(t *testing.T) {
	t.Parallel()
	s := newFake()
	target := connected(t, s, by("admin"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := target.Do(t.Context(), read); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := logins(s); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

// TestLogin_renewed: a token is given up long before the server takes it no longer, so that no write meets an old one.
func TestLogin_renewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		target := over(t, "http://proxy.example.test/api", direct(s), by("admin"))
		for hour := range 30 {
			if _, err := target.Do(t.Context(), write); err != nil {
				t.Fatalf("hour %d: %v", hour, err)
			}
			time.Sleep(time.Hour + time.Second)
			synctest.Wait()
		}
		if n := logins(s); n != 30 {
			t.Errorf("%d logins in 30 hours, want 30", n)
		}
	})
}

// TestLogin_forgotten: a token that the server no longer takes costs one call, not all that follow, and the call is
// not repeated.
func TestLogin_forgotten(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]recorder.Fault{
		"expired":        {Status: 400, Body: said("Token has expired")},
		"another server": {Status: 500, Body: said("Internal Error")},
	} {
		s := newFake()
		target := connected(t, s, by("admin"))
		if _, err := target.Do(t.Context(), read); err != nil {
			t.Fatal(err)
		}
		answer.Mode, answer.Path, answer.Times = "answer", "/api/nginx", 1
		s.Inject(answer)
		if _, err := target.Do(t.Context(), read); err == nil {
			t.Errorf("%s: the refused call succeeded: was it sent again?", name)
		}
		if _, err := target.Do(t.Context(), write); err != nil {
			t.Errorf("%s: the next call: %v", name, err)
		}
		if n, w := logins(s), len(s.Writes()); n != 2 || w != 1 {
			t.Errorf("%s: %d logins and %d writes, want 2 and 1", name, n, w)
		}
	}
}

// TestLogin_waiting: who waits for somebody else's login can still give up.
func TestLogin_waiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFake()
		hold := make(chan struct{})
		slow := http.RoundTripper(func(q *nethttp.Request) (*nethttp.Response, error) {
			<-hold
			return direct(s).RoundTrip(q)
		})
		target := over(t, "http://proxy.example.test/api", slow, by("admin"))
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := target.Do(t.Context(), read); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := target.Do(ctx, write)
		if failed, _ := err.(*connector.Error); failed == nil || failed.Outcome != writ.NotExecuted {
			t.Errorf("the one who gave up: %+v", failed)
		}
		close(hold)
		all.Wait()
		if n := len(s.Writes()); n != 0 {
			t.Errorf("%d writes arrived, want none", n)
		}
	})
}

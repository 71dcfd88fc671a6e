package e2e_test

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLimits: an agent that asks in a burst is told when to come again, and a
// person is answered meanwhile.
func TestLimits(t *testing.T) {
	t.Parallel()
	r := startAll(t, func(dir string) {
		replace(t, filepath.Join(dir, "gate", "gate.yaml"), "requests_per_second: 1000000", "requests_per_second: 1")
	})
	ask := func(name string) *http.Response {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.http+"/v1/policy", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+r.token(t, name))
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return resp
	}
	refused := 0
	for range 20 {
		switch resp := ask("agent"); resp.StatusCode {
		case http.StatusTooManyRequests:
			refused++
			if after := resp.Header.Get("Retry-After"); after == "" || after == "0" {
				t.Errorf("it may come again after %q seconds", after)
			}
		case http.StatusOK:
		default:
			t.Fatalf("%s", resp.Status)
		}
	}
	if refused < 5 {
		t.Errorf("%d of 20 calls at once were refused", refused)
	}
	if resp := ask("ada"); resp.StatusCode != http.StatusOK {
		t.Errorf("meanwhile a person is answered with %s", resp.Status)
	}
}

// TestConnections: beyond the bound a connection is closed at once, the gate's
// own socket answers all the same, and whoever goes leaves room.
func TestConnections(t *testing.T) {
	t.Parallel()
	const room = 8
	r := startAll(t, func(dir string) {
		replace(t, filepath.Join(dir, "gate", "gate.yaml"), "connections: 1024", "connections: 8")
	})
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.http, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	var held []net.Conn
	for range room { // each has an answer, and stays
		conn := dial()
		if _, err := io.WriteString(conn, "GET /v1/policy HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for range 3 * room {
		if n, err := dial().Read(make([]byte, 1)); n > 0 || err == nil || strings.Contains(err.Error(), "timeout") {
			t.Fatalf("one too many read %d bytes, %v", n, err)
		}
	}
	if _, err := r.human.Health(t.Context()); err != nil {
		t.Errorf("the socket of the machine: %v", err)
	}
	for _, conn := range held {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	late := time.After(patience)
	for {
		conn := dial()
		if _, err := io.WriteString(conn, "GET /v1/policy HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err == nil {
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				return
			}
		}
		select {
		case <-late:
			t.Fatal("there is no room although all are gone")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

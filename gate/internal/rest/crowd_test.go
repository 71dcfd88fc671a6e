package rest_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"writ/gate/internal/rest"
)

// arrivals is a listener at which connections arrive from any address.
type arrivals struct{ next chan net.Conn }

func (a arrivals) Accept() (net.Conn, error) {
	conn, ok := <-a.next
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (a arrivals) Close() error   { return nil }
func (a arrivals) Addr() net.Addr { return &net.TCPAddr{} }

// arrived is a connection from an address, closed or not.
type arrived struct {
	net.Conn
	from   string
	closed *bool
}

func (a arrived) RemoteAddr() net.Addr {
	addr, err := net.ResolveTCPAddr("tcp", a.from)
	if err != nil {
		panic(err) // the addresses of the test
	}
	return addr
}
func (a arrived) Close() error { *a.closed = true; return nil }

// TestCrowd: one address does not take the room of the others, nobody takes more
// than there is, and whoever goes leaves room.
func TestCrowd(t *testing.T) {
	t.Parallel()
	in := arrivals{make(chan net.Conn, 1)}
	c := &rest.Crowd{Listener: in, All: 6, PerAddress: 2, Log: slog.New(slog.DiscardHandler)}
	taken := make(chan net.Conn)
	go func() {
		for {
			conn, err := c.Accept()
			if err != nil {
				close(taken)
				return
			}
			taken <- conn
		}
	}()
	open := map[string][]net.Conn{}
	let := func(from string, enters bool) {
		t.Helper()
		closed := false
		in.next <- arrived{from: from, closed: &closed}
		in.next <- arrived{from: "127.0.0.1:9", closed: new(bool)} // after it, so that it was looked at
		conn := <-taken
		if got := conn.RemoteAddr().String() == from; got != enters || closed == enters {
			t.Fatalf("%s: let in %v, closed %v", from, got, closed)
		}
		if enters {
			open[from] = append(open[from], conn)
			conn = <-taken
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 20 { // nothing is left behind by those that were hung up on
		let("192.0.2.1:1", true)
		let("192.0.2.1:2", true)
		let("192.0.2.1:3", false)
		let("[::ffff:192.0.2.1]:4", false)
		let("192.0.2.2:1", true)
		let("[2001:db8::1]:1", true)
		let("[2001:db8::ffff:1]:2", true)
		let("[2001:db8:0:0:1::1]:3", false) // the same network
		for from, all := range open {
			for _, conn := range all {
				for range 2 { // also if it is closed twice
					if err := conn.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			delete(open, from)
		}
	}
	for range 5 {
		let("127.0.0.1:1", true)
	}
	in.next <- arrived{from: "127.0.0.1:2", closed: new(bool)}
	last := <-taken
	closed := make([]bool, 2)
	in.next <- arrived{from: "127.0.0.1:3", closed: &closed[0]}
	in.next <- arrived{from: "192.0.2.9:1", closed: &closed[1]}
	close(in.next)
	if _, more := <-taken; more || !closed[0] || !closed[1] {
		t.Errorf("more than there is room for: %v %v", more, closed)
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
}

// TestCrowd_server: beyond the bound a client is hung up on, and once somebody
// else is answered and gone, there is room again.
func TestCrowd_server(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "yes") }))
	server.Listener = &rest.Crowd{Listener: server.Listener, All: 2, PerAddress: 1, Log: slog.New(slog.DiscardHandler)}
	server.Start()
	t.Cleanup(server.Close)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first, second, third := dial(), dial(), dial()
	if n, err := third.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("the third has %d bytes, %v", n, err)
	}
	for _, conn := range []net.Conn{first, second} {
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); err != nil || len(text) < 3 || string(text[len(text)-3:]) != "yes" {
			t.Errorf("%s %v", text, err)
		}
	}
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}

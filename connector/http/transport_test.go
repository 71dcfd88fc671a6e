package http_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/http"
)

// proxied counts the connections to what the environment says is the proxy. It
// is set before any test, because net/http reads the environment only once.
var proxied atomic.Int32

func TestMain(m *testing.M) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			c, err := proxy.Accept()
			if err != nil {
				return
			}
			proxied.Add(1)
			c.Close()
		}
	}()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		os.Setenv(name, "http://"+proxy.Addr().String())
	}
	os.Exit(m.Run())
}

// open opens a system without credentials at an address.
func open(t *testing.T, base, pin string, wait http.Timeouts) connector.Target {
	t.Helper()
	transport, err := http.Transport(pin, wait)
	if err != nil {
		t.Fatal(err)
	}
	target, err := http.New(http.Generic()).Open(connector.System{Name: "s", BaseURL: base, Transport: transport,
		Options: map[string]string{"auth": "none"}})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// fails makes a call and wants it to fail.
func fails(t *testing.T, target connector.Target, call catalog.Call, outcome writ.Outcome, reason string) *connector.Error {
	t.Helper()
	_, err := target.Do(t.Context(), call)
	failed, ok := errors.AsType[*connector.Error](err)
	if !ok {
		t.Fatalf("%s: got %v, want %s, %s", call.Verb, err, outcome, reason)
	}
	if failed.Outcome != outcome || failed.Reason != reason {
		t.Errorf("%s: %s, %s (%s; %v), want %s, %s", call.Verb, failed.Outcome, failed.Reason, failed.Text, failed.Cause, outcome, reason)
	}
	return failed
}

// rawServer hands each connection to serve, with a context that ends with the test,
// and closes it when serve returns or the test ends.
func rawServer(t *testing.T, serve func(ctx context.Context, c net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { c.Close() }) // ends before Cleanup
			all.Go(func() {
				defer c.Close()
				defer stop()
				serve(t.Context(), c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// TestTransport_writesOnceOnFreshConnections has a server that keeps connections
// open, but closes one, after reading, when a second request comes on it. That is
// where net/http sends some requests again, and where a write would end unknown.
func TestTransport_writesOnceOnFreshConnections(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	arrived := map[string]int{}
	count := func(verb string) int {
		mu.Lock()
		defer mu.Unlock()
		return arrived[strings.ToUpper(verb)]
	}
	address := rawServer(t, func(_ context.Context, c net.Conn) {
		in := bufio.NewReader(c)
		for first := true; ; first = false {
			q, err := nethttp.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, q.Body)
			mu.Lock()
			arrived[q.Method]++
			mu.Unlock()
			if !first {
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	target := open(t, "http://"+address, "", http.Timeouts{})
	empty := ""
	for _, call := range []catalog.Call{
		{Verb: "delete"}, {Verb: "put"}, {Verb: "post"}, {Verb: "patch"},
		{Verb: "put", Text: &empty}, {Verb: "put", Form: map[string]string{"a": "b"}}, {Verb: "delete", JSON: true},
	} {
		before := count(call.Verb)
		for _, c := range []catalog.Call{{Verb: "get"}, call} { // the read leaves a connection behind that looks good
			if _, err := target.Do(t.Context(), c); err != nil {
				t.Errorf("%s: %v (%v)", c.Verb, err, errors.Unwrap(err))
			}
		}
		if n := count(call.Verb) - before; n != 1 {
			t.Errorf("%s arrived %d times, want once", call.Verb, n)
		}
	}
	if n := count("get"); n <= 7 {
		t.Errorf("%d GETs arrived: reads are expected to try kept connections, or this test proves nothing", n)
	}
}

// TestTransport_cutAnywhere cuts the connection after each number of bytes of a
// write. With a connection there is doubt, and never a second attempt.
func TestTransport_cutAnywhere(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 600)
	for cut := 0; cut < 600; cut += 37 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int32
			address := rawServer(t, func(_ context.Context, c net.Conn) {
				connections.Add(1)
				io.CopyN(io.Discard, c, int64(cut))
			})
			target := open(t, "http://"+address, "", http.Timeouts{})
			fails(t, target, catalog.Call{Verb: "put", Text: &body}, writ.Unknown, "broken_connection")
			if n := connections.Load(); n != 1 {
				t.Errorf("%d connections for one write", n)
			}
		})
	}
}

func TestTransport_answerCutAnywhere(t *testing.T) {
	t.Parallel()
	const whole = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"
	for cut := range len(whole) {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			address := rawServer(t, func(_ context.Context, c net.Conn) {
				nethttp.ReadRequest(bufio.NewReader(c))
				io.WriteString(c, whole[:cut])
			})
			target := open(t, "http://"+address, "", http.Timeouts{})
			fails(t, target, catalog.Call{Verb: "delete"}, writ.Unknown, "broken_connection")
			fails(t, target, catalog.Call{Verb: "get"}, writ.NotExecuted, "broken_connection")
		})
	}
}

func TestTransport_deadlines(t *testing.T) {
	t.Parallel()
	const short = 50 * time.Millisecond
	large := strings.Repeat("x", 16<<20) // more than the kernel takes for a peer that does not read
	for name, c := range map[string]struct {
		scheme  string
		wait    http.Timeouts
		text    *string
		serve   func(context.Context, net.Conn)
		outcome writ.Outcome
	}{
		"no handshake": {scheme: "https", wait: http.Timeouts{TLS: short}, outcome: writ.NotExecuted,
			serve: func(_ context.Context, c net.Conn) { io.Copy(io.Discard, c) }},
		"no answer": {scheme: "http", wait: http.Timeouts{Answer: short}, outcome: writ.Unknown,
			serve: func(_ context.Context, c net.Conn) { io.Copy(io.Discard, c) }},
		"headers that never end": {scheme: "http", wait: http.Timeouts{Answer: short}, outcome: writ.Unknown,
			serve: func(_ context.Context, c net.Conn) {
				nethttp.ReadRequest(bufio.NewReader(c))
				io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: ")
				io.Copy(io.Discard, c)
			}},
		"request not taken": {scheme: "http", wait: http.Timeouts{Connect: 4 * short, TLS: 4 * short, Answer: 4 * short}, text: &large,
			outcome: writ.Unknown, serve: func(ctx context.Context, c net.Conn) {
				nethttp.ReadRequest(bufio.NewReaderSize(c, 16)) // the headers only
				<-ctx.Done()
			}},
		"body that never ends": {scheme: "http", wait: http.Timeouts{Body: short}, outcome: writ.Unknown,
			serve: func(_ context.Context, c net.Conn) {
				nethttp.ReadRequest(bufio.NewReader(c))
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
				io.Copy(io.Discard, c)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := rawServer(t, c.serve)
			target := open(t, c.scheme+"://"+address, "", c.wait)
			fails(t, target, catalog.Call{Verb: "put", Text: c.text}, c.outcome, "timeout")
		})
	}
}

func TestTransport_deadlineOfTheStep(t *testing.T) {
	t.Parallel()
	address := rawServer(t, func(_ context.Context, c net.Conn) { io.Copy(io.Discard, c) })
	target := open(t, "http://"+address, "", http.Timeouts{})
	for verb, outcome := range map[string]writ.Outcome{"get": writ.NotExecuted, "put": writ.Unknown} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // time enough to connect
		defer cancel()
		_, err := target.Do(ctx, catalog.Call{Verb: verb})
		failed, ok := errors.AsType[*connector.Error](err)
		if !ok || failed.Outcome != outcome || failed.Reason != "timeout" {
			t.Errorf("%s: %+v, want %s, timeout", verb, failed, outcome)
		}
	}
}

func TestTransport_hugeHeaders(t *testing.T) {
	t.Parallel()
	address := rawServer(t, func(_ context.Context, c net.Conn) {
		nethttp.ReadRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n")
		for range 1 << 10 {
			fmt.Fprintf(c, "X-Filler: %s\r\n", strings.Repeat("x", 1<<10))
		}
		io.WriteString(c, "\r\n")
	})
	target := open(t, "http://"+address, "", http.Timeouts{})
	fails(t, target, catalog.Call{Verb: "delete"}, writ.Unknown, "broken_connection")
}

func TestTransport_reasonPhrase(t *testing.T) {
	t.Parallel()
	address := rawServer(t, func(_ context.Context, c net.Conn) {
		nethttp.ReadRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 500 CT is locked (disk)\r\nContent-Length: 0\r\n\r\n")
	})
	failed := fails(t, open(t, "http://"+address, "", http.Timeouts{}), catalog.Call{Verb: "put", Path: "/a"}, writ.Unknown, "server_error")
	if want := "The system answered PUT /a with 500: CT is locked (disk)"; failed.Text != want {
		t.Errorf("got %q, want %q", failed.Text, want)
	}
}

func TestTransport_decompressesNothing(t *testing.T) {
	t.Parallel()
	address := rawServer(t, func(_ context.Context, c net.Conn) {
		nethttp.ReadRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\ngzip")
	})
	transport, err := http.Transport("", http.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	q, _ := nethttp.NewRequest("GET", "http://"+address, nil) // as a login would be made: it says nothing of encodings
	a, err := transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if b, err := io.ReadAll(a.Body); string(b) != "gzip" || err != nil {
		t.Errorf("got %q, %v; want the body as it was sent", b, err)
	}
}

func TestTransport_usesNoProxy(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		q, _ := nethttp.NewRequest("GET", scheme+"://192.0.2.1/", nil) // no proxy is used for loopback anyway
		if p, err := nethttp.ProxyFromEnvironment(q); p == nil || err != nil {
			t.Fatalf("the environment has no proxy for %s, so this test proves nothing: %v", scheme, err)
		}
		target := open(t, scheme+"://192.0.2.1", "", http.Timeouts{Connect: 100 * time.Millisecond})
		if _, err := target.Do(t.Context(), catalog.Call{Verb: "get"}); err == nil {
			t.Error("an address that nobody has answered")
		}
	}
	if n := proxied.Load(); n != 0 {
		t.Errorf("the proxy of the environment got %d connections", n)
	}
}

func secure(t *testing.T) (server *httptest.Server, pin string) {
	t.Helper()
	server = httptest.NewUnstartedServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, q *nethttp.Request) {
		fmt.Fprint(w, q.Proto)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().Raw)
	return server, hex.EncodeToString(sum[:])
}

func TestTransport_pin(t *testing.T) {
	t.Parallel()
	server, pin := secure(t)
	var pairs []string
	for i := 0; i < len(pin); i += 2 {
		pairs = append(pairs, strings.ToUpper(pin[i:i+2]))
	}
	for _, form := range []string{pin, strings.ToUpper(pin), strings.Join(pairs, ":")} {
		seen, err := open(t, server.URL, form, http.Timeouts{}).Do(t.Context(), catalog.Call{Verb: "get"})
		if err != nil || seen.Text != "HTTP/1.1" {
			t.Errorf("pin %s: %+v, %v; want an answer over HTTP/1.1, which has reason phrases", form, seen, err)
		}
	}
	for _, form := range []string{"x", pin[2:], pin + "00", " " + pin, "sha256:" + pin} {
		if _, err := http.Transport(form, http.Timeouts{}); err == nil {
			t.Errorf("the pin %q was taken", form)
		}
	}
	fails(t, open(t, "http://127.0.0.1:1", pin, http.Timeouts{}), catalog.Call{Verb: "get"}, writ.NotExecuted, "wrong_target")
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestTransport_pinIsOfTheLeaf presents the pinned certificate behind another leaf.
func TestTransport_pinIsOfTheLeaf(t *testing.T) {
	t.Parallel()
	server, pin := secure(t)
	own := selfSigned(t)
	own.Certificate = append(own.Certificate, server.Certificate().Raw)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}})
	if err != nil {
		t.Fatal(err)
	}
	impostor := &httptest.Server{Listener: l, Config: &nethttp.Server{Handler: nethttp.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0)}}
	impostor.Start()
	t.Cleanup(impostor.Close)
	address := strings.Replace(impostor.URL, "http:", "https:", 1)
	fails(t, open(t, address, pin, http.Timeouts{}), catalog.Call{Verb: "delete"}, writ.NotExecuted, "wrong_target")
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	server, pin := secure(t)
	got, subject, trusted, err := http.Fingerprint(t.Context(), server.URL+"/api")
	if err != nil || got != pin || !strings.Contains(subject, "Acme") || trusted {
		t.Errorf("got %q, %q, %v, %v; want %q of Acme, not trusted", got, subject, trusted, err, pin)
	}
	for _, address := range []string{"http://127.0.0.1:1", "127.0.0.1:1", "", "https://"} {
		if _, _, _, err := http.Fingerprint(t.Context(), address); err == nil {
			t.Errorf("the address %q has a fingerprint", address)
		}
	}
	server.Close()
	if _, _, _, err := http.Fingerprint(t.Context(), server.URL); err == nil {
		t.Error("a server that is gone has a fingerprint")
	}
}

package http

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"writ"
	"writ/connector"
	"writ/failpoint"
)

// maxBody is how much of one answer is read, in bytes. Nothing is decompressed,
// so it is the size in memory too.
const maxBody = 8 << 20

// Timeouts bounds each phase of one exchange. Zero is the default of Transport.
type Timeouts struct {
	Connect time.Duration // name lookup and TCP, 10 s
	TLS     time.Duration // handshake, 10 s
	Answer  time.Duration // from the request's last byte to the end of the headers, 90 s
	Body    time.Duration // from there to the end of the body, 60 s
}

// Transport returns the only way out to systems of HTTP kinds.
//
// A pin is the SHA-256 of the server's certificate in hexadecimal, colons
// allowed; it takes the place of certificate authorities, and nothing is sent to
// an address that is not https. "" is the ordinary verification.
//
// It speaks HTTP/1.1, because some systems put what went wrong into the reason
// phrase; uses no proxy; follows no redirect, being no http.Client; decompresses
// nothing; and ends a body after 8 MiB with an error. A request that writes gets
// a connection of its own: net/http repeats some requests when a connection that
// it had kept turns out to be dead, and a write on a dead connection would end
// unknown although nothing happened.
//
// Its errors are *connector.Error: NotExecuted if the request cannot have left,
// or was a read; Unknown otherwise.
func Transport(pin string, wait Timeouts) (http.RoundTripper, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if pin != "" {
		want, err := parsePin(pin)
		if err != nil {
			return nil, err
		}
		config.InsecureSkipVerify = true // the pin takes its place
		config.VerifyConnection = func(s tls.ConnectionState) error { return want.check(s) }
	}
	wait = wait.filled()
	one := new(http.Protocols)
	one.SetHTTP1(true)
	reads := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: wait.Connect}).DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    wait.TLS,
		ResponseHeaderTimeout:  wait.Answer,
		MaxResponseHeaderBytes: 256 << 10,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConnsPerHost:    4,
		DisableCompression:     true,
		Protocols:              one,
	}
	writes := reads.Clone()
	writes.DisableKeepAlives = true
	return &transport{reads: reads, writes: writes, pinned: pin != "", wait: wait}, nil
}

func (w Timeouts) filled() Timeouts {
	return Timeouts{
		Connect: cmp.Or(w.Connect, 10*time.Second),
		TLS:     cmp.Or(w.TLS, 10*time.Second),
		Answer:  cmp.Or(w.Answer, 90*time.Second),
		Body:    cmp.Or(w.Body, 60*time.Second),
	}
}

type transport struct {
	reads, writes http.RoundTripper
	pinned        bool
	wait          Timeouts
}

var errSlow = errors.New("a phase of the exchange ran out of time")

// RoundTrip sends one request.
func (t *transport) RoundTrip(q *http.Request) (*http.Response, error) {
	if t.pinned && q.URL.Scheme != "https" {
		return nil, connector.Errorf(writ.NotExecuted, "wrong_target", 0,
			"The system has a TLS pin, but its address is not https; correct base_url or take the pin out.")
	}
	via := t.reads
	if writing(q.Method) {
		via = t.writes
	}
	ctx, cancel := context.WithCancelCause(q.Context())
	// net/http has no limit for a target that does not take the request, nor for
	// one that trickles its body: this timer is both, one after the other.
	timer := time.AfterFunc(t.wait.Connect+t.wait.TLS+t.wait.Answer, func() { cancel(errSlow) })
	var left atomic.Bool // from the moment there is a connection, bytes may have left
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			left.Store(true)
			failpoint.Reach(failpoint.SendConnected)
		},
		WroteRequest: func(httptrace.WroteRequestInfo) { failpoint.Reach(failpoint.SendWritten) },
	})
	a, err := via.RoundTrip(q.WithContext(ctx))
	if err != nil {
		timer.Stop()
		defer cancel(nil)
		return nil, failure(ctx, writing(q.Method) && left.Load(), err)
	}
	failpoint.Reach(failpoint.SendAnswered)
	timer.Reset(t.wait.Body)
	a.Body = &body{
		ReadCloser: http.MaxBytesReader(nil, a.Body, maxBody),
		fail:       func(err error) error { return failure(ctx, writing(q.Method), err) },
		end:        func() { timer.Stop(); cancel(nil) },
	}
	return a, nil
}

// body is the body of an answer; its errors are *connector.Error.
type body struct {
	io.ReadCloser
	fail func(error) error
	end  func()
}

// Read reads on.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.fail(err)
	}
	return n, err
}

// Close ends the exchange.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// writing says whether a method changes something.
func writing(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

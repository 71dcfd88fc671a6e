package e2e_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// The ways in which a proxy breaks an exchange.
const (
	breakCut   = "cut"   // both ends see the connection end
	breakReset = "reset" // both ends see it torn down
	breakHalf  = "half"  // whoever should get the rest sees the end, the other way stays open
	breakDelay = "delay" // nothing passes for a while, then all of it does
)

// breach says where the next write through a proxy is broken: after so many
// bytes of the request, or of the answer.
type breach struct {
	answer bool
	after  int
	how    string
}

// proxy stands between executor and target and knows nothing of HTTP but where
// a write begins. It breaks the connection of the next write as it is told.
type proxy struct {
	net.Listener
	to string

	mu      sync.Mutex
	next    *breach
	request []byte // of the last write, as far as it came
	answer  []byte
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(conn.(*net.TCPConn))
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return p
}

// arm breaks the next write.
func (p *proxy) arm(b breach) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.request, p.answer = &b, nil, nil
}

// seen returns what the last write and its answer were.
func (p *proxy) seen() (request, answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.request), bytes.Clone(p.answer)
}

func (p *proxy) serve(near *net.TCPConn) {
	defer near.Close()
	dialled, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	far := dialled.(*net.TCPConn)
	defer far.Close()
	first := make([]byte, 6)
	n, err := io.ReadFull(near, first)
	if err != nil {
		return
	}
	var b *breach
	write := !strings.HasPrefix(string(first[:n]), "GET ")
	if write {
		p.mu.Lock()
		b, p.next = p.next, nil
		p.mu.Unlock()
	}
	l := &line{proxy: p, near: near, far: far, write: write}
	var both sync.WaitGroup
	both.Go(func() { l.pass(near, far, first, b != nil && !b.answer, b, &p.request) })
	both.Go(func() { l.pass(far, near, nil, b != nil && b.answer, b, &p.answer) })
	both.Wait()
}

// line is one connection through a proxy.
type line struct {
	*proxy
	near, far *net.TCPConn
	write     bool
}

// pass carries one direction, and breaks it where it is to be broken.
func (l *line) pass(from, to *net.TCPConn, begun []byte, here bool, b *breach, note *[]byte) {
	passed := 0
	buffer := make([]byte, 4096)
	for chunk, err := begun, error(nil); ; {
		if l.write {
			l.mu.Lock()
			*note = append(*note, chunk...)
			l.mu.Unlock()
		}
		if here && passed+len(chunk) >= b.after {
			rest := chunk[b.after-passed:]
			_, _ = to.Write(chunk[:b.after-passed])
			if b.how != breakDelay {
				l.end(to, b.how)
				return
			}
			<-time.After(50 * time.Millisecond)
			here, chunk = false, rest
		}
		if _, wrong := to.Write(chunk); wrong != nil {
			return
		}
		passed += len(chunk)
		if err != nil {
			_ = to.CloseWrite()
			return
		}
		var n int
		n, err = from.Read(buffer)
		chunk = buffer[:n]
	}
}

// end breaks the connection.
func (l *line) end(to *net.TCPConn, how string) {
	switch how {
	case breakHalf:
		_ = to.CloseWrite()
		return
	case breakReset:
		_ = l.near.SetLinger(0)
		_ = l.far.SetLinger(0)
	}
	_ = l.near.Close()
	_ = l.far.Close()
}

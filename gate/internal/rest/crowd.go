package rest

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
)

// Crowd bounds how many connections a listener has open at once: in all, and to
// one address elsewhere. From this machine the whole of it may be used, as by a
// proxy in front. Whoever comes too many is hung up on at once.
type Crowd struct {
	net.Listener
	All, PerAddress int
	Log             *slog.Logger

	mu   sync.Mutex // of what follows
	open int
	from map[netip.Prefix]int
	full bool // that somebody was hung up on is said once, until there was room for all
}

// Accept waits for the next connection for which there is room.
func (c *Crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g := &guest{Conn: conn, crowd: c, from: elsewhere(conn.RemoteAddr())}
		if c.enter(g.from) {
			return g, nil
		}
		_ = conn.Close() // nothing was said yet
	}
}

func (c *Crowd) enter(from netip.Prefix) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.All || from.IsValid() && c.from[from] >= c.PerAddress {
		if !c.full {
			c.Log.Warn("there are too many connections, further ones are closed", "open", c.open, "from", from, "open_from", c.from[from])
		}
		c.full = true
		return false
	}
	if c.from == nil {
		c.from = map[netip.Prefix]int{}
	}
	c.open++
	if from.IsValid() {
		c.from[from]++
	}
	return true
}

func (c *Crowd) leave(from netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.from[from]--; c.from[from] <= 0 {
		delete(c.from, from)
	}
	if c.open < c.All/2 {
		c.full = false
	}
}

// elsewhere is what counts as one address: of IPv6 the network that one customer
// is given, which has more addresses than can be counted. It is invalid for this
// machine's own.
func elsewhere(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap()
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.WithZone("").Prefix(bits) // so many bits each has
	return p
}

// guest is a connection that leaves room when it is closed.
type guest struct {
	net.Conn
	crowd *Crowd
	from  netip.Prefix
	once  sync.Once
}

// Close closes the connection.
func (g *guest) Close() error {
	err := g.Conn.Close()
	g.once.Do(func() { g.crowd.leave(g.from) })
	return err
}

// CloseWrite says that nothing more comes; an answer that is on its way arrives.
func (g *guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

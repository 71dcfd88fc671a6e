package app

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"writ/fault"
	"writ/gate/internal/config"
	"writ/sys"
)

// certificate is the gate's own, as it stands in its two files. A pair that
// cannot be used, because it is being replaced, is not taken: the one before
// serves on.
type certificate struct {
	sys  sys.Sys
	from config.TLS

	mu   sync.Mutex // of what follows
	seen [2]os.FileInfo
	pair *tls.Certificate
}

// encrypted lets a listener speak TLS.
func (p *program) encrypted(l net.Listener, from config.TLS) (net.Listener, error) {
	pair, err := readPair(from)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	c := &certificate{sys: p.sys, from: from, pair: pair}
	c.changed() // from here on
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}), nil
}

func readPair(from config.TLS) (*tls.Certificate, error) {
	info, err := os.Stat(from.Key) // it may be a link, as those who renew certificates make it
	if err == nil {
		if err := checkOwner(from.Key, info, 0o600); err != nil {
			return nil, err
		}
	}
	pair, err := tls.LoadX509KeyPair(from.Cert, from.Key)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The certificate %s and the key %s cannot be used: %v", from.Cert, from.Key, err)
	}
	return &pair, nil
}

// current is the certificate as the files have it now.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed() {
		return c.pair
	}
	pair, err := readPair(c.from)
	if err != nil {
		c.sys.Log.Error("the new certificate cannot be used, the one before serves on", "error", err)
		return c.pair
	}
	c.sys.Log.Info("there is a new certificate", "ends", pair.Leaf.NotAfter)
	c.pair = pair
	return pair
}

// changed reports whether the files are others than at the last look.
func (c *certificate) changed() bool {
	differs := false
	for i, path := range []string{c.from.Cert, c.from.Key} {
		info, err := os.Stat(path)
		if err != nil {
			continue // it is being replaced
		}
		was := c.seen[i]
		if was == nil || !os.SameFile(was, info) || !was.ModTime().Equal(info.ModTime()) || was.Size() != info.Size() {
			differs = true
		}
		c.seen[i] = info
	}
	return differs
}

// renewBefore is how long before its end a certificate is spoken of: whoever
// renews those of Let's Encrypt does it 30 days before.
const renewBefore = 21 * 24 * time.Hour

// examineCertificate looks at the certificate as a caller would.
func (p *program) examineCertificate(c *config.Config) (string, error) {
	pair, err := readPair(c.Listen.TLS)
	if err != nil {
		return "", err
	}
	now, ends := p.sys.Now(), pair.Leaf.NotAfter
	switch {
	case now.Before(pair.Leaf.NotBefore):
		return "", fault.New(fault.Invalid, "The certificate %s is good from %s on only, and the clock is before that.", c.Listen.TLS.Cert, pair.Leaf.NotBefore.UTC().Format(time.DateTime))
	case !now.Before(ends):
		return "", fault.New(fault.Expired, "The certificate %s ended on %s, so clients refuse the gate. Put a new one in its place.", c.Listen.TLS.Cert, ends.UTC().Format(time.DateOnly))
	case ends.Sub(now) < renewBefore:
		return "", fault.New(fault.Expired, "The certificate %s ends on %s. Put a new one in its place before; the gate takes it up by itself.", c.Listen.TLS.Cert, ends.UTC().Format(time.DateOnly))
	}
	for _, host := range c.Hosts {
		if pair.Leaf.VerifyHostname(host) != nil {
			return "", fault.New(fault.Invalid, "The certificate %s is not for %s, which hosts names, so clients that call the gate so refuse it.", c.Listen.TLS.Cert, host)
		}
	}
	return "the certificate is good until " + ends.UTC().Format(time.DateOnly), nil
}

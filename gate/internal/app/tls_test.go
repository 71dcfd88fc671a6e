package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"writ/client"
	"writ/fault"
)

// certify makes a certificate for 127.0.0.1 and localhost that vouches for itself.
func (h *home) certify(name string, lasts time.Duration) (certFile, keyFile string) {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lasts), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost", "writ.example.org"},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		h.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		h.t.Fatal(err)
	}
	certFile, keyFile = h.path(name+".crt"), h.path(name+".pem")
	err = errors.Join(
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	if err != nil {
		h.t.Fatal(err)
	}
	return certFile, keyFile
}

// listens replaces what gate.yaml says of where the gate listens on TCP.
func (h *home) listens(more string) {
	h.t.Helper()
	data, err := os.ReadFile(h.path("gate.yaml"))
	if err != nil {
		h.t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^  # tcp:.*\n  # tls:.*$`).ReplaceAllLiteralString(string(data), more)
	if err := os.WriteFile(h.path("gate.yaml"), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

var freePort = regexp.MustCompile(`ready on (127\.0\.0\.1:\d+)`)

// TestTLS: the gate speaks TLS with its own certificate, takes up a new one while
// it runs, and goes on with the one it has while the new one cannot be used.
func TestTLS(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	cert, key := h.certify("gate", 90*24*time.Hour)
	h.listens("  tcp: 127.0.0.1:0\n  tls: {cert: gate.crt, key: gate.pem}")
	h.must("doctor")
	g := h.start()
	<-g.out.has(freePort)
	address := freePort.FindStringSubmatch(g.out.String())[1]
	serves := func(ca string) error {
		t.Helper()
		c, err := client.NewTrusting("https://"+address, h.token, ca)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Policy(t.Context())
		return err
	}
	first := h.path("first.crt")
	keep(t, cert, first)
	if err := serves(first); err != nil {
		t.Error(err)
	}
	// Without TLS, and with an old one, nothing is answered.
	if resp, err := http.Get("http://" + address + "/v1/policy"); err == nil {
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %d", resp.StatusCode)
		}
	}
	old := &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}
	if conn, err := tls.Dial("tcp", address, old); err == nil {
		_ = conn.Close()
		t.Error("it speaks TLS 1.1")
	}
	if c, err := client.New(h.path("gate.sock"), h.token); err != nil {
		t.Error(err)
	} else if _, err := c.Policy(t.Context()); err != nil {
		t.Errorf("on the socket: %v", err)
	}

	// Half of a new pair is not taken; the whole is, with the next call.
	newCert, newKey := h.certify("next", 90*24*time.Hour)
	keep(t, newCert, cert)
	if err := serves(first); err != nil {
		t.Errorf("with half of a new pair: %v", err)
	}
	keep(t, newKey, key)
	if err := serves(newCert); err != nil {
		t.Errorf("with the new pair: %v", err)
	}
	if err := serves(first); fault.ReasonOf(err) != "certificate" {
		t.Errorf("the old one is still served: %v", err)
	}
	g.stop()
	if status := <-g.ended; status != 0 {
		t.Errorf("stopped with %d: %s", status, g.log.text.String())
	}
}

// keep puts a copy of a file in the place of another, in one move.
func keep(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".tmp", data, 0o600)
	}
	if err == nil {
		err = os.Rename(to+".tmp", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTLS_refuses: a gate that could be reached from elsewhere without TLS, or
// whose certificate cannot be used, does not start; the doctor knows the end.
func TestTLS_refuses(t *testing.T) {
	t.Parallel()
	const with = "  tcp: 127.0.0.1:0\n  tls: {cert: gate.crt, key: gate.pem}"
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		lasts         time.Duration
		listen        string
		spoil         func(*home) error
		starts        bool
		doctor, start string
	}{
		"elsewhere without TLS": {90 * day, "  tcp: 0.0.0.0:0\nhosts: [writ.example.org]", nil, false, "everybody on the way", "everybody on the way"},
		"open key":              {90 * day, with, func(h *home) error { return os.Chmod(h.path("gate.pem"), 0o640) }, false, "chmod 600", "chmod 600"},
		"no key":                {90 * day, with, func(h *home) error { return os.Remove(h.path("gate.pem")) }, false, "cannot be used", "cannot be used"},
		"another's key":         {90 * day, with, func(h *home) error { _, key := h.certify("other", day); return os.Rename(key, h.path("gate.pem")) }, false, "cannot be used", "cannot be used"},
		"ends soon":             {20 * day, with, nil, true, "ends on", ""},
		"ended":                 {-time.Minute, with, nil, true, "ended on", ""},
		"another name":          {90 * day, with + "\nhosts: [other.example.org]", nil, true, "is not for other.example.org", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.certify("gate", c.lasts)
			h.listens(c.listen)
			if c.spoil != nil {
				if err := c.spoil(h); err != nil {
					t.Fatal(err)
				}
			}
			if r := h.run("doctor"); r.status == 0 || !strings.Contains(r.stdout, c.doctor) {
				t.Errorf("doctor: %d %s", r.status, r.stdout)
			}
			if c.starts {
				g := h.start()
				g.stop()
				if status := <-g.ended; status != 0 {
					t.Errorf("run: %d %s", status, g.log.text.String())
				}
			} else if r := h.run("run"); r.status == 0 || !strings.Contains(r.stderr, c.start) {
				t.Errorf("run: %d %s", r.status, r.stderr)
			}
		})
	}
}

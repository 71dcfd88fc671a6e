package http

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net"
	"strings"

	"writ/fault"
)

// pin is the SHA-256 of a server's own certificate in DER form.
type pin [sha256.Size]byte

var errPin = errors.New("the certificate is not the pinned one")

func parsePin(text string) (pin, error) {
	var p pin
	b, err := hex.DecodeString(strings.ToLower(strings.ReplaceAll(text, ":", "")))
	if err != nil || len(b) != len(p) {
		return p, fault.New(fault.Invalid, "A TLS pin is the SHA-256 of the certificate, 64 hexadecimal digits; "+
			"correct tls_pin, or take it out to use certificate authorities.")
	}
	copy(p[:], b)
	return p, nil
}

// check is for tls.Config.VerifyConnection: it runs before the first byte of a
// request can leave, and for resumed sessions too.
func (p pin) check(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 || sha256.Sum256(s.PeerCertificates[0].Raw) != p {
		return errPin
	}
	return nil
}

// Fingerprint connects to an https address, sends nothing, and returns what to
// show to a person before pinning: the SHA-256 of the server's certificate in
// lower-case hexadecimal, its subject, and whether this machine's certificate
// authorities vouch for it.
func Fingerprint(ctx context.Context, baseURL string) (leafSHA256, subject string, verifiedBySystemCA bool, err error) {
	a, err := parseAddress(baseURL)
	if err != nil || a.url.Scheme != "https" {
		return "", "", false, fault.Wrap(fault.Invalid, err, "Only an https address has a certificate; give one like https://host:8006.")
	}
	port := a.url.Port()
	if port == "" {
		port = "443"
	}
	wait := Timeouts{}.filled()
	ctx, cancel := context.WithTimeout(ctx, wait.Connect+wait.TLS)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         a.url.Hostname(),
		InsecureSkipVerify: true, // the certificate is only looked at
	}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(a.url.Hostname(), port))
	if err != nil {
		return "", "", false, fault.Wrap(fault.Unavailable, err, "No TLS connection could be made; see that the system is up and that its address is right.")
	}
	defer conn.Close()
	chain := conn.(*tls.Conn).ConnectionState().PeerCertificates
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, untrusted := chain[0].Verify(x509.VerifyOptions{DNSName: a.url.Hostname(), Intermediates: between})
	sum := sha256.Sum256(chain[0].Raw)
	return hex.EncodeToString(sum[:]), Quote(chain[0].Subject.String()), untrusted == nil, nil
}

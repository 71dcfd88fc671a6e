package client_test

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ/client"
	"writ/fault"
)

// TestTLS: a gate elsewhere is believed only if its certificate is vouched for,
// and the token is sent to no other.
func TestTLS(t *testing.T) {
	t.Parallel()
	tokens := make(chan string, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens <- r.Header.Get("Authorization")
		_, _ = w.Write([]byte(`{"source":"` + r.Host + `"}`))
	}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(address, ca string) error {
		t.Helper()
		c, err := client.NewTrusting(address, token, ca)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Policy(t.Context())
		return err
	}
	if err := ask(s.URL, ca); err != nil || <-tokens != "Bearer "+token {
		t.Errorf("the gate: %v", err)
	}
	if err := ask(s.URL+"/", ca); err != nil || <-tokens == "" {
		t.Errorf("with a slash: %v", err)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	for address, ca := range map[string]string{s.URL: "", "https://localhost:" + port: ca} { // it is for 127.0.0.1 and example.com
		if err := ask(address, ca); fault.CodeOf(err) != fault.Unavailable || fault.ReasonOf(err) != "certificate" || !strings.Contains(err.Error(), "gate_ca") {
			t.Errorf("%s with %q: %v", address, ca, err)
		}
	}
	if len(tokens) > 0 {
		t.Error("the token was sent to who was not believed")
	}
	for address, file := range map[string]string{
		s.URL + "/v1": ca, "https://": ca, "https://a@127.0.0.1:1": ca, "https://127.0.0.1:1?x=y": ca, "http://127.0.0.1:1": "", "http://example.org": "",
		"https://127.0.0.1:1": filepath.Join(t.TempDir(), "none"),
	} {
		if _, err := client.NewTrusting(address, token, file); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s with %q: %v", address, file, err)
		}
	}
	if err := os.WriteFile(ca, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := client.NewTrusting(s.URL, token, ca); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("an empty authority: %v", err)
	}
}

package config_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/gate/internal/config"
)

var key = base64.StdEncoding.EncodeToString(make([]byte, ed25519.PublicKeySize))

func load(t *testing.T, text string) (*config.Config, string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, config.File), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(dir)
	return c, dir, err
}

func TestLoad_example(t *testing.T) {
	t.Parallel()
	c, dir, err := load(t, config.Example(config.Config{
		Listen:   config.Listen{Socket: "../run/gate.sock"},
		Executor: config.Executor{Name: "local", Socket: "/run/writ/executor.sock", Key: key},
		Catalog:  "../catalog",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen.Socket != filepath.Join(filepath.Dir(dir), "run/gate.sock") || c.Executor.Socket != "/run/writ/executor.sock" ||
		c.Policy != filepath.Join(dir, "policy.yaml") || c.FirstAnswer != 800*time.Millisecond || c.Epoch != 1 {
		t.Errorf("%+v", c)
	}
}

func TestLoad_defaults(t *testing.T) {
	t.Parallel()
	text := "listen: {tcp: '[::1]:7443'}\nexecutor: {name: local, socket: e.sock, key: " + key + "}\n"
	c, dir, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	if c.Digest != writ.DigestBytes([]byte(text)) {
		t.Errorf("the digest is %s", c.Digest)
	}
	if c.Limits.RequestsPerSecond != 100 || c.Limits.ProposalsPerMinute != 120 || c.Limits.OpenChanges != 200 || c.Limits.Connections != 1024 || c.Limits.ConnectionsPerAddress != 128 {
		t.Errorf("%+v", c.Limits)
	}
	if c.Catalog != "" || c.Audit != filepath.Join(dir, "audit") || c.FirstAnswer != 800*time.Millisecond || c.Epoch != 1 {
		t.Errorf("%+v", c)
	}
}

func TestLoad_namesAllProblems(t *testing.T) {
	t.Parallel()
	_, _, err := load(t, `
listen: {tcp: "0.0.0.0:80", socket: `+strings.Repeat("x", 120)+`}
hosts: ["Writ.example:80"]
executor: {name: "A B", key: "c2hvcnQ="}
policy: ""
audit: ""
first_answer: 1h
limits: {requests_per_second: 0, proposals_per_minute: -1, open_changes: 2000000, connections: 0, connections_per_address: -1}
epoch: 0
`)
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{"listen.socket:", "listen.tcp:", "hosts[0]:", "executor.name:", "executor.socket:", "executor.key:", "policy:", "audit:", "first_answer:", "limits.requests_per_second:", "limits.proposals_per_minute:", "limits.open_changes:", "limits.connections:", "limits.connections_per_address:", "epoch:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func TestLoad_witnesses(t *testing.T) {
	t.Parallel()
	const good = "w+680f52bc+BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	base := "listen: {socket: s}\nexecutor: {name: local, socket: e.sock, key: " + key + "}\ncheckpoint:\n  witnesses:\n"
	for text, want := range map[string]string{
		"    - {url: 'https://w.example.org/x', key: 'KEY'}\n":                                                 "",
		"    - {url: 'file:///x', key: 'KEY'}\n":                                                               "witnesses[0].url:",
		"    - {url: 'https://u:p@w.example.org', key: 'KEY'}\n":                                               "witnesses[0].url:",
		"    - {url: 'https://w.example.org', key: 'w+00000000+AAAA'}\n":                                       "witnesses[0].key:",
		"    - {url: 'https://w.example.org', key: 'KEY'}\n    - {url: 'https://x.example.org', key: 'KEY'}\n": "witnesses[1].key: stands twice",
	} {
		c, _, err := load(t, base+strings.ReplaceAll(text, "KEY", good))
		if want == "" && (err != nil || len(c.Checkpoint.Witnesses) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestLoad_refuses(t *testing.T) {
	t.Parallel()
	good := "executor: {name: local, socket: e.sock, key: " + key + "}\n"
	for _, text := range []string{
		good,                                               // listens nowhere
		good + "listen: {tcp: 'localhost:80'}\n",           // a name may resolve to anything
		good + "listen: {tcp: ':80'}\n",                    // no address
		good + "listen: {tcp: '127.0.0.1:'}\n",             // no port
		good + "listen: {socket: s}\npolcy: x.yaml\n",      // unknown key
		good + "listen: {socket: s}\nlisten: {tcp: x}\n",   // a key twice
		good + "listen: {socket: s}\n---\nepoch: 2\n",      // a second document
		good + "listen: {socket: s}\nfirst_answer: soon\n", // wrong type
		good + "listen: {socket: s}\nepoch: 0\n",           // no epoch
		good + "listen: {socket: s}\nepoch: 2000000\n",     // no room for fences
	} {
		if _, _, err := load(t, text); err == nil {
			t.Errorf("accepted:\n%s", text)
		}
	}
}

// TestLoad_elsewhere: what can be reached from elsewhere has a certificate, or
// says that it does without, and knows its name.
func TestLoad_elsewhere(t *testing.T) {
	t.Parallel()
	executor := "executor: {name: local, socket: e.sock, key: " + key + "}\n"
	const hosts = "hosts: [writ.example.org, 192.0.2.1, '2001:db8::1']\n"
	for text, want := range map[string]string{
		"listen: {tcp: '192.0.2.1:80', tls: {cert: c, key: k}}\n" + hosts:                 "",
		"listen: {tcp: '0.0.0.0:80', insecure: true}\n" + hosts:                           "",
		"listen: {tcp: '[::]:80', tls: {cert: c, key: k}}\n" + hosts:                      "",
		"listen: {tcp: '127.0.0.1:80', tls: {cert: c, key: k}}\n":                         "",
		"listen: {tcp: '127.0.0.1:80'}\n":                                                 "",
		"listen: {tcp: '192.0.2.1:80'}\n" + hosts:                                         "everybody on the way reads the tokens",
		"listen: {tcp: '0.0.0.0:80'}\n" + hosts:                                           "everybody on the way reads the tokens",
		"listen: {tcp: '[::]:80', insecure: false}\n" + hosts:                             "everybody on the way reads the tokens",
		"listen: {tcp: '192.0.2.1:80', tls: {cert: c, key: k}}\n":                         "hosts:",
		"listen: {tcp: '127.0.0.1:80', tls: {cert: c}}\n":                                 "listen.tls:",
		"listen: {tcp: '192.0.2.1:80', tls: {key: k}}\n" + hosts:                          "listen.tls:",
		"listen: {tcp: '192.0.2.1:80', insecure: true, tls: {cert: c, key: k}}\n" + hosts: "listen.insecure:",
		"listen: {socket: s, tls: {cert: c, key: k}}\n":                                   "which is not given",
		"listen: {socket: s, insecure: true}\n":                                           "which is not given",
	} {
		c, dir, err := load(t, executor+text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want == "" && c.Listen.TLS.Cert != "" && c.Listen.TLS != (config.TLS{Cert: filepath.Join(dir, "c"), Key: filepath.Join(dir, "k")}):
			t.Errorf("%s: %+v", text, c.Listen.TLS)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", text, err)
		}
	}
}

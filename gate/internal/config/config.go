// Package config is gate.yaml: what it may say, its defaults, and every problem
// of it at once. It holds no secret: the key and the principals lie in files of
// their own beside it.
package config

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"writ"
	"writ/fault"
	"writ/gate/internal/auth"
	"writ/ledger"
)

// The files of the gate's directory that have no setting.
const (
	File           = "gate.yaml"
	KeyFile        = "gate.key"        // the key that signs writs, base64 of its seed
	NextKeyFile    = "gate.key.next"   // the one that follows it, while a change of the key is under way
	PrincipalsFile = "principals.yaml" // who may call
	StoreFile      = "gate.db"
	// The keys that the executor had so far, each with what proves it; the gate writes it.
	ExecutorKeysFile = "executor-keys.json"
)

// maxEpoch leaves room for the fences that the epoch stands above.
const maxEpoch = 1 << 20

// maxRate is the highest limit of what a principal may ask.
const maxRate = 1_000_000

// Config is gate.yaml. A path in it is absolute or seen from its directory;
// after Load all paths are absolute.
type Config struct {
	Dir      string   `yaml:"-"`
	Listen   Listen   `yaml:"listen"`
	Hosts    []string `yaml:"hosts"` // names that a Host header may hold besides loopback
	Executor Executor `yaml:"executor"`
	// Origins are those of pages elsewhere that may ask, but never decide.
	Origins []string `yaml:"origins"`
	Catalog string   `yaml:"catalog"` // directory; "" is the shipped catalog
	Policy  string   `yaml:"policy"`
	Audit   string   `yaml:"audit"` // the directory of the ledger that holds every event
	// Checkpoint is when events are signed, and where the signature is copied to.
	Checkpoint Checkpoint `yaml:"checkpoint"`
	// FirstAnswer is how long a proposal waits for its decision.
	FirstAnswer time.Duration `yaml:"first_answer"`
	Limits      Limits        `yaml:"limits"`
	MCP         MCP           `yaml:"mcp"`
	// Epoch is raised by writ recover after a restore from a backup: an executor
	// takes no writ of a lower epoch than it has seen.
	Epoch int64 `yaml:"epoch"`

	// Digest is of the text that it was loaded from.
	Digest writ.Digest `yaml:"-"`
}

// MCP is what agents are offered as tools.
type MCP struct {
	// TypedTools offers each action as a tool of its own, besides propose_change.
	TypedTools bool `yaml:"typed_tools"`
}

// Limits is how much each principal may ask, and how many may be connected.
type Limits struct {
	auth.Rates  `yaml:",inline"`
	OpenChanges int64 `yaml:"open_changes"` // that have not ended; 0: any number
	// Connections is how many each of socket and tcp has open at once;
	// ConnectionsPerAddress, how many of these to one address of another machine.
	Connections           int64 `yaml:"connections"`
	ConnectionsPerAddress int64 `yaml:"connections_per_address"`
}

// Checkpoint says how the audit is signed. A copy out of reach of whoever may
// change the audit shows every later change and removal.
type Checkpoint struct {
	Every    time.Duration `yaml:"every"`    // how long events may wait for a signature
	Path     string        `yaml:"path"`     // a file that is replaced by the newest
	URL      string        `yaml:"url"`      // takes the newest by POST
	Required bool          `yaml:"required"` // nothing is carried out while the copy cannot be made
	// Witnesses are asked to sign it; nothing waits for them.
	Witnesses []Witness `yaml:"witnesses"`
}

// Witness signs checkpoints after it saw the proof that nothing before was changed.
type Witness struct {
	URL string `yaml:"url"` // of a C2SP tlog-witness, without /add-checkpoint
	Key string `yaml:"key"` // its public key: name+id+base64
}

// Listen is where the gate answers; at least one.
type Listen struct {
	Socket string `yaml:"socket"` // path of a Unix socket
	TCP    string `yaml:"tcp"`    // an address of this machine and a port
	TLS    TLS    `yaml:"tls"`    // for tcp
	// Insecure says that tcp may be reached from elsewhere without TLS.
	Insecure bool `yaml:"insecure"`
}

// TLS is the gate's certificate, with those that vouch for it, and its key, in PEM
// files that are read again when they changed. Without one there is no TLS.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// check returns what is wrong with where the gate answers.
func (l *Listen) check(hosts []string) (problems []string) {
	wrong := func(holds bool, format string, args ...any) {
		if !holds {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	wrong(l.Socket != "" || l.TCP != "", "listen: give a socket, or tcp, or both")
	wrong(len(l.Socket) <= maxSocket, "listen.socket: a path has at most %d bytes, this one %d: choose a shorter directory", maxSocket, len(l.Socket))
	wrong((l.TLS.Cert == "") == (l.TLS.Key == ""), "listen.tls: give cert and key, or neither")
	wrong(l.TLS.Cert == "" || !l.Insecure, "listen.insecure: there is a certificate, so leave it out")
	if l.TCP == "" {
		wrong(l.TLS.Cert == "" && !l.Insecure, "listen: tls and insecure are of tcp, which is not given")
		return problems
	}
	host, port, err := net.SplitHostPort(l.TCP)
	ip := net.ParseIP(host)
	wrong(err == nil && port != "" && ip != nil, "listen.tcp: %q is no address of this machine with a port, as 127.0.0.1:7443", l.TCP)
	if ip != nil && !ip.IsLoopback() {
		wrong(l.TLS.Cert != "" || l.Insecure, "listen.tcp: %q can be reached from elsewhere, and without TLS everybody on the way reads the tokens. "+
			"Give listen.tls a cert and a key, or listen on 127.0.0.1; if what is on the way encrypts by itself, say listen.insecure: true", l.TCP)
		wrong(len(hosts) > 0, "hosts: %q can be reached from elsewhere, so name what the callers call the gate, or they are all refused", l.TCP)
	}
	return problems
}

// Executor is the other process.
type Executor struct {
	Name   string `yaml:"name"`
	Socket string `yaml:"socket"`
	// Key is its public key in base64, or the one of before from which the gate
	// followed it. A key that is new here is trusted from then on, and none before it.
	Key string `yaml:"key"`
}

// maxSocket is the longest path of a Unix socket that Linux takes, in bytes.
const maxSocket = 107

// Load reads gate.yaml in a directory. Its error names all problems at once.
func Load(dir string) (*Config, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The directory of the gate cannot be found.")
	}
	path := filepath.Join(dir, File)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s cannot be read. See what is wrong with it: writ doctor", path)
	}
	c := &Config{Dir: dir, Digest: writ.DigestBytes(data), Policy: "policy.yaml", Audit: "audit", Checkpoint: Checkpoint{Every: 5 * time.Second}, FirstAnswer: 800 * time.Millisecond, Epoch: 1,
		Limits: Limits{Rates: auth.Rates{RequestsPerSecond: 100, ProposalsPerMinute: 120}, OpenChanges: 200, Connections: 1024, ConnectionsPerAddress: 128}}
	if err := yaml.Load(data, c, yaml.WithKnownFields()); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s is not valid: %v", path, err)
	}
	for _, p := range []*string{&c.Listen.Socket, &c.Executor.Socket, &c.Catalog, &c.Policy, &c.Audit, &c.Checkpoint.Path, &c.Listen.TLS.Cert, &c.Listen.TLS.Key} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
	if problems := c.check(); len(problems) > 0 {
		return nil, fault.New(fault.Invalid, "%s is not valid:\n  %s", path, strings.Join(problems, "\n  "))
	}
	return c, nil
}

var (
	nameForm   = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,62}$`)
	originForm = regexp.MustCompile(`^https?://([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:]+\])(:[1-9][0-9]{0,4})?$`)
	hostForm   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
)

// check returns every problem, each with its place.
func (c *Config) check() []string {
	var problems []string
	wrong := func(holds bool, format string, args ...any) {
		if !holds {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	problems = append(problems, c.Listen.check(c.Hosts)...)
	for i, h := range c.Hosts {
		wrong(hostForm.MatchString(h) || net.ParseIP(h) != nil, "hosts[%d]: %q is no host name in lower case, and no address, without a port", i, h)
	}
	wrong(nameForm.MatchString(c.Executor.Name), "executor.name: %q is no name; see executor.yaml", c.Executor.Name)
	wrong(c.Executor.Socket != "", "executor.socket: is missing; see executor.yaml")
	wrong(len(c.Executor.Socket) <= maxSocket, "executor.socket: a path has at most %d bytes, this one %d", maxSocket, len(c.Executor.Socket))
	_, err := c.ExecutorKey()
	wrong(err == nil, "executor.key: is not the executor's public key, 32 bytes in base64; writ-executor init prints it")
	wrong(c.Policy != "", "policy: is missing; without a policy everything is denied")
	wrong(c.Audit != "", "audit: is missing; without an audit nothing is carried out")
	for i, o := range c.Origins {
		wrong(originForm.MatchString(o), "origins[%d]: %q is no origin, as https://chat.example.org or http://localhost:3000, in lower case and without a path", i, o)
	}
	k := c.Checkpoint
	wrong(k.Every >= 100*time.Millisecond && k.Every <= time.Hour, "checkpoint.every: %s is not 100ms to 1h", k.Every)
	wrong(k.URL == "" || endpoint(k.URL), "checkpoint.url: %q is no http or https address without a user", k.URL)
	wrong(!k.Required || k.Path != "" || k.URL != "", "checkpoint.required: name a path or a url as well")
	seen := map[string]bool{}
	for i, w := range k.Witnesses {
		wrong(endpoint(w.URL), "checkpoint.witnesses[%d].url: %q is no http or https address without a user", i, w.URL)
		_, err := ledger.ParseWitness(w.Key)
		wrong(err == nil, "checkpoint.witnesses[%d].key: %s", i, fault.TextOf(err))
		wrong(!seen[w.Key], "checkpoint.witnesses[%d].key: stands twice", i)
		seen[w.Key] = true
	}
	inside, err := filepath.Rel(c.Audit, k.Path)
	wrong(k.Path == "" || err != nil || strings.HasPrefix(inside, ".."), "checkpoint.path: lies in the audit itself; a copy there shows nothing")
	wrong(c.FirstAnswer > 0 && c.FirstAnswer <= 20*time.Second, "first_answer: %s is not more than 0 and at most 20s", c.FirstAnswer)
	l := c.Limits
	wrong(l.RequestsPerSecond >= 1 && l.RequestsPerSecond <= maxRate, "limits.requests_per_second: %d is not 1 to %d", l.RequestsPerSecond, maxRate)
	wrong(l.ProposalsPerMinute >= 1 && l.ProposalsPerMinute <= maxRate, "limits.proposals_per_minute: %d is not 1 to %d", l.ProposalsPerMinute, maxRate)
	wrong(l.OpenChanges >= 0 && l.OpenChanges <= maxRate, "limits.open_changes: %d is not 0 to %d", l.OpenChanges, maxRate)
	wrong(l.Connections >= 1 && l.Connections <= maxRate, "limits.connections: %d is not 1 to %d", l.Connections, maxRate)
	wrong(l.ConnectionsPerAddress >= 1 && l.ConnectionsPerAddress <= maxRate, "limits.connections_per_address: %d is not 1 to %d", l.ConnectionsPerAddress, maxRate)
	wrong(c.Epoch >= 1 && c.Epoch <= maxEpoch, "epoch: %d is not 1 to %d", c.Epoch, maxEpoch)
	return problems
}

// ExecutorKey returns the key that observations and receipts are signed with, or
// from which that one follows.
func (c *Config) ExecutorKey() (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(c.Executor.Key)
	if err != nil {
		return nil, err
	}
	if len(key) != ed25519.PublicKeySize {
		return nil, fault.New(fault.Invalid, "A public key has %d bytes, this one %d.", ed25519.PublicKeySize, len(key))
	}
	return key, nil
}

// endpoint reports whether a text is an address to POST to.
func endpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// Path returns the path of a file of the gate's directory.
func (c *Config) Path(name string) string { return filepath.Join(c.Dir, name) }

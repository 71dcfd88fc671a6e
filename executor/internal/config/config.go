// Package config is executor.yaml: what it may say, its defaults, and every
// problem of it at once. It holds no secret: systems name the secrets of the
// vault that they use.
package config

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"writ"
	"writ/executor/internal/datadir"
	"writ/fault"
)

// The files of the data directory that have no setting.
const (
	File        = "executor.yaml"
	HashKeyFile = "redact.key"        // the key of the hashes in the places of secrets, at least 32 characters
	KeyFile     = "executor.key"      // the key that signs observations and receipts, base64 of its seed
	NextKeyFile = "executor.key.next" // the one that follows it, while a change of the key is under way
	JournalFile = "journal.db"
	AuditDir    = "audit" // the ledger of what the journal records
	AdminSocket = "admin.sock"
)

// Config is executor.yaml. A path in it is absolute or seen from its directory.
type Config struct {
	Dir      string   `yaml:"-"`
	Executor string   `yaml:"executor"`  // the name that writs are made out to
	Socket   string   `yaml:"socket"`    // where the gate reaches the executor
	GateKeys []string `yaml:"gate_keys"` // public keys in base64 whose writs are taken
	// Former are those of before: what their writs began is settled, and none is taken.
	Former    []string `yaml:"former_gate_keys,omitempty"`
	Approvers []string `yaml:"approvers"` // people whose approvals count; none: nothing is written
	Catalog   string   `yaml:"catalog"`   // directory; "" is the shipped catalog
	Backups   string   `yaml:"backups"`
	Vault     Vault    `yaml:"vault"`
	Systems   []System `yaml:"systems"`
	Limits    Limits   `yaml:"limits"`

	// Digest is of the text that it was loaded from.
	Digest writ.Digest `yaml:"-"`
}

// Vault says where the vault lies and what opens it.
type Vault struct {
	File       string `yaml:"file"`
	KeyFile    string `yaml:"key_file"`
	Passphrase bool   `yaml:"passphrase"` // the key file is encrypted with a passphrase
}

// System is one system that may be acted on.
type System struct {
	Name        string            `yaml:"name"`
	Kind        string            `yaml:"kind"`
	Environment string            `yaml:"environment"`
	BaseURL     string            `yaml:"base_url,omitempty"`
	TLSPin      string            `yaml:"tls_pin,omitempty"`   // SHA-256 of the certificate; "" asks the certificate authorities
	Endpoints   map[string]string `yaml:"endpoints,omitempty"` // further addresses, read without credentials
	Options     map[string]string `yaml:"options,omitempty"`
	Secrets     map[string]string `yaml:"secrets,omitempty"` // the driver's need → the name in the vault
}

// Limits bounds what a gate may ask for.
type Limits struct {
	ObservePerMinute int `yaml:"observe_per_minute"`
}

// New returns the configuration that init writes.
func New(dir, name string) *Config {
	return &Config{
		Dir: dir, Executor: name, Socket: "run/executor.sock", GateKeys: []string{}, Approvers: []string{},
		Backups: "backups", Vault: Vault{File: "vault.age", KeyFile: "vault.key"}, Systems: []System{},
		Limits: Limits{ObservePerMinute: 600},
	}
}

// Load reads executor.yaml in a directory that it checks first. Its error
// names all problems at once.
func Load(dir string) (*Config, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The data directory cannot be found.")
	}
	if err := datadir.Check(dir); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, File)
	text, err := datadir.Read(file)
	if err != nil {
		return nil, err
	}
	c := New(dir, "")
	if err := yaml.Load(text, c, yaml.WithKnownFields()); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s is not valid: %v", file, err)
	}
	c.Digest = writ.DigestBytes(text)
	return c, c.Check()
}

// Save writes executor.yaml. It fails on what Load would refuse.
func (c *Config) Save() error {
	if err := c.Check(); err != nil {
		return err
	}
	text, err := yaml.Dump(c)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "The configuration cannot be written as YAML.")
	}
	return datadir.Replace(c.Path(File), text)
}

// Check reports everything that Load would refuse.
func (c *Config) Check() error {
	if problems := c.check(); len(problems) > 0 {
		return fault.New(fault.Invalid, "%s is not valid:\n  %s", c.Path(File), strings.Join(problems, "\n  "))
	}
	return nil
}

// Path returns a path that is absolute or seen from the data directory.
func (c *Config) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.Dir, name)
}

// Keys returns the public keys whose writs are taken, and those of before.
func (c *Config) Keys() (keys, former []ed25519.PublicKey, err error) {
	if keys, err = parse(c.GateKeys); err == nil {
		former, err = parse(c.Former)
	}
	return keys, former, err
}

// SetGateKey makes a key the only one whose writs are taken.
func (c *Config) SetGateKey(key string) {
	for _, old := range c.GateKeys {
		if !slices.Contains(c.Former, old) {
			c.Former = append(c.Former, old)
		}
	}
	c.GateKeys = []string{key}
	c.Former = slices.DeleteFunc(c.Former, func(old string) bool { return old == key })
}

func parse(texts []string) (keys []ed25519.PublicKey, err error) {
	for _, text := range texts {
		key, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, fault.Wrap(fault.Invalid, err, "A gate's public key is 32 bytes in base64.")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// System returns the configured system of a name.
func (c *Config) System(name string) (System, bool) {
	i := slices.IndexFunc(c.Systems, func(s System) bool { return s.Name == name })
	if i < 0 {
		return System{}, false
	}
	return c.Systems[i], true
}

// maxSocket is the longest path of a Unix socket that Linux takes, in bytes.
const maxSocket = 107

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,62}$`)

// check returns every problem, each with its place.
func (c *Config) check() []string {
	var problems []string
	must := func(holds bool, format string, args ...any) {
		if !holds {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	must(nameForm.MatchString(c.Executor), "executor: %q is no name; use small letters, digits, and . _ - between them", c.Executor)
	must(c.Socket != "", "socket: is missing")
	for _, socket := range []string{c.Path(c.Socket), c.Path(AdminSocket)} {
		must(len(socket) <= maxSocket, "socket: %s has %d bytes, more than the %d of a Unix socket: choose a shorter directory", socket, len(socket), maxSocket)
	}
	_, _, err := c.Keys()
	must(err == nil, "gate_keys, former_gate_keys: each is a gate's public key, 32 bytes in base64")
	for i, a := range c.Approvers {
		must(a != "" && strings.TrimSpace(a) == a, "approvers[%d]: %q is no name", i, a)
		must(slices.Index(c.Approvers, a) == i, "approvers[%d]: %q stands twice", i, a)
	}
	must(c.Backups != "", "backups: is missing; without backups nothing is written")
	must(c.Vault.File != "" && c.Vault.KeyFile != "", "vault: file and key_file are needed")
	must(c.Limits.ObservePerMinute > 0, "limits.observe_per_minute: must be at least 1")
	for i, s := range c.Systems {
		must(nameForm.MatchString(s.Name), "systems[%d].name: %q is no name; use small letters, digits, and . _ - between them", i, s.Name)
		must(s.Kind != "", "systems[%d].kind: is missing", i)
		must(s.Environment != "", "systems[%d].environment: is missing, e.g. lab or production", i)
		must(slices.IndexFunc(c.Systems, func(o System) bool { return o.Name == s.Name }) == i, "systems[%d].name: %q stands twice", i, s.Name)
		for need, name := range s.Secrets {
			must(need != "" && name != "", "systems[%d].secrets: a need or a name is empty", i)
		}
	}
	return problems
}

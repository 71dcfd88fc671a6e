// Package vault keeps the credentials of the systems: one file encrypted with
// age, whose key is either a file beside it or a key that a passphrase opens.
// While it is locked nobody gets a secret, and the executor refuses everything.
package vault

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"filippo.io/age"

	"writ/connector"
	"writ/executor/internal/datadir"
	"writ/fault"
)

// Config says where a vault lies and what opens it.
type Config struct {
	File       string // the encrypted file
	KeyFile    string // the key; if Passphrase, encrypted with one
	Passphrase bool
}

// Vault is locked until Unlock. It is safe for concurrent use.
type Vault struct {
	config Config

	mu       sync.Mutex
	identity *age.X25519Identity // nil while locked
	secrets  map[string]string
}

// New returns the vault, locked.
func New(c Config) *Vault { return &Vault{config: c} }

// Create makes the key and an empty vault. It overwrites nothing. The
// passphrase is needed if the configuration says so.
func Create(c Config, passphrase string) error {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return fault.Wrap(fault.Internal, err, "No key could be made for the vault.")
	}
	key := []byte(identity.String() + "\n")
	if c.Passphrase {
		if len(passphrase) < 10 {
			return fault.New(fault.Invalid, "The passphrase of the vault needs at least 10 characters.")
		}
		recipient, err := age.NewScryptRecipient(passphrase)
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "This passphrase cannot be used.")
		}
		if key, err = encrypt(key, recipient); err != nil {
			return err
		}
	}
	if err := datadir.Create(c.KeyFile, key); err != nil {
		return err
	}
	content, err := encrypt([]byte("{}"), identity.Recipient())
	if err != nil {
		return err
	}
	return datadir.Create(c.File, content)
}

// NeedsPassphrase reports whether Unlock needs one.
func (v *Vault) NeedsPassphrase() bool { return v.config.Passphrase }

// Unlock opens the vault. The passphrase is "" for a key in a file.
func (v *Vault) Unlock(passphrase string) error {
	key, err := datadir.Read(v.config.KeyFile)
	if err != nil {
		return err
	}
	if v.config.Passphrase {
		scrypt, err := age.NewScryptIdentity(passphrase)
		if err != nil {
			return fault.Wrap(fault.Unauthenticated, err, "The vault needs its passphrase.")
		}
		if key, err = decrypt(key, scrypt); err != nil {
			return fault.Wrap(fault.Unauthenticated, err, "The passphrase does not open the vault.")
		}
	}
	identity, err := age.ParseX25519Identity(strings.TrimSpace(string(key)))
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s holds no key of a vault. Restore it from a copy.", v.config.KeyFile)
	}
	secrets, err := load(v.config.File, identity)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity, v.secrets = identity, secrets
	return nil
}

// Reload reads the file again, in case another process wrote to it. A locked
// vault stays locked.
func (v *Vault) Reload() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.identity == nil {
		return nil
	}
	secrets, err := load(v.config.File, v.identity)
	if err != nil {
		return err
	}
	v.secrets = secrets
	return nil
}

// Lock forgets the key and all secrets.
func (v *Vault) Lock() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity, v.secrets = nil, nil
}

// Locked reports whether the vault is locked.
func (v *Vault) Locked() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.identity == nil
}

// Names lists the names of the secrets.
func (v *Vault) Names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Sorted(maps.Keys(v.secrets))
}

// Values lists the secrets themselves. They are for package redact, and for
// nothing else.
func (v *Vault) Values() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.secrets))
}

// NameForm is what the name of a secret looks like.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// Set stores secrets and writes the file.
func (v *Vault) Set(secrets map[string]connector.Secret) error {
	return v.change(func(all map[string]string) error {
		for name, s := range secrets {
			value := s.Reveal()
			if !nameForm.MatchString(name) {
				return fault.New(fault.Invalid, "The name of a secret has small letters, digits, and . _ - between them.")
			}
			if value == "" || len(value) > 64<<10 || strings.ContainsRune(value, 0) {
				return fault.New(fault.Invalid, "The secret %s is empty, longer than 64 KiB, or holds a NUL.", name)
			}
			all[name] = value
		}
		return nil
	})
}

// Remove forgets secrets and writes the file.
func (v *Vault) Remove(names ...string) error {
	return v.change(func(all map[string]string) error {
		for _, n := range names {
			delete(all, n)
		}
		return nil
	})
}

func (v *Vault) change(do func(map[string]string) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.identity == nil {
		return locked()
	}
	all, err := load(v.config.File, v.identity) // another process may have written
	if err != nil {
		return err
	}
	if err := do(all); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "The vault cannot be written as JSON.")
	}
	content, err := encrypt(text, v.identity.Recipient())
	if err != nil {
		return err
	}
	if err := datadir.Replace(v.config.File, content); err != nil {
		return err
	}
	v.secrets = all
	return nil
}

// Secrets returns what one system may use, and nothing else: names maps a
// driver's need to the name of a secret.
func (v *Vault) Secrets(names map[string]string) connector.Secrets {
	return session{v, maps.Clone(names)}
}

type session struct {
	vault *Vault
	names map[string]string
}

// Secret returns one secret of the system. It fails while the vault is locked.
func (s session) Secret(need string) (connector.Secret, error) {
	name, ok := s.names[need]
	if !ok {
		return connector.Secret{}, fault.New(fault.NotFound, "The system has no secret %s. Run: writ systems add", need)
	}
	s.vault.mu.Lock()
	defer s.vault.mu.Unlock()
	if s.vault.identity == nil {
		return connector.Secret{}, locked()
	}
	value, ok := s.vault.secrets[name]
	if !ok {
		return connector.Secret{}, fault.New(fault.NotFound, "The vault has no secret %s. Run: writ vault set %s", name, name)
	}
	return connector.NewSecret(value), nil
}

func locked() error {
	return fault.New(fault.Unavailable, "The vault is locked. Run: writ vault unlock").Because("vault_locked")
}

func load(file string, identity age.Identity) (map[string]string, error) {
	content, err := datadir.Read(file)
	if err != nil {
		return nil, err
	}
	text, err := decrypt(content, identity)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The vault %s does not open with its key. Restore both from a copy.", file)
	}
	secrets := map[string]string{}
	if err := json.Unmarshal(text, &secrets); err != nil {
		// The cause may quote a secret.
		return nil, fault.New(fault.Unavailable, "The vault %s is damaged. Restore it from a copy.", file)
	}
	return secrets, nil
}

func encrypt(text []byte, to age.Recipient) ([]byte, error) {
	var b bytes.Buffer
	w, err := age.Encrypt(&b, to)
	if err == nil {
		_, err = w.Write(text)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "The vault could not be encrypted.")
	}
	return b.Bytes(), nil
}

func decrypt(content []byte, with age.Identity) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(content), with)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

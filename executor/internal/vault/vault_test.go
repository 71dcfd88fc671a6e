package vault_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/connector"
	"writ/executor/internal/vault"
	"writ/fault"
)

const canary = "canary-not-a-real-secret"

func config(t *testing.T) vault.Config {
	t.Helper()
	dir := t.TempDir()
	return vault.Config{File: filepath.Join(dir, "vault.age"), KeyFile: filepath.Join(dir, "vault.key")}
}

func unlocked(t *testing.T, c vault.Config, passphrase string) *vault.Vault {
	t.Helper()
	v := vault.New(c)
	if err := v.Unlock(passphrase); err != nil {
		t.Fatalf("Unlock: %v", err)
	}
	return v
}

func TestVault(t *testing.T) {
	t.Parallel()
	c := config(t)
	if err := vault.Create(c, ""); err != nil {
		t.Fatal(err)
	}
	if err := vault.Create(c, ""); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second Create: %v", err)
	}
	v := unlocked(t, c, "")
	if err := v.Set(map[string]connector.Secret{"pve.token": connector.NewSecret(canary), "other.token": connector.NewSecret("another-secret")}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(c.File)
	if err != nil || bytes.Contains(content, []byte(canary)) {
		t.Errorf("the file holds the secret (%v)", err)
	}
	if info, _ := os.Stat(c.File); info.Mode() != 0o600 {
		t.Errorf("the file has mode %v", info.Mode())
	}

	v = unlocked(t, c, "")
	if diff := cmp.Diff([]string{"other.token", "pve.token"}, v.Names()); diff != "" {
		t.Errorf("Names (-want +got)\n%s", diff)
	}
	session := v.Secrets(map[string]string{"token": "pve.token", "gone": "no.such"})
	if s, err := session.Secret("token"); err != nil || s.Reveal() != canary || fmt.Sprintf("%s %v %+v %#v", s, s, s, s) != "[secret] [secret] [secret] [secret]" {
		t.Errorf("Secret = %v, %v", s, err)
	}
	for _, need := range []string{"password", "gone", "other.token"} {
		if _, err := session.Secret(need); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("Secret(%s): %v", need, err)
		}
	}
	if err := v.Remove("other.token"); err != nil || len(v.Names()) != 1 || len(v.Values()) != 1 {
		t.Errorf("Remove: %v, %v left", err, v.Names())
	}
	v.Lock()
	if _, err := session.Secret("token"); fault.ReasonOf(err) != "vault_locked" {
		t.Errorf("a locked vault answered: %v", err)
	}
	if err := v.Set(map[string]connector.Secret{"x": connector.NewSecret("y")}); fault.ReasonOf(err) != "vault_locked" {
		t.Errorf("a locked vault was written: %v", err)
	}
	if err := v.Reload(); err != nil || !v.Locked() || len(v.Values()) != 0 {
		t.Errorf("Reload opened a locked vault: %v", err)
	}
}

func TestVault_seesWhatAnotherProcessWrote(t *testing.T) {
	t.Parallel()
	c := config(t)
	if err := vault.Create(c, ""); err != nil {
		t.Fatal(err)
	}
	a, b := unlocked(t, c, ""), unlocked(t, c, "")
	if err := a.Set(map[string]connector.Secret{"one": connector.NewSecret("secret-one")}); err != nil {
		t.Fatal(err)
	}
	if err := b.Set(map[string]connector.Secret{"two": connector.NewSecret("secret-two")}); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two"}, a.Names()); diff != "" {
		t.Errorf("Names (-want +got)\n%s", diff)
	}
}

func TestVault_passphrase(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Passphrase = true
	if err := vault.Create(c, "short"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a short passphrase: %v", err)
	}
	if err := vault.Create(c, "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(c.KeyFile)
	if err != nil || bytes.Contains(key, []byte("AGE-SECRET-KEY")) {
		t.Errorf("the key lies in the open (%v)", err)
	}
	v := vault.New(c)
	if !v.NeedsPassphrase() {
		t.Error("it does not say that it needs a passphrase")
	}
	for _, wrong := range []string{"", "correct horse batterz"} {
		if err := v.Unlock(wrong); fault.CodeOf(err) != fault.Unauthenticated || !v.Locked() {
			t.Errorf("Unlock(%q): %v", wrong, err)
		}
	}
	unlocked(t, c, "correct horse battery")
}

func TestUnlock_refuses(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(c vault.Config) error{
		"key open to others":  func(c vault.Config) error { return os.Chmod(c.KeyFile, 0o640) },
		"file open to others": func(c vault.Config) error { return os.Chmod(c.File, 0o644) },
		"no key":              func(c vault.Config) error { return os.Remove(c.KeyFile) },
		"no file":             func(c vault.Config) error { return os.Remove(c.File) },
		"key is a link": func(c vault.Config) error {
			if err := os.Rename(c.KeyFile, c.KeyFile+".real"); err != nil {
				return err
			}
			return os.Symlink(c.KeyFile+".real", c.KeyFile)
		},
		"damaged key":  func(c vault.Config) error { return os.WriteFile(c.KeyFile, []byte("x"), 0o600) },
		"damaged file": func(c vault.Config) error { return os.WriteFile(c.File, []byte("x"), 0o600) },
	} {
		c := config(t)
		if err := vault.Create(c, ""); err != nil {
			t.Fatal(err)
		}
		if err := spoil(c); err != nil {
			t.Fatal(err)
		}
		v := vault.New(c)
		if err := v.Unlock(""); err == nil || !v.Locked() {
			t.Errorf("%s: Unlock: %v", name, err)
		}
	}
}

package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/ledger"
)

func TestVault_commands(t *testing.T) {
	t.Parallel()
	dir, _ := initialised(t, "--passphrase")
	stop := running(t, dir)
	var hello writ.Hello
	if err := call(t, dir, "GET", writ.PathHello, nil, &hello); err != nil || !hello.Locked {
		t.Errorf("hello: %+v %v", hello, err)
	}
	if err := call(t, dir, "POST", writ.PathWrits, []byte("{}"), nil); fault.ReasonOf(err) != "vault_locked" {
		t.Errorf("a locked executor took a writ: %v", err)
	}
	if _, stderr, status := command(t, dir, "wrong passphrase", "vault", "unlock"); status != fault.Unauthenticated.Row().Exit {
		t.Errorf("a wrong passphrase ended with %d: %s", status, stderr)
	}
	ok(t, dir, "a long enough passphrase\n", "vault", "unlock")
	if err := call(t, dir, "POST", writ.PathWrits, []byte("{}"), nil); fault.ReasonOf(err) != "malformed" {
		t.Errorf("unlocked: %v", err)
	}
	ok(t, dir, "", "vault", "lock")
	if err := call(t, dir, "POST", writ.PathWrits, []byte("{}"), nil); fault.ReasonOf(err) != "vault_locked" {
		t.Errorf("locked again: %v", err)
	}
	before := configOf(t, dir)
	ok(t, dir, "", "add-approver", "otto")
	stop()
	acts := []string{"executor.started " + before, "vault.unlocked ", "vault.locked ", "executor.reloaded " + configOf(t, dir)}
	if diff := cmp.Diff(acts, actsOf(t, dir)); diff != "" {
		t.Errorf("the audit tells of the operator (-want +got)\n%s", diff)
	}
	if _, stderr, status := command(t, dir, "a long enough passphrase\n", "vault", "unlock"); status != fault.Unavailable.Row().Exit {
		t.Errorf("with nothing running it ended with %d: %s", status, stderr)
	}

	dir, _ = initialised(t)
	ok(t, dir, canary+"\n", "vault", "set", "a.token")
	if out := ok(t, dir, "", "vault", "list"); out != "a.token\n" {
		t.Errorf("list printed %q", out)
	}
	if strings.Contains(listing(t, dir), canary) {
		t.Error("the secret lies in the open")
	}
}

// configOf returns the digest of executor.yaml.
func configOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "executor.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(writ.DigestBytes(text))
}

// actsOf returns what the audit says was done to the executor itself, each with
// the digest of the configuration that is in force from then on.
func actsOf(t *testing.T, dir string) (acts []string) {
	t.Helper()
	r, err := ledger.Read(filepath.Join(dir, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = r.Each(0, func(_ int64, line []byte) error {
		var e struct {
			Event   string
			Config  writ.Digest `json:"config_digest"`
			Catalog writ.Digest `json:"catalog_digest"`
		}
		err := json.Unmarshal(line, &e)
		act, _, _ := strings.Cut(e.Event, ".")
		if configured := act == "executor" && e.Event != "executor.drained"; configured || act == "vault" {
			acts = append(acts, e.Event+" "+string(e.Config))
			if configured != e.Catalog.Valid() {
				t.Errorf("%s", line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return acts
}

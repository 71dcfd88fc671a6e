package app

import (
	"context"
	"net/http"
	"testing"

	"writ/catalog"
	"writ/connector"
	"writ/executor/internal/config"
	"writ/executor/internal/vault"
	"writ/sys"
)

// counting is a driver that counts what is open.
type counting struct{ open *int }

func (counting) Kind() string            { return "counting" }
func (counting) Needs() []connector.Need { return nil }
func (counting) Verbs() map[string]bool  { return nil }
func (counting) Authenticate(connector.System, connector.Secrets, http.RoundTripper) http.RoundTripper {
	return nil
}
func (c counting) Open(connector.System) (connector.Target, error) { *c.open++; return counted(c), nil }

type counted counting

func (counted) Do(context.Context, catalog.Call) (catalog.Seen, error) { return catalog.Seen{}, nil }
func (counted) Check(context.Context) ([]string, error)                { return nil, nil }
func (c counted) Close() error                                         { *c.open--; return nil }

// A system that is configured anew while a run uses it is closed when the run is done with it.
func TestSystems_stayOpenWhileUsed(t *testing.T) {
	t.Parallel()
	open := 0
	s := newSystems(sys.Real(nil), vault.New(vault.Config{}))
	s.drivers = []connector.Driver{counting{&open}}
	plain := config.System{Name: "plain", Kind: "counting", Environment: "lab"}
	secret := config.System{Name: "secret", Kind: "counting", Environment: "lab", Secrets: map[string]string{"token": "t"}}
	configure := func(fresh bool, want int, systems ...config.System) {
		t.Helper()
		if err := s.configure(systems, fresh); err != nil {
			t.Fatal(err)
		}
		if open != want {
			t.Errorf("%d are open, want %d", open, want)
		}
	}
	configure(false, 2, plain, secret)
	configure(false, 2, plain, secret)
	before := s.open["secret"]
	configure(true, 2, plain, secret)
	if s.open["secret"] == before {
		t.Error("a system with secrets kept its session")
	}
	_, release, err := s.Use("plain")
	if err != nil {
		t.Fatal(err)
	}
	moved := plain
	moved.Environment = "production"
	configure(false, 3, moved, secret)
	release()
	release()
	if open != 2 {
		t.Errorf("%d are open after the last user left", open)
	}
	if err := s.configure([]config.System{plain, {Name: "x", Kind: "abacus"}}, false); err == nil || open != 2 || s.open["plain"].config.Environment != "production" {
		t.Errorf("a configuration that is not valid changed something: %v, %d open", err, open)
	}
	configure(false, 0)
	if _, _, err := s.Use("plain"); err == nil {
		t.Error("a removed system can be used")
	}
}

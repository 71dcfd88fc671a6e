// Package gatetest is a gate for tests, whole but for its process and its
// executor: a real store, audit, catalog, policy and principals.
package gatetest

import (
	"crypto/ed25519"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"writ"
	"writ/catalog"
	"writ/gate/internal/audit"
	"writ/gate/internal/auth"
	"writ/gate/internal/model"
	"writ/gate/internal/ops"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/policy"
	"writ/gate/internal/store/sqlite"
	"writ/ledger"
	"writ/policies"
	"writ/sys"
)

// Gate is what the ways in of a gate are made of.
type Gate struct {
	*ops.Gate
	Executor *Executor
	Who      *auth.Principals
	Tokens   map[string]string // of agent, other (an agent), approver, operator, auditor and admin
	Dir      string            // of its store and its audit
}

// New returns a gate that ends with the test.
func New(t testing.TB) *Gate {
	t.Helper()
	g := &Gate{Dir: filepath.Join(t.TempDir(), "gate"), Tokens: map[string]string{}}
	s := sys.Real(slog.New(slog.DiscardHandler))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(g.Dir, "gate.db"))
	must(err)
	actions, err := catalog.Load(catalog.Builtin())
	must(err)
	rules, err := policy.Parse(policies.ApproveMost)
	must(err)
	public, key, err := ed25519.GenerateKey(s.Rand)
	must(err)
	log, err := ledger.Open(filepath.Join(g.Dir, "audit"), ledger.Options{Name: "writ/gate", Key: key, Now: s.Now})
	must(err)
	record := audit.New(audit.Config{Sys: s, Store: store, Log: log})
	g.Executor = newExecutor(public, actions)
	pipe := pipeline.New(pipeline.Config{
		Sys: s, Store: store, Audit: record, Executor: g.Executor,
		Catalog: actions, Policy: rules, Key: key, Epoch: 1, FirstAnswer: 10 * time.Second,
	})
	must(pipe.Start(t.Context()))
	t.Cleanup(func() {
		pipe.Stop()
		must(store.Close())
		must(log.Close())
	})
	principals := filepath.Join(g.Dir, "principals.yaml")
	for name, p := range map[string]auth.Principal{
		"agent":    {Name: "opencode", Kind: writ.Agent, Roles: []model.Role{model.Requester}},
		"other":    {Name: "codex", Kind: writ.Agent, Roles: []model.Role{model.Requester}},
		"approver": {Name: "ana", Kind: writ.Human, Roles: []model.Role{model.Approver}},
		"operator": {Name: "otto", Kind: writ.Human, Roles: []model.Role{model.Operator}},
		"auditor":  {Name: "aude", Kind: writ.Human, Roles: []model.Role{model.Auditor}},
		"admin":    {Name: "adam", Kind: writ.Human, Roles: []model.Role{model.Admin}},
	} {
		made, err := auth.Add(s, principals, p, auth.New{})
		must(err)
		g.Tokens[name] = made.Token
	}
	g.Who, err = auth.Open(s, principals)
	must(err)
	g.Gate = &ops.Gate{Pipeline: pipe, Record: record, Version: "test", Executors: func() ledger.Signers { return ledger.Signers{{Key: make(ed25519.PublicKey, ed25519.PublicKeySize)}} }}
	return g
}

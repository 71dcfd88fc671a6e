// Package executortest is an executor for tests, whole but for its process: a
// real journal, door, runner and catalog, and the real HTTP driver against a
// small API of things, behind a recorder that proves what was sent.
package executortest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"embed"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/http"
	"writ/connector/recorder"
	"writ/executor/internal/admit"
	"writ/executor/internal/backup"
	"writ/executor/internal/journal"
	"writ/executor/internal/run"
	"writ/ledger"
	"writ/redact"
	"writ/sys"
)

// Token is the secret of the system "things". It must show up nowhere.
const Token = "canary-not-a-real-token"

//go:embed catalog
var files embed.FS

// World is one executor, its gate's key, and one target.
type World struct {
	Sys      sys.Sys
	Gate     ed25519.PrivateKey
	Own      ed25519.PrivateKey
	Things   *Things
	Recorder *recorder.Recorder
	Catalog  *catalog.Catalog
	Dir      string
	Rules    admit.Rules
	Locked   bool // the vault
	Door     *admit.Door
	Runner   *run.Runner
	Journal  *journal.Journal
	Systems  run.Systems

	number atomic.Int64
	offset atomic.Int64
}

// Key returns the key that belongs to a name.
func Key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// New returns a world of its own for a test.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{Gate: Key("gate"), Own: Key("executor"), Things: &Things{Values: map[string]string{}}, Dir: t.TempDir()}
	w.Sys = sys.Real(slog.New(slog.DiscardHandler))
	clock := w.Sys.Now
	w.Sys.Now = func() time.Time { return clock().Add(time.Duration(w.offset.Load())) }
	w.Recorder = recorder.Wrap(w.Things, nil)
	server := httptest.NewServer(w.Recorder)
	t.Cleanup(func() {
		w.Recorder.Release()
		server.Close()
	})
	w.Catalog = Actions(t)
	w.Rules = admit.Rules{
		Executor: "site-a", Keys: writ.NewKeyring(w.Gate.Public().(ed25519.PublicKey)), Approvers: []string{"mara", "otto"},
		Systems: []writ.SystemInfo{{Name: "things", Kind: "http", Environment: "lab"}, {Name: "prod", Kind: "http", Environment: "production"},
			{Name: "box", Kind: "mock", Environment: "lab"}},
		Catalog: w.Catalog, ObservePerMinute: 1000,
	}
	w.Systems = open(t, server.URL)
	if err := os.Mkdir(w.Backups(), 0o700); err != nil {
		t.Fatal(err)
	}
	w.Restart(t)
	return w
}

// Actions loads the catalog of things.
func Actions(t testing.TB) *catalog.Catalog {
	t.Helper()
	sub, err := fs.Sub(files, "catalog")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Load(sub)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Restart puts a new executor in the place of the one that there is, as after
// the end of its process: only what is on disk is left.
func (w *World) Restart(t testing.TB) {
	t.Helper()
	if w.Journal != nil {
		if err := w.Journal.Close(); err != nil {
			t.Fatal(err)
		}
	}
	j, err := journal.Open(t.Context(), filepath.Join(w.Dir, "journal.db"), w.Sys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() }) // a second time after a restart
	audit, err := ledger.Open(filepath.Join(w.Dir, "audit"), ledger.Options{Name: "writ/executor/site-a", Key: w.Own, Now: w.Sys.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Keep(t.Context(), audit); err != nil {
		t.Fatal(err)
	}
	signers, err := ledger.ReadSigners(audit.Dir())
	if err != nil {
		t.Fatal(err)
	}
	w.Journal = j
	w.Door = admit.New(w.Sys, vault{w}, j, w.Rules)
	w.Runner = run.New(run.Parts{
		Sys: w.Sys, Executor: "site-a", Key: w.Own, Keys: signers.Keyring(), Door: w.Door, Journal: j, Backups: backup.New(w.Backups(), "site-a"),
		Systems: w.Systems, Redactor: func() *redact.Redactor { return redact.New(nil, Token) },
	})
}

type vault struct{ *World }

func (v vault) Locked() bool { return v.World.Locked }

// Backups is the directory of the backups.
func (w *World) Backups() string { return filepath.Join(w.Dir, "backups") }

// Later puts the clock forward.
func (w *World) Later(d time.Duration) { w.offset.Add(int64(d)) }

// Systems are open systems by name.
type Systems map[string]run.System

// Use returns a system.
func (s Systems) Use(name string) (run.System, func(), error) {
	system, ok := s[name]
	if !ok {
		return system, nil, os.ErrNotExist
	}
	return system, func() {}, nil
}

type secrets struct{}

func (secrets) Secret(string) (connector.Secret, error) { return connector.NewSecret(Token), nil }

func open(t testing.TB, url string) Systems {
	t.Helper()
	d := http.New(http.Generic())
	way, err := http.Transport("", http.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	s := connector.System{Name: "things", Environment: "lab", BaseURL: url, Options: map[string]string{"auth": "bearer"}}
	s.Transport = d.Authenticate(s, secrets{}, way)
	target, err := d.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
	system := run.System{Target: target, Verbs: d.Verbs()}
	return Systems{"things": system, "prod": system}
}

// Step returns a step of the system "things" as a gate would plan it, its
// fingerprint not yet known.
func (w *World) Step(t testing.TB, id, action string, params writ.Object) writ.Step {
	t.Helper()
	a, ok := w.Catalog.Action(action)
	if !ok {
		t.Fatalf("the catalog has no action %s", action)
	}
	return writ.Step{ID: id, Needs: []string{}, Action: action, ActionDigest: a.Digest, System: "things", Params: params,
		Resolved: writ.Object{}, Touches: []string{}, Class: a.Class, BackupRequired: a.Writes()}
}

// Writ returns a writ of the steps with nothing approved.
func (w *World) Writ(purpose writ.Purpose, steps ...writ.Step) *writ.Writ {
	now, n := w.Sys.Now(), w.number.Add(1)
	e := writ.Envelope{ChangeID: w.Sys.NewID("chg"), RequestDigest: writ.DigestBytes(nil), Environment: "lab",
		RequestedBy: writ.Principal{Name: "agent", Kind: writ.Agent}, Class: writ.ReadOnly, RiskLevel: writ.Medium, OnFailure: writ.Stop,
		PolicyDigest: writ.DigestBytes(nil), PreviewDigest: writ.DigestBytes(nil), Steps: steps}
	o := &writ.Writ{Format: writ.FormatWrit, Purpose: purpose, Run: w.Sys.NewID("run"), Executor: "site-a", Nonce: w.Sys.NewSecret(16), Epoch: 1,
		IssuedAt: writ.At(now), ExpiresAt: writ.At(now.Add(time.Minute)), Fences: []writ.Fence{}, Approvals: []writ.Approval{}, Envelope: e}
	var entities []string
	for i := range steps {
		o.Envelope.Class = o.Envelope.Class.Stricter(steps[i].Class)
		entities = append(entities, steps[i].Entities()...)
	}
	slices.Sort(entities)
	for _, entity := range slices.Compact(entities) {
		o.Fences = append(o.Fences, writ.Fence{Entity: entity, Number: n})
	}
	return o
}

// Approve puts an approval of the writ as it is now into it.
func (w *World) Approve(t testing.TB, o *writ.Writ, by string) {
	t.Helper()
	digest, err := o.Envelope.Digest()
	if err != nil {
		t.Fatal(err)
	}
	scope, err := writ.ScopeOf(&o.Envelope)
	if err != nil {
		t.Fatal(err)
	}
	o.Approvals = append(o.Approvals, writ.Approval{ID: w.Sys.NewID("appr"), ApprovedBy: writ.Principal{Name: by, Kind: writ.Human},
		ApprovedAt: o.IssuedAt, ExpiresAt: o.ExpiresAt, EnvelopeDigest: digest, ShownDigest: digest, RiskLevel: o.Envelope.RiskLevel, Scope: scope})
}

// Seal seals a writ with the gate's key.
func (w *World) Seal(t testing.TB, o *writ.Writ) []byte {
	t.Helper()
	sealed, err := writ.Seal(writ.KindWrit, o, w.Gate)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// Observe asks the executor about steps, and returns them as they would be
// approved, with the observations.
func (w *World) Observe(t testing.TB, steps ...writ.Step) ([]writ.Step, []writ.Observation) {
	t.Helper()
	a, err := w.Door.Admit(t.Context(), w.Seal(t, w.Writ(writ.Observe, steps...)))
	if err != nil {
		t.Fatalf("the observe writ was refused: %v", err)
	}
	sealed, err := w.Runner.Observe(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	steps = slices.Clone(steps)
	observations := make([]writ.Observation, len(steps))
	for i := range steps {
		o := &observations[i]
		if err := writ.Open(writ.KindObservation, sealed[i], w.ownKeys(), o); err != nil {
			t.Fatal(err)
		}
		steps[i].Entity, steps[i].Touches, steps[i].Resolved = o.Entity, o.Touches, o.Resolved
		steps[i].Fingerprint, steps[i].Rollback = o.Fingerprint, o.Rollback
	}
	return steps, observations
}

// Approved observes steps and returns a writ for them that may be executed.
func (w *World) Approved(t testing.TB, onFailure writ.OnFailure, steps ...writ.Step) *writ.Writ {
	t.Helper()
	observed, _ := w.Observe(t, steps...)
	o := w.Writ(writ.Execute, observed...)
	o.Envelope.OnFailure = onFailure
	w.Approve(t, o, "mara")
	return o
}

// Run executes a writ and returns its receipts.
func (w *World) Run(t testing.TB, o *writ.Writ) []writ.Receipt {
	t.Helper()
	a, err := w.Door.Admit(t.Context(), w.Seal(t, o))
	if err != nil {
		t.Fatalf("the writ was refused: %v", err)
	}
	if err := w.Runner.Execute(t.Context(), a); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	return w.Receipts(t, o.Run)
}

// Receipts returns the receipts of a run that has ended, signatures checked.
func (w *World) Receipts(t testing.TB, run string) []writ.Receipt {
	t.Helper()
	state, err := w.Journal.State(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !state.Finished {
		t.Error("the run has not ended")
	}
	receipts := make([]writ.Receipt, len(state.Receipts))
	for i, sealed := range state.Receipts {
		if err := writ.Open(writ.KindReceipt, sealed, w.ownKeys(), &receipts[i]); err != nil {
			t.Fatal(err)
		}
		if receipts[i].Sequence != int64(i+1) {
			t.Errorf("receipt %d has the sequence %d", i+1, receipts[i].Sequence)
		}
	}
	return receipts
}

func (w *World) ownKeys() writ.Keyring { return w.Runner.Keys }

// Rotate gives the executor another key, and restarts it.
func (w *World) Rotate(t testing.TB, name string) {
	t.Helper()
	if err := w.Journal.Rotate(t.Context(), Key(name)); err != nil {
		t.Fatal(err)
	}
	w.Own = Key(name)
	w.Restart(t)
}

// Rewind restarts the executor with a journal that ends after the given
// entries, as if the process had been killed right then.
func (w *World) Rewind(t testing.TB, o *writ.Writ, entries []journal.Entry) {
	t.Helper()
	if err := w.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	w.Journal = nil
	for _, name := range []string{"journal.db", "journal.db-wal", "journal.db-shm", "audit"} {
		if err := os.RemoveAll(filepath.Join(w.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.Later(-time.Hour) // the journal was there before the writ
	w.Restart(t)
	w.Later(time.Hour)
	sealed := w.Seal(t, o)
	if err := w.Journal.Admit(t.Context(), journal.Admission{Writ: o, Digest: writ.DigestBytes(sealed), Sealed: sealed}); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.Journal.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

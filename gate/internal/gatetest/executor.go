package gatetest

import (
	"context"
	"crypto/ed25519"
	"maps"
	"slices"
	"sync"
	"time"

	"writ"
	"writ/catalog"
	"writ/fault"
	"writ/gate/internal/model"
)

// Executor is a small executor in this process: it does everything it is asked,
// at once, to nothing.
type Executor struct {
	// Gate is whose writs it takes.
	Gate    writ.Keyring
	catalog *catalog.Catalog

	mu    sync.Mutex
	away  error
	found string
	runs  map[string][]model.Receipt
}

func newExecutor(gate ed25519.PublicKey, c *catalog.Catalog) *Executor {
	return &Executor{Gate: writ.NewKeyring(gate), catalog: c, found: "old <&> value", runs: map[string][]model.Receipt{}}
}

// Hello says what it is and reaches.
func (e *Executor) Hello(context.Context) (writ.Hello, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return writ.Hello{
		Executor: "local", GateKeyIDs: slices.Sorted(maps.Keys(e.Gate)), CatalogDigest: e.catalog.Digest(), Epoch: 1,
		Systems: []writ.SystemInfo{{Name: "mock", Kind: "mock", Environment: "lab"}},
	}, e.away
}

// Leave lets it answer nothing but an error, until that is nil.
func (e *Executor) Leave(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.away = err
}

// Finds lets it find a value wherever it looks.
func (e *Executor) Finds(value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found = value
}

// Observe finds an old value everywhere.
func (e *Executor) Observe(_ context.Context, sealed []byte) ([]writ.Observation, error) {
	var w writ.Writ
	if err := writ.Open(writ.KindWrit, sealed, e.Gate, &w); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []writ.Observation
	for _, s := range w.Envelope.Steps {
		way := &writ.Call{Action: s.Action, System: s.System, Params: s.Params}
		o := writ.Observation{
			Format: writ.FormatObservation, Executor: "local", Run: w.Run, Step: s.ID, WritDigest: writ.DigestBytes(sealed),
			ObservedAt: w.IssuedAt, Resolved: writ.Object{}, Entity: "mock/demo", Touches: []string{}, Fingerprint: "now",
			Fields: []writ.Field{{Name: "value", From: e.found, To: "new"}}, Known: true, Refusals: []string{}, Rollback: way,
		}
		if a, ok := e.catalog.Action(s.Action); ok && a.IsFacts() {
			if err := e.facts(a, &s, &o); err != nil {
				return nil, err
			}
		}
		all = append(all, o)
	}
	return all, nil
}

// facts tells of a value in memory.
func (e *Executor) facts(a *catalog.Action, s *writ.Step, o *writ.Observation) (err error) {
	seen := catalog.Seen{Found: true, Status: 200, Data: map[string]any{"value": e.found}}
	scope := &catalog.Scope{System: s.System, Params: s.Params, Observed: map[string]catalog.Seen{"item": seen}}
	if o.Entity, err = a.Entity(scope); err != nil {
		return err
	}
	o.Fingerprint, o.Fields, o.Rollback = string(writ.DigestBytes([]byte(e.found))), []writ.Field{}, nil
	o.Facts = &writ.Facts{Facts: []writ.Fact{}, Health: writ.Health{State: writ.HealthDegraded, Reasons: []string{e.found}}}
	for _, f := range a.Facts(scope) {
		o.Facts.Facts = append(o.Facts.Facts, writ.Fact{Name: f.Name, Type: f.Kind, Sensitivity: f.Sensitivity, Value: f.Text, Absent: f.Absent})
	}
	return nil
}

// Probe finds nothing in doubt.
func (e *Executor) Probe(context.Context, []byte) ([]model.Finding, error) {
	return nil, fault.New(fault.Refused, "Nothing here is in doubt.")
}

// Execute does everything at once.
func (e *Executor) Execute(_ context.Context, sealed []byte) error {
	var w writ.Writ
	if err := writ.Open(writ.KindWrit, sealed, e.Gate, &w); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, s := range w.Envelope.Steps {
		hash, err := s.InputHash()
		if err != nil {
			return err
		}
		e.runs[w.Run] = append(e.runs[w.Run], model.Receipt{Receipt: writ.Receipt{
			Format: writ.FormatReceipt, Executor: "local", Run: w.Run, ChangeID: w.Envelope.ChangeID, WritDigest: writ.DigestBytes(sealed),
			Sequence: int64(i + 1), Step: s.ID, Action: s.Action, System: s.System, Entity: s.Entity, InputHash: hash,
			Outcome: writ.Done, Changed: true, BackupStatus: writ.BackupVerified, BackupReference: "backup:local/" + w.Run + "/" + s.ID,
			Checks: []writ.Check{{Name: "mock_value_matches", Passed: true}}, Rollback: s.Rollback, RollbackReference: "rollback:" + w.Run,
			Sent: []writ.Sent{}, Outputs: writ.Object{}, StartedAt: w.IssuedAt, FinishedAt: w.IssuedAt,
		}, Sealed: []byte(`{}`)})
	}
	return nil
}

// Receipts returns what became of a run.
func (e *Executor) Receipts(_ context.Context, run string, _ writ.Time, after int64, _ time.Duration) ([]model.Receipt, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all, ok := e.runs[run]
	if !ok {
		return nil, false, fault.New(fault.NotFound, "There is no such run.")
	}
	return all[min(after, int64(len(all))):], true, nil
}

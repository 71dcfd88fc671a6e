package pipeline_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
)

// executor stands in for the other process. It checks what it is handed as far
// as the pipeline answers for it, changes nothing, and accounts for each step
// as it is told to. Its fields are set before the call that they are about.
type executor struct {
	t     *testing.T
	audit *audit
	keys  writ.Keyring

	mu       sync.Mutex
	news     chan struct{}
	away     error                                 // what every call answers; nil: it is there
	locked   bool                                  // the vault is locked
	peek     func(*writ.Observation)               // changes what is observed of a step
	hello    func(*writ.Hello)                     // changes what it says of itself
	found    func(*writ.Finding)                   // changes what is found of a step; without it, it happened
	blind    error                                 // what Probe answers; nil: it looks
	probes   int                                   // probe writs
	observe  func(context.Context) error           // is called before observing
	take     func(*writ.Writ) error                // is called before a writ is admitted; an error refuses it
	panics   string                                // Execute panics although the writ was admitted
	greet    func(context.Context) error           // is called by Hello
	deaf     error                                 // what Execute answers although the writ was admitted
	outcomes map[string]writ.Outcome               // by entity; the others are done
	unchange map[string]bool                       // by entity: it was done, and nothing had to be changed
	forge    func([]model.Receipt) []model.Receipt // changes the receipts that are handed out
	early    int                                   // how many receipts of a run are there while it is held
	hold     bool                                  // new runs go on only when they are let go
	reads    int                                   // observe writs
	writs    []*writ.Writ                          // execute writs that arrived, admitted or not
	runs     map[string]*execution
	halts    map[string]bool // runs of which nothing more is started
	nonces   map[string]bool
}

// execution is a run of the executor.
type execution struct {
	receipts []model.Receipt
	held     bool
}

const executorName = "ex1"

func newExecutor(t *testing.T, a *audit, key ed25519.PrivateKey) *executor {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		t.Fatal("the gate's key is no Ed25519 key")
	}
	return &executor{
		t: t, audit: a, keys: writ.NewKeyring(public), news: make(chan struct{}), outcomes: map[string]writ.Outcome{},
		unchange: map[string]bool{}, runs: map[string]*execution{}, halts: map[string]bool{}, nonces: map[string]bool{},
	}
}

// tell changes what the executor does from now on.
func (x *executor) tell(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
	close(x.news)
	x.news = make(chan struct{})
}

// letGo lets every run that is held go on.
func (x *executor) letGo() {
	x.tell(func() {
		x.hold = false
		for _, r := range x.runs {
			r.held = false
		}
	})
}

func (x *executor) sent() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.writs)
}

func (x *executor) Hello(ctx context.Context) (writ.Hello, error) {
	x.mu.Lock()
	before := x.greet
	x.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return writ.Hello{}, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	h := writ.Hello{Executor: executorName, Locked: x.locked, Systems: []writ.SystemInfo{
		{Name: "mock", Kind: "mock", Environment: "lab"},
		{Name: "live", Kind: "mock", Environment: "production"},
		{Name: "odd", Kind: "other", Environment: "lab"},
	}}
	if x.hello != nil {
		x.hello(&h)
	}
	return h, x.away
}

func (x *executor) Observe(ctx context.Context, sealed []byte) ([]writ.Observation, error) {
	x.mu.Lock()
	before := x.observe
	x.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.away != nil {
		return nil, x.away
	}
	w := x.open(sealed, writ.Observe)
	x.reads++
	var all []writ.Observation
	for i := range w.Envelope.Steps {
		s := &w.Envelope.Steps[i]
		o := writ.Observation{
			Format: writ.FormatObservation, Executor: executorName, Run: w.Run, Step: s.ID, Resolved: writ.Object{}, Touches: []string{},
			Entity: s.System + "/" + s.Params["name"].(string), Fingerprint: "f-" + s.ID, Known: true, Fields: []writ.Field{}, Refusals: []string{},
		}
		if s.Class != writ.ReadOnly && s.Action != "mock.burn" {
			o.Fields = []writ.Field{{Name: "value", From: "old", To: "new"}}
			o.Rollback = &writ.Call{Action: "mock.set", System: s.System, Params: writ.Object{"name": s.Params["name"], "value": "old"}}
		}
		if x.peek != nil {
			x.peek(&o)
		}
		all = append(all, o)
	}
	return all, nil
}

func (x *executor) Probe(_ context.Context, sealed []byte) ([]model.Finding, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.away != nil || x.blind != nil {
		return nil, errors.Join(x.away, x.blind)
	}
	w := x.open(sealed, writ.Probe)
	x.probes++
	var all []model.Finding
	for i := range w.Envelope.Steps {
		s := &w.Envelope.Steps[i]
		f := writ.Finding{
			Format: writ.FormatFinding, Executor: executorName, Run: w.Run, Step: s.ID, Entity: s.Entity, Verdict: writ.Happened, Reason: "verified",
			ObservedAt: writ.At(time.Now()), Checks: []writ.Check{{Name: "value_matches", Passed: true}}, Before: s.Fingerprint, Fingerprint: "now",
			Rollback: &writ.Call{Action: "mock.set", System: s.System, Params: writ.Object{"name": s.Params["name"], "value": "old"}},
		}
		if x.found != nil {
			x.found(&f)
		}
		all = append(all, model.Finding{Finding: f, Sealed: []byte("sealed " + s.ID)})
	}
	return all, nil
}

// open reads a writ and checks what the pipeline answers for.
func (x *executor) open(sealed []byte, purposes ...writ.Purpose) *writ.Writ {
	w := new(writ.Writ)
	if err := writ.Open(writ.KindWrit, sealed, x.keys, w); err != nil {
		x.t.Errorf("a writ does not open: %v", err)
		return w
	}
	if !slices.Contains(purposes, w.Purpose) || w.Executor != executorName || x.nonces[w.Nonce] {
		x.t.Errorf("the writ for %s of %s is for %s, or its nonce was used before", w.Executor, w.Run, w.Purpose)
	}
	x.nonces[w.Nonce] = true
	return w
}

func (x *executor) Execute(_ context.Context, sealed []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.away != nil {
		return x.away
	}
	w := x.open(sealed, writ.Execute, writ.Halt)
	if w.Purpose == writ.Halt {
		x.halt(w.Run)
		return nil
	}
	x.writs = append(x.writs, w)
	if claimed := x.audit.count(model.ChangeClaimed); claimed < len(x.writs) {
		x.t.Errorf("writ %d arrived when the audit file held %d claims", len(x.writs), claimed)
	}
	x.approved(w)
	if x.take != nil {
		if err := x.take(w); err != nil {
			return err
		}
	}
	if x.halts[w.Run] {
		return fault.New(fault.Refused, "This run was stopped before it began.").Because("halted")
	}
	x.runs[w.Run] = &execution{receipts: x.perform(w, writ.DigestBytes(sealed)), held: x.hold}
	if x.panics != "" {
		panic(x.panics)
	}
	return x.deaf
}

// halt ends a run that is held with the receipts that are there, and starts
// nothing more of it.
func (x *executor) halt(run string) {
	x.halts[run] = true
	if r := x.runs[run]; r != nil && r.held {
		for i := range r.receipts[x.early:] {
			left := &r.receipts[x.early+i]
			left.Outcome, left.Reason, left.Changed, left.Sent, left.Rollback = writ.NotExecuted, "halted", false, nil, nil
			left.Sealed, _ = json.Marshal(left.Receipt)
		}
		r.held = false
		close(x.news)
		x.news = make(chan struct{})
	}
}

// approved checks that a writ that changes something carries what was decided.
func (x *executor) approved(w *writ.Writ) {
	digest, err := w.Envelope.Digest()
	if err != nil {
		x.t.Error(err)
	}
	if w.Envelope.Class != writ.ReadOnly && len(w.Approvals) == 0 {
		x.t.Errorf("the writ of %s changes something and carries no approval", w.Envelope.ChangeID)
	}
	for _, a := range w.Approvals {
		if a.EnvelopeDigest != digest || a.ApprovedBy.Kind != writ.Human || a.ApprovedBy.Name == w.Envelope.RequestedBy.Name {
			x.t.Errorf("the approval %s is not one of a human for this envelope", a.ID)
		}
	}
	for i := range w.Envelope.Steps {
		for _, e := range w.Envelope.Steps[i].Entities() {
			fenced := slices.ContainsFunc(w.Fences, func(f writ.Fence) bool { return f.Entity == e && f.Number > 0 })
			if w.Envelope.Steps[i].Class != writ.ReadOnly && !fenced {
				x.t.Errorf("the writ has no fence for %s", e)
			}
		}
	}
}

// perform makes the receipts of a run, as the real executor would.
func (x *executor) perform(w *writ.Writ, digest writ.Digest) []model.Receipt {
	var all []model.Receipt
	account := func(s *writ.Step, o writ.Outcome) {
		r := writ.Receipt{
			Format: writ.FormatReceipt, Executor: executorName, Run: w.Run, ChangeID: w.Envelope.ChangeID, WritDigest: digest,
			Sequence: int64(len(all) + 1), Step: s.ID, Action: s.Action, System: s.System, Entity: s.Entity, Outcome: o,
			BackupStatus: writ.BackupNone, StartedAt: w.IssuedAt, FinishedAt: w.IssuedAt, Outputs: writ.Object{},
		}
		if undone := o == writ.RolledBack || o == writ.RollbackFailed; undone && s.Rollback != nil {
			r.Action, r.System = s.Rollback.Action, s.Rollback.System
		}
		if o != writ.Done {
			r.Reason, r.Detail = "told_so", "The executor was told so."
		}
		if s.Class != writ.ReadOnly && o != writ.NotExecuted {
			r.BackupStatus, r.BackupReference = writ.BackupVerified, "bak_"+s.ID
			r.Checks = []writ.Check{{Name: "backup_file_exists", Passed: true}}
			r.Changed = o != writ.Failed && !x.unchange[s.Entity]
			r.Sent = []writ.Sent{{At: w.IssuedAt, Verb: "put", Path: "/" + s.Entity}}
		}
		if r.Changed && (o == writ.Done || o == writ.Unverified) {
			r.Checks = append(r.Checks, writ.Check{Name: "value_matches", Passed: o == writ.Done})
			r.Rollback = s.Rollback
		}
		sealed, err := json.Marshal(r)
		if err != nil {
			x.t.Error(err)
		}
		all = append(all, model.Receipt{Receipt: r, Sealed: sealed})
	}
	var done []*writ.Step
	stopped := writ.Outcome("")
	for i := range w.Envelope.Steps {
		s := &w.Envelope.Steps[i]
		o := x.outcomes[s.Entity]
		switch {
		case stopped != "":
			o = writ.NotExecuted
		case o == "":
			o = writ.Done
			done = append(done, s)
		default:
			stopped = o
		}
		account(s, o)
	}
	if stopped != "" && stopped != writ.Unknown && w.Envelope.OnFailure == writ.Rollback {
		for _, s := range slices.Backward(done) {
			o := writ.RolledBack
			if told := x.outcomes["undo "+s.Entity]; told != "" {
				o = told
			}
			account(s, o)
		}
	}
	return all
}

func (x *executor) Receipts(ctx context.Context, id string, _ writ.Time, after int64, wait time.Duration) ([]model.Receipt, bool, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		news, receipts, finished, err := x.look(id, after)
		if err != nil || finished || len(receipts) > 0 {
			return receipts, finished, err
		}
		select {
		case <-news:
		case <-timer.C:
			return nil, false, nil
		case <-ctx.Done():
			return nil, false, fault.Wrap(fault.Unavailable, ctx.Err(), "The executor does not answer.")
		}
	}
}

func (x *executor) look(id string, after int64) (<-chan struct{}, []model.Receipt, bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.runs[id]
	switch {
	case x.away != nil:
		return nil, nil, false, x.away
	case r == nil:
		return nil, nil, false, fault.New(fault.NotFound, "The executor knows no run %s.", id)
	}
	all := r.receipts
	if r.held {
		all = all[:x.early]
	}
	receipts := slices.Clone(all[min(int(after), len(all)):])
	if x.forge != nil {
		receipts = x.forge(receipts)
	}
	return x.news, receipts, !r.held, nil
}

// gone is what a call fails with while the executor cannot be reached.
func gone() error { return fault.New(fault.Unavailable, "The executor is away.").Because("not_sent") }

// lost is what a call fails with that may have arrived.
func lost() error { return fault.New(fault.Unavailable, "The connection broke off.") }

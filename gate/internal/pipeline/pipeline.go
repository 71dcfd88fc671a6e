// Package pipeline takes a request to its receipt.
//
//	intake → plan → preview → assess → decide → approve → dispatch → settle
//
// A stage is a file of its own name. Each takes the product of the one before,
// so that none can be skipped, and ends in one durable transaction: the state
// it moves the change to together with the event that says so. Between two
// transactions nothing is remembered: after a crash, [Pipeline.Start] reads the
// states and goes on from there.
package pipeline

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"writ"
	"writ/catalog"
	"writ/failpoint"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/policy"
	"writ/gate/internal/store"
	"writ/sys"
)

// Pipeline is the heart of the gate. Its methods are safe for concurrent use.
type Pipeline struct {
	Config
	news   *news
	newest atomic.Pointer[account]
	told   atomic.Int64 // the newest time of an event, in milliseconds
	quota  quota

	mu      sync.Mutex // of stopped, and of starting tasks
	stopped bool
	stop    chan struct{}
	tasks   sync.WaitGroup
}

// Config is what a pipeline is made of.
type Config struct {
	Sys      sys.Sys
	Store    store.Store
	Audit    Audit
	Executor Executor
	Catalog  *catalog.Catalog
	Policy   *policy.Policy
	Key      ed25519.PrivateKey // signs writs
	Former   writ.Keyring       // with which the gate signed writs before
	Epoch    int64
	// FirstAnswer is how long Propose waits for the decision before it answers
	// with a change that is still being planned.
	FirstAnswer time.Duration
	// Settings is the digest of gate.yaml, which is told at the start.
	Settings writ.Digest
	// MaxOpen is how many changes of one requester may be open; 0 is any number.
	MaxOpen int
}

// Audit makes the audit file hold every event. While it cannot, nothing is executed.
type Audit interface {
	CatchUp(context.Context) error
}

// Executor is the way to the other process. What it returns is checked: the
// observations and receipts are signed by the executor.
type Executor interface {
	Hello(context.Context) (writ.Hello, error)
	// Observe sends an observe writ. Each observation is as sealed.
	Observe(ctx context.Context, sealed []byte) ([]writ.Observation, error)
	// Probe sends a probe writ: what became of an earlier run, one finding a step.
	Probe(ctx context.Context, sealed []byte) ([]model.Finding, error)
	// Execute hands an execute or a halt writ over. Its error is fault.Unavailable
	// with reason not_sent only if no byte of the writ left.
	Execute(ctx context.Context, sealed []byte) error
	// Receipts returns the receipts of a run, whose writ was issued at a time, after
	// a sequence, waiting up to wait for one, and whether the run is finished. A run
	// that the executor never admitted is fault.NotFound.
	Receipts(ctx context.Context, run string, issued writ.Time, after int64, wait time.Duration) (receipts []model.Receipt, finished bool, err error)
}

// New returns a pipeline. Call Start before anything else.
func New(c Config) *Pipeline { return &Pipeline{Config: c, news: newNews(), stop: make(chan struct{})} }

// Propose takes a request in and plans it. It answers when the change is
// decided, or after Config.FirstAnswer, whichever comes first; the planning
// goes on. A clientKey makes it idempotent: the same requester gets the same
// change for the same key. Without one the same request gets the same change
// until that has ended.
func (p *Pipeline) Propose(ctx context.Context, who model.Caller, r model.Request, clientKey string) (*model.Change, error) {
	r.RollbackOf = "" // what undoes another change gets its locks: only the gate says so
	return p.propose(ctx, who, r, clientKey)
}

func (p *Pipeline) propose(ctx context.Context, who model.Caller, r model.Request, clientKey string) (*model.Change, error) {
	requested, isNew, err := p.intake(ctx, who, r, clientKey)
	if err != nil {
		return nil, err
	}
	if isNew {
		failpoint.Reach(failpoint.ChangeTaken)
		p.background(func(ctx context.Context) { p.prepare(ctx, requested.ID) })
	}
	return p.wait(ctx, requested.ID, p.FirstAnswer, func(c *model.Change) bool {
		return c.State != model.Proposed && c.State != model.Planned
	})
}

// prepare takes a proposed change to its decision.
func (p *Pipeline) prepare(ctx context.Context, id string) {
	p.conclude(ctx, id, func() (*model.Change, error) {
		planned, err := p.plan(ctx, id)
		if err != nil {
			return nil, err
		}
		failpoint.Reach(failpoint.ChangePlanned)
		previewed, err := p.preview(ctx, planned)
		if err != nil {
			return nil, err
		}
		failpoint.Reach(failpoint.ChangePreviewed)
		return p.decide(ctx, p.assess(previewed))
	})
}

// conclude runs the stages up to the decision. They have no caller to answer:
// whatever goes wrong ends the change with its reason.
func (p *Pipeline) conclude(ctx context.Context, id string, stages func() (*model.Change, error)) {
	var decided *model.Change
	err := guarded(func() (err error) {
		decided, err = stages()
		return err
	})
	failpoint.Reach(failpoint.ChangeDecided)
	switch {
	case err != nil:
		p.giveUp(ctx, id, err)
	case decided.State == model.Approved: // policy lets it run alone
		p.perform(ctx, id)
	}
}

// Approve records one person's approval of exactly what they were shown. When
// enough people have approved, the change is carried out.
func (p *Pipeline) Approve(ctx context.Context, who model.Caller, id string, a Agreement) (*model.Change, error) {
	c, err := p.approve(ctx, who, id, a)
	failpoint.Reach(failpoint.ChangeApproved)
	if err == nil && c.State == model.Approved {
		p.background(func(ctx context.Context) { p.perform(ctx, id) })
	}
	return c, err
}

// Execute carries out an approved change that is not being carried out yet,
// because a lock was held or the executor was away. It fails with
// fault.ApprovalMissing, Expired or Spent where nothing may be carried out.
func (p *Pipeline) Execute(ctx context.Context, who model.Caller, id string) (*model.Change, error) {
	if err := p.executable(ctx, who, id); err != nil {
		return nil, err
	}
	err := p.begin(ctx, id)
	p.background(func(ctx context.Context) { p.settle(ctx, id) })
	if err != nil {
		return nil, err
	}
	return p.Change(ctx, who, id)
}

// perform carries out an approved change and sees it to its end. Whatever
// dispatch says, settle looks: a writ may have left all the same.
func (p *Pipeline) perform(ctx context.Context, id string) {
	if err := p.begin(ctx, id); err != nil {
		p.Sys.Log.Warn("a change was not carried out", "change", id, "error", err, "cause", errors.Unwrap(err))
	}
	p.settle(ctx, id)
}

// begin dispatches an approved change, or says at it what is in the way.
func (p *Pipeline) begin(ctx context.Context, id string) error {
	err := guarded(func() error { return p.dispatch(ctx, id) })
	if err != nil && ctx.Err() == nil { // whoever gave up waiting is in nobody's way
		p.heldUp(ctx, id, err)
	}
	return err
}

// guarded runs f and makes an error of its panic: that is one change's, and the
// others have nothing to do with it.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Wrap(fault.Internal, fmt.Errorf("panic: %v\n%s", r, debug.Stack()), "Something went wrong inside writ. The log of the gate has the cause.")
		}
	}()
	return f()
}

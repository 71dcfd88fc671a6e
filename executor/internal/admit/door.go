// Package admit is the executor's door. Everything that may be done is in a
// writ, and [Door.Admit] is the only way from a writ to an [Admitted], which is
// the only thing that package run takes. The door asks nobody: a writ is
// measured by the executor's own keys, catalog, systems, approvers and journal.
package admit

import (
	"context"
	"sync"
	"time"

	"writ"
	"writ/catalog"
	"writ/executor/internal/journal"
	"writ/failpoint"
	"writ/fault"
	"writ/sys"
)

// Rules is what a writ is measured by.
type Rules struct {
	Executor         string
	Keys             writ.Keyring // of gates
	Former           writ.Keyring // of gates of before, whose writs are settled and never taken
	Approvers        []string     // the people whose approvals count
	Systems          []writ.SystemInfo
	Catalog          *catalog.Catalog
	ObservePerMinute int
}

func (r *Rules) system(name string) (writ.SystemInfo, bool) {
	for _, s := range r.Systems {
		if s.Name == name {
			return s, true
		}
	}
	return writ.SystemInfo{}, false
}

// Vault tells whether the credentials can be used.
type Vault interface{ Locked() bool }

// Journal makes an admission durable, or refuses it.
type Journal interface {
	Admit(context.Context, journal.Admission) error
}

// Door admits writs. It is safe for concurrent use.
type Door struct {
	sys     sys.Sys
	vault   Vault
	journal Journal

	mu     sync.Mutex
	rules  Rules
	closed error             // why nothing is admitted any more
	busy   map[string]string // entity → run that writes to it
	window time.Time         // the minute that observes are counted in
	count  int
}

// New returns a door with rules.
func New(s sys.Sys, v Vault, j Journal, r Rules) *Door {
	return &Door{sys: s, vault: v, journal: j, rules: r, busy: map[string]string{}}
}

// Use puts other rules in force for writs that come from now on.
func (d *Door) Use(r Rules) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = r
}

// Rules returns the rules in force.
func (d *Door) Rules() Rules {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rules
}

// Close refuses every later writ with the error, and stops running ones before
// their next step. The first call counts.
func (d *Door) Close(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed == nil {
		d.closed = why
	}
}

// Closed returns why nothing is admitted any more, nil while the door is open.
func (d *Door) Closed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// Draining is what a door is closed with when the process is asked to end.
func Draining() error {
	return fault.New(fault.Unavailable, "The executor is stopping and takes no more work. Try again when it is back.").Because("draining")
}

// Admit checks a sealed writ and spends it. What it refuses has had no effect
// but, if everything else held, that the writ is spent.
func (d *Door) Admit(ctx context.Context, sealed []byte) (Admitted, error) {
	rules, now, moment := d.Rules(), d.sys.Now(), d.sys.Moment()
	w, err := rules.open(sealed, now)
	if err != nil || w.Purpose != writ.Halt { // what only stops something is always taken
		if closed := d.ready(); closed != nil {
			err = closed
		}
	}
	if err != nil {
		return Admitted{}, err
	}
	work, err := rules.measure(w, sealed)
	if err != nil {
		return Admitted{}, err
	}
	work.until = moment.Add(w.ExpiresAt.Sub(now))
	switch w.Purpose {
	case writ.Execute:
		err = rules.execute(work, now)
	case writ.Probe:
		err = work.bound()
	}
	if err == nil && w.Purpose != writ.Execute && w.Purpose != writ.Halt {
		err = d.limit(rules.ObservePerMinute)
	}
	if err == nil {
		work.release, err = d.claim(work)
	}
	if err != nil {
		return Admitted{}, err
	}
	failpoint.Reach(failpoint.AdmitMeasured)
	if err := d.journal.Admit(ctx, journal.Admission{Writ: w, Digest: work.digest, Sealed: sealed}); err != nil {
		work.release()
		return Admitted{}, err
	}
	failpoint.Reach(failpoint.AdmitSpent)
	return Admitted{work}, nil
}

// ready says why nothing can be admitted now.
func (d *Door) ready() error {
	if d.vault.Locked() {
		return fault.New(fault.Unavailable, "The vault of the executor is locked. Run: writ vault unlock").Because("vault_locked")
	}
	return d.Closed()
}

// Reopen makes of a stored writ, whose run was cut off by the end of the
// process, something that can be settled but never executed. Steps whose action
// is no longer what it was have no Action.
func (d *Door) Reopen(sealed []byte) (Admitted, error) {
	rules := d.Rules()
	w := new(writ.Writ)
	err := writ.Open(writ.KindWrit, sealed, rules.Keys, w)
	if fault.ReasonOf(err) == "unknown_key" {
		err = writ.Open(writ.KindWrit, sealed, rules.Former, w)
	}
	if err != nil {
		return Admitted{}, err
	}
	work := &work{writ: w, digest: writ.DigestBytes(sealed), rules: rules, release: func() {}, interrupted: true}
	for i := range w.Envelope.Steps {
		s, err := rules.step(w, &w.Envelope.Steps[i])
		if err != nil {
			s = Step{Plan: &w.Envelope.Steps[i]}
		}
		work.steps = append(work.steps, s)
	}
	return Admitted{work}, nil
}

// limit counts an observe writ against its minute.
func (d *Door) limit(perMinute int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.sys.Now(); now.Sub(d.window) >= time.Minute || now.Before(d.window) {
		d.window, d.count = now, 0
	}
	if d.count >= perMinute {
		return fault.New(fault.Exhausted, "The executor reads at most %d times a minute. Wait a minute.", perMinute).Because("observe_limit")
	}
	d.count++
	return nil
}

// claim takes every entity that the run writes to, or none.
func (d *Door) claim(w *work) (release func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed != nil && w.writ.Purpose != writ.Halt {
		return nil, d.closed
	}
	entities := w.written()
	for _, e := range entities {
		run, taken := d.busy[e]
		if taken && run == w.writ.Run && w.writ.Purpose == writ.Execute {
			return nil, fault.New(fault.Spent, "This writ is being used already.").Because("spent")
		}
		if taken {
			return nil, fault.New(fault.Conflict, "The run %s is writing to %s. Try again when it has ended.", run, e).Because("entity_busy")
		}
	}
	for _, e := range entities {
		d.busy[e] = w.writ.Run
	}
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, e := range entities {
			delete(d.busy, e)
		}
	}), nil
}

func refuse(reason, format string, args ...any) error {
	return fault.New(fault.Refused, format, args...).Because(reason)
}

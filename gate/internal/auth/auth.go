// Package auth knows who is calling: the principals of principals.yaml, each
// with the digests of the bearer tokens that stand for it. A token itself is
// shown once, when it is made, and is stored nowhere here.
package auth

import (
	"crypto/subtle"
	"os"
	"slices"
	"sync"
	"time"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/sys"
)

// The reasons why a token that was good once is not taken any more.
const (
	tokenExpired = "token_expired"
	tokenRevoked = "token_revoked"
)

// Principals is who may call. The file is read again when it changed, so that
// whatever is added, revoked or removed takes effect with the next call; while
// the file is not valid, nobody is let in. It is safe for concurrent use.
type Principals struct {
	sys  sys.Sys
	path string
	used *usage

	mu     sync.Mutex // of what follows
	seen   os.FileInfo
	list   []Principal
	err    error
	record Record
}

// Record makes an event durable.
type Record = func(model.EventType, writ.Object) error

// Open reads principals.yaml. Its error names all problems at once.
func Open(s sys.Sys, path string) (*Principals, error) {
	p := &Principals{sys: s, path: path, used: newUsage(path)}
	_, err := p.current()
	return p, err
}

// Follow records who may call, and from then on every change of that before it
// takes effect: while it cannot be recorded, nobody is let in.
func (p *Principals) Follow(record Record) error {
	list, err := p.current()
	if err != nil {
		return err
	}
	if err := record(model.PrincipalsLoaded, writ.Object{"principals": listed(list)}); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record = record
	return nil
}

// Authenticate returns who a token belongs to, or fault.Unauthenticated.
func (p *Principals) Authenticate(token string) (model.Caller, error) {
	list, err := p.current()
	if err != nil {
		return model.Caller{}, err
	}
	digest := []byte(api.TokenDigest(token))
	var who *Principal
	var found *Token
	for i := range list { // all of them, so that the time tells nothing
		for j := range list[i].Tokens {
			if subtle.ConstantTimeCompare(digest, []byte(list[i].Tokens[j].Digest)) == 1 {
				who, found = &list[i], &list[i].Tokens[j]
			}
		}
	}
	if found == nil {
		return model.Caller{}, fault.New(fault.Unauthenticated, "The token is not one of this gate. Make a new one: writ tokens add NAME").Because("unknown_token")
	}
	now := p.sys.Now()
	switch found.State(now) {
	case Revoked:
		return model.Caller{}, fault.New(fault.Unauthenticated, "The token %s of %s was revoked on %s. Make a new one: writ tokens add %s",
			found.ID(), who.user(), day(found.RevokedAt), who.Name).Because(tokenRevoked)
	case Expired:
		return model.Caller{}, fault.New(fault.Unauthenticated, "The token %s of %s ended on %s. Make a new one: writ tokens rotate %s",
			found.ID(), who.user(), day(found.ExpiresAt), who.Name).Because(tokenExpired)
	}
	p.used.note(found.ID(), now)
	return model.Caller{Principal: writ.Principal{Name: who.Name, Kind: who.Kind}, Roles: slices.Clone(who.Roles)}, nil
}

func day(t time.Time) string { return writ.At(t).String() }

// current returns the principals as they stand in the file now.
func (p *Principals) current() ([]Principal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(p.path)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The file of principals %s cannot be read, so nobody is let in.", p.path)
	}
	same := p.seen != nil && os.SameFile(info, p.seen) && info.ModTime().Equal(p.seen.ModTime()) && info.Size() == p.seen.Size()
	if same {
		return p.list, p.err
	}
	list, err := read(p.path)
	if err == nil {
		if err := p.tell(list); err != nil { // tried again with the next call
			return nil, fault.Wrap(fault.Unavailable, err, "That principals.yaml changed cannot be recorded, so nobody is let in.")
		}
		p.list = list
	}
	p.seen, p.err = info, err
	if err != nil {
		return nil, err
	}
	return list, nil
}

// tell records what a new list changes. The list that was valid last is kept
// while the file is not, to be compared with.
func (p *Principals) tell(list []Principal) error {
	if p.record == nil {
		return nil
	}
	changes := differences(p.list, list)
	if len(changes) == 0 {
		return nil
	}
	return p.record(model.PrincipalsChanged, writ.Object{"changes": changes})
}

// List returns all principals, in the order of the file.
func (p *Principals) List() ([]Principal, error) { return p.current() }

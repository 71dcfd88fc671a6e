package auth

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"writ"
	"writ/fault"
)

// UsedFile says when each token was used last. It lies beside principals.yaml,
// is only for people to look at, and may be a minute old or lost.
const UsedFile = "tokens-used.json"

// writeEvery is how often it is written at most.
const writeEvery = time.Minute

// usage is when each token was used last, by its id.
type usage struct {
	path  string
	fresh chan struct{} // holds one if something is not written yet

	mu sync.Mutex // of at
	at map[string]writ.Time
}

func newUsage(principals string) *usage {
	path := filepath.Join(filepath.Dir(principals), UsedFile)
	return &usage{path: path, fresh: make(chan struct{}, 1), at: LastUsed(principals)}
}

// LastUsed returns when tokens were used last, by their ids, as far as it was
// written down beside principals.yaml.
func LastUsed(principals string) map[string]writ.Time {
	at := map[string]writ.Time{}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(principals), UsedFile))
	if err != nil || json.Unmarshal(data, &at) != nil {
		return map[string]writ.Time{} // nothing depends on it
	}
	return at
}

// note costs a call no more than a lock.
func (u *usage) note(id string, now time.Time) {
	u.mu.Lock()
	u.at[id] = writ.At(now)
	u.mu.Unlock()
	select {
	case u.fresh <- struct{}{}:
	default:
	}
}

// KeepUsed writes down from time to time, and at last when ctx ends, when tokens
// were used.
func (p *Principals) KeepUsed(ctx context.Context) {
	for {
		select {
		case <-p.used.fresh:
			p.writeUsed()
		case <-ctx.Done():
			p.writeUsed()
			return
		}
		rest := time.NewTimer(writeEvery)
		select {
		case <-rest.C:
		case <-ctx.Done():
		}
		rest.Stop()
	}
}

func (p *Principals) writeUsed() {
	if err := p.used.write(p.ids()); err != nil {
		p.sys.Log.Warn("when tokens were used last was not written down", "error", err)
	}
}

// ids returns the ids of all tokens that there are.
func (p *Principals) ids() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]bool{}
	for i := range p.list {
		for j := range p.list[i].Tokens {
			all[p.list[i].Tokens[j].ID()] = true
		}
	}
	return all
}

// write replaces the file, without waiting for the disk. What is not known any
// more is forgotten.
func (u *usage) write(known map[string]bool) error {
	u.mu.Lock()
	for id := range u.at {
		if !known[id] {
			delete(u.at, id)
		}
	}
	data, err := json.Marshal(u.at)
	u.mu.Unlock()
	if err == nil {
		err = os.WriteFile(u.path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(u.path+".new", u.path)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, errors.Unwrap(err), "%s cannot be written.", u.path)
	}
	return nil
}

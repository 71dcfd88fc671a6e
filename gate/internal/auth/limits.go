package auth

import (
	"net"
	"sync"
	"time"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/sys"
)

// Rates is how much each principal may ask. Nobody's part is taken from another's.
type Rates struct {
	RequestsPerSecond  int64 `yaml:"requests_per_second"`
	ProposalsPerMinute int64 `yaml:"proposals_per_minute"`
}

// Whoever has no token is known by an address alone, and may try so often.
const (
	strangerRate  = 5  // a second
	strangerBurst = 20 // at once
	maxBuckets    = 1024
)

// Limits says who has asked too much. It is safe for concurrent use; nil sets no
// limit.
type Limits struct {
	now   func() time.Time
	rates Rates

	mu        sync.Mutex // of what follows
	requests  map[string]*bucket
	proposals map[string]*bucket
	strangers map[string]*bucket
}

// NewLimits returns limits that nobody has used yet.
func NewLimits(s sys.Sys, r Rates) *Limits {
	return &Limits{now: s.Now, rates: r, requests: map[string]*bucket{}, proposals: map[string]*bucket{}, strangers: map[string]*bucket{}}
}

// Request counts a call of somebody, and fails with fault.Exhausted if there were
// too many.
func (l *Limits) Request(who model.Caller) error {
	if l == nil {
		return nil
	}
	rate := float64(l.rates.RequestsPerSecond)
	if wait := l.take(l.requests, who.User(), rate, 2*rate); wait > 0 {
		return exhausted(wait, "requests_per_second", "%s asks more than %d times a second. Ask again in %s.", who.User(), l.rates.RequestsPerSecond, wait)
	}
	return nil
}

// Proposal counts a proposal of somebody, and fails with fault.Exhausted if there
// were too many.
func (l *Limits) Proposal(who model.Caller) error {
	if l == nil {
		return nil
	}
	burst := float64(l.rates.ProposalsPerMinute)
	if wait := l.take(l.proposals, who.User(), burst/60, burst); wait > 0 {
		return exhausted(wait, "proposals_per_minute", "%s proposes, or asks for facts, more than %d times a minute. Nothing was taken in. Ask again in %s.", who.User(), l.rates.ProposalsPerMinute, wait)
	}
	return nil
}

// Stranger counts a call of somebody at an address (host:port, or anything for a
// Unix socket) whose token was not taken. However many there are, those who hold
// a token are not kept waiting.
func (l *Limits) Stranger(address string) error {
	if l == nil {
		return nil
	}
	if wait := l.take(l.strangers, network(address), strangerRate, strangerBurst); wait > 0 {
		return exhausted(wait, "strangers", "Too many calls from there had no token that is taken. Ask again in %s.", wait)
	}
	return nil
}

func exhausted(wait time.Duration, reason, format string, args ...any) error {
	return fault.New(fault.Exhausted, format, args...).Because(reason).In(wait)
}

// network is what counts as one place: an IPv4 address, or the 64 bits of IPv6
// that one customer is given.
func network(address string) string {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	switch {
	case err != nil || ip == nil:
		return ""
	case ip.To4() != nil:
		return ip.String()
	}
	return ip.Mask(net.CIDRMask(64, 128)).String()
}

// bucket holds what somebody may still ask at once.
type bucket struct {
	left float64
	at   time.Time
}

// fill adds what has come since the last time, rate a second and burst at most.
func (b *bucket) fill(now time.Time, rate, burst float64) {
	b.left = min(burst, b.left+rate*max(0, now.Sub(b.at).Seconds()))
	b.at = now // a clock that was set back takes nothing away
}

// take takes one out of somebody's bucket, or returns how long to wait for it.
func (l *Limits) take(all map[string]*bucket, who string, rate, burst float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := all[who]
	if b == nil {
		if len(all) >= maxBuckets {
			for name, old := range all {
				if old.fill(now, rate, burst); old.left == burst {
					delete(all, name)
				}
			}
			if len(all) >= maxBuckets { // all are busy: the rest shares one
				if who = ""; all[who] != nil {
					b = all[who]
				}
			}
		}
		if b == nil {
			b = &bucket{left: burst, at: now}
			all[who] = b
		}
	}
	if b.fill(now, rate, burst); b.left >= 1 {
		b.left--
		return 0
	}
	wait := time.Duration((1 - b.left) / rate * float64(time.Second))
	return (wait + time.Second - 1).Truncate(time.Second)
}

package app

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	"writ"
	"writ/connector"
	"writ/connector/http"
	"writ/executor/internal/config"
	"writ/executor/internal/run"
	"writ/executor/internal/vault"
	"writ/fault"
	"writ/sys"
)

// systems keeps the configured systems open. It is where a secret meets a
// transport: the driver's Authenticate gets the secrets of its one system, and
// what leaves here is a way to the system that no longer shows them.
type systems struct {
	drivers []connector.Driver
	vault   *vault.Vault

	mu         sync.Mutex
	configured []config.System
	open       map[string]*opened
}

// opened is one open system. A stale one is closed by its last user.
type opened struct {
	system run.System
	config config.System
	users  int
	stale  bool
}

func newSystems(s sys.Sys, v *vault.Vault) *systems {
	return &systems{drivers: drivers(s), vault: v, open: map[string]*opened{}}
}

// configure makes configured the systems there are. It opens each, which sends
// nothing, and changes nothing if one cannot be opened. Runs that use a system
// as it was go on with it. With fresh, no system with secrets stays as it is: a
// session of its may rest on a secret that is no longer there.
func (s *systems) configure(configured []config.System, fresh bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]*opened{}
	var problems []string
	for _, c := range configured {
		if now := s.open[c.Name]; now != nil && reflect.DeepEqual(now.config, c) && !(fresh && len(c.Secrets) > 0) {
			next[c.Name] = now
			continue
		}
		system, err := s.dial(c)
		if err != nil {
			problems = append(problems, fault.TextOf(err))
			continue
		}
		next[c.Name] = &opened{system: system, config: c}
	}
	if len(problems) > 0 {
		for name, o := range next {
			if s.open[name] != o {
				problems = append(problems, o.leave()...)
			}
		}
		return fault.New(fault.Invalid, "%s", strings.Join(problems, "\n"))
	}
	for name, o := range s.open {
		if next[name] != o {
			o.leave()
		}
	}
	s.configured, s.open = configured, next
	return nil
}

// leave closes a system now, or when its last user is done.
func (o *opened) leave() []string {
	o.stale = true
	if o.users > 0 {
		return nil
	}
	if err := o.system.Target.Close(); err != nil {
		return []string{fault.TextOf(err)}
	}
	return nil
}

// Use returns a system that stays open until release is called.
func (s *systems) Use(name string) (run.System, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[name]
	if o == nil {
		return run.System{}, nil, fault.New(fault.Unavailable, "The system %s is not configured any more.", name).Because("unknown_system")
	}
	o.users++
	return o.system, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if o.users--; o.stale {
			o.leave()
		}
	}), nil
}

// infos is what a gate may know of the systems.
func (s *systems) infos() []writ.SystemInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	infos := make([]writ.SystemInfo, len(s.configured))
	for i, c := range s.configured {
		infos[i] = writ.SystemInfo{Name: c.Name, Kind: c.Kind, Environment: c.Environment}
	}
	return infos
}

// driver returns the driver of a kind.
func (s *systems) driver(kind string) (connector.Driver, error) {
	var kinds []string
	for _, d := range s.drivers {
		if d.Kind() == kind {
			return d, nil
		}
		kinds = append(kinds, d.Kind())
	}
	slices.Sort(kinds)
	return nil, fault.New(fault.Invalid, "There is no kind of system %q. There are: %s", kind, strings.Join(kinds, ", "))
}

// dial opens one system. Nothing is sent.
func (s *systems) dial(c config.System) (run.System, error) {
	d, err := s.driver(c.Kind)
	if err != nil {
		return run.System{}, err
	}
	system := connector.System{Name: c.Name, Environment: c.Environment, BaseURL: c.BaseURL, Endpoints: c.Endpoints, Options: c.Options}
	if slices.ContainsFunc(d.Needs(), func(n connector.Need) bool { return n.Name == http.BaseURL }) {
		way, err1 := http.Transport(c.TLSPin, http.Timeouts{})
		plain, err2 := http.Transport("", http.Timeouts{})
		if err := errors.Join(err1, err2); err != nil {
			return run.System{}, fault.Wrap(fault.Invalid, err, "The system %s cannot be reached as it is configured: %s", c.Name, fault.TextOf(err))
		}
		system.Transport, system.Plain = d.Authenticate(system, s.vault.Secrets(c.Secrets), way), plain
	}
	target, err := d.Open(system)
	if err != nil {
		return run.System{}, err
	}
	return run.System{Target: target, Verbs: d.Verbs()}, nil
}

// Package http is the driver for REST APIs, and the base of the drivers for
// systems whose REST API has habits of its own.
//
// Three things are kept true here for all of them, because net/http alone does
// not: a write is attempted at most once; an error says whether bytes may have
// left; and what a target answers is bounded in size and time, and reaches
// nobody but the caller. Transport is the way out, Dialect is what differs from
// one system to the next, New makes a driver of it.
package http

import (
	"context"
	"net/http"
	"slices"

	"writ/connector"
	"writ/fault"
)

// BaseURL is the name of the first need of every HTTP kind. Its value belongs
// in System.BaseURL, not in System.Options.
const BaseURL = "base_url"

// Dialect is what one kind of system adds to plain HTTP. Kind, Authenticate and
// Check must be set.
type Dialect struct {
	Kind string
	// Example is an address as people know it, and Path what they need not add:
	// where the API begins on such a system. Both may be empty.
	Example, Path string
	// Needs are asked for after BaseURL. Options that are not listed are refused.
	Needs []connector.Need
	// Valid says what is wrong with the options. Nil takes every value.
	Valid func(options map[string]string) error
	// Authenticate is the driver's Authenticate. It sends the request it was given
	// at most once: no second try after a refused login. What it sends for itself
	// first, a login, fails as LoginFailed.
	Authenticate func(connector.System, connector.Secrets, http.RoundTripper) http.RoundTripper
	// Classify says what an answer means; nil is success. For a read the outcome
	// of the error does not matter. A nil Classify is the function Classify.
	Classify func(Answer) *connector.Error
	// Absent recognises "there is no such thing". Nil is status 404.
	Absent func(Answer) bool
	// Inner takes off what the API wraps around the data of every answer. Nil takes
	// off nothing.
	Inner func(data any) any
	// Check is the target's Check. t is the target itself.
	Check func(ctx context.Context, s connector.System, t connector.Target) ([]string, error)
}

// New returns the driver of a dialect.
func New(d Dialect) connector.Driver {
	if d.Classify == nil {
		d.Classify = Classify
	}
	if d.Absent == nil {
		d.Absent = func(a Answer) bool { return a.Status == http.StatusNotFound }
	}
	return driver{d}
}

type driver struct{ dialect Dialect }

func (d driver) Kind() string { return d.dialect.Kind }

func (d driver) Needs() []connector.Need {
	example := d.dialect.Example
	if example == "" {
		example = "https://host.example.test:8443/api"
	}
	return append([]connector.Need{
		{Name: BaseURL, Prompt: "Address, e.g. " + example, Path: d.dialect.Path},
	}, d.dialect.Needs...)
}

func (driver) Verbs() map[string]bool {
	return map[string]bool{"get": false, "post": true, "put": true, "patch": true, "delete": true}
}

func (d driver) Authenticate(s connector.System, secrets connector.Secrets, next http.RoundTripper) http.RoundTripper {
	return d.dialect.Authenticate(s, secrets, next)
}

func (d driver) Open(s connector.System) (connector.Target, error) {
	base, err := parseAddress(s.BaseURL)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The base_url of system %q is not an http or https address "+
			"without user, query and fragment; correct it in executor.yaml.", s.Name)
	}
	ends := map[string]address{}
	for name, text := range s.Endpoints {
		if ends[name], err = parseAddress(text); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "The endpoint %q of system %q is not an http or https address "+
				"without user, query and fragment; correct it in executor.yaml.", name, s.Name)
		}
	}
	for name := range s.Options {
		if !slices.ContainsFunc(d.dialect.Needs, func(n connector.Need) bool { return n.Name == name && !n.Secret && !n.Endpoint }) {
			return nil, fault.New(fault.Invalid, "System %q has an option %q that kind %s does not know; "+
				"take it out of executor.yaml.", s.Name, name, d.dialect.Kind)
		}
	}
	if d.dialect.Valid != nil {
		if err := d.dialect.Valid(s.Options); err != nil {
			return nil, err
		}
	}
	if s.Transport == nil || len(ends) > 0 && s.Plain == nil {
		return nil, fault.New(fault.Internal, "System %q was opened without a transport.", s.Name)
	}
	return &target{dialect: d.dialect, system: s, base: base, endpoints: ends}, nil
}

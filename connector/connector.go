// Package connector is the contract between the executor and the systems it acts on.
//
// A driver holds what one kind of system is really like: its verbs, its error
// texts, and what an error means for the outcome. It is handed an authenticated
// transport and never a secret: the executor builds that transport from the
// driver's Authenticate and the secrets of its vault. Every driver passes the
// suite in connectortest, against the fake that lies beside it.
package connector

import (
	"context"
	"fmt"
	"net/http"

	"writ"
	"writ/catalog"
)

// Driver knows one kind of system. Its methods have no side effects except
// Open, which may open files but sends nothing.
type Driver interface {
	// Kind is the word in an action's "system:" and in executor.yaml, e.g. "proxmox".
	Kind() string
	// Needs lists what a system of this kind is configured with, in the order
	// in which "writ systems add" asks.
	Needs() []Need
	// Verbs maps each verb to whether it writes. A verb that is not listed does not exist.
	Verbs() map[string]bool
	// Authenticate returns a transport that adds the system's credentials to each
	// request and then calls next. The system's transports are not set yet. A
	// secret that is missing is an *Error, NotExecuted, of the first request.
	// Kinds without HTTP return nil.
	Authenticate(system System, secrets Secrets, next http.RoundTripper) http.RoundTripper
	// Open returns the way to one system. It fails on options that are not valid.
	Open(System) (Target, error)
}

// Target is an open, authenticated way to one system. It is safe for
// concurrent use.
type Target interface {
	// Do makes one call. A write is attempted at most once, whatever happens.
	// A failure is an *Error, which says what is known of the outcome.
	// An HTTP endpoint named by call.At can only be read, and whatever status it
	// answers is in Seen.
	Do(ctx context.Context, call catalog.Call) (catalog.Seen, error)
	// Check reads something harmless and reports, in sentences, what is wrong
	// with the system as configured, a missing privilege included. Nil is fine.
	Check(ctx context.Context) ([]string, error)
	Close() error
}

// Need is one thing a system is configured with.
type Need struct {
	Name    string // the key in executor.yaml, or the name of the secret
	Prompt  string // a question for people
	Default string
	Secret  bool // goes into the vault; asked without echo
	Option  bool // may stay empty
	// Path is added to an address that is given without one.
	Path string
	// Endpoint says that the value is a further address of the system, which
	// calls name with "at", and not an option.
	Endpoint bool
}

// System is one configured system as a driver sees it: no secret in it.
type System struct {
	Name        string
	Environment string
	BaseURL     string            // "" for kinds without HTTP
	Endpoints   map[string]string // further base URLs, called without credentials
	Options     map[string]string // by Need.Name
	Transport   http.RoundTripper // authenticated and pinned; nil for kinds without HTTP
	Plain       http.RoundTripper // for Endpoints: no credentials, no pin
}

// Secrets hands out the secrets of one system, by Need.Name, to Authenticate.
type Secrets interface {
	Secret(name string) (Secret, error)
}

// Secret is a value that does not print. It is kept behind a pointer because
// package fmt prints an unexported field of another struct without asking Format.
type Secret struct{ value *string }

// NewSecret returns a secret with the value.
func NewSecret(value string) Secret { return Secret{&value} }

// Reveal returns the value. Only Authenticate and the vault call it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Format keeps every verb of package fmt from printing the value.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// MarshalText keeps encoders from writing the value.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// Error is what a driver returns. Outcome is about the call that failed:
// NotExecuted (nothing reached the target, or it refused before any effect),
// Failed (the target says that it did nothing in the end) or Unknown. A read
// has no effect, so a failed one is always NotExecuted.
type Error struct {
	Outcome writ.Outcome
	Reason  string // snake_case, e.g. connect_failed, permission_denied, locked, already_exists, conflict
	Status  int    // the target's status; 0 if there was none
	Text    string // a sentence that may quote the target; the caller redacts it
	Cause   error  // for the log
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf returns an Error with a formatted sentence.
func Errorf(outcome writ.Outcome, reason string, status int, format string, args ...any) *Error {
	return &Error{Outcome: outcome, Reason: reason, Status: status, Text: fmt.Sprintf(format, args...)}
}

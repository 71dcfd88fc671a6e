package http

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/fault"
)

// Generic is the dialect of a REST API nobody wrote a driver for. How to
// authenticate is an option:
//
//	auth: none    nothing
//	auth: bearer  secret token, as "Authorization: Bearer …"
//	auth: basic   secrets username and password
//	auth: header  secret token, as the value of the header named by the option header
func Generic() Dialect {
	return Dialect{
		Kind: "http",
		Needs: []connector.Need{
			{Name: "auth", Prompt: "How to authenticate: none, bearer, basic or header", Default: "bearer"},
			{Name: "header", Prompt: "Name of the header, for header", Option: true},
			{Name: "check", Prompt: "Path of something harmless to read", Default: "/"},
			{Name: "token", Prompt: "Token, for bearer and header", Secret: true, Option: true},
			{Name: "username", Prompt: "User name, for basic", Secret: true, Option: true},
			{Name: "password", Prompt: "Password, for basic", Secret: true, Option: true},
		},
		Valid:        validGeneric,
		Authenticate: authenticateGeneric,
		Check:        checkGeneric,
	}
}

func validGeneric(options map[string]string) error {
	switch auth := options["auth"]; auth {
	case "none", "bearer", "basic":
		if options["header"] != "" {
			return fault.New(fault.Invalid, "Option header goes with auth: header, not with auth: %s; take one of them out.", auth)
		}
	case "header":
		const token = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
		if h := options["header"]; h == "" || strings.Trim(h, token) != "" {
			return fault.New(fault.Invalid, "auth: header needs the option header, the name of an HTTP header.")
		}
	default:
		return fault.New(fault.Invalid, "Option auth is %q; use none, bearer, basic or header.", auth)
	}
	return nil
}

// RoundTripper is a function that is an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

func authenticateGeneric(s connector.System, secrets connector.Secrets, next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(q *http.Request) (*http.Response, error) {
		q = q.Clone(q.Context()) // a RoundTripper leaves the request as it was
		var missing error
		secret := func(name string) string {
			value, err := secrets.Secret(name)
			missing = errors.Join(missing, err)
			return value.Reveal()
		}
		switch s.Options["auth"] {
		case "bearer":
			q.Header.Set("Authorization", "Bearer "+secret("token"))
		case "basic":
			q.SetBasicAuth(secret("username"), secret("password"))
		case "header":
			q.Header.Set(s.Options["header"], secret("token"))
		}
		if missing != nil {
			return nil, &connector.Error{Outcome: writ.NotExecuted, Reason: "secret_missing", Cause: missing,
				Text: "A secret of the system is not in the vault, or the vault is locked; nothing was sent."}
		}
		return next.RoundTrip(q)
	})
}

func checkGeneric(ctx context.Context, s connector.System, t connector.Target) ([]string, error) {
	path := s.Options["check"]
	_, err := t.Do(ctx, catalog.Call{Verb: "get", Path: path})
	refused, ok := errors.AsType[*connector.Error](err)
	switch {
	case err == nil:
		return nil, nil
	case ok && refused.Status == http.StatusUnauthorized:
		return []string{"The system does not know the credential; give it one that is valid."}, nil
	case ok && refused.Status == http.StatusForbidden:
		return []string{"The credential lacks the privilege to read " + Quote(path) + "; grant it, or set the option check to a path it may read."}, nil
	}
	return nil, err
}

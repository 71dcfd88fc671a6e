package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/gate/internal/model"
)

// Principal is one entry of principals.yaml.
type Principal struct {
	Name   string             `yaml:"name"`
	Kind   writ.PrincipalKind `yaml:"kind"`
	Roles  []model.Role       `yaml:"roles,flow"`
	Tokens []Token            `yaml:"tokens"`
	// Digest is of a token that never ends, as the file had it when there was one
	// a principal. It is read as one of Tokens, and written as that.
	Digest string `yaml:"token_sha256,omitempty"`
}

func (p *Principal) user() string { return string(p.Kind) + ":" + p.Name }

// Token is what principals.yaml keeps of a token.
type Token struct {
	Digest    string    `yaml:"sha256"` // of the token, 64 hexadecimal digits
	Label     string    `yaml:"label,omitempty"`
	CreatedAt time.Time `yaml:"created_at,omitempty"`
	ExpiresAt time.Time `yaml:"expires_at,omitempty"` // the zero time: never
	RevokedAt time.Time `yaml:"revoked_at,omitempty"` // the zero time: not revoked
}

// State is whether a token is taken.
type State string

// The states of a token. One that is revoked or expired is never active again.
const (
	Active  State = "active"
	Expired State = "expired"
	Revoked State = "revoked"
)

// State returns whether the token is taken now.
func (t *Token) State(now time.Time) State {
	switch {
	case !t.RevokedAt.IsZero():
		return Revoked
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return Expired
	}
	return Active
}

// ID names a token without telling it.
func (t *Token) ID() string { return api.TokenID(t.Digest) }

func read(path string) ([]Principal, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The file of principals %s cannot be read, so nobody is let in.", path)
	}
	var list []Principal
	if err := yaml.Load(data, &list, yaml.WithKnownFields()); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s is not a list of principals, so nobody is let in: %v", path, err)
	}
	for i := range list {
		if p := &list[i]; p.Digest != "" {
			p.Tokens, p.Digest = append([]Token{{Digest: p.Digest}}, p.Tokens...), ""
		}
	}
	if problems := check(list); len(problems) > 0 {
		return nil, fault.New(fault.Unavailable, "%s is not valid, so nobody is let in:\n%s", path, strings.Join(problems, "\n"))
	}
	return list, nil
}

var (
	nameForm   = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,62}$`)
	digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
	labelForm  = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9 ._@/-]{0,63})?$`)
)

// check returns every problem of a list.
func check(list []Principal) []string {
	var problems []string
	names, tokens := map[string]bool{}, map[string]bool{}
	for i, p := range list {
		wrong := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("[%d] %s: ", i, p.Name)+fmt.Sprintf(format, args...))
		}
		if !nameForm.MatchString(p.Name) {
			wrong("a name is a lower-case letter, then up to 62 of a-z 0-9 . _ -")
		}
		if names[p.Name] || p.Name == model.Writ {
			wrong("the name is taken")
		}
		names[p.Name] = true
		if len(p.Tokens) == 0 {
			wrong("there is no token")
		}
		for _, t := range p.Tokens {
			if !digestForm.MatchString(t.Digest) {
				wrong("sha256 of a token is 64 hexadecimal digits in lower case")
			} else if tokens[t.ID()] {
				wrong("the token %s stands twice, or is somebody else's as well", t.ID())
			}
			if !labelForm.MatchString(t.Label) {
				wrong("a label has up to 64 letters, digits, blanks and . _ @ / -")
			}
			tokens[t.ID()] = true
		}
		if p.Kind != writ.Agent && p.Kind != writ.Human {
			wrong("kind is agent or human, not %q", p.Kind)
		}
		if len(p.Roles) == 0 {
			wrong("there is no role, one of %v", model.Roles())
		}
		for _, r := range p.Roles {
			switch {
			case !slices.Contains(model.Roles(), r):
				wrong("%q is no role, one of %v", r, model.Roles())
			case p.Kind != writ.Human && (r == model.Approver || r == model.Admin):
				wrong("only a human may be %s", r)
			}
		}
	}
	return problems
}

// edit changes the file in one move, with nobody else changing it meanwhile. It
// is made if it does not exist, and keeps no comments.
func edit(path string, change func([]Principal) ([]Principal, error)) (err error) {
	fail := func(err error) error { return fault.Wrap(fault.Unavailable, err, "%s cannot be written.", path) }
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.Wrap(fault.Conflict, err, "Somebody else changes %s right now. If nobody does, a command was killed: remove %s", path, next)
	}
	if err != nil {
		return fail(err)
	}
	defer func() {
		if closed := f.Close(); err != nil || closed != nil {
			err = errors.Join(err, closed, os.Remove(next))
		}
	}()
	var list []Principal
	if _, err := os.Stat(path); err == nil {
		if list, err = read(path); err != nil {
			return err
		}
	}
	if list, err = change(list); err != nil {
		return err
	}
	if problems := check(list); len(problems) > 0 {
		return fault.New(fault.Invalid, "Nothing was changed: %s", strings.Join(problems, "; "))
	}
	data, err := yaml.Dump(list)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "The principals cannot be written as YAML.")
	}
	if _, err := f.Write(data); err != nil {
		return fail(err)
	}
	if err := f.Sync(); err != nil {
		return fail(err)
	}
	if err := os.Rename(next, path); err != nil {
		return fail(err)
	}
	return nil
}

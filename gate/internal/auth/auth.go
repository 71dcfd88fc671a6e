// Package auth knows who is calling: the principals of principals.yaml, each
// with the digest of one bearer token. A token itself is shown once, when it is
// made, and is stored nowhere here.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/sys"
)

// Principal is one entry of principals.yaml.
type Principal struct {
	Name   string             `yaml:"name"`
	Kind   writ.PrincipalKind `yaml:"kind"`
	Roles  []model.Role       `yaml:"roles,flow"`
	Digest string             `yaml:"token_sha256"` // of the token, 64 hexadecimal digits
}

// Principals is who may call. The file is read again when it changed, so that
// adding or removing somebody takes effect with the next call; while the file
// is not valid, nobody is let in. It is safe for concurrent use.
type Principals struct {
	path string

	mu   sync.Mutex
	seen os.FileInfo
	list []Principal
	err  error
}

// Open reads principals.yaml. Its error names all problems at once.
func Open(path string) (*Principals, error) {
	p := &Principals{path: path}
	_, err := p.current()
	return p, err
}

// Authenticate returns who a token belongs to, or fault.Unauthenticated.
func (p *Principals) Authenticate(token string) (model.Caller, error) {
	list, err := p.current()
	if err != nil {
		return model.Caller{}, err
	}
	digest := []byte(digestOf(token))
	found := -1
	for i := range list { // all of them, so that the time tells nothing
		if subtle.ConstantTimeCompare(digest, []byte(list[i].Digest)) == 1 {
			found = i
		}
	}
	if found < 0 {
		return model.Caller{}, fault.New(fault.Unauthenticated, "The token is not one of this gate. Make a new one: writ principals add NAME").Because("unknown_token")
	}
	who := list[found]
	return model.Caller{Principal: writ.Principal{Name: who.Name, Kind: who.Kind}, Roles: slices.Clone(who.Roles)}, nil
}

// current returns the principals as they stand in the file now.
func (p *Principals) current() ([]Principal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(p.path)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The file of principals %s cannot be read, so nobody is let in.", p.path)
	}
	same := p.seen != nil && os.SameFile(info, p.seen) && info.ModTime().Equal(p.seen.ModTime()) && info.Size() == p.seen.Size()
	if !same {
		p.list, p.err = read(p.path)
		p.seen = info
	}
	return p.list, p.err
}

func read(path string) ([]Principal, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The file of principals %s cannot be read, so nobody is let in.", path)
	}
	var list []Principal
	if err := yaml.Load(data, &list, yaml.WithKnownFields()); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s is not a list of principals, so nobody is let in: %v", path, err)
	}
	if problems := check(list); len(problems) > 0 {
		return nil, fault.New(fault.Unavailable, "%s is not valid, so nobody is let in:\n%s", path, strings.Join(problems, "\n"))
	}
	return list, nil
}

var (
	nameForm   = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,62}$`)
	digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
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
		if !digestForm.MatchString(p.Digest) {
			wrong("token_sha256 is 64 hexadecimal digits in lower case")
		} else if tokens[p.Digest] {
			wrong("the token is somebody else's as well")
		}
		names[p.Name], tokens[p.Digest] = true, true
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

// Add adds a principal to principals.yaml, which is made if it does not exist,
// and returns the new token. The file keeps no comments.
func Add(s sys.Sys, path string, p Principal) (token string, err error) {
	var list []Principal
	if _, err := os.Stat(path); err == nil {
		if list, err = read(path); err != nil {
			return "", err
		}
	}
	token = fmt.Sprintf("writ_%s_%s", p.Kind, s.NewSecret(32))
	p.Digest = digestOf(token)
	list = append(list, p)
	if problems := check(list); len(problems) > 0 {
		return "", fault.New(fault.Invalid, "%s was not added: %s", p.Name, strings.Join(problems, "; "))
	}
	return token, write(path, list)
}

// write replaces the file in one move.
func write(path string, list []Principal) error {
	data, err := yaml.Dump(list)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "The principals cannot be written as YAML.")
	}
	fail := func(err error) error {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be written.", path)
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fail(err)
	}
	defer os.Remove(path + ".new")
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

func digestOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

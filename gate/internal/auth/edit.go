package auth

import (
	"fmt"
	"slices"
	"time"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/sys"
)

// How long a new token is taken, if nobody says: an agent's lies in more places
// than a person's.
const (
	AgentTerm = 90 * 24 * time.Hour
	HumanTerm = 365 * 24 * time.Hour
)

// Never is the term of a token that does not end by itself.
const Never = time.Duration(-1)

// maxDead is how many tokens that are not taken any more are kept of a principal,
// so that whoever still uses one is told why, and maxTokens how many there may be.
const (
	maxDead   = 8
	maxTokens = 32
)

// New is what a new token is.
type New struct {
	Label string
	Term  time.Duration // 0: as long as the kind of the principal says
}

// Made is a token that was made. Only here it can be read.
type Made struct {
	Token     string
	ID        string
	ExpiresAt time.Time
}

// Add adds a principal with its first token.
func Add(s sys.Sys, path string, p Principal, n New) (made Made, err error) {
	return made, edit(path, func(list []Principal) ([]Principal, error) {
		if slices.ContainsFunc(list, func(other Principal) bool { return other.Name == p.Name }) {
			return nil, fault.New(fault.Invalid, "There is a principal %s already. Give it another token: writ tokens add %s", p.Name, p.Name)
		}
		var t Token
		t, made = n.token(s, p.Kind)
		p.Tokens = []Token{t}
		return append(list, p), nil
	})
}

// AddToken gives a principal another token. Those it has stay as they are.
func AddToken(s sys.Sys, path, name string, n New) (made Made, err error) {
	return made, edit(path, func(list []Principal) ([]Principal, error) {
		p, err := find(list, name)
		if err != nil {
			return nil, err
		}
		now := s.Now()
		p.Tokens = withoutOldest(p.Tokens, now)
		if len(p.Tokens) >= maxTokens {
			return nil, fault.New(fault.Exhausted, "%s has %d tokens. Revoke one that is not used: writ tokens list", name, len(p.Tokens))
		}
		var t Token
		t, made = n.token(s, p.Kind)
		p.Tokens = append(p.Tokens, t)
		return list, nil
	})
}

// Revoke ends a token now and for ever, and returns whose it was.
func Revoke(s sys.Sys, path, id string) (name string, err error) {
	return name, edit(path, func(list []Principal) ([]Principal, error) {
		for i := range list {
			for j := range list[i].Tokens {
				if t := &list[i].Tokens[j]; t.ID() == id {
					name = list[i].Name
					if t.RevokedAt.IsZero() {
						t.RevokedAt = s.Now()
					}
					return list, nil
				}
			}
		}
		return nil, fault.New(fault.NotFound, "There is no token %.40q. See which there are: writ tokens list", id)
	})
}

// Remove takes a principal out of the file, with all its tokens, and returns it.
func Remove(path, name string) (gone Principal, err error) {
	return gone, edit(path, func(list []Principal) ([]Principal, error) {
		p, err := find(list, name)
		if err != nil {
			return nil, err
		}
		gone = *p
		return slices.DeleteFunc(list, func(p Principal) bool { return p.Name == name }), nil
	})
}

func find(list []Principal, name string) (*Principal, error) {
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
	}
	return nil, fault.New(fault.NotFound, "There is no principal %.80q. See who there is: writ principals list", name)
}

// token makes a token and what is kept of it.
func (n New) token(s sys.Sys, kind writ.PrincipalKind) (Token, Made) {
	term := n.Term
	if term == 0 {
		term = HumanTerm
		if kind == writ.Agent {
			term = AgentTerm
		}
	}
	text := fmt.Sprintf("writ_%s_%s", kind, s.NewSecret(32))
	t := Token{Digest: api.TokenDigest(text), Label: n.Label, CreatedAt: s.Now()}
	if term != Never {
		t.ExpiresAt = t.CreatedAt.Add(term)
	}
	return t, Made{Token: text, ID: t.ID(), ExpiresAt: t.ExpiresAt}
}

// withoutOldest drops the oldest of the tokens that are not taken any more, until
// there are few.
func withoutOldest(tokens []Token, now time.Time) []Token {
	dead := 0
	for i := range tokens {
		if tokens[i].State(now) != Active {
			dead++
		}
	}
	return slices.DeleteFunc(tokens, func(t Token) bool {
		drop := dead > maxDead && t.State(now) != Active
		if drop {
			dead--
		}
		return drop
	})
}

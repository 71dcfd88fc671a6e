package auth

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"writ"
)

// maxTold is how many entries an event names.
const maxTold = 500

// listed is all principals as an event holds them, each with its tokens by id.
func listed(list []Principal) []any {
	all := []any{}
	for i := range list {
		if i == maxTold {
			return append(all, fmt.Sprintf("and %d more", len(list)-i))
		}
		p := &list[i]
		tokens := []any{}
		for _, t := range p.Tokens {
			tokens = append(tokens, t.String())
		}
		all = append(all, writ.Object{"user": p.user(), "roles": roles(p), "tokens": tokens})
	}
	return all
}

// String says what is known of a token, without telling it.
func (t *Token) String() string {
	text := t.ID() + ", ends " + until(t.ExpiresAt)
	if !t.RevokedAt.IsZero() {
		text += ", revoked " + day(t.RevokedAt)
	}
	return text
}

func until(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return day(t)
}

func roles(p *Principal) []any {
	all := []any{}
	for _, r := range p.Roles {
		all = append(all, string(r))
	}
	return all
}

// differences is what became of one list in another, one short text each.
func differences(was, is []Principal) []any {
	changes := []any{}
	say := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	before := map[string]*Principal{}
	for i := range was {
		before[was[i].user()] = &was[i]
	}
	for i := range is {
		p := &is[i]
		old, ok := before[p.user()]
		delete(before, p.user())
		if !ok {
			old = &Principal{}
			say("added %s", p.user())
		}
		if !slices.Equal(old.Roles, p.Roles) {
			say("%s has the roles %v", p.user(), p.Roles)
		}
		tokens := map[string]string{}
		for _, t := range old.Tokens {
			tokens[t.ID()] = t.String()
		}
		for _, t := range p.Tokens {
			if known, ok := tokens[t.ID()]; !ok || known != t.String() {
				say("%s has the token %s", p.user(), t.String())
			}
			delete(tokens, t.ID())
		}
		for _, gone := range tokens {
			say("%s lost the token %s", p.user(), gone)
		}
	}
	for user := range before {
		say("removed %s", user)
	}
	slices.SortFunc(changes, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	if more := len(changes) - maxTold; more > 0 {
		changes = append(changes[:maxTold], fmt.Sprintf("and %d more", more))
	}
	return changes
}

package fake

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// authenticate finds the token of a request. Every failure is a 403: NetBox has no 401. The version of a token is
// read from its prefix, not from the word before it.
func (c *call) authenticate() reply {
	words := strings.Fields(c.r.Header.Get("Authorization"))
	if len(words) == 0 || !strings.EqualFold(words[0], "Token") && !strings.EqualFold(words[0], "Bearer") {
		return detail(http.StatusForbidden, "Authentication credentials were not provided.")
	}
	if len(words) != 2 {
		return detail(http.StatusForbidden,
			`Invalid authorization header: Must be in the form "Bearer <key>.<token>" or "Token <token>"`)
	}
	secret, version := words[1], 1
	if rest, v2 := strings.CutPrefix(secret, "nbt_"); v2 {
		version = 2
		if !strings.Contains(rest, ".") {
			return detail(http.StatusForbidden, "Invalid authorization header: Could not parse key from v2 token. "+
				"Did you mean to use 'Token' instead of 'Bearer'?")
		}
	}
	i := slices.IndexFunc(c.config.Tokens, func(t Token) bool { return t.Secret == secret })
	if i < 0 {
		return detail(http.StatusForbidden, "Invalid v%d token", version)
	}
	t := &c.config.Tokens[i]
	source, err := netip.ParseAddrPort(c.r.RemoteAddr)
	at := source.Addr().Unmap()
	switch {
	case len(t.From) > 0 && (err != nil ||
		!slices.ContainsFunc(t.From, func(p netip.Prefix) bool { return p.Contains(at) })):
		return detail(http.StatusForbidden,
			"Source IP %s is not permitted to authenticate using this token.", at)
	case t.Disabled:
		return detail(http.StatusForbidden, "Token disabled")
	case t.Expired:
		return detail(http.StatusForbidden, "Token expired")
	}
	c.token = t
	return reply{}
}

// permit checks the token's write flag and the user's permission on a content type, before anything is looked at.
func (c *call) permit(kind string) reply {
	if !c.safe() && !c.token.Write || slices.Contains(c.token.Deny, c.verb()+" "+kind) {
		return forbidden()
	}
	return reply{}
}

func (c *call) verb() string {
	switch c.r.Method {
	case http.MethodPost:
		return "add"
	case http.MethodPut, http.MethodPatch:
		return "change"
	case http.MethodDelete:
		return "delete"
	}
	return "view"
}

func forbidden() reply {
	return detail(http.StatusForbidden, "You do not have permission to perform this action.")
}

// allows applies the user's constraint to one object.
func (c *call) allows(m *model, o *object) bool {
	return c.token.Only == nil || c.token.Only(m.kind, o.values)
}

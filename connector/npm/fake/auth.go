package fake

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type user struct {
	User
	id      int
	created string
}

// session is what a token stands for.
type session struct {
	user    *user
	expires time.Time
}

// AddUser lets one more user log in, and returns their id.
func (s *Server) AddUser(u User) int {
	u.Visibility, u.ProxyHosts, u.AccessLists = cmp.Or(u.Visibility, "user"), cmp.Or(u.ProxyHosts, "hidden"),
		cmp.Or(u.AccessLists, "hidden")
	if u.Admin {
		u.Visibility, u.ProxyHosts, u.AccessLists = "all", "manage", "manage"
	}
	s.users = append(s.users, &user{User: u, id: len(s.users) + 1, created: s.stamp()})
	return len(s.users)
}

// SetUser changes what a user may do, at once: tokens carry no rights.
func (s *Server) SetUser(id int, visibility, proxyHosts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[id-1].Visibility, s.users[id-1].ProxyHosts = visibility, proxyHosts
}

// sees says whether a row belongs to what the user may look at.
func (u *user) sees(r *row) bool { return u.Visibility == "all" || r.owner == u.id }

// may says whether a level of permission is enough: "view" or "manage".
func (u *user) may(have, need string) bool {
	return u != nil && (have == need || have == "manage")
}

func (u *user) show() map[string]any {
	roles := []any{}
	if u.Admin {
		roles = append(roles, "admin")
	}
	name, _, _ := strings.Cut(u.Email, "@")
	return map[string]any{"id": u.id, "created_on": u.created, "modified_on": u.created, "is_disabled": u.Disabled,
		"email": u.Email, "name": name, "nickname": name, "avatar": "", "roles": roles}
}

// login answers to identity and secret. No other member but scope is allowed, an expiry neither.
func (c *call) login() reply {
	schema := rule{kind: "object", required: []string{"identity", "secret"}, closed: true, members: []member{
		{"identity", rule{kind: "string", least: 1}},
		{"scope", rule{kind: "string", least: 1, enum: []string{"user"}}},
		{"secret", rule{kind: "string", least: 1}},
	}}
	in, problem := validate(schema, c.body)
	if problem != "" {
		return invalid(problem)
	}
	for _, u := range c.users {
		if !strings.EqualFold(u.Email, in["identity"].(string)) || u.Disabled {
			continue
		}
		if u.Secret != in["secret"] {
			answer := invalid("Invalid email or password")
			answer.body.(map[string]any)["error"].(map[string]any)["message_i18n"] = "error.invalid-auth"
			return answer
		}
		if u.TOTP {
			return ok(map[string]any{"requires_2fa": true, "challenge_token": newToken()})
		}
		return c.issue(u, c.config.Now().AddDate(0, 0, 1))
	}
	return invalid("Invalid email or password")
}

func (c *call) issue(u *user, expires time.Time) reply {
	token := newToken()
	c.tokens[token] = session{u, expires}
	return ok(map[string]any{"token": token, "expires": expires.UTC().Format("2006-01-02T15:04:05.000Z")})
}

// newToken looks like a JSON Web Token, and is one to nobody but this server.
func newToken() string { return "fake." + rand.Text() + "." + rand.Text() }

// authenticate reads the bearer token. Without one the request goes on: the permission is missed later.
func (c *call) authenticate() reply {
	token, given := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	if !given {
		return reply{}
	}
	s, known := c.tokens[token]
	if !known { // malformed, tampered with, or of another server
		return broken()
	}
	if !c.config.Now().Before(s.expires) {
		answer := invalid("Token has expired")
		answer.body.(map[string]any)["error"].(map[string]any)["message_i18n"] = map[string]any{
			"name": "TokenExpiredError", "message": "jwt expired",
			"expiredAt": s.expires.UTC().Truncate(time.Second).Format("2006-01-02T15:04:05.000Z")}
		return answer
	}
	if s.user.Disabled {
		return c.nowhere()
	}
	c.user = s.user
	return reply{}
}

// refresh issues a new token for any period the caller likes.
func (c *call) refresh() reply {
	if c.user == nil {
		return invalid("Existing token contained invalid user data")
	}
	expiry := c.r.URL.Query().Get("expiry")
	if expiry == "" {
		expiry = "1d"
	}
	expires, good := after(c.config.Now(), expiry)
	if !good {
		return invalid("Invalid expiry time: " + expiry)
	}
	return c.issue(c.user, expires)
}

func after(now time.Time, period string) (time.Time, bool) {
	digits := strings.TrimRight(period, "yMwdhms")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return now, false
	}
	switch period[len(digits):] {
	case "y":
		return now.AddDate(n, 0, 0), true
	case "M":
		return now.AddDate(0, n, 0), true
	case "w":
		return now.AddDate(0, 0, 7*n), true
	case "d":
		return now.AddDate(0, 0, n), true
	case "h":
		return now.Add(time.Duration(n) * time.Hour), true
	case "m":
		return now.Add(time.Duration(n) * time.Minute), true
	case "s":
		return now.Add(time.Duration(n) * time.Second), true
	}
	return now, false
}

// me is how a client learns what it may do, which no refusal tells it.
func (c *call) me() reply {
	if c.user == nil {
		return c.nowhere()
	}
	out := c.user.show()
	if c.r.URL.Query().Get("expand") == "permissions" {
		all := "hidden"
		if c.user.Admin {
			all = "manage"
		}
		out["permissions"] = map[string]any{"visibility": c.user.Visibility, "proxy_hosts": c.user.ProxyHosts,
			"access_lists": c.user.AccessLists, "redirection_hosts": all, "dead_hosts": all, "streams": all,
			"certificates": all}
	}
	return ok(out)
}

// record adds to the audit log. Its meta is the whole row.
func (c *call) record(action, kind string, r *row) {
	meta := r.show()
	c.audit = append([]map[string]any{{"id": len(c.audit) + 1, "created_on": c.stamp(), "modified_on": c.stamp(),
		"user_id": c.user.id, "object_type": kind, "object_id": r.id, "action": action, "meta": meta}}, c.audit...)
}

// auditLog is for administrators.
func (c *call) auditLog() reply {
	if c.user == nil || !c.user.Admin {
		return c.nowhere()
	}
	list := []any{}
	for _, e := range c.audit[:min(100, len(c.audit))] {
		out := map[string]any{}
		for name, v := range e {
			out[name] = v
		}
		if c.r.URL.Query().Get("expand") == "user" {
			u := c.users[e["user_id"].(int)-1].show()
			u["is_deleted"] = false
			out["user"] = u
		}
		list = append(list, out)
	}
	return reply{http.StatusOK, list}
}

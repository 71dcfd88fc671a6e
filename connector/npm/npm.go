// Package npm is the driver for Nginx Proxy Manager, 2.13 and later: a dialect of connector/http. Its base URL ends in
// /api.
//
// What it does differently from REST in general: it wants a login; a 404 may mean "you may not"; a 500 may come after
// the row was changed; and a 200 says only that the row was written: whether the site works stands in
// meta.nginx_online, which is for the action's verify to look at, and on the site itself.
package npm

import (
	"context"
	"encoding/json"
	nethttp "net/http"
	"strings"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/http"
	"writ/fault"
)

// New returns the driver.
func New() connector.Driver {
	return http.New(http.Dialect{
		Kind:    "npm",
		Example: "https://npm.example.test:81",
		Path:    "/api",
		Needs: []connector.Need{
			// No secret: the system shows it to everybody as the owner of what the account made.
			{Name: "identity", Prompt: "E-mail address of an account without a second factor"},
			{Name: "secret", Prompt: "Password of the account", Secret: true},
			{Name: "site", Prompt: "Address at which it serves sites, to see afterwards that they work, e.g. http://npm.example.test", Endpoint: true, Option: true},
		},
		Valid:        valid,
		Authenticate: authenticate,
		Classify:     classify,
		Absent:       absent,
		Check:        check,
	})
}

func valid(options map[string]string) error {
	if options["identity"] == "" {
		return fault.New(fault.Invalid, "The option identity is missing: give the e-mail address of the account in executor.yaml.")
	}
	return nil
}

// classify says what an answer means.
func classify(a http.Answer) *connector.Error {
	failed := http.Classify(a)
	if failed == nil {
		return nil
	}
	said := saidBy(a)
	outcome, reason := failed.Outcome, failed.Reason
	switch {
	case expired(a):
		outcome, reason = writ.NotExecuted, "unauthenticated"
	case a.Status == nethttp.StatusBadRequest && strings.HasSuffix(said, " is already in use"):
		outcome, reason = writ.NotExecuted, "already_exists"
	case a.Status == nethttp.StatusBadRequest && strings.HasPrefix(said, "Host is already "):
		outcome, reason = writ.NotExecuted, "conflict"
	case a.Status == nethttp.StatusNotFound && strings.HasPrefix(said, "Not Found - /"):
		reason = "permission_denied"
		said += " (the account may not do this, or there is no such path: the system does not say which)"
	}
	return a.Means(outcome, reason, said)
}

// saidBy is the sentence of an error body, or all of it.
func saidBy(a http.Answer) string {
	if message := messageIn(a.Body); message != "" {
		return message
	}
	return a.Said()
}

func messageIn(body []byte) string {
	var said struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	return said.Error.Message
}

// expired is said before anything else is looked at.
func expired(a http.Answer) bool {
	return a.Status == nethttp.StatusBadRequest && messageIn(a.Body) == "Token has expired"
}

// absent is the 404 that names an id. The one that names a path may as well mean "you may not".
func absent(a http.Answer) bool {
	id, named := strings.CutPrefix(messageIn(a.Body), "Not Found - ")
	return a.Status == nethttp.StatusNotFound && named && id != "" && strings.Trim(id, "0123456789") == ""
}

// check asks who the account is: no refusal would ever tell what it may do.
func check(ctx context.Context, _ connector.System, t connector.Target) ([]string, error) {
	seen, err := t.Do(ctx, catalog.Call{Verb: "get", Path: "/users/me", Query: map[string]string{"expand": "permissions"}})
	if failed, ok := err.(*connector.Error); ok && failed.Reason == "unauthenticated" {
		return []string{failed.Text}, nil
	}
	if err != nil {
		return nil, err
	}
	me, _ := seen.Data.(map[string]any)
	may, _ := me["permissions"].(map[string]any)
	if level, _ := may["proxy_hosts"].(string); level != "manage" {
		return []string{"The account may not change proxy hosts: its permission proxy_hosts is " + http.Quote(level) +
			"; set it to manage."}, nil
	}
	return nil, nil
}

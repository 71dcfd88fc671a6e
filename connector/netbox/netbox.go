// Package netbox is the driver for NetBox, 4.5 and later: a dialect of connector/http. Its base URL ends in /api.
//
// What NetBox does differently from REST in general: it refuses an unknown credential with 403, and some of its 403s
// come after it has rolled a write back; it tells "taken already" by a 400; a path without its trailing slash is
// redirected; and a bulk write may be accepted with 202, before it was even looked at.
package netbox

import (
	"context"
	"encoding/json"
	"errors"
	nethttp "net/http"
	"strings"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/http"
)

// New returns the driver.
func New() connector.Driver {
	return http.New(http.Dialect{
		Kind:    "netbox",
		Example: "https://netbox.example.test",
		Path:    "/api",
		Needs: []connector.Need{
			{Name: "token", Prompt: "API token with write access (nbt_… or 40 characters)", Secret: true},
		},
		Authenticate: authenticate,
		Classify:     classify,
		Absent:       absent,
		Check:        check,
	})
}

// authenticate sends the token in the word that goes with its version; NetBox tells the versions apart by the prefix.
func authenticate(_ connector.System, secrets connector.Secrets, next nethttp.RoundTripper) nethttp.RoundTripper {
	return http.RoundTripper(func(q *nethttp.Request) (*nethttp.Response, error) {
		token, err := secrets.Secret("token")
		if err != nil {
			return nil, &connector.Error{Outcome: writ.NotExecuted, Reason: "secret_missing", Cause: err,
				Text: "The token of the system is not in the vault, or the vault is locked; nothing was sent."}
		}
		word := "Token "
		if strings.HasPrefix(token.Reveal(), "nbt_") {
			word = "Bearer "
		}
		q = q.Clone(q.Context())
		q.Header.Set("Authorization", word+token.Reveal())
		return next.RoundTrip(q)
	})
}

// classify says what an answer means.
func classify(a http.Answer) *connector.Error {
	said := saidBy(a)
	switch {
	case a.Status == nethttp.StatusAccepted:
		return a.Means(writ.Unknown, "only_accepted", "it was put into a queue, and is checked and done later or not at all")
	case a.Status == nethttp.StatusBadRequest && taken(a.Body):
		return a.Means(writ.NotExecuted, "already_exists", said)
	case a.Status == nethttp.StatusForbidden && !permission(a):
		return a.Means(writ.NotExecuted, "unauthenticated", said)
	case a.Status == nethttp.StatusForbidden: // perhaps only when the result left the permission's constraint
		return a.Means(writ.Failed, "permission_denied", said)
	case a.Status == nethttp.StatusMovedPermanently:
		return a.Means(writ.NotExecuted, "redirect_refused", "the path needs its trailing slash, or base_url is not where the system is")
	case a.Status == nethttp.StatusServiceUnavailable && maintenance(a.Body):
		return a.Means(writ.NotExecuted, "maintenance", "it is in maintenance mode and writes nothing")
	}
	if failed := http.Classify(a); failed != nil {
		return a.Means(failed.Outcome, failed.Reason, said)
	}
	return nil
}

// saidBy is the sentence of an error body, or all of it.
func saidBy(a http.Answer) string {
	var body struct{ Detail string }
	if json.Unmarshal(a.Body, &body) == nil && body.Detail != "" {
		return body.Detail
	}
	return a.Said()
}

// permission tells the 403 about what an account may do from those about who it is. A 403 that is not NetBox's own,
// from a proxy in front of it, says nothing about the account either; it is taken for the latter.
func permission(a http.Answer) bool {
	return saidBy(a) == "You do not have permission to perform this action."
}

// taken recognises the validation errors that mean that something else has the name or the address already.
func taken(body []byte) bool {
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		return false
	}
	for _, messages := range fields {
		list, _ := messages.([]any)
		for _, message := range list {
			text, _ := message.(string)
			if strings.HasSuffix(text, " already exists.") || strings.HasPrefix(text, "Duplicate ") {
				return true
			}
		}
	}
	return false
}

// maintenance recognises the mode in which NetBox opens its database read-only.
func maintenance(body []byte) bool {
	var said struct{ Error, Exception string }
	return json.Unmarshal(body, &said) == nil && said.Exception == "InternalError" &&
		strings.Contains(said.Error, "maintenance mode")
}

// absent is NetBox's own 404, and not the page of a path that does not exist.
func absent(a http.Answer) bool {
	var body struct{ Detail string }
	return a.Status == nethttp.StatusNotFound && json.Unmarshal(a.Body, &body) == nil &&
		strings.HasSuffix(body.Detail, " matches the given query.")
}

// check reads the status and one object of each kind. Whether the token may write cannot be seen by reading.
func check(ctx context.Context, _ connector.System, t connector.Target) ([]string, error) {
	_, err := t.Do(ctx, catalog.Call{Verb: "get", Path: "/status/"})
	if refused, ok := errors.AsType[*connector.Error](err); ok && refused.Status == nethttp.StatusForbidden {
		return []string{"NetBox does not take the token. " + refused.Text}, nil
	}
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, n := range []struct{ path, privilege string }{ // what the shipped actions read
		{"/extras/tags/", "extras.view_tag"},
		{"/ipam/prefixes/", "ipam.view_prefix"},
		{"/ipam/ip-addresses/", "ipam.view_ipaddress"},
	} {
		_, err := t.Do(ctx, catalog.Call{Verb: "get", Path: n.path, Query: map[string]string{"limit": "1"}})
		refused, ok := errors.AsType[*connector.Error](err)
		switch {
		case ok && refused.Reason == "permission_denied":
			wrong = append(wrong, "The token's user lacks the permission "+n.privilege+"; grant it in NetBox.")
		case err != nil:
			return nil, err
		}
	}
	return wrong, nil
}

// Package proxmox is the driver for Proxmox VE: a dialect of connector/http.
//
// What Proxmox does differently: nearly every failure is a 500, and what happened stands in the text alone, which old
// servers put into the reason phrase of the status line and nowhere else. The table of those texts is answer.go. Long
// work is a task; the driver starts it, and the action waits for its exit status.
package proxmox

import (
	"context"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/http"
	"writ/fault"
)

const apiPath = "/api2/json"

// New returns the driver, kind "proxmox". It authenticates with an API token, which must have its privileges given to
// itself; it never logs in with a password.
func New() connector.Driver {
	return http.New(http.Dialect{
		Kind:    "proxmox",
		Example: "https://pve.example.test:8006",
		Path:    apiPath,
		Needs: []connector.Need{
			{Name: "token_id", Prompt: "Id of the API token, e.g. writ@pve!executor"},
			{Name: "token", Prompt: "Secret of the API token", Secret: true},
			{Name: "privileges", Prompt: "Privileges that the token should have", Option: true,
				Default: "VM.Audit VM.Config.Options VM.PowerMgmt VM.Snapshot"},
		},
		Valid:        valid,
		Authenticate: authenticate,
		Classify:     classify,
		Absent:       absent,
		Inner:        inner,
		Check:        check,
	})
}

func valid(options map[string]string) error {
	if !regexp.MustCompile(`^[^\s:/@!=]+@[A-Za-z][A-Za-z0-9._-]+![A-Za-z][A-Za-z0-9._-]+$`).MatchString(options["token_id"]) {
		return fault.New(fault.Invalid, "Option token_id is not the id of an API token; it looks like user@realm!name, without the secret.")
	}
	for _, p := range strings.Fields(options["privileges"]) {
		if !regexp.MustCompile(`^[A-Z][A-Za-z]*(\.[A-Z][A-Za-z]*)+$`).MatchString(p) {
			return fault.New(fault.Invalid, "Option privileges is a list with spaces between, such as: VM.Audit VM.PowerMgmt.")
		}
	}
	return nil
}

// authenticate adds the API token. With one, Proxmox asks for no cookie and no CSRF token.
func authenticate(s connector.System, secrets connector.Secrets, next nethttp.RoundTripper) nethttp.RoundTripper {
	return http.RoundTripper(func(q *nethttp.Request) (*nethttp.Response, error) {
		token, err := secrets.Secret("token")
		if err != nil {
			return nil, &connector.Error{Outcome: writ.NotExecuted, Reason: "secret_missing", Cause: err,
				Text: "The secret of the API token is not in the vault, or the vault is locked; nothing was sent."}
		}
		q = q.Clone(q.Context()) // a RoundTripper leaves the request as it was
		q.Header.Set("Authorization", "PVEAPIToken="+s.Options["token_id"]+"="+token.Reveal())
		return next.RoundTrip(q)
	})
}

// check asks Proxmox what the token may do.
func check(ctx context.Context, s connector.System, t connector.Target) ([]string, error) {
	if base, err := url.Parse(s.BaseURL); err != nil || !strings.HasSuffix(strings.TrimSuffix(base.Path, "/"), apiPath) {
		return []string{"The base_url does not end in " + apiPath + "; it looks like https://host.example.test:8006" + apiPath + "."}, nil
	}
	seen, err := t.Do(ctx, catalog.Call{Verb: "get", Path: "/access/permissions"})
	if refused, ok := errors.AsType[*connector.Error](err); ok && refused.Status == nethttp.StatusUnauthorized {
		return []string{fmt.Sprintf("Proxmox does not accept the API token %s; correct token_id or the secret, and see that the token has not expired.",
			s.Options["token_id"])}, nil
	}
	if err != nil {
		return nil, err
	}
	wanted := strings.Fields(s.Options["privileges"])
	if len(wanted) == 0 {
		wanted = []string{"VM.Audit"} // without it nothing can be observed
	}
	wanted = slices.DeleteFunc(wanted, func(p string) bool { return holds(seen.Data, p) })
	if len(wanted) == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("The API token %s lacks %s; grant it to the token itself under Datacenter, Permissions: "+
		"a token with privilege separation has none of its user's privileges.", s.Options["token_id"], strings.Join(wanted, ", "))}, nil
}

// inner is the data of {"data": …}, which every answer of Proxmox is.
func inner(data any) any {
	object, _ := data.(map[string]any)
	return object["data"]
}

// holds says whether a privilege is granted at any path of {path: {privilege: 1}}.
func holds(answer any, privilege string) bool {
	paths, _ := answer.(map[string]any)
	for _, granted := range paths {
		if list, ok := granted.(map[string]any); ok {
			if _, ok := list[privilege]; ok {
				return true
			}
		}
	}
	return false
}

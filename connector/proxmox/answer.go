package proxmox

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"writ"
	"writ/connector"
	driver "writ/connector/http"
)

// text is one thing that Proxmox says, and what it means for the call that it refuses.
type text struct {
	start   string // a regular expression for the beginning of what it says
	outcome writ.Outcome
	reason  string
	absent  bool // there is no such thing
}

// texts are what Proxmox is known to say before it does anything. Each is anchored at the beginning, so that a value
// which Proxmox quotes further on cannot be taken for one of them. What is not here leaves a write unknown.
func texts() []text {
	return []text{
		{`(CT|VM) is locked \(`, writ.Failed, "locked", false},
		{`can't lock file '[^']*' - got timeout`, writ.Failed, "locked", false},
		{`(unable to create CT \d+ - )?(CT|VM) \d+ already exists on node `, writ.NotExecuted, "already_exists", false},
		{`detected modified configuration - file changed by other user\?`, writ.NotExecuted, "conflict", false},
		{`Configuration file '[^']*' does not exist`, writ.NotExecuted, "not_found", true},
		{`snapshot '[^']*' does not exist`, writ.NotExecuted, "not_found", true},
		{`no such resource '`, writ.NotExecuted, "not_found", true},
		{`hostname lookup '[^']*' failed`, writ.NotExecuted, "not_found", false},
		{`storage '[^']*' does not exist`, writ.NotExecuted, "not_found", false},
		{`(CT|VM) \d+ (already|not) running`, writ.NotExecuted, "wrong_state", false},
		{`unable to destroy CT \d+ - container is running`, writ.NotExecuted, "wrong_state", false},
		{`can't remove CT \d+ - protection mode enabled`, writ.NotExecuted, "protected", false},
		{`unable to remove CT \d+ - used in HA resources`, writ.NotExecuted, "protected", false},
		{`cluster not ready - no quorum\?`, writ.NotExecuted, "no_quorum", false},
		{`no options specified`, writ.NotExecuted, "rejected", false},
		{`unable to (delete required|delete read-only|modify read-only) option`, writ.NotExecuted, "rejected", false},
		{`unable to use snapshot name '`, writ.NotExecuted, "rejected", false},
		{`mount points configured, but 'rootfs' not set - aborting`, writ.NotExecuted, "rejected", false},
		{`detected invalid newline inside property '`, writ.NotExecuted, "rejected", false},
		{`net\d+: MTU size '\d+' is bigger than bridge MTU '`, writ.NotExecuted, "rejected", false},
	}
}

// wireTexts are what the HTTP server of Proxmox says, with a 501, before a method of the API is called. Any other 501
// may stand for a method that ran and whose answer could not be written.
const wireTexts = `^(Method '[A-Z]+ [^']*' not implemented|method '[A-Z]+' not available|Unexpected content for method '|` +
	`chunked transfer encoding not supported|for data too large|no such (uri|file)|malformed JSON string)`

// said is what Proxmox says about an answer: in the message of its JSON or, from old servers and where there is no
// JSON, in the reason phrase; and its errors by parameter.
func said(a driver.Answer) (string, map[string]string) {
	var body struct {
		Message string            `json:"message"`
		Errors  map[string]string `json:"errors"`
	}
	if json.Unmarshal(a.Body, &body) == nil && body.Message != "" {
		return strings.TrimSpace(body.Message), body.Errors
	}
	return a.Reason, body.Errors
}

// classify says what an answer means.
func classify(a driver.Answer) *connector.Error {
	message, errors := said(a)
	switch {
	case a.Status == http.StatusOK:
		return promised(a)
	case a.Status == http.StatusBadRequest:
		return parameters(a, message, errors)
	case a.Status == http.StatusUnauthorized:
		return a.Means(writ.NotExecuted, "unauthenticated", message)
	case a.Status == http.StatusForbidden:
		return a.Means(writ.NotExecuted, "permission_denied", message)
	case a.Status == http.StatusInternalServerError:
		if t, ok := find(message); ok {
			return a.Means(t.outcome, t.reason, message)
		}
		return a.Means(writ.Unknown, "server_error", message)
	case a.Status == http.StatusNotImplemented && regexp.MustCompile(wireTexts).MatchString(message):
		return a.Means(writ.NotExecuted, "unsupported", message)
	case a.Status >= 595 && a.Status <= 599: // pveproxy has lost the node that it passed the call on to
		return a.Means(writ.Unknown, "node_unreachable", message)
	case a.Status < 300:
		return a.Means(writ.Unknown, "unexpected_status", message)
	}
	return driver.Classify(a)
}

// promised refuses a success that does not look like Proxmox: {"data": …}. Something else answered in its place.
func promised(a driver.Answer) *connector.Error {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(a.Body, &body); err == nil {
		if _, ok := body["data"]; ok {
			return nil
		}
	}
	return a.Means(writ.Unknown, "bad_answer", `no JSON with "data" in it: is this the API of Proxmox?`)
}

// parameters judges a 400. Parameters are checked before anything is done, with one exception: a change of a running
// container that could not be plugged in may have unplugged what was there.
func parameters(a driver.Answer, message string, errors map[string]string) *connector.Error {
	outcome, reason := writ.NotExecuted, "rejected"
	for _, name := range slices.Sorted(maps.Keys(errors)) {
		what := strings.TrimSpace(errors[name])
		message += " " + name + ": " + what + "."
		if strings.HasPrefix(what, "unable to hotplug ") || strings.HasPrefix(what, "unable to apply pending change ") {
			outcome, reason = writ.Unknown, "hotplug_failed"
		}
	}
	return a.Means(outcome, reason, message)
}

func find(message string) (text, bool) {
	for _, t := range texts() {
		if regexp.MustCompile(`^(?:` + t.start + `)`).MatchString(message) {
			return t, true
		}
	}
	return text{}, false
}

// absent recognises that there is no such thing, which Proxmox says with a 500.
func absent(a driver.Answer) bool {
	message, _ := said(a)
	t, ok := find(message)
	return ok && t.absent && a.Status == http.StatusInternalServerError
}

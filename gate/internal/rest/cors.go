package rest

import (
	"net/http"
	"slices"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/ops"
)

// What a page of a configured origin may send. It sends its token by itself: no
// cookie or other credential of a browser counts here.
const (
	crossMethods = "GET, POST"
	crossHeaders = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Mcp-Protocol-Version, Mcp-Method, Mcp-Name"
)

// preflightAge is how long a browser may remember the answer to a preflight, in seconds.
const preflightAge = "600"

// letIn reports whether a call from another origin may go on; an answer to a
// preflight, which carries no token, ends here.
func (s *server) letIn(w http.ResponseWriter, r *http.Request, origins []string) bool {
	if len(origins) != 1 || !slices.Contains(s.Origins, origins[0]) {
		s.problem(w, r, fault.New(fault.Denied, "The call comes from a page of another origin. To allow it, add it to origins in gate.yaml.").Because(wrongOrigin))
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Set("Access-Control-Expose-Headers", "Retry-After")
	h.Add("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return true
	}
	h.Set("Access-Control-Allow-Methods", crossMethods)
	h.Set("Access-Control-Allow-Headers", crossHeaders)
	h.Set("Access-Control-Max-Age", preflightAge)
	w.WriteHeader(http.StatusNoContent)
	return false
}

const wrongOrigin = "wrong_origin"

// decidable refuses to let a page of another origin decide: what agents have
// written is shown there by others than us.
func decidable(r *http.Request, op *ops.Op) error {
	if origins, sent := r.Header["Origin"]; sent && !sameOrigin(origins, r.Host) && slices.Contains(op.Roles, model.Approver) {
		return fault.New(fault.Denied, "A page of another origin may ask, but not decide. Decide with the command writ.").Because(wrongOrigin)
	}
	return nil
}

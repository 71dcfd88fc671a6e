package http

import (
	"net/http"

	"writ"
	"writ/connector"
)

// verdict is what a status means for a write that got it as its answer.
type verdict struct {
	outcome writ.Outcome
	reason  string
}

// verdictOf is the table for APIs that use HTTP as it is specified. A status that is
// not in it leaves a write unknown: 5xx and 408, where the effect may have come
// first, 302 and 303, which many forms answer after the effect, and all that
// nobody has heard of.
func verdictOf(status int) verdict {
	switch status {
	case http.StatusUnauthorized:
		return verdict{writ.NotExecuted, "unauthenticated"}
	case http.StatusForbidden:
		return verdict{writ.NotExecuted, "permission_denied"}
	case http.StatusNotFound:
		return verdict{writ.NotExecuted, "not_found"}
	case http.StatusGone:
		return verdict{writ.NotExecuted, "gone"}
	case http.StatusMethodNotAllowed:
		return verdict{writ.NotExecuted, "method_not_allowed"}
	case http.StatusConflict:
		return verdict{writ.NotExecuted, "conflict"}
	case http.StatusPreconditionFailed:
		return verdict{writ.NotExecuted, "precondition_failed"}
	case http.StatusTooManyRequests:
		return verdict{writ.NotExecuted, "rate_limited"}
	case http.StatusLocked:
		return verdict{writ.Failed, "locked"}
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusNotAcceptable, http.StatusLengthRequired,
		http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnsupportedMediaType,
		http.StatusRequestedRangeNotSatisfiable, http.StatusExpectationFailed, http.StatusMisdirectedRequest,
		http.StatusUnprocessableEntity, http.StatusFailedDependency, http.StatusTooEarly, http.StatusUpgradeRequired,
		http.StatusPreconditionRequired, http.StatusRequestHeaderFieldsTooLarge, http.StatusUnavailableForLegalReasons:
		return verdict{writ.Failed, "rejected"}
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return verdict{writ.NotExecuted, "redirect_refused"}
	}
	switch {
	case status >= 300 && status < 400:
		return verdict{writ.Unknown, "redirect_refused"}
	case status >= 500:
		return verdict{writ.Unknown, "server_error"}
	}
	return verdict{writ.Unknown, "unexpected_status"}
}

// Classify says what an answer means by its status alone: 2xx is success.
// Dialects call it for what they do not know better.
func Classify(a Answer) *connector.Error {
	if a.Status >= 200 && a.Status < 300 {
		return nil
	}
	v := verdictOf(a.Status)
	return a.Means(v.outcome, v.reason, a.Said())
}

package http

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"writ"
	"writ/connector"
)

// failure is the error of an exchange that did not come to its end. sent says
// that it was a write, bytes of which may have left.
func failure(ctx context.Context, sent bool, err error) *connector.Error {
	reason, what := explain(ctx, err)
	if sent {
		return &connector.Error{Outcome: writ.Unknown, Reason: reason, Cause: err,
			Text: what + " The request may have reached it and may have had its effect; look at the system before anything else."}
	}
	return &connector.Error{Outcome: writ.NotExecuted, Reason: reason, Cause: err, Text: what + " Nothing was changed."}
}

// explain finds the reason and a sentence, which never quotes the error: that is
// for the log.
func explain(ctx context.Context, err error) (reason, sentence string) {
	var (
		certificate *tls.CertificateVerificationError
		large       *http.MaxBytesError
		op          *net.OpError
		slow        net.Error
	)
	switch {
	case context.Cause(ctx) == errSlow, errors.As(err, &slow) && slow.Timeout() && ctx.Err() == nil:
		return "timeout", "The system took too long to answer."
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "timeout", "The step ran out of time while it was talking to the system."
	case ctx.Err() != nil:
		return "canceled", "The call was cancelled while it was talking to the system."
	case errors.Is(err, errPin):
		return "wrong_target", "The certificate of the system is not the pinned one: either it was renewed, and the new " +
			"one has to be pinned, or something else answers at its address."
	case errors.As(err, &certificate):
		return "wrong_target", "The certificate of the system was not issued for its address by an authority that this " +
			"machine trusts; pin it if it is the right one."
	case errors.As(err, &large):
		return "too_large", "The system answered with more than 8 MiB."
	case errors.As(err, &op) && op.Op == "dial":
		return "connect_failed", "No connection to the system could be made; see that it is up and that its address is right."
	}
	return "broken_connection", "The exchange with the system broke off."
}

// LoginFailed is the error of a call whose Authenticate could not log in: err is
// what the login ended with. Whatever became of the login, the call itself was
// not sent.
func LoginFailed(err error) *connector.Error {
	failed := &connector.Error{Outcome: writ.NotExecuted, Reason: "login_failed", Cause: err,
		Text: "The login at the system did not succeed, so the call was not sent."}
	if inner, ok := errors.AsType[*connector.Error](err); ok {
		failed.Reason, failed.Status = inner.Reason, inner.Status
		if inner.Outcome == writ.NotExecuted { // else its text is about a write that may have happened
			failed.Text = inner.Text
		}
	}
	return failed
}

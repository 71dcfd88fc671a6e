package npm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	nethttp "net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"writ"
	"writ/connector"
	"writ/connector/http"
)

// lifetime is how long a token is used. It is good for a day; an hour leaves room for every clock.
const lifetime = time.Hour

// account logs in when it has to, and adds the token to every request.
type account struct {
	system  connector.System
	secrets connector.Secrets
	next    nethttp.RoundTripper
	turn    chan struct{} // holds one login at a time
	token   atomic.Pointer[string]
}

func authenticate(s connector.System, secrets connector.Secrets, next nethttp.RoundTripper) nethttp.RoundTripper {
	return &account{system: s, secrets: secrets, next: next, turn: make(chan struct{}, 1)}
}

// RoundTrip sends the request once. A token that the server no longer takes is forgotten, so that the next request
// logs in; this one fails.
func (a *account) RoundTrip(q *nethttp.Request) (*nethttp.Response, error) {
	token, err := a.session(q.Context())
	if err != nil {
		return nil, err
	}
	q = q.Clone(q.Context())
	q.Header.Set("Authorization", "Bearer "+*token)
	answer, err := a.next.RoundTrip(q)
	// It calls an expired token a 400, like many other things, and one of another server a 500.
	if err == nil && (answer.StatusCode == nethttp.StatusBadRequest || answer.StatusCode >= nethttp.StatusInternalServerError) {
		a.token.CompareAndSwap(token, nil)
	}
	return answer, err
}

// session returns a token, from a login if there is none.
func (a *account) session(ctx context.Context) (*string, error) {
	if token := a.token.Load(); token != nil {
		return token, nil
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, http.LoginFailed(ctx.Err())
	}
	if token := a.token.Load(); token != nil { // somebody else's login
		return token, nil
	}
	text, err := a.login(ctx)
	if err != nil {
		return nil, http.LoginFailed(err)
	}
	token := &text
	a.token.Store(token)
	time.AfterFunc(lifetime, func() { a.token.CompareAndSwap(token, nil) })
	return token, nil
}

func (a *account) login(ctx context.Context) (string, error) {
	secret, err := a.secrets.Secret("secret")
	if err != nil {
		return "", &connector.Error{Outcome: writ.NotExecuted, Reason: "secret_missing", Cause: err,
			Text: "The password of the system's account is not in the vault, or the vault is locked; nothing was sent."}
	}
	body, err := json.Marshal(map[string]string{"identity": a.system.Options["identity"], "secret": secret.Reveal()})
	if err != nil {
		return "", err
	}
	q, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodPost, strings.TrimSuffix(a.system.BaseURL, "/")+"/tokens", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	q.GetBody = nil
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json")
	q.Header.Set("Accept-Encoding", "identity")
	q.Header.Set("User-Agent", "writ")
	answer, err := a.next.RoundTrip(q)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return "", err
	}
	return tokenIn(answer.StatusCode, raw)
}

// tokenIn reads the answer to a login.
func tokenIn(status int, body []byte) (string, error) {
	var got struct {
		Token        string
		SecondFactor bool `json:"requires_2fa"`
	}
	whole := json.Unmarshal(body, &got) == nil
	refused := func(reason, text string) (string, error) {
		return "", connector.Errorf(writ.NotExecuted, reason, status, "%s", text)
	}
	switch {
	case status == nethttp.StatusBadRequest:
		return refused("unauthenticated", "The system does not take the account: "+http.Quote(messageIn(body))+
			". Correct the option identity, or the password in the vault.")
	case status >= 300 && status < 400:
		return refused("redirect_refused", "The system answered the login with a redirect; correct base_url, which ends in /api.")
	case status == nethttp.StatusOK && whole && got.SecondFactor:
		return refused("second_factor", "The account asks for a second factor, which a program cannot give; give writ an account of its own without one.")
	case status != nethttp.StatusOK || !whole || got.Token == "":
		return refused("login_failed", "The system answered the login with "+strconv.Itoa(status)+" and no token; see that base_url ends in /api.")
	}
	return got.Token, nil
}

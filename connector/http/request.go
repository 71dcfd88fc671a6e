package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"writ"
	"writ/catalog"
	"writ/connector"
)

// address is a base URL that calls are joined to.
type address struct{ url *url.URL }

func parseAddress(text string) (address, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return address{}, err
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Hostname() == "", u.Opaque != "":
		return address{}, errors.New("not an absolute http or https URL")
	case u.User != nil, u.RawQuery != "", u.ForceQuery, strings.Contains(text, "#"):
		return address{}, errors.New("the URL has a user, a query or a fragment")
	}
	if err := checkPath(u.EscapedPath()); err != nil {
		return address{}, err
	}
	return address{u}, nil
}

// join returns the URL of an escaped path below the address. What the path says
// is what is sent: a path that net/url would write in another way is refused,
// because it does so by unescaping first, and then an escaped slash is a slash.
func (a address) join(path string) (*url.URL, error) {
	if path != "" && path[0] != '/' {
		path = "/" + path
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	u := *a.url
	u.RawPath = strings.TrimSuffix(a.url.EscapedPath(), "/") + path
	var err error
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, err
	}
	if u.EscapedPath() != u.RawPath {
		return nil, errors.New("the path has characters that have to be escaped")
	}
	return &u, nil
}

// checkPath refuses what a server may read as another path than the one that
// was approved: dot segments, however escaped, and empty segments, which is what
// an empty parameter leaves behind.
func checkPath(path string) error {
	segments := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	for _, s := range segments {
		plain, err := url.PathUnescape(s)
		switch {
		case err != nil:
			return err
		case plain == "" && len(segments) > 1:
			return errors.New("the path has an empty segment")
		case slices.ContainsFunc(strings.FieldsFunc(plain, func(r rune) bool { return r == '/' || r == '\\' }),
			func(part string) bool { return part == "." || part == ".." }):
			return errors.New("the path has a dot segment")
		case strings.ContainsFunc(plain, unicode.IsControl):
			return errors.New("the path has a control character")
		}
	}
	if strings.HasSuffix(path, "//") {
		return errors.New("the path has an empty segment")
	}
	return nil
}

// request makes the request of a call. Its error is NotExecuted.
func (t *target) request(ctx context.Context, c catalog.Call, writes bool) (*http.Request, error) {
	base := t.base
	if c.At != "" {
		var ok bool
		if base, ok = t.endpoints[c.At]; !ok {
			return nil, connector.Errorf(writ.NotExecuted, "bad_call", 0, "System %q has no endpoint %q; add it to executor.yaml.", t.system.Name, c.At)
		}
	}
	bad := func(cause error, text string) (*http.Request, error) {
		return nil, &connector.Error{Outcome: writ.NotExecuted, Reason: "bad_call", Text: text + " Correct the action.", Cause: cause}
	}
	switch {
	case c.At != "" && writes:
		return bad(nil, "An endpoint can only be read.")
	case c.At == "" && c.Host != "":
		return bad(nil, "A Host goes with an endpoint: the system itself gets credentials, and has one name.")
	case strings.Trim(strings.ToLower(c.Host), "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]") != "":
		return bad(nil, "The Host of the call is not a host name.")
	case strings.ContainsFunc(c.IfMatch, unicode.IsControl):
		return bad(nil, "The If-Match of the call is not an entity tag.")
	}
	u, err := base.join(c.Path)
	if err != nil {
		return bad(err, "The path of the call is not valid.")
	}
	query := url.Values{}
	for name, value := range c.Query {
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	kind, content, err := content(c)
	if err != nil {
		return bad(err, "The call has a body that cannot be sent, or more than one.")
	}
	if content != nil && !writes {
		return bad(nil, "A call that reads has no body.")
	}
	q, err := http.NewRequestWithContext(ctx, strings.ToUpper(c.Verb), u.String(), bytes.NewReader(content))
	if err != nil {
		return bad(err, "The call is not a valid request.")
	}
	q.GetBody = nil // nobody below can send it again
	if c.Host != "" {
		q.Host = c.Host
	}
	q.Header.Set("Accept", "application/json, */*;q=0.5")
	q.Header.Set("Accept-Encoding", "identity")
	q.Header.Set("User-Agent", "writ")
	if kind != "" {
		q.Header.Set("Content-Type", kind)
	}
	if c.IfMatch != "" {
		q.Header.Set("If-Match", c.IfMatch)
	}
	return q, nil
}

// content returns the body of a call and its type; nil is no body.
func content(c catalog.Call) (kind string, body []byte, err error) {
	bodies := 0
	if c.Form != nil {
		bodies++
		form := url.Values{}
		for name, value := range c.Form {
			form.Set(name, value)
		}
		kind, body = "application/x-www-form-urlencoded", []byte(form.Encode())
	}
	if c.JSON != nil {
		bodies++
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(c.JSON); err != nil {
			return "", nil, err
		}
		kind, body = "application/json", bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	if c.Text != nil {
		bodies++
		kind, body = "text/plain; charset=utf-8", []byte(*c.Text)
	}
	if bodies > 1 {
		return "", nil, errors.New("more than one body")
	}
	return kind, body, nil
}

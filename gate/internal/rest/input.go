package rest

import (
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"writ"
	"writ/fault"
	"writ/gate/internal/form"
)

// read returns a pointer to the filled input of an operation.
func read(f *form.Form, r *http.Request) (any, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The query cannot be read.")
	}
	given := func(p form.Param) []string {
		switch p.In {
		case "path":
			return []string{r.PathValue(p.Name)}
		case "query":
			return query[p.Name]
		}
		var values []string
		for _, v := range r.Header.Values(p.Name) {
			values = append(values, unquoted(v))
		}
		return values
	}
	var unknown []string
	for name := range query {
		known := false
		for _, p := range f.Params {
			known = known || p.In == "query" && p.Name == name
		}
		if !known {
			unknown = append(unknown, "query."+name)
		}
	}
	// What the caller wrote beside the body is told first.
	input, err := f.Texts(given, unknown, nil)
	if err != nil || r.Method != http.MethodPost {
		return input, err
	}
	body, err := readBody(f, r)
	if err != nil || body == nil {
		return input, err
	}
	return f.Texts(given, unknown, body)
}

// readBody returns the body, nil if there is none and need not be.
func readBody(f *form.Form, r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, writ.MaxSize+1))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The body broke off.")
	}
	if len(data) == 0 && f.Body == nil {
		return nil, nil
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != "application/json" || charset != "" && charset != "utf-8" || r.Header.Get("Content-Encoding") != "" {
		return nil, fault.New(fault.Invalid, "The body must be plain JSON, and the header Content-Type must say application/json.").Because("content_type")
	}
	return data, nil
}

// unquoted is the text of a header that may be a string of RFC 9651, as
// Idempotency-Key is: "k" and k are one key.
func unquoted(v string) string {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return v
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(v[1 : len(v)-1])
}

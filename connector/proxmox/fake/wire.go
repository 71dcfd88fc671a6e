package fake

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"writ/connector/recorder"
)

const (
	base    = "/api2/json"
	maxPost = 512 << 10
)

// failure is a refusal. A bare one comes from the HTTP server itself and has no body.
type failure struct {
	status int
	reason string
	errors map[string]string
	bare   bool
}

// die is Perl's: a failure without a code is a 500.
func die(format string, args ...any) *failure {
	return &failure{status: http.StatusInternalServerError, reason: fmt.Sprintf(format, args...)}
}

func bare(status int, format string, args ...any) *failure {
	return &failure{status: status, reason: fmt.Sprintf(format, args...), bare: true}
}

func forbidden(what string) *failure {
	if what != "" {
		what = " (" + what + ")"
	}
	return &failure{status: http.StatusForbidden, reason: "Permission check failed" + what}
}

func badParams(errors map[string]string) *failure {
	return &failure{status: http.StatusBadRequest, reason: "Parameter verification failed.", errors: errors}
}

func badParam(name, text string) *failure { return badParams(map[string]string{name: text}) }

func (s *Server) serve(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, failed := s.handle(q)
	h := w.Header()
	h.Set("Server", "pve-api-daemon/3.0")
	h.Set("Cache-Control", "max-age=0")
	status, body := http.StatusOK, map[string]any{"data": data}
	if failed != nil {
		status = failed.status
		h.Set("Connection", "close")
		recorder.SetReason(w, failed.reason)
		if failed.bare {
			w.WriteHeader(status)
			return
		}
		if failed.errors != nil {
			body["errors"] = failed.errors
		}
		if !s.config.LegacyErrors {
			body["message"] = failed.reason + "\n"
		}
	}
	h.Set("Content-Type", "application/json;charset=UTF-8")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.Encode(body)
}

// handle checks what pveproxy checks, in its order, and then lets the API method answer.
func (s *Server) handle(q *http.Request) (any, *failure) {
	if !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}, q.Method) {
		return nil, bare(http.StatusNotImplemented, "method '%s' not available", q.Method)
	}
	if len(q.TransferEncoding) > 0 {
		return nil, bare(http.StatusNotImplemented, "chunked transfer encoding not supported")
	}
	// The whole path is decoded before it is split: an escaped slash is a slash.
	path, ok := strings.CutPrefix(q.URL.Path, base)
	if !ok || path != "" && path[0] != '/' {
		return nil, bare(http.StatusNotImplemented, "no such file '%s'", q.URL.Path)
	}
	c := &call{Server: s}
	if f := c.authenticate(q.Header.Get("Authorization")); f != nil {
		return nil, f
	}
	takesBody := q.Method == http.MethodPost || q.Method == http.MethodPut
	switch {
	case q.ContentLength > 0 && !takesBody:
		return nil, bare(http.StatusNotImplemented, "Unexpected content for method '%s'", q.Method)
	case q.ContentLength > maxPost:
		return nil, bare(http.StatusNotImplemented, "for data too large")
	}
	given, f := readParams(q)
	if f != nil {
		return nil, f
	}
	if q.Method == http.MethodGet {
		s.tick()
	}
	return c.dispatch(q.Method, path, given)
}

// readParams reads the body of a PUT or POST, and the query, which wins.
func readParams(q *http.Request) (map[string]string, *failure) {
	given := map[string]string{}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, bare(http.StatusNotImplemented, "read failed")
	}
	kind, _, _ := strings.Cut(q.Header.Get("Content-Type"), ";")
	switch {
	case len(body) == 0:
	case kind == "application/json":
		if f := readJSON(body, given); f != nil {
			return nil, f
		}
	case kind == "" || kind == "application/x-www-form-urlencoded":
		readForm(string(body), given)
	default:
		return nil, bare(http.StatusVariantAlsoNegotiates, "upload 'Content-Type '%s' not implemented", kind)
	}
	query := map[string]string{}
	readForm(q.URL.RawQuery, query)
	maps.Copy(given, query)
	delete(given, "_dc")
	return given, nil
}

// readForm splits as Proxmox does: at & and ;, a value ends at a second =, and a name given twice has both values
// with a NUL between them.
func readForm(text string, given map[string]string) {
	for _, pair := range strings.FieldsFunc(text, func(c rune) bool { return c == '&' || c == ';' }) {
		parts := strings.SplitN(pair+"=", "=", 3)
		for i, p := range parts {
			plain, err := url.QueryUnescape(p)
			if err != nil {
				plain = strings.ReplaceAll(p, "+", " ")
			}
			parts[i] = plain
		}
		name := parts[0]
		value := strings.ToValidUTF8(parts[1], string(utf8.RuneError))
		if old, twice := given[name]; twice {
			value = old + "\x00" + value
		}
		given[name] = value
	}
}

func readJSON(body []byte, given map[string]string) *failure {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return bare(http.StatusNotImplemented, "malformed JSON string")
	}
	for name, raw := range object {
		var text string
		switch {
		case raw[0] == '"':
			json.Unmarshal(raw, &text)
			given[name] = text
		case raw[0] == '[', raw[0] == '{':
			return badParam(name, "type check ('string') failed - got "+map[byte]string{'[': "ARRAY", '{': "HASH"}[raw[0]])
		case string(raw) == "true":
			given[name] = "1"
		case string(raw) == "false":
			given[name] = "0"
		case string(raw) != "null":
			given[name] = string(raw)
		}
	}
	return nil
}

// call is one request on its way through the API.
type call struct {
	*Server
	token string // its full id
	param map[string]string
	node  string
	vmid  int
}

// dispatch finds the method and checks, in Proxmox's order: conflicting parameters, privileges, the node, and only
// then the parameters against their schema.
func (c *call) dispatch(method, path string, given map[string]string) (any, *failure) {
	r, uri := findRoute(c.routes, method, path)
	if r == nil {
		return nil, &failure{status: http.StatusNotImplemented, reason: fmt.Sprintf("Method '%s %s' not implemented", method, path)}
	}
	for name, value := range uri {
		if other, twice := given[name]; twice && other != value {
			return nil, badParam(name, "duplicate parameter (already defined in URI) with conflicting values!")
		}
		given[name] = value
	}
	if r.path != "" {
		if f := c.permit(expand(r.path, given), r.one, r.privileges...); f != nil {
			return nil, f
		}
	}
	if node, ok := uri["node"]; ok && !slices.Contains(c.config.Nodes, node) {
		return nil, die("hostname lookup '%s' failed - failed to get address info for: %s: Name or service not known", node, node)
	}
	if errors := verify(r.params, given); len(errors) > 0 {
		return nil, badParams(errors)
	}
	c.param, c.node = given, given["node"]
	c.vmid, _ = strconv.Atoi(given["vmid"])
	return r.run(c)
}

// authenticate takes the API token from the header: PVEAPIToken=USER@REALM!NAME=SECRET.
func (c *call) authenticate(header string) *failure {
	value, ok := strings.CutPrefix(header, "PVEAPIToken=")
	if !ok {
		return bare(http.StatusUnauthorized, "No ticket")
	}
	id, secret, _ := strings.Cut(value, "=")
	token, ok := c.config.Tokens[id]
	if !ok {
		user, name, _ := strings.Cut(id, "!")
		return bare(http.StatusUnauthorized, "no such token '%s' for user '%s'", name, user)
	}
	if secret != token.Secret || secret == "" {
		return bare(http.StatusUnauthorized, "invalid token value!")
	}
	c.token = id
	return nil
}

// Package rest renders the table of operations as JSON over HTTP, with bearer
// tokens and application/problem+json, and describes it as OpenAPI 3.1.
//
// It reads strictly: a body with a member that is unknown, spelt in another
// case or given twice is refused, and so is a query that names one. It trusts
// no browser: a Host that is not this machine or a configured name, and an
// Origin that is neither the gate's own nor configured, are refused before
// anything is read.
package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"writ"
	"writ/api"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/ops"
)

// Config is what the handler is made of.
type Config struct {
	Gate  *ops.Gate
	Who   Authenticator
	Hosts []string // names that a Host header may hold besides loopback
	// Origins are those of pages elsewhere that may ask, as https://chat.example.org.
	Origins []string
	// More are other ways in, by path. They stand behind the same guard.
	More map[string]Way
	Log  *slog.Logger
}

// Way answers the calls of callers who have proved who they are.
type Way = func(http.ResponseWriter, *http.Request, model.Caller)

// Authenticator tells who a bearer token belongs to.
type Authenticator interface {
	Authenticate(token string) (model.Caller, error)
}

// PathOpenAPI is where the description of the API is, for agents that of their
// tools only.
const PathOpenAPI = "/openapi.json"

// New returns the handler of the API.
func New(c Config) (http.Handler, error) {
	s := &server{Config: c, streams: streams{open: map[string]int{}}}
	mux := http.NewServeMux()
	whole, err := newDescription(c.Gate.Version, false)
	if err != nil {
		return nil, err
	}
	tools, err := newDescription(c.Gate.Version, true)
	if err != nil {
		return nil, err
	}
	for _, op := range append(ops.All(), ops.Original()...) {
		in := whole.add(&op)
		tools.add(&op)
		mux.Handle(op.Method+" "+op.Path, s.answer(func(w http.ResponseWriter, r *http.Request, who model.Caller) (any, error) {
			if err := op.Allow(who); err != nil {
				return nil, err
			}
			if err := decidable(r, &op); err != nil {
				return nil, err
			}
			input, err := read(in, r)
			if err != nil {
				return nil, err
			}
			if streamed(&op, r) {
				return sent{}, s.stream(w, r, who, input)
			}
			out, err := op.Call(r.Context(), c.Gate, who, input)
			if err != nil && op.Original {
				err = badRequest{err}
			}
			return out, err
		}))
	}
	described := map[bool]json.RawMessage{}
	for _, d := range []*description{whole, tools} {
		if described[d.forAgent], err = json.Marshal(d.api); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "The API cannot be described.")
		}
	}
	for _, path := range []string{PathOpenAPI, "/v1" + PathOpenAPI} {
		mux.Handle("GET "+path, s.answer(func(_ http.ResponseWriter, _ *http.Request, who model.Caller) (any, error) {
			return described[who.Kind == writ.Agent], nil
		}))
	}
	for path, serve := range c.More {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			who, err := s.caller(r)
			if err != nil {
				s.problem(w, r, err)
				return
			}
			serve(w, r, who) // it counts the calls, and answers in its own words
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.nothing(w, r, mux) })
	return s.guard(mux), nil
}

type server struct {
	Config
	streams streams
}

// guard stands before every route.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				s.Log.Error("a call panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				s.problem(w, r, fault.New(fault.Internal, "Something went wrong inside writ. The log of the gate has the cause."))
			}
		}()
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		if !s.ours(r.Host) {
			s.problem(w, r, fault.New(fault.Denied, "The Host header names another machine. To allow the name, add it to hosts in gate.yaml.").Because("wrong_host"))
			return
		}
		if origins, sent := r.Header["Origin"]; sent && !sameOrigin(origins, r.Host) && !s.letIn(w, r, origins) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ours reports whether a Host header names the gate: loopback, which a page
// elsewhere can reach only under a name of its own, or a configured name.
func (s *server) ours(host string) bool {
	name := strings.ToLower(host)
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	} else {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback() || slices.Contains(s.Hosts, name)
}

func sameOrigin(origins []string, host string) bool {
	return len(origins) == 1 && (origins[0] == "http://"+host || origins[0] == "https://"+host)
}

// sent is the answer that was sent already.
type sent struct{}

// answer makes a handler of what answers one caller.
func (s *server) answer(f func(http.ResponseWriter, *http.Request, model.Caller) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := s.caller(r)
		if err == nil {
			err = s.Gate.Limits.Request(who)
		}
		if err != nil {
			s.problem(w, r, err)
			return
		}
		out, err := f(w, r, who)
		if err != nil {
			s.problem(w, r, err)
			return
		}
		if _, done := out.(sent); !done {
			s.send(w, r, http.StatusOK, "application/json", out)
		}
	})
}

// SessionHeader is where a program says what it is and on whose behalf it asks:
// "client/version, planner/2, ana". It is recorded, and decides nothing.
const SessionHeader = "Writ-Session"

// caller tells who calls. Those who are not let in are counted.
func (s *server) caller(r *http.Request) (model.Caller, error) {
	who, err := s.known(r)
	if fault.CodeOf(err) == fault.Unauthenticated {
		if often := s.Gate.Limits.Stranger(r.RemoteAddr); often != nil {
			err = often
		}
	}
	who.Session = model.ParseSession(r.Header.Get(SessionHeader))
	return who, err
}

func (s *server) known(r *http.Request) (model.Caller, error) {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return model.Caller{}, fault.New(fault.Unauthenticated, "The call needs one bearer token in the header Authorization.").Because("no_token")
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return model.Caller{}, fault.New(fault.Unauthenticated, "The header Authorization must hold a bearer token.").Because("no_token")
	}
	who, err := s.Who.Authenticate(token)
	if err != nil && fault.CodeOf(err) != fault.Unauthenticated {
		// Why nobody is let in is not for somebody who was not let in.
		err = fault.Wrap(fault.Unavailable, err, "Nobody can be let in at the moment. The log of the gate has the cause.")
	}
	return who, err
}

// problem answers with an error.
func (s *server) problem(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, r.Context().Err()) {
		return // nobody is there any more
	}
	row, status := fault.CodeOf(err).Row(), statusOf(err)
	level := slog.LevelDebug // the caller's own business
	switch {
	case status >= http.StatusInternalServerError:
		level = slog.LevelError
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		level = slog.LevelWarn
	}
	s.Log.Log(r.Context(), level, "a call was not answered as asked", "method", r.Method, "path", r.URL.Path,
		"code", row.Code, "reason", fault.ReasonOf(err), "error", fault.TextOf(err), "cause", cause(err))
	if row.Code == fault.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="writ"`)
	}
	if wait := fault.AfterOf(err); wait > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(wait, 10))
	}
	s.send(w, r, status, "application/problem+json", api.Problem{
		Type: problemType(row.Code), Title: row.Title, Status: status,
		Code: row.Code, Reason: fault.ReasonOf(err), Detail: fault.TextOf(err),
	})
}

// badRequest is an error of an operation whose every refusal is a bad request.
type badRequest struct{ error }

func (e badRequest) Unwrap() error { return e.error }

// statusOf is the status of a problem: that of its code, except where HTTP has a
// word of its own for the reason.
func statusOf(err error) int {
	if bad, ok := errors.AsType[badRequest](err); ok {
		if status := statusOf(bad.error); status/100 != 4 || status == http.StatusTooManyRequests {
			return status
		}
		return http.StatusBadRequest
	}
	switch fault.ReasonOf(err) {
	case otherMethod:
		return http.StatusMethodNotAllowed
	case "client_key_used": // the draft on Idempotency-Key
		return http.StatusUnprocessableEntity
	case "no_way_back": // the change's fault, and not the server's
		return http.StatusConflict
	}
	return fault.CodeOf(err).Row().HTTP
}

// otherMethod is the reason of a call that another method would have been right for.
const otherMethod = "method_not_allowed"

// nothing answers what is no operation.
func (s *server) nothing(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodPost} {
		other := *r
		other.Method = m
		if _, pattern := mux.Handler(&other); pattern != "/" {
			methods = append(methods, m)
		}
	}
	err := fault.New(fault.NotFound, "There is nothing here. See which operations there are: GET %s", PathOpenAPI)
	if len(methods) > 0 {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		err = fault.New(fault.NotFound, "This takes another method: %s. See which operations there are: GET %s", strings.Join(methods, " or "), PathOpenAPI).Because(otherMethod)
	}
	s.problem(w, r, err)
}

// cause is what the log shows beyond the sentence for people.
func cause(err error) string {
	var e *fault.Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	if e.Cause == nil {
		return ""
	}
	return e.Cause.Error()
}

func (s *server) send(w http.ResponseWriter, r *http.Request, status int, kind string, body any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // an event is shown in the bytes that the audit file has
	if err := enc.Encode(body); err != nil {
		s.Log.Warn("an answer was not sent to its end", "path", r.URL.Path, "type", reflect.TypeOf(body), "error", err)
	}
}

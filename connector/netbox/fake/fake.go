// Package fake is a NetBox 4.6 REST API in memory. It is what tests and the demo run against, so it is as awkward as
// the real one where a client can be hurt: every refusal is a 403, unknown members and filters are ignored in
// silence, a PATCH without an id is a bulk update, an ETag does not look like last_updated, and a full prefix is a
// 409.
//
// It has extras/tags, ipam/prefixes, ipam/ip-addresses, ipam/vrfs and ipam/prefixes/{id}/available-ips whole;
// dcim/sites, virtualization/virtual-machines, core/object-changes and status for reading. What it does not have
// answers 404; a write that it cannot imitate answers 501, which NetBox never says.
package fake

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"writ/connector/recorder"
)

// Config says how this NetBox is set up.
type Config struct {
	Tokens []Token
	// EnforceUnique is NetBox's ENFORCE_GLOBAL_UNIQUE: it refuses a second equal prefix or address in the global
	// table. Off, duplicates are accepted in silence. A VRF has its own enforce_unique.
	EnforceUnique bool
	// Maintenance lets nobody write.
	Maintenance bool
	// Demo fills the tables with prefix 192.0.2.0/24, one address in it, a tag, a site and a virtual machine.
	Demo bool
	// PageSize and MaxPageSize are PAGINATE_COUNT (0 = 50) and MAX_PAGE_SIZE (0 = 1000).
	PageSize, MaxPageSize int
	// Now is the clock; nil is the machine's. Two changes never carry one time, whatever it says.
	Now func() time.Time
}

// Token is one API token and what its user may do.
type Token struct {
	User string
	// Secret is what the client sends: 40 characters (v1), or nbt_<key>.<token> (v2).
	Secret string
	// Write is the token's write_enabled. Without it every write is refused, whatever the user may do.
	Write             bool
	Expired, Disabled bool
	// From lists the networks the token may be used from; empty is everywhere.
	From []netip.Prefix
	// Deny takes permissions from the user, who otherwise has all: "add extras.tag", "view ipam.prefix".
	Deny []string
	// Only is the constraint on the user's permissions. It sees the content type ("extras.tag") and the stored
	// values. An object it refuses is not found; a write whose result it refuses is rolled back. nil allows all.
	Only func(kind string, values map[string]any) bool
}

// Server is a NetBox. Its Recorder knows what reached it, and injects faults.
type Server struct {
	*recorder.Recorder

	config Config
	models []*model
	kinds  map[string]*model

	mu     sync.Mutex
	tables map[string]*table
	last   time.Time
}

// New returns a NetBox with empty tables, or with the demo's.
func New(config Config) *Server {
	if config.PageSize == 0 {
		config.PageSize = 50
	}
	if config.MaxPageSize == 0 {
		config.MaxPageSize = 1000
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Server{config: config, models: models(), kinds: map[string]*model{}, tables: map[string]*table{}}
	for _, m := range s.models {
		s.kinds[m.kind] = m
		s.tables[m.kind] = &table{}
	}
	if config.Demo {
		s.demo()
	}
	s.Recorder = recorder.Wrap(http.HandlerFunc(s.serve), nil)
	return s
}

// call is one request on its way through the API.
type call struct {
	*Server
	r     *http.Request
	token *Token
	id    string // X-Request-ID of the answer, request_id of the change records
	base  string // scheme and host as the client named them
}

// reply is one answer. A zero status means: nothing to say yet, go on.
type reply struct {
	status   int
	etag     string
	location string
	body     any
}

func detail(status int, format string, args ...any) reply {
	return reply{status: status, body: map[string]any{"detail": fmt.Sprintf(format, args...)}}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &call{Server: s, r: r, id: newRequestID(), base: baseOf(r)}
	before := s.snapshot()
	answer := c.route()
	if answer.status >= http.StatusBadRequest {
		s.restore(before)
	}
	h := w.Header()
	h.Set("X-Request-ID", c.id)
	if strings.HasPrefix(r.URL.Path, "/api/") {
		h.Set("API-Version", "4.6")
	}
	if answer.etag != "" {
		h.Set("ETag", answer.etag)
	}
	if answer.location != "" {
		h.Set("Location", answer.location)
	}
	if answer.body == nil { // a redirect, Django's own 404 page, or 204
		w.WriteHeader(answer.status)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(answer.status)
	json.NewEncoder(w).Encode(answer.body)
}

// route finds the handler of a path below /api/. Django answers a path without its trailing slash with a redirect,
// and a client that follows it turns a POST into a GET.
func (c *call) route() reply {
	rest, ok := strings.CutPrefix(c.r.URL.Path, "/api/")
	if !ok {
		return reply{status: http.StatusNotFound}
	}
	path, slash := strings.CutSuffix(rest, "/")
	parts := strings.Split(path, "/")
	m := c.modelAt(parts)
	if m == nil && path != "status" {
		return reply{status: http.StatusNotFound}
	}
	if !slash {
		to := *c.r.URL
		to.Path += "/"
		return reply{status: http.StatusMovedPermanently, location: to.RequestURI()}
	}
	if answer := c.authenticate(); answer.status != 0 {
		return answer
	}
	if m == nil {
		return c.status()
	}
	if len(parts) == 4 {
		return c.availableIPs(m, parts[2])
	}
	if answer := c.permit(m.kind); answer.status != 0 {
		return answer
	}
	if !m.records && !m.writable && !c.safe() {
		return detail(http.StatusNotImplemented, "This fake does not write %s.", m.path)
	}
	if len(parts) == 3 {
		return c.one(m, parts[2])
	}
	return c.many(m)
}

// modelAt resolves the parts of a path: app, plural, and then an id, and then available-ips.
func (c *call) modelAt(parts []string) *model {
	if len(parts) < 2 || len(parts) > 4 || len(parts) == 4 && parts[3] != "available-ips" {
		return nil
	}
	for _, m := range c.models {
		if m.path == parts[0]+"/"+parts[1] && (len(parts) < 4 || m.kind == "ipam.prefix") {
			return m
		}
	}
	return nil
}

func (c *call) safe() bool {
	return c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
}

func notAllowed(method string) reply {
	return detail(http.StatusMethodNotAllowed, "Method \"%s\" not allowed.", method)
}

func (c *call) status() reply {
	if !c.safe() {
		return notAllowed(c.r.Method)
	}
	return reply{status: http.StatusOK, body: map[string]any{
		"django-version": "6.0.8", "hostname": "netbox", "installed_apps": map[string]any{},
		"netbox-version": "4.6.8", "netbox-full-version": "4.6.8", "plugins": map[string]any{},
		"python-version": "3.12.3", "rq-workers-running": 1,
	}}
}

// baseOf is where the server believes it is: behind a proxy that does not forward the scheme, links say http.
func baseOf(r *http.Request) string {
	scheme, host := "http", r.Host
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	if forwarded := r.Header.Get("X-Forwarded-Host"); forwarded != "" {
		host = forwarded
	}
	return scheme + "://" + host
}

// newRequestID returns a random UUID, version 4.
func newRequestID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// tick returns the time of a change, in microseconds as PostgreSQL keeps it, later than every one before.
func (s *Server) tick() time.Time {
	now := s.config.Now().UTC().Truncate(time.Microsecond)
	if !now.After(s.last) {
		now = s.last.Add(time.Microsecond)
	}
	s.last = now
	return now
}

func parseID(s string) (int, bool) {
	id, err := strconv.Atoi(s)
	return id, err == nil && id > 0
}

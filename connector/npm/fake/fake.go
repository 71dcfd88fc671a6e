// Package fake is a Nginx Proxy Manager 2.15.1 in memory, with the nginx behind it. Its quirks are what a client has
// to survive, and so are the product here: no permission is a 404; a PUT answers 200 although nginx refused the
// config and the site is down, or 500 although the row was changed; a reload takes effect some requests later;
// enabled:false goes on serving.
//
// It has /api/, tokens, users/me, nginx/proxy-hosts whole, nginx/access-lists (list, create, delete) and audit-log;
// every other path is a 404, as a path that does not exist is there. Proxied traffic goes to ProxyHandler.
package fake

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"writ/connector/recorder"
)

// Config says how this Nginx Proxy Manager is set up.
type Config struct {
	Users []User // ids count from 1; hosts of Hosts belong to the first
	Hosts []Host
	// Congratulations shows the page of a new installation to unknown domains, with a 200; otherwise they get a 403.
	Congratulations bool
	// Now is the clock; nil is the machine's.
	Now func() time.Time
}

// User is somebody who can log in.
type User struct {
	Email, Secret string
	Admin         bool
	Visibility    string // "all", or "user" (also when empty): only what they own
	ProxyHosts    string // "manage", "view" or "hidden" (also when empty)
	AccessLists   string // the same
	TOTP          bool   // a second factor is asked for at login
	Disabled      bool
}

// Host is a proxy host to begin with.
type Host struct {
	Domain, Scheme, Forward string
	Port                    int
}

// Server is a Nginx Proxy Manager. Its Recorder knows what reached the API, and injects faults.
type Server struct {
	*recorder.Recorder

	config Config
	nginx  nginx // has its own lock, taken after mu

	mu     sync.Mutex
	users  []*user
	tokens map[string]session
	hosts  []*row
	lists  []*row
	audit  []map[string]any
}

// row is one stored object; members are those of the API.
type row struct {
	id      int
	owner   int
	values  map[string]any
	created string
	updated string
	deleted bool
}

// New returns a server whose nginx takes a change 3 requests after it was told to.
func New(config Config) *Server {
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Server{config: config, tokens: map[string]session{}}
	s.nginx.lag = 3
	s.nginx.congratulations = config.Congratulations
	s.nginx.now = config.Now
	for _, u := range config.Users {
		s.AddUser(u)
	}
	for _, h := range config.Hosts {
		s.hosts = append(s.hosts, s.fresh(len(s.hosts)+1, 1, map[string]any{"domain_names": []any{h.Domain},
			"forward_scheme": h.Scheme, "forward_host": h.Forward, "forward_port": h.Port}))
		s.configure(s.hosts[len(s.hosts)-1])
	}
	s.nginx.settle()
	s.Recorder = recorder.Wrap(http.HandlerFunc(s.serve), func(r *http.Request) bool {
		login := r.URL.Path == "/api/tokens" // a login changes nothing that anybody approves
		return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions && !login
	})
	return s
}

// call is one request on its way through the API.
type call struct {
	*Server
	r    *http.Request
	user *user // nil without a token
	body map[string]any
	path string // below /api
}

// reply is one answer.
type reply struct {
	status int
	body   any
}

func ok(body any) reply { return reply{http.StatusOK, body} }

func refuse(code int, message string) reply {
	return reply{code, map[string]any{"error": map[string]any{"code": code, "message": message}}}
}

func invalid(message string) reply { return refuse(http.StatusBadRequest, message) }

func broken() reply { return refuse(http.StatusInternalServerError, "Internal Error") }

func missing(what string) reply { return refuse(http.StatusNotFound, "Not Found - "+what) }

// nowhere is what a path that does not exist answers, and also a missing token or permission: the code throws its
// PermissionError without new, Express takes that for "nothing here" and goes on to the last route.
func (c *call) nowhere() reply { return missing(c.path) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.route(r)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(answer.status)
	json.NewEncoder(w).Encode(answer.body)
}

func (s *Server) route(r *http.Request) reply {
	c := &call{Server: s, r: r}
	var below bool
	if c.path, below = strings.CutPrefix(r.URL.Path, "/api"); !below {
		return reply{http.StatusNotFound, nil}
	}
	if answer := c.read(); answer.status != 0 {
		return answer
	}
	path := strings.TrimSuffix(c.path, "/")
	switch {
	case path == "":
		return ok(map[string]any{"status": "OK", "setup": true,
			"version": map[string]any{"major": 2, "minor": 0, "revision": 0}})
	case path == "/tokens" && r.Method == http.MethodPost:
		return c.login()
	}
	if answer := c.authenticate(); answer.status != 0 {
		return answer
	}
	get := r.Method == http.MethodGet
	rest, isHost := strings.CutPrefix(path, "/nginx/proxy-hosts")
	switch {
	case path == "/tokens" && get:
		return c.refresh()
	case path == "/users/me" && get:
		return c.me()
	case path == "/audit-log" && get:
		return c.auditLog()
	case path == "/nginx/access-lists" && get:
		return c.accessLists()
	case path == "/nginx/access-lists" && r.Method == http.MethodPost:
		return c.createList()
	case strings.HasPrefix(path, "/nginx/access-lists/") && r.Method == http.MethodDelete:
		return c.deleteList(strings.TrimPrefix(path, "/nginx/access-lists/"))
	case isHost && rest == "":
		return c.hostList()
	case isHost && rest[0] == '/':
		return c.hostAt(strings.Split(rest[1:], "/"))
	}
	return c.nowhere()
}

// read parses the body, JSON or a form, before anything else is looked at.
func (c *call) read() reply {
	c.body = map[string]any{}
	raw, _ := io.ReadAll(c.r.Body)
	kind := c.r.Header.Get("Content-Type")
	switch {
	case len(raw) == 0:
	case strings.HasPrefix(kind, "application/json"):
		if err := json.Unmarshal(raw, &c.body); err != nil || c.body == nil {
			return invalid("Internal Error")
		}
	case strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
		form, err := url.ParseQuery(string(raw))
		if err != nil {
			return invalid("Internal Error")
		}
		for name := range form {
			c.body[name] = form.Get(name)
		}
	}
	return reply{}
}

// stamp is how a server on SQLite writes times.
func (s *Server) stamp() string { return s.config.Now().UTC().Format(time.DateTime) }

// fresh makes a proxy host with every member the API shows.
func (s *Server) fresh(id, owner int, values map[string]any) *row {
	full := map[string]any{"access_list_id": 0, "certificate_id": 0, "ssl_forced": false, "caching_enabled": false,
		"block_exploits": false, "advanced_config": "", "meta": map[string]any{}, "allow_websocket_upgrade": false,
		"http2_support": false, "enabled": true, "locations": nil, "hsts_enabled": false, "hsts_subdomains": false,
		"trust_forwarded_proto": false}
	maps.Copy(full, values)
	return &row{id: id, owner: owner, values: full, created: s.stamp(), updated: s.stamp()}
}

// show is a row as the API shows it.
func (r *row) show() map[string]any {
	out := maps.Clone(r.values)
	out["id"], out["owner_user_id"], out["created_on"], out["modified_on"] = r.id, r.owner, r.created, r.updated
	return out
}

func (r *row) number(name string) int {
	n, _ := r.values[name].(int)
	return n
}

func (r *row) is(name string) bool {
	b, _ := r.values[name].(bool)
	return b
}

func (r *row) str(name string) string { return fmt.Sprint(r.values[name]) }

// find returns a row that is there, and that the caller may see.
func (c *call) find(rows []*row, id int) *row {
	for _, r := range rows {
		if r.id == id && !r.deleted && c.user.sees(r) {
			return r
		}
	}
	return nil
}

// numberOf parses an id of a path: what is no number is a 400 without a reason.
func numberOf(id string) (int, reply) {
	n, err := strconv.Atoi(id)
	if err != nil {
		return 0, invalid("Internal Error")
	}
	return n, reply{}
}

package fake

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// nginx is what stands behind the API: the files it would read, and what its workers serve by now.
type nginx struct {
	mu      sync.Mutex
	files   map[int]conf   // host id → its conf file
	serving map[int]conf   // what workers serve
	coming  map[int]conf   // what they will serve after left more requests; nil when no reload is under way
	left    int            // requests that still reach the old workers
	lag     int            // how many that is after each reload
	bad     map[int]string // hosts whose next conf nginx will refuse, and with which words
	broken  bool           // something else is wrong: every nginx -t fails

	congratulations bool
	now             func() time.Time
}

// conf is one host's conf file.
type conf struct {
	domains []string
	target  backend
	paths   map[string]backend // custom locations
	guarded bool               // has an access list
	clients []client
}

type backend struct {
	scheme, host string
	port         int
}

// BreakNginx lets nginx refuse every conf of one host from now on: a PUT still answers 200, says nginx_online:false
// with this text, and the site is gone.
func (s *Server) BreakNginx(hostID int, errText string) {
	s.nginx.mu.Lock()
	defer s.nginx.mu.Unlock()
	if s.nginx.bad == nil {
		s.nginx.bad = map[int]string{}
	}
	s.nginx.bad[hostID] = errText
}

// BreakOther lets nginx refuse its config because of some other file: a PUT changes the row, then answers 500, and
// what is served stays as it was.
func (s *Server) BreakOther() {
	s.nginx.mu.Lock()
	defer s.nginx.mu.Unlock()
	s.nginx.broken = true
}

// Repair takes back BreakNginx and BreakOther. A site that is gone comes back with the next PUT.
func (s *Server) Repair() {
	s.nginx.mu.Lock()
	defer s.nginx.mu.Unlock()
	s.nginx.broken, s.nginx.bad = false, nil
}

// ReloadLag sets how many requests still reach the old backend after a change was answered.
func (s *Server) ReloadLag(n int) {
	s.nginx.mu.Lock()
	defer s.nginx.mu.Unlock()
	s.nginx.lag = n
}

// write renders a host's conf file, tests and reloads. It returns nginx's complaint, with which the file is taken
// away again; asked is false when nginx refused everything before the file was touched.
func (n *nginx) write(h *row, clients []client) (complaint string, asked bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken {
		return "", false
	}
	if n.files == nil {
		n.files = map[int]conf{}
	}
	if complaint = n.test(h); complaint != "" {
		delete(n.files, h.id)
	} else {
		n.files[h.id] = render(h, clients)
	}
	n.reload()
	return complaint, true
}

// remove takes a host's conf file away and reloads, which fails when something else is broken.
func (n *nginx) remove(id int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.files, id)
	if n.broken {
		return false
	}
	n.reload()
	return true
}

func (n *nginx) reload() {
	n.coming, n.left = maps.Clone(n.files), n.lag
}

// settle ends a reload that is under way.
func (n *nginx) settle() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.coming != nil {
		n.serving, n.coming, n.left = n.coming, nil, 0
	}
}

var (
	statement = regexp.MustCompile(`(?m)(?:^|[;{}])\s*([a-z_]+)\b`)
	directive = regexp.MustCompile(`^(proxy|client|add|auth|gzip|limit|error|access|satisfy|ssl|sub)_[a-z_]+$|^(location|if|return|set|allow|deny|rewrite|include|expires|root|index|gzip|internal)$`)
	injected  = regexp.MustCompile(`"; return ([1-5][0-9]{2});`)
)

// test is nginx -t on one host's conf: it knows a handful of directives, and takes any forward_host.
func (n *nginx) test(h *row) string {
	if text, bad := n.bad[h.id]; bad {
		return text
	}
	for _, m := range statement.FindAllStringSubmatch(h.str("advanced_config"), -1) {
		if !directive.MatchString(m[1]) {
			return fmt.Sprintf("%s [emerg] 100#100: unknown directive %q in /data/nginx/proxy_host/%d.conf:36\n"+
				"nginx: configuration file /etc/nginx/nginx.conf test failed\n",
				n.now().UTC().Format("2006/01/02 15:04:05"), m[1], h.id)
		}
	}
	return ""
}

func render(h *row, clients []client) conf {
	c := conf{target: backendOf(h.values), paths: map[string]backend{}, clients: clients, guarded: clients != nil}
	for _, name := range names(h) {
		c.domains = append(c.domains, strings.ToLower(name))
	}
	locations, _ := h.values["locations"].([]any)
	for _, l := range locations {
		values := l.(map[string]any)
		c.paths[values["path"].(string)] = backendOf(values)
	}
	return c
}

func backendOf(values map[string]any) backend {
	port, _ := values["forward_port"].(int)
	return backend{fmt.Sprint(values["forward_scheme"]), fmt.Sprint(values["forward_host"]), port}
}

// ProxyHandler is the other side: proxied traffic, by the Host header, as nginx serves it at this moment.
func (s *Server) ProxyHandler() http.Handler {
	// As nginx does without further configuration, backends with any certificate are taken.
	onward := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, known := s.nginx.pick(r)
		to := c.at(r.URL.Path)
		source, _ := netip.ParseAddrPort(r.RemoteAddr)
		code := injected.FindStringSubmatch(to.host)
		switch {
		case !known && s.nginx.congratulations:
			page(w, http.StatusOK, "Congratulations! You've successfully started the Nginx Proxy Manager.")
		case !known, c.guarded && !c.lets(source.Addr().Unmap()):
			page(w, http.StatusForbidden, "403 Forbidden")
		case code != nil: // forward_host was written into the config as it came, and is config now
			status, _ := strconv.Atoi(code[1])
			page(w, status, code[1]+" "+http.StatusText(status))
		default:
			proxy := httputil.ReverseProxy{Transport: onward,
				Rewrite: func(p *httputil.ProxyRequest) {
					p.SetURL(&url.URL{Scheme: to.scheme, Host: fmt.Sprintf("%s:%d", to.host, to.port)})
					p.Out.Host = r.Host
					p.SetXForwarded()
				},
				ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
					page(w, http.StatusBadGateway, "502 Bad Gateway")
				}}
			proxy.ServeHTTP(w, r)
		}
	})
}

func page(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<html><head><title>%s</title></head></html>\n", text)
}

// pick finds the conf for a request, and lets a reload under way come nearer.
func (n *nginx) pick(r *http.Request) (conf, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.coming != nil && n.left == 0 {
		n.serving, n.coming = n.coming, nil
	}
	n.left = max(0, n.left-1)
	name, _, _ := strings.Cut(strings.ToLower(r.Host), ":")
	for _, c := range n.serving {
		for _, domain := range c.domains {
			if domain == name {
				return c, true
			}
		}
	}
	return conf{}, false
}

// at is the backend of a path: the longest custom location that begins it, or the host's own.
func (c conf) at(path string) backend {
	best, to := "", c.target
	for prefix, b := range c.paths {
		if strings.HasPrefix(path, prefix) && len(prefix) >= len(best) {
			best, to = prefix, b
		}
	}
	return to
}

// lets applies an access list: the first line that fits decides, and nobody else gets in.
func (c conf) lets(from netip.Addr) bool {
	for _, line := range c.clients {
		if line.from.Contains(from) {
			return line.allow
		}
	}
	return false
}

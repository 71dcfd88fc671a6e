package fake

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// hostList serves /nginx/proxy-hosts.
func (c *call) hostList() reply {
	switch c.r.Method {
	case http.MethodGet:
		if c.user == nil || !c.user.may(c.user.ProxyHosts, "view") {
			return c.nowhere()
		}
		list := []any{}
		for _, h := range c.hosts {
			names := strings.Join(names(h), ",")
			if h.deleted || !c.user.sees(h) || !strings.Contains(names, c.r.URL.Query().Get("query")) {
				continue
			}
			out, answer := c.expand(h, false)
			if answer.status != 0 {
				return answer
			}
			list = append(list, out)
		}
		slices.SortStableFunc(list, func(a, b any) int {
			return slices.Compare(domains(a.(map[string]any)), domains(b.(map[string]any)))
		})
		return ok(list)
	case http.MethodPost:
		return c.createHost()
	}
	return c.nowhere()
}

// hostAt serves /nginx/proxy-hosts/{id}, and /enable and /disable below it.
func (c *call) hostAt(parts []string) reply {
	method := c.r.Method
	act := len(parts) == 2 && method == http.MethodPost && (parts[1] == "enable" || parts[1] == "disable")
	if !act && (len(parts) != 1 || !slices.Contains([]string{"GET", "PUT", "DELETE"}, method)) {
		return c.nowhere()
	}
	var in map[string]any
	if method == http.MethodPut { // the body is looked at before the caller
		var problem string
		if in, problem = validate(hostRule(false), c.body); problem != "" {
			return invalid(problem)
		}
	}
	id, answer := numberOf(parts[0])
	if answer.status != 0 {
		return answer
	}
	need := "manage"
	if method == http.MethodGet {
		need = "view"
	}
	if c.user == nil || !c.user.may(c.user.ProxyHosts, need) {
		return c.nowhere()
	}
	if method == http.MethodPut {
		if answer := c.taken(in, id); answer.status != 0 {
			return answer
		}
	}
	h := c.find(c.hosts, id)
	switch {
	case h == nil:
		return missing(parts[0])
	case act:
		return c.toggle(h, parts[1] == "enable")
	case method == http.MethodPut:
		return c.updateHost(h, in)
	case method == http.MethodDelete:
		return c.deleteHost(h)
	}
	out, answer := c.expand(h, true)
	if answer.status != 0 {
		return answer
	}
	return ok(out)
}

// createHost answers 201 with a row that was read before nginx was asked: whether the site works is not in it.
func (c *call) createHost() reply {
	in, problem := validate(hostRule(true), c.body)
	if problem != "" {
		return invalid(problem)
	}
	if c.user == nil || !c.user.may(c.user.ProxyHosts, "manage") {
		return c.nowhere()
	}
	if answer := c.taken(in, 0); answer.status != 0 {
		return answer
	}
	order := in["certificate_id"] == "new"
	if order {
		delete(in, "certificate_id")
	}
	h := c.fresh(len(c.hosts)+1, c.user.id, in)
	clean(h)
	c.hosts = append(c.hosts, h)
	if order { // the order fails here; the row is there
		return broken()
	}
	out := c.whole(h)
	if !c.configure(h) {
		return broken()
	}
	c.record("created", "proxy-host", h)
	return reply{http.StatusCreated, out}
}

// updateHost changes the row first and asks nginx afterwards: a 500 does not mean unchanged, and a 200 does not mean
// that the site works. The whole merged row is written, so of two writers the last wins everything.
func (c *call) updateHost(h *row, in map[string]any) reply {
	if in["certificate_id"] == "new" { // the order fails here, before the row is touched
		return broken()
	}
	maps.Copy(h.values, in)
	clean(h)
	h.updated = c.stamp()
	c.record("updated", "proxy-host", h)
	// A host that is not enabled is not taken from nginx: it goes on serving what it served.
	if h.is("enabled") && !c.configure(h) {
		return broken()
	}
	return ok(c.whole(h))
}

// toggle is the only way to take a site off the air, or back.
func (c *call) toggle(h *row, on bool) reply {
	word := map[bool]string{true: "enabled", false: "disabled"}[on]
	if h.is("enabled") == on {
		return invalid("Host is already " + word)
	}
	h.values["enabled"] = on
	h.updated = c.stamp()
	if on && !c.configure(h) || !on && !c.nginx.remove(h.id) {
		return broken()
	}
	c.record(word, "proxy-host", h)
	return ok(true)
}

// deleteHost hides the row. Its id is never used again.
func (c *call) deleteHost(h *row) reply {
	h.deleted = true
	if !c.nginx.remove(h.id) {
		return broken()
	}
	c.record("deleted", "proxy-host", h)
	return ok(true)
}

// configure renders the host for nginx and writes into the row what nginx said. It is false when nginx could not
// even be asked, because something else is broken already; the row then keeps what it said before.
func (s *Server) configure(h *row) bool {
	var clients []client
	for _, l := range s.lists {
		if l.id == h.number("access_list_id") && !l.deleted {
			clients = clientsOf(l)
		}
	}
	complaint, asked := s.nginx.write(h, clients)
	if !asked {
		return false
	}
	meta, _ := h.values["meta"].(map[string]any)
	meta = maps.Clone(meta)
	meta["nginx_online"], meta["nginx_err"] = complaint == "", nil
	if complaint != "" {
		meta["nginx_err"] = complaint
	}
	h.values["meta"] = meta
	h.updated = s.stamp()
	return true
}

// clean switches off in silence what makes no sense without a certificate.
func clean(h *row) {
	if h.values["certificate_id"] == 0 {
		h.values["ssl_forced"], h.values["http2_support"] = false, false
	}
	if !h.is("ssl_forced") {
		h.values["hsts_enabled"] = false
	}
	if !h.is("hsts_enabled") {
		h.values["hsts_subdomains"] = false
	}
}

// taken refuses a domain that another host has, whatever its case.
func (c *call) taken(in map[string]any, id int) reply {
	for _, name := range domains(in) {
		for _, h := range c.hosts {
			if h.id != id && !h.deleted && slices.ContainsFunc(names(h), func(n string) bool { return strings.EqualFold(n, name) }) {
				return invalid(name + " is already in use")
			}
		}
	}
	return reply{}
}

func names(h *row) []string { return domains(h.values) }

func domains(values map[string]any) []string {
	list, _ := values["domain_names"].([]any)
	out := []string{}
	for _, name := range list {
		s, _ := name.(string)
		out = append(out, s)
	}
	return out
}

// expand adds what the query asks for. A name that is none is a 500.
func (c *call) expand(h *row, deep bool) (map[string]any, reply) {
	out := h.show()
	for _, name := range strings.FieldsFunc(c.r.URL.Query().Get("expand"), func(r rune) bool { return r == ',' }) {
		part, below, nested := strings.Cut(name, ".")
		switch {
		case nested && (!deep || part != "access_list" || below != "clients" && below != "items"):
			return nil, broken()
		case part == "owner":
			out["owner"] = c.users[h.owner-1].show()
		case part == "certificate":
			out["certificate"] = nil
		case part == "access_list":
			out["access_list"] = c.listOf(h, below)
		default:
			return nil, broken()
		}
	}
	return out, reply{}
}

// whole is the row as a write answers it.
func (c *call) whole(h *row) map[string]any {
	out := h.show()
	out["owner"], out["certificate"], out["access_list"] = c.users[h.owner-1].show(), nil, c.listOf(h, "clients", "items")
	return out
}

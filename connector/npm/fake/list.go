package fake

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// client is one line of an access list.
type client struct {
	allow bool
	from  netip.Prefix
}

func clientsOf(l *row) []client {
	list := []client{}
	for _, v := range l.values["clients"].([]any) {
		c := v.(map[string]any)
		text := c["address"].(string)
		if text == "all" {
			text = "0.0.0.0/0"
		}
		p, err := netip.ParsePrefix(text)
		if a, bad := netip.ParseAddr(text); bad == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err == nil {
			list = append(list, client{c["directive"] == "allow", p})
		}
	}
	return list
}

func (c *call) accessLists() reply {
	if c.user == nil || !c.user.may(c.user.AccessLists, "view") {
		return c.nowhere()
	}
	list := []any{}
	for _, l := range c.lists {
		if !l.deleted && c.user.sees(l) {
			list = append(list, c.showList(l))
		}
	}
	slices.SortStableFunc(list, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
	})
	return ok(list)
}

// showList is a list by itself: with a count, without its clients.
func (c *call) showList(l *row) map[string]any {
	out := l.show()
	delete(out, "clients")
	delete(out, "items")
	n := 0
	for _, h := range c.hosts {
		if !h.deleted && h.number("access_list_id") == l.id {
			n++
		}
	}
	out["proxy_host_count"] = n
	return out
}

// listOf is the access list of a host, nil when the id points to none: then the host is public.
func (c *call) listOf(h *row, with ...string) any {
	for _, l := range c.lists {
		if l.id == h.number("access_list_id") && !l.deleted {
			out := l.show()
			out["is_deleted"] = false
			for _, name := range []string{"clients", "items"} {
				if !slices.Contains(with, name) {
					delete(out, name)
				}
			}
			return out
		}
	}
	return nil
}

func (c *call) createList() reply {
	entry := rule{kind: "object", closed: true, members: []member{{"address", rule{kind: "string"}},
		{"directive", rule{kind: "string", enum: []string{"allow", "deny"}}}}}
	login := rule{kind: "object", closed: true, members: []member{{"username", rule{kind: "string", least: 1}},
		{"password", rule{kind: "string"}}}}
	in, problem := validate(rule{kind: "object", closed: true, required: []string{"name"}, members: []member{
		{"name", rule{kind: "string", least: 1}}, {"satisfy_any", rule{kind: "boolean"}},
		{"pass_auth", rule{kind: "boolean"}}, {"items", rule{kind: "array", items: &login}},
		{"clients", rule{kind: "array", items: &entry}}}}, c.body)
	switch {
	case problem != "":
		return invalid(problem)
	case c.user == nil || !c.user.may(c.user.AccessLists, "manage"):
		return c.nowhere()
	}
	id, now := len(c.lists)+1, c.stamp()
	clients, _ := in["clients"].([]any)
	for i, v := range clients {
		entry := v.(map[string]any)
		entry["id"], entry["access_list_id"], entry["meta"] = i+1, id, map[string]any{}
		entry["created_on"], entry["modified_on"] = now, now
	}
	l := &row{id: id, owner: c.user.id, created: now, updated: now, values: map[string]any{"name": in["name"],
		"meta": map[string]any{}, "satisfy_any": in["satisfy_any"] == true, "pass_auth": in["pass_auth"] == true,
		"items": []any{}, "clients": append([]any{}, clients...)}}
	c.lists = append(c.lists, l)
	c.record("created", "access-list", l)
	out := c.showList(l)
	owner := c.user.show()
	owner["is_deleted"] = false
	out["owner"], out["items"], out["clients"], out["proxy_hosts"] = owner, l.values["items"], l.values["clients"], []any{}
	return reply{http.StatusCreated, out}
}

// deleteList sets its hosts to no list. What nginx serves for them stays as it was until they are saved again.
func (c *call) deleteList(part string) reply {
	id, answer := numberOf(part)
	if answer.status != 0 {
		return answer
	}
	if c.user == nil || !c.user.may(c.user.AccessLists, "manage") {
		return c.nowhere()
	}
	l := c.find(c.lists, id)
	if l == nil {
		return missing(part)
	}
	l.deleted = true
	for _, h := range c.hosts {
		if h.number("access_list_id") == id {
			h.values["access_list_id"] = 0
		}
	}
	c.record("deleted", "access-list", l)
	return ok(true)
}

package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
)

// prefixOf reads a stored network or address; what is stored has been parsed before.
func prefixOf(o *object, name string) netip.Prefix {
	p, _ := netip.ParsePrefix(o.str(name))
	return p
}

// parsePrefix reads what netaddr's IPNetwork reads; an address alone is a host with a full mask.
func parsePrefix(v any) (netip.Prefix, bool) {
	s, _ := v.(string)
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, true
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// network is a prefix whose host bits are zero.
func network(name string) field {
	return field{name: name, parse: func(_ *call, v any) (any, []any) {
		p, ok := parsePrefix(v)
		switch {
		case v == "":
			return wrong("This field may not be blank.")
		case !ok:
			return wrong("Invalid IP prefix format: %s", pythonStr(v))
		case p != p.Masked():
			return wrong("%s is not a valid prefix. Did you mean %s?", p, p.Masked())
		}
		return p.String(), nil
	}}
}

// address is an address with a mask.
func address(name string) field {
	return field{name: name, parse: func(_ *call, v any) (any, []any) {
		p, ok := parsePrefix(v)
		switch {
		case v == "":
			return wrong("This field may not be blank.")
		case !ok:
			return wrong("Invalid IP address format: %s", pythonStr(v))
		}
		return p.String(), nil
	}}
}

// enforced says whether a table refuses duplicates, and what the errors call it.
func (c *call) enforced(vrf int) (bool, string) {
	if v := c.tables["ipam.vrf"].find(vrf); v != nil {
		on, _ := v.values["enforce_unique"].(bool)
		return on, "VRF " + c.kinds["ipam.vrf"].repr(v)
	}
	return c.config.EnforceUnique, "global table"
}

func (c *call) checkPrefix(o *object) map[string]any {
	p := prefixOf(o, "prefix")
	if p.Bits() == 0 {
		return refuse("prefix", "Cannot create prefix with /0 mask.")
	}
	enforce, where := c.enforced(o.ref("vrf"))
	for _, other := range c.tables["ipam.prefix"].objects {
		if enforce && other.id != o.id && other.ref("vrf") == o.ref("vrf") && prefixOf(other, "prefix") == p {
			return refuse("prefix", fmt.Sprintf("Duplicate prefix found in %s: %s", where, p))
		}
	}
	return nil
}

// checkAddress refuses a host that is there already, whatever its mask, unless both have a role for shared addresses.
func (c *call) checkAddress(o *object) map[string]any {
	p := prefixOf(o, "address")
	if p.Bits() == 0 {
		return refuse("address", "Cannot create IP address with /0 mask.")
	}
	shared := func(o *object) bool {
		return slices.Contains([]string{"anycast", "vip", "vrrp", "hsrp", "glbp", "carp"}, o.str("role"))
	}
	enforce, where := c.enforced(o.ref("vrf"))
	for _, other := range c.tables["ipam.ipaddress"].objects {
		if enforce && other.id != o.id && other.ref("vrf") == o.ref("vrf") &&
			prefixOf(other, "address").Addr() == p.Addr() && !(shared(o) && shared(other)) {
			return refuse("address",
				fmt.Sprintf("Duplicate IP address found in %s: %s", where, prefixOf(other, "address")))
		}
	}
	return nil
}

func refuse(name, message string) map[string]any {
	return map[string]any{name: []any{message}}
}

// nesting counts the prefixes inside and around one, in its own table.
func (c *call) nesting(o *object) (children, depth int) {
	p := prefixOf(o, "prefix")
	for _, other := range c.tables["ipam.prefix"].objects {
		q := prefixOf(other, "prefix")
		if other.id == o.id || other.ref("vrf") != o.ref("vrf") {
			continue
		}
		if p.Contains(q.Addr()) && q.Bits() > p.Bits() {
			children++
		}
		if q.Contains(p.Addr()) && q.Bits() < p.Bits() {
			depth++
		}
	}
	return children, depth
}

// free lists up to most addresses of a prefix that nobody has, without the network's and broadcast's own.
func (c *call) free(o *object, most int) []netip.Addr {
	if utilized, _ := o.values["mark_utilized"].(bool); utilized {
		return nil
	}
	p := prefixOf(o, "prefix")
	taken := map[netip.Addr]bool{}
	for _, ip := range c.tables["ipam.ipaddress"].objects {
		if ip.ref("vrf") == o.ref("vrf") {
			taken[prefixOf(ip, "address").Addr()] = true
		}
	}
	pool, _ := o.values["is_pool"].(bool)
	edges := !pool && p.Addr().BitLen()-p.Bits() > 1
	list := []netip.Addr{}
	for a := p.Addr(); p.Contains(a) && len(list) < most; a = a.Next() {
		last := a.Is4() && !p.Contains(a.Next())
		if !taken[a] && !(edges && (a == p.Addr() || last)) {
			list = append(list, a)
		}
	}
	return list
}

// availableIPs lists free addresses, or takes as many as the request has objects, all or none. NetBox holds one lock
// over this and over every write of an address; here the server's own lock does it. The answer has no ETag.
func (c *call) availableIPs(m *model, id string) reply {
	ips := c.kinds["ipam.ipaddress"]
	if answer := c.permit(ips.kind); answer.status != 0 {
		return answer
	}
	parent := c.find(m, id)
	if parent == nil {
		return missing(m)
	}
	mask := prefixOf(parent, "prefix").Bits()
	switch c.r.Method {
	case http.MethodGet, http.MethodHead:
		list := []any{}
		for _, a := range c.free(parent, c.limit()) {
			list = append(list, map[string]any{"family": family(a)["value"], "vrf": c.nested("ipam.vrf", parent.ref("vrf")),
				"address": netip.PrefixFrom(a, mask).String()})
		}
		return reply{status: http.StatusOK, body: list}
	case http.MethodPost:
	default:
		return notAllowed(c.r.Method)
	}
	items, isList, answer := c.body()
	if answer.status != 0 {
		return answer
	}
	found := c.free(parent, len(items))
	if len(found) < len(items) {
		return detail(http.StatusConflict, "Insufficient resources are available to satisfy the request")
	}
	for i, item := range items {
		bits := mask
		if n, ok := whole(item["prefix_length"]); ok {
			bits = n
		}
		item["address"], item["vrf"] = fmt.Sprintf("%s/%d", found[i], bits), nil
		if vrf := parent.ref("vrf"); vrf != 0 {
			item["vrf"] = json.Number(strconv.Itoa(vrf))
		}
	}
	answer = c.createAll(ips, items, isList)
	answer.etag = ""
	return answer
}

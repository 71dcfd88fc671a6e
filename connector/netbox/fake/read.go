package fake

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (c *call) find(m *model, id string) *object {
	n, ok := parseID(id)
	if !ok {
		return nil
	}
	if o := c.tables[m.kind].find(n); o != nil && c.allows(m, o) {
		return o
	}
	return nil
}

func missing(m *model) reply {
	return detail(http.StatusNotFound, "No %s matches the given query.", m.name)
}

// many serves the URL of a list.
func (c *call) many(m *model) reply {
	switch {
	case c.safe():
		return c.list(m)
	case m.records:
		return notAllowed(c.r.Method)
	case c.r.Method == http.MethodPost:
		items, isList, answer := c.body()
		if answer.status != 0 {
			return answer
		}
		return c.createAll(m, items, isList)
	}
	return c.bulk(m)
}

// list answers one page. start is a cursor over ids, without a count; limit and offset can repeat or skip objects
// when the table changes between two pages.
func (c *call) list(m *model) reply {
	q := c.r.URL.Query()
	kept := []*object{}
	for _, o := range c.tables[m.kind].objects {
		if c.allows(m, o) && c.selects(m, o, q) {
			kept = append(kept, o)
		}
	}
	limit := c.limit()
	if q.Has("start") {
		return c.cursor(m, kept, q, limit)
	}
	c.sort(m, kept, q.Get("ordering"))
	offset := max(number(q, "offset"), 0)
	page := kept[min(offset, len(kept)):min(offset+limit, len(kept))]
	body := map[string]any{"count": len(kept), "next": nil, "previous": nil, "results": c.renderAll(m, page)}
	link := func(offset int) string {
		q.Set("limit", strconv.Itoa(limit))
		q.Del("offset")
		if offset > 0 {
			q.Set("offset", strconv.Itoa(offset))
		}
		return c.base + c.r.URL.Path + "?" + q.Encode()
	}
	if offset+limit < len(kept) {
		body["next"] = link(offset + limit)
	}
	if offset > 0 {
		body["previous"] = link(offset - limit)
	}
	return reply{status: http.StatusOK, body: body}
}

func (c *call) cursor(m *model, kept []*object, q url.Values, limit int) reply {
	if q.Has("ordering") || q.Has("offset") {
		return detail(http.StatusBadRequest, "start cannot be combined with ordering or offset.")
	}
	start := number(q, "start")
	kept = slices.DeleteFunc(kept, func(o *object) bool { return o.id < start })
	body := map[string]any{"count": nil, "next": nil, "previous": nil,
		"results": c.renderAll(m, kept[:min(limit, len(kept))])}
	if len(kept) > limit {
		q.Set("start", strconv.Itoa(kept[limit].id))
		q.Set("limit", strconv.Itoa(limit))
		body["next"] = c.base + c.r.URL.Path + "?" + q.Encode()
	}
	return reply{status: http.StatusOK, body: body}
}

// limit is how many objects a request gets: 0 asks for the most there is, nonsense is the default.
func (c *call) limit() int {
	q := c.r.URL.Query()
	n := number(q, "limit")
	switch {
	case !q.Has("limit") || n < 0:
		return min(c.config.PageSize, c.config.MaxPageSize)
	case n == 0:
		return c.config.MaxPageSize
	}
	return min(n, c.config.MaxPageSize)
}

// number reads a query parameter, -1 when it is none.
func number(q url.Values, name string) int {
	n, err := strconv.Atoi(q.Get(name))
	if err != nil {
		return -1
	}
	return n
}

func (c *call) sort(m *model, list []*object, by string) {
	name, down := strings.CutPrefix(by, "-")
	f := m.field(name)
	switch {
	case f != nil:
		slices.SortStableFunc(list, func(a, b *object) int { return strings.Compare(a.str(name), b.str(name)) })
	case m.order != nil && name != "id":
		slices.SortStableFunc(list, m.order)
	}
	if down {
		slices.Reverse(list)
	}
}

// selects applies the filters. Values of one name are alternatives, names are joined; a name that NetBox does not
// know is ignored in silence, so that a misspelt filter selects everything.
func (c *call) selects(m *model, o *object, q url.Values) bool {
	for name, values := range q {
		if !slices.ContainsFunc(values, func(v string) bool { return c.passes(m, o, name, v) }) {
			return false
		}
	}
	return true
}

func (c *call) passes(m *model, o *object, name, v string) bool {
	switch {
	case slices.Contains([]string{"limit", "offset", "start", "ordering", "brief", "fields", "omit"}, name):
		return true
	case name == "id":
		return strconv.Itoa(o.id) == v
	case name == "q":
		return strings.Contains(strings.ToLower(m.repr(o)+" "+o.str("description")), strings.ToLower(v))
	case name == "tag" && m.tagged:
		return slices.ContainsFunc(o.tags(), func(id int) bool { return c.tables["extras.tag"].find(id).str("slug") == v })
	case name == "parent" && m.kind == "ipam.ipaddress":
		p, ok := parsePrefix(v)
		return ok && p.Masked().Contains(prefixOf(o, "address").Addr())
	case name == "address" && m.kind == "ipam.ipaddress":
		return sameAddress(prefixOf(o, "address"), v)
	case name == "prefix" && m.kind == "ipam.prefix":
		p, ok := parsePrefix(v)
		return ok && p.Masked() == prefixOf(o, "prefix")
	case name == "contains" && m.kind == "ipam.prefix":
		p, ok := parsePrefix(v)
		return ok && prefixOf(o, "prefix").Contains(p.Addr()) && prefixOf(o, "prefix").Bits() <= p.Bits()
	case m.records && o.values[name] != nil, m.field(name) != nil && m.field(name).to == "":
		return pythonStr(o.values[name]) == v
	}
	return c.refers(m, o, name, v)
}

// refers applies a filter on what an object points to: by id ("vrf_id", with null for none), or by slug ("site").
func (c *call) refers(m *model, o *object, name, v string) bool {
	member, byID := strings.CutSuffix(name, "_id")
	f := m.field(member)
	switch {
	case f == nil || f.to == "" || c.tables[f.to] == nil:
		return true
	case byID:
		return v == "null" && o.ref(member) == 0 || strconv.Itoa(o.ref(member)) == v
	}
	to := c.tables[f.to].find(o.ref(member))
	return to != nil && to.str("slug") == v
}

// sameAddress compares with the mask when one is given, and without it otherwise.
func sameAddress(have netip.Prefix, v string) bool {
	if a, err := netip.ParseAddr(v); err == nil {
		return a == have.Addr()
	}
	p, ok := parsePrefix(v)
	return ok && p == have
}

func (c *call) renderAll(m *model, list []*object) []any {
	out := []any{}
	for _, o := range list {
		out = append(out, c.selected(m, c.render(m, o)))
	}
	return out
}

// selected cuts an object to the members the query asks for.
func (c *call) selected(m *model, full map[string]any) map[string]any {
	q := c.r.URL.Query()
	var keep []string
	switch {
	case q.Get("fields") != "":
		keep = strings.Split(q.Get("fields"), ",")
	case q.Get("omit") != "":
		for _, name := range strings.Split(q.Get("omit"), ",") {
			delete(full, name)
		}
		return full
	case q.Get("brief") != "":
		keep = m.brief
	default:
		return full
	}
	return pick(full, keep)
}

func pick(full map[string]any, names []string) map[string]any {
	out := map[string]any{}
	for _, name := range names {
		if v, ok := full[name]; ok {
			out[name] = v
		}
	}
	return out
}

// render is the object as the API shows it.
func (c *call) render(m *model, o *object) map[string]any {
	id := strconv.Itoa(o.id)
	out := map[string]any{"id": o.id, "display": m.repr(o),
		"url": c.base + "/api/" + m.path + "/" + id + "/", "display_url": c.base + "/" + m.path + "/" + id + "/"}
	for _, f := range m.fields {
		out[f.name] = c.shown(f, o)
	}
	if m.tagged {
		tags := []any{}
		for _, tag := range o.tags() {
			tags = append(tags, c.nested("extras.tag", tag))
		}
		out["tags"], out["custom_fields"] = tags, map[string]any{}
	}
	if !m.records {
		out["created"], out["last_updated"] = stamp(o.created), stamp(o.updated)
	}
	if m.show != nil {
		m.show(c, o, out)
	}
	return out
}

func (c *call) shown(f field, o *object) any {
	v := o.values[f.name]
	switch {
	case f.name == "nat_inside":
		if inside := c.tables[f.to].find(o.ref(f.name)); inside != nil {
			return c.natView(inside)
		}
		return nil
	case f.to != "":
		return c.nested(f.to, o.ref(f.name))
	case f.choices != nil:
		for _, choice := range f.choices {
			if choice.value == v {
				return map[string]any{"value": choice.value, "label": choice.label}
			}
		}
		return nil
	}
	return v
}

// nested is how one object stands inside another: nil for none.
func (c *call) nested(kind string, id int) any {
	m := c.kinds[kind]
	if m == nil || c.tables[kind].find(id) == nil {
		return nil
	}
	return pick(c.render(m, c.tables[kind].find(id)), m.brief)
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000Z") }

func (c *call) count(kind, name string, id int) int {
	n := 0
	for _, o := range c.tables[kind].objects {
		if o.ref(name) == id {
			n++
		}
	}
	return n
}

// tagged counts the objects that carry a tag.
func (c *call) tagged(id int) int {
	n := 0
	for _, t := range c.tables {
		for _, o := range t.objects {
			if slices.Contains(o.tags(), id) {
				n++
			}
		}
	}
	return n
}

func (c *call) natOutside(id int) []any {
	out := []any{}
	for _, o := range c.tables["ipam.ipaddress"].objects {
		if o.ref("nat_inside") == id {
			out = append(out, c.natView(o))
		}
	}
	return out
}

// natView is the short form that addresses use for one another; it does not follow their own NAT.
func (c *call) natView(o *object) map[string]any {
	id, p := strconv.Itoa(o.id), prefixOf(o, "address")
	return map[string]any{"id": o.id, "url": c.base + "/api/ipam/ip-addresses/" + id + "/",
		"display_url": c.base + "/ipam/ip-addresses/" + id + "/", "display": p.String(),
		"family": family(p.Addr())["value"], "address": p.String()}
}

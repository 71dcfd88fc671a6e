package fake

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// one serves the URL of a single object.
func (c *call) one(m *model, id string) reply {
	if m.records && !c.safe() || c.r.Method == http.MethodPost {
		return notAllowed(c.r.Method)
	}
	o := c.find(m, id)
	if o == nil {
		return missing(m)
	}
	if c.safe() {
		answer := reply{status: http.StatusOK, body: c.selected(m, c.render(m, o))}
		if !m.records {
			answer.etag = o.etag()
		}
		return answer
	}
	if want := c.r.Header.Get("If-Match"); want != "" && want != "*" {
		given := strings.Split(want, ",")
		if !slices.ContainsFunc(given, func(e string) bool { return strings.TrimSpace(e) == o.etag() }) {
			answer := detail(http.StatusPreconditionFailed, "Precondition failed.")
			answer.etag = o.etag()
			return answer
		}
	}
	if c.r.Method == http.MethodDelete {
		message, answer := c.deleteMessage()
		if answer.status != 0 {
			return answer
		}
		if answer = c.remove(m, o, message); answer.status != 0 {
			return answer
		}
		return reply{status: http.StatusNoContent}
	}
	items, isList, answer := c.body()
	if answer.status != 0 {
		return answer
	}
	if isList {
		return invalid("non_field_errors", "Invalid data. Expected a dictionary, but got list.")
	}
	changed, answer := c.update(m, o, items[0], c.r.Method == http.MethodPatch)
	if answer.status != 0 {
		return answer
	}
	return reply{status: http.StatusOK, etag: changed.etag(), body: c.render(m, changed)}
}

// deleteMessage reads the changelog_message that a DELETE may carry.
func (c *call) deleteMessage() (string, reply) {
	raw, _ := io.ReadAll(c.r.Body)
	if len(bytes.TrimSpace(raw)) == 0 {
		return "", reply{}
	}
	var in struct {
		Message string `json:"changelog_message"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return "", detail(http.StatusBadRequest, "JSON parse error - %s", err)
	}
	return in.Message, reply{}
}

// bulk changes or deletes many objects at the URL of the list, all or none. It wants a list: the URL is also where a
// client lands that lost the id of its object.
func (c *call) bulk(m *model) reply {
	items, isList, answer := c.body()
	if answer.status != 0 {
		return answer
	}
	if !isList {
		return invalid("non_field_errors", `Expected a list of items but got type "dict".`)
	}
	changed, problems, bad := []any{}, []any{}, false
	for _, item := range items {
		id, ok := whole(item["id"])
		if !ok {
			problems, bad = append(problems, map[string]any{"id": []any{"This field is required."}}), true
			continue
		}
		o := c.tables[m.kind].find(id)
		if o == nil || !c.allows(m, o) { // passed over in silence
			continue
		}
		if c.r.Method == http.MethodDelete {
			message, _ := item["changelog_message"].(string)
			answer = c.remove(m, o, message)
		} else if o, answer = c.update(m, o, item, c.r.Method == http.MethodPatch); answer.status == 0 {
			changed = append(changed, c.render(m, o))
		}
		fields, ofFields := answer.body.(map[string]any)
		switch {
		case answer.status == 0:
			problems = append(problems, map[string]any{})
		case answer.status == http.StatusBadRequest && ofFields && fields["detail"] == nil:
			problems, bad = append(problems, fields), true
		default:
			return answer
		}
	}
	switch {
	case bad:
		return reply{status: http.StatusBadRequest, body: problems}
	case c.r.Method == http.MethodDelete:
		return reply{status: http.StatusNoContent}
	}
	return reply{status: http.StatusOK, body: changed}
}

// createAll makes one object, or a list of them all or none; a list's errors come as a list, in its order.
func (c *call) createAll(m *model, items []map[string]any, isList bool) reply {
	made, problems, bad := []any{}, []any{}, false
	for _, item := range items {
		o, answer := c.create(m, item)
		fields, ofFields := answer.body.(map[string]any)
		switch {
		case answer.status == 0 && !isList:
			return reply{status: http.StatusCreated, etag: o.etag(), body: c.render(m, o)}
		case answer.status == 0:
			made, problems = append(made, c.render(m, o)), append(problems, map[string]any{})
		case isList && answer.status == http.StatusBadRequest && ofFields && fields["detail"] == nil:
			problems, bad = append(problems, fields), true
		default:
			return answer
		}
	}
	if bad {
		return reply{status: http.StatusBadRequest, body: problems}
	}
	return reply{status: http.StatusCreated, body: made}
}

func (c *call) create(m *model, in map[string]any) (*object, reply) {
	values, problems := c.decode(m, in, nil, false)
	if problems != nil {
		return nil, reply{status: http.StatusBadRequest, body: problems}
	}
	o := c.fresh(m, values)
	return o, c.commit(m, nil, o, in)
}

func (c *call) update(m *model, old *object, in map[string]any, partial bool) (*object, reply) {
	values, problems := c.decode(m, in, old, partial)
	if problems != nil {
		return nil, reply{status: http.StatusBadRequest, body: problems}
	}
	o := &object{id: old.id, values: maps.Clone(old.values), created: old.created, updated: c.tick()}
	maps.Copy(o.values, values)
	return o, c.commit(m, old, o, in)
}

// decode reads the members of a body that the model knows; all others are ignored in silence.
func (c *call) decode(m *model, in map[string]any, old *object, partial bool) (values, problems map[string]any) {
	values, problems = map[string]any{}, map[string]any{}
	for _, f := range m.fields {
		v, given := in[f.name]
		switch {
		case !given && f.required && !partial:
			problems[f.name] = []any{"This field is required."}
		case !given:
		case v == nil && f.null:
			values[f.name] = f.def
		case v == nil:
			problems[f.name] = []any{"This field may not be null."}
		default:
			parsed, problem := f.parse(c, v)
			if problem == nil && f.unique != "" && c.taken(m, f.name, parsed, old) {
				problem = []any{f.unique}
			}
			if problem != nil {
				problems[f.name] = problem
				continue
			}
			values[f.name] = parsed
		}
	}
	if m.tagged {
		c.decodeTags(in, old, values, problems)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return values, nil
}

func (c *call) taken(m *model, name string, v any, old *object) bool {
	return slices.ContainsFunc(c.tables[m.kind].objects, func(o *object) bool {
		return (old == nil || o.id != old.id) && o.values[name] == v
	})
}

// decodeTags reads tags, which replaces the whole set, and add_tags and remove_tags, which do not.
func (c *call) decodeTags(in map[string]any, old *object, values, problems map[string]any) {
	lists := map[string][]int{}
	for _, name := range []string{"tags", "add_tags", "remove_tags"} {
		if v, given := in[name]; given {
			ids, problem := tagList(c, v)
			if problem != nil {
				problems[name] = problem
			}
			lists[name] = ids
		}
	}
	add, remove := lists["add_tags"], lists["remove_tags"]
	twice := slices.ContainsFunc(add, func(id int) bool { return slices.Contains(remove, id) })
	switch {
	case (len(add) > 0 || len(remove) > 0) && len(lists["tags"]) > 0:
		problems["tags"] = []any{"tags may not be combined with add_tags or remove_tags."}
	case len(remove) > 0 && old == nil:
		problems["remove_tags"] = []any{"remove_tags may not be used when creating an object."}
	case twice:
		problems["remove_tags"] = []any{"A tag may not be in both add_tags and remove_tags."}
	}
	ids, whole := lists["tags"]
	if !whole && old != nil {
		ids = slices.Clone(old.tags())
	}
	for _, id := range add {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	values["tags"] = slices.DeleteFunc(ids, func(id int) bool { return slices.Contains(remove, id) })
}

// commit validates the object as a whole, stores it and writes the change record, also when nothing is different.
func (c *call) commit(m *model, old, o *object, in map[string]any) reply {
	if custom, _ := in["custom_fields"].(map[string]any); len(custom) > 0 {
		name := slices.Sorted(maps.Keys(custom))[0]
		return invalid("__all__", "Unknown field name '"+name+"' in custom field data.")
	}
	if m.check != nil {
		if problems := m.check(c, o); problems != nil {
			return reply{status: http.StatusBadRequest, body: problems}
		}
	}
	for _, id := range o.tags() {
		tag := c.tables["extras.tag"].find(id)
		types, _ := tag.values["object_types"].([]any)
		if len(types) > 0 && !slices.Contains(types, any(m.kind)) {
			_, kind, _ := strings.Cut(m.kind, ".")
			return detail(http.StatusBadRequest, "Tag %s cannot be assigned to %s objects.", tag.str("name"), kind)
		}
	}
	if answer := c.mayWrite(); answer.status != 0 {
		return answer
	}
	if !c.allows(m, o) {
		return forbidden()
	}
	c.tables[m.kind].put(o)
	message, _ := in["changelog_message"].(string)
	c.record(m, old, o, message)
	return reply{}
}

// remove deletes an object, unless others would lose what they point to.
func (c *call) remove(m *model, o *object, message string) reply {
	dependents := []string{}
	for _, other := range c.models {
		for _, f := range other.fields {
			for _, d := range c.tables[other.kind].objects {
				if f.protect && f.to == m.kind && d.ref(f.name) == o.id {
					dependents = append(dependents, other.repr(d)+" ("+pythonStr(d.id)+")")
				}
			}
		}
	}
	if n := len(dependents); n > 0 {
		return detail(http.StatusConflict, "Unable to delete object. %d dependent objects were found: %s", n,
			strings.Join(dependents, ", "))
	}
	if answer := c.mayWrite(); answer.status != 0 {
		return answer
	}
	c.tables[m.kind].drop(o.id)
	if m.kind == "extras.tag" {
		c.untag(o.id)
	}
	c.record(m, o, nil, message)
	return reply{}
}

// untag takes a deleted tag off everything that carries it.
func (c *call) untag(id int) {
	for _, t := range c.tables {
		for _, o := range slices.Clone(t.objects) {
			if slices.Contains(o.tags(), id) {
				left := *o
				left.values = maps.Clone(o.values)
				left.values["tags"] = slices.DeleteFunc(slices.Clone(o.tags()), func(t int) bool { return t == id })
				t.put(&left)
			}
		}
	}
}

// mayWrite refuses in maintenance mode: the database is read-only then, so it is the last thing found out.
func (c *call) mayWrite() reply {
	if !c.config.Maintenance {
		return reply{}
	}
	return reply{status: http.StatusServiceUnavailable, body: map[string]any{
		"error": "NetBox is currently operating in maintenance mode and is unable to perform write operations. " +
			"Please try again later.",
		"exception": "InternalError", "netbox_version": "4.6.8", "python_version": "3.12.3",
	}}
}

func invalid(name, message string) reply {
	return reply{status: http.StatusBadRequest, body: map[string]any{name: []any{message}}}
}

// body reads a JSON object, or a list of them.
func (c *call) body() (items []map[string]any, isList bool, answer reply) {
	if t := c.r.Header.Get("Content-Type"); !strings.HasPrefix(t, "application/json") {
		return nil, false, detail(http.StatusUnsupportedMediaType, "Unsupported media type \"%s\" in request.", t)
	}
	d := json.NewDecoder(c.r.Body)
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false, detail(http.StatusBadRequest, "JSON parse error - %s", err)
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, isList, invalid("non_field_errors",
				"Invalid data. Expected a dictionary, but got "+pythonType(item)+".")
		}
		items = append(items, fields)
	}
	return items, isList, reply{}
}

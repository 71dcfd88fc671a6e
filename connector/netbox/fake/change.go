package fake

import (
	"maps"
	"slices"
)

// changeModel is the log of changes, which is read like any other table.
func changeModel() *model {
	return &model{
		path: "core/object-changes", name: "ObjectChange", kind: "core.objectchange", records: true,
		repr: func(o *object) string { return o.str("changed_object_type") + " " + o.str("object_repr") },
		show: (*call).showChange,
	}
}

// record writes what a change did: by whom, in which request, and the object before and after. Without the record
// nobody could tell later who made a change; a client reads it by the X-Request-ID of its own answer.
func (c *call) record(m *model, before, after *object, message string) {
	action, subject := "update", after
	switch {
	case before == nil:
		action = "create"
	case after == nil:
		action, subject = "delete", before
	}
	log := c.kinds["core.objectchange"]
	c.tables[log.kind].put(c.fresh(log, map[string]any{
		"action": action, "user_name": c.token.User, "user": c.userID(), "request_id": c.id, "message": message,
		"changed_object_type": m.kind, "changed_object_id": subject.id, "object_repr": m.repr(subject),
		"prechange_data": c.logged(before), "postchange_data": c.logged(after),
	}))
}

// logged is an object as the log keeps it: stored values, references by id, tags by name.
func (c *call) logged(o *object) any {
	if o == nil {
		return nil
	}
	out := maps.Clone(o.values)
	out["created"] = stamp(o.created)
	if _, tagged := o.values["tags"]; tagged {
		names := []string{}
		for _, id := range o.tags() {
			names = append(names, c.tables["extras.tag"].find(id).str("name"))
		}
		slices.Sort(names)
		out["tags"] = names
	}
	return out
}

func (c *call) userID() int {
	return 1 + slices.IndexFunc(c.config.Tokens, func(t Token) bool { return t.User == c.token.User })
}

func (c *call) showChange(o *object, out map[string]any) {
	for _, name := range []string{"user_name", "request_id", "changed_object_type", "changed_object_id", "object_repr",
		"message", "prechange_data", "postchange_data"} {
		out[name] = o.values[name]
	}
	user := pythonStr(o.ref("user"))
	out["user"] = map[string]any{"id": o.ref("user"), "url": c.base + "/api/users/users/" + user + "/",
		"display": o.str("user_name"), "username": o.str("user_name")}
	out["action"] = map[string]any{"value": o.str("action"), "label": map[string]string{"create": "Created",
		"update": "Updated", "delete": "Deleted"}[o.str("action")]}
	out["time"] = stamp(o.created)
	out["changed_object"] = c.nested(o.str("changed_object_type"), o.ref("changed_object_id"))
}

package fake

import (
	"maps"
	"slices"
	"time"
)

// object is one row. It is never changed in place: an update puts a new one in its stead, so that a snapshot of the
// tables is a copy of their slices.
type object struct {
	id      int
	values  map[string]any // string, bool, int, nil; a reference is an id, tags are ids
	created time.Time
	updated time.Time
}

// etag is what NetBox calls the version of an object. Python writes the time zone as +00:00, the body of the same
// answer says Z: a client that builds the one from the other never matches.
func (o *object) etag() string {
	layout := "2006-01-02T15:04:05.000000+00:00"
	if o.updated.Nanosecond() == 0 {
		layout = "2006-01-02T15:04:05+00:00"
	}
	return `W/"` + o.updated.Format(layout) + `"`
}

func (o *object) str(name string) string {
	s, _ := o.values[name].(string)
	return s
}

// ref returns the id a reference holds, 0 for none.
func (o *object) ref(name string) int {
	id, _ := o.values[name].(int)
	return id
}

func (o *object) tags() []int {
	ids, _ := o.values["tags"].([]int)
	return ids
}

// table keeps the objects of one model by age. Ids are never used twice.
type table struct {
	last    int
	objects []*object
}

func (t *table) find(id int) *object {
	i := slices.IndexFunc(t.objects, func(o *object) bool { return o.id == id })
	if i < 0 {
		return nil
	}
	return t.objects[i]
}

func (t *table) put(o *object) {
	if i := slices.IndexFunc(t.objects, func(old *object) bool { return old.id == o.id }); i >= 0 {
		t.objects[i] = o
		return
	}
	t.objects = append(t.objects, o)
}

func (t *table) drop(id int) {
	t.objects = slices.DeleteFunc(t.objects, func(o *object) bool { return o.id == id })
}

// snapshot copies everything a transaction may change.
func (s *Server) snapshot() map[string]*table {
	was := map[string]*table{}
	for kind, t := range s.tables {
		was[kind] = &table{last: t.last, objects: slices.Clone(t.objects)}
	}
	return was
}

// restore rolls a transaction back. As in PostgreSQL, ids it used stay used.
func (s *Server) restore(was map[string]*table) {
	for kind, t := range was {
		t.last = max(t.last, s.tables[kind].last)
	}
	s.tables = was
}

// fresh makes an object with the model's defaults, and an id of its own, without storing it.
func (s *Server) fresh(m *model, values map[string]any) *object {
	t, now := s.tables[m.kind], s.tick()
	t.last++
	full := map[string]any{}
	for _, f := range m.fields {
		full[f.name] = f.def
	}
	maps.Copy(full, values)
	return &object{id: t.last, values: full, created: now, updated: now}
}

// demo fills the tables with a small world for demonstrations and tests.
func (s *Server) demo() {
	make := func(kind string, values map[string]any) *object {
		o := s.fresh(s.kinds[kind], values)
		s.tables[kind].put(o)
		return o
	}
	tag := make("extras.tag", map[string]any{"name": "managed", "slug": "managed", "color": "4caf50"})
	site := make("dcim.site", map[string]any{"name": "Lab", "slug": "lab", "status": "active"})
	make("ipam.prefix", map[string]any{"prefix": "192.0.2.0/24", "status": "active", "description": "Lab network"})
	make("ipam.ipaddress", map[string]any{"address": "192.0.2.1/24", "status": "active", "dns_name": "gw.lab.example",
		"tags": []int{tag.id}})
	make("virtualization.virtualmachine", map[string]any{"name": "web-1", "status": "active", "site": site.id,
		"vcpus": 2.0, "memory": 2048, "tags": []int{tag.id}})
}

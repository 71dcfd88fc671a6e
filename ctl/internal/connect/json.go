package connect

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"
)

// asJSON is JSON, which most clients let have comments and trailing commas.
type asJSON struct{}

func (asJSON) parse(text []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	standard, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal(standard, &out); err != nil {
		return nil, err
	}
	return out, nil
}

func (asJSON) edit(text []byte, s Setting) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	tree, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	at, indent := &tree, "\n"
	for _, name := range s.Path {
		object, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, errOther
		}
		indent += step
		at = member(object, name, indent)
	}
	if !s.Among {
		if err := put(at, s.Value, indent); err != nil {
			return nil, err
		}
		return tree.Pack(), nil
	}
	list, ok := at.Value.(*hujson.Array)
	if !ok { // member has just made it
		list = &hujson.Array{}
		at.Value = list
	}
	var have []any
	for _, e := range list.Elements {
		var v any
		standard, err := hujson.Standardize(e.Pack())
		if err == nil {
			err = json.Unmarshal(standard, &v)
		}
		if err != nil {
			return nil, err
		}
		have = append(have, v)
	}
	for _, v := range s.missing(have) {
		var last *hujson.Value
		if n := len(list.Elements); n > 0 {
			last = &list.Elements[n-1]
		}
		before, after := between(last, &list.AfterExtra, indent+step)
		element := hujson.Value{BeforeExtra: before, AfterExtra: after}
		if err := put(&element, v, indent+step); err != nil {
			return nil, err
		}
		list.Elements = append(list.Elements, element)
	}
	return tree.Pack(), nil
}

// member returns the value of an object's member, and makes an empty object of
// one that it lacks.
func member(object *hujson.Object, name, indent string) *hujson.Value {
	for i := len(object.Members) - 1; i >= 0; i-- {
		if literal, ok := object.Members[i].Name.Value.(hujson.Literal); ok && literal.String() == name {
			return &object.Members[i].Value
		}
	}
	var last *hujson.Value
	if n := len(object.Members); n > 0 {
		last = &object.Members[n-1].Value
	}
	before, after := between(last, &object.AfterExtra, indent)
	object.Members = append(object.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: before, Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: &hujson.Object{}, AfterExtra: after},
	})
	return &object.Members[len(object.Members)-1].Value
}

// between returns what stands before and after a new last part of an object or
// list: what stood behind the old last one, a comment to it for instance, stays
// with that, and a comma at the end stays one.
func between(last *hujson.Value, end *hujson.Extra, indent string) (before, after hujson.Extra) {
	before = hujson.Extra(strings.TrimRight(string(*end), " \t\r\n") + indent)
	*end = hujson.Extra(indent[:len(indent)-len(step)])
	if last != nil {
		last.AfterExtra, after = nil, last.AfterExtra
	}
	return before, after
}

// put makes a value of a place in the tree.
func put(at *hujson.Value, v any, indent string) error {
	tree, err := hujson.Parse(encoded(v, strings.TrimPrefix(indent, "\n")+step))
	if err != nil {
		return err
	}
	at.Value = tree.Value
	return nil
}

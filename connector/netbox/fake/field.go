package fake

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// field is one writable member of a model.
type field struct {
	name     string
	required bool
	null     bool
	unique   string // what is said of a value that another object has; empty allows it
	def      any
	choices  []choice
	to       string // kind of the model a reference points to
	protect  bool   // the object it points to cannot be deleted while this one exists
	// parse turns a JSON value into the stored one, or says what is wrong with it. It never sees null.
	parse func(c *call, v any) (any, []any)
}

type choice struct{ value, label string }

func wrong(format string, args ...any) (any, []any) {
	return nil, []any{fmt.Sprintf(format, args...)}
}

// text is a CharField: numbers are taken as text, blanks around it are cut.
func text(name string, most int) field {
	return field{name: name, def: "", parse: func(_ *call, v any) (any, []any) {
		s, ok := v.(string)
		if n, isNumber := v.(json.Number); isNumber {
			s, ok = n.String(), true
		}
		if !ok {
			return wrong("Not a valid string.")
		}
		s = strings.TrimSpace(s)
		if most > 0 && utf8.RuneCountInString(s) > most {
			return wrong("Ensure this field has no more than %d characters.", most)
		}
		return s, nil
	}}
}

// filled is a text field that may not be blank and must look like the pattern.
func filled(name string, most int, pattern, message string) field {
	f, inner, re := text(name, most), text(name, most).parse, regexp.MustCompile(pattern)
	f.parse = func(c *call, v any) (any, []any) {
		s, problem := inner(c, v)
		switch {
		case problem != nil:
			return nil, problem
		case s == "":
			return wrong("This field may not be blank.")
		case !re.MatchString(s.(string)):
			return wrong("%s", message)
		}
		return s, nil
	}
	return f
}

func boolean(name string, def bool) field {
	return field{name: name, def: def, parse: func(_ *call, v any) (any, []any) {
		switch v {
		case true, "true", "True", "1", json.Number("1"):
			return true, nil
		case false, "false", "False", "0", json.Number("0"):
			return false, nil
		}
		return wrong("Must be a valid boolean.")
	}}
}

func integer(name string, def any, least, most int) field {
	return field{name: name, def: def, null: def == nil, parse: func(_ *call, v any) (any, []any) {
		n, ok := whole(v)
		switch {
		case !ok:
			return wrong("A valid integer is required.")
		case n < least:
			return wrong("Ensure this value is greater than or equal to %d.", least)
		case n > most:
			return wrong("Ensure this value is less than or equal to %d.", most)
		}
		return n, nil
	}}
}

// whole reads an integer as Django does: a number, or text that is one.
func whole(v any) (int, bool) {
	text := ""
	switch v := v.(type) {
	case string:
		text = strings.TrimSpace(v)
	case json.Number:
		text = v.String()
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int(f), true
	}
	return 0, false
}

// choose is NetBox's ChoiceField: written as the bare value, read as {value, label}. What was read cannot be written
// back, which every restore of an export has to know.
func choose(name, def string, choices ...choice) field {
	return field{name: name, def: def, null: def == "", choices: choices, parse: func(_ *call, v any) (any, []any) {
		switch v := v.(type) {
		case map[string]any, []any:
			return wrong(`Value must be passed directly (e.g. "foo": 123); do not use a dictionary or list.`)
		case string:
			if v == "" && def == "" {
				return "", nil
			}
			if v == "" {
				return wrong("This field may not be blank.")
			}
			if slices.ContainsFunc(choices, func(c choice) bool { return c.value == v }) {
				return v, nil
			}
		}
		return wrong("%v is not a valid choice.", v)
	}}
}

// reference points to one object by its id, or by attributes that single it out. A kind that this fake has no table
// for behaves like an empty table.
func reference(name, to string) field {
	return field{name: name, to: to, null: true, protect: to == "ipam.vrf", parse: func(c *call, v any) (any, []any) {
		id, problem := c.related(to, v)
		if problem != "" {
			return nil, []any{problem}
		}
		return id, nil
	}}
}

func (c *call) related(kind string, v any) (int, string) {
	t := c.tables[kind]
	if t == nil {
		t = &table{}
	}
	if attributes, ok := v.(map[string]any); ok {
		var found []*object
		for _, o := range t.objects {
			if matches(o, attributes) {
				found = append(found, o)
			}
		}
		switch len(found) {
		case 0:
			return 0, "Related object not found using the provided attributes: " + pythonRepr(attributes)
		case 1:
			return found[0].id, ""
		}
		return 0, "Multiple objects match the provided attributes: " + pythonRepr(attributes)
	}
	id, ok := whole(v)
	if !ok {
		return 0, fmt.Sprintf("Related objects must be referenced by numeric ID or by dictionary of attributes. "+
			"Received an unrecognized value: %s", pythonStr(v))
	}
	if t.find(id) == nil {
		return 0, fmt.Sprintf("Related object not found using the provided numeric ID: %d", id)
	}
	return id, ""
}

func matches(o *object, attributes map[string]any) bool {
	for name, v := range attributes {
		if n, ok := whole(v); name == "id" && ok && n == o.id {
			continue
		}
		if have, ok := o.values[name].(string); !ok || any(have) != v {
			return false
		}
	}
	return len(attributes) > 0
}

// tagList reads the tags member. Its errors stand in a list of their own for each tag.
func tagList(c *call, v any) ([]int, []any) {
	list, ok := v.([]any)
	if !ok {
		return nil, []any{fmt.Sprintf(`Expected a list of items but got type "%s".`, pythonType(v))}
	}
	ids, problems, bad := []int{}, []any{}, false
	for _, item := range list {
		id, problem := c.related("extras.tag", item)
		if problem != "" {
			problems, bad = append(problems, []any{problem}), true
			continue
		}
		problems = append(problems, map[string]any{})
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if bad {
		return nil, problems
	}
	return ids, nil
}

// nothing is a field that this fake only ever holds empty: a value is refused as pointing to nothing.
func nothing(name, message string) field {
	return field{name: name, null: true, parse: func(_ *call, v any) (any, []any) {
		return wrong("%s", strings.ReplaceAll(message, "{}", pythonStr(v)))
	}}
}

// pythonRepr writes a flat dictionary the way Python prints it: NetBox puts it into its errors.
func pythonRepr(attributes map[string]any) string {
	parts := []string{}
	for name, v := range attributes {
		value := pythonStr(v)
		if _, isText := v.(string); isText {
			value = "'" + value + "'"
		}
		parts = append(parts, "'"+name+"': "+value)
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

func pythonStr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	}
	return fmt.Sprint(v)
}

func pythonType(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "dict"
	case []any:
		return "list"
	case bool:
		return "bool"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "float"
		}
		return "int"
	case nil:
		return "NoneType"
	}
	return "str"
}

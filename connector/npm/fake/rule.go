package fake

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rule is the little of JSON Schema that the API's bodies need. A value is coerced first, as the server's validator
// does it, and every error is told at once, in that validator's words and order.
type rule struct {
	kind        string // string, integer, boolean, array, object, certificate
	least, most int    // length, size or value; most 0 is none
	enum        []string
	pattern     string
	items       *rule
	members     []member
	required    []string
	closed      bool
}

type member struct {
	name string
	rule rule
}

// validate returns the coerced body, or the server's one sentence about everything that is wrong with it.
func validate(r rule, body map[string]any) (map[string]any, string) {
	problems := []string{}
	out := r.check("data", body, &problems)
	if len(problems) > 0 {
		return nil, strings.Join(problems, ", ")
	}
	return out.(map[string]any), ""
}

func (r rule) check(at string, v any, problems *[]string) any {
	say := func(format string, args ...any) any {
		*problems = append(*problems, at+" "+fmt.Sprintf(format, args...))
		return nil
	}
	switch r.kind {
	case "string":
		return r.text(v, say)
	case "integer":
		n, ok := integer(v)
		switch {
		case !ok:
			return say("must be integer")
		case n < r.least:
			return say("must be >= %d", r.least)
		case r.most > 0 && n > r.most:
			return say("must be <= %d", r.most)
		}
		return n
	case "certificate": // a number, or "new", which orders one
		if n, ok := integer(v); ok && n >= 0 {
			return n
		}
		if v == "new" {
			return v
		}
		say("must be integer")
		say("must match pattern %q", "^new$")
		return say("must match a schema in anyOf")
	case "boolean":
		switch v {
		case true, "true", 1.0:
			return true
		case false, "false", 0.0, nil:
			return false
		}
		return say("must be boolean")
	case "array":
		list, ok := v.([]any)
		if !ok {
			return say("must be array")
		}
		if len(list) < r.least {
			say("must NOT have fewer than %d items", r.least)
		}
		if r.most > 0 && len(list) > r.most {
			say("must NOT have more than %d items", r.most)
		}
		out := []any{}
		for i, item := range list {
			out = append(out, r.items.check(at+"/"+strconv.Itoa(i), item, problems))
		}
		if r.items.kind == "string" {
			for i := range out {
				if j := slices.Index(out[:i], out[i]); j >= 0 {
					say("must NOT have duplicate items (items ## %d and %d are identical)", j, i)
				}
			}
		}
		return out
	}
	return r.object(at, v, problems, say)
}

func (r rule) text(v any, say func(string, ...any) any) any {
	switch n := v.(type) {
	case float64:
		v = strconv.FormatFloat(n, 'f', -1, 64)
	case bool:
		v = strconv.FormatBool(n)
	case nil:
		v = ""
	}
	s, ok := v.(string)
	n := utf8.RuneCountInString(s)
	switch {
	case !ok:
		return say("must be string")
	case n < r.least:
		return say("must NOT have fewer than %d characters", r.least)
	case r.most > 0 && n > r.most:
		return say("must NOT have more than %d characters", r.most)
	case r.enum != nil && !slices.Contains(r.enum, s):
		return say("must be equal to one of the allowed values")
	case r.pattern != "" && !regexp.MustCompile(r.pattern).MatchString(s):
		return say("must match pattern \"%s\"", r.pattern)
	}
	return s
}

func (r rule) object(at string, v any, problems *[]string, say func(string, ...any) any) any {
	in, ok := v.(map[string]any)
	if !ok {
		return say("must be object")
	}
	if len(in) < r.least {
		say("must NOT have fewer than %d properties", r.least)
	}
	for _, name := range r.required {
		if _, given := in[name]; !given {
			say("must have required property '%s'", name)
		}
	}
	out := map[string]any{}
	for name, value := range in {
		known := slices.ContainsFunc(r.members, func(m member) bool { return m.name == name })
		if r.closed && !known {
			say("must NOT have additional properties")
		}
		if !known {
			out[name] = value
		}
	}
	for _, m := range r.members {
		if value, given := in[m.name]; given {
			out[m.name] = m.rule.check(at+"/"+m.name, value, problems)
		}
	}
	return out
}

// integer coerces what looks like a whole number.
func integer(v any) (int, bool) {
	switch n := v.(type) {
	case string:
		i, err := strconv.Atoi(strings.TrimSpace(n))
		return i, err == nil
	case float64:
		return int(n), n == math.Trunc(n) && math.Abs(n) < 1<<53
	case bool:
		return map[bool]int{true: 1}[n], true
	case nil:
		return 0, true
	}
	return 0, false
}

// hostRule is the schema of a proxy host's body. A create has required members, an update at least one of any.
func hostRule(create bool) rule {
	forward := []member{
		{"forward_scheme", rule{kind: "string", enum: []string{"http", "https"}}},
		{"forward_host", rule{kind: "string", least: 1, most: 255}},
		{"forward_port", rule{kind: "integer", least: 1, most: 65535}},
	}
	flag := rule{kind: "boolean"}
	location := rule{kind: "object", closed: true,
		required: []string{"forward_scheme", "forward_host", "forward_port", "path"},
		members: append([]member{{"id", rule{kind: "integer"}}, {"path", rule{kind: "string", least: 1}},
			{"forward_path", rule{kind: "string"}}, {"advanced_config", rule{kind: "string"}}}, forward...)}
	r := rule{kind: "object", closed: true, members: append(append([]member{
		{"domain_names", rule{kind: "array", least: 1, most: 100, items: &rule{kind: "string",
			pattern: "^[^&| @!#%^();:/\\\\}{=+?<>,~`'\"]+$"}}}}, forward...),
		[]member{{"certificate_id", rule{kind: "certificate"}}, {"ssl_forced", flag}, {"hsts_enabled", flag},
			{"hsts_subdomains", flag}, {"trust_forwarded_proto", flag}, {"http2_support", flag},
			{"block_exploits", flag}, {"caching_enabled", flag}, {"allow_websocket_upgrade", flag},
			{"access_list_id", rule{kind: "integer"}}, {"advanced_config", rule{kind: "string"}}, {"enabled", flag},
			{"meta", rule{kind: "object"}}, {"locations", rule{kind: "array", items: &location}}}...)}
	if create {
		r.required = []string{"domain_names", "forward_scheme", "forward_host", "forward_port"}
	} else {
		r.least = 1
	}
	return r
}

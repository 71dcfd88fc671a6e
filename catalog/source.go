package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"
)

// The limits of one file. They are far above what an action needs.
const (
	maxFile  = 256 << 10 // bytes
	maxNodes = 20000
	maxDepth = 32
)

// file collects the problems of one file.
type file struct {
	name     string
	problems *Problems
}

func (f *file) add(line int, path, format string, args ...any) {
	*f.problems = append(*f.problems, Problem{File: f.name, Line: line, Path: path, Text: fmt.Sprintf(format, args...)})
}

// value is one value of a YAML file with the place where it stands. A nil
// *value is one that is missing; its methods return nothing and report nothing,
// so that one mistake is reported once.
type value struct {
	file *file
	line int
	path string
	v    any // nil, bool, int64, float64, string, []*value or *object
}

// object is a mapping with its keys in the order in which they stand.
type object struct {
	keys   []string
	values map[string]*value
}

// parse reads the one YAML document of a file. It returns nil if there is none
// that can be looked at further.
func parse(f *file, data []byte) *value {
	if len(data) > maxFile {
		f.add(0, "", "the file has %d bytes; the limit is %d", len(data), maxFile)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		f.add(0, "", "the file cannot be read as YAML: %v", err)
		return nil
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); err != nil {
		line, text := 0, err.Error()
		if e, ok := errors.AsType[*yaml.LoadError](err); ok {
			line, text = e.Mark.Line, e.Message
		}
		if errors.Is(err, io.EOF) {
			text = "the file is empty"
		}
		f.add(line, "", "this is not YAML: %s", text)
		return nil
	}
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		f.add(second.Line, "", "there is a second document; write one a file")
		return nil
	}
	r := reader{file: f}
	return r.read(&doc, "", 0)
}

type reader struct {
	file  *file
	nodes int
}

func (r *reader) read(n *yaml.Node, path string, depth int) *value {
	v := &value{file: r.file, line: n.Line, path: path}
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		if r.nodes <= maxNodes+1 {
			v.fail("the file is nested deeper than %d levels or has more than %d values", maxDepth, maxNodes)
		}
		return nil
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		v.fail("anchors and aliases are not allowed; write the value out")
		return nil
	}
	if n.Style&yaml.TaggedStyle != 0 {
		v.fail("tags like %s are not allowed", n.Tag)
		return nil
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return r.read(n.Content[0], path, depth)
	case yaml.MappingNode:
		v.v = r.mapping(n, path, depth)
	case yaml.SequenceNode:
		list := []*value{}
		for i, c := range n.Content {
			if e := r.read(c, fmt.Sprintf("%s[%d]", path, i), depth+1); e != nil {
				list = append(list, e)
			}
		}
		v.v = list
	default:
		v.v = v.scalar(n)
	}
	return v
}

func (r *reader) mapping(n *yaml.Node, path string, depth int) *object {
	o := &object{values: map[string]*value{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		at := &value{file: r.file, line: k.Line, path: join(path, k.Value)}
		switch {
		case k.Kind != yaml.ScalarNode || k.Anchor != "" || k.ShortTag() == "!!merge":
			at.fail("a key must be a plain word")
			continue
		case o.values[k.Value] != nil:
			at.fail("the key stands twice")
			continue
		}
		if e := r.read(n.Content[i+1], at.path, depth+1); e != nil {
			e.line = k.Line
			o.keys = append(o.keys, k.Value)
			o.values[k.Value] = e
		}
	}
	return o
}

func (v *value) scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value == "true" || n.Value == "True" || n.Value == "TRUE"
	case "!!int":
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || strconv.FormatInt(i, 10) != n.Value {
			v.fail("write whole numbers in decimal, or quote %q if it is a text", n.Value)
		}
		return i
	case "!!float":
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || f-f != 0 {
			v.fail("%q is not a number that JSON can hold; quote it if it is a text", n.Value)
			return nil
		}
		return f
	}
	return n.Value
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (v *value) fail(format string, args ...any) { v.file.add(v.line, v.path, format, args...) }

// kind names what v is, for sentences.
func (v *value) kind() string {
	switch v.v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case []*value:
		return "a list"
	}
	return "a mapping"
}

// mapping returns v's members, reporting every key that is not allowed. With no
// keys given all are.
func (v *value) mapping(allowed ...string) *object {
	if v == nil {
		return &object{}
	}
	o, ok := v.v.(*object)
	if !ok {
		v.fail("there must be a mapping here, not %s", v.kind())
		return &object{}
	}
	if len(allowed) > 0 {
		for _, k := range o.keys {
			if !slices.Contains(allowed, k) {
				o.values[k].fail("the key is not known; known here: %s", strings.Join(allowed, ", "))
			}
		}
	}
	return o
}

// get returns the member, or nil.
func (o *object) get(key string) *value { return o.values[key] }

// need returns the member and reports that it is missing.
func (o *object) need(of *value, key string) *value {
	if o.values[key] == nil && of != nil {
		of.fail("%s is missing", key)
	}
	return o.values[key]
}

func (v *value) list() []*value {
	if v == nil {
		return nil
	}
	l, ok := v.v.([]*value)
	if !ok {
		v.fail("there must be a list here, not %s", v.kind())
	}
	return l
}

func (v *value) text() string {
	if v == nil {
		return ""
	}
	s, ok := v.v.(string)
	switch {
	case !ok:
		v.fail("there must be a text here, not %s; quote it", v.kind())
	case strings.TrimSpace(s) == "":
		v.fail("the text is empty")
	}
	return s
}

func (v *value) truth() bool {
	if v == nil {
		return false
	}
	b, ok := v.v.(bool)
	if !ok {
		v.fail("there must be true or false here, not %s", v.kind())
	}
	return b
}

// word returns a text that matches the pattern.
func (v *value) word(pattern *regexp.Regexp) string {
	s := v.text()
	if s != "" && !pattern.MatchString(s) {
		v.fail("%q must match %s", s, pattern)
	}
	return s
}

// oneOf returns a text that is one of the words.
func (v *value) oneOf(words ...string) string {
	s := v.text()
	if s != "" && !slices.Contains(words, s) {
		v.fail("%q must be one of %s", s, strings.Join(words, ", "))
	}
	return s
}

// duration returns a duration such as 500ms, 2s or 1m30s between the bounds.
func (v *value) duration(least, most time.Duration) time.Duration {
	s := v.text()
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		v.fail("%q must be a duration from %s to %s, e.g. 2s", s, least, most)
	}
	return d
}

// plain returns v without the places: nil, bool, int64, float64, string, []any
// and map[string]any.
func (v *value) plain() any {
	if v == nil {
		return nil
	}
	switch t := v.v.(type) {
	case []*value:
		l := make([]any, len(t))
		for i, e := range t {
			l[i] = e.plain()
		}
		return l
	case *object:
		m := make(map[string]any, len(t.keys))
		for k, e := range t.values {
			m[k] = e.plain()
		}
		return m
	}
	return v.v
}

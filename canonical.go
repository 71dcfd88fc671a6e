package writ

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"writ/fault"
)

// The limits of a text that Parse accepts.
const (
	MaxDepth = 32
	MaxSize  = 1 << 20 // bytes
	MaxInt   = 1<<53 - 1
)

// Object is a JSON object whose values are nil, bool, int64, string, []any or
// Object. It never holds a number that is not whole.
type Object map[string]any

// UnmarshalJSON parses strictly, so that whole numbers arrive as int64.
func (o *Object) UnmarshalJSON(b []byte) error {
	v, err := Parse(b)
	if err != nil {
		return err
	}
	obj, ok := v.(Object)
	if !ok && v != nil {
		return invalid("there must be a JSON object here")
	}
	*o = obj
	return nil
}

// Parse reads one strict JSON value: nil, bool, int64, string, []any or Object.
func Parse(data []byte) (any, error) {
	if len(data) > MaxSize {
		return nil, invalid("the text has %d bytes, more than the %d that are allowed", len(data), MaxSize)
	}
	p := parser{data: data}
	v, err := p.value(1)
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos < len(p.data) {
		return nil, p.fail("there is something after the end of the value")
	}
	return v, nil
}

// Canonical returns the RFC 8785 bytes of v, which is either made of the types
// that Parse returns or a Go value that encoding/json turns into such.
func Canonical(v any) ([]byte, error) {
	switch v.(type) {
	case nil, bool, int64, string, []any, Object:
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "The value cannot be written as JSON.")
		}
		if v, err = Parse(raw); err != nil {
			return nil, err
		}
	}
	return appendValue(nil, v, 1)
}

// Decode reads strict JSON into out, a pointer. It fails on every member that
// the type does not have, that is spelt in another case, or that is missing.
func Decode(data []byte, out any) error {
	v, err := Parse(data)
	if err != nil {
		return err
	}
	return decode(v, out)
}

// decode accepts v only if the decoded value encodes to the same bytes: nothing
// was dropped, nothing was folded, nothing was filled in.
func decode(v, out any) error {
	canonical, err := appendValue(nil, v, 1)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(canonical, out); err != nil {
		return fault.Wrap(fault.Invalid, err, "The text does not have the form that is expected here.")
	}
	again, err := Canonical(out)
	if err != nil {
		return err
	}
	if bytes.Equal(canonical, again) {
		return nil
	}
	back, err := Parse(again)
	if err != nil {
		return err
	}
	return invalid("%s", difference("", v, back))
}

// difference names the first place where the text given and the text understood differ.
func difference(path string, given, understood any) string {
	g, ok1 := given.(Object)
	u, ok2 := understood.(Object)
	if ok1 && ok2 {
		for _, k := range sortedKeys(g) {
			if _, ok := u[k]; !ok {
				return fmt.Sprintf("the member %s is not known (names are case-sensitive)", path+"/"+k)
			}
		}
		for _, k := range sortedKeys(u) {
			if _, ok := g[k]; !ok {
				return fmt.Sprintf("the member %s is missing", path+"/"+k)
			}
			if !reflect.DeepEqual(g[k], u[k]) {
				return difference(path+"/"+k, g[k], u[k])
			}
		}
	}
	gs, ok1 := given.([]any)
	us, ok2 := understood.([]any)
	if ok1 && ok2 && len(gs) == len(us) {
		for i := range gs {
			if !reflect.DeepEqual(gs[i], us[i]) {
				return difference(path+"/"+strconv.Itoa(i), gs[i], us[i])
			}
		}
	}
	return fmt.Sprintf("the value at %s is not of the type that is expected there", path+"/")
}

func appendValue(b []byte, v any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, invalid("the value is nested deeper than %d levels", MaxDepth)
	}
	var err error
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		if v > MaxInt || v < -MaxInt {
			return nil, invalid("the number %d is beyond ±(2^53−1); write it as a string", v)
		}
		return strconv.AppendInt(b, v, 10), nil
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, e, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case Object:
		b = append(b, '{')
		for i, k := range sortedKeys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendString(b, k); err != nil {
				return nil, err
			}
			if b, err = appendValue(append(b, ':'), v[k], depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return nil, invalid("a value of type %T has no canonical form", v)
}

// sortedKeys sorts as RFC 8785 §3.2.3 does, by UTF-16 code units. That differs
// from the order of bytes only where surrogates meet U+E000 to U+FFFF, whose
// first byte is 0xEE or more.
func sortedKeys(o Object) []string {
	keys := make([]string, 0, len(o))
	high := false
	for k := range o {
		keys = append(keys, k)
		for i := range len(k) {
			high = high || k[i] >= 0xee
		}
	}
	if !high {
		slices.Sort(keys)
		return keys
	}
	slices.SortFunc(keys, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return keys
}

const hexDigits = "0123456789abcdef"

// appendString writes a string as RFC 8785 §3.2.2.2 does.
func appendString(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, invalid("a string is not valid UTF-8")
	}
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		case c >= 0x20:
			b = append(b, c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\r':
			b = append(b, `\r`...)
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(b, '"'), nil
}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "The text is refused: "+format+".", args...)
}

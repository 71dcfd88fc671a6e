package catalog

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cel.dev/cel-go/common/types"
)

// template is a text with expressions in it: "/lxc/${params.vmid}/config".
type template struct {
	source string
	parts  []part
}

// part is either a literal or an expression.
type part struct {
	literal string
	expr    *expr
}

// splitTemplate cuts a text into literals and the sources of its expressions.
// "$${" stands for a literal "${".
func splitTemplate(s string) (parts []part, sources []string, err error) {
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, part{literal: literal.String()})
			sources = append(sources, "")
			literal.Reset()
		}
	}
	for i := 0; i < len(s); {
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, "$${"):
			literal.WriteString("${")
			i += 3
		case strings.HasPrefix(rest, "${"):
			end, ok := exprEnd(rest[2:])
			if !ok {
				return nil, nil, fmt.Errorf("the ${ at character %d has no matching }", i+1)
			}
			source := strings.TrimSpace(rest[2 : 2+end])
			if source == "" {
				return nil, nil, fmt.Errorf("the expression at character %d is empty", i+1)
			}
			flush()
			parts = append(parts, part{})
			sources = append(sources, source)
			i += 2 + end + 1
		default:
			literal.WriteByte(s[i])
			i++
		}
	}
	flush()
	return parts, sources, nil
}

// exprEnd returns where the } that closes an expression stands. Braces in maps
// and in quoted texts are part of the expression.
func exprEnd(s string) (int, bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i, true
			}
			depth--
		case '\'', '"':
			n := quotedEnd(s[i:], rawPrefix(s[:i]))
			if n < 0 {
				return 0, false
			}
			i += n - 1
		}
	}
	return 0, false
}

// rawPrefix says whether a quote that follows begins a raw string: r'…', br"…".
func rawPrefix(before string) bool {
	letters := before[len(strings.TrimRightFunc(before, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) })):]
	switch strings.ToLower(letters) {
	case "r", "br", "rb":
		return true
	}
	return false
}

// quotedEnd returns the length of the quoted text that s begins with, or -1.
func quotedEnd(s string, raw bool) int {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	for i := len(quote); i < len(s); i++ {
		switch {
		case s[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		}
	}
	return -1
}

// template compiles a text. With absent set, a text that is exactly one ${…}
// may turn out to be absent (an optional value).
func (s *scopeEnv) template(v *value, see string, absent bool) *template {
	if v == nil {
		return nil
	}
	source, ok := v.v.(string)
	if !ok {
		return &template{parts: []part{{literal: v.literal()}}}
	}
	t := &template{source: source}
	parts, sources, err := splitTemplate(source)
	if err != nil {
		v.fail("%v", err)
		return t
	}
	for i := range parts {
		if sources[i] == "" {
			continue
		}
		e := s.compile(v, sources[i], see)
		if e == nil {
			return t
		}
		switch e.typ.Kind() {
		case types.StringKind, types.IntKind, types.BoolKind, types.DoubleKind, types.DynKind:
		default:
			if len(parts) > 1 || (isOptional(e.typ) && !absent) {
				v.fail("the expression %q is %s, which cannot stand in a text", cut(sources[i], 80), e.typ)
			}
		}
		parts[i].expr = e
	}
	t.parts = parts
	return t
}

func isOptional(t *types.Type) bool { return t.Kind() == types.OpaqueKind }

// literal writes a whole number or a truth value that stands where a text is wanted.
func (v *value) literal() string {
	switch t := v.v.(type) {
	case int64:
		return strconv.FormatInt(t, 10)
	case bool:
		return strconv.FormatBool(t)
	}
	v.fail("there must be a text here, not %s", v.kind())
	return ""
}

// whole returns the expression of a template that is exactly one ${…}.
func (t *template) whole() *expr {
	if len(t.parts) == 1 {
		return t.parts[0].expr
	}
	return nil
}

// value evaluates a template; one that is exactly one ${…} keeps its type.
// present is false if it is an optional value that is absent.
func (t *template) value(in view) (v any, present bool, err error) {
	e := t.whole()
	if e == nil {
		s, err := t.text(in)
		return s, true, err
	}
	val, err := e.eval(in)
	if err != nil {
		return nil, false, err
	}
	if o, ok := val.(*types.Optional); ok && !o.HasValue() {
		return nil, false, nil
	}
	if v, err = native(val); err != nil {
		return nil, false, refuse(err, "The value of %q cannot be used. The action or the target's answer is not as it should be.", cut(e.source, 200))
	}
	return v, true, nil
}

// text evaluates a template to a text.
func (t *template) text(in view) (string, error) {
	return t.build(in, func(s string) (string, error) { return s, nil })
}

// optional is text for a template that may be absent.
func (t *template) optional(in view) (s string, present bool, err error) {
	v, present, err := t.value(in)
	if err != nil || !present {
		return "", false, err
	}
	s, err = scalarText(v)
	return s, true, err
}

// build puts a text together, each value of an expression passed through escape.
func (t *template) build(in view, escape func(string) (string, error)) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.literal)
			continue
		}
		val, err := p.expr.eval(in)
		if err != nil {
			return "", err
		}
		v, err := native(val)
		if err != nil {
			return "", refuse(err, "The value of %q cannot be used. The action or the target's answer is not as it should be.", cut(p.expr.source, 200))
		}
		s, err := scalarText(v)
		if err == nil {
			s, err = escape(s)
		}
		if err != nil {
			return "", refuse(err, "The value of %q cannot stand where it is used: %v.", cut(p.expr.source, 200), err)
		}
		if b.WriteString(s); b.Len() > maxValue {
			return "", refuse(nil, "The text made from %q has more than %d bytes.", cut(t.source, 200), maxValue)
		}
	}
	return b.String(), nil
}

// scalarText writes a single value as a text.
func scalarText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case nil:
		return "", fmt.Errorf("it is null")
	}
	return "", fmt.Errorf("it is a list or a mapping, not a single value")
}

// shownText writes any value for people.
func shownText(v any) (string, error) {
	switch v.(type) {
	case nil, []any, map[string]any:
		b, err := stableJSON(v)
		return string(b), err
	}
	return scalarText(v)
}

// segment makes a value one segment of an HTTP path. Escaping alone would not
// do: there are servers that undo it before they look for slashes.
func segment(s string) (string, error) {
	if s == "" || s == "." || s == ".." {
		return "", fmt.Errorf("%q is no name", s)
	}
	if strings.ContainsFunc(s, unicode.IsControl) || strings.ContainsAny(s, `/\%?#;`) {
		return "", fmt.Errorf("it has a character that means something in a path: one of / \\ %% ? # ; or a control character")
	}
	return url.PathEscape(s), nil
}

// tree checks that a value is a relative path of one or more names: what a file
// path or an entity may contain.
func tree(s string) (string, error) {
	if strings.ContainsFunc(s, unicode.IsControl) || strings.Contains(s, `\`) {
		return "", fmt.Errorf("it has control characters or backslashes")
	}
	names := strings.Split(s, "/")
	if slices.Contains(names, "") || slices.Contains(names, ".") || slices.Contains(names, "..") {
		return "", fmt.Errorf("%q is no relative path of names", s)
	}
	return s, nil
}

// header checks that a value fits into one line of a header.
func header(s string) (string, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return "", fmt.Errorf("it has characters that a header cannot hold")
	}
	return s, nil
}

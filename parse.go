package writ

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// parser is a strict reader of JSON (RFC 8259). It is our own because every
// ready one we measured accepts something that another reads differently:
// duplicate keys, keys of another case, or numbers that lose digits.
type parser struct {
	data []byte
	pos  int
}

func (p *parser) fail(format string, args ...any) error {
	return invalid(format+", at byte %d", append(args, p.pos)...)
}

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

func (p *parser) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, p.fail("the value is nested deeper than %d levels", MaxDepth)
	}
	p.space()
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.string()
	case c == '-' || c >= '0' && c <= '9':
		return p.integer()
	}
	for word, v := range map[string]any{"null": nil, "true": true, "false": false} {
		if end := p.pos + len(word); end <= len(p.data) && string(p.data[p.pos:end]) == word {
			p.pos = end
			return v, nil
		}
	}
	return nil, p.fail("there is no JSON value")
}

func (p *parser) object(depth int) (any, error) {
	p.pos++
	o := Object{}
	for p.space(); p.peek() != '}'; {
		if len(o) > 0 {
			if p.peek() != ',' {
				return nil, p.fail("a comma or the end of the object is missing")
			}
			p.pos++
			p.space()
		}
		if p.peek() != '"' {
			return nil, p.fail("the name of a member is missing")
		}
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		if _, twice := o[key]; twice {
			return nil, p.fail("the member %q stands twice", key)
		}
		if p.space(); p.peek() != ':' {
			return nil, p.fail("the colon after a name is missing")
		}
		p.pos++
		if o[key], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		p.space()
	}
	p.pos++
	return o, nil
}

func (p *parser) array(depth int) (any, error) {
	p.pos++
	list := []any{}
	for p.space(); p.peek() != ']'; {
		if len(list) > 0 {
			if p.peek() != ',' {
				return nil, p.fail("a comma or the end of the list is missing")
			}
			p.pos++
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		p.space()
	}
	p.pos++
	return list, nil
}

// integer accepts only the one way to write a whole number: no fraction, no
// exponent, no leading zero, no minus before zero.
func (p *parser) integer() (any, error) {
	start := p.pos
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			p.pos++
			continue
		}
		break
	}
	text := string(p.data[start:p.pos])
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > MaxInt || n < -MaxInt || strconv.FormatInt(n, 10) != text {
		return nil, p.fail("the number %.40s is not a plain whole number within ±(2^53−1); write it as a string", text)
	}
	return n, nil
}

func (p *parser) string() (string, error) {
	p.pos++
	var b []byte
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			return string(b), nil
		case c < 0x20:
			return "", p.fail("a control character must be escaped in a string")
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
		default:
			r, n := utf8.DecodeRune(p.data[p.pos:])
			if r == utf8.RuneError && n <= 1 {
				return "", p.fail("the text is not valid UTF-8")
			}
			b = append(b, p.data[p.pos:p.pos+n]...)
			p.pos += n
		}
	}
	return "", p.fail("the text ends inside a string")
}

var escapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *parser) escape() (rune, error) {
	p.pos++
	c := p.peek()
	p.pos++
	if r, ok := escapes[c]; ok {
		return r, nil
	}
	if c != 'u' {
		return 0, p.fail("there is an unknown escape in a string")
	}
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if p.pos+2 <= len(p.data) && p.data[p.pos] == '\\' && p.data[p.pos+1] == 'u' {
		p.pos += 2
		low, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, nil
		}
	}
	return 0, p.fail("there is a lone surrogate in a string")
}

func (p *parser) hex4() (rune, error) {
	if p.pos+4 > len(p.data) {
		return 0, p.fail("the text ends inside an escape")
	}
	var r rune
	for _, c := range p.data[p.pos : p.pos+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, p.fail("an escape has a character that is not hexadecimal")
		}
	}
	p.pos += 4
	return r, nil
}

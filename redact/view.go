package redact

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text with one layer of encoding taken off. It remembers which bytes
// of the original each of its bytes came from.
type view struct {
	text     string
	from, to []int // nil where nothing was taken off
}

// place says where the bytes [from, to) of a view, to > from, came from.
func (v view) place(from, to int) (int, int) {
	if v.from == nil {
		return from, to
	}
	return v.from[from], v.to[to-1]
}

// decoder reads what begins at text[i]: how many bytes are code, and what they
// stand for. It answers 0 where a byte stands for itself.
type decoder func(text string, i int) (n int, plain string)

// decode takes one layer off, or says that there is none.
func (v view) decode(d decoder, marker string) (view, bool) {
	if !strings.ContainsAny(v.text, marker) {
		return v, false
	}
	var b strings.Builder
	out := view{from: make([]int, 0, len(v.text)), to: make([]int, 0, len(v.text))}
	for i := 0; i < len(v.text); {
		n, plain := d(v.text, i)
		if n == 0 {
			n, plain = 1, v.text[i:i+1]
		}
		from, to := v.place(i, i+n)
		for range len(plain) {
			out.from, out.to = append(out.from, from), append(out.to, to)
		}
		b.WriteString(plain)
		i += n
	}
	out.text = b.String()
	return out, true
}

// percent reads %XX.
func percent(text string, i int) (int, string) {
	if text[i] == '%' && i+2 < len(text) {
		if c, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
			return 3, string([]byte{byte(c)})
		}
	}
	return 0, ""
}

// backslash reads what JSON, Go, C and shells write with a backslash.
func backslash(text string, i int) (int, string) {
	if text[i] != '\\' || i+1 == len(text) {
		return 0, ""
	}
	number := func(start, size, base int) (int, string) {
		if start+size > len(text) {
			return 0, ""
		}
		c, err := strconv.ParseUint(text[start:start+size], base, 32)
		switch {
		case err != nil:
			return 0, ""
		case size < 4:
			return start + size - i, string([]byte{byte(c)})
		case utf16.IsSurrogate(rune(c)) && strings.HasPrefix(text[start+size:], `\u`) && start+size+6 <= len(text):
			if low, err := strconv.ParseUint(text[start+size+2:start+size+6], 16, 32); err == nil {
				return start + size + 6 - i, string(utf16.DecodeRune(rune(c), rune(low)))
			}
		}
		return start + size - i, string(rune(c))
	}
	switch c := text[i+1]; {
	case c == 'u':
		return number(i+2, 4, 16)
	case c == 'U':
		return number(i+2, 8, 16)
	case c == 'x':
		return number(i+2, 2, 16)
	case '0' <= c && c <= '3':
		return number(i+1, 3, 8)
	case c == '\n':
		return 2, ""
	case strings.IndexByte("abfnrtv", c) >= 0:
		return 2, string("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
	case c < utf8.RuneSelf:
		return 2, text[i+1 : i+2]
	}
	return 0, ""
}

// entity reads what HTML and XML write for a character.
func entity(text string, i int) (int, string) {
	if text[i] != '&' {
		return 0, ""
	}
	name, _, ok := strings.Cut(text[i+1:min(len(text), i+10)], ";")
	if !ok {
		return 0, ""
	}
	for j, known := range []string{"amp", "lt", "gt", "quot", "apos"} {
		if name == known {
			return len(name) + 2, `&<>"'`[j : j+1]
		}
	}
	if digits, ok := strings.CutPrefix(name, "#"); ok {
		base := 10
		if hex := strings.TrimLeft(digits, "xX"); hex != digits {
			digits, base = hex, 16
		}
		if c, err := strconv.ParseUint(digits, base, 32); err == nil {
			return len(name) + 2, string(rune(c))
		}
	}
	return 0, ""
}

// wrapped reads the end of a line, with what indents the next.
func wrapped(text string, i int) (int, string) {
	if text[i] != '\n' && text[i] != '\r' {
		return 0, ""
	}
	return len(text[i:]) - len(strings.TrimLeft(text[i:], "\r\n\t >")), ""
}

// broken reads the end of a line alone.
func broken(text string, i int) (int, string) {
	if text[i] != '\n' && text[i] != '\r' {
		return 0, ""
	}
	return 1, ""
}

// views calls see with the text under each layer, and under two of them: an
// error text that quotes a body, a log line that quotes the error. Lines are
// joined with what indents them and, where secrets have spaces, without.
func views(text string, spaces bool, see func(view)) {
	layers := func(v view, next func(view)) {
		for _, d := range []struct {
			decoder
			marker string
		}{{percent, "%"}, {backslash, `\`}, {entity, "&"}} {
			if under, ok := v.decode(d.decoder, d.marker); ok {
				next(under)
			}
		}
	}
	both := func(v view) {
		see(v)
		if joined, ok := v.decode(wrapped, "\r\n"); ok {
			see(joined)
			if spaces {
				joined, _ := v.decode(broken, "\r\n")
				see(joined)
			}
		}
	}
	whole := view{text: text}
	both(whole)
	layers(whole, func(v view) {
		both(v)
		layers(v, func(w view) {
			both(w)
			layers(w, both)
		})
	})
}

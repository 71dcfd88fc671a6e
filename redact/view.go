package redact

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text with one layer of encoding taken off. It remembers which bytes
// of the original each of its bytes came from.
type view struct {
	text     string
	from, to []int32 // nil where nothing was taken off
}

// place says where the bytes [from, to) of a view, to > from, came from.
func (v view) place(from, to int) (int, int) {
	if v.from == nil {
		return from, to
	}
	return int(v.from[from]), int(v.to[to-1])
}

// adjoin reports whether nothing was left out between the byte i and the next.
func (v view) adjoin(i int) bool {
	return v.from == nil || v.to[i] == v.from[i+1]
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
	out := view{from: make([]int32, 0, len(v.text)), to: make([]int32, 0, len(v.text))}
	for i := 0; i < len(v.text); {
		n, plain := d(v.text, i)
		if n == 0 {
			n, plain = 1, v.text[i:i+1]
		}
		from, to := v.place(i, i+n)
		for range len(plain) {
			out.from, out.to = append(out.from, int32(from)), append(out.to, int32(to))
		}
		b.WriteString(plain)
		i += n
	}
	out.text = b.String()
	return out, true
}

// cutOff is the length of an escape sequence of size bytes that begins at text[i]
// and is cut off, 0 if it is whole.
func cutOff(text string, i, size int) int {
	for n := 1; n < size; n++ {
		if isCut(text[min(len(text), i+n):]) {
			return n
		}
	}
	return 0
}

// percent reads %XX.
func percent(text string, i int) (int, string) {
	if text[i] != '%' {
		return 0, ""
	}
	if n := cutOff(text, i, 3); n > 0 {
		return n, ""
	}
	if i+2 < len(text) {
		if c, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
			return 3, string([]byte{byte(c)})
		}
	}
	return 0, ""
}

// backslash reads what JSON, Go, C and shells write with a backslash.
func backslash(text string, i int) (int, string) {
	if text[i] != '\\' {
		return 0, ""
	}
	if isCut(text[i+1:]) {
		return 1, ""
	}
	number := func(start, size, base int) (int, string) {
		if n := cutOff(text, i, start+size-i); n > 0 {
			return n, ""
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
		return cutOff(text, i, 9), ""
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

// squeeze leaves out what may stand between the parts of a text that somebody
// wrapped, indented, widened to 16 bits or made printable.
func (v view) squeeze() view {
	size := len(v.text)
	text, places := make([]byte, 0, size), make([]int32, 2*size)
	out := view{from: places[:0:size], to: places[size:size]}
	for i := 0; i < size; {
		n := 1
		if c := v.text[i]; c >= 0x7f {
			var r rune
			if r, n = utf8.DecodeRuneInString(v.text[i:]); r == utf8.RuneError || !unicode.IsPrint(r) {
				i += n
				continue
			}
		} else if c <= ' ' {
			i++
			continue
		}
		from, to := v.place(i, i+n)
		for ; n > 0; n-- {
			text, out.from, out.to = append(text, v.text[i]), append(out.from, int32(from)), append(out.to, int32(to))
			i++
		}
	}
	out.text = string(text)
	return out
}

// views calls see with the text under each layer, and under two of them: an
// error text that quotes a body, a log line that quotes the error.
func views(text string, see func(view)) {
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
		see(v.squeeze())
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

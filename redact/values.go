package redact

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MinLength is the shortest secret, in bytes, that is looked for by value: a
// shorter one would hide half of every text.
const MinLength = 6

// minLine is the shortest line of a secret of many lines, such as a private
// key, that is looked for by itself.
const minLine = 16

// values finds known secrets.
type values struct {
	found   *automaton
	forms   []string
	secrets []string // by form
	base64  []bool   // by form
	longest int      // form
}

func newValues(secrets []string) *values {
	v := &values{}
	seen := map[string]bool{}
	for _, s := range secrets {
		if len(s) < MinLength {
			continue
		}
		for _, part := range append(linesOf(s), s) {
			plain, base64 := formsOf(part)
			for i, form := range append(plain, base64...) {
				if len(form) >= MinLength && !seen[form] {
					seen[form] = true
					v.forms, v.secrets, v.base64 = append(v.forms, form), append(v.secrets, s), append(v.base64, i >= len(plain))
					v.longest = max(v.longest, len(form))
				}
			}
		}
	}
	if len(v.forms) == 0 {
		return nil
	}
	v.found = newAutomaton(v.forms)
	return v
}

// find reports each place of a known secret, in whatever it is wrapped, and its
// beginning where the text is cut off.
func (v *values) find(text string, report func(span)) {
	views(text, func(w view) {
		hide := func(form, start, end int) {
			if v.base64[form] {
				start, end = w.around(start, end)
			}
			from, to := w.place(start, end)
			report(span{begin: from, from: from, to: to, kind: byValue, secret: v.secrets[form]})
		}
		v.found.search(w.text, &asIs, func(form, end int) {
			hide(form, end-len(v.forms[form]), end)
		}, func(form, size, end int) {
			if size >= MinLength {
				hide(form, end-size, end)
			}
		})
	})
}

// formsOf lists the ways in which a secret is written where no view can take
// its encoding off: base64 and hexadecimal do not say where they begin.
func formsOf(s string) (plain, base []string) {
	squeezed := view{text: s}.squeeze().text
	ascii := strings.Map(func(r rune) rune { // what is left when single bytes were made printable
		if r >= utf8.RuneSelf {
			return -1
		}
		return r
	}, squeezed)
	h := hex.EncodeToString([]byte(s))
	little, big := wide(s)
	for _, bytes := range []string{s, little} {
		for before := range 3 {
			base = append(base, aligned(base64.RawStdEncoding, bytes, before), aligned(base64.RawURLEncoding, bytes, before))
		}
	}
	return []string{
		s, squeezed, ascii, h, strings.ToUpper(h), little, big,
		strings.ReplaceAll(s, " ", "+"), // a form of the web, after its %XX are taken off
		strings.ReplaceAll(s, "'", `'\''`), strings.ReplaceAll(s, "'", `'"'"'`), strings.ReplaceAll(s, "'", "''"),
	}, base
}

// linesOf lists the lines of a secret that say something about it.
func linesOf(s string) []string {
	var lines []string
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if len(line) >= minLine && len(line) < len(s)-1 && !strings.HasPrefix(line, "-----") {
			lines = append(lines, line)
		}
	}
	return lines
}

// around widens a place in a base64 text by the characters that hold a part of
// its first and last byte, and by the padding.
func (v view) around(from, to int) (int, int) {
	if from > 0 && isBase64(v.text[from-1]) && v.adjoin(from-1) {
		from--
	}
	if to < len(v.text) && isBase64(v.text[to]) && v.adjoin(to-1) {
		to++
	}
	for to < len(v.text) && v.text[to] == '=' {
		to++
	}
	return from, to
}

func isBase64(c byte) bool {
	return isAlnum(c) || c == '+' || c == '/' || c == '-' || c == '_'
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// wide returns s in UTF-16, little and big endian.
func wide(s string) (little, big string) {
	var l, b strings.Builder
	for _, c := range utf16.Encode([]rune(s)) {
		l.Write([]byte{byte(c), byte(c >> 8)})
		b.Write([]byte{byte(c >> 8), byte(c)})
	}
	return l.String(), b.String()
}

// aligned returns the characters of a base64 text that depend on s alone when
// s begins at a byte whose number leaves the remainder before by three.
func aligned(e *base64.Encoding, s string, before int) string {
	text := e.EncodeToString(append(make([]byte, before), s...))
	text = text[(before*8+5)/6:]
	if (before+len(s))%3 != 0 {
		text = text[:len(text)-1]
	}
	return text
}

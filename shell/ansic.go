package shell

import (
	"strconv"
	"unicode/utf8"
)

// ansiC adds the text of $'…'. A control character other than tab and newline,
// and an escape that is not known, become unknown text: no rule of ours reads
// such an argument.
func (b *builder) ansiC(s string) {
	simple := map[byte]byte{'n': '\n', 't': '\t', '\\': '\\', '\'': '\'', '"': '"', '?': '?'}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.text = append(b.text, s[i])
			continue
		}
		i++
		c := s[i]
		if plain, ok := simple[c]; ok {
			b.text = append(b.text, plain)
			continue
		}
		base, width := 16, 2
		switch c {
		case 'x':
			i++
		case 'u':
			i, width = i+1, 4
		case 'U':
			i, width = i+1, 8
		case '0', '1', '2', '3', '4', '5', '6', '7':
			base, width = 8, 3
		default:
			b.unknown(false, false)
			continue
		}
		end := i
		for end < len(s) && end < i+width && digitOf(s[end]) < base {
			end++
		}
		n, err := strconv.ParseUint(s[i:end], base, 32)
		i = end - 1
		switch {
		case err != nil || n < ' ' && n != '\n' && n != '\t' || n == 0x7f || n > utf8.MaxRune:
			b.unknown(false, false)
		case c == 'u' || c == 'U' || n < utf8.RuneSelf:
			b.text = utf8.AppendRune(b.text, rune(n))
		default:
			b.unknown(false, false)
		}
	}
}

// digitOf returns the value of a hexadecimal digit, or 99.
func digitOf(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return 99
}

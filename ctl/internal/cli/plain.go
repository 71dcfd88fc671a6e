package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// plain shows a text from elsewhere as what it is: a control, invisible or
// direction-changing character is named instead of obeyed, so that no text can
// draw on the terminal. Line breaks stay; the gate did the same before, and this
// is for the day it did not.
func plain(text string) string {
	return shown(text, true)
}

// line is plain for a text that must stay on one line.
func line(text string) string { return shown(text, false) }

func shown(text string, breaks bool) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || r == '\n' && breaks {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u{%04x}`, r)
		}
	}
	return b.String()
}

// jsonText is plain for JSON: it names such a character as JSON does, which means the same.
func jsonText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r) || r == '\n' || r == '\t':
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

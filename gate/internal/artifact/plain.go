package artifact

import (
	"fmt"
	"strings"
	"unicode"
)

// Plain returns text that looks like what it is, on one line. It allows rather
// than forbids: printable ASCII, a little punctuation, and letters of one
// left-to-right script. Everything else is shown as \u{…}: control characters,
// invisible ones, ones that change the direction of writing, and letters that
// are mixed into another script to look like its own. Longer runs of blanks are
// counted, so that nothing hides behind them.
func Plain(s string) string {
	var b strings.Builder
	script := scriptOf(s)
	blanks := 0
	flush := func() {
		if blanks > 3 {
			fmt.Fprintf(&b, " ·x%d ", blanks)
		} else {
			b.WriteString(strings.Repeat(" ", blanks))
		}
		blanks = 0
	}
	for _, r := range s {
		if r == ' ' {
			blanks++
			continue
		}
		flush()
		if r > ' ' && r <= '~' || strings.ContainsRune(punctuation, r) || isLetterOf(script, r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u{%04x}`, r)
		}
	}
	flush()
	return b.String()
}

const punctuation = "–—…‘’“”«»€£§°±×→←·"

// scripts are the ones that are written from left to right with one character
// a letter, so that what is read is what is there.
var scripts = []*unicode.RangeTable{
	unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
}

// scriptOf returns the script of all letters beyond ASCII in s, or nil if they
// are of several or if the script is not Latin and there are ASCII letters in
// the same word, which is how look-alikes are smuggled in.
func scriptOf(s string) *unicode.RangeTable {
	var found *unicode.RangeTable
	for word := range strings.FieldsSeq(s) {
		ascii := false
		var other *unicode.RangeTable
		for _, r := range word {
			if r < unicode.MaxASCII {
				ascii = ascii || unicode.IsLetter(r)
				continue
			}
			for _, table := range scripts {
				if unicode.Is(table, r) && unicode.IsLetter(r) {
					if other != nil && other != table {
						return nil
					}
					other = table
				}
			}
		}
		if other == nil {
			continue
		}
		if ascii && other != unicode.Latin || found != nil && found != other {
			return nil
		}
		found = other
	}
	return found
}

func isLetterOf(script *unicode.RangeTable, r rune) bool {
	if script == nil || r < unicode.MaxASCII || !unicode.Is(script, r) || !unicode.IsLetter(r) {
		return false
	}
	// Letters by name, but nothing is to be seen of them.
	return r != 0x115f && r != 0x1160 && r != 0x3164 && r != 0xffa0
}

// quote returns a value as people read it: plain and in quotation marks, so
// that its ends can be seen.
func quote(s string) string { return `"` + Plain(s) + `"` }

// boxed returns a requester's words, each line marked as theirs.
func boxed(s string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		lines = append(lines, "| "+Plain(line))
	}
	return lines
}

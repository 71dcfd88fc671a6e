package artifact

import (
	"fmt"
	"strings"
	"unicode"
)

// Plain returns text that looks like what it is, on one line. It allows rather
// than forbids: printable ASCII, a little punctuation, and letters of one
// left-to-right script. Everything else is shown as \u{…}: control characters,
// invisible ones, ones that change the direction of writing, letters that are
// mixed into another script to look like its own, and texts of another script
// that look like Latin from end to end. Longer runs of blanks are counted, so
// that nothing hides behind them.
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

const punctuation = "–—…‘’“”„«»€£§°±×→←·"

// The scripts are written from left to right with one character a letter. Of
// each there are only the blocks that living languages need: the others hold
// letters in other widths and second copies, which look like the first.
var (
	// Without the letters that look like i, k, l, s and like pairs of letters.
	latin = letters(0xc0, 0x130, 0x134, 0x137, 0x139, 0x13e, 0x141, 0x148, 0x14a, 0x17e, 0x218, 0x21b, 0x1e00, 0x1eff)

	greek    = letters(0x370, 0x3ff, 0x1f00, 0x1fff)
	cyrillic = letters(0x400, 0x52f)

	scripts = []*unicode.RangeTable{
		latin, greek, cyrillic,
		letters(0x3400, 0x4dbf, 0x4e00, 0x9fff), // Han
		letters(0x3041, 0x309f),                 // Hiragana
		letters(0x30a1, 0x30fe),                 // Katakana
		letters(0xac00, 0xd7a3),                 // Hangul, in whole syllables
	}
)

// letters returns a table of ranges, each given by its ends.
func letters(ends ...uint16) *unicode.RangeTable {
	t := &unicode.RangeTable{}
	for i := 0; i < len(ends); i += 2 {
		t.R16 = append(t.R16, unicode.Range16{Lo: ends[i], Hi: ends[i+1], Stride: 1})
	}
	return t
}

// lookalikes are the Greek and Cyrillic letters that are drawn like Latin ones.
const lookalikes = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿαγηικνορτυχϲϳ" + "АВЕКМНОРСТУХЅІЈѴҮԌԚԜавекморстухѕіјѵүԁԛԝһӀӏ"

// scriptOf returns the script of all letters beyond ASCII in s, or nil if they
// are of several, if the script is not Latin and there are ASCII letters in the
// same word, or if all of them are drawn like Latin ones: that is how
// look-alikes are smuggled in.
func scriptOf(s string) *unicode.RangeTable {
	var found *unicode.RangeTable
	distinct := false
	for word := range strings.FieldsSeq(s) {
		ascii := false
		var other *unicode.RangeTable
		for _, r := range word {
			if r < unicode.MaxASCII {
				ascii = ascii || unicode.IsLetter(r)
				continue
			}
			for _, table := range scripts {
				if isLetterOf(table, r) {
					if other != nil && other != table {
						return nil
					}
					other = table
					distinct = distinct || !strings.ContainsRune(lookalikes, r)
				}
			}
		}
		if other == nil {
			continue
		}
		if ascii && other != latin || found != nil && found != other {
			return nil
		}
		found = other
	}
	if !distinct {
		return nil
	}
	return found
}

func isLetterOf(script *unicode.RangeTable, r rune) bool {
	return script != nil && unicode.Is(script, r) && unicode.IsLetter(r)
}

// quote returns a value as people read it: plain and in quotation marks, so
// that its ends can be seen. A mark within it is escaped, and so is what could
// be taken for an escape.
func quote(s string) string {
	return `"` + Plain(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)) + `"`
}

// name returns a name as people read it; one that could be taken for a part of
// the sentence it stands in is quoted.
func name(s string) string {
	if s == "" || strings.ContainsAny(s, ` "\(),`) {
		return quote(s)
	}
	return Plain(s)
}

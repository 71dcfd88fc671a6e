package artifact

import (
	"fmt"
	"strings"
)

// columns is how long a line of a page may be: it fits into the smallest usual
// terminal, which would otherwise break a line anywhere and let a value go on
// where sections begin.
const columns = 80

// page is text of which every line begins with our own words or marks.
type page struct{ b strings.Builder }

// line adds a line. The rest of one that is too long goes on below it, further
// to the right and marked, or in the box.
func (p *page) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	mark := indent + "    … "
	if strings.HasPrefix(text, box) {
		mark = box
	}
	for {
		n := fitting(text)
		p.b.WriteString(text[:n] + "\n")
		if n == len(text) {
			return
		}
		text = mark + text[n:]
	}
}

// box begins each line of what a requester wrote.
const box = "  | "

// boxed adds a requester's words, each line marked as theirs.
func (p *page) boxed(words string) {
	for line := range strings.SplitSeq(strings.TrimRight(words, "\n"), "\n") {
		p.line(box+"%s", Plain(line))
	}
}

// fitting returns how many bytes of text fit on a line: all, or as many as end
// after a word that ends near the end of the line.
func fitting(text string) int {
	width, blank, blankWidth := 0, 0, 0
	for i, r := range text {
		w := 1
		if r >= 0x1100 && r != '…' && !strings.ContainsRune(punctuation, r) && !isLetterOf(latin, r) && !isLetterOf(greek, r) {
			w = 2 // Han, Kana and Hangul
		}
		if width += w; width > columns {
			if blankWidth > columns-20 {
				return blank
			}
			return i
		}
		if r == ' ' {
			blank, blankWidth = i+1, width
		}
	}
	return len(text)
}

// count returns a number of things.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

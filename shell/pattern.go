package shell

import "strings"

// pattern is a compiled pattern of policy.yaml: * is any name, ** any depth.
type pattern struct {
	text   string
	prefix string   // what stands before the first star
	need   string   // the longest text without a star
	tail   string   // what stands behind the last star
	pairs  uint64   // the pairs of need
	last   *pattern // the last element, when it does not begin with a star
}

func newPattern(text string) *pattern {
	p := &pattern{text: text, tail: text[strings.LastIndexByte(text, '*')+1:]}
	p.prefix, _, _ = strings.Cut(text, "*")
	for _, part := range strings.Split(text, "*") {
		if len(part) > len(p.need) {
			p.need = part
		}
	}
	p.pairs = pairs(p.need)
	if last := text[strings.LastIndexByte(text, '/')+1:]; last != text && last != "" && last[0] != '*' {
		p.last = newPattern(last)
	}
	return p
}

// pairs is a set of the pairs of bytes that stand side by side in a text. A text
// that lacks one of another's pairs does not hold the other.
func pairs(s string) (set uint64) {
	for i := 1; i < len(s); i++ {
		set |= 1 << ((uint(s[i-1])*7 + uint(s[i])) % 64)
	}
	return set
}

// meets says whether some path matches both a word, whose unknown parts are
// marks, and the pattern.
func (p *pattern) meets(word string) bool {
	n := min(len(word), len(p.prefix))
	if !hasWild(word) {
		if !strings.HasSuffix(word, p.tail) || !strings.HasPrefix(word, p.prefix) || !strings.Contains(word, p.need) {
			return false
		}
	} else if known := strings.IndexAny(word[:n], "\x00\x01\x02"); word[:max(known, 0)] != p.prefix[:max(known, 0)] || known < 0 && word[:n] != p.prefix[:n] {
		return false
	}
	return meets(word, p.text)
}

// selected says whether a name that is known in part picks out what the pattern
// means: some name matches both, and in it at least three letters of the
// pattern, or half of them, are known. Anything meets "*", and "*.yml" says
// nothing of database.yml: there, what stands before the dot counts.
func (p *pattern) selected(name string) bool {
	if len(name) > maxPath {
		return true
	}
	counts := len(p.text)
	if dot := strings.LastIndexByte(p.text, '.'); dot > 0 && !strings.Contains(p.text, "*") {
		counts = dot
	}
	letters := counts - strings.Count(p.text[:counts], "*")
	most := agrees(name, p.text, counts)
	return most >= 0 && most >= min(3, (letters+1)/2)
}

// agrees returns how many known letters of a name can agree with the first
// counts letters of a pattern that both match, or -1 where none matches both.
func agrees(name, pattern string, counts int) int {
	row, next := make([]int, len(pattern)+1), make([]int, len(pattern)+1)
	for j := range row {
		row[j] = -1
	}
	row[0] = 0
	best := func(row []int, j, n int) { row[j] = max(row[j], n) }
	empty := func(row []int) {
		for j := range pattern {
			if row[j] >= 0 && pattern[j] == '*' {
				best(row, j+1, row[j])
			}
		}
	}
	empty(row)
	for i := range len(name) {
		for j := range next {
			next[j] = -1
		}
		c := name[i]
		for j, n := range row {
			if n < 0 {
				continue
			}
			if c == wild || c == globStar {
				best(next, j, n)
				for k := j; k < len(pattern) && !hidden(pattern, k); k++ {
					best(next, k+1, n)
				}
				continue
			}
			if j > 0 && pattern[j-1] == '*' {
				best(next, j, n)
			}
			switch {
			case j == len(pattern) || pattern[j] == '*':
			case pattern[j] == c && j < counts:
				best(next, j+1, n+1)
			case pattern[j] == c || c == globOne && !hidden(pattern, j):
				best(next, j+1, n)
			}
		}
		empty(next)
		row, next = next, row
	}
	return row[len(pattern)]
}

const maxPath = 4096 // no system opens a longer path

// meets compares a word and a pattern, one row of the table at a time: row[j]
// says whether the word so far meets the first j bytes of the pattern. An
// unknown part of a word stands for text without a slash that does not begin
// with a dot: so it is with what the shell finds, and what else is unknown is
// judged when the whole command is read.
func meets(word, pattern string) bool {
	if len(word) > maxPath {
		return hasWild(word)
	}
	var a, b [128]bool
	if len(pattern) >= len(a) {
		return true
	}
	row, next := a[:len(pattern)+1], b[:len(pattern)+1]
	row[0] = true
	stars(row, pattern)
	for i := range len(word) {
		clear(next)
		c := word[i]
		any := c == wild || c == globStar
		for j := range row {
			if !row[j] {
				continue
			}
			if any {
				next[j] = true // the unknown part is empty
				for k := j; k < len(pattern) && pattern[k] != '/' && !hidden(pattern, k); k++ {
					next[k+1] = true
				}
			}
			deep := j > 0 && pattern[j-1] == '*'
			if deep && (c != '/' || j > 1 && pattern[j-2] == '*') {
				next[j] = true // a star takes one more byte
			}
			if j < len(pattern) && pattern[j] != '*' && (pattern[j] == c || c == globOne && pattern[j] != '/' && !hidden(pattern, j)) {
				next[j+1] = true
			}
		}
		stars(next, pattern)
		row, next = next, row
	}
	return row[len(pattern)]
}

// hidden says whether a name that begins with a dot begins here.
func hidden(pattern string, k int) bool {
	return pattern[k] == '.' && (k == 0 || pattern[k-1] == '/')
}

// stars lets every star that is reached be empty.
func stars(row []bool, pattern string) {
	for j := range pattern {
		if row[j] && pattern[j] == '*' {
			row[j+1] = true
		}
	}
}

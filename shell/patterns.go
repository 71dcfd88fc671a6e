package shell

import (
	"bytes"
	"slices"
	"strings"
)

// patterns is a list of patterns, kept so that a word is compared with few.
type patterns struct {
	all   []*pattern
	loose []*pattern // those that begin with a star
	tree  branch     // the others, by what stands before their first star
}

func (l *patterns) add(p *pattern) {
	l.all = append(l.all, p)
	if p.prefix == "" {
		l.loose = append(l.loose, p)
	} else {
		l.tree.add(p.prefix, p)
	}
}

// meets says whether some path matches both a word, whose unknown parts are
// marks, and one of the patterns.
func (l *patterns) meets(word string) bool {
	if hasWild(word) {
		return slices.ContainsFunc(l.all, func(p *pattern) bool { return p.meets(word) })
	}
	if l.tree.meets(word) {
		return true
	}
	if len(l.loose) == 0 {
		return false
	}
	has := pairs(word)
	for _, p := range l.loose {
		if p.pairs&^has == 0 && p.meets(word) {
			return true
		}
	}
	return false
}

// branch is a node of a tree of prefixes.
type branch struct {
	label string     // what is added to the branches above
	here  []*pattern // their prefix ends with this label
	first []byte     // the first byte of each label below
	below []*branch
}

func (b *branch) add(rest string, p *pattern) {
	if rest == "" {
		b.here = append(b.here, p)
		return
	}
	i := bytes.IndexByte(b.first, rest[0])
	if i < 0 {
		b.first = append(b.first, rest[0])
		b.below = append(b.below, &branch{label: rest, here: []*pattern{p}})
		return
	}
	c, n := b.below[i], 0
	for n < len(c.label) && n < len(rest) && c.label[n] == rest[n] {
		n++
	}
	if n < len(c.label) {
		b.below[i] = &branch{label: c.label[:n], first: []byte{c.label[n]}, below: []*branch{c}}
		c.label = c.label[n:]
		c = b.below[i]
	}
	c.add(rest[n:], p)
}

func (b *branch) meets(word string) bool {
	for rest := word; ; {
		for _, p := range b.here {
			if p.meets(word) {
				return true
			}
		}
		if rest == "" {
			return false
		}
		i := bytes.IndexByte(b.first, rest[0])
		if i < 0 || !strings.HasPrefix(rest, b.below[i].label) {
			return false
		}
		b = b.below[i]
		rest = rest[len(b.label):]
	}
}

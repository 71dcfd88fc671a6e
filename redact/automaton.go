package redact

import "strings"

// automaton finds every place of many patterns in one pass (Aho and Corasick).
// Its nodes keep their children in a list, because one secret is a long chain
// without branches; only the root, where a clean text stays, has a table.
type automaton struct {
	nodes []node
	root  [256]int32
}

type node struct {
	child, next int32 // the first child, and the next child of the same parent
	fail        int32 // the longest end of this path that is a path too
	shorter     int32 // the longest such end that is a pattern
	pattern     int32 // 1 + the pattern that ends here
	depth       int32
	b           byte
}

// newAutomaton makes ready to look for patterns, none of them empty.
func newAutomaton(patterns []string) *automaton {
	a := &automaton{nodes: make([]node, 1)}
	for i, p := range patterns {
		at := int32(0)
		for j := range len(p) {
			at = a.grow(at, p[j])
		}
		if a.nodes[at].pattern == 0 {
			a.nodes[at].pattern = int32(i + 1)
		}
	}
	var queue []int32
	for c := a.nodes[0].child; c != 0; c = a.nodes[c].next {
		a.root[a.nodes[c].b] = c
		queue = append(queue, c)
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := a.nodes[at].child; c != 0; c = a.nodes[c].next {
			fail := a.step(a.nodes[at].fail, a.nodes[c].b)
			a.nodes[c].fail, a.nodes[c].shorter = fail, fail
			if a.nodes[fail].pattern == 0 {
				a.nodes[c].shorter = a.nodes[fail].shorter
			}
			queue = append(queue, c)
		}
	}
	return a
}

// grow returns the child of a node for one byte, which it makes if need be.
func (a *automaton) grow(at int32, b byte) int32 {
	for c := a.nodes[at].child; c != 0; c = a.nodes[c].next {
		if a.nodes[c].b == b {
			return c
		}
	}
	a.nodes = append(a.nodes, node{b: b, next: a.nodes[at].child, depth: a.nodes[at].depth + 1})
	a.nodes[at].child = int32(len(a.nodes) - 1)
	return a.nodes[at].child
}

// step is the node after one more byte.
func (a *automaton) step(at int32, b byte) int32 {
	for at != 0 {
		n := &a.nodes[at]
		for c := n.child; c != 0; c = a.nodes[c].next {
			if a.nodes[c].b == b {
				return c
			}
		}
		at = n.fail
	}
	return a.root[b]
}

// search calls found with each pattern and the place where it ends, in the
// order of the ends. fold turns each byte of the text before it is compared.
// Where the text is cut off, cut, if given, is called with how many bytes before
// are the beginning of a pattern.
func (a *automaton) search(text string, fold *[256]byte, found func(pattern, end int), cut func(pattern, size, end int)) {
	at := int32(0)
	for i := range len(text) {
		if at != 0 && cut != nil && (text[i] == '.' || text[i] == "…"[0]) && isCut(text[i:]) {
			cut(a.below(at), int(a.nodes[at].depth), i)
		}
		b := fold[text[i]]
		if at == 0 {
			at = a.root[b]
		} else {
			at = a.step(at, b)
		}
		for n := at; n != 0; n = a.nodes[n].shorter {
			if p := a.nodes[n].pattern; p != 0 {
				found(int(p-1), i+1)
			}
		}
	}
	if cut != nil && at != 0 {
		cut(a.below(at), int(a.nodes[at].depth), len(text))
	}
}

// below is a pattern that begins as the path to a node does.
func (a *automaton) below(at int32) int {
	for a.nodes[at].pattern == 0 {
		at = a.nodes[at].child
	}
	return int(a.nodes[at].pattern - 1)
}

// isCut reports whether a text ends here, as far as somebody let it go on.
func isCut(rest string) bool {
	return rest == "" || strings.HasPrefix(rest, "…") || strings.HasPrefix(rest, "...")
}

// asIs and lower are ways to fold.
var asIs, lower = func() (is, low [256]byte) {
	for i := range 256 {
		is[i], low[i] = byte(i), byte(i)
		if 'A' <= i && i <= 'Z' {
			low[i] += 'a' - 'A'
		}
	}
	return is, low
}()

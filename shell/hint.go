package shell

import (
	"cmp"
	"slices"
	"strings"

	"writ"
)

// edit is a change to the text that may make it read-only.
type edit struct {
	start, end int    // the bytes that are taken out
	insert     string // what is put in their place
	say        string
}

// At most so many edits are tried, and only on texts of a length that people
// write: each costs as much as judging the text did.
const (
	maxEdits    = 4
	maxEditable = 1024
)

// edits takes note of what could make a call read-only that is not: the options
// that it would be without, and those of a trusted dry run that it lacks. seen
// is the first finding of the call.
func (w *walker) edits(c *call, seen int) {
	if !w.advising || w.nested || w.foreign > 0 || c.node.anything || len(w.tries) >= maxEdits || !w.blames(seen, 0, maxBytes) {
		return
	}
	for i := range c.opts {
		g := &c.opts[i]
		if e, ok := without(g); ok && w.blames(seen, e.start, max(g.at.end, g.val.end)) {
			w.tries = append(w.tries, e)
		}
	}
	if name := c.dryOption(); name != "" && c.node.grammar != findlike {
		w.tries = append(w.tries, edit{c.end, c.end, " " + name, "add " + name})
	}
}

// blames says whether a finding that is not read-only lies between two places.
func (w *walker) blames(seen, start, end int) bool {
	return slices.ContainsFunc(w.seen[min(seen, len(w.seen)):], func(f finding) bool {
		return f.start >= start && f.end <= end && classOf(f.bit) != writ.ReadOnly
	})
}

// without is the edit that takes an option away, its value included.
func without(g *given) (edit, bool) {
	e := edit{start: g.at.start, end: g.at.end, say: "leave out " + g.opt.name}
	if !g.at.known || g.at.end-g.at.start != len(g.at.text) { // it is written differently
		return e, false
	}
	apart := g.has && g.val.start >= g.at.end
	if apart {
		e.end, e.say = g.val.end, e.say+" "+g.val.show()
	}
	if strings.HasPrefix(g.at.text, "--") || len(g.opt.name) != 2 || len(g.at.text) == 2 {
		return e, true
	}
	i := strings.Index(g.at.text, g.opt.name[1:])
	if i < 1 {
		return e, false
	}
	rest := g.at.text[:i] + g.at.text[i+1:]
	if g.has && !apart { // the rest of the word is its value
		rest = g.at.text[:i]
	}
	if rest != "-" {
		e.insert = rest
	}
	return e, true
}

// dryOption returns the option that makes a trusted dry run of a call.
func (c *call) dryOption() string {
	var names []string
	for n := c.node; n != nil; n = n.parent {
		for name, o := range n.opts {
			if o.acts.dry && (!o.takes || o.optional) {
				names = append(names, name)
			}
			for value, a := range o.value.one {
				if a.dry && strings.HasPrefix(name, "--") {
					names = append(names, name+"="+value)
				}
			}
		}
		if !n.globals {
			break
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.MinFunc(names, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
}

// advise returns the first edit that really makes a text read-only, in words.
func (w *walker) advise(text string) string {
	if len(w.tries) == 0 || len(text) > maxEditable {
		return ""
	}
	other := w.k.walker()
	defer w.k.walkers.Put(other)
	for _, e := range w.tries {
		*other = w.k.fresh(other)
		other.judged(text[:e.start] + e.insert + text[e.end:])
		if classOf(other.found) == writ.ReadOnly {
			return e.say
		}
	}
	return ""
}

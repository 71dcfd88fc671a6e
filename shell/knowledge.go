package shell

import (
	"maps"
	"slices"

	"writ"
)

// Info is what is known of one command, for people.
type Info struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	About   string   `json:"about"`
	Manual  string   `json:"manual,omitempty"`
	File    string   `json:"file"`
	Verbs   []string `json:"verbs,omitempty"`   // every verb, with those above it
	Options []string `json:"options,omitempty"` // of the command itself, sorted
	Effects []Effect `json:"effects"`           // what it does by itself
	Hint    string   `json:"hint,omitempty"`

	Examples []Example `json:"examples"`       // each was checked when its file was loaded
	Source   string    `json:"source"`         // the document itself
	More     []Info    `json:"more,omitempty"` // what further files say: the strictest holds
}

// Example is a command with the class that the knowledge of it must lead to.
type Example struct {
	Command    string     `json:"command"`
	Class      writ.Class `json:"class"`
	NeedsLimit bool       `json:"needs_limit"`
	line       int        // where it stands in the file
}

// Names lists every command that is known, aliases included, sorted.
func (k *Knowledge) Names() []string { return slices.Clone(k.names) }

// Command returns what is known of a command.
func (k *Knowledge) Command(name string) (Info, bool) {
	e := k.entries[name]
	if e == nil || e.node() == nil {
		return Info{}, false
	}
	i := e.node().info()
	for _, n := range e.more {
		i.More = append(i.More, n.info())
	}
	return i, true
}

func (n *node) info() Info {
	i := Info{
		Name: n.name, Aliases: n.aliases, About: n.about, Manual: n.manual, File: n.file, Hint: n.hint,
		Effects: (n.base.add | n.base.keep).list(), Examples: n.examples, Source: n.source,
		Options: slices.Sorted(maps.Keys(n.opts)),
	}
	n.walk("", func(path string) { i.Verbs = append(i.Verbs, path) })
	return i
}

// walk calls visit with each verb below a node, written with those above it.
func (n *node) walk(above string, visit func(string)) {
	for _, v := range n.verbs {
		visit(above + v.name)
		v.walk(above+v.name+" ", visit)
	}
}

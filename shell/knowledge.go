package shell

import "slices"

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
}

// Names lists every command that is known, aliases included, sorted.
func (k *Knowledge) Names() []string { return slices.Clone(k.names) }

// Command returns what is known of a command.
func (k *Knowledge) Command(name string) (Info, bool) {
	e := k.entries[name]
	if e == nil || e.node() == nil {
		return Info{}, false
	}
	n := e.node()
	i := Info{Name: n.name, About: n.about, File: e.file, Hint: n.hint, Effects: (n.base.add | n.base.keep).list(), Manual: n.manual, Aliases: n.aliases}
	for o := range n.opts {
		i.Options = append(i.Options, o)
	}
	slices.Sort(i.Options)
	n.walk("", func(path string) { i.Verbs = append(i.Verbs, path) })
	return i, true
}

// walk calls visit with each verb below a node, written with those above it.
func (n *node) walk(above string, visit func(string)) {
	for _, v := range n.verbs {
		visit(above + v.name)
		v.walk(above+v.name+" ", visit)
	}
}

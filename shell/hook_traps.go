package shell

import (
	"path"
	"slices"
	"strings"
)

// trapHook returns the hooks against words that look harmless where they stand.
func trapHook(name string) func(*walker, *call) {
	switch name {
	case "composed":
		return hookComposed
	case "namespaces":
		return hookNamespaces
	case "rpm":
		return hookRpm
	case "rsync":
		return hookRsync
	case "untamed":
		return hookUntamed
	case "words":
		return hookWords
	case "workdir":
		return hookWorkdir
	}
	return nil
}

// hookWords refuses options among the operands of a command that takes them
// anywhere, though it is read without a grammar, and @FILE, which holds more.
func hookWords(w *walker, c *call) {
	hookAt(w, c)
	for i := 1; i < len(c.operands); i++ {
		if a := &c.operands[i]; a.mayDash() && !a.tame {
			w.note(bitUnknown, a.start, a.end, c.node.path, "the word "+a.show()+" is or may be an option of "+c.node.name)
		}
	}
}

// hookWorkdir judges the directory in which a command runs elsewhere: what it
// reads by a short name, or as a whole, lies there.
func hookWorkdir(w *walker, c *call) {
	if g := c.has("-w", "--workdir"); g != nil && g.val.known && w.k.policy.holdsSecrets(path.Clean(g.val.text)) {
		w.note(bitReadSecret, g.val.start, g.val.end, c.node.path, "runs in "+g.val.show()+", and secrets lie there")
	}
}

// hookUntamed is for lists whose words are plain only in some forms: with a
// command line in them, they may be anything.
func hookUntamed(w *walker, c *call) {
	plain := c.node.name != "ps" && c.has("-a", "--list-full", "-l", "--list-name") == nil
	if g := c.has("--format"); c.node.name == "ps" {
		plain = c.has("-q", "--quiet") != nil || g != nil && !slices.ContainsFunc([]string{"Command", "Label", "Mount", "json", "table"}, func(s string) bool { return strings.Contains(g.val.text, s) })
	}
	if !plain {
		n := *c.node
		n.output = outAny
		c.node = &n
	}
}

// hookComposed is for the compose that is a program of its own: its files may
// be addresses.
func hookComposed(w *walker, c *call) {
	hookPflag(w, c)
	hookLocal(w, c)
}

// hookNamespaces judges ip -all netns exec, which takes no name: the first word
// is the command then.
func hookNamespaces(w *walker, c *call) {
	if g := c.has("-a", "-all"); g != nil && len(c.operands) > 0 {
		w.commands++
		w.argv(slices.Clone(c.operands))
	}
}

// hookRpm judges what is verified: the package in a file brings the script that
// does it.
func hookRpm(w *walker, c *call) {
	hookPackages(w, c)
	verifies := c.node.name == "rpmverify" || c.has("-V") != nil
	if p := c.has("-p"); p != nil && verifies && c.has("--noscripts") == nil {
		w.note(bitExecOpaque, p.at.start, p.at.end, c.node.path, "a package that is verified from its file runs its own script")
	}
}

// hookRsync notes that one side lies on another host, which is told which files
// there are, also in a dry run.
func hookRsync(w *walker, c *call) {
	for i := range c.operands {
		a := &c.operands[i]
		host, _, ok := strings.Cut(a.text, ":")
		if ok && !strings.Contains(host, "/") || strings.HasPrefix(a.text, "rsync://") {
			w.note(bitNetSend, a.start, a.end, c.node.path, a.show()+" lies on another host, which is told the names of files")
		}
	}
}

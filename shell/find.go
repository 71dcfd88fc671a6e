package shell

import (
	"slices"
	"strings"
)

// readFind reads find's arguments: options of its own, starting points, then
// an expression of primaries, which stand in the option table.
func (w *walker) readFind(c *call, args []word) {
	i := 0
	for ; i < len(args); i++ {
		a := &args[i]
		if a.known && (a.text == "-H" || a.text == "-L" || a.text == "-P" || strings.HasPrefix(a.text, "-O") && isNumber(a.text[2:])) {
			continue
		}
		if a.known && (strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" || a.text == ",") {
			break
		}
		if !a.known && (a.mayDash() || a.many && !a.tame) {
			w.unknown(c, a, "the word "+a.show()+" may become a primary of find")
			continue
		}
		c.operands = append(c.operands, *a)
	}
	for ; i < len(args); i++ {
		a := &args[i]
		switch {
		case a.known && slices.Contains([]string{"(", ")", "!", ","}, a.text):
			continue
		case !a.known && !a.tame:
			w.unknown(c, a, "the word "+a.show()+" may become a primary of find")
			continue
		}
		o := c.node.lookup(a.text)
		switch {
		case o == nil:
			w.unknown(c, a, "the primary "+a.show()+" of find is not known")
		case o.takes:
			i = w.value(c, o, args, i)
		default:
			c.opts = append(c.opts, given{opt: o, at: *a})
		}
	}
}

// execValue reads the command of find's -exec, up to ";" or to "{} +", and
// judges it with an unknown name of a file in the place of {}.
func (w *walker) execValue(c *call, o *option, args []word, i int) int {
	from := i + 1
	for j := from; j < len(args); j++ {
		end := args[j].known && (args[j].text == ";" || args[j].text == "+" && j > from && args[j-1].text == "{}")
		if !end {
			continue
		}
		inner := slices.Clone(args[from:j])
		c.opts = append(c.opts, given{opt: o, at: args[i]})
		if len(inner) == 0 {
			break
		}
		// What find finds begins with the starting point, and so with no dash.
		rooted := len(c.operands) > 0
		for k := range c.operands {
			rooted = rooted && !c.operands[k].mayDash()
		}
		dir := strings.HasSuffix(o.name, "dir")
		for k := range inner {
			if strings.Contains(inner[k].text, "{}") {
				place := "\x00"
				if inner[k].text == "{}" && (rooted || dir) {
					place = "./\x00"
				}
				inner[k].text, inner[k].known, inner[k].alts = strings.ReplaceAll(inner[k].text, "{}", place), false, nil
				w.findTree(c, args)
			}
		}
		w.commands++
		w.argv(inner)
		return j
	}
	w.unknown(c, &args[i], "the end of "+args[i].show()+" is missing")
	return len(args)
}

// findTree takes note of a search that gives the names of secrets: one that
// starts above them and does not look for certain names.
func (w *walker) findTree(c *call, args []word) {
	named := false
	for i := range args {
		if !args[i].known || !strings.HasSuffix(args[i].text, "name") || i+1 == len(args) {
			continue
		}
		name := strings.NewReplacer("*", "\x01", "?", "\x02", "[", "\x01").Replace(args[i+1].text)
		named = named || strings.Trim(name, "\x00\x01\x02.") != ""
		w.mentioned = w.mentioned || name != "" && (w.k.policy.named(name) || name[0] > globOne && w.k.policy.secretName(name))
	}
	if named {
		return
	}
	for i := range c.operands {
		if w.k.policy.holdsSecrets(w.absolute(c.operands[i].text)) {
			w.mentioned = true
		}
	}
}

// hookFind judges what the primaries alone do not tell.
func hookFind(w *walker, c *call) {
	if w.producing == 0 {
		return
	}
	var words []word
	for i := range c.opts {
		words = append(words, c.opts[i].at)
		if c.opts[i].has {
			words = append(words, c.opts[i].val)
		}
	}
	w.findTree(c, words)
}

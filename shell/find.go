package shell

import (
	"path"
	"slices"
	"strings"
)

// readFind reads find's arguments: options of its own, starting points, then
// an expression of primaries, which stand in the option table.
func (w *walker) readFind(c *call, args []word) {
	c.search = args
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
				w.findTree(c)
			}
		}
		w.commands++
		w.argv(inner)
		return j
	}
	w.unknown(c, &args[i], "the end of "+args[i].show()+" is missing")
	return len(args)
}

// findTree takes note of a search that gives the names of secrets: one for a
// name that a secret may have, or one that starts above them and does not look
// only for names that none of them has.
func (w *walker) findTree(c *call) {
	narrow, ordinary := w.findNames(c)
	for i := 0; i < len(c.operands) || i == 0; i++ {
		from := "."
		if i < len(c.operands) {
			from = c.operands[i].text
		}
		if path.Clean(from) == "/" {
			w.note(bitUnbounded, c.start, c.end, c.node.path, "goes through every file there is")
		}
		if w.k.policy.holdsSecrets(path.Clean(w.absolute(from))) && !(narrow && ordinary) {
			w.mentioned = true
		}
	}
}

// findNames looks at the names a search is for: whether every branch of it asks
// for one, and whether they are all names that no secret has.
func (w *walker) findNames(c *call) (narrow, ordinary bool) {
	narrow, ordinary = true, true
	here := false // this branch asks for a name
	for i := range c.search {
		switch a := &c.search[i]; a.text {
		case "-o", "-or":
			narrow, here = narrow && here, false
		case "!", "-not", ",":
			narrow = false
		case "-name", "-iname":
			if !a.known || i+1 == len(c.search) {
				continue
			}
			name := strings.NewReplacer("*", "\x01", "?", "\x02", "[", "\x01").Replace(c.search[i+1].text)
			if here = true; a.text == "-iname" {
				name = strings.ToLower(name)
			}
			ordinary = ordinary && w.k.policy.isOrdinary(name)
			w.mentioned = w.mentioned || name != "" && (w.k.policy.named(name) || name[0] > globOne && w.k.policy.lasts.meets(name))
		}
	}
	return narrow && here, ordinary
}

// hookFind judges what the primaries alone do not tell.
func hookFind(w *walker, c *call) {
	if w.producing > 0 {
		w.findTree(c)
	}
}

package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is one command with its arguments, read by its grammar.
type call struct {
	node       *node
	called     string // the name that the command was called by
	start, end int    // of the command word, or of command word and verb
	opts       []given
	operands   []word
	search     []word // of find: all arguments
	asked      *word  // the host that it asks
	lost       bool   // a word was not understood: what stands after it may be anything
	noted      bool
	dry        bool // a trusted dry run
	dashed     bool // a "--" ended the options
	given      bool // what it prints is known from how it is used
	prints     output
}

// gives notes what a call prints as it is used here.
func (c *call) gives(prints output) { c.given, c.prints = true, prints }

// given is an option as it was used.
type given struct {
	opt *option
	at  word // the argument with the option
	val word // its value, when it has one
	has bool
}

// call judges a simple command.
func (w *walker) call(c *syntax.CallExpr) {
	w.commands++
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			w.assign(a)
		}
		return
	}
	for _, a := range c.Assigns {
		w.prefix(a, c)
	}
	from := len(w.args)
	for _, a := range c.Args {
		w.args = w.fields(w.args, a)
	}
	if args := w.args[from:]; len(args) > 0 {
		w.argv(args)
	} else {
		start, end := w.span(c)
		w.note(bitUnknown, start, end, "shell/command", "there is no command here")
	}
	w.args = w.args[:from]
}

// prefix judges NAME=value before a command.
func (w *walker) prefix(a *syntax.Assign, c *syntax.CallExpr) {
	start, end := w.span(a)
	if a.Name == nil || a.Index != nil || a.Array != nil || a.Append || a.Naked {
		w.note(bitEnvTaint, start, end, "shell/prefix", "this form of assignment before a command is not judged")
		if a.Index != nil {
			w.subscript(a.Index)
		}
		return
	}
	val := w.single(a.Value)
	w.mention(&val)
	if a.Name.Value == "IFS" && c.Args[0].Lit() == "read" {
		return
	}
	if !w.k.policy.mayExport(a.Name.Value, val) {
		w.note(bitEnvTaint, start, end, "shell/prefix", "the variable "+a.Name.Value+" is handed to the command, which may obey it")
	}
}

// argv judges a command given as words.
func (w *walker) argv(args []word) {
	w.steps += len(args)
	if w.overrun() {
		return
	}
	first := &args[0]
	for i := range args {
		w.mention(&args[i])
		if args[i].bare {
			w.note(bitUnknown, args[i].start, args[i].end, "shell/text", "outside quotes stands a sign that looks like the shell's own")
		}
	}
	if !first.known || first.bare || !asciiOnly(first.text) {
		w.note(bitExecOpaque, first.start, first.end, "shell/command", "which command this is cannot be seen: "+first.show())
		w.drastic(args, false)
		w.out = outAny
		return
	}
	name := first.text
	if w.vars.functions[name] {
		w.out = outMade
		return
	}
	if strings.Contains(name, "/") {
		switch dir := path.Dir(name); dir {
		case "/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin":
			name = path.Base(name)
		default:
			w.note(bitExecOpaque, first.start, first.end, "shell/command", "runs the program "+name+", which is not in a system directory")
			w.drastic(args, true)
			w.out = outAny
			return
		}
		if path.Clean(first.text) != first.text {
			w.note(bitUnknown, first.start, first.end, "shell/command", "the path "+first.text+" is not written plainly")
		}
	}
	e := w.k.entries[name]
	var n *node
	if e != nil {
		n = e.node()
	}
	if n == nil {
		w.note(bitUnknown, first.start, first.end, "shell/command", "the command "+first.show()+" is not known")
		w.drastic(args, false)
		w.out = outAny
		return
	}
	w.ask(n, args)
	for _, more := range e.more {
		w.ask(more, args)
	}
	if len(e.more) > 0 {
		w.once()
	}
}

// once forgets what was found again when a command was asked about again.
func (w *walker) once() {
	list := w.seen[:0]
	for _, f := range w.seen {
		if !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	w.seen = list
}

// drastic notes data loss when words of something we cannot judge say so.
func (w *walker) drastic(args []word, texts bool) {
	for i := range args {
		if i > 0 || texts {
			w.drasticText(&args[i])
		} else if drasticWord(path.Base(args[i].text)) {
			w.note(bitDataLoss, args[i].start, args[i].end, "shell/words", "the word "+args[i].show()+" tells of removing")
		}
	}
}

// keepDire keeps the first word that tells of removing, of those that something is
// told to print or a variable gets: where code is run that cannot be seen, it
// may be that.
func (w *walker) keepDire(a *word) {
	if w.dire == nil && saysDrastic(a.text) != "" {
		dire := *a
		w.dire = &dire
	}
}

func (w *walker) drasticText(a *word) {
	if f := saysDrastic(a.text); f != "" {
		w.note(bitDataLoss, a.start, a.end, "shell/words", "the word "+f+" tells of removing")
	}
}

// saysDrastic returns the first word of a text that tells of removing.
func saysDrastic(text string) string {
	for f := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&(){}[],=:.$\\", r) }) {
		if drasticWord(f[strings.LastIndexByte(f, '/')+1:]) {
			return f
		}
	}
	return ""
}

// drasticWord is asked only of what cannot be judged: it makes a class
// stricter, never milder.
func drasticWord(s string) bool {
	switch strings.ToLower(strings.TrimLeft(s, "-+")) {
	case "rm", "rmdir", "unlink", "shred", "wipefs", "mkfs", "dd", "truncate", "rf", "fr", "force", "delete", "del", "destroy", "remove", "remove-item",
		"purge", "drop", "wipe", "erase", "format", "prune", "poweroff", "reboot", "shutdown", "halt", "kill", "killall", "pkill", "zap", "nuke", "flush", "rmtree", "dropdatabase", "deletemany":
		return true
	}
	return strings.HasPrefix(s, "mkfs.")
}

// ask reads the arguments by a node's grammar and judges them.
func (w *walker) ask(n *node, args []word) {
	if w.frame == len(w.frames) {
		w.frames = append(w.frames, &call{})
	}
	c := w.frames[w.frame]
	*c = call{node: n, called: path.Base(args[0].text), start: args[0].start, end: args[0].end, opts: c.opts[:0], operands: c.operands[:0]}
	w.frame++
	w.read(c, args[1:])
	w.judge(c)
	w.frame--
}

// unknown notes that a word was not understood.
func (w *walker) unknown(c *call, a *word, why string) {
	c.lost = true
	if c.node.anything {
		return
	}
	w.note(bitUnknown, a.start, a.end, c.node.path, why)
	w.drasticText(a)
	c.noted = true
}

// read sorts the arguments into options, verbs and operands.
func (w *walker) read(c *call, args []word) {
	if c.node.grammar == findlike {
		w.readFind(c, args)
		return
	}
	options := c.node.grammar != raw
	for i := 0; i < len(args); i++ {
		a := &args[i]
		n := c.node
		if options && (a.known && a.text == "--") {
			options, c.dashed = false, true
			continue
		}
		if options && n.grammar == oldstyle && i == 0 && a.known && a.text != "" && a.text[0] != '-' {
			i = w.oldCluster(c, args)
			continue
		}
		if options && a.mayDash() && a.text != "-" {
			if a.known || optionShaped(a.text) && !a.many {
				i = w.option(c, args, i)
				continue
			}
			if !n.optionsSafe {
				w.unknown(c, a, "the word "+a.show()+" may become an option")
			}
		} else if options && a.many && !a.tame && !n.optionsSafe {
			w.unknown(c, a, "the word "+a.show()+" may become several, and one of them an option")
		}
		if options && a.known && len(a.text) > 1 && a.text[0] == '+' {
			if o := n.lookup(a.text[:2]); o != nil { // +o switches off, or +r something else on
				if c.opts = append(c.opts, given{opt: o, at: *a}); o.takes && !o.optional {
					c.opts = c.opts[:len(c.opts)-1]
					i = w.value(c, o, args, i)
				}
				continue
			}
		}
		if n.verb != nil && len(c.operands) == 0 && w.verb(c, a) {
			continue
		}
		if name, _, ok := strings.Cut(a.text, "="); n.grammar == keyvalue && ok {
			if o := n.lookup(name); o != nil && o.takes {
				c.opts = append(c.opts, given{o, *a, a.from(len(name) + 1), true})
				continue
			}
		}
		c.operands = append(c.operands, *a)
		if c.node.grammar == posix || c.node.grammar == goflag || c.node.takesCommand(len(c.operands)) {
			options = false
		}
	}
}

// optionShaped says whether a word that is known only in part surely is an
// option with a value glued to it.
func optionShaped(s string) bool {
	i := strings.IndexAny(s, "\x00\x01\x02")
	return s[0] == '-' && i > 1 && (s[1] != '-' || strings.Contains(s[:i], "="))
}

// takesCommand says whether from operand i on the words are a command of their own.
func (n *node) takesCommand(i int) bool {
	if len(n.operands) == 0 {
		return false
	}
	last := n.operands[len(n.operands)-1].kind
	return (last == kindCommand || last == kindShell && n.operands[len(n.operands)-1].quant == '*') && i >= len(n.operands)-1 && i > 0
}

// verb descends to a verb. It says false when the word is an operand.
func (w *walker) verb(c *call, a *word) bool {
	n := c.node
	if a.known {
		if v := n.find(a.text); v != nil {
			c.node, c.end = v, a.end
			return true
		}
	}
	if n.hasOperands && a.known {
		return false
	}
	if n.anything {
		c.lost = true
		return false
	}
	w.unknown(c, a, "the verb "+a.show()+" of "+n.name+" is not known")
	return false
}

// lookup finds an option here or, where they may stand, above.
func (n *node) lookup(name string) *option {
	for m := n; m != nil; m = m.parent {
		if o := m.opts[name]; o != nil {
			return o
		}
		if !m.globals {
			return nil
		}
	}
	return nil
}

// option reads the option at args[i] and returns the index of its last word.
func (w *walker) option(c *call, args []word, i int) int {
	a := &args[i]
	if !asciiOnly(a.text[:min(len(a.text), 2)]) {
		w.unknown(c, a, "the option "+a.show()+" is not written in plain letters")
		return i
	}
	if c.node.grammar == single || c.node.grammar == goflag || strings.HasPrefix(a.text, "--") {
		return w.long(c, args, i)
	}
	return w.cluster(c, args, i, 1)
}

func (w *walker) long(c *call, args []word, i int) int {
	a := &args[i]
	name, _, glued := strings.Cut(a.text, "=")
	o := c.node.lookup(name)
	if o == nil && strings.HasPrefix(name, "--") && (c.node.grammar == single || c.node.grammar == goflag) {
		o = c.node.lookup(name[1:])
	}
	if o == nil && c.node.abbreviate && len(name) > 2 {
		o = c.node.abbreviated(name)
	}
	switch {
	case o == nil && isNumber(strings.TrimPrefix(name, "-")) && c.node.lookup("-#") != nil:
		c.opts = append(c.opts, given{opt: c.node.lookup("-#"), at: *a})
	case o == nil:
		w.unknown(c, a, "the option "+a.show()+" of "+c.node.name+" is not known")
	case glued && !o.takes:
		w.unknown(c, a, "the option "+name+" of "+c.node.name+" takes no value")
	case glued:
		c.opts = append(c.opts, given{o, *a, a.from(len(name) + 1), true})
	case o.takes && !o.optional:
		return w.value(c, o, args, i)
	default:
		c.opts = append(c.opts, given{opt: o, at: *a})
	}
	return i
}

// value takes the next word as an option's value.
func (w *walker) value(c *call, o *option, args []word, i int) int {
	if o.value.kind == kindExec {
		return w.execValue(c, o, args, i)
	}
	if i+1 >= len(args) {
		w.unknown(c, &args[i], "the value of "+o.name+" is missing")
		return i
	}
	v := args[i+1]
	if o.value.kind == kindNamed {
		if !v.known || i+2 >= len(args) {
			w.unknown(c, &v, "the name "+v.show()+" after "+o.name+" cannot be seen, or nothing follows it")
			return i + 1
		}
		i++
		v = args[i+1]
	}
	if v.many && !v.tame && !c.node.optionsSafe || v.glob && v.mayDash() && !c.node.optionsSafe {
		w.unknown(c, &v, "the value "+v.show()+" of "+o.name+" may become several words")
	}
	c.opts = append(c.opts, given{o, args[i], v, true})
	return i + 1
}

// abbreviated finds the only long option that begins with a name. Where several
// do that are judged alike, it is the first of them by name.
func (n *node) abbreviated(name string) *option {
	var found *option
	for m := n; m != nil; m = m.parent {
		for full, o := range m.opts {
			if !strings.HasPrefix(full, name) {
				continue
			}
			if found != nil && (found.value.kind != o.value.kind || found.acts != o.acts) {
				return nil
			}
			if found == nil || full < found.name {
				found = o
			}
		}
		if !m.globals {
			break
		}
	}
	return found
}

// cluster reads the letters of one word from position at.
func (w *walker) cluster(c *call, args []word, i, at int) int {
	a := &args[i]
	if o := c.node.lookup(a.text); o != nil && len(a.text) > 2 { // a long name with one dash
		if o.takes && !o.optional {
			return w.value(c, o, args, i)
		}
		c.opts = append(c.opts, given{opt: o, at: *a})
		return i
	}
	for j := at; j < len(a.text); j++ {
		w.steps++
		o := c.node.lookup("-" + a.text[j:j+1])
		if o == nil && a.text[j] >= '0' && a.text[j] <= '9' {
			o = c.node.lookup("-#")
		}
		switch {
		case o == nil:
			w.unknown(c, a, "the option -"+strings.Trim(a.text[j:j+1], "\x00\x01\x02")+" of "+c.node.name+" is not known")
			return i
		case !o.takes:
			c.opts = append(c.opts, given{opt: o, at: *a})
		case j+1 < len(a.text):
			c.opts = append(c.opts, given{o, *a, a.from(j + 1), true})
			return i
		case o.optional:
			c.opts = append(c.opts, given{opt: o, at: *a})
		default:
			return w.value(c, o, args, i)
		}
	}
	return i
}

// oldCluster reads tar's first word: letters, whose values follow in order.
func (w *walker) oldCluster(c *call, args []word) int {
	i := 0
	for j := range len(args[0].text) {
		o := c.node.lookup("-" + args[0].text[j:j+1])
		switch {
		case o == nil:
			w.unknown(c, &args[0], "the option "+args[0].text[j:j+1]+" of "+c.node.name+" is not known")
		case o.takes && !o.optional:
			if i+1 >= len(args) {
				w.unknown(c, &args[0], "the value of "+o.name+" is missing")
				continue
			}
			i++
			if v := &args[i]; v.many && !v.tame {
				w.unknown(c, v, "the value "+v.show()+" of "+o.name+" may become several words")
			}
			c.opts = append(c.opts, given{o, args[0], args[i], true})
		default:
			c.opts = append(c.opts, given{opt: o, at: args[0]})
		}
	}
	return i
}

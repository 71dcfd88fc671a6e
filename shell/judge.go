package shell

import (
	"slices"
	"strings"
)

// judge turns what was read into effects.
func (w *walker) judge(c *call) {
	n, seen := c.node, len(w.seen)
	var a acts
	opens := false // a file to write, which may be made as soon as it is read of
	for i := range c.opts {
		g := &c.opts[i]
		o := g.opt.acts
		if g.opt.value.kind == kindOne && g.has {
			one, ok := g.opt.value.one[g.val.text]
			if !g.val.known || !ok {
				w.unknown(c, &g.val, "the value "+g.val.show()+" of "+g.opt.name+" is not known")
			}
			a.merge(&one)
		}
		if g.has && writesNowhere(&g.opt.value, &g.val) {
			o.add, o.keep = 0, 0
		}
		a.merge(&o)
		opens = opens || g.has && (g.opt.value.kind == kindPathWrite || g.opt.value.kind == kindPathOut) && !writesNowhere(&g.opt.value, &g.val)
	}
	if c.lost {
		a.plain, a.drop = false, 0
	}
	if c.lost || w.foreign > 0 {
		a.dry, a.stop = false, false
	}
	// What an option does at once, no later --help takes back; and where options
	// are read in their order, neither what an operand did.
	a.stop = a.stop && a.keep == 0 && !opens && (n.grammar != single || len(c.operands) == 0)
	if a.stop {
		w.out = outAny
		return
	}
	if a.names {
		c.gives(outNames)
	}
	c.dry = a.dry
	a.drop |= c.present(&a)
	if w.here != nil && n.stdin.kind != kindNone && n.base.add&^a.drop&waiting != 0 && (n.stdin.kind != kindShell || len(c.operands) == 0) && !c.lost {
		// It does not wait for anybody: what it is given stands here.
		a.drop |= waiting
		w.kind(c, &n.stdin, w.here, &a, true)
	}
	a.add |= n.base.add &^ a.drop
	a.keep |= n.base.keep &^ a.drop
	a.tree = a.tree || n.base.tree
	if a.dry {
		a.add &= bitUnbounded | bitInteractive
	}
	if n.foreign {
		w.foreign++
		defer func() { w.foreign-- }()
	}
	w.options(c, &a)
	if n.verb != nil && !n.bare && !n.hasOperands && len(c.operands) == 0 && !a.plain && !c.lost {
		w.note(bitUnknown, c.start, c.end, n.path, n.name+" without a verb is not judged")
	}
	for m := n; m != nil; m = m.parent {
		if m.hook != nil {
			w.needTree()
			m.hook(w, c)
		}
	}
	if n.anything {
		for i := range c.operands {
			w.touch("operand", c.operands[i].text)
		}
	} else {
		w.operandList(c, &a)
	}
	if n.input && !a.plain && a.drop&bitUnbounded == 0 && !c.readsFiles(a.first) {
		w.waits(c.start, c.end, n.path)
	}
	if c.asked != nil && !(c.asked.known && loopback(hostOf(c.asked.text))) {
		w.tells(c)
	}
	w.effects(c, a.add|a.keep)
	w.output(c)
	w.edits(c, seen)
}

// waiting are the effects of a command that does what it is told over its input.
const waiting = bitInteractive | bitExecOpaque | bitUnbounded

// writesNowhere says whether a value is a file that is written, and is one that
// keeps nothing.
func writesNowhere(s *spec, v *word) bool {
	return (s.kind == kindPathWrite || s.kind == kindPathOut) && v.known && sink(v.text)
}

// readsFiles says whether an operand names what is read, so that the input is not.
func (c *call) readsFiles(first bool) bool {
	specs := c.node.operands
	if first && len(specs) > 0 {
		specs = specs[1:]
	}
	for i := range specs {
		if specs[i].kind == kindPathRead || specs[i].kind == kindText && specs[i].quant == '*' {
			return len(c.operands) > i
		}
	}
	return false
}

// present returns the base effects that no longer hold because an operand is
// there: env with a command does not show the environment.
func (c *call) present(a *acts) (drop effects) {
	if a.plain || c.lost {
		return 0
	}
	i := len(c.operands)
	for si := range c.node.operands {
		s := &c.node.operands[si]
		switch {
		case si == 0 && a.first:
			continue
		case s.kind == kindEnv:
			for i > 0 && isAssignment(&c.operands[len(c.operands)-i]) {
				i--
			}
			continue
		case i > 0:
			drop |= s.acts.drop
			i--
		}
	}
	return drop
}

func (a *acts) merge(b *acts) {
	a.add |= b.add
	a.keep |= b.keep
	a.drop |= b.drop
	a.dry = a.dry || b.dry
	a.stop = a.stop || b.stop
	a.plain = a.plain || b.plain
	a.tree = a.tree || b.tree
	a.first = a.first || b.first
	a.names = a.names || b.names
}

// effects notes what the command does by itself, at the option it comes from
// where there is one.
func (w *walker) effects(c *call, e effects) {
	n := c.node
	rest := e
	for i := range c.opts {
		g := &c.opts[i]
		own := g.opt.acts.add | g.opt.acts.keep
		if g.has && g.opt.value.kind == kindOne {
			one := g.opt.value.one[g.val.text]
			own |= one.add | one.keep
		}
		if bits := own & rest; bits != 0 {
			w.noteAll(bits, g.at.start, g.at.end, n.path, "the option "+g.at.show()+" of "+n.name)
			rest &^= bits
		}
	}
	if rest != 0 {
		w.noteAll(rest, c.start, c.end, n.path, strings.ReplaceAll(n.path, "/", " "))
		if w.hint == "" && n.hint != "" && classOf(rest) != "read_only" {
			w.hint = n.hint
		}
	} else if !c.noted {
		w.note(bitRead, c.start, c.end, n.path, n.about)
	}
}

// noteAll notes each effect of a set with the same subject.
func (w *walker) noteAll(bits effects, start, end int, rule, subject string) {
	for b := effects(1); b <= bits; b <<= 1 {
		if bits&b != 0 {
			w.note(b, start, end, rule, subject+" "+predicate(b))
		}
	}
}

// predicate is what an effect does, as the end of a sentence.
func predicate(b effects) string {
	switch b {
	case bitReadSecret:
		return "shows secrets"
	case bitReadDevice:
		return "reads a device"
	case bitCreate:
		return "adds something"
	case bitWrite:
		return "writes files"
	case bitDelete:
		return "removes what held data"
	case bitExecOpaque:
		return "runs code that cannot be seen here"
	case bitNetRead:
		return "asks over the network"
	case bitNetSend:
		return "sends over the network"
	case bitRuntime:
		return "changes what is running"
	case bitConfig:
		return "changes configuration"
	case bitKernel:
		return "changes the kernel"
	case bitDataLoss:
		return "destroys data or the way to it"
	case bitPower:
		return "stops the machine"
	case bitEnvTaint:
		return "changes what later programs are or obey"
	case bitUnbounded:
		return "may not end"
	case bitInteractive:
		return "waits for a person"
	case bitUnknown:
		return "cannot be judged"
	}
	return "reads"
}

// options judges the values of options.
func (w *walker) options(c *call, a *acts) {
	for i := range c.opts {
		g := &c.opts[i]
		if g.has && g.opt.value.kind != kindOne {
			w.kind(c, &g.opt.value, &g.val, a, true)
		}
	}
}

// operandList gives each operand its kind, and judges it.
func (w *walker) operandList(c *call, a *acts) {
	specs, words := c.node.operands, c.operands
	if a.plain {
		for i := range words {
			w.mention(&words[i])
		}
		return
	}
	if a.first && len(specs) > 0 {
		specs = specs[1:]
	}
	need := 0 // words that the specs after the present one must have
	for _, s := range specs {
		if s.quant == 0 || s.quant == '+' {
			need++
		}
	}
	if len(words) < need && !c.lost {
		w.note(bitUnknown, c.start, c.end, c.node.path, c.node.name+" lacks an operand")
	}
	i := 0
	for si := range specs {
		s := &specs[si]
		if s.quant == 0 || s.quant == '+' {
			need--
		}
		if s.kind == kindCommand || s.kind == kindShell && s.quant != '?' && s.quant != 0 {
			if i < len(words) {
				w.rest(c, s, words[i:])
			}
			return
		}
		if s.kind == kindEnv {
			for i < len(words) && isAssignment(&words[i]) {
				w.kind(c, s, &words[i], a, false)
				i++
			}
			continue
		}
		take := 1
		if s.quant == '*' || s.quant == '+' {
			take = len(words) - i - need
		} else if s.quant == '?' && len(words)-i <= need {
			take = 0
		}
		for ; take > 0 && i < len(words); take-- {
			w.kind(c, s, &words[i], a, false)
			i++
		}
		// A word that may become several fills all that follows.
		if i > 0 && i <= len(words) && words[i-1].many && !words[i-1].tame && si+1 < len(specs) {
			for _, later := range specs[si+1:] {
				w.kind(c, &later, &words[i-1], a, false)
			}
		}
	}
	if i < len(words) && !c.noted && !c.lost {
		w.unknown(c, &words[i], "the operand "+words[i].show()+" of "+c.node.name+" is not expected")
	}
}

func isAssignment(a *word) bool {
	name, _, ok := strings.Cut(a.text, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/\x00\x01\x02") && name[0] != '-'
}

// rest judges the words that are a command of their own.
func (w *walker) rest(c *call, s *spec, words []word) {
	list := slices.Clone(words)
	var replace string
	gives := w.pipedOutput // where the words come from that xargs adds
	for i := range c.opts {
		g := &c.opts[i]
		if g.has && g.opt.value.kind == kindPathRead {
			gives = outAny
		}
		if g.opt.value.kind == kindReplace {
			replace = "{}"
			if g.has && g.val.known && g.val.text != "" {
				replace = g.val.text
			}
		}
	}
	if replace != "" {
		for i := range list {
			if strings.Contains(list[i].text, replace) {
				list[i].text = strings.ReplaceAll(list[i].text, replace, "\x00")
				list[i].known, list[i].alts, list[i].gives = false, nil, gives
			}
		}
	} else if c.node.appends {
		list = append(list, word{text: "\x00", many: true, tame: gives == outTame, gives: gives, start: c.start, end: c.end})
	}
	if s.kind == kindShell {
		w.shellWords(list, w.otherShell(c))
		return
	}
	w.commands++
	if c.node.appends { // the input is where the words come from
		here := w.here
		w.here = nil
		w.fedInput++
		defer func() { w.fedInput--; w.here = here }()
	}
	w.argv(list)
}

// framed says whether an option of a command may put words of its own around
// what it prints, such as a separator or a format: a name that was typed there
// is not tame because the numbers between are.
func framed(c *call) bool {
	for i := range c.opts {
		v := &c.opts[i].val
		if !c.opts[i].has || c.node.output == outNames && !strings.Contains(c.opts[i].opt.name, "print") && !strings.Contains(c.opts[i].opt.name, "format") {
			continue
		}
		if !v.known && !v.tame || strings.Contains(v.text, "/") || strings.HasPrefix(v.text, "-") || strings.Contains(v.text, " -") {
			return true
		}
	}
	return false
}

// output takes note of what the command prints.
func (w *walker) output(c *call) {
	gives := c.node.output
	switch {
	case c.given:
		gives = c.prints
	case gives == outFilter:
		gives = w.pipedOutput
		for i := range c.node.operands {
			if c.node.operands[i].kind == kindPathRead && len(c.operands) > i {
				gives = outAny
			}
		}
	case gives != outAny && framed(c):
		gives = outMade
	case gives == outAny && !c.node.foreign && c.node.takesCommand(len(c.operands)):
		return // only what its command prints
	}
	w.out = max(w.out, gives)
}

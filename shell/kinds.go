package shell

import (
	"strings"
)

// kind judges one value by what it is.
func (w *walker) kind(c *call, s *spec, v *word, a *acts, option bool) {
	w.steps++
	if own := s.acts.add&^boolBits(a.dry) | s.acts.keep; own != 0 && !option && !writesNowhere(s, v) {
		w.noteAll(own, v.start, v.end, c.node.path, strings.ReplaceAll(c.node.path, "/", " ")+" with "+v.show())
	}
	// In a dry run only what an option's value does by itself remains.
	quiet := a.dry && !option
	switch s.kind {
	case kindText, kindNumber, kindPathMeta, kindReplace, kindExec, kindNone:
	case kindNamed:
		second := spec{kind: kind(s.named), acts: s.acts}
		w.kind(c, &second, v, a, option)
	case kindFormat:
		if !strings.HasPrefix(v.text, "+") {
			w.note(bitConfig, v.start, v.end, c.node.path, c.node.name+" with "+v.show()+" sets something")
		}
	case kindPathRead:
		w.pathRead(v, c.node.path, a.tree || s.acts.tree)
	case kindTreeRead:
		w.pathRead(v, c.node.path, true)
	case kindPathWrite, kindPathOut:
		if !quiet && !(s.kind == kindPathOut && v.known && v.text == "-") {
			w.pathWrite(v, v.start, v.end, c.node.path)
		}
	case kindPathDelete:
		w.touch("path_delete", v.text)
		if !quiet {
			w.note(bitDelete, v.start, v.end, c.node.path, "removes "+v.show())
		}
	case kindPathExec:
		w.note(bitExecOpaque, v.start, v.end, c.node.path, "runs or loads "+v.show())
	case kindDir:
		w.cwdLost = true
	case kindCommand:
		w.shellText(v, w.otherShell(c))
	case kindShell:
		w.shellText(v, w.otherShell(c))
	case kindEnv:
		w.envWord(c, v)
	case kindHost:
		w.host(c, v)
	case kindItem:
		w.touch(s.arg, v.text)
	case kindOne:
		if one, ok := s.one[v.text]; !v.known || !ok {
			w.unknown(c, v, "the word "+v.show()+" of "+c.node.name+" is not known")
		} else if e := one.add&^boolBits(a.dry) | one.keep; e != 0 {
			w.noteAll(e, v.start, v.end, c.node.path, c.node.name+" with "+v.show())
		}
	case kindKV:
		if !v.known || strings.Contains(v.text, "=") {
			w.note(bitConfig, v.start, v.end, c.node.path, "sets "+v.show())
		}
	case kindLetters:
		if !v.known || strings.Trim(v.text, s.arg) != "" {
			w.unknown(c, v, "the letters "+v.show()+" of "+c.node.name+" are not all known")
		}
	default:
		w.language(c, s, v)
	}
}

func boolBits(b bool) effects {
	if b {
		return ^effects(0)
	}
	return 0
}

// language judges a value that is a program in a language of its own.
func (w *walker) language(c *call, s *spec, v *word) {
	var bits effects
	var why string
	switch s.kind {
	case kindSed:
		bits, why = w.sedScript(v)
	case kindAwk:
		bits, why = w.awkScript(v)
	case kindJq:
		bits, why = w.jqScript(v)
	case kindSQL:
		bits, why = w.sqlText(v, s.arg)
	case kindURL:
		bits, why = w.url(v)
	default:
		bits, why = bitUnknown, "this kind of value is not judged"
	}
	if bits == 0 {
		return
	}
	w.noteOne(bits, v.start, v.end, c.node.path, why)
	if bits&(bitUnknown|bitExecOpaque) != 0 {
		w.drasticText(v)
	}
}

// noteOne notes every effect of a set with one sentence.
func (w *walker) noteOne(bits effects, start, end int, rule, why string) {
	for b := effects(1); b <= bits; b <<= 1 {
		if bits&b != 0 {
			w.note(b, start, end, rule, why)
		}
	}
}

// envWord judges NAME=value that is handed to a program.
func (w *walker) envWord(c *call, v *word) {
	name, _, _ := strings.Cut(v.text, "=")
	val := v.from(min(len(name)+1, len(v.text)))
	if !w.k.policy.mayExport(name, val) {
		w.note(bitEnvTaint, v.start, v.end, c.node.path, "the variable "+name+" is handed to the command, which may obey it")
	}
}

// host judges the name of another machine: a name that is put together here
// can carry data out.
func (w *walker) host(c *call, v *word) {
	w.touch("host", v.text)
	c.asked = v
	if !v.known && len(v.alts) == 0 {
		w.note(bitNetSend, v.start, v.end, c.node.path, "the name "+v.show()+" is put together here and can carry data out")
		return
	}
	w.note(bitNetRead, v.start, v.end, c.node.path, "asks "+v.show()+" over the network")
}

// tells notes what a host that a call asks is told and cannot be seen here.
func (w *walker) tells(c *call) {
	tell := func(v *word) {
		if v != c.asked && !v.known && !v.tame && len(v.alts) == 0 {
			w.note(bitNetSend, v.start, v.end, c.node.path, "tells "+c.asked.show()+" what cannot be seen here: "+v.show())
		}
	}
	for i := range c.opts {
		if c.opts[i].has {
			tell(&c.opts[i].val)
		}
	}
	for i := range c.operands {
		tell(&c.operands[i])
	}
}

// otherShell says whether the texts that a command hands to a shell may be read
// by one that is not bash: by whatever is called sh there.
func (w *walker) otherShell(c *call) bool {
	switch c.node.name {
	case "eval", "trap":
		return w.other
	case "sh":
		return c.called != "bash"
	}
	return true
}

// shellText judges a string that a shell will run.
func (w *walker) shellText(v *word, other bool) {
	if !v.known {
		w.note(bitExecOpaque, v.start, v.end, "shell/string", "the shell is given a text that cannot be seen: "+v.show())
		w.drasticText(v)
		return
	}
	w.inner(v.text, v.start, v.end, other)
}

// shellWords judges words that a shell will join with blanks and read again.
func (w *walker) shellWords(list []word, other bool) {
	text := ""
	for i := range list {
		if !list[i].known {
			w.note(bitExecOpaque, list[i].start, list[i].end, "shell/string", "the shell is given a text that cannot be seen: "+list[i].show())
			for j := range list {
				w.drasticText(&list[j])
			}
			return
		}
		if i > 0 {
			text += " "
		}
		text += list[i].text
	}
	w.inner(text, list[0].start, list[len(list)-1].end, other)
}

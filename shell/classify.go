package shell

import (
	"errors"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"writ"
)

// Classify judges a command as bash would run it. It never fails: what cannot
// be judged gets a stricter class. The same knowledge gives the same verdict
// for the same text, always.
func (k *Knowledge) Classify(command string) Verdict {
	w := k.walker()
	defer k.walkers.Put(w)
	return w.verdict(w.judged(command))
}

// Explain judges a command and, where one word more or less makes it read-only,
// says so as the hint. It costs as much as judging a few commands.
func (k *Knowledge) Explain(command string) Verdict {
	w := k.walker()
	defer k.walkers.Put(w)
	w.advising = true
	v := w.verdict(w.judged(command))
	if v.Class != writ.ReadOnly && v.Hint == "" {
		v.Hint = w.advise(v.Command)
	}
	return v
}

// judged judges a command, and returns the text that was judged.
func (w *walker) judged(command string) string {
	if w.plain(command) {
		w.settle()
		return command
	}
	return w.parsed(command)
}

// parsed judges a command by its tree, and returns the text that was judged.
func (w *walker) parsed(command string) string {
	text, why := prepare(command)
	if why != "" {
		w.refuse(text, why)
		return text
	}
	file, err := w.parse(text)
	if err != nil {
		w.refuse(text, "the command cannot be read as bash: it would be run differently, or not at all")
		return text
	}
	w.file = file
	w.stmts(file.Stmts)
	if w.commands == 0 && len(file.Stmts) == 0 {
		w.note(bitUnknown, 0, len(text), "shell/empty", "there is no command")
	}
	w.settle()
	return text
}

// ClassifyArgv judges a command given as words. Verdict.Command is the same
// command as a text for bash.
func (k *Knowledge) ClassifyArgv(argv []string) Verdict {
	var b strings.Builder
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if a != "" && strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,@%+") == "" {
			b.WriteString(a)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(a, "'", `'\''`) + "'")
	}
	return k.Classify(b.String())
}

func (w *walker) parse(text string) (*syntax.File, error) {
	if w.parser == nil {
		w.parser = syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	}
	w.text.Reset(text)
	file, err := w.parser.Parse(&w.text, "")
	if err == nil && strings.ContainsAny(text, "#`") && hidesCode(file, text) {
		err = errors.New("bash reads this text differently")
	}
	return file, err
}

// hidesCode says whether code stands where the parser does not see it: behind
// what it takes for a comment, and is part of a word to bash, as in (echo ”#;ls);
// or behind a backquote within quotes, which ends a substitution to bash.
func hidesCode(file *syntax.File, text string) bool {
	hidden := false
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Comment:
			at := int(n.Pos().Offset())
			hidden = hidden || at > 0 && strings.IndexByte(" \t\n;&|(", text[at-1]) < 0
		case *syntax.CmdSubst:
			within := text[n.Left.Offset()+1 : n.Right.Offset()]
			hidden = hidden || n.Backquotes && strings.Contains(strings.ReplaceAll(strings.ReplaceAll(within, `\\`, ""), "\\`", ""), "`")
		}
		return true
	})
	return hidden
}

// prepare returns the text that is judged and run, and why it is refused.
func prepare(command string) (text, why string) {
	if why = checkText(command); why != "" {
		return command, why
	}
	text, ok := splice(command)
	if !ok {
		return command, "a line is continued with a backslash where that cannot be followed: write it on one line"
	}
	return text, ""
}

// refuse is the verdict on a text that is not parsed.
func (w *walker) refuse(text, why string) {
	w.note(bitUnknown, 0, len(text), "shell/text", why)
	a := word{text: text[:min(len(text), maxBytes)], end: len(text)}
	w.drasticText(&a)
}

// inner judges a text that a shell within this command runs, which may be other
// than bash. Nothing of its variables is known, and nothing it sets comes back.
func (w *walker) inner(command string, start, end int, other bool) {
	if w.depth++; w.depth > maxDepth {
		w.note(bitUnknown, start, end, "shell/depth", "shells stand within shells too deep to be judged")
		w.depth--
		return
	}
	text, why := prepare(command)
	if why != "" || text != command {
		w.note(bitUnknown, start, end, "shell/string", "the inner text cannot be judged: "+why)
		a := word{text: text, start: start, end: end}
		w.drasticText(&a)
		w.depth--
		return
	}
	file, err := w.parse(text)
	if err != nil {
		w.note(bitUnknown, start, end, "shell/string", "the inner text cannot be read as bash")
		a := word{text: text, start: start, end: end}
		w.drasticText(&a)
		w.depth--
		return
	}
	outer := struct {
		file               *syntax.File
		vars               variables
		nested             bool
		spanStart, spanEnd int
		args               []word
		cwd                string
		cwdLost, other     bool
		inFunction         int
	}{w.file, w.vars, w.nested, w.spanStart, w.spanEnd, w.args, w.cwd, w.cwdLost, w.other, w.inFunction}
	if w.other = other; other && readsDifferently(text, file) {
		w.note(bitUnknown, start, end, "shell/string", "the inner text means something else to a shell that is not bash: write it for sh, or run it by bash -c")
	}
	w.file, w.vars, w.nested, w.spanStart, w.spanEnd = file, variables{}, true, start, end
	w.args = w.args[len(w.args):]
	w.stmts(file.Stmts)
	w.file, w.vars, w.nested, w.spanStart, w.spanEnd = outer.file, outer.vars, outer.nested, outer.spanStart, outer.spanEnd
	w.args, w.cwd, w.cwdLost, w.other, w.inFunction = outer.args, outer.cwd, outer.cwdLost, outer.other, outer.inFunction
	w.depth--
}

// readsDifferently says whether a shell of the POSIX kind sees other commands or
// words in a text than bash: to it, [[ a > b ]] writes a file, &> is two things,
// and neither $'…' nor {a,b} means anything.
func readsDifferently(text string, bash *syntax.File) bool {
	differs := false
	syntax.Walk(bash, func(n syntax.Node) bool {
		differs = differs || onlyBash(n)
		return !differs
	})
	if differs || !strings.ContainsAny(text, "[(&|<>") {
		return differs
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return true
	}
	var as, other strings.Builder
	printer := syntax.NewPrinter()
	return errors.Join(printer.Print(&as, bash), printer.Print(&other, file)) != nil || as.String() != other.String()
}

// onlyBash says whether another shell makes other words of a node, or gives
// variables other values.
func onlyBash(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.SglQuoted:
		return n.Dollar
	case *syntax.DblQuoted:
		return n.Dollar
	case *syntax.Assign:
		return n.Append || n.Index != nil || n.Array != nil
	case *syntax.ArithmExp:
		return n.Bracket
	case *syntax.Word:
		return countBraces(n) > 0
	case *syntax.DeclClause: // of export and its like, the others split what is assigned
		return n.Variant.Value != "export" && n.Variant.Value != "readonly" && n.Variant.Value != "local" ||
			slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool { return a.Value != nil && a.Value.Lit() == "" })
	case *syntax.LetClause, *syntax.TestClause, *syntax.ArithmCmd, *syntax.ProcSubst, *syntax.ExtGlob, *syntax.CoprocClause:
		return true
	}
	return false
}

// settle judges what could only be judged with the whole text read.
func (w *walker) settle() {
	if classOf(w.found) != writ.ReadOnly {
		for i := range w.fed { // it may be given to whatever does not only read
			w.drasticText(&w.fed[i])
		}
	}
	if w.dire != nil && w.found&bitExecOpaque != 0 {
		w.drasticText(w.dire)
	}
	if !w.blindRead {
		return
	}
	w.settleVars()
	w.mentioned = w.mentioned || len(w.words) > 8*maxCommands
	for i := 0; i < len(w.words) && !w.mentioned && !w.crafted; i++ {
		w.mentioned = w.k.policy.mentions(w.words[i])
	}
	if w.mentioned || w.crafted {
		why := "reads a file whose name comes from elsewhere, and the text names secrets"
		if !w.mentioned {
			why = "reads a file whose name is put together here"
		}
		w.note(bitReadSecret, w.blindAt[0], w.blindAt[1], "paths/blind", why)
	}
}

// settleVars judges the variables that name files: a loop may read what is
// assigned further down.
func (w *walker) settleVars() {
	if len(w.blindVars) == 0 || len(w.holding) == 0 {
		return
	}
	for more := true; more; {
		more = false
		for _, c := range w.copies {
			if w.holding[c[1]] > w.holding[c[0]] {
				w.holding[c[0]], more = w.holding[c[1]], true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.blindVars)) {
		v := w.blindVars[name]
		if why := chosen(w.holding[name], v.whole); why != "" {
			w.note(bitReadSecret, v.start, v.end, "paths/blind", why)
		}
	}
}

// verdict puts the findings into sentences. The lists of most verdicts are
// short, and lie in one piece of memory.
func (w *walker) verdict(text string) Verdict {
	v := Verdict{Command: text, Class: classOf(w.found), Hint: w.hint, Reasons: []string{}}
	v.NeedsLimit = v.Class == writ.ReadOnly && w.found&bitUnbounded != 0
	if n := bits.OnesCount32(uint32(w.found)); n <= 2 && len(w.touches) <= 2 && len(w.seen) <= 2 {
		short := new(struct {
			effects  [2]Effect
			touches  [2]Touch
			evidence [2]Evidence
		})
		v.Effects, v.Touches, v.Evidence = short.effects[:0], short.touches[:0], short.evidence[:0]
	} else {
		v.Effects, v.Evidence = make([]Effect, 0, n), make([]Evidence, 0, len(w.seen))
	}
	v.Effects = w.found.appendTo(v.Effects)
	if v.Touches = append(v.Touches, w.touches...); len(v.Touches) == 0 {
		v.Touches = nil
	}
	for i := range w.seen {
		f := &w.seen[i]
		v.Evidence = append(v.Evidence, Evidence{Effect: effectNames[bits.TrailingZeros32(uint32(f.bit))], Start: f.start, End: f.end, Rule: f.rule, Text: f.why})
		if f.bit&(mutating|destructive|reversible) != 0 && len(v.Reasons) < 16 && !slices.Contains(v.Reasons, f.why) {
			v.Reasons = append(v.Reasons, f.why)
		}
	}
	return v
}

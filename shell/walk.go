package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker collects the effects of one command. Of it only memory outlives the
// call: reset keeps that and nothing else.
type walker struct {
	k      *Knowledge
	file   *syntax.File   // nil for a command of words alone
	source string         // a plain text, see plain
	parser *syntax.Parser // kept for the next command
	text   strings.Reader

	found   effects
	fed     []word // the texts that commands are given to read
	here    *word  // the one that the simple command being judged is given
	dire    *word  // a text that tells of removing, and may be run by what runs what it is given
	seen    []finding
	touches []Touch
	hint    string

	advising bool
	tries    []edit // what may make the text read-only

	vars       variables
	args       []word  // scratch: the words of the simple commands being judged
	stages     []stage // scratch: the commands of a plain text
	cwd        string  // "" until a cd makes it known
	cwdLost    bool    // a cd went where we cannot follow
	frames     []*call // memory for calls within calls
	frame      int
	inFunction int
	foreign    int // commands run where programs of the same name may be others

	// Commands within a string have no place of their own in the text: what is
	// found in them is shown at the word that holds the string.
	nested             bool
	other              bool // this string is read by a shell that may not be bash
	spanStart, spanEnd int
	depth              int

	steps, commands int

	// Reads of files whose names come from elsewhere are judged at the end.
	producing   int      // within a substitution, or before a pipe
	crafted     bool     // a variable is changed letter by letter, and may become the name of a file
	words       []string // the static words of the text
	mentioned   bool     // the names of secrets are searched for
	blindRead   bool     // a file is read whose name is not known
	blindAt     [2]int
	holding     map[string]output   // what variables hold at the loosest
	readGives   map[string]output   // what the input held that a variable was read from
	copies      [][2]string         // variables that got the value of another one
	blindVars   map[string]blindVar // variables that name a file to read
	fedInput    int                 // above 0: the input is a pipe, a file or a text, and ends with it
	out         output              // the loosest of what was printed since this was last taken
	pipedOutput output              // what the input holds
	substituted output              // what the last <(…) prints
}

// walker returns one that has seen nothing.
func (k *Knowledge) walker() *walker {
	w, ok := k.walkers.Get().(*walker)
	if !ok {
		w = &walker{}
	}
	*w = k.fresh(w)
	return w
}

// fresh is a walker with the memory of another one.
func (k *Knowledge) fresh(w *walker) walker {
	return walker{k: k, pipedOutput: outAny, parser: w.parser, args: w.args[:0], seen: w.seen[:0], words: w.words[:0], tries: w.tries[:0], stages: w.stages, touches: w.touches[:0], frames: w.frames}
}

// output says what the words are that a command prints, from what can do least
// as an argument to what can do most. A file whose name something said that is
// no list of names may be any file: its writer chose it.
type output uint8

const (
	outTame   output = iota // numbers and plain names: no options, no paths; or nothing
	outNames                // names of files that are there
	outAny                  // what something says
	outMade                 // words that were put together here, or may have been
	outFilter               // of a command: lines of its input
)

// finding is an Evidence before its sentence is written.
type finding struct {
	bit        effects
	start, end int
	rule, why  string
}

// note records an effect. why is a whole sentence without its full stop.
func (w *walker) note(bit effects, start, end int, rule, why string) {
	w.found |= bit
	if len(w.seen) < maxCommands {
		w.seen = append(w.seen, finding{bit, start, end, rule, why})
	}
}

// overrun says whether the text asks for more work than we give, and notes it.
func (w *walker) overrun() bool {
	if w.steps <= maxSteps && w.commands <= maxCommands {
		return false
	}
	if w.steps < 2*maxSteps {
		w.steps = 2 * maxSteps
		w.note(bitUnknown, 0, 0, "shell/size", "the command has more parts than are judged")
	}
	return true
}

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		w.stmt(s)
	}
}

func (w *walker) stmt(s *syntax.Stmt) {
	w.steps++
	if s == nil || w.overrun() {
		return
	}
	if s.Background || s.Coprocess || s.Disown {
		start, end := w.span(s)
		w.note(bitRuntime, start, end, "shell/background", "a command in the background goes on when the limits have passed")
	}
	input, piped, here := w.fedInput, w.pipedOutput, w.here
	w.here = nil
	if len(s.Redirs) > 0 {
		empty := printsNothing(s.Cmd)
		for i, r := range s.Redirs {
			if i > 0 && s.Redirs[i-1].Word != nil && isNumber(s.Redirs[i-1].Word.Lit()) && s.Redirs[i-1].Word.End() == r.OpPos {
				start, end := w.span(r)
				w.note(bitUnknown, start, end, "shell/redirect", "bash takes the number before this for what is redirected: part them by a blank")
			}
			w.substituted = outAny
			w.redirect(r, empty)
			if givesInput(r) {
				w.fedInput++
				w.pipedOutput = w.substituted
			}
		}
		w.given(s)
	}
	if s.Cmd != nil {
		w.command(s.Cmd)
	} else {
		w.out = outAny // $(<file)
	}
	w.fedInput, w.pipedOutput, w.here = input, piped, here
}

// given finds the text that a simple command is given as its input, when that
// stands here, wholly.
func (w *walker) given(s *syntax.Stmt) {
	if _, ok := s.Cmd.(*syntax.CallExpr); !ok || len(w.fed) == 0 {
		return
	}
	for _, r := range s.Redirs {
		if givesInput(r) {
			w.here = nil
			if here := w.fed[len(w.fed)-1]; (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc) && here.known && r.N == nil {
				w.here = &here
			}
		}
	}
}

// printsNothing says whether what is written to by this command is emptied.
func printsNothing(c syntax.Command) bool {
	call, ok := c.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return c == nil
	}
	name := call.Args[0].Lit()
	return name == ":" || name == "true" || name == "cat" && len(call.Args) == 2 && call.Args[1].Lit() == "/dev/null"
}

// command judges one node. A kind that is not listed escalates.
func (w *walker) command(c syntax.Command) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		w.call(c)
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.Subshell:
		cwd, lost := w.cwd, w.cwdLost
		w.stmts(c.Stmts)
		w.cwd, w.cwdLost = cwd, lost
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			w.stmts(c.Cond)
			w.stmts(c.Then)
		}
	case *syntax.WhileClause:
		if alwaysTrue(c) {
			start, end := w.span(c)
			w.note(bitUnbounded, start, end, "shell/while", "this loop may not end")
		}
		w.stmts(c.Cond)
		w.stmts(c.Do)
	case *syntax.ForClause:
		w.loop(c)
	case *syntax.CaseClause:
		w.single(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				w.single(p)
			}
			w.stmts(item.Stmts)
		}
	case *syntax.ArithmCmd:
		w.arith(c.X)
	case *syntax.TestClause:
		w.test(c.X)
	case *syntax.DeclClause:
		w.declare(c)
	case *syntax.FuncDecl:
		w.function(c)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			start, end := w.span(c)
			w.note(bitUnknown, start, end, "shell/time", "nothing stands here whose time is taken, and bash may not read that")
		}
		w.stmt(c.Stmt)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			w.arith(x)
		}
	default:
		start, end := w.span(c)
		w.note(bitUnknown, start, end, "shell/syntax", "this form of the shell's language is not judged")
		if co, ok := c.(*syntax.CoprocClause); ok {
			w.stmt(co.Stmt)
		}
	}
}

// alwaysTrue recognises the loops that end only from within.
func alwaysTrue(c *syntax.WhileClause) bool {
	if len(c.Cond) != 1 {
		return false
	}
	call, ok := c.Cond[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	switch call.Args[0].Lit() {
	case ":", "true":
		return !c.Until
	case "false":
		return c.Until
	}
	return call.Args[0].Lit() != "read" // anything else that is asked again may go on for ever
}

func (w *walker) binary(c *syntax.BinaryCmd) {
	pipe := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
	if !pipe {
		w.stmt(c.X)
		w.stmt(c.Y)
		return
	}
	cwd, lost, piped, out := w.cwd, w.cwdLost, w.pipedOutput, w.out
	w.producing++
	w.out = outTame
	w.stmt(c.X)
	w.producing--
	w.cwd, w.cwdLost = cwd, lost
	w.pipedOutput, w.out = w.out, outTame
	w.fedInput++
	w.stmt(c.Y)
	w.fedInput--
	w.cwd, w.cwdLost = cwd, lost
	w.pipedOutput, w.out = piped, max(out, w.out)
}

func (w *walker) loop(c *syntax.ForClause) {
	start, end := w.span(c)
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		from := len(w.args)
		for _, item := range l.Items {
			w.args = w.fields(w.args, item)
		}
		items := w.args[from:]
		if w.vars.now == nil {
			w.survey()
		}
		if w.k.policy.taints(l.Name.Value) {
			w.note(bitEnvTaint, start, end, "shell/for", "the variable "+l.Name.Value+" changes what later programs are or obey")
		}
		w.vars.now[l.Name.Value] = w.each(items)
		for i := range items {
			w.holds(l.Name.Value, &items[i])
		}
		w.args = w.args[:from]
	case *syntax.CStyleLoop:
		if l.Cond == nil {
			w.note(bitUnbounded, start, end, "shell/for", "this loop may not end")
		}
		w.arith(l.Init)
		w.arith(l.Cond)
		w.arith(l.Post)
	default:
		w.note(bitUnknown, start, end, "shell/for", "this form of loop is not known")
	}
	if c.Select {
		w.note(bitInteractive, start, end, "shell/select", "select asks a person")
	}
	w.stmts(c.Do)
}

// each returns what a loop's variable may be.
func (w *walker) each(items []word) value {
	v := value{tame: len(items) > 0}
	known := len(items) > 0 && len(items) <= 16
	for i := range items {
		w.mention(&items[i])
		known = known && items[i].known
		v.tame = v.tame && (items[i].tame || items[i].known && isNumber(items[i].text))
		if known {
			v.alts = append(v.alts, items[i].text)
		}
	}
	if !known {
		v.alts = nil
	}
	return v
}

func (w *walker) function(c *syntax.FuncDecl) {
	start, end := w.span(c)
	if c.Name == nil {
		w.note(bitUnknown, start, end, "shell/function", "a function without a name belongs to another shell")
	} else if w.k.knows(c.Name.Value) {
		w.note(bitExecOpaque, start, end, "shell/function", "the function "+c.Name.Value+" takes the place of a command")
	}
	if w.vars.now == nil {
		w.survey()
	}
	switch c.Body.Cmd.(type) {
	case *syntax.CallExpr, *syntax.DeclClause, *syntax.LetClause, *syntax.FuncDecl, *syntax.TimeClause, *syntax.CoprocClause, *syntax.BinaryCmd, nil:
		w.note(bitUnknown, start, end, "shell/function", "bash takes only a compound command for a function")
	}
	w.inFunction++
	w.stmt(c.Body)
	w.inFunction--
}

// declare judges declare, local, export, readonly and typeset.
func (w *walker) declare(c *syntax.DeclClause) {
	start, end := w.span(c)
	name := c.Variant.Value
	rule := "shell/" + name
	exports := name == "export"
	named := false
	for _, a := range c.Args {
		if a.Name != nil && (a.Value != nil || a.Array != nil || a.Naked) {
			named = true
			w.assign(a)
			if exports && !a.Naked && !w.k.policy.mayExport(a.Name.Value, w.single(a.Value)) {
				w.note(bitEnvTaint, start, end, rule, "the variable "+a.Name.Value+" is handed to later programs, which may obey it")
			}
			continue
		}
		opt := w.single(a.Value)
		switch {
		case !opt.known:
			w.note(bitExecOpaque, start, end, rule, "what is declared cannot be seen")
		case strings.Trim(opt.text, "-+rgaAlupx") != "" || !strings.HasPrefix(opt.text, "-"):
			w.note(bitExecOpaque, start, end, rule, "the option "+opt.show()+" of "+name+" may run what a variable holds")
		case strings.Contains(opt.text, "x"):
			exports = true
		case strings.ContainsAny(opt.text, "lu"):
			w.crafted = true // what is assigned is written in other letters
		}
	}
	if !named {
		w.note(bitReadSecret, start, end, rule, name+" shows variables, and so the secrets of the environment")
		w.out = outAny
	}
}

// substitution judges $(…) and says what its words are.
func (w *walker) substitution(c *syntax.CmdSubst) output {
	start, end := w.span(c)
	if c.TempFile || c.ReplyVar {
		w.note(bitUnknown, start, end, "shell/substitution", "this form of substitution belongs to newer shells")
	}
	cwd, lost, piped, out, from := w.cwd, w.cwdLost, w.pipedOutput, w.out, len(w.args)
	w.producing++
	w.pipedOutput, w.out = outAny, outTame
	// The words of the outer command are kept: they are judged after these.
	outer := w.args
	w.args = w.args[from:]
	w.stmts(c.Stmts)
	w.args = outer
	gives := w.out
	w.producing--
	w.cwd, w.cwdLost, w.pipedOutput, w.out = cwd, lost, piped, out
	return gives
}

// arith judges an arithmetic expression: a variable in it whose value is not
// a number may name a subscript that runs a command.
func (w *walker) arith(x syntax.ArithmExpr) {
	w.steps++
	if w.overrun() {
		return
	}
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		w.arithWord(x)
	case *syntax.BinaryArithm:
		if assigns(x.Op) {
			w.number(x.X)
		}
		w.arith(x.X)
		w.arith(x.Y)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.number(x.X)
		}
		w.arith(x.X)
	case *syntax.ParenArithm:
		w.arith(x.X)
	default:
		start, end := w.span(x)
		w.note(bitUnknown, start, end, "shell/arithmetic", "this form of arithmetic is not judged")
	}
}

// number judges a variable that arithmetic gives a number: there are some that
// must not have one.
func (w *walker) number(x syntax.ArithmExpr) {
	start, end := w.span(x)
	wd, ok := x.(*syntax.Word)
	if !ok {
		w.note(bitUnknown, start, end, "shell/arithmetic", "what arithmetic assigns to here is not judged")
		return
	}
	name, _, _ := strings.Cut(wd.Lit(), "[")
	if wd.Lit() == "" || name == "IFS" || w.k.policy.taints(name) {
		w.note(bitEnvTaint, start, end, "shell/arithmetic", "arithmetic changes the variable "+name+", which programs or the shell obey")
	}
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	}
	return false
}

func (w *walker) arithWord(x *syntax.Word) {
	start, end := w.span(x)
	a := w.single(x)
	name := a.text
	switch {
	case a.tame, a.known && isNumber(a.text), a.known && a.text == "":
		return
	case a.known && syntax.ValidName(name):
		if v := w.lookup(name); v.tame || v.ok && isNumber(v.text) {
			return
		}
	case a.known && strings.Trim(name, "0123456789abcdefABCDEFxX#") == "":
		return
	case len(a.alts) > 0:
		numbers := true
		for _, s := range a.alts {
			numbers = numbers && isNumber(s)
		}
		if numbers {
			return
		}
	}
	w.note(bitExecOpaque, start, end, "shell/arithmetic", "arithmetic on "+a.show()+", whose value is not known to be a number, may run what it holds")
}

// subscript judges the index of an array.
func (w *walker) subscript(x syntax.ArithmExpr) {
	if wd, ok := x.(*syntax.Word); ok && (wd.Lit() == "@" || wd.Lit() == "*") {
		return
	}
	w.arith(x)
}

// nestedRepeat says whether a regular expression repeats a group in which
// something repeats, or cannot be seen.
func nestedRepeat(wd *syntax.Word) bool {
	text := ""
	for _, p := range wd.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			text += p.Value
		case *syntax.SglQuoted, *syntax.DblQuoted: // compared as it stands
		default:
			return true
		}
	}
	repeats := false
	for i := range len(text) {
		if text[i] == ')' && repeats && i+1 < len(text) && strings.IndexByte("+*{", text[i+1]) >= 0 {
			return true
		}
		repeats = repeats || strings.IndexByte("+*{", text[i]) >= 0
	}
	return false
}

// test judges what stands in [[ … ]].
func (w *walker) test(x syntax.TestExpr) {
	w.steps++
	if w.overrun() {
		return
	}
	switch x := x.(type) {
	case *syntax.Word:
		w.single(x)
	case *syntax.ParenTest:
		w.test(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			a := w.single(x.X.(*syntax.Word))
			if !a.known || !syntax.ValidName(a.text) {
				w.note(bitExecOpaque, a.start, a.end, "shell/test", "the test of a variable by this name may run a subscript")
			}
			return
		}
		w.test(x.X)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if wd, ok := side.(*syntax.Word); ok {
					w.arithWord(wd)
				} else {
					w.test(side)
				}
			}
			return
		}
		if wd, ok := x.Y.(*syntax.Word); ok && x.Op == syntax.TsReMatch && nestedRepeat(wd) {
			start, end := w.span(x)
			w.note(bitUnbounded, start, end, "shell/test", "repeats what repeats: this comparison may take very long")
		}
		w.test(x.X)
		w.test(x.Y)
	default:
		start, end := w.span(x)
		w.note(bitUnknown, start, end, "shell/test", "this form of test is not known")
	}
}

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variables is what is known of the variables of one command. Only a variable
// whose every assignment can be seen in the text has a known value.
type variables struct {
	now       map[string]value
	count     map[string]int  // assignments in the text
	loose     map[string]bool // assigned where it is not certain when, or how often
	numeric   map[string]bool // every assignment gives a number
	functions map[string]bool
	read      map[string]int // how often read assigns it
	blind     bool           // something assigns by a name we cannot follow
	splitting bool           // IFS is assigned: unquoted variables split in unknown ways
}

type value struct {
	text string
	alts []string
	tame bool
	ok   bool // text is the value
}

// assigners are commands that assign variables they are told the names of, or
// whose text does.
func assigner(name string) bool {
	switch name {
	case "", "mapfile", "readarray", "getopts", "unset", "eval", "source", ".", "let", "builtin", "command", "wait":
		return true
	}
	return false
}

// survey looks at every assignment of the text once, before the first
// variable is used.
func (w *walker) survey() {
	v := &w.vars
	v.now, v.count = map[string]value{}, map[string]int{}
	v.loose, v.numeric, v.functions, v.read = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]int{}
	if w.file == nil { // a command of words alone, in which nothing is assigned that we could see
		v.blind = true
		return
	}
	var loose []bool
	var prefixes []*syntax.Assign // of the last command
	syntax.Walk(w.file, func(n syntax.Node) bool {
		if n == nil {
			loose = loose[:len(loose)-1]
			return true
		}
		in := len(loose) > 0 && loose[len(loose)-1]
		switch n := n.(type) {
		case *syntax.Assign:
			before := v.splitting
			v.assigned(n, in)
			if slices.Contains(prefixes, n) { // holds for that command alone
				v.splitting = before
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				prefixes = n.Assigns
				switch name := n.Args[0].Lit(); {
				case name == "read":
					v.reads(n.Args[1:])
				case name == "printf" && len(n.Args) > 2: // -v NAME FORMAT
					v.blind = v.blind || mayAssign(n.Args[1])
				default:
					v.blind = v.blind || assigner(name)
				}
				in = true // a prefix assignment holds for one command only
			}
		case *syntax.WordIter:
			v.count[n.Name.Value]++
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil {
				v.count[n.Param.Value]++
				v.loose[n.Param.Value] = true
			}
		case *syntax.BinaryArithm, *syntax.UnaryArithm:
			v.arithmetic(n)
		case *syntax.FuncDecl:
			if n.Name != nil {
				v.functions[n.Name.Value] = true
			}
			in = true
		case *syntax.Redirect:
			if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
				v.blind = true
			}
		case *syntax.Stmt:
			in = in || n.Background
		case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.Subshell, *syntax.BinaryCmd, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.CoprocClause, *syntax.DeclClause:
			in = true
		}
		loose = append(loose, in)
		return true
	})
}

// mayAssign says whether the first word after printf may be -v, or -vNAME.
func mayAssign(wd *syntax.Word) bool {
	parts := wd.Parts
	if q, ok := parts[0].(*syntax.DblQuoted); ok && len(parts) == 1 {
		parts = q.Parts
	}
	text, unknown := "", 0
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			text += p.Value
		case *syntax.SglQuoted:
			text += p.Value
		default:
			unknown++
		}
	}
	if unknown == 0 {
		return text == "" || text[0] == '-'
	}
	return unknown > 1 || !strings.ContainsAny(text, " %\\") || strings.Contains(text, "]")
}

// reads looks at what read assigns: names that stand here, and after no option
// that takes one.
func (v *variables) reads(args []*syntax.Word) {
	names := 0
	for _, a := range args {
		switch text := a.Lit(); {
		case syntax.ValidName(text):
			names++
			v.count[text]++
			v.read[text]++
			v.loose[text] = true
			v.splitting = v.splitting || text == "IFS"
		case names > 0 || text == "" || strings.Trim(text, "-rse") != "" || text[0] != '-':
			v.blind = true
		}
	}
	if names == 0 {
		v.count["REPLY"]++
		v.loose["REPLY"] = true
	}
}

func (v *variables) assigned(a *syntax.Assign, loose bool) {
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	number := a.Index == nil && a.Array == nil && !a.Append && a.Value != nil && len(a.Value.Parts) == 1
	if number {
		switch p := a.Value.Parts[0].(type) {
		case *syntax.ArithmExp:
		case *syntax.Lit:
			number = isNumber(p.Value)
		default:
			number = false
		}
	}
	v.numeric[name] = number && (v.count[name] == 0 || v.numeric[name])
	v.count[name]++
	if loose || a.Index != nil || a.Array != nil || a.Append || a.Naked {
		v.loose[name] = true
	}
	v.splitting = v.splitting || name == "IFS"
}

// arithmetic finds assignments within arithmetic: they give numbers.
func (v *variables) arithmetic(n syntax.Node) {
	var x syntax.ArithmExpr
	switch n := n.(type) {
	case *syntax.BinaryArithm:
		if assigns(n.Op) {
			x = n.X
		}
	case *syntax.UnaryArithm:
		if n.Op == syntax.Inc || n.Op == syntax.Dec {
			x = n.X
		}
	}
	if wd, ok := x.(*syntax.Word); ok {
		name := wd.Lit()
		v.numeric[name] = v.count[name] == 0 || v.numeric[name]
		v.count[name]++
		v.loose[name] = true
	}
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// lookup returns what is known of a variable here.
func (w *walker) lookup(name string) value {
	if w.vars.now == nil {
		w.survey()
	}
	v := &w.vars
	switch {
	case v.count[name] == 0:
		return builtinVariable(name)
	case v.blind:
		return value{}
	case v.numeric[name]:
		if known := v.now[name]; known.ok && !v.loose[name] && w.inFunction == 0 {
			return known
		}
		return value{tame: true}
	case v.count[name] == 1 && v.read[name] == 1 && !v.splitting:
		gives, done := w.readGives[name]
		return value{tame: done && gives == outTame}
	case v.loose[name], v.count[name] > 1 && w.inFunction > 0:
		return value{}
	}
	return v.now[name]
}

// builtinVariable is what bash itself gives a variable that the text leaves alone.
func builtinVariable(name string) value {
	switch name {
	case "HOME":
		return value{text: "~", ok: true}
	case "?", "$", "#", "!", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "UID", "EUID", "PPID", "BASHPID", "LINENO", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "USER", "LOGNAME":
		return value{tame: true}
	}
	return value{}
}

// secretName says whether the name of a variable of the environment tells that
// its value is a secret.
func secretName(name string) bool {
	for _, part := range []string{"SECRET", "TOKEN", "PASS", "PWD_", "CREDENTIAL", "API_KEY", "APIKEY", "PRIVATE", "ACCESS_KEY", "_KEY", "AUTH"} {
		if strings.Contains(name, part) {
			return name != "SSH_AUTH_SOCK"
		}
	}
	return false
}

// assign takes note of NAME=value as a statement of its own.
func (w *walker) assign(a *syntax.Assign) {
	start, end := w.span(a)
	w.crafted = w.crafted || a.Append // a name may be put together of pieces
	if a.Index != nil {
		w.subscript(a.Index)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				w.subscript(e.Index)
			}
			if e.Value != nil {
				val := w.single(e.Value)
				w.mention(&val)
			}
		}
	}
	val := w.single(a.Value)
	w.mention(&val)
	w.keepDire(&val)
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	if w.k.policy.taints(name) && !(name == "IFS" && w.inFunction == 0) {
		w.note(bitEnvTaint, start, end, "shell/assign", "the variable "+name+" changes what later programs are or obey")
	}
	if w.vars.now == nil {
		w.survey()
	}
	w.vars.now[name] = value{text: val.text, ok: val.known, alts: val.alts, tame: val.tame}
	w.holds(name, &val)
}

// holds takes note of what a variable gets, as far as it is not known.
func (w *walker) holds(name string, a *word) {
	w.told(name, a.gives)
	for _, from := range a.variables {
		if len(w.copies) < maxCommands {
			w.copies = append(w.copies, [2]string{name, from})
		}
	}
}

// told notes what a variable holds.
func (w *walker) told(name string, gives output) {
	if gives <= outNames {
		return
	}
	if w.holding == nil {
		w.holding = map[string]output{}
	}
	w.holding[name] = max(w.holding[name], gives)
}

// staticVar returns the value of a plain $x that is known.
func (w *walker) staticVar(p *syntax.ParamExp) (string, bool) {
	if p.Param == nil || !plainParam(p) {
		return "", false
	}
	v := w.lookup(p.Param.Value)
	return v.text, v.ok
}

// plainParam says whether an expansion is only the variable's value.
func plainParam(p *syntax.ParamExp) bool {
	return p.Flags == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.NestedParam == nil && p.Index == nil &&
		len(p.Modifiers) == 0 && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil && p.Split == 0 && p.GlobSubst == 0 && p.RcExpand == 0
}

// param evaluates one ${…} with everything that stands in it.
func (w *walker) param(b *builder, p *syntax.ParamExp, quoted bool) {
	start, end := w.span(p)
	refuse := func(why string) {
		w.note(bitExecOpaque, start, end, "shell/expansion", why)
		b.unknown(false, true)
	}
	if p.Param == nil || p.NestedParam != nil || p.Flags != nil || p.Width || p.IsSet || len(p.Modifiers) > 0 || p.Split != 0 || p.GlobSubst != 0 || p.RcExpand != 0 {
		refuse("this expansion belongs to another shell")
		return
	}
	name := p.Param.Value
	if p.Excl && p.Names == 0 {
		refuse("an indirect expansion may run what a variable holds")
		return
	}
	if p.Index != nil {
		w.subscript(p.Index)
	}
	if p.Slice != nil {
		w.arith(p.Slice.Offset)
		w.arith(p.Slice.Length)
	}
	if p.Repl != nil {
		w.single(p.Repl.Orig)
		w.single(p.Repl.With)
	}
	if p.Exp != nil && quotesCode(p.Exp.Word) || p.Repl != nil && (quotesCode(p.Repl.Orig) || quotesCode(p.Repl.With)) {
		refuse("within double quotes, the single quotes of this expansion quote nothing")
		return
	}
	if p.Exp != nil {
		val := w.single(p.Exp.Word)
		w.mention(&val)
		if p.Exp.Op == syntax.OtherParamOps && (!val.known || len(val.text) != 1 || !strings.Contains("QULuakK", val.text)) {
			refuse("this transformation of a variable runs what the variable holds")
			return
		}
	}
	v := w.lookup(name)
	if len(b.text)+len(v.text) > maxText {
		v = value{}
	}
	if w.vars.count[name] == 0 && secretName(name) && !p.Length {
		w.note(bitReadSecret, start, end, "shell/environment", "the environment variable "+name+" is a secret by its name")
	}
	if w.vars.splitting && !quoted && !p.Length && (v.ok || len(v.alts) > 0) {
		w.note(bitUnknown, start, end, "shell/splitting", "with IFS changed, this variable is cut into other words: put it in double quotes")
	}
	switch {
	case p.Length:
		b.unknown(true, false)
	case !plainParam(p):
		w.crafted = w.crafted || rewrites(p) // a changed text may spell another name
		b.variables = append(b.variables, name)
		b.unknown(false, !quoted)
	case v.ok && quoted:
		b.text = append(b.text, v.text...)
	case v.ok && !w.vars.splitting && !strings.ContainsAny(v.text, " \t\n"):
		b.globText(strings.ReplaceAll(v.text, "\\", "\\\\"))
	case len(v.alts) > 0 && len(b.alts) == 0 && (quoted || !w.vars.splitting && !anyBlank(v.alts)):
		b.alts, b.altPos = v.alts, len(b.text)
		b.unknown(false, false)
	default:
		if !v.tame {
			b.variables = append(b.variables, name)
		}
		b.unknown(v.tame, !quoted)
	}
}

// quotesCode says whether a word within an expansion quotes what would be run
// without the quotes: within double quotes, bash does not see single ones there.
func quotesCode(wd *syntax.Word) bool {
	if wd == nil {
		return false
	}
	return slices.ContainsFunc(wd.Parts, func(p syntax.WordPart) bool {
		q, ok := p.(*syntax.SglQuoted)
		return ok && strings.ContainsAny(q.Value, "`$\\")
	})
}

// rewrites says whether an expansion gives other letters than the variable holds.
func rewrites(p *syntax.ParamExp) bool {
	if p.Repl != nil {
		return true
	}
	if p.Exp == nil {
		return false
	}
	switch p.Exp.Op {
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll, syntax.OtherParamOps:
		return true
	}
	return false
}

func anyBlank(list []string) bool {
	for _, s := range list {
		if strings.ContainsAny(s, " \t\n*?[") {
			return true
		}
	}
	return false
}

package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hookSealed is for commands that join their operands and read them again in a
// language of their own: a sign that ends or opens something there lets more
// follow than was read.
func hookSealed(w *walker, c *call) {
	for i := range c.operands {
		a := &c.operands[i]
		if !a.known || strings.ContainsAny(a.text, ";\n{}|\\`!") {
			w.note(bitExecOpaque, a.start, a.end, c.node.path, "more than one request may stand in "+a.show())
			if !c.node.anything {
				w.drasticText(a)
			}
		}
	}
}

// hookRemotes judges the places of rclone: a store that is described in the
// word itself, or whose settings are changed there, may run a program.
func hookRemotes(w *walker, c *call) {
	for i := range c.operands {
		a := &c.operands[i]
		store, _, _ := strings.Cut(a.text, ":")
		if !a.known || strings.HasPrefix(a.text, ":") || !strings.HasPrefix(a.text, "/") && strings.ContainsAny(store, ",=") {
			w.note(bitExecOpaque, a.start, a.end, c.node.path, "the place "+a.show()+" brings its own settings")
		}
	}
}

// hookFeeds is for commands that ask a host and hand it what comes over their
// input: that must be nothing, or a text that stands here.
func hookFeeds(w *walker, c *call) {
	if w.file == nil { // a command of words alone
		return
	}
	fed := w.nested
	syntax.Walk(w.file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 && call.Args[0].Lit() == "exec" {
			fed = true // exec < FILE changes the input of what follows
		}
		if n == nil || int(n.Pos().Offset()) > c.start || int(n.End().Offset()) < c.end {
			return n != nil
		}
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			piped := n.Op == syntax.Pipe || n.Op == syntax.PipeAll
			fed = fed || piped && int(n.Y.Pos().Offset()) <= c.start && !w.typed(n.X)
		case *syntax.Stmt:
			fed = fed || slices.ContainsFunc(n.Redirs, feeds)
		case *syntax.ProcSubst:
			fed = fed || n.Op == syntax.CmdOut
		case *syntax.FuncDecl, *syntax.CoprocClause:
			fed = true
		}
		return true
	})
	if fed {
		w.note(bitNetSend, c.start, c.end, c.node.path, strings.ReplaceAll(c.node.path, "/", " ")+" sends what comes over its input to the host")
	}
}

// feeds says whether a redirection gives a command anything but nothing or a
// text that stands here.
func feeds(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn:
		return r.Word.Lit() != "/dev/null"
	case syntax.WordHdoc:
		return !static(r.Word)
	case syntax.Hdoc, syntax.DashHdoc:
		return !static(r.Hdoc)
	}
	return r.Op == syntax.DplIn || r.Op == syntax.RdrInOut
}

// typed says whether a command surely prints nothing but what stands in its text.
func (w *walker) typed(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 {
		return false
	}
	name := call.Args[0].Lit()
	return slices.Contains([]string{"echo", "printf", "true", ":", "sleep"}, name) && !w.vars.functions[name] &&
		!slices.ContainsFunc(call.Args, func(a *syntax.Word) bool { return !static(a) })
}

// static says whether a word is the same whatever runs.
func static(word *syntax.Word) bool {
	same := true
	if word == nil {
		return same
	}
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
			same = false
		case *syntax.Lit:
			same = same && !strings.ContainsAny(n.Value, "*?[~")
		}
		return same
	})
	return same
}

// hookCertificate judges what a certificate is read from. Names such as *.pem
// are secret because a key may lie there, but of a key these verbs show
// nothing; of any other file an error may show a part.
func hookCertificate(w *walker, c *call) {
	g := c.has("-in")
	if g == nil {
		return
	}
	switch path.Ext(g.val.text) {
	case ".pem", ".crt", ".cer", ".cert", ".csr", ".req", ".der", ".crl":
		w.touch("path_read", g.val.text)
	default:
		w.pathRead(&g.val, c.node.path, false)
	}
}

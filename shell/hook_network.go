package shell

import (
	"path"
	"regexp"
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
		if !a.known || a.text == "-" || strings.ContainsAny(a.text, ";\n{}|\\`!") {
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
	fed := w.nested || w.file == nil && w.pipedIn(c)
	if w.file != nil {
		fed = fed || w.fedBy(c)
	}
	if fed {
		w.note(bitNetSend, c.start, c.end, c.node.path, strings.ReplaceAll(c.node.path, "/", " ")+" sends what comes over its input to the host")
	}
}

// pipedIn says whether a plain text pipes into a command what was not typed.
func (w *walker) pipedIn(c *call) bool {
	for i, s := range w.stages {
		last := i+1 == len(w.stages) || w.args[w.stages[i+1].from].start > c.start
		if last {
			return s.piped && !typer(w.args[w.stages[i-1].from].text)
		}
	}
	return true
}

// fedBy says whether the tree gives a command an input that was not typed.
func (w *walker) fedBy(c *call) (fed bool) {
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
	return fed
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
	return typer(name) && !w.vars.functions[name] &&
		!slices.ContainsFunc(call.Args, func(a *syntax.Word) bool { return !static(a) })
}

func typer(name string) bool {
	return slices.Contains([]string{"echo", "printf", "true", ":", "sleep"}, name)
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
	if g == nil || !g.val.known && len(g.val.alts) == 0 {
		return
	}
	names := g.val.alts
	if len(names) == 0 {
		names = []string{g.val.text}
	}
	for _, name := range names {
		if !slices.Contains([]string{".pem", ".crt", ".cer", ".cert", ".csr", ".req", ".der", ".crl"}, path.Ext(name)) {
			w.pathRead(&g.val, c.node.path, false)
			return
		}
	}
	w.touch("path_read", g.val.text)
}

// mongoReads are requests to MongoDB that only read, and what may follow them
// to pick a field.
var mongoReads = regexp.MustCompile(`^(JSON\.stringify\()?(rs\.(status|conf|config|isMaster|hello|printReplicationInfo|printSecondaryReplicationInfo)|sh\.status|db\.(serverStatus|stats|version|hostInfo|hello|isMaster|getName|getCollectionNames|getCollectionInfos|getReplicationInfo|getProfilingStatus|serverBuildInfo|adminCommand\((\{ ?['"]?(ping|listDatabases|serverStatus|replSetGetStatus|buildInfo|hello|connPoolStats)['"]?: ?1 ?\}|['"](ping|listDatabases|serverStatus|replSetGetStatus|buildInfo|hello)['"])?)|db\.\w+\.(countDocuments|estimatedDocumentCount|getIndexes|stats|dataSize|totalSize))\(?\)(\.\w+|\[\d+\])*\)?$`)

// hookMongo judges what --eval gives to the shell of MongoDB, which is
// JavaScript: a short list of requests reads. Without it a person is awaited.
func hookMongo(w *walker, c *call) {
	asked := false
	for i := range c.opts {
		g := &c.opts[i]
		if g.opt.name != "--eval" {
			continue
		}
		asked = true
		if !g.val.known || !mongoReads.MatchString(strings.TrimRight(g.val.text, "; ")) {
			w.note(bitExecOpaque, g.val.start, g.val.end, "mongosh/--eval", "the script "+g.val.show()+" is not known to only read")
			apart := g.val
			apart.text = strings.ReplaceAll(apart.text, ".", " ")
			w.drasticText(&apart)
		}
	}
	for i := range c.operands {
		a := &c.operands[i]
		address := strings.HasPrefix(a.text, "mongodb://") || strings.HasPrefix(a.text, "mongodb+srv://")
		if !a.known || !address && strings.ContainsAny(a.text, "./") {
			w.note(bitExecOpaque, a.start, a.end, c.node.path, "the word "+a.show()+" may be a script that is run")
		}
	}
	if !asked {
		w.note(bitInteractive, c.start, c.end, c.node.path, c.node.name+" waits for requests")
	}
}

// hookEtc is for servers that check a configuration: it may make them load
// something, so that only one that lies in /etc is trusted.
func hookEtc(w *walker, c *call) {
	for i := range c.opts {
		g := &c.opts[i]
		if g.opt.name == "-f" {
			w.pathRead(&g.val, c.node.path, false) // an error shows the line
		}
		if g.opt.name == "-f" && !(g.val.known && strings.HasPrefix(path.Clean(g.val.text), "/etc/")) {
			w.note(bitExecOpaque, g.val.start, g.val.end, c.node.path, "the configuration "+g.val.show()+" may make "+c.node.name+" load or run something")
		}
	}
}

// hookAssigns is for commands that set what is given as NAME=VALUE.
func hookAssigns(w *walker, c *call) {
	for i := range c.operands {
		if a := &c.operands[i]; !a.known || strings.ContainsAny(a.text, "=#") {
			w.note(bitConfig, a.start, a.end, c.node.path, c.node.name+" sets "+a.show())
		}
	}
}

// hookLoads is for clients of clouds, which take the content of a file or an
// address wherever a value may stand, and send it.
func hookLoads(w *walker, c *call) {
	judge := func(a *word) {
		for _, prefix := range []string{"file://", "fileb://", "http://", "https://", "@"} {
			if !a.known || strings.HasPrefix(a.text, prefix) || strings.Contains(a.text, "="+prefix) {
				w.note(bitNetSend, a.start, a.end, c.node.path, "the value "+a.show()+" may be the content of a file")
				return
			}
		}
	}
	for i := range c.opts {
		if c.opts[i].has {
			judge(&c.opts[i].val)
		}
	}
	for i := range c.operands {
		judge(&c.operands[i])
	}
}

// hookRequests judges the headers of curl: those that only choose what is shown.
func hookRequests(w *walker, c *call) {
	hookCurl(w, c)
	hookCrafts(w, c) // what the other side answers may become the name of a file
	for i := range c.opts {
		g := &c.opts[i]
		if g.opt.name != "-H" && g.opt.name != "--header" || !g.has {
			continue
		}
		name, _, ok := strings.Cut(strings.ToLower(g.val.text), ":")
		plain := slices.Contains([]string{"host", "accept", "accept-encoding", "accept-language", "user-agent", "cache-control", "pragma", "range", "connection", "if-none-match", "if-modified-since", "x-forwarded-proto", "x-forwarded-for"}, name)
		if !g.val.known || !ok || !plain || strings.ContainsAny(g.val.text, "\r\n") {
			w.note(bitNetSend, g.val.start, g.val.end, "curl/-H", "the header "+g.val.show()+" may carry something, or ask for a change")
		}
	}
}

// hookTables judges the tables of a mail server: of some kinds a file is read
// as it is, others ask another host.
func hookTables(w *walker, c *call) {
	for i := range c.operands {
		a := c.operands[i]
		kind, file, ok := strings.Cut(a.text, ":")
		if !ok {
			kind, file = "hash", a.text
		}
		if !a.known || !slices.Contains([]string{"hash", "btree", "lmdb", "cdb", "dbm", "texthash"}, kind) {
			w.note(bitUnknown, a.start, a.end, c.node.path, "the kind of the table "+a.show()+" is not judged")
		}
		a.text = file
		w.pathRead(&a, c.node.path, false)
	}
}

// hookColumns judges how a client of a cloud shows machines: as a whole, or
// with their metadata, they hold what they are started with.
func hookColumns(w *walker, c *call) {
	g := c.has("--format")
	if g == nil || !strings.HasPrefix(c.node.path, "gcloud/compute") {
		return
	}
	form, _, _ := strings.Cut(g.val.text, "(")
	if !g.val.known || !slices.Contains([]string{"value", "csv", "table", "get"}, form) || strings.Contains(g.val.text, "metadata") {
		w.note(bitReadSecret, g.val.start, g.val.end, c.node.path, "the form "+g.val.show()+" shows what the machines are started with")
	}
}

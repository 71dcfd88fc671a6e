package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hook returns the Go code that a node names, or nil. A hook sees what was
// read, and adds what the tables cannot say; it never takes an effect away.
// Long on purpose: it is the list of all hooks.
func hook(name string) func(*walker, *call) {
	switch name {
	case "cd":
		return hookCd
	case "bus":
		return hookBus
	case "counted":
		return hookCounted
	case "kill":
		return hookKill
	case "devices":
		return hookDevices
	case "init-script":
		return hookInitScript
	case "ldd":
		return hookLdd
	case "nsenter":
		return hookNsenter
	case "parted":
		return hookParted
	case "priority":
		return hookPriority
	case "su":
		return hookSu
	case "sysctl":
		return hookSysctl
	case "crafts":
		return hookCrafts
	case "stat":
		return hookStat
	case "below":
		return hookBelow
	case "shows":
		return hookShows
	case "find":
		return hookFind
	case "printf":
		return hookPrintf
	case "ps":
		return hookPs
	case "curl":
		return hookCurl
	case "env":
		return hookEnv
	case "fields":
		return hookFields
	case "read":
		return hookRead
	case "assigns":
		return hookAssigns
	case "certificate":
		return hookCertificate
	case "columns":
		return hookColumns
	case "etc":
		return hookEtc
	case "feeds":
		return hookFeeds
	case "loads":
		return hookLoads
	case "mongo":
		return hookMongo
	case "remotes":
		return hookRemotes
	case "requests":
		return hookRequests
	case "sealed":
		return hookSealed
	case "sh":
		return hookSh
	case "tar":
		return hookTar
	case "tables":
		return hookTables
	case "test":
		return hookTest
	case "inside":
		return hookInside
	case "here":
		return hookHere
	case "kube":
		return hookKube
	case "pvesh":
		return hookPvesh
	case "packages":
		return hookPackages
	case "code":
		return hookCode
	case "registry":
		return hookRegistry
	case "pflag":
		return hookPflag
	}
	if h := gitHook(name); h != nil {
		return h
	}
	return fileHook(name)
}

// has returns the last use of an option, by its first or any other name.
func (c *call) has(names ...string) *given {
	for i := len(c.opts) - 1; i >= 0; i-- {
		if slices.Contains(names, c.opts[i].opt.name) {
			return &c.opts[i]
		}
	}
	return nil
}

// hookCd follows where relative paths start.
func hookCd(w *walker, c *call) {
	switch {
	case len(c.operands) == 0:
		w.cwd = "~"
	case c.operands[0].known && (strings.HasPrefix(c.operands[0].text, "/") || strings.HasPrefix(c.operands[0].text, "~")):
		w.cwd, w.cwdLost = c.operands[0].text, false
	case c.operands[0].known && w.cwd != "" && c.operands[0].text != "-":
		w.cwd += "/" + c.operands[0].text
	default:
		w.cwdLost = true
	}
}

// hookCrafts is for commands that print what they are told.
func hookCrafts(w *walker, c *call) {
	c.gives(outMade)
	for i := range c.operands {
		w.keepDire(&c.operands[i])
	}
	for i := range c.opts {
		w.keepDire(&c.opts[i].val)
	}
}

// hookStat knows the formats of stat that print numbers.
func hookStat(w *walker, c *call) {
	hookCrafts(w, c)
	g := c.has("-c", "--format", "--printf")
	if g == nil || !g.val.known {
		return
	}
	rest := g.val.text
	for _, verb := range []string{"%a", "%b", "%B", "%f", "%g", "%h", "%i", "%o", "%s", "%u", "%W", "%X", "%Y", "%Z", "%A", "%U", "%G"} {
		rest = strings.ReplaceAll(rest, verb, "")
	}
	if strings.Trim(rest, " :,\\n") == "" {
		c.gives(outTame)
	}
}

// hookShows is for set, which alone shows all variables.
func hookShows(w *walker, c *call) {
	if len(c.opts) == 0 && len(c.operands) == 0 {
		w.note(bitReadSecret, c.start, c.end, c.node.path, "shows variables, and so the secrets of the environment")
	}
}

// hookBelow judges a recursive search without a path: it reads all below the
// present directory.
func hookBelow(w *walker, c *call) {
	if c.has("-r", "--recursive", "-R", "--dereference-recursive", "-d", "--directories") != nil {
		w.below(c)
	}
}

// below reads the present directory if a search names a pattern and no path.
func (w *walker) below(c *call) {
	need := 2
	if c.has("-e", "--regexp", "-f", "--file") != nil {
		need = 1
	}
	if len(c.operands) < need {
		w.pathRead(&word{text: ".", known: true, start: c.start, end: c.end}, c.node.path, true)
	}
}

// hookCurl judges -w, which may read and write files.
func hookCurl(w *walker, c *call) {
	if g := c.has("-w", "--write-out"); g != nil && (!g.val.known || strings.HasPrefix(g.val.text, "@") || strings.Contains(g.val.text, "%output") || strings.Contains(g.val.text, "%{output")) {
		w.note(bitWrite, g.val.start, g.val.end, "curl/-w", "the format of -w reads or writes a file, or cannot be seen")
	}
}

// hookPrintf judges -v and the formats that assign or do not end.
func hookPrintf(w *walker, c *call) {
	hookCrafts(w, c)
	if g := c.has("-v"); g != nil && (!g.val.known || !syntax.ValidName(g.val.text)) {
		w.note(bitExecOpaque, g.val.start, g.val.end, "printf/-v", "printf -v with a subscript may run what stands in it")
	} else if g != nil && w.k.policy.taints(g.val.text) {
		w.note(bitEnvTaint, g.val.start, g.val.end, "printf/-v", "the variable "+g.val.text+" changes what later programs are or obey")
	}
	if len(c.operands) == 0 {
		return
	}
	f := &c.operands[0]
	formats := f.alts
	switch {
	case f.known:
		formats = []string{f.text}
	case len(formats) == 0:
		w.note(bitUnknown, f.start, f.end, "printf/format", "the format "+f.show()+" cannot be seen")
	}
	for _, text := range formats {
		w.printfFormat(f, text)
	}
}

func (w *walker) printfFormat(f *word, text string) {
	for _, part := range strings.Split(strings.ReplaceAll(text, "%%", ""), "%")[1:] {
		verb := strings.TrimLeft(part, "-+ #0123456789.*'hlqjzt")
		if strings.HasPrefix(verb, "n") {
			w.note(bitUnknown, f.start, f.end, "printf/format", "the format %n assigns a variable")
		}
		if digits := len(part) - len(strings.TrimLeft(part, "-+ #0123456789.")); digits > 5 || strings.HasPrefix(strings.TrimLeft(part, "-+ #0."), "*") {
			w.note(bitUnbounded, f.start, f.end, "printf/format", "the width makes the output very long")
		}
	}
}

// hookPs reads the letters of BSD, which stand without a dash.
func hookPs(w *walker, c *call) {
	for i := 0; i < len(c.operands); i++ {
		a := &c.operands[i]
		switch {
		case a.tame || a.known && isNumber(strings.ReplaceAll(a.text, ",", "")):
		case !a.known || strings.Trim(a.text, "TargxujlvwWsXZfHSchnLmVoOkpqtU") != "":
			w.unknown(c, a, "the letters "+a.show()+" of ps show the environment, or are not known")
		case strings.ContainsAny(a.text, "oOkpqtU"):
			i++ // the next word is a format or a list
			if i < len(c.operands) && strings.ContainsAny(a.text, "oO") {
				w.psFields(c, &c.operands[i])
			}
		}
	}
	for i := range c.opts {
		if g := &c.opts[i]; g.has && slices.Contains([]string{"-o", "-O", "--format"}, g.opt.name) {
			w.psFields(c, &g.val)
		}
	}
}

// hookEnv judges -S, whose text is cut into words that come before the others.
func hookEnv(w *walker, c *call) {
	g := c.has("-S", "--split-string")
	if g == nil {
		return
	}
	list := append([]word{g.val}, c.operands...)
	if strings.ContainsAny(g.val.text, "\\$#") {
		list[0].known = false
	}
	for i := range list {
		if i > 0 && strings.Trim(list[i].text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@%+") != "" {
			list[i].known = false
		}
	}
	w.shellWords(list, false)
}

// hookFields judges which fields are asked for by -p, -f or --format: all of
// them, or one that holds an environment, show secrets.
func hookFields(w *walker, c *call) {
	asked := false
	for i := range c.opts {
		g := &c.opts[i]
		if !g.has || !slices.Contains([]string{"-p", "-P", "--property", "-f", "--format"}, g.opt.name) {
			continue
		}
		asked = true
		compact := strings.ToLower(strings.ReplaceAll(g.val.text, " ", ""))
		if !g.val.known || strings.Contains(compact, "env") || strings.Contains(compact, ".config}") || strings.Contains(compact, "args") || strings.Contains(compact, "{{.}}") || strings.Contains(compact, "json.}") || compact == "json" {
			w.note(bitReadSecret, g.val.start, g.val.end, c.node.path, "the field "+g.val.show()+" holds an environment, or everything")
		}
	}
	if !asked {
		w.note(bitReadSecret, c.start, c.end, c.node.path, "without a list of fields, the environment is shown too")
		w.hint = c.node.hint
	}
}

// hookRead judges the names of variables that are set or forgotten.
func hookRead(w *walker, c *call) {
	if g := c.has("-a"); g != nil {
		c.operands = append(c.operands, g.val)
	}
	for i := range c.operands {
		a := &c.operands[i]
		if w.fedInput > 0 {
			w.told(a.text, w.pipedOutput)
			if w.readGives == nil {
				w.readGives = map[string]output{}
			}
			w.readGives[a.text] = w.pipedOutput
		}
		if !a.known || !syntax.ValidName(a.text) {
			w.note(bitExecOpaque, a.start, a.end, c.node.path, "a name with a subscript may run what stands in it: "+a.show())
		} else if w.k.policy.taints(a.text) {
			w.note(bitEnvTaint, a.start, a.end, c.node.path, "the variable "+a.text+" changes what later programs are or obey")
		}
	}
}

// hookSh judges a shell: with -c its first operand is a text to run, otherwise
// a file. What comes over its input is in the effects of the command.
func hookSh(w *walker, c *call) {
	if c.dry {
		if c.has("-c") == nil && len(c.operands) > 0 { // what cannot be read is shown
			w.pathRead(&c.operands[0], c.node.path, false)
		}
		return
	}
	if c.has("-c") == nil {
		// A script, or after +X a text that looks like its argument: its words
		// may be what is run.
		for i := range c.operands {
			w.drasticText(&c.operands[i])
		}
		return
	}
	if len(c.operands) == 0 {
		w.note(bitUnknown, c.start, c.end, "sh/-c", "the text for the shell is missing")
		return
	}
	w.shellText(&c.operands[0], c.called != "bash")
}

// hookTar judges the archive by what is done with it.
func hookTar(w *walker, c *call) {
	file := c.has("-f", "--file")
	reads := c.has("-t", "--list", "-d", "--diff", "--compare") != nil
	extract := c.has("-x", "--extract", "--get") != nil
	create := c.has("-c", "--create") != nil
	if names := c.has("-T", "--files-from"); names != nil && !reads {
		w.note(bitReadSecret, names.val.start, names.val.end, "tar/-T", "which files are read stands in a list that is not seen here")
	}
	stdout := c.has("-O", "--to-stdout") != nil
	switch {
	case create:
		for i := range c.operands {
			w.pathRead(&c.operands[i], "tar/create", true)
		}
		if file != nil && !(file.val.known && file.val.text == "-") {
			w.pathWrite(&file.val, file.val.start, file.val.end, "tar/create")
		}
		return
	case extract && !stdout:
		w.note(bitWrite, c.start, c.end, "tar/extract", "tar writes the files it takes out")
	case !reads && !extract:
		w.note(bitUnknown, c.start, c.end, "tar", "what tar does with the archive is not known")
	}
	if file == nil {
		return
	}
	if file.val.known && strings.Contains(file.val.text, ":") {
		w.note(bitNetSend, file.val.start, file.val.end, "tar/file", "an archive with a colon in its name lies on another host")
	}
	w.pathRead(&file.val, "tar/list", false)
}

// hookTest judges [ and test: -v and -R look at variables by name, and a name
// with a subscript runs what stands in it.
func hookTest(w *walker, c *call) {
	count := len(c.operands)
	if c.node.path == "[" || count > 0 && c.operands[count-1].text == "]" {
		count--
	}
	for i := range c.operands {
		a := &c.operands[i]
		switch {
		case a.known && (a.text == "-v" || a.text == "-R"):
			if i+1 < len(c.operands) && !(c.operands[i+1].known && syntax.ValidName(c.operands[i+1].text)) {
				w.note(bitExecOpaque, a.start, a.end, "test/-v", "the test of a variable by this name may run a subscript")
			}
		case a.many && !a.tame, i == 0 && a.mayDash() && !a.known && count == 2:
			w.note(bitUnknown, a.start, a.end, "test", "the word "+a.show()+" may become an operator: put it in double quotes")
		}
	}
}

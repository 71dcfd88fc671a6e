package shell

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fileHook returns the hooks of commands for files and texts.
func fileHook(name string) func(*walker, *call) {
	switch name {
	case "at":
		return hookAt
	case "framed":
		return hookFramed
	case "jo":
		return hookJo
	case "jq":
		return hookJq
	case "link":
		return hookLink
	case "lists":
		return hookLists
	case "local":
		return hookLocal
	case "man":
		return hookMan
	case "overwrite":
		return hookOverwrite
	case "packs":
		return hookPacks
	case "rg":
		return hookRg
	case "sleep":
		return hookSleep
	case "tree":
		return hookTree
	case "wide":
		return hookWide
	case "yq":
		return hookYq
	}
	return trapHook(name)
}

// hookAt refuses @FILE, which stands for the options in that file.
func hookAt(w *walker, c *call) {
	for i := range c.operands {
		if a := &c.operands[i]; strings.HasPrefix(a.text, "@") {
			w.note(bitUnknown, a.start, a.end, c.node.path, "the words of "+c.node.name+" stand in the file "+a.show())
		}
	}
}

// framing finds what would make a printed word an option or a path: what may
// stand before a dash is a letter, a digit, or a field that is never empty.
var framing = regexp.MustCompile(`/|(^|%[^%YmdHMSFTsjyuVBb]|[^\w.:,+%])-`)

// hookFramed is for commands whose output is taken for plain words: not where
// the frame around them, which is chosen here, makes a path or an option of it.
func hookFramed(w *walker, c *call) {
	for i := range c.opts {
		if g := &c.opts[i]; slices.Contains([]string{"-f", "--format", "-s", "--separator", "-d", "--delimiter"}, g.opt.name) && g.has && c.node.name != "date" {
			w.framed(c, &g.val)
		}
	}
	for i := range c.operands {
		if a := c.operands[i]; strings.HasPrefix(a.text, "+") {
			a = a.from(1)
			w.framed(c, &a)
		}
	}
}

func (w *walker) framed(c *call, a *word) {
	if w.producing > 0 && (!a.known && !a.tame || framing.MatchString(a.text)) {
		w.note(bitUnknown, a.start, a.end, c.node.path, "what "+c.node.name+" prints may become an option or a path by "+a.show())
	}
}

// hookJo refuses values that are taken from files: @file, %file and :file.
func hookJo(w *walker, c *call) {
	hookCrafts(w, c)
	for i := range c.operands {
		a := &c.operands[i]
		if _, value, _ := strings.Cut(a.text, "="); !a.known && !a.tame || strings.ContainsAny(a.text[:min(1, len(a.text))]+value[:min(1, len(value))], "@%:") || strings.Contains(a.text, ":=") {
			w.note(bitReadSecret, a.start, a.end, c.node.path, a.show()+" may be the content of a file")
		}
	}
}

// hookJq is for filters that put text together.
func hookJq(w *walker, c *call) {
	for i := range c.operands {
		if a := &c.operands[i]; !a.known || strings.ContainsAny(a.text, "\"@") || strings.Contains(a.text, "implode") {
			hookCrafts(w, c)
		}
	}
}

var yqReaches = regexp.MustCompile(`\b(load\w*|env|strenv|envsubst|system|eval)\b`)

// hookYq judges what yq's language has beyond jq's, and a first word that is a file.
func hookYq(w *walker, c *call) {
	hookJq(w, c)
	for i := range c.operands {
		a := &c.operands[i]
		if m := yqReaches.FindString(a.text); m != "" && (strings.Contains(a.text, "(") || m == "envsubst") {
			w.note(bitReadSecret, a.start, a.end, c.node.path, "yq's "+m+" reads files or the environment")
		}
	}
	if len(c.operands) == 1 {
		w.pathRead(&c.operands[0], c.node.path, false)
	}
}

// hookLink judges where a link is made: programs and services are found by
// what lies in the system's directories.
func hookLink(w *walker, c *call) {
	if len(c.operands) == 0 {
		return
	}
	a := &c.operands[len(c.operands)-1]
	if g := c.has("-t", "--target-directory"); g != nil {
		a = &g.val
	}
	for i := range c.operands {
		w.pathRead(&c.operands[i], c.node.path, false)
	}
	p := path.Clean(w.absolute(a.text))
	for _, dir := range []string{"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/var/spool", "/root", "/home", "~"} {
		if p == dir || strings.HasPrefix(p, dir+"/") || !a.known {
			w.note(bitConfig, a.start, a.end, c.node.path, "makes a link at "+a.show()+", where programs and services are found")
			return
		}
	}
}

// hookLists is for commands that print the names below a directory, which may
// then be read: where secrets lie there, the names are theirs too.
func hookLists(w *walker, c *call) {
	if w.producing == 0 {
		return
	}
	for i := range c.operands {
		w.mentioned = w.mentioned || c.operands[i].known && w.k.policy.holdsSecrets(path.Clean(w.absolute(c.operands[i].text)))
	}
	w.mentioned = w.mentioned || w.cwd != "" && w.k.policy.holdsSecrets(path.Clean(w.cwd))
}

// hookLocal notes that operands are, or may be, addresses.
func hookLocal(w *walker, c *call) {
	for i := range c.opts {
		if g := &c.opts[i]; g.opt.value.kind == kindPathRead && (strings.Contains(g.val.text, "://") || strings.HasPrefix(g.val.text, "git@") || strings.HasPrefix(g.val.text, "github.com/")) {
			w.note(bitNetSend, g.val.start, g.val.end, c.node.path, g.val.show()+" is an address on another host")
		}
	}
	for i := range c.operands {
		if a := &c.operands[i]; strings.Contains(a.text, "://") || !a.known && !strings.ContainsAny(a.text[:min(len(a.text), 1)], "/.") {
			w.note(bitNetSend, a.start, a.end, c.node.path, a.show()+" may be an address on another host")
		}
	}
}

// hookMan refuses pages that are given as files: their text may take in others,
// and run programs.
func hookMan(w *walker, c *call) {
	for i := range c.operands {
		if a := &c.operands[i]; strings.Contains(a.text, "/") || !a.known && !a.tame {
			w.note(bitExecOpaque, a.start, a.end, c.node.path, "a manual page from the file "+a.show()+" may take in others")
		}
	}
}

// hookOverwrite notes that a file loses what it held: nothing is copied over
// it, or it is moved to where nothing stays.
func hookOverwrite(w *walker, c *call) {
	moves := c.node.name == "mv"
	for i := range c.operands {
		last := i == len(c.operands)-1
		if a := &c.operands[i]; a.text == "/dev/null" && last == moves && c.has("-d", "--directory") == nil {
			w.note(bitDataLoss, a.start, a.end, c.node.path, c.node.name+" with /dev/null empties or replaces a file")
		}
	}
	if g := c.has("-t", "--target-directory"); g != nil && moves && g.val.text == "/dev/null" {
		w.note(bitDataLoss, g.val.start, g.val.end, c.node.path, c.node.name+" to /dev/null loses the file")
	}
}

// hookPacks is for compressors: named files are replaced, unless the result
// goes to the output. Of -l, -t, -d and -z some obey the last.
func hookPacks(w *walker, c *call) {
	looks := c.has("-l", "--list", "-t", "--test") != nil && c.has("-d", "--decompress", "--uncompress", "-z", "--compress") == nil
	if !c.lost && (looks || c.has("-c", "--stdout", "--to-stdout") != nil) {
		return
	}
	for i := range c.operands {
		if a := &c.operands[i]; !a.known || a.text != "-" {
			w.note(bitWrite, a.start, a.end, c.node.path, c.node.name+" replaces "+a.show()+": add -c to see it only")
			return
		}
	}
}

// hookRg judges a search without a path: it reads all below the present directory.
func hookRg(w *walker, c *call) {
	hookLists(w, c)
	if c.has("--files", "--type-list") == nil {
		w.below(c)
	}
}

// hookSleep notes a sleep of more than an hour, or of a time that cannot be seen.
func hookSleep(w *walker, c *call) {
	total := 0.0
	for i := range c.operands {
		text, factor := c.operands[i].text, 1.0
		if n := len(text) - 1; n > 0 {
			if at := strings.IndexByte("smhd", text[n]); at >= 0 {
				text, factor = text[:n], []float64{1, 60, 3600, 86400}[at]
			}
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !c.operands[i].known {
			total = 1e9
			break
		}
		total += seconds * factor
	}
	if total > 3600 {
		w.note(bitUnbounded, c.start, c.end, c.node.path, "sleeps long, or for a time that cannot be seen")
	}
}

// hookTree judges tree --fromfile, which shows the lines of its operands, and
// glued values, which tree does not know: each letter takes a word of its own,
// of those that follow.
func hookTree(w *walker, c *call) {
	hookLists(w, c)
	for i := range c.opts {
		if g := &c.opts[i]; g.has && g.val.start < g.at.end && !strings.HasPrefix(g.at.text, "--") {
			w.note(bitUnknown, g.at.start, g.at.end, c.node.path, "tree takes the value of "+g.opt.name+" from another word than it seems")
		}
	}
	if c.has("--fromfile", "--fromtabfile") == nil {
		return
	}
	for i := range c.operands {
		w.pathRead(&c.operands[i], c.node.path, false)
	}
}

// hookWide notes that everything on the machine is listed. A word that may be
// an option may name a file to read.
func hookWide(w *walker, c *call) {
	hookLists(w, c)
	w.mentioned = w.mentioned || w.producing > 0 && c.node.name == "locate"
	for i := range c.operands {
		if a := &c.operands[i]; !a.known && a.mayDash() && !a.tame {
			w.blind(a)
		}
	}
	every := c.node.name == "locate" || c.has("-a", "--all") != nil
	if every && slices.ContainsFunc(c.operands, func(a word) bool { return a.text == "/" || a.text == "*" }) {
		w.note(bitUnbounded, c.start, c.end, c.node.path, "lists every file there is")
	}
}

package shell

import (
	"slices"
	"strings"
)

// hookInside judges the words after the first operand as a command that runs in
// a container, a pod or a guest; with lxc-attach -n NAME, all operands. The
// options of the outer command may stand before it, and "--" ends them.
func hookInside(w *walker, c *call) {
	list := c.operands
	if c.node.parent != nil || c.has("-n", "--name") == nil {
		list = list[min(1, len(list)):]
	}
	if len(list) == 0 {
		w.note(bitInteractive, c.start, c.end, c.node.path, "without a command, a shell waits for a person")
		return
	}
	w.commands++
	w.argv(slices.Clone(list))
}

// hookHere is for programs that load code from the current directory: one that
// the command chooses is not trusted.
func hookHere(w *walker, c *call) {
	if w.cwd != "" || w.cwdLost {
		w.note(bitExecOpaque, c.start, c.end, c.node.path, c.node.name+" may load code from a directory that the command chooses")
	}
}

// hookKube judges what kubectl shows: the content of a secret, a template from
// a file, a path of the API that is asked for as it is.
func hookKube(w *walker, c *call) {
	if g := c.has("--raw"); g != nil {
		if !g.val.known || !harmlessAPI(g.val.text) {
			w.note(bitReadSecret, g.val.start, g.val.end, c.node.path, "the path "+g.val.show()+" of the API may hold secrets, or act")
		}
		return
	}
	shows := c.node.name == "describe"
	if g := c.has("-o", "--output"); g != nil {
		text := strings.TrimPrefix(g.val.text, "=")
		form, _, _ := strings.Cut(text, "=")
		switch {
		case !g.val.known && form == text, !slices.Contains([]string{"wide", "name", "json", "yaml", "jsonpath", "jsonpath-as-json", "custom-columns", "go-template", "template"}, form):
			w.unknown(c, &g.val, "the output "+g.val.show()+" of kubectl is not known")
		case form != "wide" && form != "name":
			shows = true
		}
	}
	shows = shows || c.has("--template") != nil
	if g := c.has("-f", "--filename"); g != nil && (!g.val.known || strings.Contains(g.val.text, "://")) {
		w.note(bitNetSend, g.val.start, g.val.end, c.node.path, "the file "+g.val.show()+" may lie on another host")
	} else if g != nil && shows && c.node.name == "get" {
		w.note(bitReadSecret, g.val.start, g.val.end, c.node.path, "what the file "+g.val.show()+" names may be a secret")
	}
	for i := range c.operands {
		if a := &c.operands[i]; shows && (i == 0 || strings.Contains(a.text, "/")) && (!a.known || namesSecret(a.text)) {
			w.note(bitReadSecret, a.start, a.end, c.node.path, "the content of "+a.show()+" is shown, which is or may be a secret")
		}
	}
}

// namesSecret says whether a list of resources like "pods,secret/x" has a
// secret in it. A secret of a service account's token is shown by describe too.
func namesSecret(text string) bool {
	for _, part := range strings.Split(strings.ToLower(text), ",") {
		kind, _, _ := strings.Cut(part, "/")
		kind, _, _ = strings.Cut(kind, ".")
		if kind == "secret" || kind == "secrets" {
			return true
		}
	}
	return false
}

// harmlessAPI says whether a path of the Kubernetes API only tells of health,
// versions and figures.
func harmlessAPI(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	if strings.Contains(path, "..") || strings.Contains(path, "%") {
		return false
	}
	return slices.Contains([]string{"/metrics", "/healthz", "/readyz", "/livez", "/version", "/api", "/api/v1", "/apis"}, path) ||
		strings.HasPrefix(path, "/livez/") || strings.HasPrefix(path, "/readyz/") || strings.HasPrefix(path, "/healthz/") || strings.HasPrefix(path, "/apis/metrics.k8s.io/")
}

// hookPvesh judges the path that pvesh get asks for: what lies below some
// shows secrets or people, or reads files of a guest.
func hookPvesh(w *walker, c *call) {
	if c.node.name != "get" || len(c.operands) == 0 {
		return
	}
	a := &c.operands[0]
	for _, part := range strings.Split(a.text, "/") {
		if !a.known || slices.Contains([]string{"access", "agent", "cloudinit", "dump", "tfa", "termproxy", "vncproxy", "vncwebsocket", "spiceproxy", "mtunnelwebsocket", "acme", "vzdump"}, part) {
			w.note(bitReadSecret, a.start, a.end, c.node.path, "the path "+a.show()+" of the API may hold secrets, or act")
			return
		}
	}
}

// hookPackages judges packages and images that may be addresses, and names that
// are asked for in a registry of the caller.
func hookPackages(w *walker, c *call) {
	elsewhere := c.has("-p", "--package") != nil || c.has("--registry") != nil
	for i := range c.operands {
		if a := &c.operands[i]; remote(a.text) || !a.known && elsewhere {
			w.note(bitNetSend, a.start, a.end, c.node.path, "the package "+a.show()+" may lie on another host")
		}
	}
	for i := range c.opts {
		if g := &c.opts[i]; g.has && (g.opt.value.kind == kindPathMeta && remote(g.val.text) || !g.val.known && c.has("--registry") != nil) {
			w.note(bitNetSend, g.val.start, g.val.end, c.node.path, "the value "+g.val.show()+" may name or reach another host")
		}
	}
}

func remote(name string) bool {
	return strings.Contains(name, "://") || strings.HasPrefix(name, "json:") || strings.HasPrefix(name, "nbd:")
}

// hookCode is for interpreters: what words of their code tell of removing, and
// a module that the directory the command chooses may replace.
func hookCode(w *walker, c *call) {
	for i := range c.opts {
		if c.opts[i].has {
			w.code(c, &c.opts[i].val)
		}
	}
	for i := range c.operands {
		w.code(c, &c.operands[i])
	}
	hookHere(w, c)
}

// code looks for words of removing in a text of any language.
func (w *walker) code(c *call, a *word) {
	for f := range strings.FieldsFuncSeq(a.text, func(r rune) bool { return r != '-' && r != '_' && (r < 'A' || r > 'z' || r > 'Z' && r < 'a') }) {
		if drasticWord(f) || slices.Contains([]string{"rmSync", "unlinkSync", "rmdirSync", "rm_rf", "rm_r", "remove_tree", "removedirs", "deleteFile", "remove_entry"}, f) {
			w.note(bitDataLoss, a.start, a.end, c.node.path, "the word "+f+" in the code for "+c.node.name+" tells of removing")
			return
		}
	}
}

// hookRegistry judges the name of an image that is asked for in a registry.
func hookRegistry(w *walker, c *call) {
	for i := range c.operands {
		if a := &c.operands[i]; !a.known || strings.Contains(a.text, "://") {
			w.host(c, a)
		}
	}
}

// hookPflag is for programs written in Go: in -o=x their value is x, not =x.
// Where the value is judged by what it is, that form is not understood. The
// template of an inspect may show an environment.
func hookPflag(w *walker, c *call) {
	for i := range c.opts {
		g := &c.opts[i]
		if g.has && c.node.name == "inspect" && (g.opt.name == "-f" || g.opt.name == "--format") && wholeFields(g.val.text) {
			w.note(bitReadSecret, g.val.start, g.val.end, c.node.path, "the template "+g.val.show()+" shows a part that holds an environment")
		}
		k := g.opt.value.kind
		if g.has && len(g.opt.name) == 2 && strings.HasPrefix(g.val.text, "=") && (k != kindText && k != kindNumber || g.opt.name == "-f") {
			w.note(bitUnknown, g.val.start, g.val.end, c.node.path, "write the value of "+g.opt.name+" as a word of its own")
		}
	}
}

// wholeFields says whether a template uses everything, as one without braces
// may, or a field that holds an environment, as a whole.
func wholeFields(template string) bool {
	if !strings.Contains(template, "{{") {
		return true
	}
	before := byte(' ')
	for i := 0; i < len(template); i++ {
		start := before
		before = template[i]
		if before != '.' && before != '$' || start == ')' || start == '_' || start == '.' || isNameByte(start) {
			continue
		}
		end := i + 1
		for end < len(template) && (template[end] == '.' || template[end] == '_' || isNameByte(template[end])) {
			end++
		}
		switch strings.TrimPrefix(template[i:end], "$") {
		case "", ".", ".Config", ".ContainerConfig", ".Spec", ".Spec.TaskTemplate", ".Spec.TaskTemplate.ContainerSpec", ".PreviousSpec":
			return true
		}
		before, i = template[end-1], end-1
	}
	return false
}

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

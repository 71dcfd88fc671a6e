package shell

import (
	"slices"
	"strings"
)

// gitHook returns the hooks of git.
func gitHook(name string) func(*walker, *call) {
	switch name {
	case "git":
		return hookGit
	case "git-here":
		return hookGitHere
	case "git-shows":
		return hookGitShows
	case "git-remote":
		return hookGitRemote
	case "git-push":
		return hookGitPush
	case "checkout":
		return hookCheckout
	}
	return nil
}

// global returns the last use of an option of git's own, before the verb.
func (c *call) global(name string) *given {
	for i := len(c.opts) - 1; i >= 0; i-- {
		if g := &c.opts[i]; g.opt.name == name && g.at.start < c.end {
			return g
		}
	}
	return nil
}

// hookGit judges -c NAME=VALUE, where only settings pass that neither run nor
// write, and the values that git reads once more as options.
func hookGit(w *walker, c *call) {
	for i := range c.opts {
		g := &c.opts[i]
		apart := !strings.HasSuffix(g.at.text, g.val.text)
		switch {
		case !g.has:
		case g.opt.name == "-c" && g.at.start < c.end:
			w.gitSetting(&g.val)
		case apart && strings.HasPrefix(g.val.text, "--o"):
			w.note(bitWrite, g.val.start, g.val.end, "git/--output", "git reads its options twice, and takes "+g.val.show()+" for one that writes")
		case apart && !g.val.known && g.val.mayDash():
			w.note(bitUnknown, g.val.start, g.val.end, "git/--output", "git reads its options twice, and "+g.val.show()+" may be one that writes")
		case (g.opt.name == "--format" || g.opt.name == "--pretty") && (strings.Contains(g.val.text, "%G") || strings.Contains(g.val.text, "signature")):
			w.note(bitExecOpaque, g.val.start, g.val.end, c.node.path, "git runs a program to check signatures")
		}
	}
}

func (w *walker) gitSetting(v *word) {
	key, value, _ := strings.Cut(strings.ToLower(v.text), "=")
	section, _, _ := strings.Cut(key, ".")
	harmless := slices.Contains([]string{"core.pager=cat", "core.quotepath=false", "core.quotepath=off", "core.fsmonitor=false", "core.preloadindex=true", "core.abbrev=" + value, "log.date=" + value, "log.showsignature=false", "diff.external=", "pager." + strings.TrimPrefix(key, "pager.") + "=false", "advice." + strings.TrimPrefix(key, "advice.") + "=false", "safe.directory=" + value}, key+"="+value)
	if !v.known || !harmless && section != "color" && section != "column" {
		w.note(bitExecOpaque, v.start, v.end, "git/-c", "the setting "+v.show()+" may make git run or write something")
	}
}

// gitElsewhere says whether git works in a repository that the command chooses:
// what that one's configuration says is run is not trusted.
func (w *walker) gitElsewhere(c *call) bool {
	return w.cwd != "" || w.cwdLost || c.global("-C") != nil
}

// hookGitHere is for verbs that refresh the index, and so run what the
// repository's core.fsmonitor names.
func hookGitHere(w *walker, c *call) {
	if w.gitElsewhere(c) {
		w.note(bitExecOpaque, c.start, c.end, c.node.path, "in a repository that the command chooses, git "+c.node.name+" runs what its configuration says")
	}
}

// hookGitShows judges what git shows the content of: a secret file, one
// outside the repository, and what the repository says is run to show it.
func hookGitShows(w *walker, c *call) {
	verb := c.node.name
	patch := c.has("-p", "-u", "--patch", "-L", "--cc", "-S", "-G", "-U", "--unified", "--patch-with-stat", "--patch-with-raw", "--binary", "--word-diff", "--color-words") != nil ||
		verb != "grep" && c.has("-c") != nil || slices.Contains([]string{"blame", "annotate"}, verb) || strings.HasPrefix(verb, "diff") && verb != "diff-tree" ||
		verb == "show" && c.has("-s", "--no-patch", "--stat", "--shortstat", "--numstat", "--name-only", "--name-status") == nil
	refreshes := strings.HasPrefix(verb, "diff") || c.has("--dirty", "--modified", "--others", "-m", "-o") != nil && (verb == "describe" || verb == "ls-files")
	if w.gitElsewhere(c) && (refreshes || patch && (c.has("--no-textconv") == nil || verb == "blame" || verb == "annotate")) {
		w.note(bitExecOpaque, c.start, c.end, c.node.path, "in a repository that the command chooses, git "+verb+" runs what its configuration says: add --no-textconv")
	}
	if !patch && verb != "cat-file" && verb != "show" {
		return
	}
	for i := range c.operands {
		a := c.operands[i]
		if at := strings.LastIndexByte(a.text, ':'); at >= 0 {
			a = a.from(at + 1)
		}
		if a.known && a.text != "" && a.text != "-" {
			w.pathRead(&a, c.node.path, c.has("--no-index") != nil || strings.HasPrefix(a.text, "/"))
		}
	}
}

// hookGitRemote judges git remote show, which also takes an address.
func hookGitRemote(w *walker, c *call) {
	for i := range c.operands {
		if a := &c.operands[i]; !a.known && len(a.alts) == 0 && !a.tame || strings.ContainsAny(a.text, ":/") {
			w.note(bitNetSend, a.start, a.end, c.node.path, a.show()+" may be an address that carries data out")
		}
	}
}

// hookGitPush judges what is pushed: +NAME replaces what is there, :NAME removes it.
func hookGitPush(w *walker, c *call) {
	for i := range c.operands {
		if a := &c.operands[i]; i > 0 && (strings.HasPrefix(a.text, "+") || strings.HasPrefix(a.text, ":")) {
			w.note(bitDelete, a.start, a.end, c.node.path, "git push of "+a.show()+" takes away what is there")
		}
	}
}

// hookCheckout tells what git checkout takes back, and so loses, from a change
// of the branch.
func hookCheckout(w *walker, c *call) {
	lost := c.dashed || len(c.operands) > 1
	for i := range c.operands {
		a := &c.operands[i]
		lost = lost || !a.known || a.text == "." || strings.HasPrefix(a.text, "./") || strings.HasPrefix(a.text, ":")
	}
	if lost && c.has("-b", "-B", "--orphan", "--detach", "-d") == nil {
		w.note(bitDataLoss, c.start, c.end, c.node.path, "git checkout of files loses what was changed in them")
	}
}

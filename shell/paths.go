package shell

import (
	"path"
	"slices"
	"strings"
)

// policy is policy.yaml: which paths hold secrets and devices, which variables
// may be set.
type policy struct {
	secrets  patterns // anchored patterns: ** is any depth, * any name
	lasts    patterns // the last elements of secrets
	names    patterns // patterns of the last element, wherever it lies
	public   patterns // exceptions of names
	devices  patterns // reading them is read_device
	harmless patterns // exceptions of devices
	breaking patterns // writing them is data_loss
	trees    patterns // directories that hold secrets: reading all of them is read_secret
	ordinary []string // names that no secret has, or "*" and what they end with
	export   []exported
	taint    patterns
}

// absolute joins a relative path with what is known of the directory.
func (w *walker) absolute(p string) string {
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || w.cwd == "" || w.cwdLost {
		return p
	}
	return w.cwd + "/" + p
}

// pathRead judges a file whose content is read; tree says that everything
// below it is.
func (w *walker) pathRead(a *word, rule string, tree bool) {
	if len(a.alts) > 0 && !a.many {
		for _, p := range a.alts {
			b := *a
			b.text, b.known, b.alts = p, true, nil
			w.pathRead(&b, rule, tree)
		}
		return
	}
	p := a.text
	w.steps++
	if !a.known {
		w.steps += 12 * len(p) // is compared with every pattern, sign by sign
	}
	if w.overrun() {
		return
	}
	if a.known {
		w.touch("path_read", p)
	}
	if p == "-" {
		w.waits(a.start, a.end, rule)
	}
	if p == "-" || a.tame {
		return
	}
	if a.glob && p != "" && p[0] == wild {
		w.note(bitReadSecret, a.start, a.end, rule, "reads all of a directory that is not known here")
		return
	}
	if !a.known && !a.glob && hasWild(p) {
		w.blind(a)
		w.unseen(a, rule)
		if p[0] == wild {
			return
		}
	}
	clean := p
	if p != "" {
		clean = path.Clean(w.absolute(p))
	}
	switch {
	case w.k.policy.secret(clean) || strings.Contains(p, "..") && w.k.policy.secretName(path.Base(clean)):
		w.note(bitReadSecret, a.start, a.end, rule, "reads "+a.show()+", which holds secrets")
	case strings.HasPrefix(clean, "/dev/watchdog"):
		w.note(bitPower, a.start, a.end, rule, "opens "+a.show()+", which restarts the machine unless it is fed")
	case w.k.policy.device(clean):
		w.note(bitReadDevice, a.start, a.end, rule, "reads the device or kernel memory "+a.show())
	case tree && w.k.policy.holdsSecrets(clean):
		w.note(bitReadSecret, a.start, a.end, rule, "reads all of "+a.show()+", and secrets lie below it")
	case !strings.HasPrefix(clean, "/") && (w.cwdLost || w.cwd == "") && w.k.policy.secretName(path.Base(clean)):
		w.note(bitReadSecret, a.start, a.end, rule, "reads "+a.show()+", which is a secret by its name")
	case clean == "/dev/zero" || clean == "/dev/urandom" || clean == "/dev/random":
		w.note(bitUnbounded, a.start, a.end, rule, "reads "+clean+", which does not end")
	case clean == "/proc/kallsyms":
		w.note(bitUnbounded, a.start, a.end, rule, "reads "+clean+", which is very long")
	case clean == "/dev/tty" || clean == "/dev/console":
		w.note(bitUnbounded, a.start, a.end, rule, "reads a terminal, which ends when a person says so")
	case clean == "/dev/stdin" || clean == "/dev/fd/0":
		w.waits(a.start, a.end, rule)
	}
}

// waits notes that an input is read that nothing in this text ends.
func (w *walker) waits(start, end int, rule string) {
	if w.fedInput == 0 {
		w.note(bitUnbounded, start, end, rule, "reads an input that may never end")
	}
}

// blindVar is where a variable names a file to read.
type blindVar struct {
	whole      bool // the file is anybody's choice who sets the variable
	start, end int
}

// unseen judges a file of whose name something cannot be seen.
func (w *walker) unseen(a *word, rule string) {
	whole := a.text[0] == wild || a.text[len(a.text)-1] == wild // with ../ in it, the end is as good as all
	if why := chosen(a.gives, whole); why != "" {
		w.note(bitReadSecret, a.start, a.end, rule, why)
	}
	for _, name := range a.variables {
		if w.blindVars == nil {
			w.blindVars = map[string]blindVar{}
		}
		w.blindVars[name] = blindVar{whole || w.blindVars[name].whole, a.start, a.end}
	}
}

// chosen says why a file may not be read whose name, or part of it, comes from
// an output. What a text says may stand within a name, but not be all of it.
func chosen(gives output, whole bool) string {
	switch {
	case gives == outMade:
		return "reads a file whose name is put together here"
	case gives == outAny && whole:
		return "reads a file that a text names: whoever wrote that chose the file"
	}
	return ""
}

func (w *walker) blind(a *word) {
	if !w.blindRead {
		w.blindRead, w.blindAt = true, [2]int{a.start, a.end}
	}
}

// mention keeps a static word: where a file is read whose name is not known,
// the words decide whether it may be a secret one.
func (w *walker) mention(a *word) {
	if len(a.text) >= 4 && (a.known || !a.tame) {
		w.words = append(w.words, a.text)
	}
	w.words = append(w.words, a.alts...)
}

// mentions says whether a text holds a path or a name that is a secret.
func (p *policy) mentions(s string) bool {
	if strings.IndexByte(s, ' ') >= 0 {
		for _, f := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n'\"=:,;()", r) }) {
			if p.secret(path.Clean(f)) || p.secretName(path.Base(f)) {
				return true
			}
		}
		return false
	}
	whole := s != "" && s[0] == '/' && hasWild(s) // a pattern of whole names: its last element alone says nothing
	return p.secret(path.Clean(s)) || !whole && p.secretName(path.Base(s))
}

// secret says whether a clean path may be one that holds secrets.
func (p *policy) secret(clean string) bool {
	if strings.IndexByte(clean, '/') >= 0 && p.secrets.meets(clean) {
		return true
	}
	base := clean[strings.LastIndexByte(clean, '/')+1:]
	return p.named(base)
}

// named says whether the last element of a path is that of a secret. Of a name
// that is not wholly known, what is known must tell.
func (p *policy) named(base string) bool {
	if strings.Trim(base, "\x00\x01\x02.") == "" {
		return false
	}
	if !hasWild(base) {
		return p.names.meets(base) && !p.public.meets(base)
	}
	if slices.ContainsFunc(p.public.all, func(s *pattern) bool { return s.text[0] == '*' && endsWith(base, s.text[1:]) }) {
		return false
	}
	return slices.ContainsFunc(p.names.all, func(s *pattern) bool { return s.selected(base) }) || base[0] <= globOne && p.secretName(strings.Trim(base, "\x00\x01\x02"))
}

// secretName says whether the last element of some secret path is called so.
func (p *policy) secretName(base string) bool {
	if len(base) < 4 || strings.Trim(base, "\x00\x01\x02.*") == "" {
		return false
	}
	return p.lasts.meets(base)
}

func (p *policy) device(clean string) bool {
	if !hasWild(clean) && p.harmless.meets(clean) {
		return false
	}
	return p.devices.meets(clean)
}

// breaksDevice says whether writing to a path destroys data or stops the machine.
func (p *policy) breaksDevice(clean string) bool {
	return p.breaking.meets(clean)
}

// isOrdinary says whether everything that a pattern of names finds has a name
// that no secret has.
func (p *policy) isOrdinary(name string) bool {
	return slices.ContainsFunc(p.ordinary, func(o string) bool { return o == name || o[0] == '*' && endsWith(name, o[1:]) })
}

// endsWith says whether a name surely ends so, whatever of it is unknown.
func endsWith(name, end string) bool {
	return strings.HasSuffix(name[strings.LastIndexAny(name, "\x00\x01\x02")+1:], end)
}

// holdsSecrets says whether secrets lie below a directory.
func (p *policy) holdsSecrets(dir string) bool {
	dir = strings.TrimRight(dir, "/")
	if dir == "" || dir == "~" {
		return true
	}
	if p.trees.meets(dir) || p.secrets.meets(dir+"/x") {
		return true
	}
	dir += "/"
	return slices.ContainsFunc(p.trees.all, func(s *pattern) bool { return strings.HasPrefix(s.text, dir) })
}

// taints says whether assigning a variable changes what programs are or obey.
func (p *policy) taints(name string) bool {
	return p.taint.meets(name)
}

// mayExport says whether a variable may be handed to a program with this value.
func (p *policy) mayExport(name string, val word) bool {
	for _, e := range p.export {
		if !e.name.meets(name) {
			continue
		}
		if len(e.values) == 0 {
			return val.known && !strings.ContainsAny(val.text, "/$`<>") || val.tame
		}
		for _, v := range e.values {
			if val.known && val.text == v {
				return true
			}
		}
	}
	return false
}

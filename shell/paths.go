package shell

import (
	"path"
	"strings"
)

// policy is policy.yaml: which paths hold secrets and devices, which variables
// may be set.
type policy struct {
	secrets  []pattern // anchored patterns: ** is any depth, * any name
	names    []pattern // patterns of the last element, wherever it lies
	public   []pattern // exceptions of names
	devices  []pattern // reading them is read_device
	harmless []pattern // exceptions of devices
	breaking []pattern // writing them is data_loss
	trees    []pattern // directories that hold secrets: reading all of them is read_secret
	export   []exported
	taint    []pattern
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
	if a.known {
		w.touch("path_read", p)
	}
	if p == "-" || a.tame {
		return
	}
	if !a.known && !a.glob && hasWild(p) {
		w.blind(a)
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
	case w.k.policy.device(clean):
		w.note(bitReadDevice, a.start, a.end, rule, "reads the device or kernel memory "+a.show())
	case tree && w.k.policy.holdsSecrets(clean):
		w.note(bitReadSecret, a.start, a.end, rule, "reads all of "+a.show()+", and secrets lie below it")
	case !strings.HasPrefix(clean, "/") && (w.cwdLost || w.cwd == "") && w.k.policy.secretName(path.Base(clean)):
		w.note(bitReadSecret, a.start, a.end, rule, "reads "+a.show()+", which is a secret by its name")
	case clean == "/dev/zero" || clean == "/dev/urandom" || clean == "/dev/random":
		w.note(bitUnbounded, a.start, a.end, rule, "reads "+clean+", which does not end")
	}
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
	return p.secret(path.Clean(s)) || p.secretName(path.Base(s))
}

// secret says whether a clean path may be one that holds secrets.
func (p *policy) secret(clean string) bool {
	if strings.IndexByte(clean, '/') >= 0 {
		live := hasWild(clean)
		for i := range p.secrets {
			if s := &p.secrets[i]; (live || s.begins(clean)) && s.meets(clean) {
				return true
			}
		}
	}
	base := clean[strings.LastIndexByte(clean, '/')+1:]
	return p.named(base)
}

// named says whether the last element of a path is that of a secret. Of a name
// that begins with something unknown, only what is known counts.
func (p *policy) named(base string) bool {
	trimmed := strings.Trim(base, "\x00\x01\x02")
	if strings.Trim(trimmed, ".") == "" {
		return false
	}
	if base[0] <= globOne {
		base = "*" + trimmed
		if p.secretName(trimmed) {
			return true
		}
	}
	return anyMeets(p.names, base) && !anyMeets(p.public, base)
}

func anyMeets(list []pattern, text string) bool {
	for i := range list {
		if list[i].meets(text) {
			return true
		}
	}
	return false
}

// secretName says whether the last element of some secret path is called so.
func (p *policy) secretName(base string) bool {
	if len(base) < 4 || strings.Trim(base, "\x00\x01\x02.*") == "" {
		return false
	}
	for i := range p.secrets {
		if last := p.secrets[i].last; last != nil && last.meets(base) {
			return true
		}
	}
	return false
}

func (p *policy) device(clean string) bool {
	if !hasWild(clean) && anyMeets(p.harmless, clean) {
		return false
	}
	return anyMeets(p.devices, clean)
}

// breaksDevice says whether writing to a path destroys data or stops the machine.
func (p *policy) breaksDevice(clean string) bool {
	return anyMeets(p.breaking, clean)
}

// holdsSecrets says whether secrets lie below a directory.
func (p *policy) holdsSecrets(dir string) bool {
	dir = strings.TrimRight(dir, "/")
	if dir == "" || dir == "~" {
		return true
	}
	for _, s := range p.trees {
		if s.meets(dir) || strings.HasPrefix(s.text, dir+"/") {
			return true
		}
	}
	return false
}

// taints says whether assigning a variable changes what programs are or obey.
func (p *policy) taints(name string) bool {
	return anyMeets(p.taint, name)
}

// mayExport says whether a variable may be handed to a program with this value.
func (p *policy) mayExport(name string, val word) bool {
	for _, e := range p.export {
		if !e.name.meets(name) {
			continue
		}
		if len(e.values) == 0 {
			return val.known && !strings.ContainsAny(val.text, "/$`") || val.tame
		}
		for _, v := range e.values {
			if val.known && val.text == v {
				return true
			}
		}
	}
	return false
}

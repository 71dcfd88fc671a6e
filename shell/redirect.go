package shell

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect judges one redirection. empty says that the command prints nothing,
// so that what is written to loses what it held.
func (w *walker) redirect(r *syntax.Redirect, empty bool) {
	start, end := w.span(r)
	if r.N != nil && !isNumber(r.N.Value) {
		w.note(bitEnvTaint, start, end, "shell/redirect", "a redirection that assigns a variable is not judged")
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		here := w.document(r)
		w.hereText(&here)
		return
	case syntax.WordHdoc:
		here := w.single(r.Word)
		w.mention(&here)
		w.hereText(&here)
		return
	}
	from := len(w.args)
	w.args = w.fields(w.args, r.Word)
	targets := w.args[from:]
	if len(targets) != 1 {
		w.note(bitUnknown, start, end, "shell/redirect", "the file of this redirection is not one word")
	}
	for i := range targets {
		w.target(r.Op, &targets[i], empty, start, end)
	}
	w.args = w.args[:from]
}

// document evaluates a here-document: its text as it stands where its end is
// quoted, else with expansions, as within double quotes.
func (w *walker) document(r *syntax.Redirect) word {
	if r.Hdoc == nil {
		return word{known: true}
	}
	b := builder{}
	raw := r.Word.Lit() == "" || strings.Contains(r.Word.Lit(), "\\")
	for _, part := range r.Hdoc.Parts {
		if l, ok := part.(*syntax.Lit); ok && raw {
			b.text = append(b.text, l.Value...)
			continue
		}
		w.part(&b, part, true, false)
	}
	here := b.finish()
	here.start, here.end = w.span(r.Hdoc)
	return here
}

// hereText takes note of a text that a command is given to read.
func (w *walker) hereText(here *word) {
	w.fed = append(w.fed, *here)
	if here.gives <= outNames && len(here.variables) == 0 {
		w.substituted = outNames // what is named in it can be seen
	}
}

func (w *walker) target(op syntax.RedirOperator, a *word, empty bool, start, end int) {
	switch op {
	case syntax.DplIn, syntax.DplOut:
		if a.known && (a.text == "-" || isNumber(strings.TrimSuffix(a.text, "-"))) {
			return
		}
		if op == syntax.DplIn {
			w.note(bitUnknown, start, end, "shell/redirect", "what is read here is not known")
			return
		}
	case syntax.RdrIn:
		if isNetPath(a.text) {
			w.note(bitNetSend, start, end, "shell/redirect", "opens a connection to another host")
			return
		}
		w.pathRead(a, "shell/redirect", false)
		return
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
	case syntax.RdrInOut:
		empty = false
	default:
		w.note(bitUnknown, start, end, "shell/redirect", "this redirection belongs to another shell")
		return
	}
	if empty && (op == syntax.RdrOut || op == syntax.RdrClob) && a.known && !sink(a.text) {
		w.note(bitDataLoss, start, end, "shell/redirect", "empties the file "+a.text)
	}
	w.pathWrite(a, start, end, "shell/redirect")
}

// givesInput says whether a redirection gives a command an input that is not the
// one of the whole text. Where that input is endless, reading it says so.
func givesInput(r *syntax.Redirect) bool {
	if r.N != nil && r.N.Value != "0" {
		return false
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrIn:
		return true
	case syntax.DplIn:
		switch r.Word.Lit() {
		case "0", "1", "2":
			return false
		}
		return true
	}
	return false
}

func isNetPath(p string) bool {
	return strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/")
}

// sink says whether writing to a path changes nothing but the command's own output.
func sink(p string) bool {
	switch p {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2", "/dev/fd/63":
		return true
	}
	return false
}

// pathWrite judges a file that is written.
func (w *walker) pathWrite(a *word, start, end int, rule string) {
	paths := a.alts
	if len(paths) == 0 {
		paths = []string{a.text}
	}
	for _, p := range paths {
		known := a.known || len(a.alts) > 0
		switch {
		case known && sink(p):
			continue
		case isNetPath(p):
			w.note(bitNetSend, start, end, rule, "opens a connection to another host")
			continue
		}
		w.touch("path_write", p)
		if known && p != "" {
			p = path.Clean(w.absolute(p))
		}
		switch {
		case w.k.policy.breaksDevice(p):
			w.note(bitDataLoss, start, end, rule, "writes to the device or kernel switch "+a.show())
		case strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/"):
			w.note(bitKernel, start, end, rule, "sets "+a.show()+" in the kernel")
		default:
			w.note(bitWrite, start, end, rule, "writes the file "+a.show())
		}
	}
}

func (w *walker) touch(kind, name string) {
	if len(w.touches) < 64 && !hasWild(name) {
		w.touches = append(w.touches, Touch{Kind: kind, Name: name})
	}
}

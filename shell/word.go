package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The parts of a word that are not known stand in its text as one of these.
// No input holds them: checkText refuses control characters.
const (
	wild     = '\x00' // an unknown run of text
	globStar = '\x01' // an unquoted *
	globOne  = '\x02' // an unquoted ? or […]
)

// What a word may expand to by braces and variables: so many words, and so long
// a text. Without a bound, a=$a$a said thirty times fills any memory.
const (
	maxFields = 64
	maxText   = maxPath
)

// word is one argument as the command will get it.
type word struct {
	text string // exact when known; else with marks for what is not
	alts []string
	// alts, when not empty, are all the texts an unknown word may be.

	start, end int      // byte offsets in the classified text
	known      bool     // text is exactly the argument
	glob       bool     // the shell replaces it by names of files
	many       bool     // may become no argument or several
	tame       bool     // unknown, but a number or a plain name: no option, no path
	gives      output   // of an unknown one: where it comes from, at the loosest
	variables  []string // those it comes from
	bare       bool     // unquoted text of another script's punctuation: cannot be judged
}

// mayDash says whether an argument, or one of those the word becomes, may
// begin with a dash and so be an option.
func (a *word) mayDash() bool {
	switch {
	case a.tame:
		return false
	case len(a.alts) > 0:
		for _, s := range a.alts {
			if strings.HasPrefix(s, "-") {
				return true
			}
		}
		return a.many
	case a.known:
		return strings.HasPrefix(a.text, "-")
	case a.many || a.text == "":
		return true
	}
	return a.text[0] == '-' || a.text[0] <= globOne
}

// from returns the rest of a word's text as a word: the value glued to an option.
func (a *word) from(i int) word {
	v := *a
	v.text = a.text[i:]
	v.alts = nil
	v.known = a.known || !a.many && !hasWild(v.text)
	return v
}

func hasWild(s string) bool {
	for i := range len(s) {
		if s[i] <= globOne {
			return true
		}
	}
	return false
}

// show is a word for people: what is not known becomes an ellipsis.
func (a *word) show() string {
	if a.known {
		return a.text
	}
	var b strings.Builder
	for i := range len(a.text) {
		switch c := a.text[i]; c {
		case wild:
			b.WriteString("…")
		case globStar:
			b.WriteByte('*')
		case globOne:
			b.WriteByte('?')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// builder puts a word together from its parts.
type builder struct {
	text   []byte
	alts   []string
	altPos int
	words  int // parts that are unknown
	tame   bool
	word
}

func (b *builder) unknown(tame, split bool) {
	if len(b.text) == 0 || b.text[len(b.text)-1] != wild {
		b.text = append(b.text, wild)
	}
	b.tame = tame && (b.words == 0 || b.tame)
	b.words++
	b.many = b.many || split && !tame
}

func (b *builder) finish() word {
	a := b.word
	a.text = string(b.text)
	a.known = !hasWild(a.text)
	a.tame = b.words == 1 && b.tame && a.text == "\x00"
	if len(b.alts) > 0 && b.words == 1 && !a.glob {
		for _, alt := range b.alts {
			a.alts = append(a.alts, a.text[:b.altPos]+alt+a.text[b.altPos+1:])
		}
	}
	return a
}

// span returns where a node stands in the classified text.
func (w *walker) span(n syntax.Node) (int, int) {
	if w.nested {
		return w.spanStart, w.spanEnd
	}
	return int(n.Pos().Offset()), int(n.End().Offset())
}

// fields appends the arguments that a word becomes.
func (w *walker) fields(out []word, wd *syntax.Word) []word {
	if len(wd.Parts) == 1 {
		switch p := wd.Parts[0].(type) {
		case *syntax.Lit:
			if plainLit(p.Value) {
				start, end := w.spanStart, w.spanEnd
				if !w.nested {
					start, end = int(p.ValuePos.Offset()), int(p.ValueEnd.Offset())
				}
				return append(out, word{text: p.Value, known: true, start: start, end: end, bare: !plainWord(p.Value)})
			}
		case *syntax.ParamExp:
			if value, ok := w.staticVar(p); ok && strings.ContainsAny(value, " \t\n") {
				return w.split(out, wd, value)
			}
		}
	}
	if n := countBraces(wd); n > maxFields/4 {
		w.single(wd)
		start, end := w.span(wd)
		return w.tooMany(out, start, end)
	} else if n > 0 {
		if parts := (&syntax.Word{Parts: slices.Clone(wd.Parts)}); syntax.SplitBraces(parts) {
			start, end := w.span(wd)
			return w.braces(out, parts, start, end)
		}
	}
	return append(out, w.single(wd))
}

// split is what the shell does to an unquoted variable that holds blanks.
func (w *walker) split(out []word, wd *syntax.Word, value string) []word {
	start, end := w.span(wd)
	parts := strings.Fields(value)
	if len(parts) > maxFields || w.vars.splitting {
		return append(out, word{text: "\x00", many: true, start: start, end: end})
	}
	for _, s := range parts {
		b := builder{word: word{start: start, end: end}}
		b.globText(s)
		out = append(out, b.finish())
	}
	return out
}

// tooMany stands for more words than are judged: one of them may be anything.
func (w *walker) tooMany(out []word, start, end int) []word {
	w.note(bitUnknown, start, end, "shell/braces", "the braces make more words than are judged")
	return append(out, word{text: "\x00", many: true, start: start, end: end})
}

// braces expands {a,b} into separate words. What is too much becomes unknown.
func (w *walker) braces(out []word, wd *syntax.Word, start, end int) []word {
	lists := [][]syntax.WordPart{nil}
	for _, part := range wd.Parts {
		brace, ok := part.(*syntax.BraceExp)
		n := 1
		if ok = ok && !brace.Sequence; ok {
			n = len(brace.Elems)
		}
		if len(lists)*n > maxFields {
			for _, p := range wd.Parts {
				w.brace(p)
			}
			return w.tooMany(out, start, end)
		}
		var next [][]syntax.WordPart
		for _, l := range lists {
			if !ok {
				next = append(next, append(l[:len(l):len(l)], part))
				continue
			}
			for _, e := range brace.Elems {
				next = append(next, append(l[:len(l):len(l)], e.Parts...))
			}
		}
		lists = next
	}
	from := len(out)
	for _, parts := range lists {
		sub := &syntax.Word{Parts: parts}
		if len(out)-from > 4*maxFields || w.overrun() {
			return w.tooMany(out, start, end)
		}
		if hasNestedBrace(parts) {
			out = w.braces(out, sub, start, end)
			continue
		}
		a := w.evalParts(parts)
		a.start, a.end = start, end
		out = append(out, a)
	}
	return out
}

// sequence evaluates {1..9} as one unknown piece of text of each of its words.
func (b *builder) sequence(p *syntax.BraceExp) {
	tame := true
	for _, e := range p.Elems {
		tame = tame && !strings.HasPrefix(e.Lit(), "-")
	}
	b.unknown(tame, false)
	b.many = true
}

// brace evaluates what stands inside a brace expression for its effects only.
func (w *walker) brace(p syntax.WordPart) {
	if b, ok := p.(*syntax.BraceExp); ok && !b.Sequence {
		for _, e := range b.Elems {
			for _, p := range e.Parts {
				w.brace(p)
			}
		}
		return
	}
	w.evalParts([]syntax.WordPart{p})
}

func hasNestedBrace(parts []syntax.WordPart) bool {
	for _, p := range parts {
		if b, ok := p.(*syntax.BraceExp); ok && !b.Sequence {
			return true
		}
	}
	return false
}

// countBraces returns how many braces open in the unquoted text of a word.
func countBraces(wd *syntax.Word) (n int) {
	for _, p := range wd.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			n += strings.Count(l.Value, "{")
		}
	}
	return n
}

// plainLit says whether unquoted text means itself.
func plainLit(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case '\\', '*', '?', '[', '{', '~':
			return s == "["
		}
	}
	return true
}

// single evaluates a word that becomes one argument, or is marked as many.
func (w *walker) single(wd *syntax.Word) word {
	if wd == nil {
		return word{known: true}
	}
	a := w.evalParts(wd.Parts)
	a.start, a.end = w.span(wd)
	return a
}

func (w *walker) evalParts(parts []syntax.WordPart) word {
	var b builder
	for i, part := range parts {
		w.part(&b, part, false, i == 0)
	}
	return b.finish()
}

func (w *walker) part(b *builder, part syntax.WordPart, quoted, first bool) {
	w.steps++
	switch p := part.(type) {
	case *syntax.Lit:
		if quoted {
			b.quotedText(p.Value)
			return
		}
		if strings.Contains(p.Value, "<(") || strings.Contains(p.Value, ">(") {
			start, end := w.span(p)
			w.note(bitExecOpaque, start, end, "shell/word", "what looks like <(…) within a pattern or an expansion is run by bash")
		}
		b.bare = b.bare || !plainWord(p.Value)
		b.globText(p.Value)
	case *syntax.SglQuoted:
		if p.Dollar {
			b.ansiC(p.Value)
		} else {
			b.text = append(b.text, p.Value...)
		}
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			w.part(b, q, true, false)
		}
		if p.Dollar {
			b.unknown(false, false)
		}
	case *syntax.ParamExp:
		w.param(b, p, quoted)
	case *syntax.CmdSubst:
		gives := w.substitution(p)
		b.gives = max(b.gives, gives)
		b.unknown(gives == outTame, !quoted)
	case *syntax.ArithmExp:
		w.arith(p.X)
		b.unknown(true, false)
	case *syntax.ProcSubst:
		out := w.out
		w.producing++
		w.out = outTame
		w.stmts(p.Stmts)
		w.producing--
		w.substituted, w.out = w.out, out
		b.text = append(b.text, "/dev/fd/63"...)
	case *syntax.BraceExp:
		b.sequence(p)
		if len(p.Elems) < 2 || len(p.Elems[0].Lit()) > 6 || len(p.Elems[1].Lit()) > 6 {
			start, end := w.span(part)
			w.note(bitUnbounded, start, end, "shell/braces", "the braces make very many words")
		}
	case *syntax.ExtGlob:
		start, end := w.span(p)
		w.note(bitUnknown, start, end, "shell/extglob", "an extended pattern means something else in each shell")
		b.unknown(false, true)
	default:
		start, end := w.span(part)
		w.note(bitUnknown, start, end, "shell/word", "this part of a word is of a kind that is not known")
		b.unknown(false, true)
	}
}

// globText adds unquoted text: backslashes are taken away, live glob
// characters become marks.
func (b *builder) globText(s string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i+1 < len(s) {
				i++
				b.text = append(b.text, s[i])
			}
		case '*':
			b.text = append(b.text, globStar)
			b.glob = true
		case '?':
			b.text = append(b.text, globOne)
			b.glob = true
		case '[':
			if end := strings.IndexByte(s[i+1:], ']'); end > 0 {
				b.text = append(b.text, globOne)
				b.glob = true
				i += end + 1
				continue
			}
			b.text = append(b.text, c)
		default:
			b.text = append(b.text, c)
		}
	}
}

// quotedText adds text from within double quotes.
func (b *builder) quotedText(s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\", s[i+1]) >= 0 {
			i++
		}
		b.text = append(b.text, s[i])
	}
}

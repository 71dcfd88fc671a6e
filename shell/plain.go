package shell

import "strings"

// stage is one simple command of a plain text: some of the walker's args, and
// how it is joined to the one before.
type stage struct {
	from, to int
	piped    bool // it reads what the one before prints
}

// A plain text has at most so many words: there, parsing is not what takes time.
const maxPlain = 200

// plain judges a text that needs no parser: words of letters, digits and a few
// signs that mean nothing to a shell, or in quotes and without anything that
// means something there, parted by blanks; simple commands of such words, joined
// by | && || and ;. It says false for every other text, and for what begins as
// an assignment or with a word of the shell's own language. Most commands are
// such, and parsing them takes longer than all the rest. FuzzPlain holds it to
// what the parser leads to.
func (w *walker) plain(text string) bool {
	if !w.scan(text) {
		w.args = w.args[:0]
		return false
	}
	w.source = text
	for i, s := range w.stages {
		before := outAny
		if s.piped {
			before = w.out
		}
		into := i+1 < len(w.stages) && w.stages[i+1].piped
		w.producing = 0
		if into {
			w.producing = 1
		}
		cwd, lost := w.cwd, w.cwdLost
		w.pipedOutput, w.out = before, outTame
		w.fedInput = 0
		if s.piped {
			w.fedInput = 1
		}
		w.steps, w.commands = w.steps+1, w.commands+1
		w.argv(w.args[s.from:s.to])
		if s.piped || into {
			w.cwd, w.cwdLost = cwd, lost
		}
	}
	w.producing, w.fedInput, w.pipedOutput = 0, 0, outAny
	return true
}

// needTree parses a plain text of several commands after all, for a hook that
// looks at what stands around its own.
func (w *walker) needTree() {
	if w.file != nil || len(w.stages) == 1 {
		return
	}
	file, err := w.parse(w.source)
	if err != nil {
		w.note(bitUnknown, 0, len(w.source), "shell/text", "the command cannot be read as bash")
		return
	}
	w.file = file
}

// scan cuts a plain text into words and stages.
func (w *walker) scan(text string) bool {
	if len(text) > maxBytes/8 { // fewer brackets, too, than would be refused
		return false
	}
	w.stages = w.stages[:0]
	s := stage{}
	for i := 0; i < len(text); {
		var end int
		switch c := text[i]; {
		case c == ' ':
			i++
			continue
		case c == '\'' || c == '"':
			if end = quoted(text, i); end < 0 || len(w.args) == s.from {
				return false
			}
			w.args = append(w.args, word{text: text[i+1 : end-1], known: true, start: i, end: end})
		case c == '|' || c == '&' || c == ';':
			n := 1
			if i+1 < len(text) && text[i+1] == c {
				n = 2
			}
			if c == '&' && n == 1 || c == ';' && n == 2 || !w.stage(&s, c == '|' && n == 1) {
				return false
			}
			i += n
			continue
		case c == '2' && strings.HasPrefix(text[i:], "2>/dev/null"):
			end = i + len("2>/dev/null")
		case c == '2' && strings.HasPrefix(text[i:], "2>&1"):
			end = i + len("2>&1")
		default:
			for end = i; end < len(text) && plainByte(text[end]); end++ {
				if text[end] == '=' && len(w.args) == s.from {
					return false
				}
			}
			if end == i || len(w.args) == s.from && reserved(text[i:end]) {
				return false
			}
			w.args = append(w.args, word{text: text[i:end], known: true, start: i, end: end})
		}
		if i = end; i < len(text) && strings.IndexByte(" |&;", text[i]) < 0 || len(w.args) > maxPlain {
			return false // the word goes on with something that is not plain
		}
	}
	// A text may end with ; but with no other joint.
	return w.stage(&s, false) || len(w.stages) > 0 && !s.piped && strings.HasSuffix(strings.TrimRight(text, " "), ";")
}

// stage ends one, and says false when it has no words.
func (w *walker) stage(s *stage, pipe bool) bool {
	s.to = len(w.args)
	if s.from == s.to {
		return false
	}
	w.stages = append(w.stages, *s)
	*s = stage{from: s.to, piped: pipe}
	return true
}

// quoted returns where a quoted word ends, or -1 when something in it is not plain.
func quoted(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return i + 1
		case c < ' ' || c > '~' || quote == '"' && (c == '$' || c == '`' || c == '\\'):
			return -1
		}
	}
	return -1
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '+' && c <= ':' || c >= '@' && c <= 'Z' || c == '_' || c == '=' || c == '%'
}

// reserved lists the words that a parser does not take for a command.
func reserved(name string) bool {
	switch name {
	case "if", "then", "elif", "else", "fi", "for", "in", "do", "done", "while", "until", "case", "esac", "select", "function", "time", "coproc",
		"declare", "local", "export", "readonly", "typeset", "nameref", "let":
		return true
	}
	return false
}

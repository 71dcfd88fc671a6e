package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxBytes    = 16 << 10
	maxOpen     = 400 // brackets, substitutions and the like, opened in all
	maxCommands = 400 // simple commands in one text
	maxDepth    = 4   // shells within shells
	maxSteps    = 60_000
)

// checkText refuses what a parser and a shell may read differently, or what
// would cost a parser too much. It returns "" for a text that may be parsed.
// The check of brackets counts every opening one, whatever it stands in: that
// is stricter than nesting, and cannot be misled by quotes.
func checkText(text string) string {
	if len(text) > maxBytes {
		return "it is longer than 16 KiB"
	}
	open, ascii := 0, true
	for i := range len(text) {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '(' || c == '{' || c == '[' || c == '`' || c == '!':
			open++
		case c < ' ' && c != '\n' && c != '\t' || c == 0x7f:
			return "it holds a control character that a shell and a reader see differently"
		}
	}
	if open > maxOpen {
		return "it opens more than 400 brackets"
	}
	if ascii {
		return ""
	}
	for _, r := range text {
		switch {
		case r == utf8.RuneError:
			return "it is not valid UTF-8"
		case r >= utf8.RuneSelf && !unicode.IsPrint(r): // controls, formats, bidi, private use, all spaces but the plain one
			return "it holds an invisible or bidirectional character, or a space that is none to the shell"
		case unicode.Is(unicode.Variation_Selector, r), r == 0x2800, r == 0x3164, r == 0x115f, r == 0x1160, r == 0xffa0:
			return "it holds a character that looks like nothing"
		}
	}
	return ""
}

// plainWord says whether the unquoted text of a word may be judged: outside
// quotes only letters and digits of other scripts are taken, never punctuation
// or the wide forms that look like the shell's own; and nothing that an
// interactive shell or another one takes for history or a redirection.
func plainWord(s string) bool {
	if len(s) > 1 && (s[0] == '!' && s != "!=" || s[0] == '^' && s[1] == '/') {
		return false
	}
	for _, r := range s {
		if r >= utf8.RuneSelf && (!unicode.In(r, unicode.L, unicode.Nd) || r >= 0xff00 && r <= 0xffef) {
			return false
		}
	}
	return true
}

// asciiOnly is what a command word or an option must be.
func asciiOnly(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// splice joins lines that were continued with a backslash, as bash does, so
// that the parser, which does it in fewer places than bash, sees what will run.
// What is returned holds no continued line at all: where one must stay (within
// single quotes, in a here-document), the text is refused.
func splice(text string) (string, bool) {
	if !strings.Contains(text, "\\\n") {
		return text, true
	}
	out := make([]byte, 0, len(text))
	var quote byte // ' " # or 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'' && quote != '#' && i+1 < len(text):
			i++
			if text[i] != '\n' {
				out = append(out, c, text[i])
			}
			continue
		case quote == '#' && c == '\n', quote != 0 && quote != '#' && c == quote:
			quote = 0
		case quote != 0:
		case c == '\'' || c == '"':
			quote = c
		case c == '#' && (len(out) == 0 || strings.IndexByte(" \t\n;&|()<>", out[len(out)-1]) >= 0):
			quote = c
		}
		out = append(out, c)
	}
	joined := string(out)
	return joined, !strings.Contains(joined, "\\\n") && !strings.Contains(joined, "<<")
}

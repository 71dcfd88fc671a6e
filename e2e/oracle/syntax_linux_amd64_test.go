package oracle

import "strings"

// tokens are the parts of which the shell's language is made, and on which two
// readers of it may disagree: where a word, a quote, a comment, a here-document
// or a list begins and ends. Some of the parts change something where they are
// more than text.
var tokens = []string{
	"'", "'", "\"", "\"", "`", "`", "\\", "\\\n", "$'", "$\"", "#", "#", " # ", "\n", "\n", ";", " ; ", ";;", "&", "&&", "|", "||", "!", " ", " ", "\t", "\r",
	"(", ")", "$(", ")", "$((", "))", "((", "))", "{ ", "; }", "}", "${x}", "${x:-", "${x#", "${x/", "${#x}", "${x[", "$x", "$#", "$$", "$[", "]", "[[ ", " ]]", "[ ", " ]", "<(", "<<E\n", "<<'E'\n", "<<-E\n\t", "\nE\n", "\n\tE\n", "<<<", "=(", "x=", "x=a ", "x[", "]=", "=~ ", "*", "?", "~", "{a,b}", "@(", "!(",
	"echo ", "echo ", "ls ", "cat ", ": ", "true", "a", "b", "''", "\"\"", "x", "if ", "then ", "fi", "for x in ", "do ", "done", "case a in ", "a) ", "esac", "while ", "function f ", "f() ", "f", "time ", "coproc ", "select ", "in ", "let ", "declare ", "[a]", "1", "2>&1", ">/dev/null", "-",
	"touch new", ";touch new;", "\ntouch new\n", "$(touch new)", "`touch new`", ">new", " touch new #", "&touch new&", "|tee new",
}

// confuse makes a text of a few parts, in which bash may see more than meets the
// eye. It says false when none of them could change anything.
func (g *generator) confuse() (string, bool) {
	var b strings.Builder
	if g.in(2) {
		b.WriteString(g.one("echo ", "(echo ", "{ echo ", "echo $(", "case a in a) echo ", "cat <<E\n", "x=", "for x in a; do echo ", "echo \"", "[[ ", "f() { echo ", "echo `echo ", "echo ${x:-", "((", "x=("))
	}
	for range 2 + g.IntN(9) {
		b.WriteString(g.one(tokens...))
	}
	s := b.String()
	if g.in(2) { // close what is open, so that more of the texts are whole
		for _, pair := range []string{"''", "\"\"", "``", "()", "{}"} {
			open, end := pair[:1], pair[1:]
			if open == end && strings.Count(s, open)%2 == 1 {
				s += end
			}
			if open != end && strings.Count(s, open) > strings.Count(s, end) {
				s += "\n" + end
			}
		}
		if strings.Count(s, "case ") > strings.Count(s, "esac") {
			s += "\nesac"
		}
	}
	return s, strings.Contains(s, "new")
}

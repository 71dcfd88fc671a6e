package oracle

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/shell"
)

var (
	variants = flag.Int("oracle.variants", 2000, "how many generated texts to run")
	seed     = flag.Uint64("oracle.seed", 1, "of the generated texts")
)

// generator makes texts that the classifier may call read-only.
type generator struct {
	dice
	k        *shell.Knowledge
	commands []*verb
	lines    []item // of the corpora
	tried    int
}

// generate returns n texts that are called read-only. Most of what it makes is
// called otherwise: what is left is where the two are near.
func (g *generator) generate(n int) (list []item) {
	seen := map[string]bool{}
	for len(list) < n {
		g.tried++
		text, name := g.text()
		confused := len(list)%4 == 0
		if confused { // of the shell's language, most is no text at all
			var may bool
			if text, may = g.confuse(); !may {
				continue
			}
			name = "bash"
		}
		v := g.k.Classify(text)
		if v.Class != writ.ReadOnly || seen[v.Command] {
			continue
		}
		if v.NeedsLimit && !g.in(16) { // it takes its whole limit
			continue
		}
		seen[v.Command] = true
		list = append(list, item{verdict: v, from: "generated", name: name, always: confused})
	}
	return list
}

// text makes one, and says with which command.
func (g *generator) text() (text, name string) {
	switch n := g.IntN(20); {
	case n < 10:
		v := g.commands[g.IntN(len(g.commands))]
		text, name = g.write(g.argv(v)), v.name
	case n < 18:
		line := g.lines[g.IntN(len(g.lines))]
		text, name = g.mutate(line.verdict.Command), line.first()
	default:
		line := g.lines[g.IntN(len(g.lines))]
		text, name = line.verdict.Command, line.first()
	}
	for g.in(3) {
		text = g.wrap(text)
	}
	return text, name
}

// argv makes a call of a command: its options in all their forms, and operands
// where they may stand and where they may not.
func (g *generator) argv(v *verb) []string {
	words := []string{v.name}
	at := v
	for depth := 0; len(at.verbs) > 0 && depth < 4 && !g.in(8); depth++ {
		if g.in(3) {
			words = append(words, g.option(at)...)
		}
		at = at.verbs[g.IntN(len(at.verbs))]
		words = append(words, at.name)
	}
	var rest []string
	for range g.IntN(4) {
		from := at
		if len(at.options) == 0 || g.in(8) {
			from = v
		}
		rest = append(rest, g.option(from)...)
	}
	kinds := at.kinds
	if len(kinds) == 0 || g.in(4) {
		kinds = append(slices.Clone(kinds), "path_read", "path_write")
	}
	for i := range g.IntN(len(kinds) + 2) {
		operand := g.value(kinds[min(i, len(kinds)-1)])
		where := len(rest)
		if g.in(3) {
			where = g.IntN(len(rest) + 1)
		}
		rest = slices.Insert(rest, where, operand)
	}
	if g.in(6) { // is help really all that it gives?
		rest = slices.Insert(rest, g.IntN(len(rest)+1), g.one("--help", "--help", "--version", "-h", "-V", "-help", "--dry-run", "-n"))
	}
	return append(words, rest...)
}

// option writes one option of a command, in a way that its program may take.
func (g *generator) option(v *verb) []string {
	if len(v.options) == 0 || g.in(30) {
		return []string{g.one("-o", "-w", "-i", "-f", "--output", "--", "-", "-x", "-c", "-n", "--help", "-e")}
	}
	o := v.options[g.IntN(len(v.options))]
	name := o.name
	if name == "-#" {
		return []string{"-3"}
	}
	value := g.value(o.value)
	long := strings.HasPrefix(name, "--")
	if long && len(name) > 4 && g.in(4) {
		name = name[:3+g.IntN(len(name)-3)]
	}
	if o.value == "" {
		if !long && strings.HasPrefix(name, "-") && len(name) == 2 && g.in(3) { // a cluster
			return []string{name + strings.TrimPrefix(strings.Join(g.option(v), " "), "-")}
		}
		if !g.in(20) {
			return []string{name}
		}
	}
	switch {
	case !strings.HasPrefix(name, "-"): // dd
		return []string{name + "=" + value}
	case g.in(3):
		return []string{name, value}
	case long || len(name) > 2:
		return []string{name + "=" + value}
	case g.in(12):
		return []string{name}
	}
	return []string{name + value}
}

// write turns words into a text.
func (g *generator) write(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(g.one(" ", " ", " ", " ", " ", "  ", "\t", " \\\n"))
		}
		if i == 0 && !g.in(6) {
			b.WriteString(w)
		} else {
			b.WriteString(g.quote(w))
		}
	}
	return b.String()
}

// mutate changes a word or two of a line.
func (g *generator) mutate(line string) string {
	words := strings.Split(line, " ")
	for range 1 + g.IntN(2) {
		i := g.IntN(len(words))
		word := words[i]
		switch g.IntN(9) {
		case 0: // an option of one of the commands of the line
			name := words[g.IntN(i+1)]
			if j := slices.IndexFunc(g.commands, func(v *verb) bool { return v.name == name }); j >= 0 {
				words = slices.Insert(words, i+1, g.write(g.option(g.commands[j])))
			}
		case 1:
			words[i] = g.quote(g.value(""))
		case 2:
			words = slices.Insert(words, i+1, g.quote(g.value("")))
		case 3:
			j := g.IntN(len(words))
			words[i], words[j] = words[j], word
		case 4:
			if len(words) > 1 {
				words = slices.Delete(words, i, i+1)
			}
		case 5:
			if i+1 < len(words) {
				words[i] += words[i+1]
				words = slices.Delete(words, i+1, i+2)
			}
		case 6:
			words = slices.Insert(words, i, word)
		case 7:
			words = slices.Insert(words, i+1, g.one("|", ";", "&&", "||", "&", "\n", "|&", ">", ">>", "<", ">/dev/null", "2>&1", "<<<", ">&", "<>", "&>", ">|", "#", "-", "--"))
		case 8:
			if len(word) > 1 {
				j := 1 + g.IntN(len(word)-1)
				words[i] = word[:j] + g.one("'", "\"", "\\", "''", "\\\n", " ", "$", "=", "-", ",", "/", "{,}", "\t") + word[j:]
			}
		}
	}
	return strings.Join(words, " ")
}

// wrap puts a text into another one.
func (g *generator) wrap(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	switch g.IntN(24) {
	case 0:
		return g.one("env ", "timeout 2 ", "nice ", "nice -n 3 ", "ionice -c3 ", "stdbuf -oL ", "setsid ", "time ", "command ", "exec ", "env LC_ALL=C ", "env -u HOME ", "timeout -s KILL 2 ", "builtin ", "env -i ", "chrt -o 0 ", "taskset 1 ", "nohup ", "unbuffer ", "setsid -w ", "timeout --foreground 2 ") + s
	case 1:
		return g.one("sh -c ", "bash -c ", "bash --norc -c ", "env sh -c ", "eval ", "timeout 2 sh -c ", "dash -c ", "xargs -0 sh -c ", "sh -ec ") + quoted
	case 2:
		return "(" + s + "\n)"
	case 3:
		return "{ " + s + "\n}"
	case 4:
		return "echo \"$(" + s + "\n)\""
	case 5:
		return s + g.one(" | cat", " | head -n 3", " | wc -l", " |& sort", " | grep -c a", " | xargs echo", " | sed -n 1p", " | tee /dev/null", " | xargs ls", " | awk '{print $1}'", " | tail -n2", " | while read x; do echo \"$x\"; done")
	case 6:
		return g.one("cat a", "ls", "echo a b", "printf 'a\\nb\\n'", "seq 3", "find . -name a", "echo touch new", "printf %s -o", "echo -o new") + g.one(" | ", " |& ", " | xargs ", " | xargs -n1 ", " | xargs -I{} ") + s
	case 7:
		return g.one("true", "cd sub", "cd /tmp", "set -e", "x=a", "f() { ls; }", "false ||:", "shopt -s extglob", "IFS=,", "set -- -o new", "unset x", ": > /dev/null", "x=$(ls)", "export LC_ALL=C", "ulimit -c 0") + g.one("; ", " && ", "\n") + s
	case 8:
		return s + g.one("; ", " && ", " || ", "\n", " & ") + g.one("true", "wait", "ls", "echo $?", "id")
	case 9:
		return "for x in a b; do " + s + "\ndone"
	case 10:
		return "if " + s + "\nthen :; fi"
	case 11:
		return s + g.one(" 2>/dev/null", " >/dev/null", " 2>&1", " </dev/null", " < a", " <<< x", " 3>&1", " &>/dev/null", " 2>&-", " <<E\nx\nE\n")
	case 12:
		return "find . -maxdepth 1 -name a -exec " + s + g.one(" \\;", " {} \\;", " {} +", " ';'")
	case 13:
		return "# " + g.one("x", "'", "\"", "\\") + "\n" + s
	case 14:
		return s + " # > new"
	case 15:
		return g.one("! ", "A=b ", "LC_ALL=C ", "TZ=UTC A= ", "  ", "\n", "time -p ", "coproc ") + s
	case 16:
		return "cat <(" + s + "\n)"
	case 17:
		return "echo " + quoted + g.one(" | cat", " | wc -c", "")
	case 18:
		return "case a in a) " + s + "\n;; esac"
	case 19:
		return "f() { " + s + "\n}; f"
	case 20:
		return strings.ReplaceAll(s, " ", g.one("  ", "\t", " \\\n", " ''", "${x}"))
	case 21:
		return s + " " + g.quote(g.value("path_read"))
	case 22:
		return "[[ -n $(" + s + "\n) ]]"
	}
	other, _ := g.text()
	return s + g.one("; ", " && ", " || ", " | ", "\n", " & ", " |& ") + other
}

// TestOracle_variants runs generated texts that are called read-only.
func TestOracle_variants(t *testing.T) {
	k := load(t)
	g := &generator{dice: dice{rand.New(rand.NewPCG(*seed, 0))}, k: k, commands: known(t, k), lines: corpora(t, k)}
	texts := g.generate(*variants)
	t.Logf("seed %d: %d texts of %d that were made, with %d commands", *seed, len(texts), g.tried, len(g.commands))
	y := judge(t, ready(t, texts), texts)
	if y.judged < y.texts/2 {
		t.Errorf("%d of %d texts were judged: too few to mean anything", y.judged, y.texts)
	}
}

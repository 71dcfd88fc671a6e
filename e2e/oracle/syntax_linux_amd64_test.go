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

// steps are statements of which one makes a word and another runs it: whether
// anything is changed hangs on what became of the word between them.
var steps = []string{
	`x="touch new"`, "x='touch new'", "x=touch", "x=new", "y=new", "x=ls", "x+=' new'", "x=touch_new", "IFS=_", "x=(touch new)", "x[1]=new", "set -- touch new", "set touch new", "set -- ls", "shift", "declare x='touch new'", "export x=touch", "local x=touch", "readonly x='touch new'", "typeset -n y=x", "declare -n y=x", "declare -A x=([a]='touch new')",
	"read x <<< 'touch new'", "read -r x y <<< 'touch new'", "IFS= read x < script.sh", "read x < script.sh", "mapfile -t x < script.sh", "mapfile x <<< 'touch new'", "printf -v x 'touch new'", "printf -v x %s touch", ": ${x:=touch new}", ": ${x:='touch new'}", "x=$(cat script.sh)", "x=$(<script.sh)", "x=$(echo touch new)", "x=${y:-touch new}", "let x=1", "((x=1))", "x=y; y='touch new'", "unset x", "x=${x/ls/touch new}", "x=${x^^}", "x=\"$x new\"", "x=$1", "x=$*", "getopts a x -a", "for x in touch; do :; done", "for x in 'touch new' ls; do $x; done", "select x in 'touch new'; do $x; break; done",
	"$x", "$x new", "\"$x\"", "${x}", "${!x}", "$y", "$x $y", "${x[@]}", "\"${x[@]}\"", "${x[0]} new", "${x[*]}", "${x[a]}", "$@", "\"$@\"", "$*", "$1 $2", "$1 new", "${@:1}", "${x@P}", "${x@E}", "echo ${x@P}", "echo $x", "echo \"$x\"", "echo ${x}", "${x:0:5} new", "${x%% *} new", "${x#a}", "$(echo $x)", "$($x)", "echo $($x)", "eval $x", "eval \"$x\"", "eval echo $x", "command $x", "env $x", "bash -c \"$x\"", "bash -c '$x'", "bash -c \"echo $x\"", "sh -c 'echo $0' $x", "xargs $x <<< new", "echo $x | sh", "echo $x | bash -s", "time $x", "! $x", "nice $x", "builtin $x", "exec $x", "[ -n \"$x\" ] && $x", "ls $x", "cat $x", "cat \"$x\"", "echo > $x", "cat a >$x", "cat a > \"$y\"", "ls >&$x", "tee $x < a", "find a -exec $x \\;", "find a $x", "sort $x a", "sort a $x", "[[ -v x[$x] ]]", "[[ $x -eq 1 ]]", "test -v $x", "echo $((x))", "echo $((x[0]))", "((x))", "echo ${a[x]}", "x=$((x+1))",
	"x='a[$(touch new)]'", "x='-o new'", "x=-onew", "x='a -o new'", "x='>new'", "x='$(touch new)'", "x='`touch new`'", "x=$'ls\\ntouch new'", "x='ls;touch new'", "x='{touch,new}'", "{touch,new}", "${x}{a,b}", "x=~/new", "x='*'", "cd sub", "cd /tmp", "cd", "f() { $1 new; }", "f() { $x; }", "f touch", "f", "f $x", "ls() { touch new; }", "ls", "cat() { $x; }", "cat a", "function echo { touch new; }", "echo a", "unset -f ls", "alias ls='touch new'", "shopt -s expand_aliases", "trap '$x' EXIT", "trap $x EXIT", "trap - EXIT", "trap 'ls' DEBUG", ". ./script.sh", "source a", "hash -p /bin/touch ls", "enable -n echo", "PATH=.", "BASH_ENV=script.sh bash -c ls", "ENV=script.sh sh -c ls", "set -f", "set -o posix", "shopt -s lastpipe", "shopt -s nullglob", "shopt -s extglob", "set -e", "false", "true", "return", "exit", "exec > new", "exec 3>new", "exec 3<a", "echo a >&3", "read x <&3", "coproc ls", "wait", "{ $x; }", "( $x )", "if $x; then :; fi", "while $x; do break; done", "until $x; do break; done", "case $x in touch*) $x;; esac", "case a in $x) ls;; esac", "cat <<E\n$x\nE", "cat <<E\n$($x)\nE", "cat <<'E'\n$($x)\nE", "bash <<E\n$x\nE", "cat <<< $x", "cat <($x)", "echo | $x", "$x | cat", "ls | while read x; do $x; done", "echo touch new | while read x; do $x; done", "echo touch new | { read x; $x; }", "echo touch new | (read -a x; ${x[@]})", "printf 'touch new' | xargs", "printf 'touch new' | xargs env", "echo $_", "$_ new", "echo touch", "history -s touch new", "fc -s", "kill -l", "jobs", "echo ${x:?touch new}", "echo ${x?}", "${x:+touch new}", "${x-touch new}", "echo \"${x:-$(touch new)}\"",
}

// flow makes a text of a few statements.
func (g *generator) flow() string {
	return g.join(6, g.one("; ", "\n", " && ", "; ", " || ", " & ", " | "), steps...)
}

// confuse makes a text of a few parts, in which bash may see more than meets the
// eye. It says false when none of them could change anything.
func (g *generator) confuse() (string, bool) {
	if g.in(3) {
		return g.flow(), true
	}
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

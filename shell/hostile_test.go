package shell

import (
	"strings"
	"testing"
	"time"
)

// hostile are texts of up to 16 KiB that ask for as much work as they can:
// nesting, globs, braces, here-documents, variables that double, wrappers of
// wrappers, and small languages.
func hostile() map[string]string {
	rep := func(head, unit, tail string, count int) string { return head + strings.Repeat(unit, count) + tail }
	fill := func(head, unit, tail string) string {
		return rep(head, unit, tail, (maxBytes-len(head)-len(tail))/len(unit))
	}
	return map[string]string{
		"subshells":           rep("", "(", "", 399) + "ls" + strings.Repeat(")", 399),
		"substitutions":       rep("", "$(", "", 399) + "ls" + strings.Repeat(")", 399),
		"quoted substitution": rep("echo ", "\"$(echo ", "", 200) + "x" + strings.Repeat(")\"", 200),
		"backquotes":          rep("echo ", "`\\`", "", 190),
		"loops":               rep("", "for i in a b c; do ", "", 300) + "ls;" + strings.Repeat("done;", 300),
		"arithmetic":          rep("echo $((", "(", "1", 390) + strings.Repeat(")", 390) + "))",
		"braces in braces":    rep("echo ", "{a,", "", 399) + strings.Repeat("b}", 399),
		"braces in a row":     rep("echo ", "{a,b}", "", 399),
		"braces with code":    rep("", "ls {a,b}{c,d}{e,f}{g,h}{i,$(ls {a,b}{c,d}{e,f}{g,h})} ; ", "", 39),
		"sequences":           rep("", "ls {1..9999} ; ", "", 390),
		"stars":               fill("cat /", "*", ""),
		"names of stars":      fill("cat ", "/*a* ", ""),
		"deep globs":          fill("cat ", "/"+strings.Repeat("*a/", 300)+" ", ""),
		"homes":               fill("cat ", "~/* ", ""),
		"question marks":      fill("cat /", "?", ""),
		"unknown paths":       fill("cat ", "/etc/$x/a ", ""),
		"blind":               fill("x=$1; cat $x; echo ", "a/shado ", ""),
		"here-documents":      fill("", "cat <<A\nA\n", ""),
		"long document":       fill("cat <<A\n", "$x a\n", "A\n"),
		"doubling":            fill("a=x;", "a=$a$a;", "cat $a"),
		"doubling in quotes":  fill("a=x;", "a=\"$a$a\";", "sh -c \"$a\""),
		"doubling code":       fill("a='ls;ls;ls;';"+rep("", "a=$a$a;", "", 9), "sh -c \"$a\";", ""),
		"assignments":         fill("", "a=b;", ""),
		"uses":                fill("a=b; echo ", "$a", ""),
		"loop of paths":       fill("for i in a b c d e f g h i j k l m n o p; do ", "cat /etc/$i ;", " done"),
		"loop of words":       fill("for i in /etc/a b c d e f g h i j k l m n o p; do cat ", "$i ", "; done"),
		"list":                fill("", "ls;", ""),
		"pipes":               fill("ls", "|ls", ""),
		"parsed pipes":        fill("ls *", "|ls", ""),
		"options":             fill("ls ", "-l ", ""),
		"cluster":             fill("ls -", "l", ""),
		"unknown":             fill("no-such-command ", "rm ", ""),
		"env":                 fill("", "env ", "ls"),
		"timeout":             fill("", "timeout 1 ", "ls"),
		"xargs":               fill("", "xargs ", "ls"),
		"find":                fill("find / ", "-exec find / ", ""),
		"find -exec":          fill("find / ", "-exec cat {} \\; ", ""),
		"sums":                fill("echo $((", "a+", "a))"),
		"tests":               fill("[[ ", "a == b && ", "a ]]"),
		"cases":               fill("case x in ", "a) ls;; ", "esac"),
		"functions":           rep("", "f(){ ls;};", "", 190),
		"redirections":        fill("ls ", "</etc/* ", ""),
		"directories":         fill(strings.Repeat("cd a;", 380)+"cat ", "../x ", ""),
		"sed":                 fill("sed '", "s/a/b/;", "'"),
		"awk":                 fill("awk '{x=", "a)/", "1}'"),
		"jq":                  fill("jq '", ".a|", ".b'"),
		"sql":                 fill("psql -c 'select ", "count(a),", "1'"),
	}
}

// TestHostile bounds the work for one text, counted in steps and in what a
// verdict holds. The time is a second of leeway for a slow machine: a text that
// needs more asks for work that no count sees.
func TestHostile(t *testing.T) {
	k := plainKnowledge(t)
	for name, text := range hostile() {
		if len(text) > maxBytes {
			t.Errorf("%s is longer than what is judged", name)
		}
		start := time.Now()
		w := k.walker()
		if !w.plain(text) {
			w.parsed(text)
		}
		v := w.verdict(text)
		if d := time.Since(start); d > time.Second {
			t.Errorf("%s takes %v", name, d)
		}
		if w.steps > 2*maxSteps+12*maxBytes { // overrun sets twice the bound, and words are counted to the end
			t.Errorf("%s takes %d steps", name, w.steps)
		}
		if len(v.Evidence) > maxCommands+1 || len(v.Reasons) > 16 || len(v.Touches) > 64 {
			t.Errorf("%s gets a verdict with %d findings, %d reasons, %d things touched", name, len(v.Evidence), len(v.Reasons), len(v.Touches))
		}
	}
}

// BenchmarkHostile reports the longest of them, in milliseconds. The budget is 50.
func BenchmarkHostile(b *testing.B) {
	k := plainKnowledge(b)
	worst := time.Duration(0)
	for b.Loop() {
		worst = 0
		for _, text := range hostile() {
			best := time.Hour
			for range 3 {
				start := time.Now()
				k.Classify(text)
				best = min(best, time.Since(start))
			}
			worst = max(worst, best)
		}
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}

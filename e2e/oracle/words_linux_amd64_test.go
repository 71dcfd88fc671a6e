package oracle

import (
	"math/rand/v2"
	"strings"
)

// dice makes texts out of chance, the same for the same seed.
type dice struct{ *rand.Rand }

func (d dice) one(list ...string) string { return list[d.IntN(len(list))] }

// in says yes once in n times.
func (d dice) in(n int) bool { return d.IntN(n) == 0 }

// join puts together 1 to n of the parts.
func (d dice) join(n int, sep string, parts ...string) string {
	var b strings.Builder
	for i := range 1 + d.IntN(n) {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(d.one(parts...))
	}
	return b.String()
}

// value makes a word for a kind of command knowledge: often one that fits,
// else anything. What would be changed is called new, or is one of the files
// that are there.
func (d dice) value(kind string) string {
	if d.in(6) {
		kind = ""
	}
	if options, ok := strings.CutPrefix(kind, "one("); ok {
		words := strings.Split(strings.TrimRight(options, ")*?+"), "|")
		word, _, _ := strings.Cut(words[d.IntN(len(words))], "!")
		return word
	}
	switch kind {
	case "text", "number", "letters", "item":
		return d.one("1", "0", "2", "-1", "+1", "10", "1k", "a", "x", "a,b", "1,2", ":", ",", "all", "root", "lo", "nginx", "%s", "always", "json", "-", "name", "/", "")
	case "path_read", "path_meta", "tree_read", "path_exec", "dir":
		return d.one("a", "b", "a", "b", "/srv/here/a", "sub", "sub/deep/c.txt", "data.json", "list.csv", "conf.yaml", "/etc/hosts", "/etc/passwd", "/var/log/syslog", "/srv/here/script.sh", ".", "-", "--", "./-n", "*", "nowhere", "/proc/self/status", "/dev/null", "/tmp", "x.tar", "x.gz", "x.db", "x.zip")
	case "path_write", "path_out", "path_delete":
		return d.one("new", "/tmp/new", "a", "-", "/dev/null", "/dev/stdout", "sub", "")
	case "sed":
		return d.join(4, d.one("", ";", "\n", " "), "p", "d", "1", "$", "/a/", "1,2", "!", "{", "}", "s/a/b/", "s/a/b/w new", "s/a/touch new/e", "s,a,b,g", "s/x/y/Iw new", "s/[/]/w new/", `s/a\/b/w new/`, "y/a/b/", "w new", "e touch new", "e", "r a", "R b", "q", "=", "l", "n;N;D", "a\\", "i text", "c\\\nw new", "#n", ":x", "bx", "tx", "W new", "F", "z", "h;G", "v", "M", "\\,a,", "0~2", "+3")
	case "awk":
		return d.join(4, d.one("", " ", ";", "\n"), "{print}", "{print $1}", "BEGIN", "END", "{", "}", "print", "print $1 > \"new\"", "print >> \"new\"", "print | \"touch new\"", "system(\"touch new\")", "\"touch new\" | getline", "getline x < \"a\"", "/a/", "/>/", "$1 > 2", "{print ($1 > 2)}", "{print $1, $2 > 2}", "printf \"%s\", $0", "\"a > b\"", "# >", "x = \"new\"", "close(\"new\")", "/[/]> \"new\"/", "function f(x) {return x}", "@load \"x\"", "@include \"a\"", "NR==1", "length", "{n++}", "~ /x/", "a = \"sys\" \"tem\"", "@a()", "fflush()", "\\\n", "(", ")", ",")
	case "jq":
		return d.join(3, d.one("", " | ", ", "), ".", ".a", ".a[]", "keys", "length", "select(.b)", "input", "env", "$ENV", "\"x\"", "@sh", "input_filename", "debug", "limit(3; .a[])", "import \"a\" as a;", "include \"a\";", "$__prog_args", "halt_error", "getpath([\"a\"])", "def f: .; f")
	case "sql":
		return d.join(2, ";", "select 1", "select * from t", ".tables", "insert into t values(1)", "attach 'new' as n", "pragma user_version=2", "select writefile('new', 'x')", ".output new", ".shell touch new", "create table n(a)", "vacuum into 'new'", "explain select 1", "with x as (select 1) select * from x", ".schema", "-- x\n", "/* ; */ select 2", ".dump", "begin", "select load_extension('x')")
	case "shell", "command", "exec", "replace":
		return d.one("ls", "cat a", "touch new", "wc -l", "sh -c 'echo x'", "echo x > new", "id", "rm a", "tee new", "grep a b", "true", "sed -n p a", "sed -i s/a/b/ a", "env", "sort -o new a", "{}", "{} \\;", "echo {} ;")
	case "env", "kv":
		return d.one("LC_ALL=C", "A=b", "TZ=UTC", "PAGER=touch new", "net.ipv4.ip_forward", "kernel.hostname=x", "PATH=.", "LD_PRELOAD=./a", "X=")
	case "format":
		return d.one("+%s", "+%F %T", "+", "010203", "now", "%s")
	case "host", "url":
		return d.one("localhost", "127.0.0.1", "192.0.2.1", "example.com", "http://127.0.0.1/", "file:///etc/hosts", "ftp://127.0.0.1/x", "a@127.0.0.1:x")
	}
	return d.value(d.one("text", "path_read", "path_write", "sed", "awk", "command", "env", "host"))
}

// quote writes a word for bash, in one of the ways that mean the same.
func (d dice) quote(s string) string {
	plain := s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`&|;<>(){}[]*?!#~=%^") && !strings.HasPrefix(s, "-")
	single := "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	switch n := d.IntN(12); {
	case n < 6 && (plain || s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`&|;<>(){}*?!#~")):
		return s
	case n == 6:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(s) + `"`
	case n == 7:
		return "$'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'"
	case n == 8 && len(s) > 1:
		i := 1 + d.IntN(len(s)-1)
		return d.quote(s[:i]) + d.quote(s[i:])
	case n == 9 && !strings.Contains(s, "\n") && s != "":
		var b strings.Builder
		for _, r := range s {
			if d.in(3) || strings.ContainsRune(" \t'\"\\$`&|;<>(){}[]*?!#~", r) {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		}
		return b.String()
	case n == 10 && len(s) > 2:
		return s[:1] + "\\\n" + d.quote(s[1:])
	}
	return single
}

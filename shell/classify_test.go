package shell_test

import (
	"strings"
	"testing"

	"writ"
	"writ/shell"
)

const (
	ro = writ.ReadOnly
	rl = writ.ReversibleLow
	cm = writ.ConfigMutation
	ds = writ.Destructive
)

// TestClassify_shell is about the shell's own language: what is where.
func TestClassify_shell(t *testing.T) {
	t.Parallel()
	k := load(t)
	for _, c := range []struct {
		cmd  string
		want writ.Class
	}{
		{"", cm}, {"   ", cm}, {"# nothing", cm},
		{"ls; cat /etc/fstab && echo ok || false", ro},
		{"if [ -f /etc/fstab ]; then cat /etc/fstab; else echo none; fi", ro},
		{"if touch /srv/f; then :; fi", cm},
		{"case $(uname -m) in x86_64) echo a;; *) rm x;; esac", ds},
		{"for f in /etc/fstab /etc/hosts; do wc -l \"$f\"; done", ro},
		{"for f in /etc/fstab /etc/shadow; do wc -l \"$f\"; done", cm},
		{"for c in rm; do $c x; done", cm},
		{"{ ls; } > /dev/null 2>&1", ro},
		{"ls > /dev/null/../sdz", ds},
		{"ls 2> $(touch /srv/f; echo /dev/null)", cm},
		{"cat <<EOF\n$(touch /srv/f)\nEOF", cm},
		{"cat <<'EOF'\n$(touch /srv/f)\nEOF", ro},
		{"ls < /dev/tcp/192.0.2.9/80", cm},
		{"> /srv/log", ds}, {": > /srv/log", ds}, {"echo x >> /srv/log", cm},
		{"ls &", rl},
		{"x=1; echo $x", ro}, {"PATH=/srv/bin; ls", cm}, {"LC_ALL=C ls", ro}, {"FOO=1 ls", cm}, {"LC_ALL=$(touch /srv/f) ls", cm},
		{"f() { ls; }; f", ro}, {"ls() { touch /srv/f; }; ls", cm},
		{"echo ${x@P}", cm}, {"echo ${!x}", cm}, {"echo ${x:-$(touch /srv/f)}", cm}, {"echo ${a[$(touch /srv/f)]}", cm}, {"echo ${#x}", ro},
		{"echo $((1 + 2))", ro}, {"x=a; echo $((x))", cm}, {"n=3; echo $((n * 2))", ro}, {"i=0; while [ $i -lt 3 ]; do i=$((i+1)); done", ro},
		{"[[ -v x ]]", ro}, {"[[ -v 'a[$(x)]' ]]", cm}, {"[[ $x -eq 1 ]]", cm}, {"[[ $x == 1 ]]", ro},
		{"declare -i x; x='a[$(touch /srv/f)]'", cm}, {"export -p", cm}, {"declare x=1", ro},
		{"coproc ls", cm}, {"select x in a; do ls; done", cm}, {"time ls", ro}, {"! ls", ro}, {"let x=1", ro},
		{"/usr/bin/ls", ro}, {"./ls", cm}, {"~/bin/ls", cm}, {"/srv/ls", cm}, {"/usr/bin/../bin/ls", cm},
		{"'l's -l", ro}, {"$'\\x6cs'", ro}, {"l\\s", ro}, {"r''m x", ds}, {"{rm,-rf,/srv/f}", ds}, {"ls {a,b}{c,d}", ro},
		{"diff <(rm x) /etc/hosts", ds},
		{"ls\r -l", cm}, {"ls\x00", cm}, {"ls \u202e", cm}, {"ls\u00a0-l", cm}, {"ls \uff06\uff06 x", cm}, {"ls \u00fcber", ro}, {"\u217fs", cm},
		{"ls \\\n  -l", ro}, {"rm \\\n  -rf x", ds}, {"echo \"$\\\n(touch /srv/f)\"", cm}, {"echo 'a\\\nb'", cm},
		{"ls *", ro}, {"cat *", ro}, {"find *", cm}, {"sort *", cm}, {"sort ./*", ro}, {"sort -- *", ro}, {"cat /etc/sh?dow", cm}, {"cat /etc/*", cm},
		{"cd /etc; head -n1 shadow", cm}, {"cat ../../etc/shadow", cm}, {"cat $HOME/.ssh/id_rsa", cm}, {"f=$(find / -name shadow); cat $f", cm},
		{"cat {/etc/shadow,a}{,b}{,c}{,d}{,e}{,f}{,g}", cm}, {"cat {1..2}{/etc/shadow,a}", cm}, {"cat {a..z}/etc/shadow", cm}, {"cat /etc/{r..t}hadow", cm},
		{"cat " + strings.Repeat("a ", 300) + "{/etc/shadow,b}", cm}, {"cat " + strings.Repeat("{", 20) + "/etc/shadow" + strings.Repeat(",b}", 20), cm},
		{"cat {" + strings.Repeat("a,", 70) + "/etc/shadow}", cm}, {"wc -l x{1..99} y.{a..c}", ro}, {"sort {-1..3}", cm},
		{"IFS=:; x=/etc/shadow:/srv/b; cat $x", cm}, {"IFS=:; for p in $PATH; do ls \"$p\"; done", ro},
		{"a=/etc/sha; b=dow; cat $a$b", cm}, {"a=x; a=$a$a; a=$a$a; ls $a", ro},
		{"no-such-command --version", cm}, {"no-such-command --delete x", ds}, {"(((", cm}, {"rm -rf (((", ds},
		{strings.Repeat("(", 5000), cm}, {strings.Repeat("x", 20000), cm},
	} {
		v := k.Classify(c.cmd)
		if v.Class != c.want {
			t.Errorf("Classify(%.60q) = %s %v, want %s: %s", c.cmd, v.Class, v.Effects, c.want, strings.Join(v.Reasons, "; "))
		}
		if v.Class != ro && len(v.Reasons) == 0 {
			t.Errorf("Classify(%.60q) = %s without a reason", c.cmd, v.Class)
		}
		for _, e := range v.Evidence {
			if e.Start < 0 || e.End < e.Start || e.End > len(v.Command) {
				t.Errorf("Classify(%.60q): the evidence %+v is outside of the text", c.cmd, e)
			}
		}
	}
}

func TestClassify_evidence(t *testing.T) {
	t.Parallel()
	v := load(t).Classify("df -h; systemctl --no-pager restart cron.service")
	for _, e := range v.Evidence {
		if e.Effect == shell.Runtime && e.Rule == "systemctl/restart" && v.Command[e.Start:e.End] == "systemctl --no-pager restart" {
			return
		}
	}
	t.Errorf("no evidence names systemctl/restart at its words: %+v", v.Evidence)
}

func TestClassify_continued(t *testing.T) {
	t.Parallel()
	if v := load(t).Classify("ls \\\n  -l"); v.Command != "ls   -l" {
		t.Errorf("Command = %q: what is run is not what was judged", v.Command)
	}
}

func TestClassifyArgv(t *testing.T) {
	t.Parallel()
	k := load(t)
	v := k.ClassifyArgv([]string{"grep", "-c", "it's; rm -rf $(x)", "/srv/a b"})
	if want := `grep -c 'it'\''s; rm -rf $(x)' '/srv/a b'`; v.Class != ro || v.Command != want {
		t.Errorf("ClassifyArgv = %s %q, want read_only %q", v.Class, v.Command, want)
	}
	if v := k.ClassifyArgv(nil); v.Class == ro {
		t.Errorf("no words are read_only")
	}
}

// TestClassify_metamorphic holds that a different spelling, a wrapper or more
// commands never make a class milder.
func TestClassify_metamorphic(t *testing.T) {
	t.Parallel()
	k := load(t)
	changes := []func(string) string{
		func(s string) string { return "  " + s + " # comment" },
		func(s string) string { return "env LC_ALL=C " + s },
		func(s string) string { return "timeout 9 " + s },
		func(s string) string { return "sudo -n " + s },
		func(s string) string { return "sh -c '" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		func(s string) string { return "ls; " + s },
		func(s string) string { return s + " && df -h" },
		func(s string) string { return s + " | sort" },
		func(s string) string { return "echo \"$(" + s + ")\"" },
		func(s string) string { return "if " + s + "; then :; fi" },
		func(s string) string {
			words := strings.Fields(s)
			words[0] = "'" + words[0] + "'"
			return strings.Join(words, " ")
		},
	}
	for _, cmd := range []string{
		"ls -l /opt", "systemctl restart cron", "git push origin main", "rm -r /srv/old", "cat /etc/shadow", "dd if=/dev/zero of=/dev/sdz",
		"sed -i s/a/b/ /srv/x", "find /opt -delete", "no-such-command x", "docker exec db1 rm /srv/f", "ip link set lo down", "journalctl -f",
	} {
		base := k.Classify(cmd).Class
		for i, change := range changes {
			if got := k.Classify(change(cmd)); got.Class.Rank() < base.Rank() {
				t.Errorf("change %d makes %q (%s) milder: %q is %s", i, cmd, base, change(cmd), got.Class)
			}
		}
	}
}

// seeds are commands of every shape, for the fuzzer and the benchmark.
func seeds() []string {
	return []string{
		"ls -la /etc", "grep -rIn --include='*.conf' proxy_pass /etc/nginx/ | head -20", "for f in a b; do wc -l \"$f\"; done",
		"find /opt -xdev -type f -size +20M -mtime -2", "awk -F: '$3 >= 1000 {print $1}' /etc/passwd", "x=$(date +%s); echo $((x - 3600))",
		"sed -n '3,9p' /etc/services", "docker ps -a --format '{{.Names}}'", "systemctl show -p ActiveState cron", "git log --oneline -n 5",
		"case $x in a) ls;; *) rm -rf /;; esac", "cat <<EOF\n$(id)\nEOF", "echo ${x:-`id`} {a,b}{1..3} $'\\x41' ~/x", "a() { b; }; [[ $x -eq 1 && ! -f y ]]",
		"sudo -u x env A=1 timeout 3 sh -c 'ls; rm x'", "ip -br a; curl -sS http://127.0.0.1/", "tar xzf a.tgz -C /", "((i++)); let a=b; declare -A m=([k]=v)",
	}
}

package shell_test

import (
	"testing"

	"writ"
)

// A file whose name is made of what a command was told to print may be a
// secret one, however it is put together.
func TestClassify_namesPutTogether(t *testing.T) {
	t.Parallel()
	k := load(t)
	for _, command := range []string{
		"cat $(docker ps --format /etc/gshadow)",
		"cat $(pgrep -d ' /etc/gshadow ' cron)",
		"seq 1 | sed 's,1,/etc/gsha-dow,;s,-d,d,' | xargs cat",
		"cat $(sed s,x,/etc/gsha, <<< xdow)",
		"cat $(awk 'BEGIN{print \"/etc/gsha\" \"dow\"}')",
		"printf '/etc/gsha%s' dow | tar cf - -T -",
		"cat $(curl http://127.0.0.1:8080/next)",
		"sort $(TZ='<-o>0' date) /srv/list",
		"cd /etc && grep -r pass",
		"PS_FORMAT=environ ps",
		`f=/etc/gsha; f+=dow; cat "$f"`,
		`a=(/etc/gsha); a[0]+=dow; cat "${a[0]}"`,
		`f=/etc/GSHADOW; cat "${f,,}"`,
		`f=/etc/xshadow; head -n 1 < "${f/x/g}"`,
		`declare -l f=/etc/GSHADOW; cat "$f"`,
		`for d in /etc /root; do cat "$d"/*; done`,
		`cat "$1"/*`,
		`curl -s "http://localhost$(hostname).example.test/"`,
		`curl -s "http://localhost:$x"`,
		"jobs -x touch /srv/f", "command jobs -lx touch f", "wait -p PATH -n; df",
		"set", "set | grep -i pass", "(set)", `echo "$(set)"`,
		"cat /opt/n | xargs cat", "xargs -a /opt/n cat", `while read f; do cat "$f"; done < /opt/names`, `cat "$(cat /tmp/name)"`, `cat "$(< /tmp/name)"`,
		`cat "/srv/$(cat /opt/n)"`, `while read f; do tail /var/log/$f; done < /opt/n`, `f() { echo ../etc/gshadow; }; cat "/srv/$(f)"`, `x=$(echo 1/environ); cat /proc/$x`,
		"journalctl -u x | grep -o '/[^ ]*' | xargs cat", `while :; do cat "$g"; g=$f; read f < /opt/n; done`, `for f in $(sort /opt/n); do wc -l "$f"; done`,
		`read f <<< "$(cat /opt/n)"; cat "$f"`, `read f < <(tail -n 1 /opt/n); head "$f"`, "ssh host1 ls | xargs cat", `f=$(cat /opt/n | head -1); cat "$f"`, "cat /opt/n | xargs -I{} head {}",
		"find /etc -name '*adow' -exec cat {} +", "find /etc -name '[r-t]hadow' -exec cat {} \\;", "find /etc -name 's*' -type f -exec cat {} +", "find / -maxdepth 2 -iname SHADOW -exec cat {} \\;",
		"find /etc -name '*.log' -o -type f | xargs cat", "find /etc ! -name '*.log' | xargs cat", "find ~/.kube -type f | xargs cat", "find /etc -lname '*.log' -exec cat {} +",
		"(( PATH = 5 )); df", "let PATH=5; df", ": $((PATH++)); df", "for ((PATH=5;PATH<6;PATH=6)); do df; done",
		"(( BASH_ENV = 5 )); bash -c ls", "(( GIT_DIR = 5 )); git status", "(( IFS = 1 )); x=a1-o1q2; sort $x",
	} {
		if v := k.Classify(command); v.Class == writ.ReadOnly {
			t.Errorf("%q is read_only: %v", command, v.Reasons)
		}
	}
	for _, command := range []string{
		"ls $(docker ps -q)", "ps -p $(pgrep -d , cron)", "cd /srv/site && grep -r title", "TZ=UTC date",
		`curl -s "http://localhost:8080/status?id=$x"`, "jobs -l", "set -eu", `for c in /sys/class/net/*; do cat "$c/operstate"; echo "${c##*/}"; done`,
		"find /opt -name '*.conf' | xargs grep -l port", "ls -t /var/log/*.log | head -n 1 | xargs tail -n 3", `for f in $(find /etc/cron.d -type f); do cat "$f"; done`, "cat $(ls /etc/*-release)",
		`for p in $(pgrep cron); do echo "$p $(cat /proc/$p/comm) $(awk '/VmRSS/ {print $2}' /proc/$p/status)"; done`, `while read s; do tail -n 1 /var/log/$s.log; done < /opt/names`,
		"grep -rl listen /etc/nginx | xargs grep server_name", `find /srv -type f | while read -r f; do n=$(wc -l < "$f"); echo "$n $f"; done`, "find /etc -name '*.service' -exec grep -l Restart {} +", "cat $(command -v ldd)",
		`cd /var/log && tail -n 2 "$(ls -t | head -n 1)"`, "find / -xdev \\( -name '*.log' -o -name '*.service' \\) | xargs cat",
		"for ((i=0;i<3;i++)); do uptime; done", "n=0; (( n += 1 )); echo $n",
	} {
		if v := k.Classify(command); v.Class != writ.ReadOnly {
			t.Errorf("%q is %s: %v", command, v.Class, v.Reasons)
		}
	}
}

// What destroys counts as destructive also where it is only text to whatever
// reads it.
func TestClassify_textsThatDestroy(t *testing.T) {
	t.Parallel()
	k := load(t)
	for _, command := range []string{
		"docker exec -i db1 sh <<'EOF'\nrm -rf /opt/data\nEOF",
		"nft -f - <<< 'flush ruleset'",
		"mongosh shop <<'EOF'\ndb.orders.drop()\nEOF",
		"psql -c 'EXPLAIN ANALYZE DELETE FROM orders'",
		"bash +n -c 'rm -rf /opt/data'",
		"cat /dev/watchdog1",
		"git push origin --delete topic9",
		"git restore README",
	} {
		if v := k.Classify(command); v.Class != writ.Destructive {
			t.Errorf("%q is %s: %v", command, v.Class, v.Reasons)
		}
	}
	for _, command := range []string{
		"grep remove <<< 'remove this line'",
		"bash -n /srv/rm",
	} {
		if v := k.Classify(command); v.Class != writ.ReadOnly {
			t.Errorf("%q is %s: %v", command, v.Class, v.Reasons)
		}
	}
}

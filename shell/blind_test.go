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
	} {
		if v := k.Classify(command); v.Class == writ.ReadOnly {
			t.Errorf("%q is read_only: %v", command, v.Reasons)
		}
	}
	for _, command := range []string{
		"ls $(docker ps -q)", "ps -p $(pgrep -d , cron)", "cd /srv/site && grep -r title", "TZ=UTC date",
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

package oracle

import (
	"slices"
	"strings"
	"testing"
)

// changers are texts that change something, each with what is to be seen.
var changers = []struct{ text, want string }{
	{"touch /tmp/x", "left /tmp/x"},
	{"touch /tmp/x", "open to write /tmp/x"},
	{"echo x > f", "left /srv/here/f"},
	{": >> a", "open to write /srv/here/a"},
	{"sed -i s/alpha/x/ a", "left /srv/here/a"},
	{"rm a", "removed /srv/here/a"},
	{"rm -r sub && mkdir sub", "mkdir /srv/here/sub"},
	{"chmod 600 a", "left /srv/here/a"},
	{"chmod 700 sub", "left /srv/here/sub"},
	{"chown 7 /srv", "left /srv"},
	{"ln -s a l", "left /srv/here/l"},
	{"ln a l", "linkat /srv/here/l"},
	{"mkdir /tmp/d", "left /tmp/d"},
	{"mkdir /tmp/d && rmdir /tmp/d", "mkdir /tmp/d"},
	{"touch -d 2001-01-01 /etc/hosts", "left /etc/hosts"},
	{"echo x > /dev/shm/x", "left /dev/shm/x"},
	{"echo x > /dev/sda", "left /dev/sda"},
	{"dd if=/dev/zero of=/dev/sdq count=1", "left /dev/sdq"},
	{"mknod /dev/n c 1 3", "mknodat /dev/n"},
	{"echo 1 > /proc/sys/net/ipv4/ip_forward", "open to write /proc/sys/net/ipv4/ip_forward"},
	{"echo b > /proc/sysrq-trigger", "open to write /proc/sysrq-trigger"},
	{"echo 7 > /proc/1/oom_score_adj", "open to write /proc/1/oom_score_adj"},
	{"hostname x", "sethostname"},
	{"hostname x", "sys/kernel/hostname was"},
	{"mount -t tmpfs x /mnt", "mount /mnt"},
	{"mount -t tmpfs x /mnt", "self/mountinfo was"},
	{"date -s 2001-01-01", "clock_settime"},
	{"dmesg -C", "syslog action 5"},
	{"kill $(pgrep nginx)", "kill the process"},
	{"pkill nginx; sleep 0.1", "the decoy"},
	{"kill -9 -1", "kill the process -1"},
	{"kill 99999", "kill the process 99999"},
	{"renice 5 1", "setpriority the process 1"},
	{"renice -n 5 -p $(pgrep nginx)", "the decoy"},
	{"sleep 60 &", "left 1 process"},
	{"(setsid sleep 60 &)", "left 1 process"},
	{"ipcmk -S 1", "semget"},
	{"ipcmk -M 8", "sysvipc/shm was"},
	{"ip link set lo mtu 1400", "the routing message 16"},
	{"ip addr add 192.0.2.9/24 dev lo", "net/fib_trie was"},
	{"rm /nowhere", "unlinkat /nowhere"},
	{"mv /nowhere /else", "rename"},
	{"logger x", "/dev/log"},
	{"echo > /dev/tcp/192.0.2.1/80", "asked connect 192.0.2.1:80"},
	{"echo > /dev/udp/192.0.2.1/53", "asked connect 192.0.2.1:53"},
	{"sh", "obeyed"},
	{"xargs touch < list.csv", "left /srv/here/name,size"},
	{"nice nohup env timeout 9 sh -c 'echo x | tee f'", "left /srv/here/f"},
}

// TestOracle_sees holds that the oracle is not blind: what changes something is
// seen, also when it fails, and what only reads leaves nothing.
func TestOracle_sees(t *testing.T) {
	dir := ready(t, nil)
	for _, tt := range changers {
		w, err := start(dir)
		if err != nil {
			t.Fatal(err)
		}
		o, err := w.run(order{Text: tt.text, Limit: patience})
		if err != nil {
			t.Fatal(err)
		}
		said := slices.Clone(o.Changes)
		for _, a := range o.Asked {
			said = append(said, "asked "+a)
		}
		if o.Left > 0 {
			said = append(said, "left 1 process or more")
		}
		if !strings.Contains(strings.Join(said, "\n"), tt.want) && o.Status != 127 {
			t.Errorf("%q shows %q (status %d), want %q", tt.text, said, o.Status, tt.want)
		}
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	}
	w, err := start(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"true", "ls -la / /dev /tmp", "cat a b > /dev/null 2>&1", "wc -l < a | sort -rn", "cat <<< x", "cat <(ls) <<E\nx\nE", "ps aux", "find /srv -newer a", "kill -0 1", "nice -n 5 ls", "timeout 1 sleep 9", "timeout -s KILL 0.1 sleep 9",
		"ls & wait", "id", "ip addr", "ss -tan", "git log --oneline", "tail -f a", "yes", "cat /dev/zero", "sleep 9", "hostname", "date", "dmesg", "mount", "df",
	} {
		o, err := w.run(order{Text: text, Limit: short})
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Changes) > 0 || o.Dirty || o.Left > 0 || len(o.Asked) > 0 {
			t.Errorf("%q only reads, and %+v", text, o)
		}
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
}

package oracle

import "regexp"

// traces is all that a text called read-only may leave or try, each with the
// reason: which program (the kernel's name of it), what it does, where.
var traces = []struct{ program, what, where, because string }{
	{`.*`, `.*`, `/dev/(null|zero|full|tty|stdout|stderr|fd/\d+)`, "what is written there is nowhere, or is the output"},
	{`.*`, `.*`, `/proc/(self|thread-self|\d+)/fd/\d+`, "the output of the text itself"},
	{`.*`, `.*`, `(pipe|socket):.*`, "a pipe of the text itself"},
	{`.*`, `open a nameless file in`, `/(var/)?tmp`, "it ends with the program"},
	{`.*`, `.*`, `/tmp/sh-thd\.\w+`, "bash keeps a long here-document in a file that it unlinks before anybody reads it"},
	{`sort|tac`, `.*`, `/(var/)?tmp/(sort|tac)\w{6}( \(deleted\))?`, "what does not fit into memory, or cannot be read backwards; unlinked"},
	{`git`, `.*`, `/srv/here/\.git/index(\.lock)?`, "git keeps in its index what it learned of the files' times"},
	{`git`, `.*`, `/srv/here/\.git/(.*/)?\w+\.lock`, "a dry run holds the locks of what it looks at; removed"},
	{`gcc|g\+\+|cc|c\+\+|cc1|as|ld|collect2`, `.*`, `/tmp/cc\w{6}\..*`, "what the compiler hands to its parts, also to ask for their versions; removed"},
	{`top`, `mkdir`, `/root/\.config(/procps)?`, "the place of a file that only its W key writes"},
	{`pmap`, `shm(get|ctl)`, `.*`, "a segment of its own, gone again, shows it how the kernel writes of segments"},
	{`wipefs`, `open to write`, `.*`, "wipefs opens for writing also when it does as if"},
	{`perf`, `mount`, `/sys/kernel/(tracing|debug)`, "the place of the kernel's own lists, where nobody mounted it before"},
	{`perf`, `.*`, `/tmp/perf-vdso\.so-\w{6}`, "a copy of a part of the kernel, to read it; unlinked"},
	{`script|su|runuser`, `open to write`, `/dev/ptmx`, "a terminal of its own"},
	{`chage`, `sendto|connect`, `a message to netlink 9|/dev/log`, "it tells the audit that it was used, or the log that there is none"},
	{`tmux.*`, `.*`, `/tmp/tmux-0`, "the place of its sockets"},
	{`dmsetup`, `.*`, `/dev(/mapper(/control)?)?`, "the door to the device mapper, where udev did not make it"},
	{`man|groff|nroff`, `.*`, `/var/cache/man/.*`, "formatted pages"},
	{`pidof|killall5`, `.*`, `/dev/(log|console)`, "it tells the system log of its own mistakes"},
	{`sqlite3`, `open to write`, `.*`, "it opens for writing what it may only read"},
	{`curl`, `ask`, `.*:53`, "the name of this host, for its LDAP"},
	{`su|runuser`, `sendto|connect|keyctl`, `a message to netlink 9|/dev/log|\[.*\]`, "the login of another user is told to the audit and the log, and has keys of its own"},
	{`debconf.*|dpkg-preconfigu`, `open to write`, `/var/cache/debconf/\w+\.dat`, "it opens its store before it looks at its options"},
	{`nstat`, `.*`, `/tmp/\.nstat\.u0`, "the counts of the last time, which it keeps empty when it may not change them"},
	{`badblocks`, `ioctl`, `BLKFLSBUF`, "what is in memory of a device is written to it before it is read"},
	{`zgrep|[bx]?zdiff|mktemp|rm|cat|sed|gzip|bzip2|xz`, `.*`, `/tmp/([bx]?zdiff|zgrep)[.\w]+(/.*)?`, "the patterns that came from a file, or the second file unpacked; removed"},
	{`unshare`, `open to write`, `/proc/self/(uid_map|gid_map|setgroups)`, "who it is in a namespace of its own"},
	{`faillock`, `open to write`, `/(var/)?run/faillock/.+`, "it opens for writing what it shows"},
	{`lslogins`, `.*`, `/etc/\.pwd\.lock`, "the lock of the list of users, which every tool of that list makes"},
	{`systemd-analyze`, `.*`, `/tmp/systemd-(analyze|temporary)-\w{6}(/.*)?|/run/systemd(/systemd-units-load)?`, "directories of its own, removed; and a lock"},
	{`patch`, `.*`, `/tmp/p[oip]\w{6,7}`, "what a dry run would write; removed"},
	{`dpkg-deb`, `.*`, `/tmp/dpkg-deb\.\w{6}`, "an empty directory; removed"},
	{`dpkg`, `.*`, `/var/log/dpkg\.log`, "the log says of a dry run that it began"},
	{`apt.*`, `.*`, `/var/log/apt/eipp\.log\.xz`, "the log of what a dry run planned"},
	{`apt.*|gpg.*|sh|rm|cp|cat|chmod|touch|mktemp`, `.*`, `/tmp/apt-(key-gpghome|changelog)[.-]\w+(/.*)?`, "a directory of its own; removed"},
	{`gpg.*|node|npm.*|java|python3?|gcloud|terraform|kubectl`, `.*`, `/root/\.(gnupg|npm|config|config/gcloud|terraform\.d|kube)(/.*)?`, "caches, logs and empty key rings that a program keeps for itself in its user's home"},
	{`j\w+|keytool|VM Thread`, `.*`, `/tmp/hsperfdata_root(/\d+)?|/proc/self/coredump_filter`, "the counters of the Java machine, and its own setting"},
	{`jinfo|jstack|jmap|jcmd`, `.*`, `/(proc/\d+/cwd|tmp)/\.attach_pid\d+|the process \d+`, "it asks the Java machine of a process to answer"},
	{`gsettings|gio|dconf`, `.*`, `/root/\.cache(/dconf(/user)?)?`, "an empty cache of its own"},
	{`systemd-tty-ask`, `.*`, `/run(/systemd(/ask-password)?)?`, "the place of the questions, where systemd did not make it"},
	{`pldd`, `ptrace`, `.*`, "it holds a process for as long as it reads of it"},
	{`kubectl|helm|npm.*|node|pip3?|terraform|gcloud|python3?|java`, `ask`, `.*`, "what it shows is what its server knows"},
	{`openssl`, `ask`, `(127\.0\.0\.1|\[::1\]):4433`, "without a host, s_client asks this machine"},
	{`fuser`, `ask`, `(127\.0\.0\.1|\[::1\]):\d+`, "libc sorts the addresses of a name"},
	{`hostname|hostid|git|route|netstat|ss|arp|who|w|last|ip`, `ask`, `.*:53`, "names of addresses"},
}

// trace says whether an attempt, or what was found afterwards, is a named
// trace. Of what was found nobody knows which program left it.
func trace(program, what, where string) bool {
	for _, t := range traces {
		if (program == "" || matches(t.program, program)) && matches(t.what, what) && matches(t.where, where) {
			return true
		}
	}
	return false
}

func matches(pattern, s string) bool {
	ok, err := regexp.MatchString(`(?s)^(?:`+pattern+`)$`, s)
	return ok && err == nil
}

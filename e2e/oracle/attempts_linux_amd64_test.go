package oracle

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// attempts gathers what the processes of one text tried. A path in it is what
// the process named, made absolute.
type attempts struct {
	mu       sync.Mutex
	keep     []int          // processes that no text may touch
	decoys   []int          // of these, the ones that may be hurt
	first    int32          // the first process of the text
	refuse   bool           // the call at hand would hurt another
	netlink  map[uint32]int // process → protocol of the netlink socket it opened last
	programs []string
	changes  []string
	asked    []string // hosts that were asked
	daemons  []string // sockets of this machine that were asked
}

// reset empties the list and returns what was in it; what starts from now on
// belongs to the next text.
func (a *attempts) reset() *attempts {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := &attempts{programs: a.programs, changes: a.changes, asked: a.asked, daemons: a.daemons}
	a.first = lastPid() + 1
	a.netlink, a.programs, a.changes, a.asked, a.daemons = map[uint32]int{}, nil, nil, nil, nil
	return was
}

// see judges one system call, and says whether it may go on: all but what
// would end the worker.
func (a *attempts) see(n *notice) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = false
	a.judge(n)
	return !a.refuse
}

func (a *attempts) judge(n *notice) {
	name := watched[n.nr]
	arg := n.args
	switch n.nr {
	case unix.SYS_EXECVE:
		if path := at(n, unix.AT_FDCWD, arg[0]); exists(path) {
			a.programs = append(a.programs, filepath.Base(path))
		}
	case unix.SYS_OPEN:
		a.opened(n, unix.AT_FDCWD, arg[0], arg[1])
	case unix.SYS_OPENAT:
		a.opened(n, int32(arg[0]), arg[1], arg[2])
	case unix.SYS_OPENAT2:
		if how := peek(int(n.pid), arg[2], 8); len(how) < 8 || binary.NativeEndian.Uint64(how)&writeFlags != 0 {
			a.opened(n, int32(arg[0]), arg[1], writeFlags)
		}
	case unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_CREAT, unix.SYS_MKNOD, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_TRUNCATE,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_RENAME, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_UMOUNT2:
		a.add(n, name, at(n, unix.AT_FDCWD, arg[0]))
	case unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_MOUNT:
		a.add(n, name, at(n, unix.AT_FDCWD, arg[1]))
	case unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_MKNODAT, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_FUTIMESAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		a.add(n, name, at(n, int32(arg[0]), arg[1]))
	case unix.SYS_LINKAT:
		a.add(n, name, at(n, int32(arg[2]), arg[3]))
	case unix.SYS_SYMLINKAT:
		a.add(n, name, at(n, int32(arg[1]), arg[2]))
	case unix.SYS_FCHMOD, unix.SYS_FCHOWN, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSETXATTR, unix.SYS_FREMOVEXATTR:
		a.add(n, name, descriptor(n, int32(arg[0])))
	default:
		if !a.process(n, name) && !a.network(n, name) {
			a.other(n, name)
		}
	}
}

// process judges what is done to other processes, and says whether it was that.
func (a *attempts) process(n *notice, name string) bool {
	arg := n.args
	switch n.nr {
	case unix.SYS_KILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_TKILL:
		if arg[1] != 0 || n.nr == unix.SYS_TKILL { // signal 0 only asks whether it lives
			a.target(n, name, int32(arg[0]))
		}
	case unix.SYS_TGKILL, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN:
		a.target(n, name, int32(arg[0]))
	case unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_PROCESS_VM_WRITEV:
		if arg[0] != 0 {
			a.target(n, name, int32(arg[0]))
		}
	case unix.SYS_PRLIMIT64:
		if arg[0] != 0 && arg[2] != 0 {
			a.target(n, name, int32(arg[0]))
		}
	case unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET:
		own := n.nr == unix.SYS_SETPRIORITY && arg[0] == unix.PRIO_PROCESS || n.nr == unix.SYS_IOPRIO_SET && arg[0] == 1
		if own && arg[1] != 0 {
			a.target(n, name, int32(arg[1]))
		} else if !own {
			a.add(n, name, fmt.Sprintf("of the group or user %d", int32(arg[1])))
		}
	case unix.SYS_PTRACE:
		if arg[0] != unix.PTRACE_TRACEME {
			a.target(n, name, int32(arg[1]))
		}
	default:
		return false
	}
	return true
}

// target notes what was done to a process or a group of them, unless the text
// started it.
func (a *attempts) target(n *notice, name string, pid int32) {
	if pid == 0 {
		return
	}
	leader := 0 // of the process that a thread belongs to
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", max(pid, -pid)))
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "Tgid:"); ok {
			leader, _ = strconv.Atoi(strings.TrimSpace(rest))
		}
	}
	gone := leader == 0 && pid > 0 && (pid < a.first || pid > lastPid())
	if pid == -1 || gone || slices.Contains(a.keep, leader) {
		a.add(n, name, fmt.Sprintf("the process %d", pid))
		a.refuse = pid == -1 || !slices.Contains(a.decoys, leader)
	}
}

// lastPid is the number of the youngest process.
func lastPid() int32 {
	data, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(data))
	last, _ := strconv.ParseInt(fields[len(fields)-1], 10, 32)
	return int32(last)
}

// network judges sockets, and says whether it was one.
func (a *attempts) network(n *notice, name string) bool {
	arg := n.args
	switch n.nr {
	case unix.SYS_SOCKET:
		if arg[0] == unix.AF_NETLINK {
			a.netlink[n.pid] = int(arg[2])
		}
		if arg[0] == unix.AF_PACKET || arg[0] == unix.AF_VSOCK {
			a.ask(n, name, fmt.Sprintf("of the family %d", arg[0]))
		}
	case unix.SYS_CONNECT, unix.SYS_BIND:
		a.address(n, name, peek(int(n.pid), arg[1], int(min(arg[2], 128))), nil)
	case unix.SYS_SENDTO:
		a.address(n, name, peek(int(n.pid), arg[4], int(min(arg[5], 128))), peek(int(n.pid), arg[1], int(min(arg[2], 64))))
	case unix.SYS_SENDMSG, unix.SYS_SENDMMSG:
		msg := peek(int(n.pid), arg[1], 32) // struct msghdr: name, namelen, iov
		if len(msg) < 32 {
			a.add(n, name, "something unreadable")
			break
		}
		word := func(i int) uint64 { return binary.NativeEndian.Uint64(msg[i:]) }
		vec := peek(int(n.pid), word(16), 16)
		var data []byte
		if len(vec) == 16 {
			data = peek(int(n.pid), binary.NativeEndian.Uint64(vec), int(min(binary.NativeEndian.Uint64(vec[8:]), 64)))
		}
		a.address(n, name, peek(int(n.pid), word(0), int(min(word(8)&0xffffffff, 128))), data)
	default:
		return false
	}
	return true
}

// address judges whom a socket speaks to; addr is a struct sockaddr, data what
// is sent.
func (a *attempts) address(n *notice, name string, addr, data []byte) {
	proto, netlink := a.netlink[n.pid]
	if len(addr) < 2 { // a socket that is connected: its connect was seen
		if netlink {
			a.route(n, name, proto, data)
		}
		return
	}
	switch family := binary.NativeEndian.Uint16(addr); {
	case family == unix.AF_UNIX && name == "bind":
		if path, _, _ := strings.Cut(string(addr[2:]), "\x00"); path != "" {
			a.add(n, name, path)
		}
	case family == unix.AF_UNIX:
		path, _, _ := strings.Cut(strings.TrimPrefix(string(addr[2:]), "\x00"), "\x00")
		switch {
		case path == "/dev/log" || path == "/run/systemd/journal/dev-log" || path == "/run/systemd/journal/socket":
			a.add(n, name, path)
		case !strings.Contains(path, "/nscd/") && !strings.Contains(path, "/userdb/"): // libc asks these for the names of users
			a.daemons = append(a.daemons, path)
		}
	case family == unix.AF_NETLINK && name != "bind" && name != "connect":
		a.route(n, name, proto, data)
	case family == unix.AF_INET && len(addr) >= 8, family == unix.AF_INET6 && len(addr) >= 24:
		port := binary.BigEndian.Uint16(addr[2:])
		ip, _ := netip.AddrFromSlice(addr[4:8])
		if family == unix.AF_INET6 {
			ip, _ = netip.AddrFromSlice(addr[8:24])
		}
		if port != 0 { // without a port, libc only sorts addresses
			a.ask(n, name, netip.AddrPortFrom(ip, port).String())
		}
	}
}

// route judges a message to the kernel by netlink: only questions pass.
func (a *attempts) route(n *notice, name string, proto int, data []byte) {
	if len(data) < unix.SizeofNlMsghdr+8 {
		return
	}
	kind := binary.NativeEndian.Uint16(data[4:])
	switch proto {
	case unix.NETLINK_ROUTE: // kinds come in fours: new, del, get, set
		// A new link of which nothing is said, not even its number, only asks
		// whether the kernel knows the message.
		probe := kind == unix.RTM_NEWLINK && len(data) <= unix.SizeofNlMsghdr+unix.SizeofIfInfomsg && binary.NativeEndian.Uint32(data[unix.SizeofNlMsghdr+4:]) == 0
		if kind >= unix.RTM_BASE && kind&3 != unix.RTM_GETLINK&3 && !probe {
			a.add(n, name, fmt.Sprintf("the routing message %d", kind))
		}
	case unix.NETLINK_SOCK_DIAG:
		if kind == 21 { // SOCK_DESTROY
			a.add(n, name, "an order to end connections")
		}
	case unix.NETLINK_NETFILTER:
		if kind == unix.NFNL_MSG_BATCH_BEGIN {
			a.add(n, name, "a change of the packet filter")
		}
	case unix.NETLINK_AUDIT, unix.NETLINK_KOBJECT_UEVENT:
		a.add(n, name, fmt.Sprintf("a message to netlink %d", proto))
	default:
		a.daemons = append(a.daemons, fmt.Sprintf("netlink %d", proto))
	}
}

// other judges what is left: kernel state.
func (a *attempts) other(n *notice, name string) {
	arg := n.args
	switch n.nr {
	case unix.SYS_IOCTL:
		a.add(n, "ioctl", ioctls[uint32(arg[1])])
	case unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME:
		where := arg[0]
		if n.nr == unix.SYS_CLOCK_ADJTIME {
			where = arg[1]
		}
		if modes := peek(int(n.pid), where, 4); len(modes) < 4 || binary.NativeEndian.Uint32(modes) != 0 {
			a.add(n, name, "the clock")
		}
	case unix.SYS_SYSLOG:
		if arg[0] >= 4 && arg[0] <= 8 {
			a.add(n, name, fmt.Sprintf("action %d", arg[0]))
		}
	case unix.SYS_SHMGET, unix.SYS_SEMGET, unix.SYS_MSGGET:
		flags := arg[2]
		if n.nr == unix.SYS_MSGGET {
			flags = arg[1]
		}
		if flags&unix.IPC_CREAT != 0 || arg[0] == unix.IPC_PRIVATE {
			a.add(n, name, "a new one")
		}
	case unix.SYS_SHMCTL, unix.SYS_MSGCTL, unix.SYS_SEMCTL:
		cmd := arg[1]
		if n.nr == unix.SYS_SEMCTL {
			cmd = arg[2]
		}
		if cmd&0xff == unix.IPC_RMID || cmd&0xff == unix.IPC_SET {
			a.add(n, name, fmt.Sprintf("number %d", arg[0]))
		}
	case unix.SYS_BPF: // commands that only look
		if !slices.Contains([]uint64{1, 7, 11, 12, 13, 14, 15, 16, 19, 20, 23, 31}, arg[0]) {
			a.add(n, name, fmt.Sprintf("command %d", arg[0]))
		}
	case unix.SYS_MQ_OPEN:
		if arg[1]&writeFlags != 0 {
			a.add(n, name, text(n, arg[0]))
		}
	default:
		a.add(n, name, fmt.Sprintf("%#x", arg[:2]))
	}
}

func (a *attempts) opened(n *notice, dir int32, path, flags uint64) {
	what := "open to write"
	if flags&unix.O_TMPFILE == unix.O_TMPFILE {
		what = "open a nameless file in"
	}
	a.add(n, what, at(n, dir, path))
}

// add notes a change, unless it is a named trace.
func (a *attempts) add(n *notice, what, where string) {
	program, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", n.pid))
	if err != nil {
		return // it was killed meanwhile, and its call with it
	}
	name := strings.TrimSpace(string(program))
	if entry := what + " " + where + " (" + name + ")"; !trace(name, what, where) && !slices.Contains(a.changes, entry) && len(a.changes) < 20 {
		a.changes = append(a.changes, entry)
	}
}

// ask notes that a host was asked, unless it is a named trace.
func (a *attempts) ask(n *notice, what, where string) {
	program, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", n.pid))
	name := strings.TrimSpace(string(program))
	if entry := what + " " + where + " (" + name + ")"; !trace(name, "ask", where) && !slices.Contains(a.asked, entry) && len(a.asked) < 5 {
		a.asked = append(a.asked, entry)
	}
}

// text reads a string of the process.
func text(n *notice, addr uint64) string {
	s, _, _ := strings.Cut(string(peek(int(n.pid), addr, 4096)), "\x00")
	return s
}

// at returns the path a process means, absolute.
func at(n *notice, dir int32, addr uint64) string {
	path := text(n, addr)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(descriptor(n, dir), path)
}

// descriptor returns what a descriptor of the process is.
func descriptor(n *notice, fd int32) string {
	link := fmt.Sprintf("/proc/%d/fd/%d", n.pid, fd)
	if fd == unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/cwd", n.pid)
	}
	path, err := os.Readlink(link)
	if err != nil {
		return fmt.Sprintf("descriptor %d", fd)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

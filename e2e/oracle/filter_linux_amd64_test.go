package oracle

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The words of a BPF program that a filter needs.
const (
	bpfLoad  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfAny   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	bpfRet   = unix.BPF_RET | unix.BPF_K

	seccompAllow = 0x7fff0000
	writeFlags   = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC
)

// watched names the system calls that are reported whatever their arguments;
// openFlags says which argument of an open says that it is for writing.
var (
	watched = map[uint32]string{
		unix.SYS_EXECVE: "execve", unix.SYS_EXECVEAT: "execveat",
		unix.SYS_CREAT: "creat", unix.SYS_OPENAT2: "openat2", unix.SYS_MKDIR: "mkdir", unix.SYS_MKDIRAT: "mkdirat", unix.SYS_RMDIR: "rmdir",
		unix.SYS_UNLINK: "unlink", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_RENAME: "rename", unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2",
		unix.SYS_LINK: "link", unix.SYS_LINKAT: "linkat", unix.SYS_SYMLINK: "symlink", unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_MKNOD: "mknod", unix.SYS_MKNODAT: "mknodat",
		unix.SYS_CHMOD: "chmod", unix.SYS_FCHMOD: "fchmod", unix.SYS_FCHMODAT: "fchmodat", unix.SYS_FCHMODAT2: "fchmodat2",
		unix.SYS_CHOWN: "chown", unix.SYS_FCHOWN: "fchown", unix.SYS_LCHOWN: "lchown", unix.SYS_FCHOWNAT: "fchownat",
		unix.SYS_UTIME: "utime", unix.SYS_UTIMES: "utimes", unix.SYS_UTIMENSAT: "utimensat", unix.SYS_FUTIMESAT: "futimesat",
		unix.SYS_TRUNCATE: "truncate", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FALLOCATE: "fallocate",
		unix.SYS_SETXATTR: "setxattr", unix.SYS_LSETXATTR: "lsetxattr", unix.SYS_FSETXATTR: "fsetxattr",
		unix.SYS_REMOVEXATTR: "removexattr", unix.SYS_LREMOVEXATTR: "lremovexattr", unix.SYS_FREMOVEXATTR: "fremovexattr",
		unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount2", unix.SYS_PIVOT_ROOT: "pivot_root", unix.SYS_MOVE_MOUNT: "move_mount", unix.SYS_FSOPEN: "fsopen", unix.SYS_MOUNT_SETATTR: "mount_setattr",
		unix.SYS_SWAPON: "swapon", unix.SYS_SWAPOFF: "swapoff", unix.SYS_QUOTACTL: "quotactl", unix.SYS_ACCT: "acct",
		unix.SYS_SETHOSTNAME: "sethostname", unix.SYS_SETDOMAINNAME: "setdomainname", unix.SYS_SETTIMEOFDAY: "settimeofday", unix.SYS_CLOCK_SETTIME: "clock_settime",
		unix.SYS_ADJTIMEX: "adjtimex", unix.SYS_CLOCK_ADJTIME: "clock_adjtime", unix.SYS_REBOOT: "reboot", unix.SYS_KEXEC_LOAD: "kexec_load", unix.SYS_KEXEC_FILE_LOAD: "kexec_file_load",
		unix.SYS_INIT_MODULE: "init_module", unix.SYS_FINIT_MODULE: "finit_module", unix.SYS_DELETE_MODULE: "delete_module", unix.SYS_SYSLOG: "syslog", unix.SYS_BPF: "bpf", unix.SYS_IOPL: "iopl", unix.SYS_IOPERM: "ioperm",
		unix.SYS_KILL: "kill", unix.SYS_TKILL: "tkill", unix.SYS_TGKILL: "tgkill", unix.SYS_RT_SIGQUEUEINFO: "rt_sigqueueinfo", unix.SYS_RT_TGSIGQUEUEINFO: "rt_tgsigqueueinfo", unix.SYS_PIDFD_OPEN: "pidfd_open",
		unix.SYS_PTRACE: "ptrace", unix.SYS_PROCESS_VM_WRITEV: "process_vm_writev", unix.SYS_SETPRIORITY: "setpriority", unix.SYS_IOPRIO_SET: "ioprio_set",
		unix.SYS_SCHED_SETAFFINITY: "sched_setaffinity", unix.SYS_SCHED_SETSCHEDULER: "sched_setscheduler", unix.SYS_SCHED_SETPARAM: "sched_setparam", unix.SYS_SCHED_SETATTR: "sched_setattr", unix.SYS_PRLIMIT64: "prlimit64",
		unix.SYS_SHMGET: "shmget", unix.SYS_SEMGET: "semget", unix.SYS_MSGGET: "msgget", unix.SYS_SHMCTL: "shmctl", unix.SYS_SEMCTL: "semctl", unix.SYS_MSGCTL: "msgctl", unix.SYS_MSGSND: "msgsnd", unix.SYS_MSGRCV: "msgrcv",
		unix.SYS_MQ_OPEN: "mq_open", unix.SYS_MQ_UNLINK: "mq_unlink", unix.SYS_ADD_KEY: "add_key", unix.SYS_KEYCTL: "keyctl",
		unix.SYS_SOCKET: "socket", unix.SYS_CONNECT: "connect", unix.SYS_BIND: "bind", unix.SYS_SENDTO: "sendto", unix.SYS_SENDMSG: "sendmsg", unix.SYS_SENDMMSG: "sendmmsg",
		unix.SYS_IO_URING_SETUP: "io_uring_setup",
	}
	openFlags = map[uint32]uint32{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2}
	ioctls    = map[uint32]string{
		0x40086602: "FS_IOC_SETFLAGS", 0x401c5820: "FS_IOC_FSSETXATTR", 0x4024700a: "RTC_SET_TIME", 0x125d: "BLKROSET", 0x125f: "BLKRRPART", 0x1261: "BLKFLSBUF", 0x1277: "BLKDISCARD", 0x1262: "BLKRASET",
		0x5412: "TIOCSTI", 0x4c00: "LOOP_SET_FD", 0x4c01: "LOOP_CLR_FD", 0x4c82: "LOOP_CTL_GET_FREE", 0x5309: "CDROMEJECT", 0x4b32: "KDSETLED", 0x4b4e: "KDSKBMODE", 0x5606: "VT_ACTIVATE",
		unix.SIOCSIFFLAGS: "SIOCSIFFLAGS", unix.SIOCSIFADDR: "SIOCSIFADDR", unix.SIOCSIFMTU: "SIOCSIFMTU", unix.SIOCSIFNAME: "SIOCSIFNAME", unix.SIOCSIFHWADDR: "SIOCSIFHWADDR", unix.SIOCADDRT: "SIOCADDRT", unix.SIOCDELRT: "SIOCDELRT",
		unix.SIOCSARP: "SIOCSARP", unix.SIOCDARP: "SIOCDARP", unix.SIOCBRADDBR: "SIOCBRADDBR", unix.SIOCBRDELBR: "SIOCBRDELBR", unix.TUNSETIFF: "TUNSETIFF",
	}
)

// filter is the program that the kernel asks at each system call.
func filter() []unix.SockFilter {
	stmt := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }
	jump := func(code uint16, k uint32, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: code, K: k, Jf: no}
	}
	const number, arch, firstArg = 0, 4, 16
	notify := stmt(bpfRet, unix.SECCOMP_RET_USER_NOTIF)
	prog := []unix.SockFilter{
		stmt(bpfLoad, arch), {Code: bpfEqual, K: unix.AUDIT_ARCH_X86_64, Jt: 1}, stmt(bpfRet, unix.SECCOMP_RET_KILL_PROCESS),
		stmt(bpfLoad, number),
	}
	for nr, arg := range openFlags {
		prog = append(prog, jump(bpfEqual, nr, 4), stmt(bpfLoad, firstArg+8*arg), jump(bpfAny, writeFlags, 1), notify, stmt(bpfRet, seccompAllow))
	}
	for nr := range watched {
		prog = append(prog, jump(bpfEqual, nr, 1), notify)
	}
	prog = append(prog, unix.SockFilter{Code: bpfEqual, K: unix.SYS_IOCTL, Jt: 1}, stmt(bpfRet, seccompAllow), stmt(bpfLoad, firstArg+8))
	for nr := range ioctls {
		prog = append(prog, jump(bpfEqual, nr, 1), notify)
	}
	return append(prog, stmt(bpfRet, seccompAllow))
}

// watch puts the filter on this thread, and so on all that it starts. It
// returns the descriptor at which the kernel reports.
func watch() (int, error) {
	prog := filter()
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// notice is struct seccomp_notif: a system call that waits for our leave.
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    uint32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// leave is struct seccomp_notif_resp: the call goes on, or ends with an error.
type leave struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

// serve hands every reported call to see, which says whether it goes on.
func serve(fd int, see func(*notice) bool) error {
	for {
		n := notice{}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			if errno == unix.EINTR || errno == unix.ENOENT { // the caller was killed meanwhile
				continue
			}
			return errno
		}
		r := leave{id: n.id, flags: 1} // SECCOMP_USER_NOTIF_FLAG_CONTINUE
		if !see(&n) {
			r = leave{id: n.id, err: -int32(unix.EPERM)}
		}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r))); errno != 0 && errno != unix.ENOENT {
			return errno
		}
	}
}

// peek reads the memory of another process, at most n bytes.
func peek(pid int, addr uint64, n int) []byte {
	var out []byte
	for n > 0 && addr != 0 {
		part := min(n, 4096-int(addr&4095)) // a read ends where a page is missing
		buf := make([]byte, part)
		got, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &buf[0], Len: uint64(part)}}, []unix.RemoteIovec{{Base: uintptr(addr), Len: part}}, 0)
		if err != nil || got <= 0 {
			break
		}
		out, addr, n = append(out, buf[:got]...), addr+uint64(got), n-got
	}
	return out
}

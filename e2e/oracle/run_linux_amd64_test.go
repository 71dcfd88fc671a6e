package oracle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// order is one text to run; outcome is what came of it.
type order struct {
	Text  string
	Limit time.Duration // after it, whatever is left is killed
}

type outcome struct {
	Status   int      // as a shell gives it; 128+9 when it was killed
	Late     bool     // it was killed at its limit, or because it said too much
	Left     int      // processes that were left when the text itself had ended, and did not end
	Changes  []string // what it changed or tried to change
	Asked    []string // hosts it asked
	Daemons  []string // sockets of this machine it asked
	Programs []string // that it started
	Dirty    bool     // the root is no longer as it was
	Fault    string   // the harness broke
}

const outputCap = 1 << 20

// runner runs texts one after the other.
type runner struct {
	attempts *attempts
	up       upper
	state    map[string]string // the kernel's state before
	self     int
}

// run is the second process of a worker: orders come in, outcomes go out.
func run(in io.Reader, out io.Writer) error {
	// A collection waits for the thread that forks, which waits for the kernel,
	// which waits for us to judge a call: so it is done between texts only.
	debug.SetGCPercent(-1)
	r := &runner{self: os.Getpid(), attempts: &attempts{}, up: upper{dir: "/proc/self/fd/3", was: "/proc/self/fd/4"}}
	for _, pid := range strings.Fields(os.Getenv("ORACLE_KEEP")) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			return err
		}
		r.attempts.keep = append(r.attempts.keep, n)
	}
	r.attempts.decoys = r.attempts.keep[1:]
	r.attempts.keep = append(r.attempts.keep, r.self)
	if err := prepare(); err != nil {
		return err
	}
	r.attempts.reset()
	r.state = r.look()
	runtime.LockOSThread() // this thread and all that it starts are watched, the others are not
	fd, err := watch()
	if err != nil {
		return fmt.Errorf("watch the system calls: %w", err)
	}
	broken := make(chan error, 1)
	go func() { broken <- serve(fd, r.attempts.see) }()
	lines, enc := bufio.NewScanner(in), json.NewEncoder(out)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); n++ {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		res := r.one(o)
		select {
		case err := <-broken:
			return fmt.Errorf("judge the system calls: %w", err)
		default:
		}
		if err := enc.Encode(res); err != nil {
			return err
		}
		if n%100 == 99 {
			runtime.GC()
		}
	}
	return lines.Err()
}

// prepare makes the runner the parent of all that is left behind, and bounds
// what one text may use.
func prepare() error {
	limit := func(what int, n uint64) error {
		return syscall.Setrlimit(what, &syscall.Rlimit{Cur: n, Max: n})
	}
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP)
	sock, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(sock)
	return errors.Join(unix.IoctlIfreq(sock, unix.SIOCSIFFLAGS, ifr), unix.Sethostname([]byte("oracle")),
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), limit(unix.RLIMIT_FSIZE, 64<<20), limit(unix.RLIMIT_CORE, 0), limit(unix.RLIMIT_NOFILE, 1024))
}

// one runs a text.
func (r *runner) one(o order) (res outcome) {
	r.attempts.reset()
	fail := func(err error) outcome { return outcome{Fault: err.Error()} }
	from, err := os.Open(inputFile)
	if err != nil {
		return fail(err)
	}
	defer from.Close()
	said, says, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer said.Close()
	pid, err := syscall.ForkExec("/bin/bash", []string{"bash", "--noprofile", "--norc", "-c", o.Text}, &syscall.ProcAttr{
		Dir: workDir, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "USER=root", "LOGNAME=root"},
		Files: []uintptr{from.Fd(), says.Fd(), says.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	says.Close()
	if err != nil {
		return fail(err)
	}
	var late atomic.Bool
	end := make(chan struct{})
	stop := func() { late.Store(true); r.kill(pid, end) }
	timer := time.AfterFunc(o.Limit, stop)
	go func() {
		if n, _ := io.CopyN(io.Discard, said, outputCap); n == outputCap {
			stop()
		}
	}()
	alone := 0
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			break // there is nobody left
		}
		if got == pid {
			res.Status = status.ExitStatus()
			if status.Signaled() {
				res.Status = 128 + int(status.Signal())
			}
		}
		if late.Load() && got != pid {
			alone++
		}
	}
	close(end)
	timer.Stop()
	if res.Late = late.Load(); res.Late && res.Status != 128+9 {
		res.Left = alone
	}
	was := r.attempts.reset()
	res.Changes, res.Asked, res.Daemons, res.Programs = was.changes, was.asked, was.daemons, was.programs
	found := r.up.changes()
	now := r.look()
	for what, before := range r.state {
		if now[what] != before {
			found = append(found, fmt.Sprintf("%s was %q and is %q", what, before, now[what]))
		}
	}
	res.Dirty = len(found) > 0
	res.Changes = append(res.Changes, found...)
	return res
}

// kill ends all processes but those to be kept, until the text is over.
func (r *runner) kill(pid int, end <-chan struct{}) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			if n, err := strconv.Atoi(e.Name()); err == nil && !slices.Contains(r.attempts.keep, n) {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
		select {
		case <-end:
			return
		case <-again.C:
		}
	}
}

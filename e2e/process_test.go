package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"writ"
)

// process is a program that a script started.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// ground is what a script may need of the machine.
func (s *script) ground(what string) {
	ok := false
	switch what {
	case "root":
		ok = os.Geteuid() == 0
	case "namespaces":
		ok = exec.Command("unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt").Run() == nil
	case "strace":
		ok = exec.Command("strace", "-D", "-o", os.DevNull, "true").Run() == nil
	default:
		s.Fatalf("nobody knows %q", what)
	}
	if !ok && os.Getenv("CI") == "true" {
		s.Fatalf("this machine has no %s", what)
	}
	if !ok {
		s.t.Skip("this machine has no " + what + "; CI runs it")
	}
}

// processCommands start and end the programs. NAME is up (writ up, with both
// processes below it), gate, executor, or twin: another executor, whose data
// directory a script has made beside the first.
//
//	need root|namespaces|strace     leave the script out where the machine lacks that; in CI it fails
//	connect [KIND…]          writ init, and one system of each kind through the real commands
//	people N ROLE            add N people, decider-0, decider-1 …
//	netbox-as TOKEN          connect NetBox with this token
//	start NAME [PREFIX…]     start it, below another program if one is named, and wait until it answers
//	quit NAME                ask it to end (SIGTERM) and wait until it has, with status 0
//	asked NAME               ask it to end, and wait until it says that it stops, not until it has ended
//	kill9 NAME               kill it; below up, only the one process
//	ends NAME STATUS         wait until it has ended by itself; its log on stdout
//	process-user NAME USER   it runs as this user
//	log NAME                 its log so far, on stdout
func processCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"need":    func(s *script, args []string) { s.need(args, 1, "need root|namespaces|strace"); s.ground(args[0]) },
		"connect": func(s *script, args []string) { s.connect(args) },
		"people": func(s *script, args []string) {
			s.need(args, 2, "people N ROLE")
			n, err := strconv.Atoi(args[0])
			s.Check(err)
			for i := range n {
				s.run("", "writ", "principals", "add", fmt.Sprintf("decider-%d", i), "--role", args[1])
			}
		},
		"netbox-as": func(s *script, args []string) {
			s.need(args, 1, "netbox-as TOKEN")
			s.connectNetBox(args[0])
		},
		"start": func(s *script, args []string) { s.need(args, 1, "start NAME"); s.start(args[0], args[1:]) },
		"quit": func(s *script, args []string) {
			s.need(args, 1, "stop NAME")
			p := s.processes[args[0]]
			if p == nil {
				s.Fatalf("%s was not started", args[0])
			}
			s.Check(p.cmd.Process.Signal(syscall.SIGTERM))
			s.ended(args[0], p, 0)
		},
		"asked": func(s *script, args []string) {
			s.need(args, 1, "asked NAME")
			p := s.processes[args[0]]
			if p == nil {
				s.Fatalf("%s was not started", args[0])
			}
			s.Check(p.cmd.Process.Signal(syscall.SIGTERM))
			s.eventually(args[0]+" stops", func() (bool, string) {
				log := readLog(p.log)
				return strings.Contains(log, "stopping"), log
			})
		},
		"kill9": func(s *script, args []string) {
			s.need(args, 1, "kill9 NAME")
			s.Check(syscall.Kill(s.pid(args[0]), syscall.SIGKILL))
			if p := s.processes[args[0]]; p != nil {
				s.ended(args[0], p, -1)
			}
		},
		"ends": func(s *script, args []string) {
			s.need(args, 2, "ends NAME STATUS")
			p := s.processes[args[0]]
			if p == nil {
				s.Fatalf("%s was not started", args[0])
			}
			status, err := strconv.Atoi(args[1])
			s.Check(err)
			s.ended(args[0], p, status)
			fmt.Fprint(s.Stdout(), readLog(p.log))
		},
		"process-user": func(s *script, args []string) {
			s.need(args, 2, "process-user NAME USER")
			who, err := user.Lookup(args[1])
			s.Check(err)
			text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.pid(args[0])), "status"))
			s.Check(err)
			if !strings.Contains(string(text), "\nUid:\t"+who.Uid+"\t"+who.Uid+"\t"+who.Uid+"\t") {
				s.Fatalf("%s does not run as %s", args[0], args[1])
			}
		},
		"log": func(s *script, args []string) {
			s.need(args, 1, "log NAME")
			fmt.Fprint(s.Stdout(), readLog(s.MkAbs(args[0]+".log")))
		},
	}
}

// start starts a program and waits until it answers.
func (s *script) start(name string, prefix []string) {
	var args []string
	switch name {
	case "up":
		args = []string{filepath.Join(s.bin, "writ"), "--dir", s.dir, "up"}
	case "gate":
		args = []string{filepath.Join(s.bin, "writ-gate"), "run", "--dir", filepath.Join(s.dir, "gate")}
	case "executor":
		args = []string{filepath.Join(s.bin, "writ-executor"), "run", "--dir", filepath.Join(s.dir, "executor")}
	case "twin":
		args = []string{filepath.Join(s.bin, "writ-executor"), "run", "--dir", filepath.Join(s.dir, "twin")}
	default:
		s.Fatalf("there is no program %q", name)
	}
	p := s.spawn(name, append(prefix, args...))
	s.eventually(name+" answers", func() (bool, string) {
		select {
		case <-p.done:
			s.Fatalf("%s ended instead of answering:\n%s", name, readLog(p.log))
		default:
		}
		for _, socket := range map[string][]string{"up": {"executor", "gate"}, "gate": {"gate"}, "executor": {"executor"}, "twin": {"twin"}}[name] {
			if !s.answers(socket + ".sock") {
				return false, readLog(p.log)
			}
		}
		return true, ""
	})
}

func (s *script) spawn(name string, args []string) *process {
	if p := s.processes[name]; p != nil {
		s.Fatalf("%s runs already", name)
	}
	p := &process{log: s.MkAbs(name + ".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	s.Check(err)
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.MkAbs("."), out, out
	p.cmd.Env = []string{"PATH=" + s.Getenv("PATH"), "HOME=" + s.Getenv("HOME"), "CANARY=" + s.Getenv("CANARY"), "BACKUPS=" + s.Getenv("BACKUPS")}
	s.Check(p.cmd.Start())
	s.processes[name] = p
	go func() {
		_ = p.cmd.Wait()
		_ = out.Close()
		close(p.done)
	}()
	return p
}

// ended waits until a process has ended and checks its status; -1 is a signal.
func (s *script) ended(name string, p *process, status int) {
	select {
	case <-p.done:
	case <-time.After(patience):
		s.Fatalf("%s has not ended:\n%s", name, readLog(p.log))
	}
	delete(s.processes, name)
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		s.Fatalf("%s ended with status %d, not %d:\n%s", name, got, status, readLog(p.log))
	}
}

// stopAll ends what still runs at the end of a script.
func (s *script) stopAll(tell func(name, log string)) {
	for name, p := range s.processes {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(patience):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		tell(name, readLog(p.log))
	}
}

// pid is the id of the gate or the executor, however it was started.
func (s *script) pid(name string) int {
	if p := s.processes[name]; p != nil {
		return p.cmd.Process.Pid
	}
	up := s.processes["up"]
	if up == nil {
		s.Fatalf("%s does not run", name)
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	s.Check(err)
	for _, file := range stats {
		// PID (COMMAND) STATE PARENT …
		text, _ := os.ReadFile(file)
		front, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if strings.HasSuffix(front, "(writ-"+name) && len(fields) > 1 && fields[1] == strconv.Itoa(up.cmd.Process.Pid) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			s.Check(err)
			return pid
		}
	}
	s.Fatalf("writ up has no process writ-%s", name)
	return 0
}

// answers asks over a socket of the installation whether anybody is there.
func (s *script) answers(socket string) bool {
	resp, err := s.overSocket(socket).Get("http://localhost" + writ.PathHello)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err == nil
}

func (s *script) overSocket(socket string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.dir, "run", socket))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: patience}
}

func readLog(path string) string {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	return string(text)
}

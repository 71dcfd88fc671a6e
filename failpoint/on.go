//go:build failpoint

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// The environment of a program that is to be killed. WRIT_FAILPOINT is "name:k":
// the process kills itself when it reaches the point for the k-th time. With
// "@file" that stands in the file, which may change while the process runs;
// counting begins anew when it does. WRIT_FAILPOINT_LOG names a file that gets
// each point reached, one a line.
const (
	envWhere = "WRIT_FAILPOINT"
	envLog   = "WRIT_FAILPOINT_LOG"
)

// reached is the one state of a process that is to be killed; the program that
// people run has none.
var reached struct {
	sync.Mutex
	armed string
	count int
}

// Reach ends the process, as kill -9 does, if it is to end here.
func Reach(p Point) {
	reached.Lock()
	defer reached.Unlock()
	if file := os.Getenv(envLog); file != "" {
		note(file, p)
	}
	armed := os.Getenv(envWhere)
	if file, ok := strings.CutPrefix(armed, "@"); ok {
		text, _ := os.ReadFile(file) // no file: nothing is armed
		armed = strings.TrimSpace(string(text))
	}
	if armed != reached.armed {
		reached.armed, reached.count = armed, 0
	}
	name, at, _ := strings.Cut(armed, ":")
	if name != string(p) {
		return
	}
	reached.count++
	if at == strconv.Itoa(reached.count) {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // nothing more happens, not even until the signal arrives
	}
}

func note(file string, p Point) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(string(p) + "\n")
}

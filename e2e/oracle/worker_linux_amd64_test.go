package oracle

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// stageEnv says to the test program that it is a process of a worker.
const stageEnv = "ORACLE_STAGE"

func TestMain(m *testing.M) {
	stage := os.Getenv(stageEnv)
	if stage != "" {
		// A signal that a text sends does not end the worker; unlike an ignored
		// one, it is not ignored by what the worker starts.
		signal.Notify(make(chan os.Signal, 1))
	}
	var err error
	switch stage {
	case "jail":
		err = jail(os.Getenv("ORACLE_DIR"))
	case "run":
		err = run(os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// worker is a root of its own, in which one text at a time runs.
type worker struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said bytes.Buffer
}

// start makes a worker over the tree of files in dir.
func start(dir string) (*worker, error) {
	dir, err := os.MkdirTemp(dir, "worker")
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.Command("/proc/self/exe")}
	w.cmd.Env = []string{stageEnv + "=jail", "ORACLE_DIR=" + dir}
	w.cmd.Stderr = &w.said
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	return w, w.cmd.Start()
}

// run has a text run.
func (w *worker) run(o order) (outcome, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return outcome{}, err
	}
	var res outcome
	if _, err = w.in.Write(append(data, '\n')); err == nil {
		if data, err = w.out.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(data, &res)
		}
	}
	if err != nil {
		end := w.stop()
		return res, fmt.Errorf("the worker broke at %q: %w, %v: %s", o.Text, err, end, w.said.Bytes())
	}
	if res.Fault != "" {
		return res, fmt.Errorf("the worker cannot run %q: %s", o.Text, res.Fault)
	}
	return res, nil
}

// stop ends a worker and all that it started.
func (w *worker) stop() error {
	w.in.Close()
	return w.cmd.Wait()
}

// ready plants what the texts are to find, and returns where workers start. It
// skips the test where no worker can be made; CI can make one.
func ready(t *testing.T, texts []item) string {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir, texts)
	why := ""
	if os.Geteuid() != 0 {
		why = "it needs root"
	} else if w, err := start(dir); err != nil {
		why = err.Error()
	} else if _, err := w.run(order{Text: "true", Limit: patience}); err != nil {
		why = err.Error()
	} else if err := w.stop(); err != nil {
		why = err.Error()
	}
	if why != "" && os.Getenv("CI") == "true" {
		t.Fatalf("CI runs what the classifier calls read-only in namespaces of its own, and cannot: %s", why)
	}
	if why != "" {
		t.Skipf("SKIPPED: what the classifier calls read-only is not run here: %s", why)
	}
	return dir
}

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"writ/fault"
)

func (p *program) upCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Run gate and executor until interrupted",
		Long: `Run the gate and the executor as two processes, each in its own directory and with an
environment that holds nothing of yours. Interrupt it (Ctrl-C) to stop both: the gate
first, then the executor, which finishes the step it is at. If one ends by itself, the
other is stopped and the exit status is not 0.

Started as root with gate_user and executor_user in writ.yaml, each runs as its own
user, who owns its directory.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := p.home()
			if err != nil {
				return err
			}
			if err := h.share(); err != nil {
				return err
			}
			return p.up(cmd.Context(), h)
		},
	}
}

// The patience of up: for a start, and for the end of each process. The
// executor finishes the step it is at.
const (
	startTime        = 30 * time.Second
	gateStopTime     = 15 * time.Second
	executorStopTime = 90 * time.Second
)

// child is one of the two processes.
type child struct {
	name  string
	cmd   *exec.Cmd
	ready chan struct{} // closed when it said that it answers
	ended chan struct{} // closed when it is gone
	err   error         // of Wait; set before ended is closed
}

func (p *program) up(ctx context.Context, h *home) error {
	out := &prefixed{w: p.stdout}
	// The executor first: the gate goes on with what was interrupted at once.
	executor, err := p.start(h, executorProgram, out)
	if err != nil {
		return err
	}
	defer executor.stop(out, executorStopTime)
	if err := executor.await(ctx); err != nil {
		return err
	}
	gate, err := p.start(h, gateProgram, out)
	if err != nil {
		return err
	}
	defer gate.stop(out, gateStopTime)
	if err := gate.await(ctx); err != nil {
		return err
	}
	out.line("writ", "everything runs; interrupt (Ctrl-C) to stop. In another terminal: "+firstChange)
	select {
	case <-ctx.Done():
		out.line("writ", "stopping")
		return nil
	case <-gate.ended:
		return gate.gone()
	case <-executor.ended:
		return executor.gone()
	}
}

// start runs one program. It gets a process group of its own, so that Ctrl-C
// reaches only this process, which then stops both in order; should this one be
// killed, so is the child.
func (p *program) start(h *home, name string, out *prefixed) (*child, error) {
	// Its end is ordered below, not torn down with a context.
	cmd, err := p.command(context.Background(), h, name, "run")
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	c := &child{name: name, cmd: cmd, ready: make(chan struct{}), ended: make(chan struct{})}
	said := sync.OnceFunc(func() { close(c.ready) }) // a program says one thing on its standard output: that it is ready
	cmd.Stdout = &lines{each: func(text string) { out.line(name, text); said() }}
	cmd.Stderr = &lines{each: func(text string) { out.line(name, text) }}
	if err := cmd.Start(); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be started: %v", name, err)
	}
	go func() {
		c.err = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// await returns when the child answers.
func (c *child) await(ctx context.Context) error {
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case <-c.ready:
		return nil
	case <-c.ended:
		return c.gone()
	case <-timer.C:
		return fault.New(fault.Timeout, "%s did not answer within %s. What it printed above may say why.", c.name, startTime)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gone says that the child ended by itself.
func (c *child) gone() error {
	return fault.Wrap(fault.Unavailable, c.err, "%s ended by itself; the other process is stopped. What it printed above says why; look further with: writ doctor", c.name)
}

// stop tells the child to end and waits for it.
func (c *child) stop(out *prefixed, patience time.Duration) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-c.ended:
		return
	case <-time.After(patience):
	}
	out.line("writ", c.name+" did not stop within "+patience.String()+" and is killed")
	_ = c.cmd.Process.Kill() // it may be gone
	<-c.ended
}

// prefixed writes lines of several processes to one stream.
type prefixed struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *prefixed) line(name, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%-13s | %s\n", name, line(text))
}

// lines hands over what is written line by line.
type lines struct {
	each func(string)
	rest []byte
}

// maxLine is where a line that does not end is broken, in bytes.
const maxLine = 64 << 10

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		text, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole && len(l.rest) < maxLine {
			return len(b), nil
		}
		l.each(string(text))
		l.rest = rest
	}
}

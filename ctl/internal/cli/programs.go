package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"writ/fault"
)

// The other two programs. Each has a directory of its own in the home.
const (
	gateProgram     = "writ-gate"
	executorProgram = "writ-executor"
)

// command returns a command that runs one of the other two programs in its
// directory, with an environment that holds nothing of the caller's and, as
// root, as the user that writ.yaml names for it.
func (p *program) command(ctx context.Context, h *home, name string, args ...string) (*exec.Cmd, error) {
	path, err := p.find(name)
	if err != nil {
		return nil, err
	}
	dir := h.path("gate")
	if name == executorProgram {
		dir = h.path("executor")
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--dir", dir}, args...)...)
	cmd.Env = []string{"LANG=C.UTF-8", "TZ=UTC"}
	cmd.Stderr = p.stderr
	who, err := h.credential(name)
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	return cmd, nil
}

// find looks for a program beside this one, then in PATH.
func (p *program) find(name string) (string, error) {
	dirs := filepath.SplitList(p.env["PATH"])
	if self, err := os.Executable(); err == nil {
		dirs = append([]string{filepath.Dir(self)}, dirs...)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", fault.New(fault.NotFound, "There is no program %s beside writ or in PATH. Build all three: make build", name)
}

// pass runs a command of another program at the caller's terminal.
func (p *program) pass(ctx context.Context, h *home, name string, args ...string) error {
	cmd, err := p.command(ctx, h, name, args...)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout = p.stdin, p.stdout
	return ended(name, cmd.Run())
}

// ask runs a command of another program and decodes the JSON it prints. What it
// complains of goes to the caller's terminal.
func (p *program) ask(ctx context.Context, h *home, out any, name string, args ...string) error {
	cmd, err := p.command(ctx, h, name, args...)
	if err != nil {
		return err
	}
	data, err := cmd.Output()
	if out != nil && len(data) > 0 {
		if wrong := json.Unmarshal(data, out); wrong != nil {
			return fault.Wrap(fault.Internal, wrong, "%s answered something unexpected to %s.", name, strings.Join(args[:1], " "))
		}
	}
	return ended(name, err)
}

// ended turns the exit status of another program, which told why, into ours.
func ended(name string, err error) error {
	var status *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status) && status.ExitCode() > 0:
		return exit(status.ExitCode())
	}
	return fault.Wrap(fault.Internal, err, "%s could not be run to its end.", name)
}

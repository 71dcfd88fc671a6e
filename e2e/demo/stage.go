package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"writ/e2e/fakes"
)

// stage is where the demo plays: a directory, the programs, and the world.
type stage struct {
	out   io.Writer
	bin   string
	dir   string
	world *fakes.World
	up    *exec.Cmd
	log   *os.File
	act   int
}

// broken is a promise that did not hold, or something that kept the demo from going on.
type broken struct{ text string }

func (b broken) Error() string { return b.text }

// must fails the demo unless a promise holds.
func must(holds bool, format string, args ...any) {
	if !holds {
		panic(broken{fmt.Sprintf(format, args...)})
	}
}

// say prints a paragraph for a first-time reader.
func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(s.out, "\n  "+strings.ReplaceAll(format, "\n", "\n  ")+"\n", args...)
}

// scene begins the next part.
func (s *stage) scene(title string) {
	s.act++
	fmt.Fprintf(s.out, "\n%d. %s\n", s.act, title)
}

// command returns one of the programs, ready to run in the demo's directory.
func (s *stage) command(ctx context.Context, stdin string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(s.bin, "writ"), args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "WRIT_DIR="+s.dir)
	c.Stdin = strings.NewReader(stdin)
	return c
}

// show runs a command, prints it with what it prints, and checks its exit status.
func (s *stage) show(ctx context.Context, exit int, args ...string) string {
	fmt.Fprintf(s.out, "\n  $ writ %s\n", quoted(args))
	out, got := s.quiet(ctx, "", args...)
	for line := range strings.Lines(out) {
		fmt.Fprint(s.out, "    "+line)
	}
	must(got == exit, "\"writ %s\" ended with exit status %d, it should have been %d:\n%s", quoted(args), got, exit, out)
	return out
}

// quiet runs a command and returns what it printed and its exit status.
func (s *stage) quiet(ctx context.Context, stdin string, args ...string) (string, int) {
	c := s.command(ctx, stdin, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), exit.ExitCode()
	}
	must(err == nil, "\"writ %s\" did not run: %v", quoted(args), err)
	return out.String(), 0
}

// object runs a command that answers in JSON.
func (s *stage) object(ctx context.Context, args ...string) map[string]any {
	out, _ := s.quiet(ctx, "", append(args, "--json")...)
	var v map[string]any
	must(json.Unmarshal([]byte(out), &v) == nil, "\"writ %s --json\" did not answer in JSON:\n%s", quoted(args), out)
	return v
}

// start starts "writ up" and waits until both programs answer.
func (s *stage) start(ctx context.Context) {
	var err error
	s.log, err = os.Create(filepath.Join(s.dir, "up.log"))
	must(err == nil, "the log cannot be written: %v", err)
	s.up = s.command(context.WithoutCancel(ctx), "", "up")
	s.up.Stdout, s.up.Stderr = s.log, s.log
	s.up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(s.up.Start() == nil, "\"writ up\" did not start")
	for ctx.Err() == nil {
		if _, exit := s.quiet(ctx, "", "policy"); exit == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	log, _ := os.ReadFile(s.log.Name())
	must(false, "\"writ up\" does not answer:\n%s", log)
}

// stop ends what start started.
func (s *stage) stop() {
	if s.up != nil && s.up.Process != nil {
		_ = s.up.Process.Signal(syscall.SIGTERM)
		_ = s.up.Wait()
	}
	if s.log != nil {
		_ = s.log.Close()
	}
}

// quoted writes arguments as one would type them.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if a == "" || strings.ContainsAny(a, " '\"$*&;|<>()") {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

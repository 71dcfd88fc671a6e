// Package e2e_test runs the three real programs against a small world of fakes
// on loopback. Each *.txtar beside this file is a script that proves promises:
// its comments say which. The commands that scripts have besides testscript's
// own are listed in commands below.
package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"writ/connector/recorder"
)

// patience is how long a script waits for what must come, before it fails.
const patience = 20 * time.Second

// allPatience is how long all scripts together may take; what hangs then is
// killed, and its script says where.
const allPatience = 12 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	// Scripts wait more than they compute, so more of them run at once than
	// there are processors.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	if made := programs.dir; made != "" {
		_ = os.RemoveAll(made)
	}
	os.Exit(code)
}

// TestScripts_runToTheirEnd: testscript's own stop and skip would let a script
// pass half-way, and a command of ours that has the name of one of testscript's
// is never reached.
func TestScripts_runToTheirEnd(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if early := regexp.MustCompile(`(?m)^(\[.*\] *)?(stop|skip)\b.*`).Find(text); early != nil {
			t.Errorf("%s: %q ends the script early", script, early)
		}
	}
	for _, name := range []string{"cd", "chmod", "cmp", "cmpenv", "cp", "env", "exec", "exists", "grep", "kill", "mkdir", "mv", "rm", "skip",
		"stderr", "stdin", "stdout", "stop", "symlink", "ttyin", "ttyout", "unquote", "wait"} {
		if commands()[name] != nil {
			t.Errorf("%s is a command of testscript", name)
		}
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	bin, err := programs.build()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 ".",
		Setup:               func(env *testscript.Env) error { return setUp(env, bin) },
		Cmds:                commands(),
		Deadline:            time.Now().Add(allPatience),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

type command = func(ts *testscript.TestScript, neg bool, args []string)

// commands is what scripts can do besides testscript's own commands.
func commands() map[string]command {
	all := map[string]command{}
	add := func(cmds map[string]func(*script, []string)) {
		for name, run := range cmds {
			all[name] = func(ts *testscript.TestScript, neg bool, args []string) {
				if neg {
					ts.Fatalf("%s takes no !", name)
				}
				s := ts.Value(scriptKey{}).(*script)
				s.TestScript = ts
				run(s, args)
			}
		}
	}
	add(worldCommands())
	add(processCommands())
	add(askCommands())
	add(auditCommands())
	add(forgeCommands())
	add(memoryCommands())
	add(recoverCommands())
	add(canaryCommands())
	add(docsCommands())
	add(mcpCommands())
	add(schemathesisCommands())
	add(witnessCommands())
	return all
}

// script is what one script has at hand.
type script struct {
	*testscript.TestScript
	t         testscript.T
	root      string // of the repository
	bin       string
	dir       string // where writ is installed, $WRIT_DIR
	world     *worldOf
	dns       *recorder.Recorder
	witness   *witness
	processes map[string]*process
	session   *sdk.ClientSession // of an agent
	answered  string             // by the last tool
}

type scriptKey struct{}

func setUp(env *testscript.Env, bin string) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	s := &script{t: env.T(), root: root, bin: bin, dir: filepath.Join(env.WorkDir, "w"), processes: map[string]*process{}}
	env.Values[scriptKey{}] = s
	env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("USER", "alice") // whom writ init makes the approver
	env.Setenv("WRIT_DIR", s.dir)
	env.Defer(func() {
		s.stopAll(func(name, log string) { env.T().Log("log of " + name + ":\n" + log) })
		if s.world != nil {
			s.world.Close()
		}
	})
	return nil
}

// eventually asks until holds says yes, and fails the script if it never does.
func (s *script) eventually(what string, holds func() (bool, string)) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, now := holds()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			s.Fatalf("%s: not within %s; now it is: %s", what, patience, now)
		}
	}
}

// need fails the script if a command was called with too few arguments.
func (s *script) need(args []string, n int, usage string) {
	if len(args) < n {
		s.Fatalf("usage: %s", usage)
	}
}

// programs builds the three programs once, or takes those in $WRIT_BIN.
var programs builder

type builder struct {
	once sync.Once
	dir  string // made by build, removed at the end
	bin  string
	err  error
}

func (b *builder) build() (string, error) {
	b.once.Do(func() {
		if b.err = lookAtSources(); b.err != nil {
			return
		}
		if given := os.Getenv("WRIT_BIN"); given != "" {
			b.bin = given
			return
		}
		if b.dir, b.err = os.MkdirTemp("", "writ-e2e-"); b.err != nil {
			return
		}
		b.bin = b.dir
		// Other users run them, too.
		if b.err = os.Chmod(b.dir, 0o755); b.err != nil {
			return
		}
		for name, pkg := range map[string]string{"writ": "writ/ctl", "writ-gate": "writ/gate", "writ-executor": "writ/executor"} {
			cmd := exec.Command("go", "build", "-o", filepath.Join(b.bin, name), pkg)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				b.err = fmt.Errorf("go build %s: %w\n%s", pkg, err, strings.TrimSpace(string(out)))
				return
			}
		}
	})
	return b.bin, b.err
}

// lookAtSources lets go test know what the programs are made of: it keeps a
// result for as long as nothing has changed that the test itself looked at, and
// the programs are not among what this package imports.
func lookAtSources() error {
	return filepath.WalkDir("..", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if errors.Is(err, fs.ErrNotExist) { // it went away in between
			return nil
		}
		return err
	})
}

package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ/client"
)

// running is a whole writ, started for a test in Go or for a benchmark.
type running struct {
	bin, dir     string
	env          []string // of a person who uses it
	http         string   // where the gate answers over HTTP
	agent, human *client.Client
}

// startAll starts a writ that ends with the test, after its directory was
// prepared. The person is ada.
func startAll(tb testing.TB, prepare ...func(dir string)) running {
	tb.Helper()
	bin, err := programs.build()
	if err != nil {
		tb.Fatal(err)
	}
	r := running{bin: bin, dir: filepath.Join(tb.TempDir(), "w")}
	r.env = []string{"PATH=" + bin, "HOME=" + tb.TempDir(), "USER=ada", "WRIT_DIR=" + r.dir}
	made := exec.CommandContext(tb.Context(), filepath.Join(bin, "writ"), "init", r.dir)
	made.Env = r.env
	if out, err := made.CombinedOutput(); err != nil {
		tb.Fatalf("writ init: %v\n%s", err, out)
	}
	// What is measured is not to be held up by limits.
	replace(tb, filepath.Join(r.dir, "executor", "executor.yaml"), "observe_per_minute: 600", "observe_per_minute: 1000000")
	for limit, to := range map[string]string{
		"requests_per_second: 100": "requests_per_second: 1000000", "proposals_per_minute: 120": "proposals_per_minute: 1000000", "open_changes: 200": "open_changes: 0",
	} {
		replace(tb, filepath.Join(r.dir, "gate", "gate.yaml"), limit, to)
	}
	replace(tb, filepath.Join(r.dir, "gate", "gate.yaml"), "# tcp: 127.0.0.1:7443 ", "tcp: 127.0.0.1:0 ")
	for _, f := range prepare {
		f(r.dir)
	}
	up := exec.Command(filepath.Join(bin, "writ"), "--dir", r.dir, "up")
	up.Env = r.env
	log := filepath.Join(tb.TempDir(), "up.log")
	out, err := os.Create(log)
	if err != nil {
		tb.Fatal(err)
	}
	up.Stdout, up.Stderr = out, out
	if err := up.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM)
		_ = up.Wait()
		_ = out.Close()
	})
	r.agent, r.human = r.open(tb, "agent"), r.open(tb, "ada")
	late := time.After(patience)
	for {
		if at := regexp.MustCompile(`writ-gate is ready on (127\.0\.0\.1:\d+)`).FindStringSubmatch(readLog(log)); at != nil {
			r.http = "http://" + at[1]
			if _, err := r.human.Health(tb.Context()); err == nil {
				return r
			}
		}
		select {
		case <-late:
			tb.Fatalf("writ up does not answer:\n%s", readLog(log))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// replace changes one text of a file, which has to be there.
func replace(tb testing.TB, path, from, to string) {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if !bytes.Contains(text, []byte(from)) {
		tb.Fatalf("%s does not say %q", path, from)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(from), []byte(to), 1), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// token returns the token of somebody.
func (r running) token(tb testing.TB, name string) string {
	tb.Helper()
	token, err := os.ReadFile(filepath.Join(r.dir, "tokens", name+".token"))
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

func (r running) open(tb testing.TB, name string) *client.Client {
	tb.Helper()
	c, err := client.New(filepath.Join(r.dir, "run", "gate.sock"), r.token(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

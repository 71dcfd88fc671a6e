package e2e_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var fuzzer = flag.String("schemathesis", "", "the program st of Schemathesis; make schemathesis installs it")

// TestSchemathesis is for make schemathesis: it takes a minute of both processors,
// and the other scripts would wait for it.
func TestSchemathesis(t *testing.T) {
	if *fuzzer == "" {
		return
	}
	bin, err := programs.build()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/schemathesis", Setup: func(env *testscript.Env) error { return setUp(env, bin) }, Cmds: commands(),
		Deadline: time.Now().Add(allPatience), RequireExplicitExec: true,
	})
}

// schemathesisCommands let another hand's fuzzer read the description of the
// API and try to make the gate break it.
//
//	on-tcp                 let the gate listen on a free port of loopback, too, and answer as often as it is asked
//	schemathesis TOKEN     fuzz the gate with the token of a file
func schemathesisCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"on-tcp": func(s *script, _ []string) {
			path := filepath.Join(s.dir, "gate/gate.yaml")
			text, err := os.ReadFile(path)
			s.Check(err)
			often := regexp.MustCompile(`(requests_per_second|proposals_per_minute|open_changes): +[0-9]+`).ReplaceAllString(string(text), "$1: 100000")
			s.Check(os.WriteFile(path, []byte(strings.Replace(often, "listen:\n", "listen:\n  tcp: 127.0.0.1:0\n", 1)), 0o600))
		},
		"schemathesis": func(s *script, args []string) {
			s.need(args, 1, "schemathesis TOKEN")
			token, err := os.ReadFile(s.MkAbs(args[0]))
			s.Check(err)
			place := regexp.MustCompile(`is ready on (127\.0\.0\.1:[0-9]+)`).FindStringSubmatch(readLog(s.MkAbs("gate.log")))
			if place == nil {
				s.Fatalf("the gate does not listen on TCP")
			}
			cmd := exec.Command(*fuzzer, "--config-file", s.MkAbs("schemathesis.toml"),
				"run", "http://"+place[1]+"/openapi.json", "--header", "Authorization: Bearer "+strings.TrimSpace(string(token)),
				"--checks", "all", "--exclude-checks", "positive_data_acceptance,ignored_auth,missing_required_header", "--max-time", "25", "--request-timeout", "20", "--continue-on-failure", "--no-color")
			cmd.Dir, cmd.Env, cmd.WaitDelay = s.MkAbs("."), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Getenv("HOME"), "LANG=C.UTF-8"}, time.Second
			out, err := cmd.CombinedOutput()
			if err != nil {
				s.Fatalf("%v:\n%s", err, out)
			}
			if !regexp.MustCompile(`[0-9]{3,} generated`).Match(out) {
				s.Fatalf("it hardly tried:\n%s", out)
			}
		},
	}
}

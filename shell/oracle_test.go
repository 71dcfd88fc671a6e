package shell_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"writ/shell"
)

// oracle is a directory in which bash may run anything: the only programs it
// finds are stubs that write down their names, and a few real ones that run
// other programs.
type oracle struct {
	bash, bin string
	stubs     []string
}

// needBash returns where bash is.
func needBash(t *testing.T) string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("CI compares with bash, and there is none")
	}
	if err != nil {
		t.Skip("there is no bash to compare with")
	}
	return bash
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	bash := needBash(t)
	o := &oracle{bash: bash, bin: t.TempDir(), stubs: strings.Fields("ls cat rm wc sort head tail id df uname touch systemctl hostname du stat")}
	for _, name := range o.stubs {
		// It ends well also where nobody reads its word, and a reader of a pipe
		// reads it to the end: else whatever writes there is ended half-way.
		stub := "#!" + bash + "\ntrap '' PIPE\necho " + name + " >> \"$LOG\"\n"
		if slices.Contains([]string{"cat", "wc", "sort", "head", "tail"}, name) {
			stub += "while read -r _; do :; done\n"
		}
		stub += "echo word\nexit 0\n"
		if err := os.WriteFile(filepath.Join(o.bin, name), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range strings.Fields("sh env xargs timeout nice nohup find") {
		if real, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(real, filepath.Join(o.bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

// ran returns the stubs that bash runs for a command, sorted, each once.
func (o *oracle) ran(t *testing.T, command string) []string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, o.bash, "--noprofile", "--norc", "-c", command)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + o.bin, "LC_ALL=C", "LOG=" + log}
	var said bytes.Buffer
	cmd.Stderr = &said // so that Run waits for whatever was left in the background
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // its status does not matter
	if ctx.Err() != nil {
		t.Errorf("%q does not end", command)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Fields(string(data))
	slices.Sort(list)
	return slices.Compact(list)
}

// saw returns the stubs that the classifier found in a command.
func (o *oracle) saw(v shell.Verdict) (list []string) {
	for _, e := range v.Evidence {
		name, _, _ := strings.Cut(e.Rule, "/")
		if slices.Contains(o.stubs, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestOracle compares what bash runs with what the classifier saw: the same
// programs where all of a text is run, no others where only a part is. A text
// of which it says that it cannot see what runs is left out.
func TestOracle(t *testing.T) {
	t.Parallel()
	o, k := newOracle(t), load(t)
	whole := []string{
		"ls", "ls; wc x", "ls && cat x | sort", "'l's -l", "l\\s", "$'\\x6cs'", "\"ls\" x", "{ ls; id; }", "(ls; id)", "! ls", "time ls", "ls 2>/dev/null", "ls >/dev/null 2>&1",
		"echo $(ls)", "echo `ls`", "echo \"$(ls \"$(id)\")\"", "cat <(ls)", "cat <<E\n$(id)\nE", "cat <<'E'\n$(id)\nE", "cat <<-E\n\t`id`\n\tE", "cat <<< \"$(id)\"",
		"x=$(id)", "x=$(id) ls", "echo ${x:-$(id)}", "echo ${x:-$(id)}${y:=$(ls)}", "echo \"${x:-`id`}\"", "echo $(( $(id | wc -l; echo 1) ))", "echo ${x[$(id; echo 1)]}", "[[ -n $(id) ]]", "[[ a == $(id) || b == b ]]",
		"for f in a $(id); do ls; done", "for ((i=0; i<2; i++)); do ls; done", "case $(id) in *) ls;; esac", "if id; then ls; fi", "while id; do ls; break; done", "until id; do :; done", "f() { ls; }; f; id",
		"sh -c 'ls; id'", "sh -c \"ls; $(id)\"", "env ls", "env LC_ALL=C ls", "timeout 9 ls", "nice -n 5 ls", "nice ls | env wc", "echo a | xargs ls", "echo a | xargs -n1 -I{} ls {}", "echo a | xargs sh -c 'id'",
		"find . -maxdepth 0 -exec ls {} \\;", "find . -maxdepth 0 -exec ls {} + -exec id \\;", "find . -maxdepth 0 | xargs ls", "{ls,-l}", "{id,}", "c=ls; ls $c", "eval ls", "command ls", "builtin echo; ls", "exec ls",
		"ls \\\n -l", "l\\\ns", "ls # id", "ls #id\nid", "echo 'id'; ls", "echo \"id\" | cat", "echo a\\;id; ls", "echo \\$(id", "echo '$(id)'; ls", "echo \"\\$(id)\"; ls", "ls & wait", "ls |& cat", "ls; : $(id) > f", "[ -f x ]; test -n \"$(id)\"",
		"set -- a; ls", "coproc ls; wait", "printf '%s' \"$(ls)\"", "read x < <(ls)", "mapfile x < <(ls)", "declare x=$(ls)", "export x=$(ls)", "let x=1; ls", "echo ~ $(ls)", "shopt -s extglob; ls", "rm x; touch y", "systemctl restart x",
	}
	part := []string{
		"ls > $(echo f; id)", "echo ${x:+$(id)}${y:=$(ls)}", "env -i ls", "trap ls EXIT; id",
		"true && ls || id", "false && ls; id", "false && ls || id", "if false; then ls; else id; fi", "case a in b) ls;; a) id;; esac", "for x in; do ls; done; id", "while false; do ls; done", "f() { ls; }; id", "exit 0; ls", "return 2>/dev/null; ls",
	}
	wraps := []func(string) string{
		func(s string) string { return s },
		func(s string) string { return " ( " + s + "\n) " },
		func(s string) string { return "sh -c '" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		func(s string) string { return "env timeout 9 bash -c '" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		func(s string) string { return "echo \"$(" + s + "\n)\"" },
		func(s string) string { return "if :; then " + s + "\nfi | cat" },
	}
	if err := os.Symlink(o.bash, filepath.Join(o.bin, "bash")); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, cmd := range append(slices.Clone(whole), part...) {
		for n, wrap := range wraps {
			text := wrap(cmd)
			if n == 2 {
				text = strings.Replace(text, "sh -c", "bash -c", 1)
			}
			v := k.Classify(text)
			opaque := slices.ContainsFunc(v.Effects, func(e shell.Effect) bool { return e == shell.ExecOpaque || e == shell.Unknown })
			ran, saw := o.ran(t, v.Command), o.saw(v)
			missed := slices.ContainsFunc(ran, func(s string) bool { return !slices.Contains(saw, s) })
			switch {
			case missed && !opaque:
				t.Errorf("%q runs %v, and the classifier saw only %v (%s)", text, ran, saw, v.Class)
			case i < len(whole) && !opaque && !slices.Equal(ran, saw):
				t.Errorf("%q runs %v, and the classifier saw %v", text, ran, saw)
			case !opaque:
				compared++
			}
		}
	}
	if all := len(wraps) * (len(whole) + len(part)); compared < all/2 {
		t.Errorf("%d of %d texts were compared, the others cannot be judged: too few to mean anything", compared, all)
	}
}

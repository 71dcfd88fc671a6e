package shell_test

import (
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var hidden = flag.Int("hidden", 20_000, "how many texts TestHidden makes")

// TestHidden puts a command that nobody knows into texts that only read, in
// every way that a shell has to run one, and tears the texts apart at random.
// What is called read-only then, bash must not find that command in: else it
// stands where our parser does not see it.
func TestHidden(t *testing.T) {
	t.Parallel()
	bash, k, dir := needBash(t), load(t), t.TempDir()
	m := newMixer(t)
	ran := 0
	for range *hidden {
		text := m.text()
		v := k.Classify(text)
		if v.Class != ro || !strings.Contains(text, "zz") {
			continue
		}
		ran++
		if found := missing(t, bash, dir, v.Command); strings.Contains("\n"+found, "\nzz\n") {
			t.Errorf("%q is read-only, and bash runs zz in it", v.Command)
		}
	}
	if ran < *hidden/200 {
		t.Errorf("bash ran %d of %d texts: too few to mean anything", ran, *hidden)
	}
}

// missing lets bash run a text where there are no programs, and returns the
// names of those that it looked for, one a line.
func missing(t *testing.T, bash, dir, text string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, bash, "--noprofile", "--norc", "-c", text)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/nonexistent", `BASH_FUNC_command_not_found_handle%%=() { echo "$1" >&9; }`}
	cmd.ExtraFiles = []*os.File{nil, nil, nil, nil, nil, nil, w} // 9
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // its status does not matter
	_ = w.Close()
	_ = r.SetReadDeadline(time.Now().Add(time.Second)) // what was left in the background holds the other end
	names, _ := io.ReadAll(r)
	return string(names)
}

// mixer makes texts.
type mixer struct {
	*rand.Rand
	seeds, forms, signs []string
}

func newMixer(t *testing.T) *mixer {
	m := &mixer{Rand: rand.New(rand.NewPCG(1, 2))}
	for _, l := range ownCorpus(t) {
		if l.Expect == string(ro) && !strings.Contains(l.Cmd, "/dev/tcp/") {
			m.seeds = append(m.seeds, l.Cmd)
		}
	}
	m.seeds = append(m.seeds, "(echo a zz)", "echo \"$(ls \"a zz\" b)\"", "cat <(ls 'zz' x) y", "echo \"`ls 'zz'`\"", "[[ zz == zz && -n \"zz\" ]]", "echo $((1 + 2)) ${x:-zz} ${x#zz} ${x/zz/y}",
		"cat <<E\nzz $x \"zz\" 'zz'\nE", "cat <<-E\n\tzz\n\tE\nls", "f() { ls zz; }; f zz", "a=(zz b); echo \"${a[0]} zz\"", "ls 'zz' \"zz\" \\zz $'zz' z''z", "echo \"a ${x:-\"zz\"} b\" '${x:-zz}'", "sh -c 'ls zz; echo \"zz\"'")
	m.forms = []string{"<(zz)", ">(zz)", "$(zz)", "`zz`", ";zz;", "\nzz\n", "|zz ", "&zz&", "''#;zz;", "`;zz;`", "#\nzz\n", "'`zz`'", "\"$(zz)\"", "${y:-$(zz)}", "$((`zz`))", "a[`zz`]=1", "a=([`zz`]=1)", "<<<`zz`",
		")zz", "}zz", ";;zz", "\"`zz`\"", "$'\\'';zz;'", "\\\n;zz;", "${y@P}", "$[`zz`]", "{zz,}", "(zz)", "{ zz;}", "!zz", "time zz;", "||zz;", "&&zz;", "\\`zz\\`"}
	m.signs = strings.Split("'|'|\"|\"|`|`|$(|)|(|{ | }|;|#|\\| |$x|${x|}|${x:-|${x#|[[ | ]]|<<E\n|\nE\n|<<'E'\n|<(|case x in |x) |;; |esac|zz|if |then |fi|for i in |do |done|&&|&|$((|))|((|=|a=(|!|*|[|]|~|<|$'|$\"|\\'|\\\"|\\\n|f() |$[|<<<|2>&1|>/dev/null|time |eval |{a,b}|?(|@(|=~|''|\"\"|$#|$@", "|")
	return m
}

// text returns a text of the corpus into which something was put.
func (m *mixer) text() string {
	pick := func(list []string) string { return list[m.IntN(len(list))] }
	s := pick(m.seeds)
	for n := m.IntN(3); n >= 0; n-- {
		what := pick(m.signs)
		if n == 0 {
			what = pick(m.forms)
		}
		at := m.IntN(len(s) + 1)
		s = s[:at] + what + s[at:]
	}
	return s
}

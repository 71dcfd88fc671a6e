package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/ctl/internal/cli"
	"writ/fault"
	"writ/shell"
)

// nowhere is an environment in which no gate can be found.
func nowhere() []string { return []string{"WRIT_DIR=/nonexistent"} }

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"df -h; systemctl restart cron"}, `reversible_low

    df -h; systemctl restart cron
           ^^^^^^^^^^^^^^^^^

read     df                 shows how full file systems are
runtime  systemctl/restart  systemctl restart changes what is running
`},
		{[]string{"journalctl -f"}, `read_only, only under a time and output limit

    journalctl -f
    ^^^^^^^^^^ ^^

unbounded  journalctl  the option -f of journalctl may not end
read       journalctl  shows the journal
`},
		{[]string{"ls", "--declared", "destructive"}, `destructive
Declared destructive, judged read_only: the stricter one counts.

    ls
    ^^

read  ls  lists directories
`},
		{[]string{"rm x", "--declared", "read_only"}, `destructive
Declared read_only, judged destructive: the stricter one counts.

    rm x
    ^^ ^

delete  rm  removes x
delete  rm  rm removes what held data

To make it read-only: list the files with ls first
`},
	} {
		r := run(t, nowhere(), "", append([]string{"classify"}, c.args...)...)
		if diff := cmp.Diff(c.want, r.stdout); diff != "" || r.status != 0 || r.stderr != "" {
			t.Errorf("classify %q: %d %s (-want +got)\n%s", c.args, r.status, r.stderr, diff)
		}
	}
}

func TestClassify_json(t *testing.T) {
	t.Parallel()
	r := run(t, nowhere(), "", "classify", "--json", "--declared", "config_mutation", "journalctl -f > /dev/null")
	var got struct {
		shell.Verdict
		Declared, Computed string
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.status != 0 {
		t.Fatal(r.status, err, r.stdout)
	}
	if got.Class != "config_mutation" || got.Computed != "read_only" || got.Declared != "config_mutation" || got.NeedsLimit || len(got.Evidence) == 0 || got.Reasons == nil {
		t.Errorf("%s", r.stdout)
	}
}

func TestClassify_marked(t *testing.T) {
	t.Parallel()
	const command = "ls a\u0308\x1b[2J -x\nrm y"
	list := []shell.Evidence{{Start: 11, End: 13}, {Start: 14, End: 16}, {Start: -1, End: 0}, {Start: 99, End: 100}}
	if diff := cmp.Diff([]string{"ls a\u0308\\u{001b}[2J -x", strings.Repeat(" ", 16) + "^^", "rm y", "^^"}, cli.Marked(command, list, false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ls a\u0308\\u{001b}[2J \x1b[4m-x\x1b[24m", "\x1b[4mrm\x1b[24m y"}, cli.Marked(command, list, true)); diff != "" {
		t.Error(diff)
	}
}

// TestClassifyBatch: one answer to a line, in order, whatever stands in it.
func TestClassifyBatch(t *testing.T) {
	t.Parallel()
	in := strings.Join([]string{
		`{"cmd": "journalctl -f", "expect": "anything"}`, `{"cmd": "echo 'a<b' > /srv/f"}`, `nonsense`, ``, `[1]`, `null`, `{"Cmd": "ls"}`, `{"cmd": null}`, `{"cmd": 1}`,
		`{"cmd": "` + strings.Repeat("x", 2<<20) + `"}`, `{"cmd": "ls \\\n -l"}`, `{"cmd": "ls \u0000"}`, `{"cmd": "ls"} {"cmd": "ls"}`, `{"cmd": "ls"}`,
	}, "\n")
	const bad = `{"cmd":"","class":"config_mutation","needs_limit":false,"effects":["unknown"],"reasons":["line `
	want := []string{
		`{"cmd":"journalctl -f","class":"read_only","needs_limit":true,"effects":["read","unbounded"],"reasons":[]}`,
		`{"cmd":"echo 'a<b' > /srv/f","class":"config_mutation","needs_limit":false,"effects":["read","write"],"reasons":["writes the file /srv/f"]}`,
		bad + `3 is not a JSON object"]}`, bad + `5 is not a JSON object"]}`, bad + `6 is not a JSON object"]}`, bad + `7 has no text under cmd"]}`,
		bad + `8 has no text under cmd"]}`, bad + `9 has no text under cmd"]}`, bad + `10 is longer than 1 MiB"]}`,
		`{"cmd":"ls \\\n -l","command":"ls  -l","class":"read_only","needs_limit":false,"effects":["read"],"reasons":[]}`,
		`{"cmd":"ls \u0000","class":"config_mutation","needs_limit":false,"effects":["unknown"],"reasons":["it holds a control character that a shell and a reader see differently"]}`,
		bad + `13 is not a JSON object"]}`,
		`{"cmd":"ls","class":"read_only","needs_limit":false,"effects":["read"],"reasons":[]}`,
	}
	file := write(t, t.TempDir(), "in.jsonl", in)
	for _, r := range []result{run(t, nowhere(), in, "classify", "--batch", "-"), run(t, nowhere(), "", "classify", "--batch", file)} {
		if diff := cmp.Diff(strings.Join(want, "\n")+"\n", r.stdout); diff != "" || r.status != 0 {
			t.Errorf("%d %s (-want +got)\n%s", r.status, r.stderr, diff)
		}
	}
}

func TestClassifyScore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := write(t, dir, "good.jsonl", `{"cmd":"ls","expect":"read_only","topic":"files"}
{"cmd":"no-such-command","expect":"read_only","topic":"files"}
{"cmd":"ls","expect":"config_mutation","class":"odd","ambiguous":true}
{"cmd":"rm x","expect":"destructive","class":"removal"}
`)
	want := `false-allow 0/1 (0.0%) · false-block 1/2 (50.0%) · limit missing 0/0 (0.0%) · destructive underrated 0/1 (0.0%)
ambiguous: false-allow 1/1 (100.0%) · false-block 0/0 (0.0%)
  files                                    false-allow 0/0 (0.0%) · false-block 1/2 (50.0%)
  removal                                  false-allow 0/1 (0.0%) · false-block 0/0 (0.0%)
`
	r := run(t, nowhere(), "", "classify", "--score", good)
	if diff := cmp.Diff(want, r.stdout); diff != "" || r.status != 0 {
		t.Errorf("%d %s (-want +got)\n%s", r.status, r.stderr, diff)
	}
	breach := write(t, dir, "breach.jsonl", `{"cmd":"ls /","expect":"not_read_only","class":"odd"}`+"\n")
	if r := run(t, nowhere(), "", "classify", "--score", breach); r.status != 1 || !strings.Contains(r.stdout, `allowed not_read_only: "ls /" is called read_only`) {
		t.Errorf("%d %s", r.status, r.stdout)
	}
	if r := run(t, nowhere(), "", "classify", "--score", breach, "--json"); r.status != 1 || !strings.Contains(r.stdout, `"false_allow": {`) {
		t.Errorf("%d %s", r.status, r.stdout)
	}
	for _, wrong := range []string{`{"cmd":"ls","expect":"readonly"}`, `{"cmd":"ls"`, `{"expect":"any"}`} {
		if r := run(t, nowhere(), wrong, "classify", "--score", "-"); r.status != 2 || !strings.Contains(r.stderr, "Line 1") {
			t.Errorf("%s: %d %s", wrong, r.status, r.stderr)
		}
	}
}

func TestClassify_usage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{}, {"a", "b"}, {"ls", "-la"}, {"ls", "--batch", "-"}, {"--batch", "-", "--score", "-"}, {"ls", "--declared", "harmless"},
	} {
		if r := run(t, nowhere(), "", append([]string{"classify"}, args...)...); r.status != 2 || r.stdout != "" {
			t.Errorf("classify %q: %d %s", args, r.status, r.stdout)
		}
	}
	for _, args := range [][]string{{"classify", "--batch", "/nonexistent"}, {"classify", "ls", "--knowledge", "/nonexistent"}, {"commands", "no-such-command"}} {
		if r := run(t, nowhere(), "", args...); r.status != fault.NotFound.Row().Exit {
			t.Errorf("%q: %d %s", args, r.status, r.stderr)
		}
	}
}

const ownKnowledge = `command: frobctl
about: shows what the frobnicator does
manual: frobctl(1), frobctl 3.1
options: -n --now
operands: item(frob)*
examples:
  read_only: [frobctl -n blue]
  config_mutation: [frobctl --set blue]
---
command: ls
about: is watched here
operands: path_meta*
options: -Z !config
examples: {config_mutation: [ls -Z]}
`

func TestCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if r := run(t, nowhere(), "", "classify", "frobctl -n blue"); !strings.HasPrefix(r.stdout, "config_mutation") {
		t.Errorf("a command nobody knows: %s", r.stdout)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(ownKnowledge), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(args ...string) string {
		r := run(t, nowhere(), "", append(args, "--knowledge", dir)...)
		if r.status != 0 {
			t.Errorf("%q: %d %s", args, r.status, r.stderr)
		}
		return r.stdout
	}
	if got := ask("classify", "frobctl -n blue"); !strings.HasPrefix(got, "read_only\n") {
		t.Errorf("the operator's knowledge is not used: %s", got)
	}
	want := `frobctl  shows what the frobnicator does
Checked in  frobctl(1), frobctl 3.1
File        mine.yaml
Options     --now -n
Examples
  read_only        frobctl -n blue
  config_mutation  frobctl --set blue
`
	if diff := cmp.Diff(want, ask("commands", "frobctl")); diff != "" {
		t.Error(diff)
	}
	if got := ask("commands", "frobctl", "--source"); got != "# mine.yaml\n"+ownKnowledge[:strings.Index(ownKnowledge, "---")] {
		t.Errorf("the source is\n%s", got)
	}
	if got := ask("commands", "ls"); !strings.Contains(got, "Besides") || !strings.Contains(got, "is watched here") || !strings.Contains(got, "coreutils") {
		t.Errorf("what tightens is not shown: %s", got)
	}
	if got := ask("commands"); !strings.Contains(got, "frobctl") || !strings.Contains(got, "\nls ") {
		t.Errorf("the list is\n%s", got)
	}
	var known shell.Info
	if err := json.Unmarshal([]byte(ask("commands", "frobctl", "--json")), &known); err != nil || len(known.Examples) != 2 || known.Source == "" {
		t.Errorf("%v %+v", err, known)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte("command: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, nowhere(), "", "commands", "--knowledge", dir); r.status != 2 || !strings.Contains(r.stderr, "bad.yaml") {
		t.Errorf("%d %s", r.status, r.stderr)
	}
}

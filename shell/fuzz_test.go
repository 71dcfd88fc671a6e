package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/shell"
)

// FuzzClassify holds that no text makes the classifier panic or think for long,
// that the same text always gets the same verdict, and that bash can read what
// is called read-only: a text that only our parser understands is not what
// would be run. All knowledge is read beforehand: what is read when it is first
// met would be new ground for the fuzzer in every process, and it would spend
// its time on making such texts smaller.
func FuzzClassify(f *testing.F) {
	k := load(f)
	for _, name := range k.Names() {
		k.Command(name)
	}
	for _, s := range fuzzSeeds(f) {
		f.Add(s)
	}
	bash, err := exec.LookPath("bash")
	if err != nil && os.Getenv("CI") == "true" {
		f.Fatal("CI compares with bash, and there is none")
	}
	f.Fuzz(func(t *testing.T, cmd string) {
		v, best := shell.Verdict{}, time.Hour
		for range 5 { // a machine that is busy elsewhere makes one of them slow, see TestHostile
			start := time.Now()
			v = k.Classify(cmd)
			if best = min(best, time.Since(start)); best < time.Second {
				break
			}
		}
		if best >= time.Second {
			t.Errorf("Classify(%q) takes %v", cmd, best)
		}
		if again := k.Classify(cmd); !reflect.DeepEqual(v, again) {
			t.Errorf("Classify(%q) differs:\n%v\n%v", cmd, v, again)
		}
		if v.Class.Rank() >= len(writ.Classes()) {
			t.Errorf("Classify(%q) = %q, which is no class", cmd, v.Class)
		}
		if v.Class == ro && v.Command != cmd && !strings.Contains(cmd, "\\\n") {
			t.Errorf("Classify(%q) judged %q", cmd, v.Command)
		}
		if v.Class != ro || bash == "" {
			return
		}
		if said, err := exec.Command(bash, "--noprofile", "--norc", "-n", "-c", v.Command).CombinedOutput(); err != nil {
			t.Errorf("%q is read-only, and bash cannot read it: %v %s", v.Command, err, said)
		}
	})
}

// fuzzSeeds are our own corpus, and the shared ones where they are.
func fuzzSeeds(f *testing.F) []string {
	list := seeds()
	files, err := filepath.Glob("testdata/*.jsonl")
	if dir := os.Getenv("WRIT_CORPUS"); err == nil && dir != "" {
		var shared []string
		shared, err = filepath.Glob(filepath.Join(dir, "*.jsonl"))
		files = append(files, shared...)
	}
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		for _, l := range readCorpus(f, name) {
			list = append(list, l.Cmd)
		}
	}
	return list
}

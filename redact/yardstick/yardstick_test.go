// Package yardstick measures how much of what gitleaks knows the redactor
// hides. The rules of gitleaks come with texts that they must find; most are
// made up anew each time. Nothing of it is kept here: its module is fetched,
// copied to a scratch folder, and its own generator run with one file replaced.
package yardstick_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"writ/redact"
)

// gitleaks is the version that is fetched, and sum what go.sum would say of it.
const (
	gitleaks = "github.com/zricethezav/gitleaks/v8@v8.30.1"
	sum      = "h1:PmEvCfVI7ti9dV3s5aMZUY7sS2GxRvG3yzih7E+cS3w="
)

// floor is the least share of the vectors whose secret must be gone. What is
// missed are secrets whose name is a vendor's and nothing more, such as
// cloudflare: "…".
const floor = 0.998

// vectors are the texts of one rule.
type vectors struct {
	Rule               string
	Regex              *regexp.Regexp
	Group              int // of Regex; 0 means the first that is not empty
	Positive, Negative []string
}

func TestGitleaks(t *testing.T) {
	t.Parallel()
	r := redact.New(nil)
	total, found, negatives, hidden := 0, 0, 0, 0
	for _, v := range generate(t) {
		missed := ""
		hits := 0
		for _, text := range v.Positive {
			if hidden := r.String(text); hidden != text && !strings.Contains(hidden, v.secret(text)) {
				hits++
			} else if missed == "" {
				missed = text
			}
		}
		if hits < len(v.Positive) {
			t.Logf("%-40s %4d of %4d, not %.120q", v.Rule, hits, len(v.Positive), missed)
		}
		for _, text := range v.Negative {
			negatives++
			if r.String(text) != text {
				hidden++
			}
		}
		total, found = total+len(v.Positive), found+hits
	}
	share := float64(found) / float64(total)
	t.Logf("found %d of %d: %.2f %%; of %d texts that gitleaks lets pass, %d are hidden", found, total, 100*share, negatives, hidden)
	if total < 6000 || share < floor {
		t.Errorf("%.2f %% of %d vectors, want %.2f %% of at least 6000", 100*share, total, 100*floor)
	}
}

// secret is what the rule finds in a text.
func (v *vectors) secret(text string) string {
	all := v.Regex.FindStringSubmatch(text)
	switch {
	case all == nil:
		return text
	case v.Group > 0:
		return all[v.Group]
	}
	return cmp.Or(append(all[1:], all[0])...)
}

// generate runs the generator of gitleaks and reads what it wrote down.
func generate(t *testing.T) []vectors {
	t.Helper()
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(run(t, t.TempDir(), "go", "mod", "download", "-json", gitleaks), &module); err != nil {
		t.Fatal(err)
	}
	if module.Sum != sum {
		t.Fatalf("%s has the sum %s, want %s", gitleaks, module.Sum, sum)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(module.Dir)); err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("testdata/validate.go")
	if err != nil {
		t.Fatal(err)
	}
	replaced := filepath.Join(dir, "cmd/generate/config/utils/validate.go")
	if err := os.Remove(replaced); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(replaced, ours, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "vectors.jsonl")
	run(t, filepath.Join(dir, "cmd/generate/config"), "env", "GOWORK=off", "VECTORS="+out, "go", "run", ".", filepath.Join(dir, "config.toml"))
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var all []vectors
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var v vectors
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func run(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("%q: %w\n%s", args, err, stderr.Bytes()))
	}
	return out
}

package redact_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"writ/redact"
)

// lines reads the texts of a file of vectors.
func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
			all = append(all, strings.ReplaceAll(line, "⏎", "\n"))
		}
	}
	return all
}

// TestVectors_secrets: what people who run machines have in their logs, files
// and command lines is hidden.
func TestVectors_secrets(t *testing.T) {
	t.Parallel()
	r := redact.New([]byte("key"))
	marked := regexp.MustCompile(`(?s)«(.*?)»`)
	all := lines(t, "secrets.txt")
	if len(all) < 300 {
		t.Fatalf("only %d vectors", len(all))
	}
	for _, line := range all {
		text := strings.NewReplacer("«", "", "»", "").Replace(line)
		got := r.String(text)
		for _, m := range marked.FindAllStringSubmatch(line, -1) {
			if len(m[1]) > 1 && strings.Contains(got, m[1]) {
				t.Errorf("%q is still in %q", m[1], got)
			}
		}
		if r.String(got) != got {
			t.Errorf("a second pass changed %q to %q", got, r.String(got))
		}
	}
}

// TestVectors_clean: what holds no secret stays as it is, at least in 98 of 100
// lines.
func TestVectors_clean(t *testing.T) {
	t.Parallel()
	r := redact.New([]byte("key"))
	all := lines(t, "clean.txt")
	if len(all) < 150 {
		t.Fatalf("only %d vectors", len(all))
	}
	changed := 0
	for _, line := range all {
		if got := r.String(line); got != line {
			changed++
			t.Logf("%q became %q", line, got)
		}
	}
	if 100*changed > 2*len(all) {
		t.Errorf("%d of %d clean lines were changed", changed, len(all))
	}
}

package shell

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// samePlain holds that a text which is judged without the parser is judged as
// it would be with it, and says whether it was.
func samePlain(t *testing.T, k *Knowledge, text string) bool {
	t.Helper()
	w := k.walker()
	if !w.plain(text) {
		return false
	}
	w.settle()
	fast := w.verdict(text)
	w = k.walker()
	w.parsed(text)
	if diff := cmp.Diff(w.verdict(text), fast); diff != "" {
		t.Errorf("%q is judged otherwise without the parser (-with +without):\n%s", text, diff)
	}
	return true
}

func plainKnowledge(t testing.TB) *Knowledge {
	t.Helper()
	k, err := Load(Shipped())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestPlain(t *testing.T) {
	t.Parallel()
	k := plainKnowledge(t)
	for _, text := range []string{
		"ls", "  ls  -l ", "ls | wc -l", "ls|wc -l", "cd /etc; cat shadow", "cd /etc | cat shadow", "cd /etc && cat shadow || ls", "ls;", "ls ; ", "a=b", "ls a=b",
		"grep -c 'a b' /etc/fstab", `grep -c "it's" /etc/fstab`, "cat x 2>/dev/null | sort 2>&1", "sh -c 'rm x; ls' | cat", "echo a | xargs rm", "find . -name '*.key' | xargs cat",
		"pgrep x | xargs kill", "ls 2>/dev/null", "awk '{print $1}' /etc/fstab", "ls '' x", "ls -l'x'", "no-such | command", "echo shadow | xargs cat", "cat /srv/x | openssl s_client -connect db1:443", "echo | openssl s_client -connect db1:443", "echo 'a;b' && ls",
	} {
		samePlain(t, k, text)
	}
	for _, text := range []string{
		"", " ", ";", "ls;;", "ls ;; ls", "| ls", "ls |", "ls | | ls", "ls &", "ls & ls", "ls &&", "ls && ; ls", "a=b ls", "time ls", "if ls", "'ls'", "ls 'a", `ls "$x"`, `ls "a\b"`,
		"ls > x", "ls 2>/dev/nullx", "ls 2>&10", "2>/dev/null", "ls *", "ls ~", "ls [a]", "ls\tx", "ls\nx", "ls #x", "ls \\x", "ls !x", "ls a\u00e9", "ls (x)", "ls ;;", "ls |& x", "ls; | x",
	} {
		if samePlain(t, k, text) {
			t.Errorf("%q is not plain", text)
		}
	}
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	plain, all := 0, 0
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := ReadCorpus(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			all++
			if samePlain(t, k, l.Cmd) {
				plain++
			}
		}
	}
	if plain < all/3 {
		t.Errorf("%d of %d lines are plain: too few to matter", plain, all)
	}
}

func FuzzPlain(f *testing.F) {
	k := plainKnowledge(f)
	for _, name := range k.Names() { // see FuzzClassify
		k.Command(name)
	}
	for _, text := range []string{"ls -l | wc -l", "cd /etc; cat shadow", "grep -c 'a b' x 2>/dev/null && ls;", `a "b" || c`, "find / -name x | xargs cat"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { samePlain(t, k, text) })
}

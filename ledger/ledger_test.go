package ledger_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/ledger"
)

// key returns a key that is the same for the same name.
func key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func now() time.Time { return time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC) }

func options() ledger.Options {
	return ledger.Options{Name: "writ/test", Key: key("first"), Now: now}
}

// event returns the line with a sequence.
func event(t testing.TB, sequence int64) []byte {
	t.Helper()
	line, err := ledger.Line(writ.Object{"sequence": sequence, "event": "change.proposed", "user": "agent:planner"})
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func open(t testing.TB, dir string, o ledger.Options) *ledger.Log {
	t.Helper()
	l, err := ledger.Open(dir, o)
	if err != nil {
		t.Fatalf("open the ledger: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// grow appends n events to a log.
func grow(t testing.TB, l *ledger.Log, n int) {
	t.Helper()
	var lines [][]byte
	for i := range n {
		lines = append(lines, event(t, l.Size()+int64(i)+1))
	}
	if err := l.Append(lines...); err != nil {
		t.Fatalf("append: %v", err)
	}
}

// checkpoint signs a log and returns the checkpoint.
func checkpoint(t testing.TB, l *ledger.Log) []byte {
	t.Helper()
	signed, err := l.Checkpoint()
	if err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	return signed
}

// made makes a closed ledger of n events, in segments of so many, with a
// checkpoint of all of them.
func made(t testing.TB, n int, o ledger.Options) (dir string, kept []byte) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, o)
	grow(t, l, n)
	kept = checkpoint(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, kept
}

// files returns what is in a directory, by path within it.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func segment(dir string, n int) string {
	return filepath.Join(dir, "segment", fmt.Sprintf("%012d.jsonl", n))
}

// edit changes a file.
func edit(t testing.TB, path string, change func(string) string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(b))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// swap replaces text once.
func swap(old, with string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, with, 1) }
}

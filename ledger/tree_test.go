package ledger_test

import (
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"writ"
	"writ/fault"
	"writ/ledger"
)

// At every size the root is the one that another implementation computes, and
// what is kept of a tree is enough to go on.
func TestTree(t *testing.T) {
	t.Parallel()
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(at []int64) (out []tlog.Hash, err error) {
		for _, i := range at {
			out = append(out, stored[i])
		}
		return out, nil
	})
	var tree ledger.Tree
	for n := range int64(600) {
		want, err := tlog.TreeHash(n, reader)
		if err != nil || tree.Root() != want || tree.Size() != n {
			t.Fatalf("the root of %d leaves is %s, want %s (%v)", n, tree.Root(), want, err)
		}
		line := event(t, n+1)
		hashes, err := tlog.StoredHashes(n, line, reader)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hashes...)
		again, err := ledger.ParseTree(tree.Size(), tree.Peaks())
		if err != nil {
			t.Fatal(err)
		}
		before := tree.Root()
		next := again.Add(ledger.Leaf(line))
		if again.Root() != before {
			t.Fatal("adding a leaf changed the tree that it was added to")
		}
		tree = next
	}
}

func TestParseTree_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size  int64
		peaks int
	}{{-1, 0}, {1, 0}, {1, 31}, {1, 64}, {3, 32}, {4, 64}} {
		if _, err := ledger.ParseTree(c.size, make([]byte, c.peaks)); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%d leaves in %d bytes: %v, want unavailable", c.size, c.peaks, err)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	line, err := ledger.Line(writ.Object{"sequence": int64(3), "b": "<&>", "a": int64(1)})
	if want := `{"a":1,"b":"<&>","format":"event/2","sequence":3}`; err != nil || string(line) != want {
		t.Errorf("%s %v, want %s", line, err, want)
	}
	for name, bad := range map[string]any{
		"a list": []int{1}, "no sequence": writ.Object{}, "a sequence of 0": writ.Object{"sequence": int64(0)}, "a function": func() {},
		"a format": writ.Object{"sequence": int64(1), "format": "x"}, "a fraction": map[string]any{"sequence": 1, "x": 1.5},
		"too long": writ.Object{"sequence": int64(1), "x": string(slices.Repeat([]byte{'x'}, writ.MaxSize))},
	} {
		if _, err := ledger.Line(bad); err == nil {
			t.Errorf("%s became a line", name)
		}
	}
}

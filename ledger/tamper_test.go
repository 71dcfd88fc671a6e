package ledger_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"writ/fault"
	"writ/ledger"
)

// tamperings is how many mutations are tried; WRIT_TAMPER sets another number.
const tamperings = 600

// Whatever is done to the files of a ledger, a checkpoint that was kept
// elsewhere shows it.
func TestVerify_findsEveryTampering(t *testing.T) {
	t.Parallel()
	count := tamperings
	if n, err := strconv.Atoi(os.Getenv("WRIT_TAMPER")); err == nil {
		count = n
	}
	workers := 4
	kinds := make([]map[string]int, workers)
	t.Run("workers", func(t *testing.T) {
		for w := range workers {
			t.Run(strconv.Itoa(w), func(t *testing.T) {
				t.Parallel()
				kinds[w] = tamperWith(t, int64(w), count/workers)
			})
		}
	})
	total, all := 0, map[string]int{}
	for _, m := range kinds {
		for kind, n := range m {
			all[kind] += n
			total += n
		}
	}
	t.Logf("%d mutations, all found: %v", total, all)
	if len(all) < len(mutations) {
		t.Errorf("only the kinds %v were tried", all)
	}
}

// tamperWith mutates copies of a small ledger and counts what was tried.
func tamperWith(t *testing.T, seed int64, count int) map[string]int {
	t.Helper()
	r := rand.New(rand.NewSource(seed))
	o := options()
	o.Events = 100
	dir, kept := made(t, 300, o)
	good := files(t, dir)
	l := small{good: good, forged: forged(t, o)}
	l.names = slices.Sorted(func(yield func(string) bool) {
		for name := range good {
			if !yield(name) {
				return
			}
		}
	})
	tried := map[string]int{}
	for range count {
		m := mutations[r.Intn(len(mutations))]
		changed := m.do(r, l)
		maps.DeleteFunc(changed, func(name string, content []byte) bool { return content != nil && good[name] == string(content) })
		if len(changed) == 0 {
			continue
		}
		apply(t, dir, changed)
		report, err := ledger.Verify(dir, ledger.Against{Checkpoint: kept, Workers: 1})
		if err == nil {
			t.Fatalf("seed %d: %s was not found: %s", seed, m.name, report)
		}
		if fault.CodeOf(err) != fault.Invalid && fault.CodeOf(err) != fault.NotFound {
			t.Fatalf("%s: %v, want invalid", m.name, err)
		}
		if m.exact && !strings.Contains(err.Error(), fmt.Sprintf("Event %d is wrong", firstChange(good, changed))) {
			t.Fatalf("%s: %q does not name event %d", m.name, err, firstChange(good, changed))
		}
		alone, err := ledger.Verify(dir, ledger.Against{Workers: 1})
		if err == nil && (!strings.Contains(alone.String(), "prefix valid") || strings.Contains(alone.String(), "complete")) {
			t.Fatalf("%s: without the checkpoint it says %s", m.name, alone)
		}
		tried[m.name]++
		restore := map[string][]byte{}
		for name := range changed {
			if content, ok := good[name]; ok {
				restore[name] = []byte(content)
			} else {
				restore[name] = nil
			}
		}
		apply(t, dir, restore)
	}
	return tried
}

// apply writes files, and removes those without content.
func apply(t *testing.T, dir string, changed map[string][]byte) {
	t.Helper()
	for name, content := range changed {
		path := filepath.Join(dir, name)
		err := os.Remove(path)
		if content != nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
			if err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// firstChange returns the sequence of the first event that was changed.
func firstChange(good map[string]string, changed map[string][]byte) int {
	sequence := 0
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range good {
			if strings.HasPrefix(name, "segment") && !yield(name) {
				return
			}
		}
	}) {
		lines := strings.SplitAfter(good[name], "\n")
		lines = lines[:len(lines)-1]
		if content, ok := changed[name]; ok {
			now := strings.SplitAfter(string(content), "\n")
			for i := 1; i < len(lines); i++ {
				if i >= len(now) || now[i] != lines[i] {
					return sequence + i
				}
			}
			return sequence + len(lines)
		}
		sequence += len(lines) - 1
	}
	return 0
}

type mutation struct {
	name  string
	exact bool // the first event that was changed is named
	do    func(r *rand.Rand, l small) map[string][]byte
}

// small is a small ledger: its files, and those of one that somebody with
// another key made to look like it.
type small struct {
	names  []string
	good   map[string]string
	forged map[string][]byte
}

// mutations is what somebody may do to the files.
var mutations = []mutation{
	{"a bit flipped in any file", false, func(r *rand.Rand, l small) map[string][]byte {
		name := l.names[r.Intn(len(l.names))]
		b := []byte(l.good[name])
		b[r.Intn(len(b))] ^= 1 << r.Intn(8)
		return map[string][]byte{name: b}
	}},
	{"a byte changed in an event", true, func(r *rand.Rand, l small) map[string][]byte {
		name, lines := aSegment(r, l.good)
		i := 1 + r.Intn(len(lines)-1)
		b := []byte(lines[i])
		at := r.Intn(len(b) - 1)
		if b[at]++; b[at] == '\n' {
			b[at]++
		}
		lines[i] = string(b)
		return joined(name, lines)
	}},
	{"a file cut", false, func(r *rand.Rand, l small) map[string][]byte {
		name := l.names[r.Intn(len(l.names))]
		return map[string][]byte{name: []byte(l.good[name][:r.Intn(len(l.good[name]))])}
	}},
	{"an event inserted", true, func(r *rand.Rand, l small) map[string][]byte {
		name, lines := aSegment(r, l.good)
		i := 1 + r.Intn(len(lines)-1)
		return joined(name, slices.Insert(lines, i, strings.Replace(lines[i], "planner", "another", 1)))
	}},
	{"an event removed", true, func(r *rand.Rand, l small) map[string][]byte {
		name, lines := aSegment(r, l.good)
		i := 1 + r.Intn(len(lines)-1)
		return joined(name, slices.Delete(lines, i, i+1))
	}},
	{"two events exchanged", true, func(r *rand.Rand, l small) map[string][]byte {
		name, lines := aSegment(r, l.good)
		i := 1 + r.Intn(len(lines)-2)
		lines[i], lines[i+1] = lines[i+1], lines[i]
		return joined(name, lines)
	}},
	{"a file removed", false, func(r *rand.Rand, l small) map[string][]byte {
		return map[string][]byte{l.names[r.Intn(len(l.names))]: nil}
	}},
	{"a segment added", false, func(r *rand.Rand, l small) map[string][]byte {
		_, lines := aSegment(r, l.good)
		return joined("segment/000000000003.jsonl", lines)
	}},
	{"two segments exchanged", false, func(r *rand.Rand, l small) map[string][]byte {
		a, b := "segment/000000000000.jsonl", "segment/000000000001.jsonl"
		return map[string][]byte{a: []byte(l.good[b]), b: []byte(l.good[a])}
	}},
	{"an event changed and all tiles hashed anew", false, func(r *rand.Rand, l small) map[string][]byte {
		name, lines := aSegment(r, l.good)
		i := 1 + r.Intn(len(lines)-1)
		lines[i] = strings.Replace(lines[i], "planner", fmt.Sprintf("forger%d", r.Int63()), 1)
		changed := joined(name, lines)
		rehash(l.good, changed)
		return changed
	}},
	{"the end cut off with its tiles, and hashed anew", false, func(r *rand.Rand, l small) map[string][]byte {
		name := "segment/000000000002.jsonl"
		lines := strings.SplitAfter(l.good[name], "\n")
		lines = lines[:1+r.Intn(len(lines)-2)]
		changed := joined(name, lines)
		rehash(l.good, changed)
		return changed
	}},
	{"the whole ledger written anew with another key", false, func(r *rand.Rand, l small) map[string][]byte {
		return maps.Clone(l.forged)
	}},
}

func aSegment(r *rand.Rand, good map[string]string) (string, []string) {
	name := fmt.Sprintf("segment/%012d.jsonl", r.Intn(3))
	lines := strings.SplitAfter(good[name], "\n")
	return name, lines[:len(lines)-1]
}

func joined(name string, lines []string) map[string][]byte {
	return map[string][]byte{name: []byte(strings.Join(lines, ""))}
}

// rehash gives changed the tiles that its events have.
func rehash(good map[string]string, changed map[string][]byte) {
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) {
		var out []tlog.Hash
		for _, i := range at {
			out = append(out, stored[i])
		}
		return out, nil
	})
	n := int64(0)
	for i := range 3 {
		name := fmt.Sprintf("segment/%012d.jsonl", i)
		text, ok := changed[name]
		if !ok {
			text = []byte(good[name])
		}
		for j, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
			if j == 0 {
				continue
			}
			hashes, err := tlog.StoredHashes(n, line, reader)
			if err != nil {
				panic(err)
			}
			stored = append(stored, hashes...)
			n++
		}
	}
	for _, tile := range tlog.NewTiles(8, 0, n) {
		data, err := tlog.ReadTileData(tile, reader)
		if err != nil {
			panic(err)
		}
		changed["tile/"+strings.TrimPrefix(tile.Path(), "tile/8/")] = data
	}
}

// forged returns the files of a ledger that somebody wrote who has another key.
func forged(t *testing.T, o ledger.Options) map[string][]byte {
	t.Helper()
	o.Key = key("another")
	dir, _ := made(t, 300, o)
	changed := map[string][]byte{}
	for name, content := range files(t, dir) {
		changed[name] = []byte(content)
	}
	return changed
}

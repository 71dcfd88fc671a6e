package ledger_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"writ/fault"
	"writ/ledger"
)

// source is a source in memory.
type source struct {
	mu       sync.Mutex
	lines    [][]byte
	tree     ledger.Tree
	exported int64
	reads    int
	torn     int64
	fail     error
}

func (s *source) add(t testing.TB, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		line := event(t, int64(len(s.lines)+1))
		s.lines = append(s.lines, line)
		s.tree = s.tree.Add(ledger.Leaf(line))
	}
}

func (s *source) Since(_ context.Context, after int64, limit int) ([][]byte, ledger.Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	lines := s.lines[min(int(after), len(s.lines)):]
	return lines[:min(limit, len(lines))], s.tree, s.fail
}

func (s *source) Exported(context.Context) (int64, error) { return s.exported, nil }

func (s *source) SetExported(_ context.Context, n int64) error {
	s.exported = n
	return nil
}

func (s *source) Torn(_ context.Context, bytes int64) error {
	s.torn = bytes
	return nil
}

func TestExport(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l, s := open(t, dir, options()), new(source)
	e := ledger.NewExport(s, l)
	want := int64(0)
	for _, n := range []int{0, 1, 0, 1100, 7} { // more than it carries at once
		s.add(t, n)
		want += int64(n)
		if err := e.CatchUp(t.Context()); err != nil || l.Size() != want || s.exported != want {
			t.Fatalf("%d events, %d exported: %v, want %d", l.Size(), s.exported, err, want)
		}
	}
	if l.Tree().Root() != s.tree.Root() {
		t.Error("the trees differ")
	}
	s.fail = errors.New("broken")
	s.add(t, 1)
	if err := e.CatchUp(t.Context()); !errors.Is(err, s.fail) {
		t.Errorf("a source that cannot be read: %v", err)
	}
}

// All who wait share what is done once.
func TestExport_together(t *testing.T) {
	t.Parallel()
	l, s := open(t, filepath.Join(t.TempDir(), "audit"), options()), new(source)
	e := ledger.NewExport(s, l)
	release := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = e.With(func(*ledger.Log) error { <-release; return nil })
	})
	asked := make(chan struct{}, 64)
	for range 64 {
		all.Go(func() {
			s.add(t, 1)
			asked <- struct{}{}
			if err := e.CatchUp(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for range 64 {
		<-asked
	}
	close(release)
	all.Wait()
	if l.Size() != 64 || s.exported != 64 {
		t.Errorf("%d events, %d exported, want 64", l.Size(), s.exported)
	}
}

// A source whose tree is not that of the log is refused before anything is
// written, and the first event that differs is named.
func TestExport_refusesAnotherSource(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l, s := open(t, dir, options()), new(source)
	s.add(t, 5)
	if err := ledger.NewExport(s, l).CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := new(source)
	other.add(t, 3)
	other.lines = append(other.lines, event(t, 9))
	other.tree = other.tree.Add(ledger.Leaf(event(t, 9)))
	other.add(t, 2)
	before := files(t, dir)
	for range 2 {
		err := ledger.NewExport(other, l).CatchUp(t.Context())
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "Event 4 of the audit is not the one of the store") {
			t.Errorf("%v", err)
		}
	}
	gap := &source{lines: s.lines[:5], tree: other.tree}
	if err := ledger.NewExport(gap, l).CatchUp(t.Context()); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "not event 6") {
		t.Errorf("a source without an event: %v", err)
	}
	if got := files(t, dir)["segment/000000000000.jsonl"]; got != before["segment/000000000000.jsonl"] {
		t.Error("the log was written")
	}
}

package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/audit"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
	"writ/ledger"
)

// place is a data directory with a store and an audit file.
type place struct {
	dir    string
	store  *sqlite.Store
	file   *ledger.File
	serial int // part of the ids of events
	count  int // of events; the store runs one Update at a time
}

func open(t *testing.T, dir string) *place {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "gate.db"))
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	p := &place{dir: dir, store: s}
	if p.file, err = ledger.Open(p.path()); err != nil {
		t.Fatalf("open the audit file: %v", err)
	}
	t.Cleanup(p.close)
	return p
}

func (p *place) path() string { return filepath.Join(p.dir, "audit.jsonl") }

func (p *place) close() {
	_ = p.store.Close()
	_ = p.file.Close()
}

// add appends n events to the store.
func (p *place) add(t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := p.store.Update(t.Context(), p.event); err != nil {
			t.Fatalf("append an event: %v", err)
		}
	}
}

// event appends an event with a new id.
func (p *place) event(tx store.Tx) error {
	p.count++
	at := writ.At(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	return tx.Append(&model.Event{ID: fmt.Sprintf("evt_%d_%d", p.serial, p.count), Type: model.GateStarted, Timestamp: at, User: "writ"})
}

func (p *place) read(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(p.path())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (p *place) write(t *testing.T, b []byte) {
	t.Helper()
	if err := os.WriteFile(p.path(), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// same fails the test unless the file verifies and holds exactly the store's
// first n events.
func (p *place) same(t *testing.T, n int64) {
	t.Helper()
	got := p.read(t)
	report, err := ledger.Verify(bytes.NewReader(got))
	if err != nil || report.Events != n || report.Torn {
		t.Errorf("the file: %s (%v), want %d events", report, err, n)
	}
	var want []byte
	err = p.store.View(context.Background(), func(r store.Reader) error {
		lines, err := r.Events(store.EventFilter{Limit: int(n)})
		for _, l := range lines {
			want = append(append(want, l.Bytes...), '\n')
		}
		return err
	})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file holds %d bytes, the store's events have %d (%v)", len(got), len(want), err)
	}
}

func TestCatchUp(t *testing.T) {
	t.Parallel()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	a := audit.New(p.store, p.file)
	for _, n := range []int{0, 1, 0, 600} { // more than it carries at once
		p.add(t, n)
		if err := a.CatchUp(t.Context()); err != nil {
			t.Fatalf("catch up: %v", err)
		}
	}
	p.same(t, 601)
	if n, err := p.store.Exported(t.Context()); err != nil || n != 601 {
		t.Errorf("Exported() = %d, %v, want 601", n, err)
	}
}

func TestCatchUp_manyAtOnce(t *testing.T) {
	t.Parallel()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	a := audit.New(p.store, p.file)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := p.store.Update(t.Context(), p.event); err != nil {
				t.Errorf("append an event: %v", err)
			}
			if err := a.CatchUp(t.Context()); err != nil {
				t.Errorf("catch up: %v", err)
			}
		})
	}
	all.Wait()
	p.same(t, 16)
}

// A crash may leave the file ahead of what the store knows of it, and a torn
// line at its end. Nothing is written twice, nothing is lost.
func TestCatchUp_afterACrash(t *testing.T) {
	t.Parallel()
	for _, torn := range []string{"", "{", `{"a":"`, `{"format":"event/1"}`} {
		p := open(t, filepath.Join(t.TempDir(), "gate"))
		p.add(t, 5)
		if err := audit.New(p.store, p.file).CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.add(t, 3)
		if err := audit.New(&forgetful{p.store}, p.file).CatchUp(t.Context()); !errors.Is(err, errKilled) {
			t.Fatalf("catch up: %v", err)
		}
		p.add(t, 1)
		p.close()
		p.write(t, append(p.read(t), torn...))
		p = open(t, p.dir)
		if err := audit.New(p.store, p.file).CatchUp(t.Context()); err != nil {
			t.Errorf("after the torn line %q: %v", torn, err)
		}
		p.same(t, 9)
	}
}

// What was exported and is gone, or is not the store's, is never written over.
func TestCatchUp_refuses(t *testing.T) {
	t.Parallel()
	foreign := open(t, filepath.Join(t.TempDir(), "gate"))
	foreign.add(t, 20)
	if err := audit.New(foreign.store, foreign.file).CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(foreign.read(t), []byte("\n"))
	for _, c := range []struct {
		name   string
		change func(text []byte) []byte
		want   string
	}{
		{"cut after a whole line", func(text []byte) []byte { return text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1] }, "Somebody cut it"},
		{"cut within a line", func(text []byte) []byte { return text[:len(text)-1] }, "Somebody cut it"},
		{"emptied", func([]byte) []byte { return nil }, "Somebody cut it"},
		{"the file of another store", func([]byte) []byte { return bytes.Join(lines[:5], nil) }, "does not hold the events"},
		{"longer than the store", func([]byte) []byte { return bytes.Join(lines, nil) }, "more than the gate's store"},
		{"the last line edited", func(text []byte) []byte {
			return bytes.Replace(text, []byte(`evt_9_5"`), []byte(`evt_9_6"`), 1)
		}, "does not hold the events"},
	} {
		p := open(t, filepath.Join(t.TempDir(), "gate"))
		p.serial = 9
		p.add(t, 5)
		if err := audit.New(p.store, p.file).CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.close()
		changed := c.change(p.read(t))
		p.write(t, changed)
		p = open(t, p.dir)
		a := audit.New(p.store, p.file)
		for range 2 {
			if err := a.CatchUp(t.Context()); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want unavailable and %q", c.name, err, c.want)
			}
		}
		if !bytes.Equal(p.read(t), changed) {
			t.Errorf("%s: the file was changed", c.name)
		}
	}
}

func TestCatchUp_looksEvenWithNothingToWrite(t *testing.T) {
	t.Parallel()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	p.add(t, 2)
	a := audit.New(p.store, p.file)
	if err := a.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p.path()); err != nil {
		t.Fatal(err)
	}
	if err := a.CatchUp(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("the file is gone: %v, want unavailable", err)
	}
}

func TestCatchUp_aStoreThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	p.add(t, 1)
	if err := p.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := audit.New(p.store, p.file).CatchUp(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
}

// forgetful dies before it notes what was exported.
type forgetful struct{ store.Store }

var errKilled = errors.New("killed")

func (*forgetful) SetExported(context.Context, int64) error { return errKilled }

package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"writ/sys"

	"writ"
	"writ/fault"
	"writ/gate/internal/audit"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
	"writ/ledger"
)

// place is a data directory with a store and an audit.
type place struct {
	dir    string
	store  *sqlite.Store
	log    *ledger.Log
	serial int // part of the ids of events
	count  int // of events; the store runs one Update at a time
}

func open(t testing.TB, dir string) *place {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "gate.db"))
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	p := &place{dir: dir, store: s}
	if p.log, err = ledger.Open(p.path(), options()); err != nil {
		t.Fatalf("open the audit: %v", err)
	}
	t.Cleanup(p.close)
	return p
}

// options is how the tests open a ledger: all with one key.
func options() ledger.Options {
	return ledger.Options{Name: "writ/gate", Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Now: machine().Now}
}

func machine() sys.Sys { return sys.Real(slog.New(slog.DiscardHandler)) }

// audit returns the way from the store to the ledger.
func (p *place) audit() *audit.Audit { return p.audited(p.store, audit.Copy{}) }

func (p *place) audited(s store.Store, c audit.Copy) *audit.Audit {
	return audit.New(audit.Config{Sys: machine(), Store: s, Log: p.log, Copy: c})
}

func (p *place) path() string    { return filepath.Join(p.dir, "audit") }
func (p *place) segment() string { return filepath.Join(p.path(), "segment", "000000000000.jsonl") }

func (p *place) close() {
	_ = p.store.Close()
	_ = p.log.Close()
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
	b, err := os.ReadFile(p.segment())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// events returns the lines after the seam.
func (p *place) events(t *testing.T) []byte {
	t.Helper()
	_, events, _ := bytes.Cut(p.read(t), []byte("\n"))
	return events
}

func (p *place) write(t *testing.T, b []byte) {
	t.Helper()
	if err := os.WriteFile(p.segment(), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// same fails the test unless the file verifies and holds exactly the store's
// first n events.
func (p *place) same(t *testing.T, n int64) {
	t.Helper()
	got := p.events(t)
	report, err := ledger.Verify(p.path(), ledger.Against{})
	if err != nil || report.Events != n || report.Torn {
		t.Errorf("the audit: %s (%v), want %d events", report, err, n)
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
	a := p.audit()
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
	a := p.audit()
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

// A crash may leave the audit ahead of what the store knows of it, and a torn
// line at its end. Nothing is written twice, nothing is lost, and that the torn
// line was cut is an event.
func TestCatchUp_afterACrash(t *testing.T) {
	t.Parallel()
	for _, torn := range []string{"", "{", `{"a":"`, `{"format":"event/2"}`} {
		p := open(t, filepath.Join(t.TempDir(), "gate"))
		p.add(t, 5)
		if err := p.audit().CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.add(t, 3)
		if err := p.audited(&forgetful{p.store}, audit.Copy{}).CatchUp(t.Context()); !errors.Is(err, errKilled) {
			t.Fatalf("catch up: %v", err)
		}
		p.add(t, 1)
		p.close()
		p.write(t, append(p.read(t), torn...))
		p = open(t, p.dir)
		if err := p.audit().CatchUp(t.Context()); err != nil {
			t.Errorf("after the torn line %q: %v", torn, err)
		}
		want := int64(9)
		if torn != "" {
			want = 10
			if text := string(p.read(t)); !strings.Contains(text, fmt.Sprintf(`"bytes":%d`, len(torn))) || !strings.Contains(text, "audit.torn_line_cut") {
				t.Errorf("the cut of %q is no event:\n%s", torn, text)
			}
		}
		p.same(t, want)
	}
}

// What was exported and is gone, or is not the store's, is never written over.
func TestCatchUp_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(t *testing.T, p *place)
		want string
	}{
		{"cut after a whole line", func(t *testing.T, p *place) {
			p.edit(t, func(text []byte) []byte { return text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1] })
		}, "ends after event 4"},
		{"cut within a line", func(t *testing.T, p *place) { p.edit(t, func(text []byte) []byte { return text[:len(text)-1] }) }, "ends after event 4"},
		{"emptied", func(t *testing.T, p *place) {
			p.edit(t, func(text []byte) []byte { return text[:bytes.IndexByte(text, '\n')+1] })
		}, "ends after event 0"},
		{"an event edited", func(t *testing.T, p *place) {
			p.edit(t, func(text []byte) []byte { return bytes.Replace(text, []byte(`evt_9_3"`), []byte(`evt_9_6"`), 1) })
		}, "Event 3 of the audit is not the one of the store"},
		{"the audit of another store", func(t *testing.T, p *place) { other(t, p, 5) }, "Event 1 of the audit is not the one of the store"},
		{"longer than the store", func(t *testing.T, p *place) { other(t, p, 20) }, "more than the store"},
	} {
		p := open(t, filepath.Join(t.TempDir(), "gate"))
		p.serial = 9
		p.add(t, 5)
		if err := p.audit().CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.close()
		c.do(t, p)
		before := p.read(t)
		p = open(t, p.dir)
		p.add(t, 1)
		a := p.audit()
		for range 2 {
			if err := a.CatchUp(t.Context()); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want unavailable and %q", c.name, err, c.want)
			}
		}
		if !bytes.Equal(p.read(t), before) {
			t.Errorf("%s: the audit was changed", c.name)
		}
	}
}

// edit changes the segment.
func (p *place) edit(t *testing.T, change func([]byte) []byte) {
	t.Helper()
	p.write(t, change(p.read(t)))
}

// other puts the audit of another store, of n events, in the place of p's.
func other(t *testing.T, p *place, n int) {
	t.Helper()
	o := open(t, filepath.Join(t.TempDir(), "gate"))
	o.add(t, n)
	if err := o.audit().CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.close()
	if err := errors.Join(os.RemoveAll(p.path()), os.Rename(o.path(), p.path())); err != nil {
		t.Fatal(err)
	}
}

func TestCatchUp_looksEvenWithNothingToWrite(t *testing.T) {
	t.Parallel()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	p.add(t, 2)
	a := p.audit()
	if err := a.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p.segment()); err != nil {
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
	if err := p.audit().CatchUp(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
}

// forgetful dies before it notes what was exported.
type forgetful struct{ store.Store }

var errKilled = errors.New("killed")

func (*forgetful) SetExported(context.Context, int64) error { return errKilled }

// The newest checkpoint is in the second place; with it, a cut of what is signed
// is found, and without it nothing more is said than is known.
func TestAnchor_copies(t *testing.T) {
	t.Parallel()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	kept := filepath.Join(t.TempDir(), "checkpoint")
	a := p.audited(p.store, audit.Copy{Path: kept})
	for i := range 3 {
		p.add(t, 2)
		if err := a.Anchor(t.Context()); err != nil {
			t.Fatal(err)
		}
		signed, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		report, err := ledger.Verify(p.path(), ledger.Against{Checkpoint: signed})
		if err != nil || report.Kept != int64(2*i+2) {
			t.Errorf("%s %v", report, err)
		}
	}
	if where, err := a.CopyState(); where != kept || err != nil {
		t.Errorf("%s %v", where, err)
	}
}

// A second place that does not answer is an event, once; it refuses only what
// was asked to depend on it.
func TestAnchor_copyFails(t *testing.T) {
	t.Parallel()
	broken := true
	var got []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		}
		got, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	p.add(t, 1)
	a := p.audited(p.store, audit.Copy{URL: server.URL})
	for range 3 {
		if err := a.Anchor(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.CopyState(); fault.ReasonOf(err) != "copy_failed" {
		t.Errorf("%v", err)
	}
	strict := p.audited(p.store, audit.Copy{URL: server.URL, Required: true})
	if err := strict.CatchUp(t.Context()); fault.CodeOf(err) != fault.Unavailable || fault.ReasonOf(err) != "copy_failed" {
		t.Errorf("%v", err)
	}
	broken = false
	if err := a.Anchor(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.Anchor(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := string(p.read(t)); strings.Count(text, "audit.copy_failed") != 2 || strings.Count(text, "audit.copy_works") != 1 {
		t.Errorf("the events of the copy:\n%s", text)
	}
	if c, err := ledger.ParseCheckpoint(got); err != nil || c.Size != p.log.Size() {
		t.Errorf("%s %v, want %d events", got, err, p.log.Size())
	}
}

// Whoever knows the first key can verify what the second one signed.
func TestRotate(t *testing.T) {
	t.Parallel()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	p.add(t, 3)
	a := p.audit()
	if err := a.Anchor(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := ledger.Verify(p.path(), ledger.Against{})
	if err != nil {
		t.Fatal(err)
	}
	next := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	if err := a.Rotate(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	p.add(t, 2)
	if err := a.Anchor(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := ledger.Verify(p.path(), ledger.Against{Key: before.Key})
	if err != nil || after.Events != 6 || after.Key == before.Key || after.Segments != 2 {
		t.Errorf("%+v %v", after, err)
	}
	p.close()
	if _, err := ledger.Open(p.path(), options()); fault.ReasonOf(err) != "other_key" {
		t.Errorf("the old key opens it: %v", err)
	}
}

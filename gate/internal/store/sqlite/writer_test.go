package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	modernc "modernc.org/sqlite"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// The tests of this file look inside: they make SQLite fail where no caller can.

// openParts returns a writer that no goroutine serves yet.
func openParts(t *testing.T) *writer {
	t.Helper()
	path, err := prepare(filepath.Join(t.TempDir(), "gate", "gate.db"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := openWriter(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.close() })
	return w
}

// batch runs jobs as one batch and returns their answers.
func (w *writer) batch(fs ...func(*tx) error) []error {
	jobs := make([]*job, len(fs))
	for i, f := range fs {
		jobs[i] = &job{f: f, canceled: func() error { return nil }, done: make(chan error, 1)}
	}
	w.commit(jobs)
	answers := make([]error, len(fs))
	for i, j := range jobs {
		answers[i] = <-j.done
	}
	return answers
}

func (w *writer) pragma(t *testing.T, text string) {
	t.Helper()
	if _, err := w.conn.ExecContext(t.Context(), "PRAGMA "+text); err != nil {
		t.Fatal(err)
	}
}

func event(id string, size int) func(*tx) error {
	return func(t *tx) error {
		return t.Append(&model.Event{ID: id, User: strings.Repeat("x", size)})
	}
}

func (w *writer) events(t *testing.T) (n int) {
	t.Helper()
	for _, err := range w.batch(func(tx *tx) error {
		lines, err := tx.Events(store.EventFilter{})
		n = len(lines)
		return err
	}) {
		if err != nil {
			t.Errorf("count the events: %v", err)
		}
	}
	return n
}

// A full disk fails the whole batch, even one who looks away from the error and
// writes on: SQLite may have ended the transaction, and what is written then
// would be durable on its own. When there is space again, the store goes on.
func TestCommit_fullDisk(t *testing.T) {
	t.Parallel()
	w := openParts(t)
	w.pragma(t, "max_page_count = 40")
	answers := w.batch(event("evt_1", 10), func(t *tx) error {
		_ = event("evt_2", 500_000)(t)
		return event("evt_3", 10)(t)
	}, event("evt_4", 10))
	for i, err := range answers {
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "is full") {
			t.Errorf("job %d: %v, want unavailable and the full disk", i, err)
		}
	}
	if n := w.events(t); n != 0 {
		t.Errorf("%d events remained, want none", n)
	}
	w.pragma(t, "max_page_count = 100000")
	for i, err := range w.batch(event("evt_1", 10), event("evt_2", 500_000)) {
		if err != nil {
			t.Errorf("job %d after space was freed: %v", i, err)
		}
	}
	if n := w.events(t); n != 2 {
		t.Errorf("there are %d events, want 2", n)
	}
}

// Nobody of a batch whose COMMIT failed is told anything else, and the store
// refuses everything until it is opened anew.
func TestCommit_failed(t *testing.T) {
	t.Parallel()
	w := openParts(t)
	err := w.conn.Raw(func(c any) error {
		hooks, ok := c.(modernc.HookRegisterer)
		if !ok {
			return errors.New("the driver has no hooks")
		}
		hooks.RegisterCommitHook(func() int32 { return 1 })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	for i, err := range w.batch(event("evt_1", 10), func(*tx) error { return refused }, event("evt_2", 10)) {
		if fault.CodeOf(err) != fault.Unavailable || errors.Is(err, refused) {
			t.Errorf("job %d: %v, want unavailable", i, err)
		}
	}
	ran := false
	err = w.batch(func(*tx) error { ran = true; return nil })[0]
	if fault.CodeOf(err) != fault.Unavailable || ran {
		t.Errorf("after the failure: %v, ran %t; want unavailable", err, ran)
	}
}

// A failure within a batch is its own job's alone.
func TestCommit_oneFailsAlone(t *testing.T) {
	t.Parallel()
	w := openParts(t)
	refused := errors.New("refused")
	answers := w.batch(event("evt_1", 10), func(t *tx) error {
		if err := event("evt_2", 10)(t); err != nil {
			return err
		}
		return refused
	}, event("evt_1", 10), event("evt_3", 10))
	for i, want := range []fault.Code{"", fault.Internal, fault.Internal, ""} {
		if got := fault.CodeOf(answers[i]); got != want {
			t.Errorf("job %d: %v, want %q", i, answers[i], want)
		}
	}
	if !errors.Is(answers[1], refused) {
		t.Errorf("job 1: %v, want its own error", answers[1])
	}
	if n := w.events(t); n != 2 {
		t.Errorf("there are %d events, want 2", n)
	}
}

// What SQLite may not do now refuses the batch and says why; the next one goes
// on. Another process that holds the file stands for every such reason.
func TestCommit_lockedFile(t *testing.T) {
	t.Parallel()
	w := openParts(t)
	w.pragma(t, "busy_timeout = 0")
	var name, path string
	if err := w.conn.QueryRowContext(t.Context(), "PRAGMA database_list").Scan(new(int), &name, &path); err != nil {
		t.Fatal(err)
	}
	other, err := openWriter(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.close() }()
	for _, c := range []struct {
		do   string
		want fault.Code
	}{{"BEGIN IMMEDIATE", fault.Unavailable}, {"ROLLBACK", ""}} {
		if _, err := other.exec(c.do); err != nil {
			t.Fatal(err)
		}
		for i, err := range w.batch(event("evt_1"+c.do, 10), event("evt_2"+c.do, 10)) {
			if fault.CodeOf(err) != c.want || err != nil && !strings.Contains(err.Error(), "Another process") {
				t.Errorf("after the other's %s: job %d: %v, want %q", c.do, i, err, c.want)
			}
		}
	}
}

func TestCommit_readOnly(t *testing.T) {
	t.Parallel()
	w := openParts(t)
	w.pragma(t, "query_only = 1")
	if err := w.batch(event("evt_1", 10))[0]; fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "may not write") {
		t.Errorf("got %v, want unavailable and the missing right", err)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	own := fault.New(fault.Stale, "moved")
	for _, c := range []struct {
		err  error
		want fault.Code
	}{
		{nil, ""},
		{own, fault.Stale},
		{context.Canceled, fault.Canceled},
		{context.DeadlineExceeded, fault.Timeout},
		{driver.ErrBadConn, fault.Unavailable},
	} {
		if got := fault.CodeOf(failure(c.err)); got != c.want {
			t.Errorf("failure(%v) has the code %q, want %q", c.err, got, c.want)
		}
	}
	if got := failure(errors.New("open /secret/path")); strings.Contains(got.Error(), "secret") {
		t.Errorf("the sentence %q shows the cause", got)
	}
}

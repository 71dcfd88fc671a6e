// Package sqlite is the gate's store in one SQLite file.
//
// Writing has one goroutine with one connection. It takes all Updates that wait
// (up to a bound) into one SQL transaction, each in a savepoint of its own, and
// answers them after COMMIT has returned: a busy gate pays for one fsync where
// its callers would pay for many. Reading has a pool of connections, which see
// what was committed before they began.
//
// Every error of SQLite refuses: whatever was not certainly written did not
// happen, and after an error that leaves open what is on disk the store refuses
// everything until it is opened anew.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"sync"

	_ "modernc.org/sqlite"

	"writ/fault"
	"writ/gate/internal/store"
	"writ/ledger"
)

// readers bounds the connections that read at the same time.
const readers = 4

// Store is a store in a SQLite file. Close it when it is no longer needed.
type Store struct {
	reads   *sql.DB
	jobs    chan *job
	closing chan struct{}
	close   sync.Once
	closed  chan error // the writer's last word
}

var _ store.Store = (*Store)(nil)

// Open opens the store at path, an absolute or relative file name; the file and
// its directory are made if they are missing. The directory must be its owner's
// alone (0700), the file too (0600). A file that SQLite finds damaged, or that
// a newer program wrote, is refused.
func Open(ctx context.Context, path string) (*Store, error) {
	path, err := prepare(path)
	if err != nil {
		return nil, err
	}
	w, err := openWriter(ctx, path)
	if err != nil {
		return nil, err
	}
	reads, err := sql.Open("sqlite", dsn(path, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(failure(err), w.close())
	}
	reads.SetMaxOpenConns(readers)
	reads.SetMaxIdleConns(readers)
	s := &Store{reads: reads, jobs: make(chan *job), closing: make(chan struct{}), closed: make(chan error, 1)}
	go func() {
		w.serve(s.jobs, s.closing)
		s.closed <- w.close()
	}()
	return s, nil
}

// dsn returns how to open the file at an absolute path. Pragmas belong to a
// connection, so each connection sets all of them.
func dsn(path string, pragmas ...string) string {
	pragmas = append(pragmas, "busy_timeout(5000)", "foreign_keys(1)", "synchronous(FULL)", "trusted_schema(0)")
	file := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return file.String()
}

// Update runs f in a transaction; see store.Store. While f has not begun, the
// end of ctx takes it back; afterwards Update waits for what became of it.
func (s *Store) Update(ctx context.Context, f func(store.Tx) error) error {
	return s.update(ctx, func(t *tx) error { return f(t) })
}

func (s *Store) update(ctx context.Context, f func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{f: f, canceled: ctx.Err, done: make(chan error, 1)}
	select {
	case s.jobs <- j:
		return <-j.done
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return fault.New(fault.Unavailable, "The gate is stopping. Nothing was changed; try again when it runs.")
	}
}

// View runs f on what was committed when it began.
func (s *Store) View(ctx context.Context, f func(store.Reader) error) error {
	t, err := s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return failure(err)
	}
	defer func() { _ = t.Rollback() }() // it has nothing to write
	r := reader{
		query: func(text string, args ...any) (*sql.Rows, error) { return t.QueryContext(ctx, text, args...) },
		fail:  failure,
	}
	return f(r)
}

// Since returns lines and the tree of all events, as of one moment.
func (s *Store) Since(ctx context.Context, after int64, limit int) (lines [][]byte, tree ledger.Tree, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		events, err := r.Events(store.EventFilter{After: after, Limit: limit})
		if err != nil {
			return err
		}
		for _, e := range events {
			lines = append(lines, e.Bytes)
		}
		tree, err = r.(reader).tree()
		return err
	})
	return lines, tree, err
}

// Exported returns the number that SetExported raised.
func (s *Store) Exported(ctx context.Context) (int64, error) {
	var exported int64
	err := s.reads.QueryRowContext(ctx, "SELECT exported FROM meta").Scan(&exported)
	return exported, failure(err)
}

// SetExported raises the number of exported events. It never lowers it.
func (s *Store) SetExported(ctx context.Context, sequence int64) error {
	return s.update(ctx, func(t *tx) error {
		n, err := t.exec(`UPDATE meta SET exported = max(exported, ?1)
			WHERE ?1 <= (SELECT coalesce(max(sequence), 0) FROM events)`, sequence)
		if err == nil && n == 0 {
			err = fault.New(fault.Internal, "There is no event %d that could have been exported.", sequence)
		}
		return err
	})
}

// Close ends the store after the Updates that have begun.
func (s *Store) Close() error {
	err := error(nil)
	s.close.Do(func() {
		close(s.closing)
		err = <-s.closed
		if e := s.reads.Close(); err == nil {
			err = e
		}
	})
	return failure(err)
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"

	codes "modernc.org/sqlite/lib"

	"writ/failpoint"
	"writ/fault"
	"writ/wal"
)

// batchSize bounds how many Updates become durable together.
const batchSize = 256

// job is one Update on its way through the writer.
type job struct {
	f        func(*tx) error
	canceled func() error // the error of the caller's context
	done     chan error   // gets one answer, after COMMIT; has room for it
}

// writer owns the one connection that writes. Only its goroutine uses it.
type writer struct {
	db     *sql.DB
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	broken error // what went wrong in this transaction; nothing more runs in it
	dead   error // what went wrong for good: nothing runs any more
}

func openWriter(ctx context.Context, path string) (*writer, error) {
	crashed := crashed(path)
	db, err := sql.Open("sqlite", dsn(path, "journal_mode(WAL)"))
	if err != nil {
		return nil, failure(err)
	}
	w := &writer{db: db, stmts: map[string]*sql.Stmt{}}
	if w.conn, err = db.Conn(ctx); err == nil {
		err = w.check(ctx, crashed)
	}
	if err == nil {
		err = migrate(ctx, w.conn)
	}
	if err != nil {
		return nil, errors.Join(failure(err), w.close())
	}
	return w, nil
}

// check refuses a damaged file, and a connection that is not as durable as it
// was asked to be. After a crash it looks more closely.
func (w *writer) check(ctx context.Context, crashed bool) error {
	for _, c := range []struct{ ask, want string }{
		{"PRAGMA journal_mode", "wal"},
		{"PRAGMA synchronous", "2"},
		{"PRAGMA foreign_keys", "1"},
	} {
		var got string
		if err := w.conn.QueryRowContext(ctx, c.ask).Scan(&got); err != nil {
			return err
		}
		if got != c.want {
			return fault.New(fault.Unavailable, "The disk of the gate's store does not support what the store needs (%s is %q). Put it on a local disk.", c.ask, got)
		}
	}
	var found string
	ask := "PRAGMA quick_check(1)"
	if crashed {
		ask = "PRAGMA integrity_check(1)"
	}
	if err := w.conn.QueryRowContext(ctx, ask).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fault.Wrap(fault.Unavailable, errors.New(found), damaged)
	}
	return nil
}

// serve runs jobs until closing is closed.
func (w *writer) serve(jobs <-chan *job, closing <-chan struct{}) {
	for {
		select {
		case first := <-jobs:
			batch := []*job{first}
			for waiting := true; waiting && len(batch) < batchSize; {
				select {
				case j := <-jobs:
					batch = append(batch, j)
				default:
					waiting = false
				}
			}
			w.commit(batch)
		case <-closing:
			return
		}
	}
}

// commit runs a batch in one transaction and answers it. What a job was told,
// even its own failure, may rest on another job of the batch: if the
// transaction does not become durable, all of them fail.
func (w *writer) commit(batch []*job) {
	answers := make([]error, len(batch))
	w.broken = w.dead
	_, _ = w.exec("BEGIN IMMEDIATE") // if it fails, w is broken
	written := false
	for i, j := range batch {
		answers[i] = w.run(j)
		written = written || answers[i] == nil
	}
	if written && w.broken == nil {
		_, _ = w.exec(wal.Mark) // if it fails, w is broken
	}
	if w.broken == nil {
		failpoint.Reach(failpoint.GateCommit)
		if _, err := w.exec("COMMIT"); err != nil {
			w.bury(err)
		}
	}
	failpoint.Reach(failpoint.GateCommitted)
	failed := w.broken
	if failed != nil && w.dead == nil {
		w.broken = nil
		_, _ = w.exec("ROLLBACK") // SQLite may have done so itself; if neither did, BEGIN fails
	}
	for i, j := range batch {
		if failed != nil {
			answers[i] = failed
		}
		j.done <- answers[i]
	}
}

// bury ends the writer after a COMMIT that failed in a way that leaves open
// what a restart will find on disk. A full disk or a lock does not.
func (w *writer) bury(err error) {
	switch primary(err) {
	case codes.SQLITE_FULL, codes.SQLITE_BUSY:
	default:
		w.dead = fault.Wrap(fault.Unavailable, err, "The gate's store failed while it was written. Check the disk, then start the gate anew.")
		w.broken = w.dead
	}
}

// run runs one job in a savepoint.
func (w *writer) run(j *job) error {
	if w.broken != nil {
		return w.broken
	}
	if err := j.canceled(); err != nil {
		return err
	}
	if _, err := w.exec("SAVEPOINT job"); err != nil {
		return err
	}
	t := newTx(w)
	err := guarded(t, j.f)
	t.ended = true
	if err != nil {
		_, _ = w.exec("ROLLBACK TO job") // if it fails, w is broken
	}
	_, _ = w.exec("RELEASE job")
	return err
}

// guarded turns a panic of f into an error: it is one caller's, and the others
// of the batch have nothing to do with it.
func guarded(t *tx, f func(*tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Wrap(fault.Internal, fmt.Errorf("panic: %v\n%s", p, debug.Stack()),
				"Something went wrong inside writ, and nothing was changed. The log has the cause.")
		}
	}()
	return f(t)
}

// fail notes an error of SQLite. Only after one that is about a single row does
// the transaction go on: any other may have ended it, and a statement run
// afterwards would be committed on its own.
func (w *writer) fail(err error) error {
	ours := failure(err)
	if ours != err && primary(err) != codes.SQLITE_CONSTRAINT {
		w.broken = ours
	}
	return ours
}

// exec runs a statement and returns how many rows it changed.
func (w *writer) exec(text string, args ...any) (int64, error) {
	stmt, err := w.prepare(text)
	if err != nil {
		return 0, err
	}
	result, err := stmt.Exec(args...)
	if err != nil {
		return 0, w.fail(err)
	}
	n, err := result.RowsAffected()
	return n, w.fail(err)
}

func (w *writer) query(text string, args ...any) (*sql.Rows, error) {
	stmt, err := w.prepare(text)
	if err != nil {
		return nil, err
	}
	return stmt.Query(args...)
}

// prepare returns the compiled statement. A transaction outlives the patience
// of any one caller, so no statement of it has a caller's context.
func (w *writer) prepare(text string) (*sql.Stmt, error) {
	if w.broken != nil {
		return nil, w.broken
	}
	if stmt, ok := w.stmts[text]; ok {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, w.fail(err)
	}
	w.stmts[text] = stmt
	return stmt, nil
}

func (w *writer) close() error {
	var errs []error
	for _, stmt := range w.stmts {
		errs = append(errs, stmt.Close())
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	return errors.Join(append(errs, w.db.Close())...)
}

// Package journal is the executor's own memory: which writs were spent, what
// was sent, what came of it. Each record is on disk before the call that wrote
// it returns, and none is ever changed; the schema refuses what must not
// happen (a nonce twice, one call of a step sent twice, a fence that falls).
package journal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed" // the schema
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"writ/disk"
	"writ/failpoint"
	"writ/fault"
	"writ/ledger"
	"writ/sys"
	"writ/wal"
)

var (
	//go:embed 001_journal.sql
	first string
	//go:embed 002_halts.sql
	second string
)

// migrations are applied in order; user_version counts those that were.
func migrations() []string { return []string{first, second} }

// Journal is an open journal. It is safe for concurrent use, also by several
// processes.
type Journal struct {
	db      *sql.DB
	sys     sys.Sys
	opened  time.Time
	reserve *disk.Reserve
	newest  atomic.Int64 // time that was written down, in milliseconds

	log      *ledger.Log // the executor's audit, once Keep was called
	export   *ledger.Export
	exported atomic.Int64 // events that the audit holds
	closing  sync.Once
	closed   error
}

// connector opens connections of one data source without a global registry.
type connector string

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.Driver().Open(string(c)) }

func (connector) Driver() driver.Driver { return &sqlite.Driver{} }

// Open opens the journal in the file, and makes it if there is none. It fails
// on a file that others may read and on one that is damaged.
func Open(ctx context.Context, file string, s sys.Sys) (*Journal, error) {
	if err := private(file); err != nil {
		return nil, err
	}
	if err := wal.Check(file); err != nil {
		return nil, err
	}
	options := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(5000)", "foreign_keys(1)", "trusted_schema(0)"}}
	source := url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: options.Encode()}
	db := sql.OpenDB(connector(source.String()))
	// One connection: commits wait for the disk, and more writers would only wait for each other.
	db.SetMaxOpenConns(1)
	j := &Journal{db: db, sys: s, opened: s.Now(), reserve: reserve(file)}
	for _, begin := range []func(context.Context) error{j.migrate, j.Check, j.recall} {
		if err := begin(ctx); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return j, nil
}

// private makes the file if need be, and refuses one that is not ours alone.
func private(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(fault.Unavailable, err, "The journal belongs to another user, or its own may not write to it. Run: chown %d %s && chmod 600 %s", os.Geteuid(), file, file)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "The journal %s cannot be opened. Check its owner and its directory.", file)
	}
	defer f.Close()
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return fault.Wrap(fault.Unavailable, err, "The journal %s must be a file, not a link or anything else. Put back what was there.", file)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return fault.New(fault.Unavailable, "The journal belongs to another user. Run: chown %d %s", os.Geteuid(), file)
	case info.Mode().Perm()&0o077 != 0:
		return fault.New(fault.Unavailable, "The journal must be a file that only its owner can read. Run: chmod 600 %s", file)
	case st.Nlink != 1:
		return fault.New(fault.Unavailable, "The journal %s has a second name. Remove the other hard link.", file)
	}
	return disk.Local(filepath.Dir(file))
}

func (j *Journal) migrate(ctx context.Context) error {
	return j.transact(ctx, func(tx *sql.Tx) error {
		var done int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&done); err != nil {
			return err
		}
		if done > len(migrations()) {
			return fault.New(fault.Unsupported, "The journal was written by a newer writ-executor. Use that one.")
		}
		for _, m := range migrations()[done:] {
			if _, err := tx.ExecContext(ctx, m); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(migrations())))
		return err
	})
}

// Check reports damage to the file.
func (j *Journal) Check(ctx context.Context) error {
	var answer string
	err := j.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&answer)
	if err != nil || answer != "ok" {
		return fault.Wrap(fault.Unavailable, errors.Join(err, errors.New(answer)),
			"The journal is damaged. Nothing is done until it is restored from a copy; then see what that one does not remember. Run: writ recover")
	}
	return nil
}

// Close closes the journal, and the audit with a last checkpoint.
func (j *Journal) Close() error {
	j.closing.Do(func() {
		if j.export != nil {
			j.closed = errors.Join(j.Anchor(context.Background()), j.log.Close())
		}
		j.closed = errors.Join(j.closed, j.db.Close())
	})
	return j.closed
}

// transact runs do in one transaction that holds the write lock from its start.
func (j *Journal) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return broken(err)
	}
	if err := do(tx); err != nil {
		return errors.Join(broken(err), ignoreDone(tx.Rollback()))
	}
	if _, err := tx.ExecContext(ctx, wal.Mark); err != nil {
		return errors.Join(broken(err), ignoreDone(tx.Rollback()))
	}
	failpoint.Reach(failpoint.JournalCommit)
	err = tx.Commit()
	failpoint.Reach(failpoint.JournalDone)
	return broken(err)
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// broken gives a storage error its code; an error that has one keeps it.
func broken(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok || err == nil {
		return err
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == codes.SQLITE_FULL {
		return fault.Wrap(fault.Unavailable, err, "The disk of the journal is full. Free some space, then try again.").Because(disk.Full)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(fault.Unavailable, err, "The journal could not be written.")
	}
	return fault.Wrap(fault.Unavailable, err, "The journal cannot be read or written. Run: writ doctor").Because("journal_failed")
}

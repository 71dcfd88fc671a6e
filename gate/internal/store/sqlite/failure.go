package sqlite

import (
	"context"
	"errors"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"writ/fault"
)

// failure turns an error of SQLite into one with a code and a sentence. An
// error of a context and one that has a code already stay as they are.
func failure(err error) error {
	var known *fault.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	const nothing = " Nothing was changed."
	text := "The gate's store failed. The log has the cause; writ doctor checks the store." + nothing
	switch primary(err) {
	case codes.SQLITE_CONSTRAINT:
		return fault.Wrap(fault.Internal, err, "The gate's store refused a row that may not exist. The log has the cause."+nothing)
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		text = "Another process holds the gate's store. Stop it and try again." + nothing
	case codes.SQLITE_FULL:
		text = "The disk of the gate's store is full. Free space and try again." + nothing
	case codes.SQLITE_IOERR:
		text = "The disk of the gate's store gave an error. Check the disk, then start the gate anew."
	case codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN, codes.SQLITE_PERM, codes.SQLITE_AUTH:
		text = "The gate may not write to its store: file and directory must be those of the user that it runs as, on a disk that is not read-only. Run: writ doctor"
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
		text = damaged
	}
	return fault.Wrap(fault.Unavailable, err, "%s", text)
}

// damaged says what to do with a file that SQLite cannot make sense of.
const damaged = "The gate's store is damaged. Stop the gate and restore the store from a backup; then see what that one does not remember. Run: writ recover"

// primary returns the primary result code of SQLite in err's chain, or 0.
func primary(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

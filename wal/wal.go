// Package wal tells whether the write-ahead log beside a SQLite database was
// left by that database, before SQLite reads the one into the other. The log of
// another copy, left beside a file that was restored, would make a mixture of
// both, or undo what was restored.
//
// A log does not name its database. So both carry a mark: a table of one row,
// which is the first that is made and therefore page 2 of the file,
//
//	CREATE TABLE generation (
//	  only   INTEGER PRIMARY KEY CHECK (only = 1),
//	  tag    BLOB NOT NULL CHECK (length(tag) = 16),
//	  before BLOB NOT NULL CHECK (length(before) = 16)
//	) STRICT;
//	INSERT INTO generation (only, tag, before) VALUES (1, zeroblob(16), zeroblob(16));
//
// and every transaction that writes ends with [Mark]: a new random tag, and the
// tag before it.
//
// SQLite begins a log anew only after everything in it is in the file. Thus the
// tag in the file is the one before the first transaction of its log, or, if the
// log was copied into the file in part or whole, that of one of its transactions.
// After whatever crash this holds, since a page of the file is written from the
// log only. A file with any other tag is another copy. Of a copy that was made
// since the log began, the log gives the newest state of the same database, whole.
package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"writ/fault"
)

// Mark is the last statement of every transaction that writes.
const Mark = `UPDATE generation SET before = tag, tag = randomblob(16)`

// ForeignLog is the reason of an error that says: the log is of another copy.
const ForeignLog = "foreign_log"

// markPage is the page that holds the mark.
const markPage = 2

// Check refuses the database at path if SQLite would read something into it
// that another copy of it left. Nothing is changed. It may run beside a process
// that has the database open.
func Check(path string) error {
	if err := hotJournal(path); err != nil {
		return err
	}
	for range 8 {
		before, err := readHeader(path + "-wal")
		if err != nil {
			return err
		}
		page, err := readPage(path)
		if err != nil {
			return err
		}
		log, err := readLog(path + "-wal")
		if err != nil {
			return err
		}
		// In this order: whatever of this log was in the file is in what was read of the log.
		if bytes.Equal(before, log.header) {
			if !log.fits(page) {
				return fault.New(fault.Unavailable, "The log %s-wal would be read into %s, and is not that one's: another copy of it left it there. "+
					"If the file was restored, move the log away. Run: mv %s-wal %s-wal.left", path, path, path, path).Because(ForeignLog)
			}
			return nil
		}
	}
	return nil // another process has it open and writes: nothing is read into the file
}

// hotJournal refuses the other kind of log: it is there only while the very first
// page of a new file is written.
func hotJournal(path string) error {
	journal, err := os.Lstat(path + "-journal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	file, wrong := os.Stat(path)
	if err := errors.Join(err, wrong); err != nil {
		return unreadable(err, path)
	}
	if journal.Size() > 0 && file.Size() > 1<<16 {
		return fault.New(fault.Unavailable, "The journal %s-journal is none that writ leaves, and would be read into %s. Move it away. Run: mv %s-journal %s-journal.left", path, path, path, path).Because(ForeignLog)
	}
	return nil
}

func unreadable(cause error, path string) error {
	return fault.Wrap(fault.Unavailable, cause, "%s or its log cannot be read. Check their owner and the disk.", path)
}

// mark is the row of the table.
type mark struct{ tag, before [16]byte }

// readMark reads the row from the page of its table, which has no other.
func readMark(page []byte) (m mark, ok bool) {
	if len(page) < 512 || page[0] != 0x0d || binary.BigEndian.Uint16(page[3:]) != 1 {
		return m, false
	}
	at := int(binary.BigEndian.Uint16(page[8:]))
	// 36 bytes in row 1: a header of 4 bytes, NULL for the row's number, two blobs of 16.
	if at+38 > len(page) || !bytes.Equal(page[at:at+6], []byte{36, 1, 4, 0, 44, 44}) {
		return m, false
	}
	copy(m.tag[:], page[at+6:])
	copy(m.before[:], page[at+22:])
	return m, true
}

// readPage returns the page of the mark as the file has it; nil if it is not
// there yet.
func readPage(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err, path)
	}
	defer f.Close()
	header := make([]byte, 100)
	n, err := f.ReadAt(header, 0)
	if n < len(header) {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return nil, broken(err, path)
	}
	size := pageSize(uint32(binary.BigEndian.Uint16(header[16:])))
	page := make([]byte, size)
	n, err = f.ReadAt(page, int64(size)*(markPage-1))
	if n < size {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return nil, broken(err, path)
	}
	if bytes.Equal(page, make([]byte, size)) {
		return nil, nil
	}
	return page, nil
}

func broken(err error, path string) error {
	if err == nil {
		return nil
	}
	return unreadable(err, path)
}

// pageSize returns the size that a header names; one that is none is 512.
func pageSize(named uint32) int {
	switch {
	case named == 1:
		return 1 << 16
	case named < 512 || named > 1<<16 || named&(named-1) != 0:
		return 512
	}
	return int(named)
}

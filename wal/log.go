package wal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

const (
	headerBytes = 32
	frameBytes  = 24 // before each page
)

// log is what SQLite would read into the database.
type log struct {
	header   []byte // nil: there is none
	written  bool   // a transaction is in it whole
	marks    []mark // of its transactions
	unmarked bool   // the page of the mark is something else in one of them
}

// fits reports whether the log is that of the file with this page.
func (l log) fits(page []byte) bool {
	if !l.written {
		return true // nothing of it is read
	}
	if l.unmarked || len(l.marks) == 0 {
		return false
	}
	first := l.marks[0].before
	if page == nil {
		return first == [16]byte{} // it is the log of the file's beginning
	}
	m, ok := readMark(page)
	return ok && (m.tag == first || slices.ContainsFunc(l.marks, func(of mark) bool { return of.tag == m.tag }))
}

func openLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err, path)
	}
	return f, nil
}

// readHeader returns the first bytes of a log, nil if it has none.
func readHeader(path string) ([]byte, error) {
	f, err := openLog(path)
	if f == nil {
		return nil, err
	}
	defer f.Close()
	header := make([]byte, headerBytes)
	_, err = io.ReadFull(f, header)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil
	}
	return header, broken(err, path)
}

// readLog reads a log as SQLite does: up to the last transaction that is whole,
// each page of which is of this log and has the right checksum.
func readLog(path string) (l log, err error) {
	f, err := openLog(path)
	if f == nil {
		return l, err
	}
	defer f.Close()
	l, err = parseLog(bufio.NewReaderSize(f, 1<<16))
	return l, broken(err, path)
}

func parseLog(r io.Reader) (l log, err error) {
	header := make([]byte, headerBytes)
	if ok, err := fill(r, header); !ok {
		return l, err
	}
	l.header = header
	var order binary.ByteOrder = binary.LittleEndian
	magic := binary.BigEndian.Uint32(header)
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	named := binary.BigEndian.Uint32(header[8:])
	var sum checksum
	sum.add(order, header[:24])
	if magic&^1 != 0x377f0682 || named < 512 || !sum.is(header[24:]) {
		return l, nil
	}
	frame := make([]byte, frameBytes+pageSize(named))
	var open []mark // of the transaction that has no end yet
	unmarked := false
	for {
		if ok, err := fill(r, frame); !ok {
			return l, err
		}
		sum.add(order, frame[:8])
		sum.add(order, frame[frameBytes:])
		number := binary.BigEndian.Uint32(frame)
		if number == 0 || !bytes.Equal(frame[8:16], header[16:24]) || !sum.is(frame[16:24]) {
			return l, nil
		}
		if number == markPage {
			m, ok := readMark(frame[frameBytes:])
			open, unmarked = append(open, m), unmarked || !ok
		}
		if binary.BigEndian.Uint32(frame[4:]) != 0 { // the size of the database: the transaction ends
			l.written, l.marks, l.unmarked = true, append(l.marks, open...), unmarked
			open = nil
		}
	}
}

// fill reads all of b and reports whether there was so much.
func fill(r io.Reader, b []byte) (bool, error) {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return err == nil, err
}

// checksum is that of SQLite's log, over all before it as well.
type checksum struct{ a, b uint32 }

func (c *checksum) add(order binary.ByteOrder, data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		c.a += order.Uint32(data) + c.b
		c.b += order.Uint32(data[4:]) + c.a
	}
}

func (c *checksum) is(stored []byte) bool {
	return binary.BigEndian.Uint32(stored) == c.a && binary.BigEndian.Uint32(stored[4:]) == c.b
}

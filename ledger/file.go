package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"writ/fault"
)

// File is an audit file open for appending. There is one in one process for
// each audit file, and it is for one goroutine at a time. The first error ends
// it: what the disk holds afterwards is known only after Open has read it again.
type File struct {
	path   string
	file   *os.File
	report Report
	failed error
}

// Open opens the audit file at path, or makes it with mode 0600, takes it for
// this process alone and verifies all of it. A link, a file with a second name,
// one that others may use or that another process has open, and one with a
// wrong line are refused. A torn line is left for Cut.
func Open(path string) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, unusable(err, "The path of the audit file cannot be made absolute. Name the file by its full path.")
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, unusable(err, "The audit file %s cannot be opened for writing. It must be a file of its own, no link, in a directory of the user that writ runs as.", path)
	}
	f := &File{path: path, file: file}
	if err := f.take(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// take locks and verifies the file and makes its name durable.
func (f *File) take() error {
	if err := syscall.Flock(int(f.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return unusable(err, "Another process writes the audit file %s. Stop that one first.", f.path)
	}
	info, err := f.look()
	if err != nil {
		return err
	}
	if f.report, err = Verify(f.file); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The audit file %s is refused. %s", f.path, fault.TextOf(err)).Because(fault.ReasonOf(err))
	}
	if whole := info.Size() == f.report.Bytes; whole == f.report.Torn {
		return unusable(nil, "The audit file %s changed while it was read. Find out what else writes it.", f.path)
	}
	dir, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return unusable(err, "The directory of the audit file %s cannot be opened. Check its mode.", f.path)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return unusable(err, "The directory of the audit file %s cannot be made durable. Check the disk.", f.path)
	}
	return nil
}

// Report returns what the file holds.
func (f *File) Report() Report { return f.report }

// Cut removes a torn line. Nobody may call it before knowing that no event
// beyond the report was ever acknowledged.
func (f *File) Cut() error {
	if f.failed != nil || !f.report.Torn {
		return f.failed
	}
	if _, err := f.look(); err != nil {
		return f.end(err)
	}
	if err := errors.Join(f.file.Truncate(f.report.Bytes), f.file.Sync()); err != nil {
		return f.end(unusable(err, "The torn last line of the audit file %s cannot be removed. Check the disk, then start again.", f.path))
	}
	f.report.Torn = false
	return nil
}

// Append writes lines, which must follow the report's head, and returns after
// they are durable. Before it writes, and also if there is nothing to write, it
// makes sure that the file is still the one of this name and as it was left.
func (f *File) Append(lines ...[]byte) error {
	if f.failed != nil {
		return f.failed
	}
	next, text := f.report, []byte(nil)
	for _, line := range lines {
		if err := next.add(line); err != nil {
			return f.end(fault.Wrap(fault.Unavailable, err, "What should be written to the audit file %s does not follow what it holds. Verify the file.", f.path))
		}
		text = append(append(text, line...), '\n')
	}
	info, err := f.look()
	if err != nil {
		return f.end(err)
	}
	if info.Size() != f.report.Bytes {
		return f.end(unusable(nil, "The audit file %s was changed by something else than writ. Verify it, then start again.", f.path))
	}
	if len(lines) == 0 {
		return nil
	}
	if _, err := f.file.Write(text); err != nil {
		return f.end(unusable(err, "The audit file %s cannot be written. Check the disk's free space, then start again.", f.path))
	}
	// A failed fsync is not tried again: the kernel may have dropped the pages,
	// and a later success would lie.
	if err := f.file.Sync(); err != nil {
		return f.end(unusable(err, "The audit file %s cannot be made durable. Check the disk, then start again.", f.path))
	}
	f.report = next
	return nil
}

// look returns the state of the open file if it is still the one at its path,
// has no other name and is its owner's alone.
func (f *File) look() (os.FileInfo, error) {
	open, err := f.file.Stat()
	if err != nil {
		return nil, unusable(err, "The audit file %s cannot be looked at. Check the disk.", f.path)
	}
	named, err := os.Lstat(f.path)
	if err != nil || !os.SameFile(open, named) {
		return nil, unusable(err, "The audit file %s was moved, removed or replaced while writ had it open. Put it back, then start again.", f.path)
	}
	stat, ok := open.Sys().(*syscall.Stat_t)
	switch {
	case !open.Mode().IsRegular():
		return nil, unusable(nil, "The audit file %s is not a file. Put it at a path of its own.", f.path)
	case !ok || int(stat.Uid) != os.Geteuid() || open.Mode().Perm()&0o077 != 0:
		return nil, unusable(nil, "The audit file %s can be used by others than the user writ runs as. Run: chown %d %s && chmod 600 %s", f.path, os.Geteuid(), f.path, f.path)
	case stat.Nlink != 1:
		return nil, unusable(nil, "The audit file %s has a second name. Remove the other hard link.", f.path)
	}
	return open, nil
}

// end keeps the first error and closes the file.
func (f *File) end(err error) error {
	f.failed = err
	_ = f.file.Close() // the error that counts is known
	return err
}

// Close gives the file back. Everything appended is durable already.
func (f *File) Close() error {
	if f.failed != nil {
		return nil
	}
	f.failed = unusable(nil, "The audit file %s is closed.", f.path)
	return f.file.Close()
}

func unusable(cause error, format string, args ...any) error {
	return fault.Wrap(fault.Unavailable, cause, format, args...)
}

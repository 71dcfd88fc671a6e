// Package datadir guards the directory in which the executor keeps its keys,
// its vault and its journal: nobody else may enter it, one process uses it at a
// time, and its files are replaced as a whole or not at all. What is wrong is
// said with the command that mends it; nothing is mended silently.
package datadir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"writ/disk"
	"writ/fault"
)

// Check reports what is wrong with the directory itself.
func Check(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.NotFound, "There is no directory %s. Make it: writ-executor init --dir %s --name NAME", dir, dir)
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "The directory %s cannot be read. Run this as its owner.", dir)
	case !info.IsDir():
		return refuse(nil, "%s must be a directory, not a link or a file.", dir)
	case !ours(info):
		return refuse(nil, "%s belongs to another user. Run: chown -R %d %s", dir, os.Geteuid(), dir)
	case info.Mode().Perm() != 0o700:
		return refuse(nil, "%s must be its owner's, and nobody else's. Run: chmod 700 %s", dir, dir)
	}
	return nil
}

// Lock takes the directory for one process until release is called, or the
// process ends. It fails with fault.Conflict while another one has it.
func Lock(dir, name string) (release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The lock file of %s cannot be opened. Check the owner of the directory.", dir)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fault.Wrap(fault.Conflict, err, "Another process uses %s. Stop it first, or wait until it is done.", dir)
	}
	return f.Close, nil
}

// Read returns the content of a file that is ours alone.
func Read(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.NotFound, err, "There is no file %s. Restore it from a copy; without one, make a new home: writ init DIR", file)
	}
	if err != nil {
		if info, e := os.Lstat(file); e == nil {
			if e := private(file, info); e != nil {
				return nil, e
			}
		}
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be read. Check the disk.", file)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = private(file, info)
	}
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(content) > maxFile {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be read, or is larger than 1 MiB.", file)
	}
	return content, nil
}

const maxFile = 1 << 20

// private refuses what is no file of ours alone.
func private(file string, info fs.FileInfo) error {
	switch mode := info.Mode().Perm(); {
	case !info.Mode().IsRegular():
		return refuse(nil, "%s must be a file of our own, not a link or anything else.", file)
	case !ours(info):
		return refuse(nil, "%s belongs to another user. Run: chown %d %s", file, os.Geteuid(), file)
	case mode&0o077 != 0:
		return refuse(nil, "Others may read %s. Run: chmod 600 %s", file, file)
	case mode&0o400 == 0:
		return refuse(nil, "Its owner may not read %s. Run: chmod 600 %s", file, file)
	}
	return nil
}

// Create writes a new file of mode 0600. It fails with fault.Conflict if there
// is one.
func Create(file string, content []byte) error {
	err := writeNew(file, content)
	if errors.Is(err, fs.ErrExist) {
		return fault.Wrap(fault.Conflict, err, "There is already a file %s. Nothing was overwritten.", file)
	}
	return failed(err, file)
}

// Replace puts content in the place of a file, as a whole or not at all.
func Replace(file string, content []byte) error {
	temporary := file + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(err, file)
	}
	if err := writeNew(temporary, content); err != nil {
		return failed(err, file)
	}
	return Rename(temporary, file)
}

// Rename puts a file in the place of another, durably.
func Rename(from, to string) error {
	return failed(disk.Rename(from, to), to)
}

func failed(err error, file string) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "%s could not be written. Check the free space and the owner of its directory.", file)
}

func writeNew(file string, content []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(file))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func ours(info fs.FileInfo) bool { return int(info.Sys().(*syscall.Stat_t).Uid) == os.Geteuid() }

func refuse(cause error, format string, args ...any) error {
	return fault.Wrap(fault.Refused, cause, format, args...).Because("wrong_mode")
}

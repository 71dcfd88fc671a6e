package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"writ/disk"
	"writ/fault"
	"writ/wal"
)

// prepare makes the directory and an empty file where they are missing, checks
// that both are ours alone, and returns the absolute path of the file. SQLite
// gives its own files beside it the mode of this one.
func prepare(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", unusable(err, "The path of the gate's store cannot be made absolute. Name the store by its full path.")
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", unusable(err, "The directory %s cannot be made. Make it with mode 0700 for the user the gate runs as.", dir)
	}
	if err := private(dir, fs.ModeDir); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		if err := errors.Join(leftover(path), f.Close()); err != nil {
			return "", errors.Join(err, os.Remove(path))
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return "", unusable(err, "The gate's store %s cannot be made. Check the disk and the directory.", path)
	}
	if err := private(path, 0); err != nil {
		return "", err
	}
	if err := wal.Check(path); err != nil {
		return "", err
	}
	return path, disk.Local(dir)
}

// crashed reports whether a log lies beside the store: its last process did not
// end by itself, or somebody put a log there.
func crashed(path string) bool {
	info, err := os.Lstat(path + "-wal")
	return err == nil && info.Size() > 0
}

// leftover refuses a new store beside the log of an old one: SQLite would read
// the old log into it.
func leftover(path string) error {
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Lstat(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			return unusable(err, "The gate's store %s is missing, but its log %s%s is there. Restore the store, or move the log away.", path, path, suffix)
		}
	}
	return nil
}

// private refuses what is not of the type wanted, is not owned by the user of
// this process, can be used by anybody else, or has a second name.
func private(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return unusable(err, "The gate's store cannot be looked at in %s. Check the directory.", path)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode().Type() != kind:
		return unusable(nil, "%s is a link or not what the gate's store needs there. Put the store at a path of its own.", path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return unusable(nil, "%s belongs to another user than the gate runs as. Run: chown %d %s", path, os.Geteuid(), path)
	case info.Mode().Perm()&0o077 != 0:
		return unusable(nil, "%s can be used by others than its owner. Run: chmod go-rwx %s", path, path)
	case kind == 0 && stat.Nlink != 1:
		return unusable(nil, "%s has a second name. Remove the other hard link.", path)
	}
	return nil
}

func unusable(cause error, format string, args ...any) error {
	return fault.Wrap(fault.Unavailable, cause, format, args...)
}

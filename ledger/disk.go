package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"writ/fault"
)

// writeTile writes a tile. It is made durable with the next checkpoint: until
// then it can be made anew from the lines.
func writeTile(dir, path string, hashes []byte) error {
	path = filepath.Join(dir, path)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path+".new", hashes, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return unusable(err, "The tile %s of the audit cannot be written. Check the disk's free space, then start again.", path)
	}
	return nil
}

// syncPaths makes files or directories durable.
func syncPaths(paths ...string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil {
			return unusable(err, "%s cannot be made durable. Check the disk, then start again.", path)
		}
	}
	return nil
}

// replace writes a file so that at every moment it is there whole, before or
// after, and durable.
func replace(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		_, err = f.Write(content)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return unusable(err, "%s cannot be written. Check the directory and the disk's free space.", path)
	}
	return syncPaths(filepath.Dir(path))
}

// private refuses what is not of the type wanted or can be used by others than
// the user of this process.
func private(path string, info fs.FileInfo, kind fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := "600"
	if kind == fs.ModeDir {
		mode = "700"
	}
	switch {
	case info.Mode().Type() != kind:
		return unusable(nil, "%s is a link, or not what the audit has there. Put back what was there.", path)
	case !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0:
		return unusable(nil, "%s can be used by others than the user writ runs as. Run: chown %d %s && chmod %s %s", path, os.Geteuid(), path, mode, path)
	case kind == 0 && stat.Nlink != 1:
		return unusable(nil, "%s has a second name. Remove the other hard link.", path)
	}
	return nil
}

func unusable(cause error, format string, args ...any) *fault.Error {
	return fault.Wrap(fault.Unavailable, cause, format, args...)
}

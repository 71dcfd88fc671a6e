package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"writ/fault"
	"writ/gate/internal/config"
)

// checkFile reports whether a file is ours alone, with the command that mends it.
func checkFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.NotFound, err, "There is no %s. Restore it from a copy, or make a new one. Run: %s", path, maker(path))
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "%s cannot be looked at. Run this as the owner of its directory.", path)
	case !info.Mode().IsRegular():
		return fault.New(fault.Refused, "%s must be a file, not a link or anything else.", path).Because("not_a_file")
	}
	return checkOwner(path, info, 0o600)
}

// maker is the command that makes a new file where one is missing.
func maker(path string) string {
	switch dir := filepath.Dir(path); filepath.Base(path) {
	case config.KeyFile:
		return "writ-gate key --dir " + dir
	case config.PrincipalsFile:
		return "writ principals add NAME"
	case config.File:
		return "writ-gate init --dir " + dir + " --executor NAME --executor-socket PATH --executor-key KEY"
	default: // the policy is the only other file that the gate cannot be without
		return "writ-gate init --dir " + dir
	}
}

// checkDir reports whether a directory is ours alone.
func checkDir(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.NotFound, err, "There is no directory %s. Restore it from a copy, or make a new home. Run: writ init DIR", path)
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "%s cannot be looked at. Run this as its owner.", path)
	case !info.IsDir():
		return fault.New(fault.Refused, "%s must be a directory, not a link or a file.", path).Because("not_a_directory")
	}
	return checkOwner(path, info, 0o700)
}

func checkOwner(path string, info fs.FileInfo, want fs.FileMode) error {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fault.New(fault.Refused, "%s belongs to another user than the gate runs as. Run: chown %d %s", path, os.Geteuid(), path).Because("owner")
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o077 != 0:
		return fault.New(fault.Refused, "Others may use %s. Run: chmod %o %s", path, want, path).Because("mode")
	case mode&0o400 == 0, info.IsDir() && mode != want:
		return fault.New(fault.Refused, "Its owner may not use %s. Run: chmod %o %s", path, want, path).Because("mode")
	}
	return nil
}

// create writes a new file of mode 0600; one that exists is left as it is.
func create(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.Wrap(fault.Conflict, err, "There is already a file %s. Nothing was overwritten.", path)
	}
	if err == nil {
		_, err = f.Write(content)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be written. Check the owner of the directory and the space on the disk.", path)
	}
	return nil
}

// makeDir makes a directory that is ours alone, or checks the one there is.
func makeDir(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "The directory %s cannot be made.", path)
	}
	return path, checkDir(path)
}

package ledger

import (
	"io/fs"
	"os"
	"path/filepath"
)

// hold notes the files of the ledger as they are, and refuses those that are
// not ours alone.
func (l *Log) hold() error {
	l.files = nil
	segments, err := os.ReadDir(filepath.Join(l.dir, "segment"))
	if err != nil {
		return unusable(err, "The audit %s has no segments. Put the directory segment back from its copy.", l.dir)
	}
	paths := []string{filepath.Join(l.dir, "checkpoint")}
	for _, e := range segments {
		paths = append(paths, filepath.Join(l.dir, "segment", e.Name()))
	}
	for _, path := range paths {
		if err := l.holdFile(path); err != nil {
			return err
		}
	}
	return l.look()
}

func (l *Log) holdFile(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return unusable(err, "%s cannot be looked at. Check the directory.", path)
	}
	l.files = append(l.files, held{path, info, info.Size()})
	return nil
}

// look fails if the directory or one of its files is not the one it was, is not
// as long as it was left, has another name or can be used by others.
func (l *Log) look() error {
	open, err := l.lock.Stat()
	if err != nil {
		return unusable(err, "The audit %s cannot be looked at. Check the disk.", l.dir)
	}
	for _, dir := range []string{l.dir, filepath.Join(l.dir, "segment")} {
		named, err := os.Lstat(dir)
		if err != nil || dir == l.dir && !os.SameFile(open, named) {
			return unusable(err, "%s was moved, removed or replaced while writ had it open. Put it back, then start again.", dir)
		}
		if err := private(dir, named, fs.ModeDir); err != nil {
			return err
		}
	}
	for _, f := range l.files {
		named, err := os.Lstat(f.path)
		if err != nil || !os.SameFile(f.info, named) {
			return unusable(err, "%s was moved, removed or replaced while writ had it open. Put it back, then start again.", f.path)
		}
		if err := private(f.path, named, 0); err != nil {
			return err
		}
		if named.Size() != f.size {
			return unusable(nil, "%s was changed by something else than writ: it has %d bytes, and not %d. Verify the audit, then start again.", f.path, named.Size(), f.size)
		}
	}
	return nil
}

// Private refuses a ledger that others may change, as its writer would.
func Private(dir string) error {
	for _, path := range []string{dir, filepath.Join(dir, "segment")} {
		info, err := os.Lstat(path)
		if err != nil {
			return unusable(err, "%s cannot be looked at. Put it back from its copy. Run: writ audit verify %s", path, dir)
		}
		if err := private(path, info, fs.ModeDir); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "segment"))
	if err != nil {
		return unusable(err, "The segments of the audit %s cannot be listed.", dir)
	}
	paths := []string{filepath.Join(dir, "checkpoint")}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, "segment", e.Name()))
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			continue // Verify says what is missing
		}
		if err := private(path, info, 0); err != nil {
			return err
		}
	}
	return nil
}

package disk

import (
	"io/fs"
	"os"
	"path/filepath"

	"writ/fault"
)

// Trusted fails if others than its owner may write to a directory, or to anything
// below it. Where nobody else can get to, nothing is looked at.
func Trusted(dir string) error {
	if hidden(dir) {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = os.Stat(path) // of a link, what it leads to
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "%s cannot be read. Give it to the user that this program runs as, or put it right. Run: ls -l %s", path, path)
		}
		if info.Mode().Perm()&0o022 != 0 {
			return fault.New(fault.Refused, "%s can be changed by others than its owner, and so could what is done. Run: chmod go-w %s", path, path).Because("open_to_others")
		}
		return nil
	})
}

// hidden reports whether only its owner can enter a directory, or one above it.
func hidden(dir string) bool {
	for {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o011 == 0 {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

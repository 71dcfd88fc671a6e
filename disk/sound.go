package disk

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"writ/fault"
)

// Sound fails unless a directory is on a local disk on which a file can be made,
// written and made durable. It tries that with a file that has no name, or only
// for a moment. The error ends in the command that mends it, where one does.
func Sound(dir string) error {
	if err := Local(dir); err != nil {
		return err
	}
	err := try(dir)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EROFS):
		return readOnly(err, dir)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		if st, e := look(dir); e == nil && st.Files > 0 && st.Ffree == 0 {
			return noFiles(err, dir)
		}
		return full(err, dir, blockSize)
	case errors.Is(err, unix.EIO):
		return fault.Wrap(fault.Unavailable, err, "The disk of %s gives errors: what is written there may be lost. Stop both processes, see what the kernel says, and move the directory to a sound disk. Run: dmesg --level err,crit", dir).Because("disk_failed")
	case errors.Is(err, unix.EACCES):
		return denied(err, dir)
	default:
		return fault.Wrap(fault.Unavailable, err, "No file can be written and made durable in %s: %v. Check the disk.", dir, err).Because("disk_failed")
	}
}

const blockSize = 4096

func try(dir string) error {
	f, err := open(dir)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, blockSize))
	return errors.Join(err, f.Sync(), f.Close())
}

// open makes a file that is gone when it is closed.
func open(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.ENOENT) {
		return f, err
	}
	if f, err = os.CreateTemp(dir, ".writ-try-"); err != nil { // not every file system has files without a name
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func denied(cause error, dir string) error {
	return fault.Wrap(fault.Refused, cause, "The user that writ runs as may not write in %s. Run: chown %d %s && chmod u+rwx %s", dir, os.Geteuid(), dir, dir).Because("owner")
}

func readOnly(cause error, dir string) error {
	return fault.Wrap(fault.Unavailable, cause, "The file system of %s is read-only; Linux makes it so after an error of the disk. See why with dmesg; then make it writable again. Run: mount -o remount,rw %s",
		dir, mountOf(dir)).Because(ReadOnly)
}

// ReadOnly is the reason of an error that says: nothing can be written there.
const ReadOnly = "read_only"

// mountOf is where the file system of a directory is mounted.
func mountOf(dir string) string {
	at, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	for ; at != filepath.Dir(at); at = filepath.Dir(at) {
		var st unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, at, 0, 0, &st); err != nil || st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
			break
		}
	}
	return at
}

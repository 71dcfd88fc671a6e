// Package disk says whether a disk will do for what has to be on it before
// anything may be done, and who else may write to what is read from it; it keeps
// room for what has to be written afterwards, and replaces files so that no crash
// leaves half of one.
package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"writ/fault"
)

// Room fails with reason disk_full if less than so many bytes, or no more files,
// can be written to the file system of a directory; with reason read_only if
// nothing can.
func Room(dir string, bytes int64) error {
	st, err := look(dir)
	switch {
	case err != nil:
		return err
	case st.Flags&unix.ST_RDONLY != 0:
		return readOnly(nil, dir)
	case int64(st.Bavail)*st.Bsize < bytes:
		return full(nil, dir, bytes)
	case st.Files > 0 && st.Ffree == 0:
		return noFiles(nil, dir)
	}
	return nil
}

func look(dir string) (st unix.Statfs_t, err error) {
	if err := unix.Statfs(dir, &st); err != nil {
		return st, fault.Wrap(fault.Unavailable, err, "The file system of %s cannot be looked at. Check the disk.", dir)
	}
	return st, nil
}

func full(cause error, dir string, bytes int64) error {
	return fault.Wrap(fault.Unavailable, cause, "The disk of %s is full: less than %d KiB are free, and nothing is changed unless what comes of it can be written down. Free some space; see where it went. Run: df -h %s",
		dir, bytes>>10, dir).Because(Full)
}

func noFiles(cause error, dir string) error {
	return fault.Wrap(fault.Unavailable, cause, "The disk of %s has room for no further file, and nothing is changed unless what comes of it can be written down. Remove files; see where they are. Run: df -i %s",
		dir, dir).Because(Full)
}

// Replace writes a file of mode 0600 so that at every moment it is there whole,
// before or after, and durable.
func Replace(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		_, err = f.Write(content)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = Rename(path+".new", path)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be written. Check the owner of the directory and the space on the disk.", path)
	}
	return nil
}

// Rename puts a file in the place of another, durably.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Full is the reason of an error that says: there is no room, and nothing was
// written.
const Full = "disk_full"

// Local fails if a directory lies on another machine: what such a file system
// says of locks and of durability cannot be relied on.
func Local(dir string) error {
	st, err := look(dir)
	if err != nil {
		return err
	}
	if name := Remote(int64(st.Type)); name != "" {
		return fault.New(fault.Refused, "%s is on a network file system (%s), where locks and fsync cannot be relied on. Stop both processes, move it to a local disk, and mount that in its place.", dir, name).Because("network_disk")
	}
	return nil
}

// Remote names the file system of several machines that has a number of
// statfs(2); "" is none.
func Remote(kind int64) string {
	switch uint32(kind) {
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "smb"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "afs"
	case unix.CODA_SUPER_MAGIC:
		return "coda"
	case unix.OCFS2_SUPER_MAGIC:
		return "ocfs2"
	case 0x01161970:
		return "gfs2"
	case 0x0bd00bd0:
		return "lustre"
	case 0x47504653:
		return "gpfs"
	case 0x19830326:
		return "beegfs"
	case 0x20030528:
		return "orangefs"
	case 0x786f4256:
		return "vboxsf"
	case 0xbacbacbc:
		return "vmhgfs"
	}
	return ""
}

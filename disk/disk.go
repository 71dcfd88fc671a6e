// Package disk says whether a disk will do for what has to be on it before
// anything may be done, and keeps room on it for what has to be written
// afterwards.
package disk

import (
	"golang.org/x/sys/unix"

	"writ/fault"
)

// Room fails with reason disk_full if less than so many bytes can be written to
// the file system of a directory.
func Room(dir string, bytes int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The file system of %s cannot be looked at. Check the disk.", dir)
	}
	if free := int64(st.Bavail) * st.Bsize; free < bytes {
		return full(nil, dir, bytes)
	}
	return nil
}

func full(cause error, dir string, bytes int64) error {
	return fault.Wrap(fault.Unavailable, cause, "The disk of %s is full: less than %d KiB are free, and nothing is changed unless what comes of it can be written down. Free some space; see where it went. Run: df -h %s",
		dir, bytes>>10, dir).Because(Full)
}

// Full is the reason of an error that says: there is no room, and nothing was
// written.
const Full = "disk_full"

// Local fails if a directory lies on another machine: what such a file system
// says of locks and of durability cannot be relied on.
func Local(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The file system of %s cannot be looked at. Check the disk.", dir)
	}
	if name := Remote(int64(st.Type)); name != "" {
		return fault.New(fault.Refused, "%s is on a network file system (%s), where locks and fsync cannot be relied on. Put it on a local disk.", dir, name).Because("network_disk")
	}
	return nil
}

// Remote names the network file system that has a number of statfs(2); "" is none.
func Remote(kind int64) string {
	switch kind {
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
	}
	return ""
}

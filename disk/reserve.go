package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"writ/fault"
)

// Reserve is a file that takes room away from everybody else, so that the room
// can be used when there is none left. It is safe for concurrent use.
type Reserve struct {
	Path string
	Size int64
	// Spare is what must be free besides, for what is written before the reserve
	// is needed.
	Spare int64

	mu sync.Mutex
}

// Hold makes sure that the room is reserved, also after it was used. It fails
// with reason disk_full while there is too little.
func (r *Reserve) Hold() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	dir := filepath.Dir(r.Path)
	held, err := r.held()
	if err == nil && !held {
		err = r.allocate(dir)
	}
	if err != nil {
		return err
	}
	return Room(dir, r.Spare)
}

// Check fails where Hold would. It changes nothing.
func (r *Reserve) Check() error {
	held, err := r.held()
	need := r.Spare
	if !held {
		need += r.Size
	}
	if err != nil {
		return err
	}
	return Room(filepath.Dir(r.Path), need)
}

// Tight gives the room free if little else is left, and reports whether that
// was so. Whoever calls it then writes at once.
func (r *Reserve) Tight() bool {
	if Room(filepath.Dir(r.Path), r.Spare) == nil {
		return false
	}
	r.Free()
	return true
}

// Free gives the room free.
func (r *Reserve) Free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = os.Truncate(r.Path, 0) // if it cannot, whoever writes fails, and says so
}

// held reports whether the file is there and has its blocks.
func (r *Reserve) held() (bool, error) {
	info, err := os.Lstat(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return false, fault.Wrap(fault.Unavailable, err, "%s must be a file of writ's own. Remove what is in its place.", r.Path)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Size() >= r.Size && st.Blocks*512 >= r.Size, nil
}

func (r *Reserve) allocate(dir string) error {
	f, err := os.OpenFile(r.Path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		err = fill(f, r.Size)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		_ = os.Truncate(r.Path, 0) // half of it is of no use, and others may need it
		return full(err, dir, r.Size+r.Spare)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "The reserve %s cannot be written. Check the owner of its directory and the disk.", r.Path)
	}
	return nil
}

// fill gives a file its blocks, on file systems that cannot reserve them by
// writing to them.
func fill(f *os.File, size int64) error {
	err := unix.EINTR
	for errors.Is(err, unix.EINTR) {
		err, _ = unix.Fallocate(int(f.Fd()), 0, 0, size).(unix.Errno)
	}
	if err == 0 {
		return nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	block := make([]byte, 1<<16)
	for at := int64(0); at < size; at += int64(len(block)) {
		if _, err := f.WriteAt(block, at); err != nil {
			return err
		}
	}
	return nil
}

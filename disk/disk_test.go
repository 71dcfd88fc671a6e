package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"writ/disk"
	"writ/fault"
)

const huge = 1 << 60 // more than any disk has

func TestRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := disk.Room(dir, 1); err != nil {
		t.Errorf("one byte: %v", err)
	}
	if err := disk.Room(dir, huge); fault.CodeOf(err) != fault.Unavailable || fault.ReasonOf(err) != disk.Full {
		t.Errorf("more than there is: %v", err)
	}
	if err := disk.Room(filepath.Join(dir, "none"), 1); err == nil {
		t.Error("a directory that is not there has room")
	}
}

func TestRemote(t *testing.T) {
	t.Parallel()
	// The numbers of statfs(2).
	for kind, want := range map[int64]string{0x6969: "nfs", 0x517b: "smb", 0xff534d42: "smb", 0xfe534d42: "smb", 0xc36400: "ceph", 0x0bd00bd0: "lustre", 0x01161970: "gfs2", -0x45345344: "vmhgfs", 0xef53: "", 0x01021994: ""} {
		if got := disk.Remote(kind); got != want {
			t.Errorf("Remote(%#x) = %q, want %q", kind, got, want)
		}
	}
	if err := disk.Local(t.TempDir()); err != nil {
		t.Errorf("a local disk: %v", err)
	}
}

func TestSound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := disk.Sound(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v behind, %v", left, err)
	}
	if err := disk.Sound(filepath.Join(dir, "none")); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a directory that is not there: %v", err)
	}
	// What the kernel itself never takes from anybody.
	if err := disk.Sound("/proc"); err == nil {
		t.Error("a directory in which nothing can be written is sound")
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &disk.Reserve{Path: filepath.Join(dir, "reserve"), Size: 1 << 20}
	if err := r.Check(); err != nil {
		t.Errorf("there is room for it: %v", err)
	}
	size := func() int64 {
		info, err := os.Stat(r.Path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %o", info.Mode().Perm())
		}
		return info.Size()
	}
	for range 2 { // also after it was used
		if err := r.Hold(); err != nil || size() != 1<<20 {
			t.Fatalf("%v, %d bytes", err, size())
		}
		if r.Tight() || size() != 1<<20 {
			t.Error("it was used although there is room")
		}
		r.Free()
		if size() != 0 {
			t.Errorf("after Free it has %d bytes", size())
		}
	}
	// A file with a hole reserves nothing.
	if err := os.Truncate(r.Path, 1<<20); err != nil {
		t.Fatal(err)
	}
	r.Spare = huge
	if err := r.Hold(); fault.ReasonOf(err) != disk.Full {
		t.Errorf("no room besides: %v", err)
	}
	if err := r.Check(); fault.ReasonOf(err) != disk.Full {
		t.Errorf("no room besides: %v", err)
	}
	if !r.Tight() || size() != 0 {
		t.Error("it was not given free although there is no room besides")
	}
	full := &disk.Reserve{Path: filepath.Join(dir, "full"), Size: huge}
	if err := full.Check(); fault.ReasonOf(err) != disk.Full {
		t.Errorf("no room for it: %v", err)
	}
	link := &disk.Reserve{Path: filepath.Join(dir, "link"), Size: 1}
	if err := os.Symlink(r.Path, link.Path); err != nil {
		t.Fatal(err)
	}
	if err := link.Hold(); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a link in its place: %v", err)
	}
}

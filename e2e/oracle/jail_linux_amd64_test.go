package oracle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// shown are the directories of the machine that a text sees, and emptied those
// that are there without the machine's files; the rest of / is not there.
var (
	shown   = strings.Fields("bin sbin lib lib32 lib64 libx32 usr etc var opt")
	emptied = strings.Fields("dev proc sys tmp run root home srv mnt media var/tmp var/spool/cron")
)

// jail is the first process of a worker: it builds the root, enters it, starts
// the decoys and the runner, and reaps. It is root of the machine, and runs
// nothing that a text says; dir is a directory of the test, with the files that
// the texts are to find in dir/tree.
func jail(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	ram := filepath.Join(dir, "ram")
	if err := errors.Join(os.MkdirAll(ram, 0o755), unix.Mount("oracle", ram, "tmpfs", 0, "size=512m,mode=755")); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	for _, name := range []string{"root", "mask", "up", "work", "new", "was"} {
		if err := os.Mkdir(filepath.Join(ram, name), 0o755); err != nil {
			return err
		}
	}
	// Not recursive: what is mounted below / stays outside.
	if err := unix.Mount("/", ram+"/root", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind the machine's root: %w", err)
	}
	if err := os.CopyFS(ram+"/mask", os.DirFS(filepath.Join(filepath.Dir(dir), "tree"))); err != nil {
		return fmt.Errorf("copy what the texts are to find: %w", err)
	}
	if err := mask(ram+"/mask", ram+"/root"); err != nil {
		return fmt.Errorf("hide what is the machine's own: %w", err)
	}
	lower := fmt.Sprintf("lowerdir=%[1]s/mask:%[1]s/root", ram)
	err := errors.Join(unix.Mount("oracle", ram+"/new", "overlay", 0, fmt.Sprintf("%s,upperdir=%[2]s/up,workdir=%[2]s/work", lower, ram)),
		unix.Mount("oracle", ram+"/was", "overlay", unix.MS_RDONLY, lower))
	if err != nil {
		return fmt.Errorf("mount an overlay: %w", err)
	}
	up, err := os.Open(ram + "/up")
	if err != nil {
		return err
	}
	was, err := os.Open(ram + "/was")
	if err != nil {
		return err
	}
	if err := enter(ram + "/new"); err != nil {
		return err
	}
	return contain(up, was)
}

// mask completes a layer so that it hides all of root but the shown directories.
func mask(layer, root string) error {
	opaque := slices.Clone(emptied)
	for _, name := range opaque {
		mode := os.FileMode(0o755)
		if strings.HasSuffix(name, "tmp") {
			mode = 0o777 | os.ModeSticky
		}
		path := filepath.Join(layer, name)
		if err := errors.Join(os.MkdirAll(path, mode), os.Chmod(path, mode)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(layer, e.Name())
		switch {
		case slices.Contains(shown, e.Name()) || slices.Contains(opaque, e.Name()):
		case exists(path):
			opaque = append(opaque, e.Name())
		default: // a whiteout
			if err := unix.Mknod(path, unix.S_IFCHR, 0); err != nil {
				return err
			}
		}
	}
	for _, name := range opaque {
		if err := unix.Setxattr(filepath.Join(layer, name), "trusted.overlay.opaque", []byte("y"), 0); err != nil {
			return err
		}
	}
	nodes := map[string][2]uint32{"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "tty": {5, 0}}
	for name, n := range nodes {
		path := filepath.Join(layer, "dev", name)
		if err := errors.Join(unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(n[0], n[1]))), os.Chmod(path, 0o666)); err != nil {
			return err
		}
	}
	links := map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(layer, "dev", name)); err != nil {
			return err
		}
	}
	shm := filepath.Join(layer, "dev", "shm")
	return errors.Join(os.Mkdir(shm, 0o777), os.Chmod(shm, 0o777|os.ModeSticky))
}

// enter makes root the root, with its own /proc and the machine's /sys, where
// the settings of the kernel can be read only.
func enter(root string) error {
	if err := unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/mtrr", "/sys"} {
		from := root + path
		if path == "/sys" {
			from = path
		}
		if _, err := os.Stat(from); err != nil {
			continue // a kernel without it
		}
		err := unix.Mount(from, root+path, "", unix.MS_BIND, "")
		if err == nil {
			err = unix.Mount("", root+path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}
		if err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	return errors.Join(unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/"))
}

// contain starts the decoys, and the runner in a user namespace, where it is
// root over all that a text can reach and over nothing of the machine: no
// clock, no module, no device.
func contain(up, was *os.File) error {
	keep := []string{"1"}
	for _, path := range []string{"/usr/local/sbin/nginx", "/usr/local/sbin/sshd"} {
		pid, err := syscall.ForkExec(path, []string{path, "infinity"}, &syscall.ProcAttr{Dir: "/", Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true}})
		if err != nil {
			return fmt.Errorf("start the decoy %s: %w", path, err)
		}
		keep = append(keep, fmt.Sprint(pid))
	}
	size, err := mapped()
	if err != nil {
		return err
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: size}}
	pid, err := syscall.ForkExec("/proc/self/exe", os.Args[:1], &syscall.ProcAttr{
		Dir: "/", Env: []string{stageEnv + "=run", "ORACLE_KEEP=" + strings.Join(keep, " "), "GODEBUG=asyncpreemptoff=1"},
		Files: []uintptr{0, 1, 2, up.Fd(), was.Fd()},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP,
			UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
		},
	})
	if err != nil {
		return fmt.Errorf("start the runner in namespaces of its own: %w", err)
	}
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		if got == pid && status.ExitStatus() != 0 {
			return fmt.Errorf("the runner ended with %d", status.ExitStatus())
		}
		if got == pid {
			return nil
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// mapped returns how many user ids this namespace has from 0 on.
func mapped() (int, error) {
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return 0, err
	}
	var first, host, size int
	if _, err := fmt.Sscan(string(data), &first, &host, &size); err != nil || first != 0 {
		return 0, fmt.Errorf("the user ids %q do not begin with root", data)
	}
	return size, nil
}

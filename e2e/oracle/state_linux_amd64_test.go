package oracle

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// look returns the state of the kernel that the runner's namespaces hold, and
// of the decoys.
func (r *runner) look() map[string]string {
	state := map[string]string{}
	for _, name := range strings.Fields("sys/kernel/hostname sys/kernel/domainname self/mountinfo sysvipc/shm sysvipc/sem sysvipc/msg net/fib_trie net/if_inet6 net/arp") {
		data, _ := os.ReadFile("/proc/" + name)
		state[name] = string(data)
	}
	// Of an interface only its name: the rest counts packets.
	devices, _ := os.ReadFile("/proc/net/dev")
	for line := range strings.Lines(string(devices)) {
		name, _, _ := strings.Cut(line, ":")
		state["net/dev"] += strings.TrimSpace(name) + " "
	}
	for _, pid := range r.attempts.decoys {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := strings.Fields(string(data))
		score, _ := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		if len(fields) > 18 { // its state, its priority
			state[fmt.Sprintf("the decoy %d", pid)] = strings.Join([]string{fields[1], strings.ReplaceAll(fields[2], "R", "S"), fields[17], fields[18], string(score)}, " ")
		} else {
			state[fmt.Sprintf("the decoy %d", pid)] = "gone"
		}
	}
	return state
}

// upper is the directory of an overlay in which every change lies; was shows
// the root as it was.
type upper struct{ dir, was string }

// changes lists what the upper directory holds. A directory is there already
// when something below it was tried, and a file when it was opened for writing:
// they count only when they differ.
func (u upper) changes() (list []string) {
	err := fs.WalkDir(os.DirFS(u.dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := "left"
		switch {
		case info.Mode()&fs.ModeCharDevice != 0 && info.Sys().(*syscall.Stat_t).Rdev == 0:
			what = "removed"
		case u.same(name, info):
			return nil
		}
		if full := path.Join("/", name); !trace("", what, full) && len(list) < 20 {
			list = append(list, what+" "+full)
		}
		return nil
	})
	if err != nil {
		list = append(list, "the upper directory cannot be read: "+err.Error())
	}
	return list
}

// same says whether something was there before, just as it is now.
func (u upper) same(name string, now fs.FileInfo) bool {
	before, err := os.Lstat(path.Join(u.was, name))
	if err != nil {
		return false
	}
	a, b := before.Sys().(*syscall.Stat_t), now.Sys().(*syscall.Stat_t)
	if a.Mode != b.Mode || a.Uid != b.Uid || a.Gid != b.Gid {
		return false
	}
	if now.IsDir() {
		return true
	}
	if !now.Mode().IsRegular() || a.Size != b.Size || a.Mtim != b.Mtim {
		return false
	}
	x, errX := os.ReadFile(path.Join(u.was, name))
	y, errY := os.ReadFile(path.Join(u.dir, name))
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

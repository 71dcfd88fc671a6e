package oracle

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"writ/shell"
)

const (
	workDir   = "/srv/here"       // where a text runs
	inputFile = "/srv/input.data" // its standard input
)

// hostile is what a program reads that takes its input for orders.
const hostile = "touch /tmp/obeyed\n!touch /tmp/obeyed\n:w /tmp/obeyed\nw /tmp/obeyed\n.output /tmp/obeyed\n.shell touch /tmp/obeyed\nselect 1;\n\\! touch /tmp/obeyed\n{\"a\": 1}\n/srv/here/a\n"

const lines = "alpha error 10 root\nbeta warn 20 admin\ngamma error 30 root\n2026-01-02T03:04:05Z host app[12]: failed to open x\n"

// plant makes the tree of files that the texts find, below dir: a few things by
// hand, and everything that one of the texts reads.
func plant(t *testing.T, dir string, texts []item) {
	t.Helper()
	p := &planter{t: t, root: filepath.Join(dir, "tree")}
	for _, name := range append(strings.Fields(workDir+"/sub/deep boot/grub"), emptied...) {
		p.must(os.MkdirAll(filepath.Join(p.root, name), 0o755))
	}
	p.file(inputFile, []byte(hostile))
	for name, content := range map[string]string{
		"/etc/hosts": "127.0.0.1 localhost\n192.0.2.7 web\n", "/etc/resolv.conf": "nameserver 192.0.2.53\n", "/etc/hostname": "oracle\n", "/etc/fstab": "/dev/sda1 / ext4 defaults 0 1\n",
		"/root/.ssh/id_ed25519": "not a key\n", "/root/.bash_history": "ls\n", "/home/alice/notes.txt": lines, "/home/alice/.profile": "umask 022\n",
		"/var/log/syslog": lines, "/var/log/auth.log": lines, "/var/log/app.log": lines, "/run/app.pid": "2\n", "/dev/sda": "", "/dev/sda1": "", "/dev/sdb": "",
		"/srv/here/a": lines, "/srv/here/b": lines, "/srv/here/data.json": "{\"a\": [1, {\"b\": \"c\"}]}\n", "/srv/here/list.csv": "name,size\na,1\nb,2\n", "/srv/here/conf.yaml": "a: 1\nb: [c, d]\n",
		"/srv/here/script.sh": "touch /tmp/obeyed\n", "/srv/here/sub/deep/c.txt": lines, "/srv/here/-n": "a name like an option\n", "/srv/here/with blank": lines,
	} {
		p.file(name, []byte(content))
	}
	p.program("/usr/local/sbin/nginx", "/bin/sleep")
	p.program("/usr/local/sbin/sshd", "/bin/sleep")
	p.repository()
	for _, x := range texts {
		for _, touch := range x.verdict.Touches {
			p.touched(touch)
		}
	}
}

type planter struct {
	t    *testing.T
	root string
}

func (p *planter) file(name string, content []byte) {
	path := filepath.Join(p.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return // a file stands where this one wants a directory
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *planter) program(name, from string) {
	data, err := os.ReadFile(from)
	if err != nil {
		p.t.Fatal(err)
	}
	p.file(name, data)
	if err := os.Chmod(filepath.Join(p.root, name), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// touched makes a file that a text reads, by the end of its name.
func (p *planter) touched(touch shell.Touch) {
	name := touch.Name
	if touch.Kind != "path_read" || strings.ContainsAny(name, "*?[$~\x00") || len(name) > 200 {
		return
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(workDir, name)
	}
	name = filepath.Clean(name)
	top := strings.SplitN(name, "/", 3)[1]
	if strings.Contains(" proc sys dev bin sbin lib lib64 usr ", " "+top+" ") {
		return
	}
	// What the machine has stays as it is.
	if _, err := os.Stat(name); err == nil && strings.Contains(" etc var opt ", " "+top+" ") {
		return
	}
	if !strings.Contains(filepath.Base(name), ".") && strings.HasSuffix(touch.Name, "/") {
		name = filepath.Join(name, "file.txt")
	}
	p.file(name, p.content(name))
}

// content is plausible for a name.
func (p *planter) content(name string) []byte {
	var b bytes.Buffer
	switch ext := filepath.Ext(name); ext {
	case ".gz", ".tgz":
		w := gzip.NewWriter(&b)
		data := []byte(lines)
		if ext == ".tgz" || strings.HasSuffix(name, ".tar.gz") {
			data = p.tar()
		}
		_, err := w.Write(data)
		p.must(errors.Join(err, w.Close()))
	case ".tar":
		return p.tar()
	case ".zip", ".jar":
		w := zip.NewWriter(&b)
		f, err := w.Create("etc/app.conf")
		p.must(err)
		_, err = f.Write([]byte(lines))
		p.must(errors.Join(err, w.Close()))
	case ".json":
		return []byte("{\"a\": [1, {\"b\": \"c\"}], \"name\": \"x\"}\n")
	case ".yaml", ".yml":
		return []byte("a: 1\nname: x\nb: [c, d]\n")
	case ".csv":
		return []byte("name,size\na,1\nb,2\n")
	case ".db", ".sqlite", ".sqlite3":
		path := filepath.Join(p.t.TempDir(), "x.db")
		if exec.Command("sqlite3", path, "create table t(a,b); insert into t values(1,2);").Run() == nil {
			data, err := os.ReadFile(path)
			p.must(err)
			return data
		}
	}
	if b.Len() > 0 {
		return b.Bytes()
	}
	return []byte(lines)
}

func (p *planter) tar() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"etc/app.conf", "a"} {
		p.must(w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(lines)), Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte(lines))
		p.must(err)
	}
	p.must(w.Close())
	return b.Bytes()
}

// repository makes the working directory one of git, with two commits.
func (p *planter) repository() {
	if _, err := exec.LookPath("git"); err != nil {
		return
	}
	dir := filepath.Join(p.root, workDir)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "a"}, {"commit", "-q", "-m", "first"}, {"add", "b", "sub"}, {"commit", "-q", "-m", "second"}, {"tag", "v1"}, {"branch", "topic"}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=Alice", "-c", "user.email=alice@example.com", "-c", "safe.directory=*", "-C", dir}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
}

func (p *planter) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

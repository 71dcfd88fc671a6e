package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"writ/client"
	"writ/connector/proxmox/fake"
	"writ/e2e/fakes"
)

// The containers of an installation that is crashed: more than may be locked at
// the same time by changes of which the gate still asks.
const (
	firstGuest = 200
	guests     = 400
)

// crashBuild builds the three programs so that they can be killed at a point,
// or takes those in $WRIT_CRASH_BIN.
var crashBuild = sync.OnceValues(func() (string, error) {
	if err := lookAtSources(); err != nil {
		return "", err
	}
	if given := os.Getenv("WRIT_CRASH_BIN"); given != "" {
		return given, nil
	}
	dir, err := os.MkdirTemp("", "writ-crash-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", dir+"/", "writ/ctl", "writ/gate", "writ/executor").CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("go build -tags failpoint: %w\n%s", err, out)
	}
	for from, to := range map[string]string{"ctl": "writ", "gate": "writ-gate", "executor": "writ-executor"} {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			return dir, err
		}
	}
	return dir, nil
})

// installation is one writ with its two processes and a Proxmox in this process,
// which is crashed again and again and must never be wrong about what it did.
type installation struct {
	t      *testing.T
	bin    string
	dir    string
	env    []string
	pve    *fake.Server
	agent  *client.Client
	alice  *client.Client
	gate   *victim
	acts   *victim
	memory *sql.DB // the executor's journal, read by us

	next   int             // serial number of the values
	guest  int             // the container used last
	busy   map[string]bool // entities of changes that are not ended
	writes []write         // all that ever reached the target
	seen   int64           // the last event that was read
	last   string          // its text
}

// write is a request that reached the target and was to change it.
type write struct {
	text string
	done bool
}

// newInstallation makes one, with everything that a test of crashes needs allowed.
func newInstallation(t *testing.T, bin string) *installation {
	t.Helper()
	in := &installation{t: t, bin: bin, dir: filepath.Join(t.TempDir(), "w"), guest: firstGuest - 1, busy: map[string]bool{}}
	in.env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir(), "USER=alice", "WRIT_DIR=" + in.dir}
	in.pve = fake.New(fake.Config{Tokens: map[string]fake.Token{
		fakes.ProxmoxTokenID: {Secret: fakes.ProxmoxSecret, Privileges: map[string][]string{"/": fake.Administrator()}},
	}})
	ids := make([]string, guests)
	for i := range ids {
		in.pve.AddLXC(firstGuest+i, fake.Guest{Hostname: fmt.Sprintf("guest-%d", i)})
		ids[i] = fmt.Sprint(firstGuest + i)
	}
	pve := httptest.NewUnstartedServer(in.pve)
	pve.Config.ErrorLog = log.New(io.Discard, "", 0) // connections of processes that were killed
	pve.StartTLS()
	t.Cleanup(pve.Close)
	t.Cleanup(in.pve.Release)
	pin := sha256.Sum256(pve.Certificate().Raw)
	in.writ("", "init", in.dir)
	in.writ("environment=lab\nbase_url="+pve.URL+"/api2/json\ntoken_id="+fakes.ProxmoxTokenID+"\ntoken="+fakes.ProxmoxSecret+"\n",
		"systems", "add", "proxmox", "--pin", hex.EncodeToString(pin[:]))
	in.edit("catalog/settings.yaml", "writable_vmids: []", "writable_vmids: ["+strings.Join(ids, ", ")+"]", "nodes: []", "nodes: [pve]")
	in.edit("gate/policy.yaml", "valid: 5m", "valid: 20s", "irreversible_allowed: []", "irreversible_allowed: [proxmox.create_lxc]")
	in.edit("gate/gate.yaml", "every: 5s", "every: 200ms", "proposals_per_minute: 120", "proposals_per_minute: 100000",
		"requests_per_second: 100", "requests_per_second: 100000")
	in.edit("executor/executor.yaml", "observe_per_minute: 600", "observe_per_minute: 100000")
	in.agent, in.alice = in.caller("agent"), in.caller("alice")
	in.gate = &victim{in: in, name: "gate", args: []string{"run", "--dir", in.path("gate")}}
	in.acts = &victim{in: in, name: "executor", args: []string{"run", "--dir", in.path("executor")}}
	t.Cleanup(func() {
		in.gate.kill()
		in.acts.kill()
		if in.memory != nil {
			_ = in.memory.Close()
		}
	})
	return in
}

func (in *installation) path(name string) string {
	return filepath.Join(in.dir, filepath.FromSlash(name))
}

// writ runs the command line, which must succeed.
func (in *installation) writ(stdin string, args ...string) string {
	in.t.Helper()
	cmd := exec.Command(filepath.Join(in.bin, "writ"), args...)
	cmd.Env, cmd.Stdin = in.env, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		in.t.Fatalf("writ %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (in *installation) edit(name string, pairs ...string) {
	in.t.Helper()
	text, err := os.ReadFile(in.path(name))
	if err != nil {
		in.t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !bytes.Contains(text, []byte(pairs[i])) {
			in.t.Fatalf("%s has no %q", name, pairs[i])
		}
	}
	if err := os.WriteFile(in.path(name), []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600); err != nil {
		in.t.Fatal(err)
	}
}

func (in *installation) caller(name string) *client.Client {
	in.t.Helper()
	token, err := os.ReadFile(in.path("tokens/" + name + ".token"))
	if err != nil {
		in.t.Fatal(err)
	}
	c, err := client.New(in.path("run/gate.sock"), strings.TrimSpace(string(token)))
	if err != nil {
		in.t.Fatal(err)
	}
	return c
}

// free returns a container that no open change has locked.
func (in *installation) free() int {
	for {
		in.guest = firstGuest + (in.guest+1-firstGuest)%guests
		if !in.busy[entityOf(in.guest)] {
			return in.guest
		}
	}
}

func entityOf(vmid int) string { return fmt.Sprintf("proxmox/pve/lxc/%d", vmid) }

// take remembers what reached the target since it was called last.
func (in *installation) take() {
	for _, q := range in.pve.Writes() {
		w := write{text: q.Path + " " + q.Body, done: q.Status == http.StatusOK}
		if form, err := url.ParseQuery(q.Body); err == nil && q.Status == 0 {
			// It was answered with silence: only the target knows.
			var vmid int
			_, err := fmt.Sscanf(q.Path, "/api2/json/nodes/pve/lxc/%d/config", &vmid)
			w.done = err == nil && strings.Contains(in.pve.ConfigText(vmid), form.Get("description"))
		}
		in.writes = append(in.writes, w)
	}
	in.pve.Reset()
}

// effects counts how often a value reached the target, and how often it was taken.
func (in *installation) effects(value string) (arrived, done int) {
	for _, w := range in.writes {
		if strings.Contains(w.text, value) {
			arrived++
			if w.done {
				done++
			}
		}
	}
	return arrived, done
}

// journal is the executor's journal, read from outside.
func (in *installation) journal() *sql.DB {
	if in.memory == nil {
		file := url.URL{Scheme: "file", Path: in.path("executor/journal.db"), RawQuery: "mode=ro&_pragma=busy_timeout(5000)"}
		db, err := sql.Open("sqlite", file.String())
		if err != nil {
			in.t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		in.memory = db
	}
	return in.memory
}

// victim is one of the two programs, which is killed and started again.
type victim struct {
	in    *installation
	name  string
	args  []string
	note  bool     // write down each point that is reached
	below []string // the program under which it is started
	extra []string // environment

	cmd   *exec.Cmd
	ready chan struct{}
	gone  chan struct{}
}

func (v *victim) armFile() string  { return v.in.path("../arm." + v.name) }
func (v *victim) noteFile() string { return v.in.path("../reached." + v.name) }

// arm says where the program is to kill itself: "point:k", or "" for nowhere.
func (v *victim) arm(where string) {
	// Renamed, so that it is never seen half.
	tmp := v.armFile() + ".new"
	if err := os.WriteFile(tmp, []byte(where), 0o600); err != nil {
		v.in.t.Fatal(err)
	}
	if err := os.Rename(tmp, v.armFile()); err != nil {
		v.in.t.Fatal(err)
	}
}

// start starts the program and says whether it came to answer.
func (v *victim) start() bool {
	v.in.t.Helper()
	said, err := os.OpenFile(v.in.path("../"+v.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		v.in.t.Fatal(err)
	}
	defer said.Close()
	v.ready, v.gone = make(chan struct{}), make(chan struct{})
	line := slices.Concat(v.below, []string{filepath.Join(v.in.bin, "writ-"+v.name)}, v.args)
	v.cmd = exec.Command(line[0], line[1:]...)
	v.cmd.Env = slices.Concat(v.in.env, v.extra, []string{"WRIT_FAILPOINT=@" + v.armFile()})
	if v.note {
		v.cmd.Env = append(v.cmd.Env, "WRIT_FAILPOINT_LOG="+v.noteFile())
	}
	v.cmd.Stderr, v.cmd.Stdout = said, &says{once: sync.OnceFunc(func() { close(v.ready) })}
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := v.cmd.Start(); err != nil {
		v.in.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait()
		close(gone)
	}(v.cmd, v.gone)
	select {
	case <-v.ready:
		return true
	case <-v.gone:
		return false
	case <-time.After(2 * patience):
		v.in.t.Fatalf("%s does not come to answer:\n%s", v.name, v.log())
		return false
	}
}

// says notes that a program has said something: that it is ready.
type says struct{ once func() }

func (s *says) Write(b []byte) (int, error) { s.once(); return len(b), nil }

func (v *victim) alive() bool {
	if v.cmd == nil {
		return false
	}
	select {
	case <-v.gone:
		return false
	default:
		return true
	}
}

func (v *victim) kill() {
	if v.alive() {
		_ = v.cmd.Process.Kill()
		<-v.gone
	}
}

func (v *victim) log() string {
	text := readLog(v.in.path("../" + v.name + ".log"))
	return text[max(0, len(text)-4000):]
}

// reached counts the points that were reached since the last call.
func (v *victim) reached() map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(readLog(v.noteFile())) {
		counts[strings.TrimSpace(line)]++
	}
	_ = os.Remove(v.noteFile())
	return counts
}

// story is all that is known of a change, for whoever has to find out what went wrong.
func (in *installation) story(id string) string {
	var b strings.Builder
	if c, err := in.alice.Change(in.t.Context(), id); err == nil {
		text, _ := json.MarshalIndent(c, "", " ")
		b.Write(text)
	}
	if e, err := in.alice.Events(in.t.Context(), client.EventFilter{ChangeID: id}); err == nil {
		for _, line := range e.Events {
			var t struct {
				told
				Status, Reason string
			}
			_ = json.Unmarshal(line, &t)
			fmt.Fprintf(&b, "\n%d %s %s %s %s", t.Sequence, t.Type, t.Entity, t.Status, t.Reason)
		}
	}
	return b.String() + "\ngate:\n" + in.gate.log() + "\nexecutor:\n" + in.acts.log()
}

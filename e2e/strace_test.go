package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// injected are the calls of the kernel that are made to fail.
func injected() []string {
	return []string{"openat", "read", "write", "pread64", "pwrite64", "ftruncate", "fsync", "fdatasync", "rename", "renameat", "link", "linkat", "unlink",
		"unlinkat", "mkdirat", "close", "fstat", "fcntl", "flock", "socket", "connect", "accept4", "sendto", "recvfrom", "getsockopt", "setsockopt"}
}

// injection is one call of one program that goes wrong.
type injection struct {
	victim, call, how string
	at                int
}

func (i injection) String() string {
	return fmt.Sprintf("%s: %s number %d: %s", i.victim, i.call, i.at, i.how)
}

// TestStrace makes single calls of the kernel fail, each once, in the gate and
// in the executor while a change runs; then the program is started again, and
// target, journal, state and audit must tell the same. The audit is read by
// fsck, which shares nothing with what wrote it.
func TestStrace(t *testing.T) {
	t.Parallel()
	if exec.Command("strace", "-D", "-o", os.DevNull, "true").Run() != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("strace cannot trace here: install it")
		}
		t.Skip("strace cannot trace here; CI runs it")
	}
	bin, err := programs.build()
	if err != nil {
		t.Fatal(err)
	}
	plan, all := injections(newInstallation(t, bin).counted(t))
	begun := time.Now()
	jobs, told := make(chan injection), &straceTable{states: map[string]int{}}
	var hands sync.WaitGroup
	for range *crashWorkers {
		hands.Go(func() {
			for more, failed := true, 0; more && failed < 5; {
				if !t.Run("installation", func(t *testing.T) { more = fail(t, bin, jobs, told) }) {
					failed++
				}
			}
			for range jobs { // one that gave up leaves the rest
			}
		})
	}
	for n, i := range plan {
		jobs <- i
		if (n+1)%100 == 0 {
			t.Logf("%d of %d calls, %s", n+1, len(plan), time.Since(begun).Round(time.Second))
		}
	}
	close(jobs)
	hands.Wait()
	t.Logf("of %d calls and ways %d were tried, %d went wrong, %d of these ended the program, in %s: %v",
		all, len(plan), told.reached, told.ended, time.Since(begun).Round(time.Second), told.states)
	if told.reached < len(plan)/2 {
		t.Errorf("only %d of %d calls went wrong", told.reached, len(plan))
	}
}

// straceTable counts what became of calls that were to go wrong.
type straceTable struct {
	mu             sync.Mutex
	reached, ended int
	states         map[string]int // of the changes
}

// fail lets calls go wrong in one installation, and says whether there may be more.
func fail(t *testing.T, bin string, jobs <-chan injection, told *straceTable) bool {
	in := newInstallation(t, bin)
	in.raise() // makes what a first start makes
	for n := range renew {
		i, ok := <-jobs
		if !ok {
			in.verified()
			return false
		}
		kind := kindSet
		if n%4 == 3 {
			kind = kindStop
		}
		c, hit := in.inject(t, kind, i)
		ch, err := in.alice.Change(t.Context(), c.id)
		if err != nil || len(c.problems) > 0 {
			t.Errorf("%s %v\n%s\n%s", i, err, strings.Join(c.problems, "\n"), in.story(c.id))
			return true
		}
		told.add(hit, c.killed, ch.State)
		in.checked()
	}
	in.verified()
	return true
}

func (s *straceTable) add(hit, killed bool, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[state]++
	if hit {
		s.reached++
	}
	if killed {
		s.ended++
	}
}

// inject runs one change while one call goes wrong, starts the program again,
// and looks at everything.
func (in *installation) inject(t *testing.T, kind string, i injection) (c *cycle, hit bool) {
	c = in.newCycle(kind)
	trace := in.path("../trace.injected")
	_ = os.Remove(trace)
	v := c.victim(i.victim)
	v.kill()
	v.below = strace("-o", trace, "-e", "trace="+i.call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", i.call, i.how, i.at))
	c.raise()
	v.below = nil
	c.patience = 3 * time.Second // it may refuse everything, and say so
	c.drive(t.Context())
	c.killed = !v.alive()
	c.patience = 4 * patience
	v.kill()
	hit = c.killed || strings.Contains(readLog(trace), "(INJECTED)")
	c.finish(t.Context())
	return c, hit
}

// strace traces a program that stays our child.
func strace(args ...string) []string {
	return append([]string{"strace", "-D", "-f", "-qq"}, args...)
}

// counted runs one change without a fault and counts the calls, of the thread
// that makes most of them: strace counts for each by itself.
func (in *installation) counted(t *testing.T) map[string]map[string]int {
	in.raise() // makes what a first start makes
	in.gate.kill()
	in.acts.kill()
	calls := map[string]map[string]int{}
	for _, v := range []*victim{in.acts, in.gate} {
		v.extra = []string{"GOMAXPROCS=1"}
		v.below = strace("-o", in.path("../trace."+v.name), "-e", "trace="+strings.Join(injected(), ","))
	}
	c := in.newCycle(kindSet)
	c.run(t.Context(), nil)
	if len(c.problems) > 0 {
		t.Fatalf("without a fault:\n%s\n%s", strings.Join(c.problems, "\n"), in.story(c.id))
	}
	in.gate.kill()
	in.acts.kill()
	in.gate.below, in.acts.below = nil, nil
	form := regexp.MustCompile(`(?m)^(\d+) +([a-z0-9]+)\(`)
	for _, v := range []*victim{in.acts, in.gate} {
		text, err := os.ReadFile(in.path("../trace." + v.name))
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]int{}
		calls[v.name] = map[string]int{}
		for _, m := range form.FindAllStringSubmatch(string(text), -1) {
			by[m[1]+m[2]]++
			calls[v.name][m[2]] = max(calls[v.name][m[2]], by[m[1]+m[2]])
		}
		if calls[v.name]["openat"] == 0 || calls[v.name]["fsync"]+calls[v.name]["fdatasync"] == 0 {
			t.Fatalf("%s was not traced: %v", v.name, calls[v.name])
		}
	}
	return calls
}

// injections lists what is to go wrong: every call in every way in the whole
// run, else a few by chance, and says of how many.
func injections(calls map[string]map[string]int) (all []injection, of int) {
	for victim, counts := range calls {
		for call, n := range counts {
			for _, how := range []string{"error=EIO", "error=ENOSPC", "error=EINTR", "signal=KILL"} {
				for at := 1; at <= n; at++ {
					all = append(all, injection{victim, call, how, at})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b injection) int { return strings.Compare(a.String(), b.String()) })
	random := rand.New(rand.NewPCG(*crashSeed, 1))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	of = len(all)
	if *crashCalls > 0 {
		all = all[:min(len(all), *crashCalls)]
	}
	return all, of
}

package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"writ/failpoint"
)

// How much is crashed. The defaults are the part that runs with every test;
// make crash runs it whole.
var (
	crashPoints  = flag.Int("crash.points", 1, "how often each failpoint is killed at, at least")
	crashKills   = flag.Int("crash.kills", 40, "how many kills come at random times")
	crashWorkers = flag.Int("crash.workers", 2, "how many installations are crashed at the same time")
	crashSeed    = flag.Uint64("crash.seed", 1, "of the random kills")
	crashCalls   = flag.Int("crash.calls", 8, "how many calls of the kernel go wrong; 0 is each in each way")
	crashWhole   = flag.Bool("crash.whole", false, "every count of every point, and wait for what ends late")
)

// renew is how many cycles one installation sees. Each start verifies all that
// happened before.
const renew = 150

// kill is how long the part that runs with every test goes on to kill at random
// times. Every point has its turn before, however slow the machine is.
const kill = 45 * time.Second

// crash is one cycle that is to be run: a kind of change, and where it is killed.
type crash struct {
	kind   string
	point  string // what it counts for in the table
	arms   []arm
	victim string // of a kill at a random time: gate, executor, or both
	after  time.Duration
}

// TestCrash kills the two real programs at every durable border and at random
// times, starts them again, and holds the invariants against what the target
// itself knows. What it has to find is found by judge in crash_oracle_test.go.
func TestCrash(t *testing.T) {
	t.Parallel()
	bin, err := crashBuild()
	if bin != os.Getenv("WRIT_CRASH_BIN") {
		t.Cleanup(func() { _ = os.RemoveAll(bin) })
	}
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	counts, took := rehearse(t, bin)
	plan := planOf(t, counts, took)
	t.Logf("rehearsed in %s, each kind takes %v; %d cycles are planned", time.Since(begun).Round(time.Second), took, len(plan))
	table := &crashTable{rows: map[string]*crashRow{}}
	jobs := make(chan crash)
	var hands sync.WaitGroup
	for range *crashWorkers {
		hands.Go(func() {
			failed := 0
			for more := true; more; {
				if !t.Run("installation", func(t *testing.T) { more = work(t, bin, jobs, table) }) {
					failed++
					more = more && *crashWhole && failed < 5 // hours are not lost to one finding
				}
			}
			for range jobs { // one that gave up leaves the rest
			}
		})
	}
	for i, job := range plan {
		if job.victim != "" && !*crashWhole && time.Since(begun) > kill {
			t.Logf("on this machine there is time for %d of %d kills at random times", *crashKills-len(plan)+i, *crashKills)
			break
		}
		jobs <- job
		if (i+1)%100 == 0 {
			t.Logf("%d of %d cycles, %s", i+1, len(plan), time.Since(begun).Round(time.Second))
		}
	}
	close(jobs)
	hands.Wait()
	t.Logf("%d cycles in %s\n%s", len(plan), time.Since(begun).Round(time.Second), table)
	for _, p := range failpoint.All() {
		if r := table.rows[string(p)]; !t.Failed() && (r == nil || r.killed == 0) {
			t.Errorf("nothing was killed at %s", p)
		}
	}
}

// work runs cycles in one installation, and says whether there may be more.
func work(t *testing.T, bin string, jobs <-chan crash, table *crashTable) bool {
	in := newInstallation(t, bin)
	in.raise()
	var late []*cycle
	more := true
	for n := 0; n < renew; n++ {
		job, ok := <-jobs
		if !ok {
			more = false
			break
		}
		c := in.crash(t, bin, job)
		state := table.add(t.Context(), job, c)
		for try := 0; try < 3 && len(c.problems) == 0 && job.victim == "" && table.missed(job.point); try++ {
			// How often a point is reached is not the same every time; once is nearly certain.
			job.arms[len(job.arms)-1].where = job.point + ":1"
			c = in.crash(t, bin, job)
			state = table.add(t.Context(), job, c)
		}
		if len(c.problems) > 0 {
			t.Errorf("%s killed at %v: it is %s\n%s\n%s", job.kind, job, state, strings.Join(c.problems, "\n"), c.story(c.id))
			return true
		}
		if c.late != "" {
			late = append(late, c)
		}
	}
	in.verified()
	if *crashWhole {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		in.raise() // a point may have been reached after all was driven
		for _, problem := range overdue(ctx, late) {
			t.Error(problem)
		}
		in.verified()
	}
	return more
}

// crash runs one cycle.
func (in *installation) crash(t *testing.T, bin string, job crash) *cycle {
	c := in.newCycle(job.kind)
	switch {
	case job.kind == kindFirst:
		fresh := newInstallation(t, bin)
		c = fresh.newCycle(kindSet)
		c.run(t.Context(), job.arms)
		fresh.verified()
	case job.victim != "":
		c.killAt(t.Context(), job)
	default:
		c.run(t.Context(), job.arms)
	}
	return c
}

// killAt kills at a random time.
func (c *cycle) killAt(ctx context.Context, job crash) {
	c.raise()
	timer := time.AfterFunc(job.after, func() {
		// Not waited for here: whoever drives the change sees that it is gone.
		if job.victim != "gate" {
			_ = c.acts.cmd.Process.Kill()
		}
		if job.victim != "executor" {
			_ = c.gate.cmd.Process.Kill()
		}
	})
	c.drive(ctx)
	if c.killed = !timer.Stop(); c.killed {
		for _, v := range []*victim{c.gate, c.acts} {
			if job.victim == v.name || job.victim == "both" {
				<-v.gone
			}
		}
	}
	c.finish(ctx)
}

// reach is how often a program reaches a point while a change of a kind runs.
type reach struct{ kind, victim, point string }

// rehearse runs one change of each kind without a crash, and counts.
func rehearse(t *testing.T, bin string) (map[reach]int, map[string]time.Duration) {
	in := newInstallation(t, bin)
	in.gate.note, in.acts.note = true, true
	counts, took := map[reach]int{}, map[string]time.Duration{}
	in.raise()
	count := func(kind string) {
		for _, v := range []*victim{in.gate, in.acts} {
			for point, n := range v.reached() {
				counts[reach{kind, v.name, point}] = n
			}
		}
	}
	count(kindFirst)
	for _, kind := range crashKinds() {
		begun := time.Now()
		c := in.newCycle(kind)
		c.run(t.Context(), nil)
		took[kind] = time.Since(begun).Round(time.Millisecond)
		if len(c.problems) > 0 {
			t.Fatalf("%s, without a crash:\n%s\n%s", kind, strings.Join(c.problems, "\n"), in.story(c.id))
		}
		count(kind)
	}
	in.verified()
	return counts, took
}

// kindFirst is the first start of an installation.
const kindFirst = "first"

func crashKinds() []string {
	return []string{kindSet, kindStop, kindRollback, kindReconcile, kindAway, kindCreate}
}

// planOf lists the cycles: every point as often as it is asked for, over all the
// kinds and counts at which it is reached, and the kills at random times.
func planOf(t *testing.T, counts map[reach]int, took map[string]time.Duration) []crash {
	by := map[string][]crash{}
	for _, r := range slices.SortedFunc(maps.Keys(counts), func(a, b reach) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		if r.kind == kindFirst && !strings.HasPrefix(r.point, "segment.") {
			continue // nearly all that a first start does, others do too
		}
		for k := 1; k <= counts[r]; k++ {
			by[r.point] = append(by[r.point], crash{kind: r.kind, point: r.point, arms: []arm{{r.victim, fmt.Sprintf("%s:%d", r.point, k)}}})
		}
	}
	// Points of a start are reached when something was cut off before.
	for _, again := range []arm{
		{"gate", "start.recorded:1"}, {"gate", "start.caught_up:1"}, {"gate", "start.resumed:1"}, {"gate", "gate.commit:1"}, {"gate", "gate.committed:1"},
		{"gate", "gate.commit:2"}, {"gate", "gate.committed:2"}, {"gate", "ledger.written:1"}, {"gate", "checkpoint.next:1"}, {"gate", "checkpoint.named:1"},
		{"executor", "recover.begins:1"}, {"executor", "recover.step:1"}, {"executor", "recover.ended:1"}, {"executor", "verify.read:1"},
		{"executor", "journal.commit:1"}, {"executor", "journal.commit:2"}, {"executor", "journal.done:1"}, {"executor", "journal.done:2"}, {"executor", "receipt.recorded:1"},
	} {
		point, _, _ := strings.Cut(again.where, ":")
		cut := map[string][]string{"gate": {"dispatch.claimed:1", "dispatch.handed:1", "gate.decided:1", "settle.came:1"},
			"executor": {"send.recorded:1", "result.recorded:1", "verify.read:1", "admit.spent:1"}}[again.victim]
		for _, before := range cut {
			for _, kind := range []string{kindSet, kindRollback} {
				by[point] = append(by[point], crash{kind: kind, point: point, arms: []arm{{again.victim, before}, again}})
			}
		}
	}
	random := rand.New(rand.NewPCG(*crashSeed, 0))
	var plan []crash
	for _, p := range failpoint.All() {
		all := by[string(p)]
		if len(all) == 0 {
			t.Errorf("nothing reaches %s", p)
			continue
		}
		if !*crashWhole { // not the slow ones, where another way leads there
			if fast := slices.DeleteFunc(slices.Clone(all), func(c crash) bool { return c.kind == kindCreate }); len(fast) > 0 {
				all = fast
			}
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		n := *crashPoints
		if *crashWhole {
			n = (n + len(all) - 1) / len(all) * len(all)
		}
		for i := range n {
			job := all[i%len(all)]
			job.arms = slices.Clone(job.arms)
			plan = append(plan, job)
		}
	}
	random.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	for range *crashKills {
		kinds := []string{kindSet, kindSet, kindStop, kindRollback, kindReconcile}
		if *crashWhole && random.IntN(20) == 0 {
			kinds = []string{kindCreate}
		}
		kind := kinds[random.IntN(len(kinds))]
		plan = append(plan, crash{
			kind: kind, point: "at a random time", victim: []string{"gate", "executor", "both"}[random.IntN(3)],
			after: time.Duration(random.Int64N(int64(took[kind]))),
		})
	}
	return plan
}

// crashTable sums up what came of the crashes at each point.
type crashTable struct {
	mu        sync.Mutex
	rows      map[string]*crashRow
	undecided int
}

type crashRow struct {
	runs, killed, problems int
	states                 map[string]int
}

func (b *crashTable) add(ctx context.Context, job crash, c *cycle) string {
	state := "late"
	if c.late == "" {
		if ch, err := c.alice.Change(ctx, c.id); err == nil {
			state = ch.State
		}
		if c.unknowns > 0 {
			state = "unknown"
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rows[job.point]
	if r == nil {
		r = &crashRow{states: map[string]int{}}
		b.rows[job.point] = r
	}
	r.runs++
	r.states[state]++
	r.problems += len(c.problems)
	b.undecided += c.undecided
	if c.killed {
		r.killed++
	}
	return state
}

// missed reports whether nothing was killed at a point yet.
func (b *crashTable) missed(point string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rows[point].killed == 0
}

func (b *crashTable) String() string {
	var text strings.Builder
	all := crashRow{states: map[string]int{}}
	row := func(name string, r *crashRow) {
		var states []string
		for _, s := range slices.Sorted(maps.Keys(r.states)) {
			states = append(states, fmt.Sprintf("%s %d", s, r.states[s]))
		}
		fmt.Fprintf(&text, "%-18s %6d %6d %10d  %s\n", name, r.runs, r.killed, r.problems, strings.Join(states, ", "))
	}
	fmt.Fprintf(&text, "%-18s %6s %6s %10s  %s\n", "point", "runs", "killed", "violations", "what came of them")
	for _, name := range slices.Sorted(maps.Keys(b.rows)) {
		r := b.rows[name]
		row(name, r)
		all.runs, all.killed, all.problems = all.runs+r.runs, all.killed+r.killed, all.problems+r.problems
		for s, n := range r.states {
			all.states[s] += n
		}
	}
	row("all", &all)
	fmt.Fprintf(&text, "probes that could not tell: %d\n", b.undecided)
	return text.String()
}

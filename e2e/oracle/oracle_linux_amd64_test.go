package oracle

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/shell"
)

const (
	patience = 3 * time.Second        // for a text that ends by itself
	short    = 300 * time.Millisecond // for one that may not end
)

// fair is how long all texts of one program may take: a few slow ones would
// take nearly all the time there is.
var fair = flag.Duration("oracle.fair", 400*time.Millisecond, "how long the texts of one program may take together")

// item is one text that the classifier calls read-only.
type item struct {
	verdict shell.Verdict
	from    string // where it comes from
	name    string // of its command, if it is not the first word
	always  bool   // it is never passed over: bash is all it needs
}

// finding is a text that changed something.
type finding struct {
	item
	changes []string
}

// tally counts what was run.
type tally struct {
	mu                                     sync.Mutex
	texts, judged, well, late, absent, ask int
	programs                               map[string]int           // judged texts that started it
	spent                                  map[string]time.Duration // by the first word of a text
	passed                                 int                      // texts whose first word had spent enough
	findings                               []finding
	took                                   time.Duration
}

func (y *tally) String() string {
	names := slices.Sorted(maps.Keys(y.programs))
	slices.SortStableFunc(names, func(a, b string) int { return y.programs[b] - y.programs[a] })
	for i, n := range names {
		names[i] = fmt.Sprintf("%s:%d", n, y.programs[n])
	}
	return fmt.Sprintf("%d texts in %s: %d judged (%d ended well, %d at their limit), %d without their program, %d that asked a daemon; %d passed over; %d findings; %d programs: %s",
		y.texts, y.took.Round(time.Second), y.judged, y.well, y.late, y.absent, y.ask, y.passed, len(y.findings), len(names), strings.Join(names, " "))
}

func (y *tally) add(x item, o outcome, took time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.texts++
	y.spent[x.first()] += took
	changes := o.Changes
	if o.Left > 0 && !x.verdict.NeedsLimit {
		changes = append(changes, fmt.Sprintf("left %d processes running", o.Left))
	}
	if len(o.Asked) > 0 && !slices.Contains(x.verdict.Effects, shell.NetRead) {
		changes = append(changes, "asked the network: "+strings.Join(o.Asked, ", "))
	}
	if len(changes) > 0 {
		y.findings = append(y.findings, finding{x, changes})
	}
	switch {
	case o.Status == 127:
		y.absent++
		return
	case len(o.Daemons) > 0:
		y.ask++
		return
	}
	y.judged++
	if o.Status == 0 {
		y.well++
	}
	if o.Late {
		y.late++
	}
	for _, p := range slices.Compact(slices.Sorted(slices.Values(o.Programs))) {
		y.programs[p]++
	}
}

// enough says whether the program that a text begins with has had its time in
// this run: a few slow ones would take nearly all of it.
func (y *tally) enough(x item) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if x.always || y.spent[x.first()] < *fair {
		return false
	}
	y.passed++
	return true
}

func (x item) first() string {
	if x.name != "" {
		return x.name
	}
	word, _, _ := strings.Cut(strings.TrimSpace(x.verdict.Command), " ")
	return word
}

// judge runs texts, a few at a time, and fails for what changed.
func judge(t *testing.T, dir string, texts []item) *tally {
	t.Helper()
	y := &tally{programs: map[string]int{}, spent: map[string]time.Duration{}}
	began := time.Now()
	queue := make(chan item)
	running := 3 * runtime.NumCPU() // a text waits for the kernel more than it computes
	failed := make(chan error, running)
	for range running {
		go func() { failed <- work(dir, queue, y) }()
	}
	var errs []error
	for _, x := range texts {
		select {
		case queue <- x:
		case err := <-failed:
			errs, running = append(errs, err), running-1
		}
		if running == 0 {
			break
		}
	}
	close(queue)
	for ; running > 0; running-- {
		errs = append(errs, <-failed)
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	y.took = time.Since(began)
	slices.SortFunc(y.findings, func(a, b finding) int { return strings.Compare(a.verdict.Command, b.verdict.Command) })
	for _, f := range y.findings {
		t.Errorf("%q (%s) is called read-only and changed something:\n  %s\n  the classifier saw: %v", f.verdict.Command, f.from, strings.Join(f.changes, "\n  "), f.verdict.Evidence)
	}
	t.Log(y)
	slow := slices.Sorted(maps.Keys(y.spent))
	slices.SortStableFunc(slow, func(a, b string) int { return int(y.spent[b] - y.spent[a]) })
	for i, n := range slow {
		slow[i] = fmt.Sprintf("%s:%s", n, y.spent[n].Round(time.Millisecond))
	}
	t.Logf("the slowest: %s", strings.Join(slow[:min(len(slow), 40)], " "))
	return y
}

// work runs what comes in, in a root that is made anew after every change.
func work(dir string, queue <-chan item, y *tally) (err error) {
	w, err := start(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	for x := range queue {
		if y.enough(x) {
			continue
		}
		limit := patience
		if x.verdict.NeedsLimit {
			limit = short
		}
		began := time.Now()
		o, err := w.run(order{Text: x.verdict.Command, Limit: limit})
		if err != nil {
			return err
		}
		y.add(x, o, time.Since(began))
		if !o.Dirty {
			continue
		}
		if err := w.stop(); err != nil {
			return err
		}
		if w, err = start(dir); err != nil {
			return err
		}
	}
	return nil
}

func load(t *testing.T) *shell.Knowledge {
	t.Helper()
	k, err := shell.Load(shell.Shipped())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// corpora returns what is called read-only of all texts that people wrote: our
// own lines, the examples of command knowledge, and the shared ones.
func corpora(t *testing.T, k *shell.Knowledge) (list []item) {
	t.Helper()
	seen := map[string]bool{}
	add := func(cmd, from string) {
		if v := k.Classify(cmd); v.Class == writ.ReadOnly && !seen[v.Command] {
			seen[v.Command] = true
			list = append(list, item{verdict: v, from: from})
		}
	}
	files, err := filepath.Glob("../../shell/testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no corpus in shell/testdata: %v", err)
	}
	if dir := os.Getenv("WRIT_CORPUS"); dir != "" {
		shared, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		if err != nil || len(shared) == 0 {
			t.Fatalf("there is no corpus in %s: %v", dir, err)
		}
		files = append(files, shared...)
	} else if os.Getenv("CI") == "true" {
		t.Fatal("WRIT_CORPUS is not set: CI runs the shared corpora")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var l shell.Line
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			add(l.Cmd, filepath.Base(name))
		}
	}
	for _, name := range k.Names() {
		info, _ := k.Command(name)
		for _, e := range info.Examples {
			add(e.Command, info.File)
		}
	}
	return list
}

// TestOracle_corpora runs every text of a person that is called read-only.
func TestOracle_corpora(t *testing.T) {
	texts := corpora(t, load(t))
	y := judge(t, ready(t, texts), texts)
	if y.judged < y.texts/4 || y.well < y.judged/2 {
		t.Errorf("%d of %d texts were judged, and %d of these ended well: too few to mean anything", y.judged, y.texts, y.well)
	}
}

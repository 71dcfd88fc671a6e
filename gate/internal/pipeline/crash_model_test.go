package pipeline_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"writ"
	"writ/fault"
	realaudit "writ/gate/internal/audit"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/policy"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
	"writ/ledger"
	"writ/sys"
)

// TestModel lets chance choose what requesters, approvers, the executor, the
// disk and the clock do, crashes and restored stores among it, and holds after
// each step what must hold whatever happened. A failure is shrunk, and is found
// again with the seed that it prints.
func TestModel(t *testing.T) {
	checks := 4 // with every test a part; more with -rapid.checks
	flag.Visit(func(f *flag.Flag) {
		if n, err := strconv.Atoi(f.Value.String()); f.Name == "rapid.checks" && err == nil {
			checks = n
		}
	})
	set := func(name, value string) {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	set("rapid.nofailfile", "true") // the seed is enough
	t.Parallel()
	for ; checks > 0 && !t.Failed(); checks -= round {
		set("rapid.checks", strconv.Itoa(min(checks, round)))
		synctest.Test(t, func(t *testing.T) {
			rapid.Check(noDeadline{t}, func(rt *rapid.T) {
				m := newMachine(t)
				defer m.end()
				rt.Repeat(m.actions())
				m.drain(rt)
			})
		})
	}
}

// round is how many sequences one bubble sees: rapid gives up quietly after a day by its clock.
const round = 20

// noDeadline keeps rapid from asking when the test must be over: in a bubble there is no such time.
type noDeadline struct{ rapid.TB }

// machine is a pipeline on a real store with a real ledger, and what is known of
// it from outside.
type machine struct {
	*world
	sys     sys.Sys
	dir     string
	image   int // of the store, counts the crashes
	log     *ledger.Log
	key     ed25519.PrivateKey
	old     string // an image that may be restored
	oldSize int64  // the events in it

	ids     []string
	agreed  map[string]bool        // an approval was acknowledged
	ended   map[string]model.State // ends that were seen
	settled map[string]bool        // a person decided on it since
	halts   []stopped              // in force
}

// stopped is a halt, and how many writs had left before it.
type stopped struct {
	model.Halt
	sent int
}

func newMachine(t *testing.T) *machine {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{sys: bubble(), dir: t.TempDir(), key: key, agreed: map[string]bool{}, ended: map[string]model.State{}, settled: map[string]bool{}}
	counted := &counting{}
	m.world = &world{t: t, audit: counted, store: &flaky{fails: map[model.EventType]int{}}, executor: newExecutor(t, counted, key)}
	if err := m.open(m.path()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) path() string {
	return filepath.Join(m.dir, fmt.Sprintf("store-%d", m.image), "gate.db")
}

// open starts a pipeline on a store, which must be the one that the ledger follows.
func (m *machine) open(path string) error {
	db, err := sqlite.Open(m.t.Context(), path)
	if err != nil {
		return err
	}
	s := m.sys
	if m.log, err = ledger.Open(filepath.Join(m.dir, "audit"), ledger.Options{Name: "writ/gate", Key: m.key, Now: time.Now}); err != nil {
		return fmt.Errorf("%w, %w", err, db.Close())
	}
	m.store.Store, m.audit.store = db, db
	both := twoAudits{realaudit.New(realaudit.Config{Sys: s, Store: db, Log: m.log, Every: time.Minute}), m.audit}
	m.Pipeline = pipeline.New(pipeline.Config{
		Sys: s, Store: m.store, Audit: both, Executor: m.executor, Catalog: catalogOf(m.t), Policy: policyOf(m.t, rules+"denials: {limit: 20}\n"), Key: m.key, Epoch: 1,
		FirstAnswer: 800 * time.Millisecond,
	})
	if err := m.Start(m.t.Context()); err != nil {
		m.shut()
		return err
	}
	m.settle()
	return nil
}

func (m *machine) shut() {
	m.Stop()
	_ = m.store.Close()
	_ = m.log.Close()
}

func (m *machine) end() { m.shut() }

// counting is the audit of the other tests: it counts, and fails when it is told to.
type counting = audit

// twoAudits is the real audit, and the one that the executor of the tests counts in.
type twoAudits struct {
	real    *realaudit.Audit
	counted *counting
}

func (a twoAudits) CatchUp(ctx context.Context) error {
	if err := a.counted.CatchUp(ctx); err != nil {
		return err
	}
	return a.real.CatchUp(ctx)
}

// crash leaves the disk as kill -9 does, and whatever the process still does is lost.
func (m *machine) crash(rt *rapid.T) {
	m.audit.fail(fault.New(fault.Unavailable, "The process is gone."))
	from := m.path()
	m.image++
	m.copyTo(rt, from, m.path())
	m.shut()
	m.audit.fail(nil)
	if err := m.open(m.path()); err != nil {
		rt.Fatalf("it does not start after a crash: %v", err)
	}
}

func (m *machine) copyTo(rt *rapid.T, from, to string) {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		rt.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(from + suffix)
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+suffix, text, 0o600)
		}
		if err != nil {
			rt.Fatal(err)
		}
	}
}

// restore puts an old store in the place of the newest one, of which the audit
// has more. It is refused, and the newest one goes on.
func (m *machine) restore(rt *rapid.T) {
	now := m.log.Size() // what is not in the audit led to nothing
	if m.old == "" || m.oldSize >= now {
		return
	}
	m.audit.fail(fault.New(fault.Unavailable, "The process is gone."))
	from := m.path()
	m.image++
	m.copyTo(rt, from, m.path())
	m.shut()
	m.audit.fail(nil)
	again := filepath.Join(m.dir, fmt.Sprintf("restored-%d", m.image), "gate.db")
	m.copyTo(rt, m.old, again)
	sent := m.executor.sent()
	err := m.open(again)
	if err == nil {
		rt.Fatalf("a store of %d events was taken, and the audit has %d", m.oldSize, now)
	}
	if m.executor.sent() != sent {
		rt.Fatalf("a restored store sent a writ")
	}
	if err := m.open(m.path()); err != nil {
		rt.Fatalf("the newest store does not start again: %v", err)
	}
}

func (m *machine) size(rt *rapid.T) int64 {
	var size int64
	err := m.store.View(m.t.Context(), func(r store.Reader) error {
		for {
			lines, err := r.Events(store.EventFilter{After: size, Limit: 500})
			if err != nil || len(lines) == 0 {
				return err
			}
			for _, l := range lines {
				if size++; l.Sequence != size {
					rt.Fatalf("event %d comes after %d", l.Sequence, size-1)
				}
			}
		}
	})
	if err != nil {
		rt.Fatal(err)
	}
	return size
}

// one picks a change.
func (m *machine) one(rt *rapid.T) string {
	if len(m.ids) == 0 {
		return "chg_none"
	}
	return m.ids[max(0, len(m.ids)-1-rapid.IntRange(0, 5).Draw(rt, "back"))]
}

func entity(rt *rapid.T) string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "entity") }

func (m *machine) ask(rt *rapid.T, r model.Request, key string) {
	c, err := m.Propose(m.t.Context(), planner, r, key)
	m.settle()
	if err == nil && !slices.Contains(m.ids, c.ID) {
		m.ids = append(m.ids, c.ID)
	}
}

// then runs what a person does, and lets what follows happen.
func (m *machine) then(err error) {
	_ = err // refused or not: the invariants hold
	m.settle()
}

// actions is everything that may happen.
func (m *machine) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){
		"":         m.holds,
		"one step": func(rt *rapid.T) { m.ask(rt, request(step("s1", "set", entity(rt))), "") },
		"two steps": func(rt *rapid.T) {
			r := request(step("s1", "set", "a"), step("s2", "set", entity(rt), "s1"))
			r.OnFailure = rapid.SampledFrom([]writ.OnFailure{writ.Stop, writ.Rollback}).Draw(rt, "on failure")
			m.ask(rt, r, "")
		},
		"a read":     func(rt *rapid.T) { m.ask(rt, request(step("s1", "read", entity(rt))), "") },
		"for good":   func(rt *rapid.T) { m.ask(rt, request(step("s1", "wipe", entity(rt))), "") },
		"with a key": func(rt *rapid.T) { m.ask(rt, request(step("s1", "set", "a")), "the-key") },
		"two must say": func(rt *rapid.T) {
			r := request(step("s1", "set", entity(rt)))
			r.ChangeTicket = "TWO"
			m.ask(rt, r, "")
		},
		"crash":   m.crash,
		"restore": m.restore,
		"back up": func(rt *rapid.T) {
			m.old, m.oldSize = filepath.Join(m.dir, fmt.Sprintf("backup-%d", m.size(rt)), "gate.db"), m.size(rt)
			m.copyTo(rt, m.path(), m.old)
		},
		"time passes": func(rt *rapid.T) {
			m.later(time.Duration(rapid.IntRange(1, 45).Draw(rt, "seconds")) * time.Second)
		},
	}
	all["much time passes"] = func(*rapid.T) { m.later(policy.DefaultValid + time.Minute + pipeline.AnswerGrace) }
	maps.Copy(all, m.people())
	maps.Copy(all, m.faults())
	return all
}

// people is what those do who decide.
func (m *machine) people() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"approve": func(rt *rapid.T) {
			id, who := m.one(rt), rapid.SampledFrom([]model.Caller{alice, alice, bob, planner, olga}).Draw(rt, "who")
			r, err := m.Review(m.t.Context(), alice, id)
			if err != nil {
				return
			}
			_, err = m.Approve(m.t.Context(), who, id, pipeline.Agreement{EnvelopeDigest: r.EnvelopeDigest, ShownDigest: r.ShownDigest, Phrase: r.Phrase})
			if err == nil && (who.Name == planner.Name || who.Name == olga.Name) {
				rt.Fatalf("%s approved", who.Name)
			}
			m.agreed[id] = m.agreed[id] || err == nil
			m.then(err)
		},
		"approve what was not shown": func(rt *rapid.T) {
			id := m.one(rt)
			if _, err := m.Approve(m.t.Context(), alice, id, pipeline.Agreement{}); err == nil {
				rt.Fatalf("%s was approved unseen", id)
			}
			m.settle()
		},
		"reject":  func(rt *rapid.T) { _, err := m.Reject(m.t.Context(), alice, m.one(rt), "no"); m.then(err) },
		"cancel":  func(rt *rapid.T) { _, err := m.Cancel(m.t.Context(), planner, m.one(rt)); m.then(err) },
		"execute": func(rt *rapid.T) { _, err := m.Execute(m.t.Context(), planner, m.one(rt)); m.then(err) },
		"stop": func(rt *rapid.T) {
			h := model.Halt{Reason: "it runs wild"}
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				h.Target = "mock/" + entity(rt)
			case 1:
				h.Principal = rapid.SampledFrom([]string{"planner", "alice"}).Draw(rt, "whom")
			}
			h, _, err := m.Halt(m.t.Context(), olga, h)
			if m.then(err); err == nil {
				m.halts = append(m.halts, stopped{h, m.executor.sent()})
			}
		},
		"lift": func(*rapid.T) {
			if len(m.halts) == 0 {
				return
			}
			if _, err := m.LiftHalt(m.t.Context(), bob, m.halts[0].ID); err == nil {
				m.halts = m.halts[1:]
			}
			m.settle()
		},
		"undo": func(rt *rapid.T) {
			c, err := m.Rollback(m.t.Context(), planner, m.one(rt))
			if m.then(err); err == nil && !slices.Contains(m.ids, c.ID) {
				m.ids = append(m.ids, c.ID)
			}
		},
		"reconcile": func(rt *rapid.T) {
			id, as := m.one(rt), rapid.SampledFrom([]model.Resolution{model.Adopt, model.Absent, model.RollBack}).Draw(rt, "as")
			_, found, _, err := m.Probe(m.t.Context(), alice, id)
			if err != nil {
				return
			}
			_, err = m.Reconcile(m.t.Context(), alice, id, pipeline.Settlement{ShownDigest: found.ShownDigest, Resolution: as, Phrase: found.Phrase, Note: "I looked."})
			m.settled[id] = m.settled[id] || err == nil
			m.then(err)
		},
	}
}

// faults is what goes wrong, and is mended.
func (m *machine) faults() map[string]func(*rapid.T) {
	x := m.executor
	return map[string]func(*rapid.T){
		"the executor goes": func(*rapid.T) { x.tell(func() { x.away = gone() }); m.settle() },
		"the executor is back": func(*rapid.T) {
			x.tell(func() { x.away, x.locked, x.deaf, x.take = nil, false, nil, nil })
			m.settle()
		},
		"the vault is locked": func(*rapid.T) { x.tell(func() { x.locked = true }) },
		"answers are lost":    func(*rapid.T) { x.tell(func() { x.deaf = lost() }) },
		"writs are lost":      func(*rapid.T) { x.tell(func() { x.take = func(*writ.Writ) error { return lost() } }) },
		"writs are refused": func(*rapid.T) {
			x.tell(func() { x.take = func(*writ.Writ) error { return fault.New(fault.Refused, "No.") } })
		},
		"runs take long":      func(*rapid.T) { x.tell(func() { x.hold = true }) },
		"runs go on":          func(*rapid.T) { x.letGo(); m.settle() },
		"the disk is full":    func(rt *rapid.T) { m.audit.fail(fault.New(fault.Unavailable, "The disk is full.")); m.settle() },
		"there is room again": func(*rapid.T) { m.audit.fail(nil); m.settle() },
		"a transaction is refused": func(rt *rapid.T) {
			m.store.fail(rapid.SampledFrom([]model.EventType{model.ChangeClaimed, model.ChangeEnded, model.StepEnded, model.ChangeApproved, model.ChangeDecided}).Draw(rt, "event"), 1)
		},
		"what will come of it": func(rt *rapid.T) {
			e := "mock/" + entity(rt)
			o := rapid.SampledFrom([]writ.Outcome{"", "", writ.Unknown, writ.Failed, writ.NotExecuted, writ.Unverified}).Draw(rt, "outcome")
			x.tell(func() { x.outcomes[e] = o })
		},
		"what undoing will come to": func(rt *rapid.T) {
			e, o := "undo mock/"+entity(rt), rapid.SampledFrom([]writ.Outcome{"", writ.RollbackFailed, writ.Unknown}).Draw(rt, "outcome")
			x.tell(func() { x.outcomes[e] = o })
		},
	}
}

// holds is what must hold after everything.
func (m *machine) holds(rt *rapid.T) {
	m.size(rt)
	writs := map[string]int{}
	for _, w := range m.executor.writs {
		if writs[w.Envelope.ChangeID]++; writs[w.Envelope.ChangeID] > 1 {
			rt.Fatalf("%s left twice", w.Envelope.ChangeID)
		}
	}
	m.stopped(rt)
	locks, err := m.Locks(m.t.Context(), audrey, false)
	if err != nil {
		rt.Fatal(err)
	}
	held := map[string][]string{} // by change
	for i, l := range locks {
		if slices.ContainsFunc(locks[:i], func(o model.Lock) bool { return o.Entity == l.Entity }) {
			rt.Fatalf("%s is locked twice", l.Entity)
		}
		held[l.ChangeID] = append(held[l.ChangeID], l.Entity+" "+string(l.State))
	}
	changes, err := m.Changes(m.t.Context(), audrey, store.ChangeFilter{Limit: 500})
	if err != nil {
		rt.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range changes {
		known[c.ID] = true
		m.change(rt, c, held[c.ID], writs[c.ID])
	}
	for _, id := range m.ids {
		if !known[id] {
			rt.Fatalf("%s was acknowledged and is gone", id)
		}
	}
}

// stopped holds what has left against what people have stopped.
func (m *machine) stopped(rt *rapid.T) {
	known, err := m.Halts(m.t.Context(), false)
	if err != nil {
		rt.Fatal(err)
	}
	for _, h := range m.halts {
		if !slices.ContainsFunc(known, func(k model.Halt) bool { return k == h.Halt }) {
			rt.Fatalf("%s was put in force, and is not", h.ID)
		}
		for _, w := range m.executor.writs[h.sent:] {
			if h.Covers(&model.Change{RequestedBy: w.Envelope.RequestedBy, Steps: w.Envelope.Steps, Approvals: w.Approvals}) {
				rt.Fatalf("a writ of %s left, although %s covers it", w.Envelope.ChangeID, h.ID)
			}
		}
	}
}

// change holds what is said of one change against what is known.
func (m *machine) change(rt *rapid.T, c *model.Change, held []string, writs int) {
	if was, seen := m.ended[c.ID]; seen && was != c.State && !m.settled[c.ID] {
		rt.Fatalf("%s was %s and is %s, and nobody decided that", c.ID, was, c.State)
	}
	if c.State.Ended() {
		m.ended[c.ID] = c.State
	}
	if m.agreed[c.ID] && len(c.Approvals) == 0 {
		rt.Fatalf("%s was approved, and that is gone", c.ID)
	}
	if writs > 0 && (c.RunID == "" || c.State == model.AwaitingApproval || c.State == model.Approved || c.State == model.Cancelled || c.State == model.Rejected) {
		rt.Fatalf("a writ of %s left, and it is %s", c.ID, c.State)
	}
	if c.State == model.Done && c.Reconciliation == nil && writs != 1 {
		rt.Fatalf("%s is done, and %d writs of it left", c.ID, writs)
	}
	active := c.State == model.Claimed || c.State == model.Executing
	want := c.OrphanedEntities()
	for _, h := range held {
		name, state, _ := strings.Cut(h, " ")
		switch {
		case active && state == string(model.LockActive) && slices.Contains(c.Entities(), name):
		case !active && state == string(model.LockOrphaned) && slices.Contains(want, name):
		default:
			rt.Fatalf("%s is %s, and its lock on %s is %s", c.ID, c.State, name, state)
		}
	}
	if active && len(held) != len(c.Entities()) {
		rt.Fatalf("%s is %s, and holds %v of %v", c.ID, c.State, held, c.Entities())
	}
	if undone := m.undone(rt, c); c.State == model.Unknown && len(held) == 0 && len(want) > 0 && !undone {
		rt.Fatalf("%s is unknown, and nothing is locked", c.ID)
	}
}

// undone reports whether what a change did was undone. If so, it is told so.
func (m *machine) undone(rt *rapid.T, c *model.Change) bool {
	tries, err := m.Changes(m.t.Context(), audrey, store.ChangeFilter{RollbackOf: c.ID})
	if err != nil {
		rt.Fatal(err)
	}
	undone := slices.ContainsFunc(tries, func(c *model.Change) bool { return c.State == model.Done })
	if undone != (c.UndoneBy != "") || undone && c.Held() {
		rt.Fatalf("%s says that it was undone by %q", c.ID, c.UndoneBy)
	}
	return undone
}

// drain mends everything and lets all come to its end: then nothing is under way.
func (m *machine) drain(rt *rapid.T) {
	x := m.executor
	x.tell(func() { x.away, x.locked, x.deaf, x.take = nil, false, nil, nil })
	never := rapid.Bool().Draw(rt, "the executor never comes back")
	if never {
		x.tell(func() { x.away = gone() })
	} else {
		x.letGo()
	}
	m.audit.fail(nil)
	m.store.mend()
	m.crash(rt)
	m.later(policy.DefaultValid + wait + time.Minute + pipeline.AnswerGrace)
	m.holds(rt)
	m.allEnded(rt)
	if never { // and what it has to say all the same is not lost
		x.tell(func() { x.away = nil })
		x.letGo()
		m.later(10 * time.Second)
		m.holds(rt)
		m.allEnded(rt)
	}
	changes, err := m.Changes(m.t.Context(), audrey, store.ChangeFilter{Limit: 500})
	if err != nil {
		rt.Fatal(err)
	}
	for _, c := range changes {
		if run := x.runs[c.RunID]; c.Awaited() || run != nil && len(c.Receipts) != len(run.receipts) && c.Reconciliation == nil && c.Assessment.Class != writ.ReadOnly {
			rt.Fatalf("%s is %s with %d receipts", c.ID, c.State, len(c.Receipts))
		}
	}
}

func (m *machine) allEnded(rt *rapid.T) {
	changes, err := m.Changes(m.t.Context(), audrey, store.ChangeFilter{Limit: 500})
	if err != nil {
		rt.Fatal(err)
	}
	for _, c := range changes {
		if !c.State.Ended() {
			rt.Fatalf("%s is still %s", c.ID, c.State)
		}
	}
}

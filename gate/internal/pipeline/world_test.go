package pipeline_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"writ"
	"writ/catalog"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/policy"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
	"writ/sys"
)

// actions is a catalog of one system kind, with one action for each thing that
// an action can be.
var actions = map[string]string{
	"read": `
summary: Read one value
class: read_only
observe: {item: {get: "/${params.name}", absent_ok: true}}
`,
	"set": `
summary: Set one value
class: config_mutation
observe: {item: {get: "/${params.name}", absent_ok: true}}
backup: [item]
preview: [{field: value, to: "${params.value}"}]
apply: [{put: "/${params.name}", json: {value: "${params.value}"}}]
verify: [{name: value_matches, that: observed.item.found}]
rollback: {action: mock.set, params: {name: "${params.name}", value: old}}
`,
	"wipe": `
summary: Take one value away
class: destructive
observe: {item: {get: "/${params.name}", absent_ok: true}}
backup: [item]
preview: [{field: value, from: x}]
apply: [{delete: "/${params.name}"}]
verify: [{name: value_is_gone, that: "!observed.item.found"}]
rollback: {action: mock.set, params: {name: "${params.name}", value: old}}
`,
	"burn": `
summary: Set one value for good
class: config_mutation
observe: {item: {get: "/${params.name}", absent_ok: true}}
backup: [item]
preview: [{field: value, to: "${params.value}"}]
apply: [{put: "/${params.name}", json: {value: "${params.value}"}}]
verify: [{name: value_matches, that: observed.item.found}]
irreversible: what is burnt stays
`,
	"facts": `
summary: What one value is
class: read_only
observe: {item: {get: "/${params.name}", absent_ok: true}}
fingerprint: ${observed.item.etag}
facts: {value: {value: observed.item.text, type: string}}
health: [{that: observed.item.found, else: "it is not there"}]
`,
	"never": `
summary: What nobody may do
class: destructive
forbidden: not here, not by anybody
`,
}

// plainCatalog is the catalog without edits. It does not change, so all tests share it.
var plainCatalog = sync.OnceValues(func() (*catalog.Catalog, error) { return loadCatalog() })

// catalogOf returns the catalog with edits, pairs of old and new text.
func catalogOf(t *testing.T, edits ...string) *catalog.Catalog {
	t.Helper()
	load := plainCatalog
	if len(edits) > 0 {
		load = func() (*catalog.Catalog, error) { return loadCatalog(edits...) }
	}
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func loadCatalog(edits ...string) (*catalog.Catalog, error) {
	files := fstest.MapFS{}
	for name, text := range actions {
		text = "action: mock." + name + text + `system: mock
entity: ${system}/${params.name}
params:
  type: object
  additionalProperties: false
  required: [name]
  properties:
    name: {type: string, maxLength: 63}
    value: {type: string, maxLength: 200, default: new}
examples:
  - {params: {name: a}, accept: true}
  - {params: {}, accept: false}
`
		files[name+".yaml"] = &fstest.MapFile{Data: []byte(strings.NewReplacer(edits...).Replace(text))}
	}
	return catalog.Load(files)
}

const (
	wait  = 40 * time.Second // how long a request waits for an answer
	valid = 20 * time.Second // how long an approval is good
)

// rules is the policy of most tests.
const rules = `
policy: test
rules:
  - {id: reads, when: 'change.class == "read_only"', effect: auto}
  - {id: people, when: 'change.class in ["reversible_low", "config_mutation"]', effect: approve, wait: 40s, valid: 20s}
  - {id: phrase, when: 'change.class == "destructive"', effect: approve, wait: 40s, valid: 20s, phrase: true}
  - {id: two, when: 'change.change_ticket == "TWO"', effect: approve, count: 2, wait: 40s, valid: 20s}
  - {id: ticket, when: 'change.environment == "production" && change.class != "read_only"', effect: deny, reason: Not in production.}
examples:
  - {name: a read, change: {class: read_only}, expect: auto}
`

func policyOf(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(fault.TextOf(err))
	}
	return p
}

// The people and programs of the tests.
var (
	planner  = caller("planner", writ.Agent, model.Requester)
	stranger = caller("stranger", writ.Agent, model.Requester)
	alice    = caller("alice", writ.Human, model.Approver)
	bob      = caller("bob", writ.Human, model.Approver)
	olga     = caller("olga", writ.Human, model.Operator)
	audrey   = caller("audrey", writ.Human, model.Auditor)
)

func caller(name string, kind writ.PrincipalKind, roles ...model.Role) model.Caller {
	return model.Caller{Principal: writ.Principal{Name: name, Kind: kind}, Roles: roles}
}

// world is a pipeline with a real store, catalog and policy, in a bubble whose
// clock moves only when everything waits.
type world struct {
	*pipeline.Pipeline
	t        *testing.T
	store    *flaky
	audit    *audit
	executor *executor
}

// run runs a test in a world of its own.
func run(t *testing.T, test func(*testing.T, *world)) { runWith(t, rules, test) }

// runWith runs a test in a world with a policy of its own.
func runWith(t *testing.T, rules string, test func(*testing.T, *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		test(t, w)
		w.check()
	})
}

func newWorld(t *testing.T, rules string) *world {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "gate", "gate.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	a := &audit{store: db}
	w := &world{t: t, store: &flaky{Store: db, fails: map[model.EventType]int{}}, audit: a, executor: newExecutor(t, a, key)}
	w.start(pipeline.Config{
		Sys: bubble(), Store: w.store, Audit: a, Executor: w.executor,
		Catalog: catalogOf(t), Policy: policyOf(t, rules), Key: key, Epoch: 1, FirstAnswer: 800 * time.Millisecond,
	})
	t.Cleanup(func() { w.Stop() })
	return w
}

// bubble is a Sys whose two clocks are those of the bubble. The one that nobody
// sets goes slower by a trifle, so that the ends of the other can be told to the
// millisecond.
func bubble() sys.Sys {
	s, began := sys.Real(slog.New(slog.DiscardHandler)), time.Now()
	s.Uptime = func() sys.Moment { return sys.Moment{Boot: "bubble", Up: time.Since(began) * 9999 / 10000} }
	return s
}

func (w *world) start(c pipeline.Config) {
	w.t.Helper()
	w.Pipeline = pipeline.New(c)
	if err := w.Start(w.t.Context()); err != nil {
		w.t.Fatalf("start: %v", err)
	}
	w.settle()
}

// restart stops the pipeline and starts another on the same store.
func (w *world) restart(edits ...func(*pipeline.Config)) {
	w.t.Helper()
	w.Stop()
	c := w.Config
	for _, edit := range edits {
		edit(&c)
	}
	w.start(c)
}

// settle returns when everything that goes on in the background waits for something.
func (w *world) settle() { synctest.Wait() }

// pass lets time go by.
func (w *world) pass(d time.Duration) { time.Sleep(d) }

// later lets time go by, and what is due then happen.
func (w *world) later(d time.Duration) {
	w.pass(d)
	w.settle()
}

// step is one step of a request on the value of a name.
func step(id, action, name string, needs ...string) model.RequestStep {
	return model.RequestStep{ID: id, Action: "mock." + action, Params: writ.Object{"name": name}, Needs: needs}
}

func request(steps ...model.RequestStep) model.Request { return model.Request{Steps: steps} }

// propose proposes as the planner and returns what the change has become when
// nothing goes on any more.
func (w *world) propose(r model.Request) *model.Change {
	w.t.Helper()
	c, err := w.Propose(w.t.Context(), planner, r, "")
	if err != nil {
		w.t.Fatalf("propose: %v (%s)", err, fault.CodeOf(err))
	}
	w.settle()
	return w.see(c.ID)
}

// agree returns the agreement to exactly what is shown now.
func (w *world) agree(id string) pipeline.Agreement {
	w.t.Helper()
	r, err := w.Review(w.t.Context(), alice, id)
	if err != nil {
		w.t.Fatalf("review: %v", err)
	}
	return pipeline.Agreement{EnvelopeDigest: r.EnvelopeDigest, ShownDigest: r.ShownDigest, Phrase: r.Phrase}
}

// approve approves and returns what the change has become.
func (w *world) approve(id string, who model.Caller) *model.Change {
	w.t.Helper()
	if _, err := w.Approve(w.t.Context(), who, id, w.agree(id)); err != nil {
		w.t.Fatalf("approve: %v (%s)", err, fault.CodeOf(err))
	}
	w.settle()
	return w.see(id)
}

// carriedOut proposes, approves, and returns what came of it.
func (w *world) carriedOut(r model.Request) *model.Change {
	w.t.Helper()
	return w.approve(w.propose(r).ID, alice)
}

func (w *world) see(id string) *model.Change {
	w.t.Helper()
	c, err := w.Change(w.t.Context(), audrey, id)
	if err != nil {
		w.t.Fatalf("read %s: %v", id, err)
	}
	return c
}

func (w *world) events(id string) []model.Event {
	w.t.Helper()
	lines, err := w.Events(w.t.Context(), audrey, store.EventFilter{ChangeID: id})
	if err != nil {
		w.t.Fatal(err)
	}
	return decode(w.t, lines)
}

func decode(t *testing.T, lines []store.Line) []model.Event {
	t.Helper()
	events := make([]model.Event, len(lines))
	for i, l := range lines {
		if err := json.Unmarshal(l.Bytes, &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

// told returns the types of a change's events in their order.
func (w *world) told(id string) string {
	w.t.Helper()
	var types []string
	for _, e := range w.events(id) {
		types = append(types, string(e.Type))
	}
	return strings.Join(types, " ")
}

// locks returns the locks that hold, as "entity state holder", the holder by the
// name it is given.
func (w *world) locks(names map[string]string) []string {
	w.t.Helper()
	locks, err := w.Locks(w.t.Context(), audrey, false)
	if err != nil {
		w.t.Fatal(err)
	}
	out := []string{}
	for _, l := range locks {
		out = append(out, l.Entity+" "+string(l.State)+" "+names[l.ChangeID])
	}
	slices.Sort(out)
	return out
}

// audit holds the events of a store, unless it is told to fail.
type audit struct {
	store store.Store
	mu    sync.Mutex
	err   error
	at    model.EventType // the event that it fails at; "" fails always
	held  []model.EventType
}

func (a *audit) CatchUp(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil && a.at == "" {
		return a.err
	}
	return a.store.View(ctx, func(r store.Reader) error {
		lines, err := r.Events(store.EventFilter{After: int64(len(a.held))})
		for _, l := range lines {
			var e model.Event
			if err := json.Unmarshal(l.Bytes, &e); err != nil {
				return err
			}
			if a.err != nil && a.at == e.Type {
				return a.err
			}
			a.held = append(a.held, e.Type)
		}
		return err
	})
}

// fail makes the audit fail with err from now on; nil mends it.
func (a *audit) fail(err error) { a.failAt("", err) }

// failAt makes it fail with err when it comes to an event of a type.
func (a *audit) failAt(t model.EventType, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err, a.at = err, t
}

func (a *audit) count(t model.EventType) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, h := range a.held {
		if h == t {
			n++
		}
	}
	return n
}

// flaky is a store whose transactions fail when they append certain events.
type flaky struct {
	store.Store
	mu    sync.Mutex
	fails map[model.EventType]int // how often
	count int                     // transactions
}

// written returns how many transactions there were.
func (f *flaky) written() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// fail makes the next n transactions fail that append an event of the type.
func (f *flaky) fail(t model.EventType, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails[t] = n
}

// mend makes no transaction fail any more.
func (f *flaky) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.fails)
}

func (f *flaky) Update(ctx context.Context, do func(store.Tx) error) error {
	f.mu.Lock()
	f.count++
	f.mu.Unlock()
	return f.Store.Update(ctx, func(tx store.Tx) error { return do(flakyTx{tx, f}) })
}

type flakyTx struct {
	store.Tx
	f *flaky
}

func (t flakyTx) Append(e *model.Event) error {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	if t.f.fails[e.Type] > 0 {
		t.f.fails[e.Type]--
		return fault.New(fault.Unavailable, "The disk is full.").Because("disk_full")
	}
	return t.Tx.Append(e)
}

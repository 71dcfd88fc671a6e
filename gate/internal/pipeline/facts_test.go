package pipeline_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/store"
)

// tells lets the executor find facts.
func (w *world) tells(change func(*writ.Observation)) {
	w.executor.tell(func() {
		w.executor.peek = func(o *writ.Observation) {
			o.Fingerprint, o.Rollback, o.Fields = string(writ.DigestBytes([]byte("as it is"))), nil, []writ.Field{}
			o.Facts = &writ.Facts{
				Facts: []writ.Fact{
					{Name: "size", Type: "integer", Sensitivity: "public", Value: "3"},
					{Name: "note", Type: "string", Sensitivity: "internal", Value: "written by others"},
					{Name: "colour", Type: "string", Sensitivity: "internal", Absent: true},
					{Name: "token", Type: "string", Sensitivity: "secret", Missing: writ.FactSecret},
				},
				Health: writ.Health{State: writ.HealthOK, Reasons: []string{}},
			}
			if change != nil {
				change(o)
			}
		}
	})
}

// told is facts in one line each.
func told(f *pipeline.Facts) (all []string) {
	for _, one := range f.Facts {
		switch {
		case one.Withheld != "" && one.Value == "" && !one.Absent:
			all = append(all, one.Name+" withheld")
		case one.Withheld != "":
			all = append(all, one.Name+" withheld, and told all the same")
		case one.Absent:
			all = append(all, one.Name+" absent")
		default:
			all = append(all, one.Name+"="+one.Value)
		}
	}
	return append(all, "health "+string(f.Health.State))
}

func (w *world) factEvents() (all []model.Event) {
	w.t.Helper()
	lines, err := w.Events(w.t.Context(), audrey, store.EventFilter{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range lines {
		var e model.Event
		if err := json.Unmarshal(l.Bytes, &e); err != nil {
			w.t.Fatal(err)
		}
		if e.Type == model.FactsRead {
			all = append(all, e)
		}
	}
	return all
}

func TestFacts_refuses(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.tells(nil)
		for _, c := range []struct {
			entity string
			code   fault.Code
			says   string
		}{
			{"", fault.NotFound, "mock/{name…}"},
			{"mars", fault.NotFound, "Facts are told of: mock/{name…}, live/{name…}"},
			{"mars/a", fault.NotFound, "There is no system"},
			{"odd/a", fault.NotFound, "Nothing is told of systems of the kind other"},
			{"mock", fault.NotFound, "mock/{name…}"},
			{"mock/", fault.NotFound, "mock/{name…}"},
			{"mock//a", fault.NotFound, ""},
			{"mock/../a", fault.NotFound, ""},
			{"mock/" + strings.Repeat("a", 64), fault.Invalid, "params.name: maxLength"},
			{"mock/" + strings.Repeat("a", 600), fault.Invalid, "up to 512 bytes"},
			{"mock/\xff", fault.Invalid, "bytes of text"},
			{"mock/a\nb", fault.NotFound, ""},
		} {
			_, err := w.Facts(t.Context(), planner, c.entity)
			if fault.CodeOf(err) != c.code || !strings.Contains(fault.TextOf(err), c.says) {
				t.Errorf("%.40q: %v", c.entity, err)
			}
		}
		if w.executor.reads != 0 || len(w.factEvents()) > 0 {
			t.Error("a target was asked all the same")
		}
		for name, change := range map[string]func(*writ.Observation){
			"another entity": func(o *writ.Observation) { o.Entity = "mock/b" },
			"another step":   func(o *writ.Observation) { o.Step = "s2" },
			"no facts":       func(o *writ.Observation) { o.Facts = nil },
			"no hash":        func(o *writ.Observation) { o.Fingerprint = "what it is, in so many words" },
			"too many":       func(o *writ.Observation) { o.Facts.Facts = make([]writ.Fact, writ.MaxFacts+1) },
		} {
			w.tells(change)
			if _, err := w.Facts(t.Context(), planner, "mock/a"); fault.CodeOf(err) != fault.Refused {
				t.Errorf("the executor tells %s: %v", name, err)
			}
		}
		w.executor.tell(func() { w.executor.away = fault.New(fault.Unavailable, "The executor does not answer.") })
		_, err := w.Facts(t.Context(), planner, "mock/a")
		refused(t, "the executor is away", err, fault.Unavailable, "")
		if len(w.factEvents()) > 0 {
			t.Error("the audit tells of facts that nobody was told")
		}
	})
}

// TestFacts_noAuditNoAnswer: what cannot be recorded is not told.
func TestFacts_noAuditNoAnswer(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.tells(nil)
		w.store.fail(model.FactsRead, 1)
		f, err := w.Facts(t.Context(), planner, "mock/a")
		refused(t, "the event cannot be written", err, fault.Unavailable, "disk_full")
		if f != nil {
			t.Error("it is told all the same")
		}
		w.audit.fail(fault.New(fault.Unavailable, "The audit cannot be written."))
		f, err = w.Facts(t.Context(), planner, "mock/a")
		refused(t, "the audit cannot be written", err, fault.Unavailable, "")
		if f != nil {
			t.Error("it is told all the same")
		}
		w.audit.fail(nil)
		if _, err := w.Facts(t.Context(), planner, "mock/a"); err != nil {
			t.Error(err)
		}
	})
}

const factRules = rules + `facts:
  rules:
    - {id: all, when: 'true', effect: show}
    - {id: notes, when: 'principal.kind == "agent" && fact.name == "note"', effect: withhold, reason: Notes are for people.}
    - {id: live, when: 'fact.environment == "production" && principal.kind == "agent" && fact.name in ["state_hash", "health"]', effect: withhold, reason: Not of production.}
  examples:
    - {name: a size, principal: {kind: agent}, fact: {name: size, sensitivity: public}, expect: show}
`

func TestFacts_policyDecides(t *testing.T) {
	runWith(t, factRules, func(t *testing.T, w *world) {
		hash := writ.DigestBytes([]byte("as it is"))
		w.tells(nil)
		for _, c := range []struct {
			who    model.Caller
			entity string
			want   []string
			hash   writ.Digest
		}{
			{planner, "mock/a", []string{"size=3", "note withheld", "colour absent", "token withheld", "health ok"}, hash},
			{alice, "mock/a", []string{"size=3", "note=written by others", "colour absent", "token withheld", "health ok"}, hash},
			{planner, "live/a", []string{"size=3", "note withheld", "colour absent", "token withheld", "state_hash withheld", "health withheld", "health withheld"}, ""},
			{alice, "live/a", []string{"size=3", "note=written by others", "colour absent", "token withheld", "health ok"}, hash},
		} {
			f, err := w.Facts(t.Context(), c.who, c.entity)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, told(f)); diff != "" || f.StateHash != c.hash {
				t.Errorf("%s of %s: %s %s", c.entity, c.who.Name, f.StateHash, diff)
			}
			if f.Facts[1].Withheld != "" && f.Facts[1].Withheld != "Notes are for people." {
				t.Errorf("the reason is %q", f.Facts[1].Withheld)
			}
		}
		// A value that is secret is not told, even if the executor gives it.
		w.tells(func(o *writ.Observation) { o.Facts.Facts[3].Value, o.Facts.Facts[3].Missing = "canary", "" })
		f, err := w.Facts(t.Context(), alice, "mock/a")
		if err != nil || f.Facts[3].Value != "" || f.Facts[3].Withheld == "" {
			t.Errorf("%+v, %v", f, err)
		}
	})
}

func TestFacts_areRecorded(t *testing.T) {
	runWith(t, factRules, func(t *testing.T, w *world) {
		w.tells(nil)
		who := planner
		who.Session = model.ParseSession("opencode/1.2, ana")
		for range 2 {
			if _, err := w.Facts(t.Context(), who, "mock/a"); err != nil {
				t.Fatal(err)
			}
		}
		w.tells(func(o *writ.Observation) { o.Facts.Facts[0].Value = "4" })
		if _, err := w.Facts(t.Context(), who, "mock/a"); err != nil {
			t.Fatal(err)
		}
		events := w.factEvents()
		if len(events) != 3 {
			t.Fatalf("there are %d events", len(events))
		}
		e := events[0]
		if e.User != "agent:planner" || e.Entity != "mock/a" || e.ActionType != "mock.facts" || e.TargetSystem != "mock" || e.Status != "ok" || !strings.HasPrefix(e.RunID, "run_") {
			t.Errorf("the event is %+v", e)
		}
		want := writ.Object{"shown": []any{"size", "colour"}, "withheld": []any{"note", "token"}}
		for name, list := range want {
			if diff := cmp.Diff(list, e.Detail[name]); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if s, _ := e.Detail["session"].(writ.Object); s["client"] != "opencode" {
			t.Errorf("the session is %v", e.Detail["session"])
		}
		if e.Detail["policy_digest"] != string(w.Policy.Digest()) || !writ.Digest(e.Detail["state_hash"].(string)).Valid() {
			t.Errorf("the detail is %v", e.Detail)
		}
		if d := e.Detail["facts_digest"]; d != events[1].Detail["facts_digest"] || d == events[2].Detail["facts_digest"] {
			t.Error("the digest is not of what was told")
		}
		line, err := json.Marshal(e)
		if err != nil || strings.Contains(string(line), "written by others") {
			t.Errorf("a value is in the audit: %s", line)
		}
	})
}

// TestFacts_unreadable: what could not be read is unknown, and never well.
func TestFacts_unreadable(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		for name, change := range map[string]func(*writ.Observation){
			"the target is away": func(o *writ.Observation) { o.Reason, o.Detail = "observe_failed", "no way" },
			"a guard":            func(o *writ.Observation) { o.Refusals = []string{"no way"} },
		} {
			w.tells(func(o *writ.Observation) {
				o.Facts = nil
				change(o)
			})
			f, err := w.Facts(t.Context(), planner, "mock/a")
			if err != nil || f.Health.State != writ.HealthUnknown || !slices.Equal(f.Health.Reasons, []string{"no way"}) || f.StateHash != "" || len(f.Facts) > 0 {
				t.Errorf("%s: %+v, %v", name, f, err)
			}
		}
	})
}

// TestFacts_whatTheGateKnows: the last change that a person approved, what is
// open, and who holds it.
func TestFacts_whatTheGateKnows(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		ask := func(who model.Caller, entity string) *pipeline.Facts {
			t.Helper()
			w.tells(nil)
			defer w.executor.tell(func() { w.executor.peek = nil })
			f, err := w.Facts(t.Context(), who, entity)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if f := ask(planner, "mock/a"); f.LastApproved != nil || len(f.Open) > 0 || f.Lock != nil {
			t.Errorf("of nothing: %+v", f)
		}
		w.propose(request(step("s1", "read", "a"))) // nobody approved it
		w.settle()
		first := w.propose(request(step("s1", "set", "a"))).ID
		second := w.propose(request(step("s1", "set", "a"), step("s2", "wipe", "b"))).ID
		if f := ask(planner, "mock/a"); f.LastApproved != nil || len(f.Open) != 2 {
			t.Errorf("while two wait: %+v", f)
		}
		if f := ask(stranger, "mock/a"); len(f.Open) > 0 {
			t.Errorf("somebody else's open changes are told: %+v", f.Open)
		}
		if f := ask(alice, "mock/a"); len(f.Open) != 2 {
			t.Errorf("an approver sees %+v", f.Open)
		}
		w.approve(second, alice)
		w.settle()
		w.pass(time.Second)
		w.executor.tell(func() { w.executor.hold = true })
		w.approve(first, alice)
		w.settle()
		f := ask(stranger, "mock/a")
		if f.LastApproved == nil || f.LastApproved.ID != first || f.Lock == nil || f.Lock.ChangeID != first {
			t.Errorf("the one approved last is %+v, the lock %+v", f.LastApproved, f.Lock)
		}
		if f := ask(planner, "mock/b"); f.LastApproved == nil || f.LastApproved.ID != second || f.Lock != nil {
			t.Errorf("of another step: %+v", f.LastApproved)
		}
		w.executor.letGo()
		w.settle()
	})
}

// TestFacts_areNotProposed: a set of facts is no change.
func TestFacts_areNotProposed(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		_, err := w.Propose(t.Context(), planner, request(step("s1", "facts", "a")), "")
		refused(t, "propose a set of facts", err, fault.Invalid, "facts_only")
	})
}

// TestFacts_halts: whom people stopped asks nothing; a stopped target can be looked at.
func TestFacts_halts(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		w.tells(nil)
		if _, _, err := w.Halt(t.Context(), alice, model.Halt{Target: "mock", Reason: "look first"}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Facts(t.Context(), planner, "mock/a"); err != nil {
			t.Errorf("a stopped target: %v", err)
		}
		if _, _, err := w.Halt(t.Context(), alice, model.Halt{Principal: "planner", Reason: "it runs wild"}); err != nil {
			t.Fatal(err)
		}
		_, err := w.Facts(t.Context(), planner, "mock/a")
		refused(t, "a stopped principal", err, fault.Denied, "halted")
		if _, err := w.Facts(t.Context(), stranger, "mock/a"); err != nil {
			t.Errorf("somebody else: %v", err)
		}
	})
}

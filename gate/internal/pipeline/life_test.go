package pipeline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
)

// The events of the usual ways, in order.
const (
	toDecision = "change.proposed change.planned change.decided"
	toReceipt  = " lock.taken change.claimed change.executing step.ended"
	freed      = " lock.released change.ended"
	left       = " lock.orphaned change.ended"
)

// life is one change from its request to where it comes to rest.
type life struct {
	name    string
	request model.Request
	told    func(*executor) // what the executor is told before
	people  []model.Caller  // approve, in this order
	state   model.State     // in which it rests
	code    fault.Code      // what that means to whoever waits; "" is success
	reason  string          // why it did not go on
	events  string          // all of them, and nothing else
	writs   int             // that were sent
	locks   []string        // that hold in the end
	class   writ.Class      // as assessed
	phrase  string          // that the approver had to type
}

// Long on purpose: one row a way to end.
func TestLife_beforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	production := request(step("s1", "set", "a"))
	production.Steps[0].System = "live"
	elsewhere := request(step("s1", "set", "a"))
	elsewhere.Environment = "production"
	unknown := request(step("s1", "set", "a"))
	unknown.Steps[0].System = "nowhere"
	wrong := request(step("s1", "set", "a"))
	wrong.Steps[0].System = "odd"
	two := request(step("s1", "set", "a"))
	two.ChangeTicket = "TWO"
	both := request(step("s1", "set", "a"), step("s2", "set", "b"))
	both.Steps[1].System = "live"
	runLives(t, []life{
		{
			name: "a change waits", request: request(step("s1", "set", "a")),
			state: model.AwaitingApproval, code: fault.ApprovalMissing, events: toDecision, class: writ.ConfigMutation,
		}, {
			name: "one of two approved", request: two, people: []model.Caller{alice},
			state: model.AwaitingApproval, code: fault.ApprovalMissing, events: toDecision + " change.approved",
		}, {
			name: "what has no way back counts as destructive", request: request(step("s1", "burn", "a")), phrase: "mock/a",
			state: model.AwaitingApproval, code: fault.ApprovalMissing, events: toDecision, class: writ.Destructive,
		}, {
			name: "the phrase names what is destroyed", request: request(step("s1", "read", "x"), step("s2", "set", "a"), step("s3", "wipe", "b")), phrase: "mock/b",
			state: model.AwaitingApproval, code: fault.ApprovalMissing, events: toDecision, class: writ.Destructive,
		}, {
			name: "the phrase names what has no way back", request: request(step("s1", "read", "x"), step("s2", "burn", "b")), phrase: "mock/b",
			state: model.AwaitingApproval, code: fault.ApprovalMissing, events: toDecision, class: writ.Destructive,
		}, {
			name: "denied by policy", request: production,
			state: model.Denied, code: fault.Denied, reason: "policy", events: toDecision,
		}, {
			name: "a guard refuses", request: request(step("s1", "set", "a")),
			told:  func(x *executor) { x.peek = func(o *writ.Observation) { o.Refusals = []string{"Not this one."} } },
			state: model.Denied, code: fault.Denied, reason: "guard_refused", events: toDecision,
		}, {
			name: "a guard refuses a read", request: request(step("s1", "read", "a")),
			told:  func(x *executor) { x.peek = func(o *writ.Observation) { o.Refusals = []string{"Not this one."} } },
			state: model.Denied, code: fault.Denied, reason: "guard_refused", events: toDecision,
		}, {
			name: "forbidden", request: request(step("s1", "never", "a")),
			state: model.Denied, code: fault.Denied, reason: "forbidden_action", events: toDecision,
		}, {
			name: "one forbidden step forbids the plan", request: request(step("s1", "read", "a"), step("s2", "never", "a")),
			state: model.Denied, code: fault.Denied, reason: "forbidden_action", events: toDecision,
		}, {
			name: "no such system", request: unknown,
			state: model.Denied, code: fault.Denied, reason: "unknown_system", events: "change.proposed change.ended",
		}, {
			name: "a system of another kind", request: wrong,
			state: model.Denied, code: fault.Denied, reason: "wrong_system", events: "change.proposed change.ended",
		}, {
			name: "another environment than the system's", request: elsewhere,
			state: model.Denied, code: fault.Denied, reason: "wrong_environment", events: "change.proposed change.ended",
		}, {
			name: "two environments", request: both,
			state: model.Denied, code: fault.Denied, reason: "wrong_environment", events: "change.proposed change.ended",
		}, {
			name: "the executor is away when it is planned", request: request(step("s1", "set", "a")),
			told:  func(x *executor) { x.away = gone() },
			state: model.Failed, code: fault.Unavailable, reason: "not_sent", events: "change.proposed change.ended",
		}, {
			name: "the target cannot be read", request: request(step("s1", "set", "a")),
			told: func(x *executor) {
				x.peek = func(o *writ.Observation) { o.Reason, o.Detail = "target_away", "No answer." }
			},
			state: model.Failed, code: fault.Unavailable, reason: "target_away", events: "change.proposed change.ended",
		}, {
			name: "an observation of another step", request: request(step("s1", "set", "a")),
			told:  func(x *executor) { x.peek = func(o *writ.Observation) { o.Step = "s2" } },
			state: model.Failed, code: fault.Refused, reason: "other_step", events: "change.proposed change.ended",
		}, {
			name: "an observation of another run", request: request(step("s1", "set", "a")),
			told:  func(x *executor) { x.peek = func(o *writ.Observation) { o.Run = "run_other" } },
			state: model.Failed, code: fault.Refused, reason: "other_step", events: "change.proposed change.ended",
		}, {
			name: "an observation by another executor", request: request(step("s1", "set", "a")),
			told:  func(x *executor) { x.peek = func(o *writ.Observation) { o.Executor = "ex2" } },
			state: model.Failed, code: fault.Refused, reason: "other_step", events: "change.proposed change.ended",
		}, {
			name: "an observation that names no entity", request: request(step("s1", "set", "a")),
			told:  func(x *executor) { x.peek = func(o *writ.Observation) { o.Entity = "" } },
			state: model.Denied, code: fault.Denied, reason: "", events: "change.proposed change.planned change.ended",
		},
	})
}

func TestLife_carriedOut(t *testing.T) {
	t.Parallel()
	two := request(step("s1", "set", "a"))
	two.ChangeTicket = "TWO"
	back := request(step("s1", "set", "a"), step("s2", "set", "b", "s1"), step("s3", "set", "c", "s2"))
	back.OnFailure = writ.Rollback
	wiped := request(step("s1", "wipe", "a"), step("s2", "set", "b", "s1"))
	wiped.OnFailure = writ.Rollback
	outcome := func(entity string, o writ.Outcome) func(*executor) {
		return func(x *executor) { x.outcomes["mock/"+entity] = o }
	}
	approved := toDecision + " change.approved"
	three := " lock.taken lock.taken lock.taken change.claimed change.executing step.ended step.ended step.ended"
	runLives(t, []life{
		{
			name: "a read runs alone", request: request(step("s1", "read", "a")),
			state: model.Done, events: toDecision + " change.claimed change.executing step.ended change.ended", writs: 1, class: writ.ReadOnly,
		}, {
			name: "approved by one", request: request(step("s1", "set", "a")), people: []model.Caller{alice},
			state: model.Done, events: approved + toReceipt + freed, writs: 1,
		}, {
			name: "approved by two", request: two, people: []model.Caller{alice, bob},
			state: model.Done, events: approved + " change.approved" + toReceipt + freed, writs: 1,
		}, {
			name: "approved with its phrase", request: request(step("s1", "wipe", "a")), people: []model.Caller{alice}, phrase: "mock/a",
			state: model.Done, events: approved + toReceipt + freed, writs: 1, class: writ.Destructive,
		}, {
			name: "not executed", request: request(step("s1", "set", "a")), people: []model.Caller{alice}, told: outcome("a", writ.NotExecuted),
			state: model.Failed, code: fault.Failed, reason: "told_so", events: approved + toReceipt + freed, writs: 1,
		}, {
			name: "failed", request: request(step("s1", "set", "a")), people: []model.Caller{alice}, told: outcome("a", writ.Failed),
			state: model.Failed, code: fault.Failed, reason: "told_so", events: approved + toReceipt + freed, writs: 1,
		}, {
			name: "unverified", request: request(step("s1", "set", "a")), people: []model.Caller{alice}, told: outcome("a", writ.Unverified),
			state: model.Unverified, code: fault.Unverified, reason: "told_so", events: approved + toReceipt + left, writs: 1,
			locks: []string{"mock/a orphaned it"},
		}, {
			name: "unknown", request: request(step("s1", "set", "a")), people: []model.Caller{alice}, told: outcome("a", writ.Unknown),
			state: model.Unknown, code: fault.Unknown, reason: "told_so", events: approved + toReceipt + left, writs: 1,
			locks: []string{"mock/a orphaned it"},
		}, {
			name: "an outcome that nobody knows", request: request(step("s1", "set", "a")), people: []model.Caller{alice}, told: outcome("a", "surprising"),
			state: model.Unknown, code: fault.Unknown, reason: "told_so", events: approved + toReceipt + left, writs: 1,
			locks: []string{"mock/a orphaned it"},
		}, {
			name: "stopped half-way", request: request(step("s1", "set", "a"), step("s2", "set", "b"), step("s3", "set", "c")),
			people: []model.Caller{alice}, told: outcome("b", writ.Failed),
			state: model.Failed, code: fault.Unverified, reason: "told_so",
			events: approved + three + " lock.orphaned lock.released lock.released change.ended", writs: 1,
			locks: []string{"mock/a orphaned it"},
		}, {
			name: "undone as approved", request: back, people: []model.Caller{alice}, told: outcome("c", writ.Failed),
			state: model.RolledBack, code: fault.Failed, reason: "told_so",
			events: approved + three + " step.ended step.ended lock.released lock.released lock.released change.ended", writs: 1,
		}, {
			name: "undone by another action", request: wiped, people: []model.Caller{alice}, phrase: "mock/a", told: outcome("b", writ.Failed),
			state: model.RolledBack, code: fault.Failed, reason: "told_so", class: writ.Destructive,
			events: approved + " lock.taken lock.taken change.claimed change.executing step.ended step.ended step.ended lock.released lock.released change.ended", writs: 1,
		}, {
			name: "undoing failed", request: back, people: []model.Caller{alice},
			told: func(x *executor) {
				x.outcomes["mock/c"], x.outcomes["undo mock/a"] = writ.Failed, writ.RollbackFailed
			},
			state: model.RollbackFailed, code: fault.Stranded, reason: "told_so",
			events: approved + three + " step.ended step.ended lock.orphaned lock.released lock.released change.ended", writs: 1,
			locks: []string{"mock/a orphaned it"},
		}, {
			name: "not undone after an unknown outcome", request: back, people: []model.Caller{alice}, told: outcome("b", writ.Unknown),
			state: model.Unknown, code: fault.Unknown, reason: "told_so",
			events: approved + three + " lock.orphaned lock.orphaned lock.released change.ended", writs: 1,
			locks: []string{"mock/a orphaned it", "mock/b orphaned it"},
		},
	})
}

func runLives(t *testing.T, lives []life) {
	for _, l := range lives {
		t.Run(l.name, func(t *testing.T) {
			run(t, l.live)
		})
	}
}

func (l life) live(t *testing.T, w *world) {
	if l.told != nil {
		w.executor.tell(func() { l.told(w.executor) })
	}
	c := w.propose(l.request)
	phrase := ""
	if c.Decision != nil && c.State != model.Denied {
		phrase = c.Decision.Phrase
	}
	if phrase != l.phrase {
		t.Errorf("the phrase is %q, want %q", phrase, l.phrase)
	}
	for _, who := range l.people {
		c = w.approve(c.ID, who)
	}
	reason := ""
	if c.Trouble != nil {
		reason = c.Trouble.Reason
	}
	if c.State != l.state || c.Code() != l.code || reason != l.reason {
		t.Errorf("it is %s, code %q, reason %q (%v); want %s, %q, %q", c.State, c.Code(), reason, c.Trouble, l.state, l.code, l.reason)
	}
	if l.class != "" && c.Assessment.Class != l.class {
		t.Errorf("its class is %s, want %s", c.Assessment.Class, l.class)
	}
	if diff := cmp.Diff(l.events, w.told(c.ID)); diff != "" {
		t.Errorf("the events differ (-want +got):\n%s", diff)
	}
	if n := w.executor.sent(); n != l.writs {
		t.Errorf("%d writs were sent, want %d", n, l.writs)
	}
	if diff := cmp.Diff(append([]string{}, l.locks...), w.locks(map[string]string{c.ID: "it"})); diff != "" {
		t.Errorf("the locks differ (-want +got):\n%s", diff)
	}
	if (c.Digest != "") != (c.Envelope != nil) || c.State == model.Denied && c.Envelope != nil {
		t.Errorf("it is %s and has the envelope %v with digest %q", c.State, c.Envelope, c.Digest)
	}
}

package pipeline

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"writ"
	"writ/catalog"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/policy"
	"writ/gate/internal/store"
)

// Facts is what is told of one entity: what its system says, as far as the
// policy shows it, and what the gate itself knows.
type Facts struct {
	Entity       string
	System       writ.SystemInfo
	Action       *catalog.Action // the set of facts
	Facts        []Fact
	StateHash    writ.Digest // "" if it is withheld or could not be read
	Health       writ.Health
	ObservedAt   writ.Time
	LastApproved *model.Change   // the one that a person approved last; nil if there is none
	Open         []*model.Change // that act on it, as far as the caller may see them
	Lock         *model.Lock     // nil if nobody holds it
}

// Fact is one fact, or why it is withheld.
type Fact struct {
	writ.Fact
	Withheld string // a sentence; then there is no value
}

// Withheld is the state of a health that the caller is not shown.
const Withheld writ.HealthState = "withheld"

// The bounds of what is asked and told.
const (
	maxEntity   = 512 // bytes
	maxApproved = 100 // changes of which the one that was approved last is told
	maxOpen     = 20
)

// Facts lets the executor read one entity and tells what the caller may know of
// it. The event that says so is in the audit before the answer is given.
func (p *Pipeline) Facts(ctx context.Context, who model.Caller, entity string) (*Facts, error) {
	if err := p.mayAsk(ctx, who); err != nil {
		return nil, err
	}
	hello, err := p.Executor.Hello(ctx)
	if err != nil {
		return nil, err
	}
	f, step, err := p.factsOf(&hello, entity)
	if err != nil {
		return nil, err
	}
	o, err := p.read(ctx, who, f, hello.Executor, step)
	if err != nil {
		return nil, err
	}
	if err := f.take(o); err != nil {
		return nil, err
	}
	f.withhold(p.Policy, policy.ReaderOf(who))
	err = p.update(ctx, func(tx store.Tx, now writ.Time) error {
		if err := f.remember(tx, who); err != nil {
			return err
		}
		return tx.Append(p.factsRead(f, who, o.Run, now))
	})
	if err == nil {
		err = p.Audit.CatchUp(ctx)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// mayAsk refuses a caller whom people stopped. A stop of a target keeps nobody
// from looking at it.
func (p *Pipeline) mayAsk(ctx context.Context, who model.Caller) error {
	return p.Store.View(ctx, func(r store.Reader) error {
		return halted(r, func(h *model.Halt) bool { return h.Principal != "" && h.CoversPrincipal(who.Name) })
	})
}

// factsOf finds the set of facts of an entity, and the step that observes it.
func (p *Pipeline) factsOf(hello *writ.Hello, entity string) (*Facts, writ.Step, error) {
	if len(entity) > maxEntity || !utf8.ValidString(entity) {
		return nil, writ.Step{}, fault.New(fault.Invalid, "The name of an entity has up to %d bytes of text.", maxEntity)
	}
	name, _, _ := strings.Cut(entity, "/")
	at := slices.IndexFunc(hello.Systems, func(s writ.SystemInfo) bool { return s.Name == name })
	if at < 0 {
		var shapes []string
		for _, s := range hello.Systems {
			shapes = append(shapes, p.Catalog.Shapes(s.Kind, s.Name)...)
		}
		return nil, writ.Step{}, fault.New(fault.NotFound, "There is no system %.60q. Facts are told of: %s", name, strings.Join(shapes, ", ")).Because("unknown_system")
	}
	f := &Facts{Entity: entity, System: hello.Systems[at], Facts: []Fact{}, Open: []*model.Change{}}
	a, params, err := p.Catalog.FactsOf(f.System.Kind, entity)
	if err != nil {
		return nil, writ.Step{}, err
	}
	f.Action = a
	return f, writ.Step{
		ID: "s1", Needs: []string{}, Action: a.Name, ActionDigest: a.Digest, System: f.System.Name, Params: params,
		Resolved: writ.Object{}, Touches: []string{}, Class: a.Class,
	}, nil
}

// read lets the executor observe the entity.
func (p *Pipeline) read(ctx context.Context, who model.Caller, f *Facts, executor string, step writ.Step) (*writ.Observation, error) {
	asked, err := writ.DigestOf(writ.Object{"entity": f.Entity})
	if err != nil {
		return nil, err
	}
	nothing, err := writ.DigestOf(writ.Object{"observations": nil})
	if err != nil {
		return nil, err
	}
	all, err := p.look(ctx, executor, writ.Envelope{
		RequestDigest: asked, RequestedBy: who.Principal, Environment: f.System.Environment, Class: writ.ReadOnly, RiskLevel: writ.Low,
		OnFailure: writ.Stop, PolicyDigest: p.Policy.Digest(), PreviewDigest: nothing, Steps: []writ.Step{step},
	})
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// take takes what the executor found. What could not be read is unknown.
func (f *Facts) take(o *writ.Observation) error {
	f.ObservedAt = o.ObservedAt
	f.Health = writ.Health{State: writ.HealthUnknown, Reasons: []string{}}
	switch {
	case o.Reason != "":
		f.Health.Reasons = append(f.Health.Reasons, o.Detail)
		return nil
	case len(o.Refusals) > 0:
		f.Health.Reasons = o.Refusals
		return nil
	case o.Entity != f.Entity || o.Facts == nil || len(o.Facts.Facts) > writ.MaxFacts || !writ.Digest(o.Fingerprint).Valid():
		return fault.New(fault.Refused, "The executor told of something else than it was asked for. Do both programs have the same version?").Because("other_facts")
	}
	f.StateHash, f.Health = writ.Digest(o.Fingerprint), o.Facts.Health
	for _, one := range o.Facts.Facts {
		f.Facts = append(f.Facts, Fact{Fact: one, Withheld: missing(one.Missing)})
	}
	return nil
}

// missing says why the executor gave no value.
func missing(word string) string {
	switch word {
	case "":
		return ""
	case writ.FactSecret:
		return "It is secret: it never leaves the executor."
	case writ.FactUnreadable:
		return "What the target answered does not give it."
	case writ.FactTooLarge:
		return "It is too large to be told."
	}
	return "The executor did not tell it."
}

// withhold takes out what the policy does not show. The hash of the state and the
// health say something of the facts, so that they are judged like facts.
func (f *Facts) withhold(p *policy.Policy, who policy.Reader) {
	why := func(name, sensitivity string) string {
		return p.Shows(who, policy.Fact{
			Name: name, Sensitivity: sensitivity, Action: f.Action.Name, System: f.System.Name, Environment: f.System.Environment, Entity: f.Entity,
		}).Withheld
	}
	for i := range f.Facts {
		one := &f.Facts[i]
		if text := why(one.Name, one.Sensitivity); text != "" && one.Withheld == "" {
			one.Withheld = text
		}
		if one.Withheld != "" {
			one.Value, one.Absent = "", false
		}
	}
	// What kept the executor from reading may quote the target, too.
	for _, name := range []string{writ.FactStateHash, writ.FactHealth} {
		text := why(name, catalog.Internal)
		if text == "" {
			continue
		}
		if name == writ.FactStateHash {
			f.StateHash = ""
		} else {
			f.Health = writ.Health{State: Withheld, Reasons: []string{}}
		}
		f.Facts = append(f.Facts, Fact{Fact: writ.Fact{Name: name, Type: "string", Sensitivity: catalog.Internal}, Withheld: text})
	}
}

// remember adds what the gate itself knows of the entity.
func (f *Facts) remember(r store.Reader, who model.Caller) error {
	approved, err := r.Changes(store.ChangeFilter{Entity: f.Entity, Approved: true, Limit: maxApproved})
	if err != nil {
		return err
	}
	for _, c := range approved {
		if f.LastApproved == nil || ApprovedAt(c).After(ApprovedAt(f.LastApproved).Time) {
			f.LastApproved = c
		}
	}
	open := store.ChangeFilter{Entity: f.Entity, States: slices.DeleteFunc(model.States(), model.State.Ended), Limit: maxOpen}
	if !who.SeesAll() {
		open.Requester = who.Name
	}
	if f.Open, err = r.Changes(open); err != nil {
		return err
	}
	locks, err := r.Locks(false)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(locks, func(l model.Lock) bool { return l.Entity == f.Entity }); at >= 0 {
		f.Lock = &locks[at]
	}
	return nil
}

// ApprovedAt returns when a change was approved last, the zero time if nobody did.
func ApprovedAt(c *model.Change) (at writ.Time) {
	for _, a := range c.Approvals {
		if a.ApprovedAt.After(at.Time) {
			at = a.ApprovedAt
		}
	}
	return at
}

// factsRead is the event that says who was told what. No value stands in it.
func (p *Pipeline) factsRead(f *Facts, who model.Caller, run string, now writ.Time) *model.Event {
	shown, withheld := []any{}, []any{}
	told := make([]any, len(f.Facts))
	for i, one := range f.Facts {
		told[i] = writ.Object{"name": one.Name, "value": one.Value, "absent": one.Absent, "withheld": one.Withheld}
		if one.Withheld == "" {
			shown = append(shown, one.Name)
		} else {
			withheld = append(withheld, one.Name)
		}
	}
	e := &model.Event{
		ID: p.Sys.NewID("evt"), Type: model.FactsRead, Timestamp: now, RunID: run, User: who.User(), TargetSystem: f.System.Name,
		ActionType: f.Action.Name, Entity: f.Entity, Status: string(f.Health.State),
		Detail: writ.Object{
			"shown": shown, "withheld": withheld, "state_hash": string(f.StateHash), "policy_digest": string(p.Policy.Digest()),
		},
	}
	if digest, err := writ.DigestOf(told); err == nil {
		e.Detail["facts_digest"] = string(digest)
	}
	if who.Session != nil {
		e.Detail["session"] = session(who.Session)
	}
	if who.Tools != "" {
		e.Detail["tools_digest"] = string(who.Tools)
	}
	return e
}

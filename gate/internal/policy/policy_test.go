package policy_test

import (
	"strings"
	"testing"
	"time"

	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/policy"
	"writ/policies"
)

const small = `
policy: small
rules:
  - {id: reads, when: 'change.class == "read_only"', effect: auto}
  - {id: people, when: 'change.class == "config_mutation"', effect: approve, count: 1, wait: 2h, valid: 10m}
  - {id: two, when: 'change.environment == "production"', effect: approve, count: 2, wait: 1h, valid: 30m, phrase: true}
  - {id: never, when: '"x.destroy" in change.actions', effect: deny, reason: Not here.}
  - {id: breaks, when: 'change.entities[5] == "x"', effect: deny, reason: Cannot be.}
examples:
  - {name: read, change: {class: read_only, entities: [a, b, c, d, e, f]}, expect: auto}
`

func parse(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", fault.TextOf(err))
	}
	return p
}

func TestDecide_theStrictestWins(t *testing.T) {
	t.Parallel()
	p := parse(t, strings.Replace(small, `  - {id: breaks, when: 'change.entities[5] == "x"', effect: deny, reason: Cannot be.}`+"\n", "", 1))
	for _, c := range []struct {
		name  string
		facts policy.Facts
		want  model.Effect
		count int64
		wait  time.Duration
		valid time.Duration
		word  string
	}{
		{"read", policy.Facts{Class: "read_only"}, model.Auto, 0, 0, 0, ""},
		{"change", policy.Facts{Class: "config_mutation"}, model.Approve, 1, 2 * time.Hour, 10 * time.Minute, ""},
		{"a read in production", policy.Facts{Class: "read_only", Environment: "production"}, model.Approve, 2, time.Hour, 30 * time.Minute, "t"},
		{"both rules", policy.Facts{Class: "config_mutation", Environment: "production"}, model.Approve, 2, time.Hour, 10 * time.Minute, "t"},
		{"denied although approvable", policy.Facts{Class: "config_mutation", Actions: []string{"x.destroy"}}, model.Deny, 1, 2 * time.Hour, 10 * time.Minute, ""},
		{"nothing speaks of it", policy.Facts{Class: "destructive"}, model.Deny, 0, 0, 0, ""},
	} {
		d := p.Decide(c.facts, "t")
		if d.Effect != c.want || d.Count != c.count || d.Wait != c.wait || d.Valid != c.valid || d.Phrase != c.word {
			t.Errorf("%s: %+v", c.name, d)
		}
		if d.Effect == model.Deny && len(d.Reasons) == 0 {
			t.Errorf("%s: denied without a reason", c.name)
		}
		if d.PolicyDigest != p.Digest() {
			t.Errorf("%s: the decision names another policy", c.name)
		}
	}
}

// Case: C024.
func TestDecide_aRuleThatFailsDenies(t *testing.T) {
	t.Parallel()
	d := parse(t, small).Decide(policy.Facts{Class: "read_only"}, "t")
	if d.Effect != model.Deny || !strings.Contains(strings.Join(d.Reasons, " "), "breaks") {
		t.Errorf("a rule that cannot be evaluated led to %+v", d)
	}
}

func TestParse_problems(t *testing.T) {
	t.Parallel()
	const ok = "\nexamples:\n  - {name: x, change: {class: read_only}, expect: auto}\n"
	for _, c := range []struct{ name, text, want string }{
		{"no rules", "policy: p" + ok, "there is no rule"},
		{"no name", "rules: [{id: a, when: 'true', effect: auto}]" + ok, "no name"},
		{"unknown key", "policy: p\nrulez: []", "rulez"},
		{"second document", "policy: p\nrules: [{id: a, when: 'true', effect: auto}]" + ok + "---\npolicy: q\n", "second document"},
		{"misspelt fact", "policy: p\nrules: [{id: a, when: 'change.clas == \"x\"', effect: auto}]" + ok, "undefined field 'clas'"},
		{"wrong type", "policy: p\nrules: [{id: a, when: 'change.score == \"x\"', effect: auto}]" + ok, "no matching overload"},
		{"not a truth value", "policy: p\nrules: [{id: a, when: 'change.class', effect: auto}]" + ok, "not true or false"},
		{"unknown effect", "policy: p\nrules: [{id: a, when: 'true', effect: allow}]" + ok, "none of auto, approve, deny"},
		{"deny without reason", "policy: p\nrules: [{id: a, when: 'true', effect: deny}]" + ok, "says why"},
		{"count on auto", "policy: p\nrules: [{id: a, when: 'true', effect: auto, count: 2}]" + ok, "belong to the effect approve"},
		{"endless validity", "policy: p\nrules: [{id: a, when: 'true', effect: approve, valid: 1000h}]" + ok, "valid at most"},
		{"id twice", "policy: p\nrules: [{id: a, when: 'true', effect: auto}, {id: a, when: 'true', effect: auto}]" + ok, "stands twice"},
		{"no examples", "policy: p\nrules: [{id: a, when: 'true', effect: auto}]", "at least one example"},
		{"broken example", "policy: p\nrules: [{id: a, when: 'true', effect: auto}]\nexamples: [{name: x, change: {class: y}, expect: deny}]", "expected deny, the rules say auto"},
		{"example with an unknown fact", "policy: p\nrules: [{id: a, when: 'true', effect: auto}]\nexamples: [{name: x, change: {klass: y}, expect: deny}]", `no fact named "klass"`},
	} {
		_, err := policy.Parse([]byte(c.text))
		if err == nil || !strings.Contains(fault.TextOf(err), c.want) {
			t.Errorf("%s: error %q does not say %q", c.name, fault.TextOf(err), c.want)
		}
	}
}

func TestParse_allProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := policy.Parse([]byte("policy: p\nrules:\n  - {id: A, when: 'true', effect: auto}\n  - {id: b, when: '1', effect: nope}\n"))
	text := fault.TextOf(err)
	for _, want := range []string{"rules[0] A", "rules[1] b: the effect", "rules[1] b: when"} {
		if !strings.Contains(text, want) {
			t.Errorf("the error does not mention %q:\n%s", want, text)
		}
	}
}

func TestDenials(t *testing.T) {
	t.Parallel()
	const rest = "\nrules: [{id: a, when: 'true', effect: auto}]\nexamples: [{name: x, change: {class: y}, expect: auto}]"
	for text, want := range map[string]policy.Denials{
		"": {Remember: 24 * time.Hour, Limit: 3}, "denials: {limit: 20}": {Remember: 24 * time.Hour, Limit: 20},
		"denials: {remember: 1m, limit: 1}": {Remember: time.Minute, Limit: 1}, "denials: {remember: 720h}": {Remember: 720 * time.Hour, Limit: 3},
		"denials: {limit: 21}": {}, "denials: {limit: -1}": {}, "denials: {remember: 59s}": {}, "denials: {remember: 721h}": {}, "denials: {forget: 1h}": {},
	} {
		p, err := policy.Parse([]byte("policy: p\n" + text + rest))
		switch {
		case want == policy.Denials{} && fault.CodeOf(err) != fault.Invalid:
			t.Errorf("%s: it was taken", text)
		case want != policy.Denials{} && (err != nil || p.Denials() != want):
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestShippedPolicyLoads(t *testing.T) {
	t.Parallel()
	p := parse(t, string(policies.ApproveMost))
	if p.AllowsIrreversible("proxmox.create_lxc") {
		t.Error("the starting policy names no irreversible action")
	}
}

func BenchmarkDecide(b *testing.B) {
	p, err := policy.Parse(policies.ApproveMost)
	if err != nil {
		b.Fatal(err)
	}
	f := policy.Facts{Class: "config_mutation", RiskLevel: "medium", Environment: "lab", PreviewKnown: true}
	for b.Loop() {
		p.Decide(f, "t")
	}
}

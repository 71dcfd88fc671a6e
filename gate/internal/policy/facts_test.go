package policy_test

import (
	"strings"
	"testing"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/gate/internal/policy"
	"writ/policies"
)

const factRules = small + `facts:
  rules:
    - {id: all, when: 'fact.sensitivity == "public" || fact.sensitivity == "internal" || fact.sensitivity == "secret"', effect: show}
    - {id: people-only, when: 'principal.kind == "agent" && fact.name == "description"', effect: withhold, reason: For people.}
    - {id: not-from-production, when: 'fact.environment == "production" && !("operator" in principal.roles)', effect: withhold, reason: Only operators see production.}
    - {id: breaks, when: 'fact.entity.split("/")[3] == "121" && fact.system == "odd"', effect: withhold, reason: Never reached.}
  examples:
    - {name: a name, principal: {name: a, kind: agent}, fact: {name: hostname, sensitivity: internal, entity: a/b/c/d}, expect: show}
    - {name: a text, principal: {name: a, kind: agent}, fact: {name: description, sensitivity: internal, entity: a/b/c/d}, expect: withhold}
`

func TestShows(t *testing.T) {
	t.Parallel()
	p := parse(t, factRules)
	agent := policy.ReaderOf(model.Caller{Principal: writ.Principal{Name: "planner", Kind: writ.Agent}, Roles: []model.Role{model.Requester}})
	otto := policy.ReaderOf(model.Caller{Principal: writ.Principal{Name: "otto", Kind: writ.Human}, Roles: []model.Role{model.Operator}})
	fact := func(name, sensitivity, environment, entity string) policy.Fact {
		return policy.Fact{Name: name, Sensitivity: sensitivity, Environment: environment, Entity: entity, System: "odd"}
	}
	for _, c := range []struct {
		name string
		who  policy.Reader
		fact policy.Fact
		why  string // it is withheld for; "" if it is shown
	}{
		{"a secret, though a rule would show it", otto, fact("x", "secret", "lab", "a/b/c/1"), "no policy shows a secret"},
		{"a sensitivity that nobody knows", otto, fact("x", "harmless", "lab", "a/b/c/1"), "No rule of the policy shows"},
		{"none at all", otto, fact("x", "", "lab", "a/b/c/1"), "No rule of the policy shows"},
		{"the strictest wins", agent, fact("description", "public", "lab", "a/b/c/1"), "For people."},
		{"in whichever order", agent, fact("x", "internal", "production", "a/b/c/1"), "Only operators see production."},
		{"a rule that fails", otto, fact("x", "public", "lab", "short"), "The rule breaks could not be evaluated"},
		{"all is well", otto, fact("description", "internal", "production", "a/b/c/1"), ""},
		{"all is well for an agent", agent, fact("hostname", "internal", "lab", "a/b/c/1"), ""},
	} {
		s := p.Shows(c.who, c.fact)
		if (s.Withheld == "") != (c.why == "") || !strings.Contains(s.Withheld, c.why) {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	bare := parse(t, small)
	for sensitivity, shown := range map[string]bool{"public": true, "internal": true, "secret": false} {
		if s := bare.Shows(agent, fact("x", sensitivity, "lab", "a")); (s.Withheld == "") != shown {
			t.Errorf("without a section, what is %s: %+v", sensitivity, s)
		}
	}
	if bare.Digest() == p.Digest() {
		t.Error("the digest does not cover the section about facts")
	}
}

func TestParse_factProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, new, want string }{
		{"no rules", factRules[strings.Index(factRules, "    - {id: all"):strings.Index(factRules, "  examples:\n    - {name: a name")], "", "facts.rules: there is no rule"},
		{"no examples", factRules[strings.Index(factRules, "  examples:\n    - {name: a name"):], "", "facts.examples: the section shows by at least one example"},
		{"an example that does not come true", "entity: a/b/c/d}, expect: show", "entity: a/b/c/d}, expect: withhold", `facts.examples[0] a name: expected "withhold", the rules say show [all]`},
		{"an expectation that is none", "entity: a/b/c/d}, expect: show", "entity: a/b/c/d}, expect: auto", `expected "auto"`},
		{"an effect that is none", "effect: show", "effect: reveal", `facts.rules[0] all: the effect "reveal" is none of show, withhold`},
		{"no reason", ", reason: For people.", "", "facts.rules[1] people-only: a rule that withholds says why"},
		{"an id twice", "id: people-only", "id: all", "facts.rules[1] all: the id stands twice"},
		{"an id that is none", "id: people-only", "id: People", "an id is a lower-case word"},
		{"a misspelt fact", "fact.sensitivity == \"public\"", "fact.sensitive == \"public\"", "undefined field 'sensitive'"},
		{"the value", `fact.name == "description"`, `fact.value == "description"`, "undefined field 'value'"},
		{"a change", `fact.name == "description"`, `change.class == "read_only"`, "undeclared reference to 'change'"},
		{"no question", `fact.name == "description"`, `fact.name`, "expected type 'bool' but found 'string'"},
		{"an unknown key", "id: people-only,", "id: people-only, count: 2,", "the YAML is not a policy"},
		{"an unknown member of a fact", "fact: {name: hostname,", "fact: {nam: hostname,", "the YAML is not a policy"},
	} {
		if strings.Count(factRules, c.old) != 1 {
			t.Fatalf("%s: %q stands %d times", c.name, c.old, strings.Count(factRules, c.old))
		}
		_, err := policy.Parse([]byte(strings.Replace(factRules, c.old, c.new, 1)))
		if err == nil || !strings.Contains(fault.TextOf(err), c.want) {
			t.Errorf("%s: %v", c.name, fault.TextOf(err))
		}
	}
}

// TestParse_emptyFacts: a section whose rules were taken out is not taken for none.
func TestParse_emptyFacts(t *testing.T) {
	t.Parallel()
	for _, section := range []string{"facts:\n", "facts: null\n", "facts: ~\n", "\"facts\":\n  # rules: []\n", "facts: {}\n"} {
		if _, err := policy.Parse([]byte(small + section)); err == nil || !strings.Contains(fault.TextOf(err), "facts") {
			t.Errorf("%q: %v", section, err)
		}
	}
}

// TestShipped_facts: the shipped policy shows what is not secret, as it says.
func TestShipped_facts(t *testing.T) {
	t.Parallel()
	p := parse(t, string(policies.ApproveMost))
	for sensitivity, shown := range map[string]bool{"public": true, "internal": true, "secret": false, "other": false} {
		if s := p.Shows(policy.Reader{Kind: "agent"}, policy.Fact{Sensitivity: sensitivity}); (s.Withheld == "") != shown {
			t.Errorf("what is %s: %+v", sensitivity, s)
		}
	}
}

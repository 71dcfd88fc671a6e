package policy

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"

	"writ/fault"
	"writ/gate/internal/model"
)

// Reader is what rules about facts may see of whoever asks, as the variable
// "principal".
type Reader struct {
	Name  string   `cel:"name" yaml:"name"`
	Kind  string   `cel:"kind" yaml:"kind"`
	Roles []string `cel:"roles" yaml:"roles"`
}

// ReaderOf returns a caller as rules see it.
func ReaderOf(who model.Caller) Reader {
	r := Reader{Name: who.Name, Kind: string(who.Kind), Roles: []string{}}
	for _, role := range who.Roles {
		r.Roles = append(r.Roles, string(role))
	}
	return r
}

// Fact is what rules may see of a fact, as the variable "fact". Its value is no
// part of it: what a target answers decides nothing.
type Fact struct {
	Name        string `cel:"name" yaml:"name"`
	Sensitivity string `cel:"sensitivity" yaml:"sensitivity"`
	Action      string `cel:"action" yaml:"action"` // the set that it is of
	System      string `cel:"system" yaml:"system"`
	Environment string `cel:"environment" yaml:"environment"`
	Entity      string `cel:"entity" yaml:"entity"`
}

// The effects of rules about facts.
const (
	show     = "show"
	withhold = "withhold"
)

// secret is the sensitivity that no rule can show.
const secret = "secret"

// factsText is the section of a policy about facts, as written.
type factsText struct {
	Rules    []factRuleText    `yaml:"rules"`
	Examples []factExampleText `yaml:"examples"`
}

type factRuleText struct {
	ID     string `yaml:"id"`
	When   string `yaml:"when"`
	Effect string `yaml:"effect"`
	Reason string `yaml:"reason"`
}

type factExampleText struct {
	Name      string `yaml:"name"`
	Principal Reader `yaml:"principal"`
	Fact      Fact   `yaml:"fact"`
	Expect    string `yaml:"expect"`
}

type factRule struct {
	factRuleText
	program cel.Program
}

// Shown is what became of one fact.
type Shown struct {
	Withheld string   // why it is not shown, in a sentence; "" if it is
	Rules    []string // that hold or failed
}

// Shows decides whether somebody is shown a fact. Every rule that holds counts
// and withholding wins; so does a rule that fails, and that none holds. Without
// a section about facts everybody who has proved who they are is shown what is
// public and internal. What is secret is never shown.
func (p *Policy) Shows(who Reader, f Fact) Shown {
	s := Shown{Rules: []string{}}
	switch {
	case f.Sensitivity == secret:
		s.Withheld = "It is secret, and no policy shows a secret."
		return s
	case p.facts == nil:
		return s
	}
	for _, r := range p.facts {
		out, _, err := r.program.Eval(map[string]any{"principal": who, "fact": f})
		holds, ok := false, false
		if err == nil {
			holds, ok = out.Value().(bool)
		}
		switch {
		case !ok:
			s.Withheld = "The rule " + r.ID + " could not be evaluated, and what cannot be judged is withheld."
		case !holds:
			continue
		case r.Effect == withhold && s.Withheld == "":
			s.Withheld = r.Reason
		}
		s.Rules = append(s.Rules, r.ID)
	}
	if len(s.Rules) == 0 {
		s.Withheld = "No rule of the policy shows such a fact, and what is not shown is withheld."
	}
	return s
}

var emptySection = regexp.MustCompile(`(?m)^["']?facts["']?\s*:`)

// readFacts checks the section about facts.
func (p *Policy) readFacts(text *factsText) (problems []string) {
	if text == nil {
		if emptySection.Match(p.source) { // a section whose rules were taken out shows nothing, and not everything
			return []string{"facts: the section is empty; give it rules and examples, or leave it out"}
		}
		return nil
	}
	env, err := cel.NewEnv(
		ext.NativeTypes(reflect.TypeFor[Reader](), reflect.TypeFor[Fact](), ext.ParseStructTags(true)),
		ext.Strings(),
		cel.Variable("principal", cel.ObjectType("policy.Reader")),
		cel.Variable("fact", cel.ObjectType("policy.Fact")),
	)
	if err != nil {
		return []string{"facts: the expression language could not be set up"}
	}
	p.facts = []factRule{}
	seen := map[string]bool{}
	for i, t := range text.Rules {
		r, wrong := checkFactRule(env, t)
		if seen[t.ID] {
			wrong = append(wrong, "the id stands twice")
		}
		seen[t.ID] = true
		for _, w := range wrong {
			problems = append(problems, fmt.Sprintf("facts.rules[%d] %s: %s", i, t.ID, w))
		}
		p.facts = append(p.facts, r)
	}
	if len(text.Rules) == 0 {
		problems = append(problems, "facts.rules: there is no rule, so everything would be withheld; say so with one, or leave the section out")
	}
	if len(text.Examples) == 0 {
		problems = append(problems, "facts.examples: the section shows by at least one example what it decides")
	}
	if len(problems) > 0 {
		return problems
	}
	for i, e := range text.Examples {
		got := show
		s := p.Shows(e.Principal, e.Fact)
		if s.Withheld != "" {
			got = withhold
		}
		if got != e.Expect {
			problems = append(problems, fmt.Sprintf("facts.examples[%d] %s: expected %q, the rules say %s %v", i, e.Name, e.Expect, got, s.Rules))
		}
	}
	return problems
}

func checkFactRule(env *cel.Env, text factRuleText) (factRule, []string) {
	r := factRule{factRuleText: text}
	var wrong []string
	if !idForm.MatchString(text.ID) {
		wrong = append(wrong, "an id is a lower-case word of letters, digits and hyphens")
	}
	switch {
	case !slices.Contains([]string{show, withhold}, text.Effect):
		wrong = append(wrong, fmt.Sprintf("the effect %q is none of show, withhold", text.Effect))
	case text.Effect == withhold && strings.TrimSpace(text.Reason) == "":
		wrong = append(wrong, "a rule that withholds says why: reason is missing")
	}
	program, err := condition(env, text.When)
	if err != nil {
		wrong = append(wrong, "when: "+fault.TextOf(err))
	}
	r.program = program
	return r, wrong
}

// condition compiles what is true or false.
func condition(env *cel.Env, text string) (cel.Program, error) {
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fault.Wrap(fault.Invalid, issues.Err(), "%s", issues.Err())
	}
	if ast.OutputType() != cel.BoolType {
		return nil, fault.New(fault.Invalid, "the condition is not true or false but %s", ast.OutputType())
	}
	program, err := env.Program(ast, cel.CostLimit(ruleCost))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s", err)
	}
	return program, nil
}

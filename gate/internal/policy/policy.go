// Package policy turns an assessed change into a decision: it may go on alone,
// people must approve it, or it is denied.
//
// A policy is a YAML file of rules whose conditions are CEL over the facts of
// the change ([Facts], as the variable "change"). Every rule that holds counts
// and the strictest verdict wins, so that a rule can only ever tighten. A
// change that no rule speaks of is denied, and so is one for which a rule fails
// to evaluate. A policy carries examples; one that breaks its own is refused.
//
// It may have a section about facts: rules over the principal who asks and the
// fact that is asked for ([Policy.Shows]), which show or withhold it.
package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"writ"
	"writ/fault"
	"writ/gate/internal/model"
)

// Facts is what rules may see of a change. None of it is prose.
type Facts struct {
	Class         string   `cel:"class"`
	RiskLevel     string   `cel:"risk_level"`
	Score         int64    `cel:"score"`
	Environment   string   `cel:"environment"`
	Actions       []string `cel:"actions"`
	Systems       []string `cel:"systems"`
	Entities      []string `cel:"entities"`
	Requester     string   `cel:"requester"`
	RequesterKind string   `cel:"requester_kind"`
	ChangeTicket  string   `cel:"change_ticket"`
	PreviewKnown  bool     `cel:"preview_known"`
	Irreversible  bool     `cel:"irreversible"`
	Rollback      bool     `cel:"rollback"` // it undoes an earlier change
}

// The bounds and defaults of what a rule may say.
const (
	DefaultWait  = 24 * time.Hour
	DefaultValid = 5 * time.Minute
	maxWait      = 30 * 24 * time.Hour
	maxValid     = 24 * time.Hour
	maxCount     = 10
	maxRemember  = 30 * 24 * time.Hour
	maxLimit     = 20
	ruleCost     = 10_000 // units of CEL cost; a rule beyond them fails
)

// file is a policy as written.
type file struct {
	Policy              string        `yaml:"policy"`
	IrreversibleAllowed []string      `yaml:"irreversible_allowed"`
	Denials             Denials       `yaml:"denials"`
	Rules               []ruleText    `yaml:"rules"`
	Examples            []exampleText `yaml:"examples"`
	Facts               *factsText    `yaml:"facts"`
}

// Denials says how long a no is remembered, and after how many of them, to one
// requester and one effect, people are no longer asked.
type Denials struct {
	Remember time.Duration `yaml:"remember"` // 24 hours, if left out
	Limit    int64         `yaml:"limit"`    // 3, if left out
}

// withDefaults fills in what was left out, and reports what is wrong.
func (d Denials) withDefaults() (Denials, []string) {
	if d.Remember == 0 {
		d.Remember = 24 * time.Hour
	}
	if d.Limit == 0 {
		d.Limit = 3
	}
	if d.Remember < time.Minute || d.Remember > maxRemember || d.Limit < 1 || d.Limit > maxLimit {
		return d, []string{fmt.Sprintf("denials: remember is 1m to %s, limit 1 to %d", maxRemember, maxLimit)}
	}
	return d, nil
}

type ruleText struct {
	ID     string        `yaml:"id"`
	When   string        `yaml:"when"`
	Effect model.Effect  `yaml:"effect"`
	Count  int64         `yaml:"count"`
	Wait   time.Duration `yaml:"wait"`
	Valid  time.Duration `yaml:"valid"`
	Phrase bool          `yaml:"phrase"`
	Reason string        `yaml:"reason"`
}

type exampleText struct {
	Name   string         `yaml:"name"`
	Change map[string]any `yaml:"change"`
	Expect model.Effect   `yaml:"expect"`
	Count  int64          `yaml:"count"`
}

type rule struct {
	ruleText
	program cel.Program
}

// Policy is a checked policy. It does not change.
type Policy struct {
	name         string
	source       []byte
	digest       writ.Digest
	irreversible []string
	denials      Denials
	rules        []rule
	facts        []factRule // nil without a section about facts
}

// Load reads and checks a policy file.
func Load(path string) (*Policy, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The policy file %s cannot be read. Without a policy everything is denied.", path)
	}
	p, err := Parse(source)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The policy file %s is not valid:\n%s", path, fault.TextOf(err))
	}
	return p, nil
}

// noAlias refuses what stands for something else: it could grow beyond all bounds.
func noAlias(aliases, _ int) error {
	if aliases > 0 {
		return errors.New("aliases are not allowed; write the value out")
	}
	return nil
}

// Parse checks a policy and returns it. Its error names all problems, one a line.
func Parse(source []byte) (*Policy, error) {
	var f file
	loader, err := yaml.NewLoader(bytes.NewReader(source), yaml.WithKnownFields(), yaml.WithPlugin(loaderlimits.New(loaderlimits.AliasFunc(noAlias))))
	if err == nil {
		err = loader.Load(&f)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the YAML is not a policy: %s", err)
	}
	if err := loader.Load(new(any)); !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Invalid, "there is a second document after the policy")
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	p := &Policy{name: f.Policy, source: source, digest: writ.DigestBytes(source), irreversible: f.IrreversibleAllowed}
	var problems []string
	p.denials, problems = f.Denials.withDefaults()
	if f.Policy == "" {
		problems = append(problems, "policy: the policy has no name")
	}
	if len(f.Rules) == 0 {
		problems = append(problems, "rules: there is no rule, so everything would be denied")
	}
	seen := map[string]bool{}
	for i, text := range f.Rules {
		r, wrong := check(env, text)
		if seen[text.ID] {
			wrong = append(wrong, "the id stands twice")
		}
		seen[text.ID] = true
		for _, w := range wrong {
			problems = append(problems, fmt.Sprintf("rules[%d] %s: %s", i, text.ID, w))
		}
		p.rules = append(p.rules, r)
	}
	if len(problems) == 0 {
		problems = p.checkExamples(f.Examples)
	}
	problems = append(problems, p.readFacts(f.Facts)...)
	if len(problems) > 0 {
		return nil, fault.New(fault.Invalid, "%s", strings.Join(problems, "\n"))
	}
	return p, nil
}

func environment() (*cel.Env, error) {
	env, err := cel.NewEnv(
		ext.NativeTypes(reflect.TypeFor[Facts](), ext.ParseStructTags(true)),
		ext.Strings(),
		cel.Variable("change", cel.ObjectType("policy.Facts")),
	)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "The expression language of policies could not be set up.")
	}
	return env, nil
}

var idForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

func check(env *cel.Env, text ruleText) (rule, []string) {
	r := rule{ruleText: text}
	var wrong []string
	if !idForm.MatchString(text.ID) {
		wrong = append(wrong, "an id is a lower-case word of letters, digits and hyphens")
	}
	switch text.Effect {
	case model.Approve:
		r.Count = max(r.Count, 1)
		if r.Wait == 0 {
			r.Wait = DefaultWait
		}
		if r.Valid == 0 {
			r.Valid = DefaultValid
		}
		if text.Count < 0 || text.Count > maxCount || r.Wait < 0 || r.Wait > maxWait || r.Valid < 0 || r.Valid > maxValid {
			wrong = append(wrong, fmt.Sprintf("count is 1 to %d, wait at most %s, valid at most %s", maxCount, maxWait, maxValid))
		}
	case model.Auto, model.Deny:
		if text.Count != 0 || text.Wait != 0 || text.Valid != 0 || text.Phrase {
			wrong = append(wrong, "count, wait, valid and phrase belong to the effect approve")
		}
		if text.Effect == model.Deny && text.Reason == "" {
			wrong = append(wrong, "a rule that denies says why: reason is missing")
		}
	default:
		wrong = append(wrong, fmt.Sprintf("the effect %q is none of auto, approve, deny", text.Effect))
	}
	program, err := condition(env, text.When)
	if err != nil {
		wrong = append(wrong, "when: "+fault.TextOf(err))
	}
	r.program = program
	return r, wrong
}

func (p *Policy) checkExamples(examples []exampleText) []string {
	if len(examples) == 0 {
		return []string{"examples: a policy shows by at least one example what it decides"}
	}
	var problems []string
	for i, e := range examples {
		at := fmt.Sprintf("examples[%d] %s: ", i, e.Name)
		facts, err := factsOf(e.Change)
		if err != nil {
			problems = append(problems, at+err.Error())
			continue
		}
		d := p.Decide(facts, "the target")
		if d.Effect != e.Expect {
			problems = append(problems, fmt.Sprintf("%sexpected %s, the rules say %s %v", at, e.Expect, d.Effect, d.Rules))
		} else if e.Count != 0 && d.Count != e.Count {
			problems = append(problems, fmt.Sprintf("%sexpected %d approvals, the rules say %d", at, e.Count, d.Count))
		}
	}
	return problems
}

// factsOf reads an example's facts by the names that rules use.
func factsOf(given map[string]any) (Facts, error) {
	f := Facts{PreviewKnown: true}
	v := reflect.ValueOf(&f).Elem()
	for name, value := range given {
		i := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(sf reflect.StructField) bool { return sf.Tag.Get("cel") == name })
		if i < 0 {
			return f, fmt.Errorf("a change has no fact named %q", name)
		}
		raw, err := yaml.Marshal(value)
		if err != nil {
			return f, err
		}
		if err := yaml.Unmarshal(raw, v.Field(i).Addr().Interface()); err != nil {
			return f, fmt.Errorf("%s: %w", name, err)
		}
	}
	return f, nil
}

// Source returns the policy as it was written.
func (p *Policy) Source() string { return string(p.source) }

// Name returns the policy's name.
func (p *Policy) Name() string { return p.name }

// Denials says how noes are remembered.
func (p *Policy) Denials() Denials { return p.denials }

// Digest returns the digest of the policy's source.
func (p *Policy) Digest() writ.Digest { return p.digest }

// AllowsIrreversible reports whether the policy names an action that has no
// way back as acceptable all the same, so that it does not count as destructive.
func (p *Policy) AllowsIrreversible(action string) bool {
	return slices.Contains(p.irreversible, action)
}

// Decide returns the strictest verdict of all rules that hold. Target is what a
// typed phrase names.
func (p *Policy) Decide(f Facts, target string) model.Decision {
	d := model.Decision{PolicyDigest: p.digest, Rules: []string{}, Reasons: []string{}}
	for _, r := range p.rules {
		holds, err := r.holds(f)
		switch {
		case err != nil:
			d.Effect = model.Deny
			d.Reasons = append(d.Reasons, "The rule "+r.ID+" could not be evaluated, and what cannot be judged is denied.")
		case !holds:
			continue
		default:
			tighten(&d, r, target)
		}
		d.Rules = append(d.Rules, r.ID)
	}
	if d.Effect == "" {
		d.Effect = model.Deny
		d.Reasons = append(d.Reasons, "No rule of the policy speaks of such a change, and what is not allowed is denied.")
	}
	return d
}

func (r *rule) holds(f Facts) (bool, error) {
	out, _, err := r.program.Eval(map[string]any{"change": f})
	if err != nil {
		return false, err
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("not a truth value")
	}
	return holds, nil
}

// tighten makes a decision at least as strict as a rule.
func tighten(d *model.Decision, r rule, target string) {
	switch r.Effect {
	case model.Deny:
		d.Effect = model.Deny
		d.Reasons = append(d.Reasons, r.Reason)
	case model.Approve:
		if d.Effect != model.Deny {
			d.Effect = model.Approve
		}
		d.Count = max(d.Count, r.Count)
		d.Wait, d.Valid = shorter(d.Wait, r.Wait), shorter(d.Valid, r.Valid)
		if r.Phrase {
			d.Phrase = target
		}
	case model.Auto:
		if d.Effect == "" {
			d.Effect = model.Auto
		}
	}
}

// shorter returns the shorter of two durations; zero is none yet.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

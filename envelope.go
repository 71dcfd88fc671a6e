package writ

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"writ/fault"
)

// The versions of the forms. A reader refuses any other.
const (
	FormatWrit        = "writ/1"
	FormatObservation = "observation/1"
	FormatReceipt     = "receipt/1"
	FormatFinding     = "finding/1"
)

// Class is the kind of effect an action has.
type Class string

// The classes, from the mildest to the strictest.
const (
	ReadOnly       Class = "read_only"
	ReversibleLow  Class = "reversible_low"
	ConfigMutation Class = "config_mutation"
	Destructive    Class = "destructive"
)

// Classes lists the classes from the mildest to the strictest.
func Classes() []Class { return []Class{ReadOnly, ReversibleLow, ConfigMutation, Destructive} }

// Rank orders classes: a stricter one has a higher rank. A word that is no
// class is stricter than all of them.
func (c Class) Rank() int {
	if i := slices.Index(Classes(), c); i >= 0 {
		return i
	}
	return len(Classes())
}

// Stricter returns the stricter of two classes.
func (c Class) Stricter(d Class) Class {
	if d.Rank() > c.Rank() {
		return d
	}
	return c
}

// Level is how risky a change is, all things considered.
type Level string

// The levels, from the lowest to the highest.
const (
	Low       Level = "low"
	Medium    Level = "medium"
	High      Level = "high"
	Forbidden Level = "forbidden"
)

// Levels lists the levels from the lowest to the highest.
func Levels() []Level { return []Level{Low, Medium, High, Forbidden} }

// Rank orders levels. A word that is no level is above all of them.
func (l Level) Rank() int {
	if i := slices.Index(Levels(), l); i >= 0 {
		return i
	}
	return len(Levels())
}

// Higher returns the higher of two levels.
func (l Level) Higher(m Level) Level {
	if m.Rank() > l.Rank() {
		return m
	}
	return l
}

// Principal is who is calling.
type Principal struct {
	Name string        `json:"name"`
	Kind PrincipalKind `json:"kind"`
}

// PrincipalKind says whether a person or a program is calling.
type PrincipalKind string

// The kinds of principals. Only a human approves.
const (
	Human PrincipalKind = "human"
	Agent PrincipalKind = "agent"
)

// Time is a moment in UTC with milliseconds, written 2006-01-02T15:04:05.000Z.
type Time struct{ time.Time }

const timeForm = "2006-01-02T15:04:05.000Z"

// At returns t as a Time.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// String returns the one form a Time is written in.
func (t Time) String() string { return t.UTC().Format(timeForm) }

// MarshalJSON writes the one form; the zero Time is the empty string.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte(`""`), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON reads the one form and the empty string, nothing else.
func (t *Time) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "" {
		*t = Time{}
		return nil
	}
	parsed, err := time.Parse(timeForm, text)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "A time must have the form %s.", timeForm)
	}
	*t = Time{parsed.UTC()}
	return nil
}

// OnFailure says what happens to finished steps when a later one fails.
type OnFailure string

// What may happen. Nothing is undone that nobody approved.
const (
	Stop     OnFailure = "stop"
	Rollback OnFailure = "rollback"
)

// Envelope is everything that was decided on. Its digest is what an approver approves.
type Envelope struct {
	ChangeID      string    `json:"change_id"`
	RequestDigest Digest    `json:"request_digest"` // the request with its sentences, which stay in the gate
	RequestedBy   Principal `json:"requested_by"`
	Environment   string    `json:"environment"`
	Class         Class     `json:"class"` // the strictest of the steps, or what assessment raised it to
	RiskLevel     Level     `json:"risk_level"`
	OnFailure     OnFailure `json:"on_failure"`
	RollbackOf    string    `json:"rollback_of"` // the change that this one undoes, or ""
	PolicyDigest  Digest    `json:"policy_digest"`
	PreviewDigest Digest    `json:"preview_digest"` // of the observations that were shown
	Steps         []Step    `json:"steps"`          // in the order in which they run
}

// Digest returns the digest of the envelope.
func (e *Envelope) Digest() (Digest, error) { return DigestOf(e) }

// Step is one call of an action with everything about it that was fixed before approval.
type Step struct {
	ID             string   `json:"id"`
	Needs          []string `json:"needs"` // ids of steps that must be done before
	Action         string   `json:"action"`
	ActionDigest   Digest   `json:"action_digest"`
	System         string   `json:"system"` // a name in executor.yaml, never an address
	Params         Object   `json:"params"`
	Resolved       Object   `json:"resolved"` // values the executor found and the approver saw
	Entity         string   `json:"entity"`
	Touches        []string `json:"touches"`
	Class          Class    `json:"class"`
	BackupRequired bool     `json:"backup_required"`
	Fingerprint    string   `json:"fingerprint"` // of the state the preview was made from; "" if nothing is observed
	Rollback       *Call    `json:"rollback"`    // the way back as previewed; null if there is none
}

// InputHash returns the digest of what the step is given: params and resolved values.
func (s *Step) InputHash() (Digest, error) {
	return DigestOf(Object{"params": s.Params, "resolved": s.Resolved})
}

// Entities returns the entity and the touched ones, without doubles: what is locked.
func (s *Step) Entities() []string {
	all := append([]string{s.Entity}, s.Touches...)
	slices.Sort(all)
	return slices.Compact(all)
}

// StandsOn reports whether a step of a plan builds on one before it: it needs it,
// or acts on what that one writes to, or does so through a step between. What
// another step still stands on is not undone.
func StandsOn(steps []Step, later, earlier string) bool {
	on := map[string]bool{later: true}
	for i := len(steps) - 1; i >= 0; i-- {
		s := &steps[i]
		for j := i + 1; j < len(steps) && !on[s.ID]; j++ {
			on[s.ID] = on[steps[j].ID] && steps[j].restsOn(s)
		}
	}
	return later != earlier && on[earlier]
}

// restsOn reports whether a step builds directly on one before it.
func (s *Step) restsOn(before *Step) bool {
	if slices.Contains(s.Needs, before.ID) {
		return true
	}
	mine := s.Entities()
	return before.Class != ReadOnly && slices.ContainsFunc(before.Entities(), func(e string) bool { return slices.Contains(mine, e) })
}

// Call names an action and the params it is called with.
type Call struct {
	Action string `json:"action"`
	System string `json:"system"`
	Params Object `json:"params"`
}

// Check reports the first thing that is wrong with the shape of an envelope.
func (e *Envelope) Check() error {
	if len(e.Steps) == 0 || len(e.Steps) > MaxSteps {
		return invalid("a change has 1 to %d steps, this one has %d", MaxSteps, len(e.Steps))
	}
	if e.OnFailure != Stop && e.OnFailure != Rollback {
		return invalid("on_failure is %q, it must be stop or rollback", e.OnFailure)
	}
	seen := map[string]bool{}
	for i := range e.Steps {
		s := &e.Steps[i]
		if s.ID == "" || seen[s.ID] {
			return invalid("the step id %q is empty or stands twice", s.ID)
		}
		for _, need := range s.Needs {
			if !seen[need] {
				return invalid("step %q needs %q, which does not run before it", s.ID, need)
			}
		}
		if s.Action == "" || s.System == "" || s.Entity == "" || !s.ActionDigest.Valid() {
			return invalid("step %q lacks its action, system, entity or action digest", s.ID)
		}
		if s.Class.Rank() > e.Class.Rank() {
			return invalid("step %q is %s, the envelope says only %s", s.ID, s.Class, e.Class)
		}
		seen[s.ID] = true
	}
	return nil
}

// MaxSteps bounds the number of steps of one change.
const MaxSteps = 64

// String shows a call as action and canonical params, for logs and terminals.
func (c *Call) String() string {
	b, err := Canonical(c.Params)
	if err != nil {
		return c.Action
	}
	return fmt.Sprintf("%s %s", c.Action, b)
}

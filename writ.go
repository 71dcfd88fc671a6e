package writ

// Purpose says what a writ lets the executor do.
type Purpose string

// The purposes. An observe writ reads, and is answered with observations; an
// execute writ is spent on being admitted, and is answered with receipts. A probe
// writ reads what became of an earlier run, and is answered with findings. A raise
// writ has no steps: the executor takes note of its epoch. A halt writ has none
// either: the executor starts no further step of its run, nor the run itself.
const (
	Observe Purpose = "observe"
	Execute Purpose = "execute"
	Probe   Purpose = "probe"
	Raise   Purpose = "raise"
	Halt    Purpose = "halt"
)

// Writ is the only thing that moves the executor: an envelope, the approvals of
// exactly that envelope, and the limits within which it is good for one use.
type Writ struct {
	Format    string     `json:"format"` // FormatWrit
	Purpose   Purpose    `json:"purpose"`
	Run       string     `json:"run"`      // run_…, chosen by the gate; of a probe or a halt, the run that it is about
	Executor  string     `json:"executor"` // the one executor that may use it
	Nonce     string     `json:"nonce"`    // spent for ever on admission
	Epoch     int64      `json:"epoch"`    // an executor refuses an epoch lower than one it has seen
	IssuedAt  Time       `json:"issued_at"`
	ExpiresAt Time       `json:"expires_at"` // no step starts after it
	Fences    []Fence    `json:"fences"`     // one for each entity of each step, sorted by entity
	Approvals []Approval `json:"approvals"`
	Envelope  Envelope   `json:"envelope"`
}

// Fence is the number of a lock. Whoever holds an entity later has a higher one.
type Fence struct {
	Entity string `json:"entity"`
	Number int64  `json:"number"`
}

// Approval is one human's decision for one envelope.
type Approval struct {
	ID             string    `json:"approval_id"`
	ApprovedBy     Principal `json:"approved_by"`
	ApprovedAt     Time      `json:"approved_at"`
	ExpiresAt      Time      `json:"expires_at"`
	EnvelopeDigest Digest    `json:"envelope_digest"`
	ShownDigest    Digest    `json:"shown_digest"` // of the text the approver saw
	RiskLevel      Level     `json:"risk_level"`   // the highest level the approver agreed to
	Scope          []Scope   `json:"scope"`        // one for each step, in their order
}

// Scope repeats, in an approval, what it is good for. The envelope's digest
// covers all of it; the scope lets a refusal say what differs.
type Scope struct {
	Step         string `json:"step"`
	ActionType   string `json:"action_type"`
	TargetSystem string `json:"target_system"`
	Entity       string `json:"entity"`
	InputHash    Digest `json:"input_hash"`
}

// ScopeOf returns the scope of an envelope's steps.
func ScopeOf(e *Envelope) ([]Scope, error) {
	scope := make([]Scope, len(e.Steps))
	for i := range e.Steps {
		s := &e.Steps[i]
		hash, err := s.InputHash()
		if err != nil {
			return nil, err
		}
		scope[i] = Scope{Step: s.ID, ActionType: s.Action, TargetSystem: s.System, Entity: s.Entity, InputHash: hash}
	}
	return scope, nil
}

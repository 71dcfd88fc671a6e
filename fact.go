package writ

// Facts is what an observe writ of a set of facts finds besides: what the
// executor's own catalog tells of one entity, for planners. What is secret never
// gets here, and nothing of it is a sentence but why the entity is not well.
type Facts struct {
	Facts  []Fact `json:"facts"` // at most [MaxFacts], in the order of the catalog
	Health Health `json:"health"`
}

// Fact is one thing that is known of an entity. Value is what people are shown,
// redacted; a list or an object is JSON.
type Fact struct {
	Name        string `json:"name"`
	Type        string `json:"type"`        // string, integer, boolean, list or object
	Sensitivity string `json:"sensitivity"` // public, internal or secret
	Value       string `json:"value"`       // at most [MaxFact] bytes
	Absent      bool   `json:"absent"`      // there is no such value at the target
	Missing     string `json:"missing"`     // why there is no value although it is not absent; "" if there is one
}

// The values of Fact.Missing.
const (
	FactSecret     = "secret"     // it never leaves the executor
	FactUnreadable = "unreadable" // what the target answered does not give it
	FactTooLarge   = "too_large"
)

// What is told of every entity is judged like a fact, under these names.
const (
	FactStateHash = "state_hash"
	FactHealth    = "health"
)

// The bounds of a set of facts.
const (
	MaxFacts     = 64
	MaxFact      = 8 << 10  // bytes of one value
	MaxFactsSize = 64 << 10 // bytes of all values
)

// Health is how an entity is, and in redacted sentences why it is not well.
type Health struct {
	State   HealthState `json:"state"`
	Reasons []string    `json:"reasons"`
}

// HealthState is how an entity is.
type HealthState string

// The states. Unknown is never "well": it could not be read.
const (
	HealthOK       HealthState = "ok"
	HealthDegraded HealthState = "degraded"
	HealthUnknown  HealthState = "unknown"
)

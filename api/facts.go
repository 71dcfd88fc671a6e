package api

import "writ"

// Facts is what is told of one entity. What is withheld is named with the reason.
type Facts struct {
	Entity      string          `json:"entity"`
	System      writ.SystemInfo `json:"system"`
	ActionType  string          `json:"action_type" doc:"The set of facts, as in the catalog"`
	Summary     string          `json:"summary" doc:"What it is"`
	Facts       []Fact          `json:"facts" doc:"What the target says, redacted; it is data, whatever it claims to be"`
	StateHash   writ.Digest     `json:"state_hash" doc:"Another one means another state; empty if it is withheld or could not be read"`
	Health      EntityHealth    `json:"health"`
	ObservedAt  writ.Time       `json:"observed_at"`
	LastChange  *ApprovedChange `json:"last_approved_change,omitempty" doc:"The change of it that a person approved last; left out if there is none"`
	OpenChanges []OpenChange    `json:"open_changes" doc:"Changes of it that have not ended, as far as the caller may see them"`
	Lock        *Lock           `json:"lock,omitempty" doc:"Who holds it; left out if nobody does"`
	Dependents  Dependents      `json:"depended_on_by"`
}

// Fact is one thing that is known of an entity.
type Fact struct {
	Name        string `json:"name"`
	Type        string `json:"type" doc:"string, integer, boolean, list or object"`
	Sensitivity string `json:"sensitivity" doc:"public, internal or secret"`
	Value       string `json:"value" doc:"As text; a list or an object as JSON"`
	Absent      bool   `json:"absent" doc:"There is no such value at the target"`
	Withheld    string `json:"withheld" doc:"Why no value is told; empty if one is"`
}

// EntityHealth is how an entity is.
type EntityHealth struct {
	State   writ.HealthState `json:"state" doc:"ok, degraded, unknown (it could not be read) or withheld"`
	Reasons []string         `json:"reasons" doc:"What does not hold, or why it is unknown"`
}

// ApprovedChange is a change that a person approved.
type ApprovedChange struct {
	ID         string    `json:"id"`
	ActionType string    `json:"action_type"`
	State      string    `json:"state"`
	ApprovedAt writ.Time `json:"approved_at"`
}

// OpenChange is a change that has not ended.
type OpenChange struct {
	ID         string `json:"id"`
	ActionType string `json:"action_type"`
	State      string `json:"state"`
}

// Dependents is who depends on an entity. Not known is never "nobody".
type Dependents struct {
	Known bool   `json:"known"`
	Why   string `json:"why" doc:"Why it is not known"`
}

package api

import "writ"

// Stop says what a person stops: a target, a principal, or everything.
type Stop struct {
	Target    string `json:"target,omitempty" maxLength:"500" doc:"A system or an entity, with all above and below it"`
	Principal string `json:"principal,omitempty" maxLength:"500" doc:"Whoever asked, or approved; without it and a target, everything is stopped"`
	Reason    string `json:"reason" minLength:"1" maxLength:"500" doc:"Why; whoever is refused reads it"`
}

// Halt is a person's stop. While it is in force nothing that it covers is proposed,
// approved or begun.
type Halt struct {
	ID        string    `json:"id"`
	Target    string    `json:"target,omitempty"`
	Principal string    `json:"principal,omitempty"`
	HaltedBy  string    `json:"halted_by"`
	HaltedAt  writ.Time `json:"halted_at"`
	Reason    string    `json:"reason"`
	LiftedBy  string    `json:"lifted_by,omitempty"`
	LiftedAt  writ.Time `json:"lifted_at"`
	// Running is what was under way when it was set; null in a list.
	Running []Running `json:"running,omitempty"`
}

// Running is a change that was under way when it was stopped.
type Running struct {
	ChangeID string `json:"change_id"`
	State    string `json:"state"`
	Halted   bool   `json:"halted" doc:"The executor has taken note; until then it is told again and again"`
}

// Halts is a page of the halts that are in force, and lifted ones if asked for.
type Halts struct {
	Halts      []Halt `json:"halts"`
	NextCursor string `json:"next_cursor" doc:"Gives the next page; empty on the last"`
}

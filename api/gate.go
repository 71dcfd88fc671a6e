package api

import (
	"encoding/json"

	"writ"
	"writ/fault"
)

// Policy is the policy that decides.
type Policy struct {
	Digest writ.Digest `json:"digest"`
	Source string      `json:"source" doc:"The file, as it was loaded"`
}

// Action is one action of the catalog.
type Action struct {
	Name         string          `json:"name"`
	Summary      string          `json:"summary"`
	System       string          `json:"system" doc:"The kind of system it acts on"`
	Class        writ.Class      `json:"class"`
	Forbidden    string          `json:"forbidden" doc:"Why it never runs; empty if it may"`
	Irreversible string          `json:"irreversible" doc:"Why there is no way back; empty if there is"`
	FactsOf      string          `json:"facts_of" doc:"If it is a set of facts: the entities it tells of; such an action is asked for with get_facts, never proposed"`
	Digest       writ.Digest     `json:"digest"`
	Params       json.RawMessage `json:"params,omitempty" doc:"JSON Schema; only with one action"`
	Source       string          `json:"source,omitempty" doc:"The definition; only with one action"`
}

// Actions is a page of the catalog.
type Actions struct {
	Actions    []Action `json:"actions"`
	NextCursor string   `json:"next_cursor" doc:"Gives the next page; empty on the last"`
}

// Systems is a page of what the executor can reach.
type Systems struct {
	Systems    []writ.SystemInfo `json:"systems"`
	NextCursor string            `json:"next_cursor" doc:"Gives the next page; empty on the last"`
}

// Events is a page of audit events, each exactly as in the audit.
type Events struct {
	Events     []json.RawMessage `json:"events"`
	NextCursor string            `json:"next_cursor" doc:"Gives the next page; empty on the last"`
}

// Checkpoint stands for all audit events so far.
type Checkpoint struct {
	Checkpoint string `json:"checkpoint" doc:"A signed note; kept elsewhere, it shows every later change of the events"`
	Origin     string `json:"origin"`
	Events     int64  `json:"events" doc:"How many it covers"`
}

// Evidence is all that proves what became of a change.
type Evidence struct {
	Files []EvidenceFile `json:"files"`
}

// EvidenceFile is one file of it.
type EvidenceFile struct {
	Name    string `json:"name"`
	Content []byte `json:"content"`
}

// Lock is an exclusive hold on an entity.
type Lock struct {
	Entity   string    `json:"entity"`
	Kind     string    `json:"kind"`
	State    string    `json:"state"`
	Fence    int64     `json:"fence"`
	ChangeID string    `json:"change_id"`
	RunID    string    `json:"run_id"`
	TakenAt  writ.Time `json:"taken_at"`
	EndedAt  writ.Time `json:"ended_at"`
}

// Locks is a page of the locks that hold, and released ones if asked for.
type Locks struct {
	Locks      []Lock `json:"locks"`
	NextCursor string `json:"next_cursor" doc:"Gives the next page; empty on the last"`
}

// Health says whether everything is as it should be.
type Health struct {
	OK      bool          `json:"ok" doc:"Every check is"`
	Version string        `json:"version" doc:"Of the gate"`
	Checks  []HealthCheck `json:"checks"`
	Counts  HealthCounts  `json:"counts"`
}

// HealthCheck is one thing that must hold, and how to mend it.
type HealthCheck struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Fix  string `json:"fix" doc:"What to do; empty if the check is ok"`
}

// HealthCounts counts what an operator may have to look at.
type HealthCounts struct {
	Waiting  int64 `json:"awaiting_approval"`
	Running  int64 `json:"running"`
	Orphaned int64 `json:"orphaned_locks"`
}

// Problem is every answer that is not a success, as application/problem+json.
// It never repeats a value that was sent.
type Problem struct {
	Type   string     `json:"type"`
	Title  string     `json:"title"`
	Status int        `json:"status"`
	Code   fault.Code `json:"code"`
	Reason string     `json:"reason" doc:"Narrows the code, in snake_case; may be empty"`
	Detail string     `json:"detail" doc:"A sentence that says what to do"`
}

package writ

import "writ/fault"

// The two processes speak HTTP over a Unix socket of the executor. There are
// four calls, and none of them acts without a writ:
//
//	GET  /v1/hello             Hello: who the executor is; nothing is read from a target
//	POST /v1/writs             a sealed writ. Observe: 200 and Observations.
//	                           Probe: 200 and Findings. Raise, Halt: 200 and Findings, none.
//	                           Execute: 202 and RunState, once admission is durable.
//	GET  /v1/runs/{run}        RunState with the receipts so far
//	     ?after=N&wait_ms=M    only receipts with a higher sequence; waits for one
//	GET  /v1/runs?after=RUN    Admissions: what was ever admitted, from a run on
//
// Every other answer is a Refusal with the HTTP status of its code. Sealed texts
// travel in base64, so that no encoder on the way touches their bytes.
const (
	PathHello = "/v1/hello"
	PathWrits = "/v1/writs"
	PathRuns  = "/v1/runs/"
	PathSpent = "/v1/runs"
)

// Hello is what the executor says of itself.
type Hello struct {
	Executor      string       `json:"executor"`
	KeyID         string       `json:"key_id"`       // of the key it signs with
	GateKeyIDs    []string     `json:"gate_key_ids"` // of the keys whose writs it takes
	CatalogDigest Digest       `json:"catalog_digest"`
	Epoch         int64        `json:"epoch"`  // the highest it has seen
	Locked        bool         `json:"locked"` // the vault is locked: everything is refused
	Last          LastRun      `json:"last"`   // that sent something
	Systems       []SystemInfo `json:"systems"`
	Refuses       *Refusal     `json:"refuses"` // why every writ would be refused now; null if there is no such reason
	Former        []FormerKey  `json:"former"`  // the keys that it signed with before, oldest first
}

// FormerKey is a key that signs no more. It signed what names the next one, or the
// present one: the first line of a segment of the executor's audit, see package ledger.
type FormerKey struct {
	KeyID string `json:"key_id"`
	Seam  string `json:"seam"`
}

// SystemInfo is what the gate may know of a system: no address, no secret.
type SystemInfo struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	Environment string `json:"environment"`
}

// LastRun names the run that sent something to a target last. A gate that does
// not know it has forgotten what it did.
type LastRun struct {
	Run      string `json:"run"` // "" if there is none
	ChangeID string `json:"change_id"`
	KeyID    string `json:"key_id"` // of the gate that sealed it
}

// Admissions is a page of the execute writs that were ever admitted, oldest
// first. It ends with an empty page.
type Admissions struct {
	Admitted []Admitted `json:"admitted"`
}

// Admitted is one execute writ that is spent.
type Admitted struct {
	Run        string `json:"run"`
	AdmittedAt Time   `json:"admitted_at"`
	Finished   bool   `json:"finished"`
	Sealed     []byte `json:"sealed"`
}

// Findings answers a probe writ: one sealed Finding for each step.
type Findings struct {
	Findings [][]byte `json:"findings"`
}

// Observations answers an observe writ: one sealed Observation for each step.
type Observations struct {
	Observations [][]byte `json:"observations"`
}

// RunState is how far a run is.
type RunState struct {
	Run      string   `json:"run"`
	Finished bool     `json:"finished"`
	Receipts [][]byte `json:"receipts"` // sealed, by sequence
}

// Refusal says why the executor did not do what it was asked.
type Refusal struct {
	Code   fault.Code `json:"code"`
	Reason string     `json:"reason"` // which check refused, in snake_case
	Text   string     `json:"text"`
}

package api

import "strings"

// Operation is one thing that can be asked of the gate, with its route. Who may
// ask is the gate's business, and stands in its table of operations.
type Operation struct {
	Name    string // noun.verb
	Method  string
	Path    string // with {id} or {name} where one is named
	Summary string
}

// The names of the operations.
const (
	PolicyGet      = "policy.get"
	ActionList     = "action.list"
	ActionGet      = "action.get"
	SystemList     = "system.list"
	FactsGet       = "facts.get"
	ChangePropose  = "change.propose"
	ChangeList     = "change.list"
	ChangeGet      = "change.get"
	ChangeWait     = "change.wait"
	ChangeReview   = "change.review"
	ChangeApprove  = "change.approve"
	ChangeReject   = "change.reject"
	ChangeLift     = "change.lift"
	ChangeCancel   = "change.cancel"
	ChangeExecute  = "change.execute"
	ChangeRollback = "change.rollback"
	ChangeProbe    = "change.probe"
	ChangeSettle   = "change.reconcile"
	ChangeArtifact = "change.artifact"
	ChangeEvidence = "change.evidence"
	ChangeEvents   = "change.events"
	EventList      = "event.list"
	CheckpointGet  = "checkpoint.get"
	LockList       = "lock.list"
	HaltList       = "halt.list"
	HaltSet        = "halt.set"
	HaltLift       = "halt.lift"
	HealthGet      = "health.get"
)

// Operations lists every operation, each once.
func Operations() []Operation {
	return []Operation{
		{PolicyGet, "GET", "/v1/policy", "The policy that decides, as it was loaded"},
		{ActionList, "GET", "/v1/actions", "All actions of the catalog"},
		{ActionGet, "GET", "/v1/actions/{name}", "One action, with the schema of its params"},
		{SystemList, "GET", "/v1/systems", "The systems that the executor can reach"},
		{FactsGet, "GET", "/v1/facts", "What is known of one thing: its facts, its state and health, and the last approved change of it"},
		{ChangePropose, "POST", "/v1/changes", "Ask for a change; nothing happens but planning and reading"},
		{ChangeList, "GET", "/v1/changes", "Changes, newest first"},
		{ChangeGet, "GET", "/v1/changes/{id}", "One change"},
		{ChangeWait, "GET", "/v1/changes/{id}/wait", "One change, as soon as its state differs from now"},
		{ChangeReview, "GET", "/v1/changes/{id}/review", "What an approver must read before deciding"},
		{ChangeApprove, "POST", "/v1/changes/{id}/approvals", "Approve exactly what was shown"},
		{ChangeReject, "POST", "/v1/changes/{id}/rejection", "Say no"},
		{ChangeLift, "POST", "/v1/changes/{id}/lift", "Let what was rejected be asked again"},
		{ChangeCancel, "POST", "/v1/changes/{id}/cancellation", "Withdraw a change that was not begun"},
		{ChangeExecute, "POST", "/v1/changes/{id}/execution", "Carry out an approved change that was held up"},
		{ChangeRollback, "POST", "/v1/changes/{id}/rollback", "Propose the change that undoes this one"},
		{ChangeProbe, "POST", "/v1/changes/{id}/probe", "Look at a target that a change left in doubt; nothing is written and nothing decided"},
		{ChangeSettle, "POST", "/v1/changes/{id}/reconciliation", "Decide on exactly what was found of a change in doubt"},
		{ChangeArtifact, "GET", "/v1/changes/{id}/artifact", "The account of one change, in eleven sections"},
		{ChangeEvidence, "GET", "/v1/changes/{id}/evidence", "All that proves what became of one change, to be verified elsewhere"},
		{ChangeEvents, "GET", "/v1/changes/{id}/events", "The audit events of one change, oldest first; as text/event-stream, live"},
		{EventList, "GET", "/v1/events", "Audit events, oldest first"},
		{CheckpointGet, "GET", "/v1/checkpoint", "A signed checkpoint of all audit events; keep it elsewhere"},
		{LockList, "GET", "/v1/locks", "Who holds which entity"},
		{HaltList, "GET", "/v1/halts", "What people have stopped"},
		{HaltSet, "POST", "/v1/halts", "Stop everything, a target or a principal, at once"},
		{HaltLift, "POST", "/v1/halts/{id}/lift", "Let go on what was stopped; what was under way stays stopped"},
		{HealthGet, "GET", "/v1/health", "Whether everything is as it should be"},
	}
}

// OperationOf returns the operation with a name. Only the names above exist.
func OperationOf(name string) (Operation, bool) {
	for _, o := range Operations() {
		if o.Name == name {
			return o, true
		}
	}
	return Operation{}, false
}

// Parameter returns the name in the braces of a path, or "".
func (o Operation) Parameter() string {
	_, rest, _ := strings.Cut(o.Path, "{")
	name, _, _ := strings.Cut(rest, "}")
	return name
}

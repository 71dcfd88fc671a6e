package api

import "writ"

// The names of the operations under the paths of the system that came before,
// with its field names. They do what the others do, and nothing else.
const (
	ControlledPolicy  = "controlled_execution.policy"
	ControlledExecute = "controlled_execution.execute"
	StatePolicy       = "state.policy"
	StateDriftCheck   = "state.drift_check"
)

// OriginalOperations lists them.
func OriginalOperations() []Operation {
	return []Operation{
		{ControlledPolicy, "GET", "/controlled-execution/policy", "What may be carried out, and what an approval must say"},
		{ControlledExecute, "POST", "/controlled-execution/execute", "Carry out what was approved; without an approval, ask for one"},
		{StatePolicy, "GET", "/state/policy", "What is known of the state of targets"},
		{StateDriftCheck, "GET", "/state/drift-check", "Whether targets are still as they were left"},
	}
}

// ControlledCall asks for one action.
type ControlledCall struct {
	ApprovalID      string      `json:"approval_id,omitempty" maxLength:"64" doc:"Of the approval, or of the change that was approved; left out, the change is proposed"`
	RequestedBy     string      `json:"requested_by,omitempty" maxLength:"100" doc:"Must be the caller"`
	ApprovedBy      string      `json:"approved_by,omitempty" maxLength:"100" doc:"Must be one who approved"`
	ChangeTicket    string      `json:"change_ticket,omitempty" maxLength:"100"`
	RiskLevel       writ.Level  `json:"risk_level,omitempty" enum:"low,medium,high" doc:"Not above the approved one; in a proposal it can only make the assessment stricter"`
	TargetSystem    string      `json:"target_system" minLength:"1" maxLength:"64"`
	ActionType      string      `json:"action_type" minLength:"1" maxLength:"128"`
	RequestedAction string      `json:"requested_action" minLength:"1" maxLength:"500" doc:"In words; must be the approved ones exactly"`
	Params          writ.Object `json:"params,omitempty" doc:"Of the action; must be the approved ones exactly"`
	BackupRequired  bool        `json:"backup_required,omitempty" doc:"Must be true for whatever writes"`
	RollbackPlan    string      `json:"rollback_plan,omitempty" maxLength:"4000"`
}

// ControlledResult is what came of it.
type ControlledResult struct {
	ChangeID           string      `json:"change_id"`
	RunID              string      `json:"run_id"`
	ApprovalID         string      `json:"approval_id" doc:"Empty if policy lets it run alone"`
	RequestedBy        string      `json:"requested_by"`
	ApprovedBy         string      `json:"approved_by"`
	ChangeTicket       string      `json:"change_ticket"`
	RiskLevel          writ.Level  `json:"risk_level"`
	TargetSystem       string      `json:"target_system"`
	ActionType         string      `json:"action_type"`
	RequestedAction    string      `json:"requested_action"`
	BackupRequired     bool        `json:"backup_required"`
	BackupReference    string      `json:"backup_reference"`
	BackupStatus       string      `json:"backup_status"`
	VerificationResult string      `json:"verification_result" doc:"passed, failed, or empty if nothing was verified"`
	RollbackPlan       string      `json:"rollback_plan"`
	RollbackReference  string      `json:"rollback_reference"`
	ExpiresAt          writ.Time   `json:"expires_at"`
	ExecutionMode      string      `json:"execution_mode" enum:"read_only,scoped_write"`
	ExecutionStatus    string      `json:"execution_status" doc:"The state of the change"`
	Changed            bool        `json:"live_infrastructure_changed"`
	InputHash          writ.Digest `json:"input_hash"`
	Timestamp          writ.Time   `json:"timestamp"`
}

// ControlledRules is what may be carried out, and what an approval must say.
type ControlledRules struct {
	PolicyDigest    writ.Digest        `json:"policy_digest"`
	Fields          []string           `json:"required_fields"`
	RiskLevels      []writ.Level       `json:"risk_levels"`
	Actions         []ControlledAction `json:"actions"`
	ForbiddenAction []string           `json:"forbidden_actions"`
}

// ControlledAction is one action that is not forbidden.
type ControlledAction struct {
	ActionType     string     `json:"action_type"`
	TargetSystem   string     `json:"target_system" doc:"The kind of system"`
	Class          writ.Class `json:"class"`
	BackupRequired bool       `json:"backup_required"`
}

// StateRules says what is known of the state of targets.
type StateRules struct {
	ReadOnly  bool   `json:"read_only"`
	Available bool   `json:"drift_check_available"`
	Text      string `json:"text"`
}

// Drift says whether targets are still as they were left.
type Drift struct {
	Checked bool   `json:"checked" doc:"False: nobody looked; never: nothing drifted"`
	Text    string `json:"text"`
}

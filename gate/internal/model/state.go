package model

import (
	"slices"

	"writ"
)

// State is where a change is in its life.
type State string

// The states of a change. DESIGN: proposed → planned → awaiting_approval →
// approved → claimed → executing → verifying → an end.
const (
	Proposed         State = "proposed"
	Planned          State = "planned"
	Denied           State = "denied"
	AwaitingApproval State = "awaiting_approval"
	Approved         State = "approved"
	Rejected         State = "rejected"
	Expired          State = "expired"
	Cancelled        State = "cancelled"
	Claimed          State = "claimed"
	Executing        State = "executing"
	Verifying        State = "verifying"
	Done             State = "done"
	Failed           State = "failed"
	Unverified       State = "unverified"
	Unknown          State = "unknown"
	RollingBack      State = "rolling_back"
	RolledBack       State = "rolled_back"
	RollbackFailed   State = "rollback_failed"
)

// moves is the one table of allowed moves. A state without a row is an end.
var moves = map[State][]State{
	Proposed:         {Planned, Denied, Failed, Cancelled},
	Planned:          {Denied, AwaitingApproval, Approved, Cancelled},
	AwaitingApproval: {Approved, Rejected, Expired, Cancelled},
	Approved:         {Claimed, Expired, Cancelled},
	Claimed:          {Executing, Failed},
	Executing:        {Verifying},
	Verifying:        {Done, Failed, Unverified, Unknown, RollingBack},
	RollingBack:      {RolledBack, RollbackFailed},
}

// reconciled is the one table of what people may make of an end that left a
// target in doubt. Nothing but a [Reconciliation] leaves it, and never by itself.
var reconciled = map[State][]State{
	Unknown:        {Done, Failed, Unverified, RolledBack},
	Unverified:     {Done, Failed, RolledBack},
	RollbackFailed: {Done, Failed, Unverified, RolledBack},
}

// States lists all states.
func States() []State {
	return []State{
		Proposed, Planned, Denied, AwaitingApproval, Approved, Rejected, Expired, Cancelled, Claimed,
		Executing, Verifying, Done, Failed, Unverified, Unknown, RollingBack, RolledBack, RollbackFailed,
	}
}

// Ended reports whether the state is an end: it is never left, except that
// people reconcile what is in doubt.
func (s State) Ended() bool { return len(moves[s]) == 0 }

// May reports whether a change in state s may move to state to.
func (s State) May(to State) bool { return slices.Contains(moves[s], to) }

// MayMove reports whether a change may be stored in its state when it was in
// state from. Only with what people decided, or with what a recovery found, does
// it leave an end.
func (c *Change) MayMove(from State) bool {
	switch {
	case from.May(c.State):
		return true
	case c.Reconciliation != nil && slices.Contains(reconciled[from], c.State):
		return true
	}
	return c.Recovery != nil && from != c.State && (c.State == Unknown || c.State == Failed)
}

// StateOf returns the end that a run's last outcomes add up to. Outcomes holds
// the newest outcome of each step. The gravest wins.
func StateOf(outcomes []writ.Outcome) State {
	has := func(o writ.Outcome) bool { return slices.Contains(outcomes, o) }
	switch {
	case len(outcomes) == 0, has(writ.Unknown):
		return Unknown
	case has(writ.RollbackFailed):
		return RollbackFailed
	case has(writ.RolledBack) && !has(writ.Done) && !has(writ.Unverified):
		return RolledBack
	case has(writ.Unverified):
		return Unverified
	case has(writ.Failed), has(writ.NotExecuted), has(writ.RolledBack):
		return Failed
	case slices.ContainsFunc(outcomes, func(o writ.Outcome) bool { return o != writ.Done }):
		return Unknown
	}
	return Done
}

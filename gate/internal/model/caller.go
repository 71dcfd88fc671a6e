package model

import (
	"slices"

	"writ"
)

// Role is a right that a principal holds.
type Role string

// The roles. An agent holds neither approver nor admin.
const (
	Requester Role = "requester" // proposes, and sees what it proposed
	Approver  Role = "approver"  // decides, and sees everything
	Operator  Role = "operator"  // proposes rollbacks, executes what is approved, sees everything
	Auditor   Role = "auditor"   // sees everything
	Admin     Role = "admin"     // all of these, except deciding on its own requests
)

// Roles lists all roles.
func Roles() []Role { return []Role{Requester, Approver, Operator, Auditor, Admin} }

// Caller is a principal that has proved who it is.
type Caller struct {
	writ.Principal
	Roles   []Role
	Session *Session // what its program says of itself; nil is nothing
	// Tools is the digest of the list of tools that its model was shown; "" if it
	// asks in another way.
	Tools writ.Digest
}

// Has reports whether the caller holds the role, or is an admin.
func (c Caller) Has(r Role) bool {
	return slices.Contains(c.Roles, r) || slices.Contains(c.Roles, Admin)
}

// SeesAll reports whether the caller sees what others proposed.
func (c Caller) SeesAll() bool { return c.Has(Approver) || c.Has(Operator) || c.Has(Auditor) }

// User returns the caller as events name it.
func (c Caller) User() string { return User(c.Principal) }

// User returns a principal as events name it, e.g. "agent:opencode".
func User(p writ.Principal) string { return string(p.Kind) + ":" + p.Name }

// Writ is the gate itself, as events name it.
const Writ = "writ"

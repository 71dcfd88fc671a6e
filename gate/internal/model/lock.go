package model

import (
	"slices"

	"writ"
)

// Lock is an exclusive hold on an entity. It never expires by age.
type Lock struct {
	Entity   string    `json:"entity"`
	Kind     LockKind  `json:"kind"`
	State    LockState `json:"state"`
	Fence    int64     `json:"fence"` // higher for each later holder of the entity
	ChangeID string    `json:"change_id"`
	RunID    string    `json:"run_id"`
	TakenAt  writ.Time `json:"taken_at"`
	EndedAt  writ.Time `json:"ended_at"`
}

// LockKind says what the holder does to the entity.
type LockKind string

// The kinds of locks.
const (
	LockWrite       LockKind = "write"
	LockDestructive LockKind = "destructive"
)

// LockState says whether a lock still holds.
type LockState string

// The states of a lock. An orphaned lock outlived its run, because the target
// is not known to be as approved; it blocks until a recovery releases it.
const (
	LockActive   LockState = "active"
	LockOrphaned LockState = "orphaned"
	LockReleased LockState = "released"
)

// LockKindOf returns the kind of lock that a class of change takes.
func LockKindOf(c writ.Class) LockKind {
	if c.Rank() >= writ.Destructive.Rank() {
		return LockDestructive
	}
	return LockWrite
}

func sortedSet(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

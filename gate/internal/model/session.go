package model

import "strings"

// Session is what a caller's program says of itself: nobody checked it. It is
// recorded and shown as the caller's words, and decides nothing.
type Session struct {
	Client  Prose   `json:"client"` // the program's name
	Version Prose   `json:"version"`
	Chain   []Prose `json:"chain"` // on whose behalf it asks, the nearest first
}

// The bounds of a session. What is longer is cut off: it is worth no refusal.
const (
	maxClaim = 100 // bytes
	maxChain = 8
)

// NewSession returns a session within its bounds, nil if nothing is said.
func NewSession(client, version string, chain []string) *Session {
	s := &Session{Client: claim(client), Version: claim(version), Chain: []Prose{}}
	for _, link := range chain {
		if said := claim(link); said != "" && len(s.Chain) < maxChain {
			s.Chain = append(s.Chain, said)
		}
	}
	if s.Client == "" && s.Version == "" && len(s.Chain) == 0 {
		return nil
	}
	return s
}

// ParseSession reads the one-line form: "client/version, planner/2, ana", the
// program first, then on whose behalf it asks.
func ParseSession(text string) *Session {
	first, rest, _ := strings.Cut(text, ",")
	client, version := first, ""
	if i := strings.LastIndex(first, "/"); i >= 0 {
		client, version = first[:i], first[i+1:]
	}
	return NewSession(client, version, strings.SplitN(rest, ",", maxChain+1))
}

// With returns the session with what another says in the place of what it says
// itself; either may be nil.
func (s *Session) With(other *Session) *Session {
	if s == nil || other == nil {
		if s == nil {
			return other
		}
		return s
	}
	both := *s
	if other.Client != "" || other.Version != "" {
		both.Client, both.Version = other.Client, other.Version
	}
	if len(other.Chain) > 0 {
		both.Chain = other.Chain
	}
	return &both
}

func claim(text string) Prose {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > maxClaim {
		text = strings.ToValidUTF8(text[:maxClaim], "")
	}
	return Prose(text)
}

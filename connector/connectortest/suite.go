// Package connectortest is the one suite that every driver passes, against the
// fake that lies beside it. It holds what the executor counts on: that a read
// changes nothing, that a write is attempted at most once, that an error tells
// the truth about the outcome, and that no secret comes back.
package connectortest

import (
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/recorder"
)

// Suite is one driver with what it needs to be tried.
type Suite struct {
	Driver connector.Driver
	// World makes a fresh fake with nothing of Write in it.
	World func(t *testing.T) World
	// Read is a harmless call that finds something. Write changes what
	// World.Written looks at. Absent reads something that does not exist.
	Read, Write, Absent catalog.Call
	// HTTP is nil for kinds without HTTP, and only for them.
	HTTP *HTTP
}

// World is one system of the kind, with the fake behind it.
type World struct {
	Options map[string]string
	Secrets map[string]string // of an account that may do everything
	Written func() bool       // whether Write has had its effect
	// Opened, if not nil, is told of the target: for a kind whose system is in it.
	Opened func(connector.Target)
	// Fake is served by the suite. Nil for kinds without HTTP.
	Fake *recorder.Recorder
}

// HTTP is what the rows for HTTP kinds need.
type HTTP struct {
	BasePath  string            // path of the base URL, e.g. /api2/json
	Wrong     map[string]string // secrets that the fake does not know
	Powerless map[string]string // secrets of an account without the privilege that Check needs
	Privilege string            // how Check names that privilege
	// Answers is the dialect's table: what an answer to Write means.
	Answers []Answer
}

// Answer is one row of a dialect's table.
type Answer struct {
	Status  int
	Phrase  string // the reason phrase, "" is the standard one
	Body    string
	Outcome writ.Outcome
	Reason  string
}

// row is one promise. A row that needs HTTP runs for every HTTP kind, and no
// other row is ever left out.
type row struct {
	name string
	http bool
	run  func(t *testing.T, s Suite)
}

func rows() []row {
	return []row{
		{"needs are complete", false, needsAreComplete},
		{"unknown option is refused", false, unknownOption},
		{"read reads and does not write", false, readDoesNotWrite},
		{"write writes once", false, writeWritesOnce},
		{"unknown verb sends nothing", false, unknownVerb},
		{"cancelled before it began", false, cancelledBefore},
		{"absent is an answer if that is OK", false, absentOK},
		{"concurrent use", false, concurrentUse},
		{"check of a healthy system", false, checkHealthy},
		{"write cut before its effect", true, cutBefore},
		{"write cut after its effect", true, cutAfter},
		{"write that is never answered", true, neverAnswered},
		{"connection refused", true, connectionRefused},
		{"table of answers", true, tableOfAnswers},
		{"redirect is not followed", true, redirect},
		{"oversized answer", true, oversized},
		{"compressed answer", true, compressed},
		{"half an answer", true, halfAnswer},
		{"TLS pin", true, tlsPin},
		{"wrong credential", true, wrongCredential},
		{"missing secret", true, missingSecret},
		{"path stays as it was escaped", true, pathEscaped},
		{"path that leads elsewhere", true, pathElsewhere},
		{"content length, never chunked", true, contentLength},
		{"endpoint gets no credential", true, endpoint},
		{"check of a powerless account", true, checkPowerless},
	}
}

// Run runs every row that applies to the driver's kind.
func Run(t *testing.T, s Suite) {
	t.Helper()
	speaksHTTP := s.Driver.Authenticate(connector.System{}, vault{}, nil) != nil
	if speaksHTTP != (s.HTTP != nil) {
		t.Fatalf("kind %s has a transport: %v; Suite.HTTP is set: %v. The rows for HTTP cannot be left out, nor run without it.",
			s.Driver.Kind(), speaksHTTP, s.HTTP != nil)
	}
	if speaksHTTP && len(s.HTTP.Answers) == 0 {
		t.Fatal("Suite.HTTP.Answers is empty: the dialect's table has to be tried.")
	}
	if writes := s.Driver.Verbs(); writes[s.Read.Verb] || writes[s.Absent.Verb] || !writes[s.Write.Verb] {
		t.Fatal("Read and Absent have to read, and Write has to write.")
	}
	var left []string
	for _, r := range rows() {
		if r.http && !speaksHTTP {
			left = append(left, r.name)
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(t, s)
		})
	}
	if len(left) > 0 {
		t.Logf("kind %s speaks no HTTP, so these do not apply: %s", s.Driver.Kind(), strings.Join(left, "; "))
	}
}

func needsAreComplete(t *testing.T, s Suite) {
	var names []string
	for _, n := range s.Driver.Needs() {
		if n.Name == "" || n.Prompt == "" || slices.Contains(names, n.Name) {
			t.Errorf("need %+v has no name, no prompt, or the name of another", n)
		}
		names = append(names, n.Name)
	}
	w := s.World(t)
	for name := range w.Options {
		if !slices.Contains(names, name) {
			t.Errorf("the world has an option %q that is no need", name)
		}
	}
	for name := range w.Secrets {
		if !slices.ContainsFunc(s.Driver.Needs(), func(n connector.Need) bool { return n.Name == name && n.Secret }) {
			t.Errorf("the world has a secret %q that is no need", name)
		}
	}
}

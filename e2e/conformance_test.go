package e2e_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"
)

// conforms is what the conformance suite of the protocol may ask for: each
// revision that is spoken.
var conforms = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

// The reasons why a scenario of the suite does not apply.
const (
	noFixture   = "calls a tool of the suite's own server: writ offers its operations and nothing else"
	noResources = "writ declares no resources"
	noPrompts   = "writ declares no prompts"
	noInput     = "asks the client for input in a call: a human decides elsewhere, never at the agent's side"
	noSessions  = "writ keeps no sessions, so that a gate that is started again knows its clients"
)

// notOurs is every check of the suite that does not pass, by scenario, or by
// scenario and check where others of the scenario do apply. One that passes, or
// that the suite no longer has, does not belong here.
var notOurs = map[string]string{
	"completion-complete":          "writ declares no completions",
	"logging-set-level":            "writ declares no logging: its log is for operators",
	"tools-call-simple-text":       noFixture,
	"tools-call-image":             noFixture,
	"tools-call-audio":             noFixture,
	"tools-call-embedded-resource": noFixture,
	"tools-call-mixed-content":     noFixture,
	"tools-call-with-logging":      noFixture,
	"tools-call-error":             noFixture,
	"tools-call-with-progress":     noFixture,
	"json-schema-2020-12":          noFixture,
	"server-stateless sep-2575-server-no-log-without-loglevel": noFixture,
	"tools-call-sampling":          noInput,
	"tools-call-elicitation":       noInput,
	"elicitation-sep1034-defaults": noInput,
	"elicitation-sep1330-enums":    noInput,
	"server-stateless sep-2575-server-rejects-undeclared-capability":          noInput,
	"server-stateless sep-2575-missing-capability-http-400":                   noInput,
	"server-stateless sep-2575-http-server-no-independent-requests-on-stream": noInput,
	"input-required-result-basic-elicitation":                                 noInput,
	"input-required-result-basic-sampling":                                    noInput,
	"input-required-result-basic-list-roots":                                  noInput,
	"input-required-result-request-state":                                     noInput,
	"input-required-result-multiple-input-requests":                           noInput,
	"input-required-result-multi-round":                                       noInput,
	"input-required-result-missing-input-response":                            noInput,
	"input-required-result-non-tool-request":                                  noInput,
	"input-required-result-result-type":                                       noInput,
	"input-required-result-tampered-state":                                    noInput,
	"input-required-result-capability-check":                                  noInput,
	"input-required-result-ignore-extra-params":                               noInput,
	"resources-list":                                          noResources,
	"resources-read-text":                                     noResources,
	"resources-read-binary":                                   noResources,
	"resources-templates-read":                                noResources,
	"resources-subscribe":                                     noResources,
	"resources-unsubscribe":                                   noResources,
	"sep-2164-resource-not-found":                             noResources,
	"caching sep-2549-resources-list-caching-hints":           noResources,
	"caching sep-2549-resources-templates-list-caching-hints": noResources,
	"caching sep-2549-resources-read-caching-hints":           noResources,
	"prompts-list":                                            noPrompts,
	"prompts-get-simple":                                      noPrompts,
	"prompts-get-with-args":                                   noPrompts,
	"prompts-get-embedded-resource":                           noPrompts,
	"prompts-get-with-image":                                  noPrompts,
	"caching sep-2549-prompts-list-caching-hints":             noPrompts,
	"server-stateless sep-2575-server-sends-prompts-list-changed-on-subscription": noPrompts,
	"server-stateless sep-2575-server-sends-tools-list-changed-on-subscription":   "the list of tools does not change while a gate runs",
	"server-session-lifecycle server-session-delete-accepted":                     noSessions,
	"server-session-lifecycle server-session-terminated-returns-404":              noSessions,
	"http-custom-header-server-validation":                                        "no param of a tool is also a header",
}

// always is what has to pass also where the rest of a scenario does not apply.
var always = map[string]bool{"wire-schema-valid": true, "scenario-timeout": true}

// TestConformance: the protocol's own suite finds nothing in the gate over HTTP,
// in any revision, but what does not apply.
func TestConformance(t *testing.T) {
	t.Parallel()
	clients(t)
	r := startAll(t)
	url := withToken(t, r.http, r.token(t, "agent")) + "/mcp"
	seen := map[string]bool{}
	for _, revision := range conforms {
		out := t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		told, err := node(ctx, t, "@modelcontextprotocol/conformance/dist/index.js", "server",
			"--url", url, "--suite", "all", "--spec-version", revision, "--output-dir", out).CombinedOutput()
		passed := 0
		for scenario, checks := range checked(t, out) {
			if len(checks) == 0 {
				t.Errorf("%s %s: it checked nothing", revision, scenario)
			}
			for _, c := range checks {
				if c.Status == "INFO" {
					continue
				}
				if c.Status == "SUCCESS" {
					passed++
					continue
				}
				key := scenario
				if notOurs[key] == "" || always[c.ID] {
					key = scenario + " " + c.ID
				}
				if notOurs[key] == "" {
					t.Errorf("%s %s: %s %s: %s", revision, key, c.Status, c.Description, c.Message)
				}
				seen[key] = true
			}
		}
		t.Logf("%s: %d checks passed (%v)", revision, passed, err)
		if passed < 20 {
			t.Errorf("%s: only %d checks passed:\n%s", revision, passed, told)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(notOurs)) {
		if !seen[key] {
			t.Errorf("%q passes, or is no longer there: take it out of the table", key)
		}
	}
}

// check is one of the suite's results.
type check struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	Description string `json:"description"`
	Message     string `json:"errorMessage"`
}

// checked reads the results of a run, by scenario.
func checked(t *testing.T, dir string) map[string][]check {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]check{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		var checks []check
		if err == nil {
			err = json.Unmarshal(data, &checks)
		}
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$`).FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if named == nil {
			t.Fatalf("%s is not named as expected", file)
		}
		all[named[1]] = checks
	}
	return all
}

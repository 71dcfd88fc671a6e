package rest_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/api"
	"writ/catalog"
	"writ/gate/internal/audit"
	"writ/gate/internal/auth"
	"writ/gate/internal/model"
	"writ/gate/internal/ops"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/policy"
	"writ/gate/internal/rest"
	"writ/gate/internal/store/sqlite"
	"writ/ledger"
	"writ/policies"
	"writ/sys"
)

// gate is a whole gate, on SQLite, with an executor in this process.
type gate struct {
	t        testing.TB
	handler  http.Handler
	executor *executor
	dir      string
	tokens   map[string]string
	log      *bytes.Buffer
}

func newGate(t testing.TB) *gate {
	t.Helper()
	g := &gate{t: t, dir: filepath.Join(t.TempDir(), "gate"), tokens: map[string]string{}, log: &bytes.Buffer{}}
	s := sys.Real(slog.New(slog.DiscardHandler))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(g.dir, "gate.db"))
	must(err)
	actions, err := catalog.Load(catalog.Builtin())
	must(err)
	rules, err := policy.Parse(policies.ApproveMost)
	must(err)
	public, key, err := ed25519.GenerateKey(s.Rand)
	must(err)
	log, err := ledger.Open(filepath.Join(g.dir, "audit"), ledger.Options{Name: "writ/gate", Key: key, Now: s.Now})
	must(err)
	record := audit.New(audit.Config{Sys: s, Store: store, Log: log})
	g.executor = newExecutor(public, actions)
	pipe := pipeline.New(pipeline.Config{
		Sys: s, Store: store, Audit: record, Executor: g.executor,
		Catalog: actions, Policy: rules, Key: key, Epoch: 1, FirstAnswer: 10 * time.Second,
	})
	must(pipe.Start(t.Context()))
	t.Cleanup(func() {
		pipe.Stop()
		must(store.Close())
		must(log.Close())
	})
	principals := filepath.Join(g.dir, "principals.yaml")
	for name, p := range map[string]auth.Principal{
		"agent":    {Name: "opencode", Kind: writ.Agent, Roles: []model.Role{model.Requester}},
		"other":    {Name: "codex", Kind: writ.Agent, Roles: []model.Role{model.Requester}},
		"approver": {Name: "ana", Kind: writ.Human, Roles: []model.Role{model.Approver}},
		"operator": {Name: "otto", Kind: writ.Human, Roles: []model.Role{model.Operator}},
		"auditor":  {Name: "aude", Kind: writ.Human, Roles: []model.Role{model.Auditor}},
		"admin":    {Name: "adam", Kind: writ.Human, Roles: []model.Role{model.Admin}},
	} {
		g.tokens[name], err = auth.Add(s, principals, p)
		must(err)
	}
	who, err := auth.Open(principals)
	must(err)
	g.handler, err = rest.New(rest.Config{
		Gate: &ops.Gate{Pipeline: pipe, Record: record, Version: "test"}, Who: who, Hosts: []string{"writ.example.org"},
		Log: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	must(err)
	return g
}

// request makes a call as somebody; "" has no token.
func (g *gate) request(who, method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, "http://localhost"+path, strings.NewReader(body))
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+g.tokens[who])
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (g *gate) serve(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	g.handler.ServeHTTP(w, r)
	return w.Result()
}

// call makes a call, expects success and decodes the answer.
func call[T any](g *gate, who, method, path, body string) (out T) {
	g.t.Helper()
	resp := g.serve(g.request(who, method, path, body))
	data := read(g.t, resp)
	if resp.StatusCode != http.StatusOK {
		g.t.Fatalf("%s %s as %s: %d %s", method, path, who, resp.StatusCode, data)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		g.t.Fatal(err)
	}
	return out
}

// refused makes a call and expects a problem.
func (g *gate) refused(r *http.Request) api.Problem {
	g.t.Helper()
	resp := g.serve(r)
	data := read(g.t, resp)
	var p api.Problem
	if err := writ.Decode(bytes.TrimSpace(data), &p); err != nil {
		g.t.Fatalf("%s %s: %d, no problem: %s (%v)", r.Method, r.URL, resp.StatusCode, data, err)
	}
	if p.Status != resp.StatusCode || resp.Header.Get("Content-Type") != "application/problem+json" || p.Title == "" || p.Detail == "" || p.Type != "urn:writ:problem:"+string(p.Code) {
		g.t.Errorf("%s %s: an incomplete problem: %d %s", r.Method, r.URL, resp.StatusCode, data)
	}
	return p
}

func read(t testing.TB, resp *http.Response) []byte {
	t.Helper()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// settlement is well-formed; what it decides on was never shown.
const settlement = `{"resolution":"adopt","shown_digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}`

const proposal = `{"steps":[{"action_type":"mock.noop_change","params":{"value":"new"}}],"purpose":"to see it work"}`

func (g *gate) propose() api.Change {
	g.t.Helper()
	return call[api.Change](g, "agent", "POST", "/v1/changes", proposal)
}

// agreement is what an approver sends after reading the review.
func (g *gate) agreement(id string) string {
	g.t.Helper()
	r := call[api.Review](g, "approver", "GET", "/v1/changes/"+id+"/review", "")
	if r.ShownDigest != writ.DigestBytes([]byte(r.Text)) {
		g.t.Error("the digest is not of the text that is shown")
	}
	body, err := json.Marshal(api.Agreement{EnvelopeDigest: r.EnvelopeDigest, ShownDigest: r.ShownDigest, Phrase: r.Phrase})
	if err != nil {
		g.t.Fatal(err)
	}
	return string(body)
}

// end waits until a change has ended.
func (g *gate) end(id string) api.Change {
	g.t.Helper()
	for {
		c := call[api.Change](g, "approver", "GET", "/v1/changes/"+id+"/wait?timeout_ms=20000", "")
		if c.Ended {
			return c
		}
	}
}

package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"writ"
	"writ/api"
	"writ/gate/internal/gatetest"
	"writ/gate/internal/rest"
)

// gate is a whole gate, on SQLite, with an executor in this process.
type gate struct {
	t        testing.TB
	handler  http.Handler
	executor *gatetest.Executor
	dir      string
	tokens   map[string]string
	log      *bytes.Buffer
	doc      *document
	proposed int
}

func newGate(t testing.TB, origins ...string) *gate {
	t.Helper()
	made := gatetest.New(t)
	g := &gate{t: t, executor: made.Executor, dir: made.Dir, tokens: made.Tokens, log: &bytes.Buffer{}}
	var err error
	g.handler, err = rest.New(rest.Config{
		Gate: made.Gate, Who: made.Who, Hosts: []string{"writ.example.org"}, Origins: origins,
		Log: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.doc = newDocument(g)
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
	if g.doc != nil {
		g.doc.check(g.t, r, w)
	}
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

// propose asks for a change that was not asked for before.
func (g *gate) propose() api.Change {
	g.t.Helper()
	g.proposed++
	return call[api.Change](g, "agent", "POST", "/v1/changes", strings.Replace(proposal, "work", fmt.Sprint("work for time ", g.proposed), 1))
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

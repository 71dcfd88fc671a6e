package rest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"writ"
	"writ/api"
	"writ/gate/internal/ops"
	"writ/gate/internal/rest"
)

// document is the description of the API, which every answer of every test is
// held to: no status and no member that it does not name.
type document struct {
	raw map[string]any
	mux *http.ServeMux // finds the operation of a call

	mu       sync.Mutex // of what follows
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

func newDocument(g *gate) *document {
	g.t.Helper()
	d := &document{mux: http.NewServeMux(), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.raw = describedTo(g, "admin")
	if err := d.compiler.AddResource("openapi.json", d.raw); err != nil {
		g.t.Fatal(err)
	}
	for path, methods := range d.raw["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			d.mux.HandleFunc(strings.ToUpper(method)+" "+path, http.NotFound)
		}
	}
	return d
}

// describedTo returns the description that somebody is given.
func describedTo(g *gate, who string) map[string]any {
	g.t.Helper()
	w := httptest.NewRecorder()
	g.handler.ServeHTTP(w, g.request(who, "GET", rest.PathOpenAPI, ""))
	doc, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil || w.Code != http.StatusOK {
		g.t.Fatal(w.Code, err)
	}
	return doc.(map[string]any)
}

// pointer is the place of an operation in the document.
func pointer(method, path string) string {
	return "/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(path) + "/" + strings.ToLower(method)
}

// at returns what stands at a place, references followed; nil if nothing does.
func (d *document) at(place string) (any, string) {
	var found any = d.raw
	for _, name := range strings.Split(place, "/")[1:] {
		object, ok := found.(map[string]any)
		if !ok {
			return nil, place
		}
		found = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
		if inner, ok := found.(map[string]any); ok && inner["$ref"] != nil {
			rest := strings.SplitN(place, "/"+name+"/", 2)
			to := strings.TrimPrefix(inner["$ref"].(string), "#")
			if len(rest) == 1 {
				return d.at(to)
			}
			return d.at(to + "/" + rest[1])
		}
	}
	return found, place
}

// validate holds a value to the schema at a place.
func (d *document) validate(place string, value any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.schemas[place]
	if s == nil {
		var err error
		if s, err = d.compiler.Compile("openapi.json#" + place); err != nil {
			return err
		}
		d.schemas[place] = s
	}
	return s.Validate(value)
}

func (d *document) check(t testing.TB, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	_, pattern := d.mux.Handler(r)
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		return // no operation
	}
	kind := strings.NewReplacer("/", "~1").Replace(w.Header().Get("Content-Type"))
	answer := fmt.Sprintf("%s/responses/%d", pointer(method, path), w.Code)
	response, answer := d.at(answer)
	if response == nil {
		t.Errorf("%s: the status %d is not in the description: %s", pattern, w.Code, w.Body)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Errorf("%s: %v", pattern, err)
		return
	}
	if err := d.validate(answer+"/content/"+kind+"/schema", value); err != nil {
		t.Errorf("%s %d: the answer is not as described: %v", pattern, w.Code, err)
	}
}

var remake = flag.Bool("examples", false, "make the examples of the API anew, from calls of a gate")

// TestExamples: every operation has an example, and each is as described.
func TestExamples(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	if *remake {
		data, err := json.MarshalIndent(makeExamples(g), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("examples.json", append(data, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Log("run the tests again: the examples are part of the program")
		return
	}
	for _, op := range append(ops.All(), ops.Original()...) {
		place := pointer(op.Method, op.Path)
		described, _ := g.doc.at(place)
		operation, ok := described.(map[string]any)
		if !ok {
			t.Errorf("%s is not described", op.Name)
			continue
		}
		params, _ := operation["parameters"].([]any)
		for i, p := range params {
			p := p.(map[string]any)
			if p["in"] == "path" && p["example"] == nil {
				t.Errorf("%s: %s has no example", op.Name, p["name"])
			}
			if p["example"] != nil {
				if err := g.doc.validate(fmt.Sprintf("%s/parameters/%d/schema", place, i), p["example"]); err != nil {
					t.Errorf("%s: the example of %s: %v", op.Name, p["name"], err)
				}
			}
		}
		contents := []string{"/responses/200/content/application~1json"}
		if operation["requestBody"] != nil {
			contents = append(contents, "/requestBody/content/application~1json")
		}
		for status := range operation["responses"].(map[string]any) {
			if status[0] != '2' {
				contents = append(contents, "/responses/"+status+"/content/application~1problem+json")
			}
		}
		for _, content := range contents {
			found, where := g.doc.at(place + content)
			media, _ := found.(map[string]any)
			if media["example"] == nil {
				t.Errorf("%s%s has no example", op.Name, content)
			} else if err := g.doc.validate(where+"/schema", media["example"]); err != nil {
				t.Errorf("%s%s: %v", op.Name, content, err)
			}
		}
	}
}

// TestImport holds what an agent is given to the rules of Open WebUI's importer
// of tool servers.
func TestImport(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	doc := describedTo(g, "agent")
	tools := map[string]bool{}
	for path, methods := range doc["paths"].(map[string]any) {
		for method, described := range methods.(map[string]any) {
			operation := described.(map[string]any)
			id, _ := operation["operationId"].(string)
			if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(id) || tools[id] {
				t.Errorf("%s %s: the id %q is no name of a tool of its own", method, path, id)
			}
			tools[id] = true
			if text, _ := operation["description"].(string); text == "" {
				t.Errorf("%s has no description", id)
			}
			flat := map[string]bool{}
			params, _ := operation["parameters"].([]any)
			for _, p := range params {
				p := p.(map[string]any)
				name, _ := p["name"].(string)
				schema, _ := p["schema"].(map[string]any)
				kind, _ := schema["type"].(string)
				if p["$ref"] != nil || flat[name] || kind == "" || p["in"] != "path" && p["in"] != "query" {
					t.Errorf("%s: the parameter %v cannot be imported", id, p)
				}
				if p["in"] == "path" && p["required"] != true {
					t.Errorf("%s: %s is not required", id, name)
				}
				flat[name] = true
			}
			if operation["requestBody"] == nil {
				continue
			}
			schema := operation["requestBody"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
			properties, _ := schema["properties"].(map[string]any)
			if len(properties) == 0 {
				t.Errorf("%s: the body has no members at its top", id)
			}
			for name := range properties {
				if flat[name] {
					t.Errorf("%s: %s stands twice among the arguments", id, name)
				}
			}
			flatSchema(t, id, doc, schema, 0)
		}
	}
	for _, op := range ops.All() {
		if (op.Tool != "") != tools[op.Tool] {
			t.Errorf("%s: imported: %v", op.Name, tools[op.Tool])
		}
	}
	if len(tools) == 0 || tools["change_approve"] {
		t.Errorf("%v", tools)
	}
}

// flatSchema holds a schema of arguments to what an importer resolves.
func flatSchema(t *testing.T, id string, doc, schema map[string]any, depth int) {
	if depth > 16 {
		t.Fatalf("%s refers to itself", id)
	}
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		schema = doc["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any)
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		if schema[word] != nil {
			t.Errorf("%s: %s is not resolved", id, word)
		}
	}
	if _, ok := schema["type"].(string); !ok {
		t.Errorf("%s: the type %v of an argument is not one word", id, schema["type"])
	}
	if items, ok := schema["items"].(map[string]any); ok {
		flatSchema(t, id, doc, items, depth+1)
	}
	members, _ := schema["properties"].(map[string]any)
	for _, m := range members {
		flatSchema(t, id, doc, m.(map[string]any), depth+1)
	}
}

// TestBody_repeatsParams: clients put all that they have into the body.
func TestBody_repeatsParams(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	keyed := strings.Replace(proposal, "{", `{"client_key":"k1",`, 1)
	c := call[api.Change](g, "agent", "POST", "/v1/changes", keyed)
	again := g.request("agent", "POST", "/v1/changes", keyed)
	again.Header.Set("Idempotency-Key", `"k1"`)
	var same api.Change
	if err := json.Unmarshal(read(t, g.serve(again)), &same); err != nil || same.ID != c.ID {
		t.Errorf("the key of the header made %s, that of the body %s (%v)", same.ID, c.ID, err)
	}
	other := g.request("agent", "POST", "/v1/changes", keyed)
	other.Header.Set("Idempotency-Key", "k2")
	if p := g.refused(other); p.Status != 400 || !strings.Contains(p.Detail, "body.client_key: is not what stands in the header") {
		t.Errorf("two keys: %+v", p)
	}
	if p := g.refused(g.request("agent", "POST", "/v1/changes", `{"client_key":"a","client_key":"b","steps":[]}`)); p.Status != 400 {
		t.Errorf("a key twice: %+v", p)
	}
	if p := g.refused(g.request("agent", "POST", "/v1/changes", strings.Replace(keyed, `"k1"`, "7", 1))); p.Status != 400 || !strings.Contains(p.Detail, "body.client_key: is not of the type string") {
		t.Errorf("a number for a key: %+v", p)
	}
	reject := func(id string) *http.Request {
		return g.request("approver", "POST", "/v1/changes/"+c.ID+"/rejection", `{"reason":"no","id":"`+id+`"}`)
	}
	if p := g.refused(reject("chg_other")); p.Status != 400 || !strings.Contains(p.Detail, "body.id") {
		t.Errorf("another id in the body: %+v", p)
	}
	if resp := g.serve(reject(c.ID)); resp.StatusCode != http.StatusOK {
		t.Errorf("the same id in the body: %d %s", resp.StatusCode, read(t, resp))
	}
}

// TestPropose_keyOfAnother: as the draft on Idempotency-Key has it.
func TestPropose_keyOfAnother(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	ask := func(body string) *http.Request {
		r := g.request("agent", "POST", "/v1/changes", body)
		r.Header.Set("Idempotency-Key", "k1")
		return r
	}
	if resp := g.serve(ask(proposal)); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.StatusCode)
	}
	if p := g.refused(ask(strings.Replace(proposal, "new", "newer", 1))); p.Status != http.StatusUnprocessableEntity || p.Code != "conflict" || p.Reason != "client_key_used" {
		t.Errorf("%+v", p)
	}
}

// TestRollback_noWayBack: that is nobody's fault but the change's.
func TestRollback_noWayBack(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	if p := g.refused(g.request("agent", "POST", "/v1/changes/"+g.propose().ID+"/rollback", "")); p.Status/100 != 4 {
		t.Errorf("%+v", p)
	}
	id := g.propose().ID
	call[api.Change](g, "agent", "POST", "/v1/changes/"+id+"/cancellation", "")
	if p := g.refused(g.request("agent", "POST", "/v1/changes/"+id+"/rollback", "")); p.Status != http.StatusConflict || p.Reason != "no_way_back" {
		t.Errorf("%+v", p)
	}
}

// makeExamples calls every operation and cuts what is long.
//
// Long on purpose: a line an operation.
func makeExamples(g *gate) map[string]map[string]any {
	out := map[string]map[string]any{}
	add := func(name string, params map[string]any, body, answer any) {
		e := map[string]any{"answer": cut(g, answer)}
		if params != nil {
			e["params"] = params
		}
		if body != nil {
			e["body"] = cut(g, body)
		}
		out[name] = e
	}
	ask := func(name, who string, params map[string]any, body any) map[string]any {
		op, ok := api.OperationOf(name)
		if i := slices.IndexFunc(api.OriginalOperations(), func(o api.Operation) bool { return o.Name == name }); !ok {
			op = api.OriginalOperations()[i]
		}
		path, text := op.Path, ""
		for key, value := range params {
			path = strings.ReplaceAll(path, "{"+key+"}", fmt.Sprint(value))
		}
		if body != nil {
			data, err := json.Marshal(body)
			if err != nil {
				g.t.Fatal(err)
			}
			text = string(data)
		}
		answer := call[map[string]any](g, who, op.Method, path, text)
		add(name, params, body, answer)
		return answer
	}
	step := api.ProposedStep{ActionType: "mock.noop_change", Params: writ.Object{"value": "new"}}
	proposed := ask(api.ChangePropose, "agent", nil, api.Proposal{
		Steps: []api.ProposedStep{step}, RequestedAction: "Set the value to new", Purpose: "To see how a change goes", ChangeTicket: "OPS-1",
	})
	propose := func() map[string]any { return map[string]any{"id": g.propose().ID} }
	id := map[string]any{"id": proposed["id"]}
	ask(api.ChangeGet, "agent", id, nil)
	wait := propose()
	op, _ := api.OperationOf(api.ChangeWait)
	add(api.ChangeWait, map[string]any{"id": wait["id"], "timeout_ms": 5000}, nil,
		call[any](g, "agent", "GET", strings.Replace(op.Path, "{id}", wait["id"].(string), 1)+"?timeout_ms=1", ""))
	review := ask(api.ChangeReview, "approver", id, nil)
	ask(api.ChangeApprove, "approver", id, api.Agreement{
		EnvelopeDigest: writ.Digest(review["envelope_digest"].(string)), ShownDigest: writ.Digest(review["shown_digest"].(string)),
	})
	done := g.end(id["id"].(string))
	add(api.ChangeExecute, id, nil, done)
	ask(api.ChangeRollback, "agent", id, nil)
	rejected := propose()
	ask(api.ChangeReject, "approver", rejected, api.Rejection{Reason: "Not on a Friday."})
	ask(api.ChangeLift, "approver", rejected, nil)
	ask(api.ChangeCancel, "agent", propose(), nil)
	add(api.ChangeProbe, id, nil, api.Probe{
		ChangeID: done.ID, Text: "Step s1 left in doubt …", ShownDigest: writ.DigestBytes(nil), Verdict: writ.Verdict("happened"),
		Choices: []string{"adopt", "roll_back"}, Findings: []writ.Finding{},
	})
	settled := done
	settled.Reconciled = &api.Reconciled{ReconciledBy: "ana", ReconciledAt: done.EndedAt, Resolution: "adopt", Verdict: writ.Verdict("happened"), Note: ""}
	add(api.ChangeSettle, id, api.Settlement{ShownDigest: writ.DigestBytes(nil), Resolution: "adopt"}, settled)
	halt := ask(api.HaltSet, "operator", nil, api.Stop{Target: "mock/demo", Reason: "Something runs wild."})
	ask(api.HaltList, "agent", nil, nil)
	ask(api.HaltLift, "approver", map[string]any{"id": halt["id"]}, nil)
	ask(api.ChangeArtifact, "auditor", id, nil)
	ask(api.ChangeEvidence, "auditor", id, nil)
	ask(api.ChangeEvents, "agent", id, nil)
	for _, name := range []string{api.ControlledPolicy, api.StatePolicy, api.StateDriftCheck} {
		ask(name, "agent", nil, nil)
	}
	ask(api.ControlledExecute, "agent", nil, api.ControlledCall{
		ApprovalID: id["id"].(string), RequestedBy: "opencode", ChangeTicket: "OPS-1", RiskLevel: "low", TargetSystem: "mock", ActionType: "mock.noop_change",
		RequestedAction: "Set the value to new", Params: writ.Object{"value": "new"}, BackupRequired: true,
	})
	op, _ = api.OperationOf(api.FactsGet)
	add(api.FactsGet, map[string]any{"entity": "mock/demo"}, nil, call[any](g, "agent", "GET", op.Path+"?entity=mock/demo", ""))
	ask(api.ChangeList, "agent", nil, nil)
	ask(api.ActionList, "agent", nil, nil)
	ask(api.ActionGet, "agent", map[string]any{"name": "mock.noop_change"}, nil)
	for _, name := range []string{api.PolicyGet, api.SystemList, api.EventList, api.CheckpointGet, api.LockList, api.HealthGet} {
		ask(name, "auditor", nil, nil)
	}
	return out
}

// cut shortens lists and long texts, and keeps base64 what it is.
func cut(g *gate, v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		g.t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var out any
	if err := decoder.Decode(&out); err != nil {
		g.t.Fatal(err)
	}
	return shortened(out)
}

func shortened(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = shortened(member)
			if text, ok := v[name].(string); ok && name == "content" {
				v[name] = text[:min(len(text), 80)/4*4]
			}
		}
	case []any:
		v = slices.Clone(v[:min(len(v), 2)])
		for i := range v {
			v[i] = shortened(v[i])
		}
		return v
	case string:
		if r := []rune(v); len(r) > 300 {
			return string(r[:299]) + "…"
		}
	}
	return v
}

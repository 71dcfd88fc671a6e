package e2e_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"writ"
	"writ/catalog"
)

// forgeCommands do what a stolen gate could do: it has the gate's key and the
// executor's socket, and nothing else.
//
//	forge FILE [-blind] ACTION PARAM=VALUE…   put a writ that is valid in every way, unsealed, into FILE;
//	                                          -blind does not look at the target first
//	post CODE[/REASON] [-twin] FILE [EDIT…]   edit it, seal it with the gate's key and hand it over; the executor
//	                                          must answer with that refusal, or "accepted" (its run is $RUN), or "observed"
//	race N FILE                               hand the same sealed writ over N times at once: one is accepted, the others are spent
//	alter FILE [resealed]                     change each value of the writ after it was sealed, or each of the envelope
//	                                          before it is sealed; every one is refused
//	finishes RUN OUTCOME…                     wait until the run is finished; its receipts have these outcomes
//	raw CODE/REASON TEXT                      hand over a text that is no writ
//
// An EDIT is PATH=JSON, or PATH- to take a member away; a JSON of @-5m is the
// time five minutes ago. "approve" approves anew what the edits made of it, and
// "other-key" and "other-kind" seal it wrongly.
func forgeCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"forge": func(s *script, args []string) { s.need(args, 2, "forge FILE ACTION…"); s.forge(args) },
		"post": func(s *script, args []string) {
			s.need(args, 2, "post CODE[/REASON] [-twin] FILE [EDIT…]")
			to, rest := "executor.sock", args[1:]
			if rest[0] == "-twin" {
				to, rest = "twin.sock", rest[1:]
			}
			s.expect(args[0], s.post(to, s.sealed(rest[0], rest[1:])))
		},
		"race":  func(s *script, args []string) { s.need(args, 2, "race N FILE"); s.race(args[0], args[1]) },
		"alter": func(s *script, args []string) { s.need(args, 1, "alter FILE [resealed]"); s.alter(args) },
		"finishes": func(s *script, args []string) {
			s.need(args, 1, "finishes RUN OUTCOME…")
			s.eventually("the run "+args[0]+" is finished", func() (bool, string) { return s.outcomes(args[0], args[1:]) })
		},
		"raw": func(s *script, args []string) {
			s.need(args, 2, "raw CODE/REASON TEXT")
			s.expect(args[0], s.post("executor.sock", []byte(args[1])))
		},
	}
}

// gateKey is the key that a stolen gate has.
func (s *script) gateKey() ed25519.PrivateKey {
	text, err := os.ReadFile(filepath.Join(s.dir, "gate", "gate.key"))
	s.Check(err)
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	s.Check(err)
	return ed25519.NewKeyFromSeed(seed)
}

func (s *script) forge(args []string) {
	file, args := args[0], args[1:]
	blind := args[0] == "-blind"
	if blind {
		args = args[1:]
	}
	actions, err := catalog.Load(os.DirFS(filepath.Join(s.dir, "catalog")))
	s.Check(err)
	action, ok := actions.Action(args[0])
	if !ok {
		s.Fatalf("there is no action %s", args[0])
	}
	params, err := action.Params(s.params(action, args[1:]))
	s.Check(err)
	now := time.Now()
	step := writ.Step{
		ID: "s1", Needs: []string{}, Action: action.Name, ActionDigest: action.Digest, System: action.System, Params: params,
		Resolved: writ.Object{}, Touches: []string{}, Class: action.Class, BackupRequired: action.Writes(),
	}
	w := writ.Writ{
		Format: writ.FormatWrit, Purpose: writ.Observe, Run: "run_forged0", Executor: "local", Nonce: "nonce-of-the-forger-0000", Epoch: 1,
		IssuedAt: writ.At(now), ExpiresAt: writ.At(now.Add(5 * time.Minute)), Fences: []writ.Fence{}, Approvals: []writ.Approval{},
		Envelope: writ.Envelope{
			ChangeID: "chg_forged", RequestDigest: writ.DigestBytes(nil), RequestedBy: writ.Principal{Name: "agent", Kind: writ.Agent},
			Environment: "lab", Class: action.Class, RiskLevel: writ.Medium, OnFailure: writ.Stop, PolicyDigest: writ.DigestBytes(nil),
			PreviewDigest: writ.DigestBytes(nil), Steps: []writ.Step{step},
		},
	}
	s1 := &w.Envelope.Steps[0]
	if blind {
		s1.Entity, err = action.Entity(&catalog.Scope{System: action.System, Params: params, Resolved: writ.Object{}, Settings: actions.Settings(action.Name)})
		s.Check(err)
	} else {
		o := s.observe(&w)
		s1.Entity, s1.Touches, s1.Resolved, s1.Fingerprint, s1.Rollback = o.Entity, o.Touches, o.Resolved, o.Fingerprint, o.Rollback
	}
	w.Purpose, w.Run, w.Nonce = writ.Execute, "run_forged1", "nonce-of-the-forger-0001"
	for _, entity := range s1.Entities() {
		w.Fences = append(w.Fences, writ.Fence{Entity: entity, Number: now.UnixMilli()})
	}
	s.approve(&w)
	text, err := writ.Canonical(w)
	s.Check(err)
	s.Check(os.WriteFile(s.MkAbs(file), text, 0o600))
}

// params reads PARAM=VALUE by the action's schema.
func (s *script) params(action *catalog.Action, args []string) writ.Object {
	properties, _ := action.Schema()["properties"].(map[string]any)
	params := writ.Object{}
	for _, arg := range args {
		name, text, _ := strings.Cut(arg, "=")
		params[name] = text
		if p, _ := properties[name].(map[string]any); p["type"] == "integer" {
			n, err := strconv.ParseInt(text, 10, 64)
			s.Check(err)
			params[name] = n
		}
	}
	return params
}

// approve makes alice approve the envelope as it is.
func (s *script) approve(w *writ.Writ) {
	digest, err := w.Envelope.Digest()
	s.Check(err)
	scope, err := writ.ScopeOf(&w.Envelope)
	s.Check(err)
	w.Approvals = []writ.Approval{{
		ID: "appr_forged", ApprovedBy: writ.Principal{Name: "alice", Kind: writ.Human}, ApprovedAt: w.IssuedAt, ExpiresAt: w.ExpiresAt,
		EnvelopeDigest: digest, ShownDigest: writ.DigestBytes(nil), RiskLevel: w.Envelope.RiskLevel, Scope: scope,
	}}
}

// observe asks the executor what it sees, as the gate does for a preview.
func (s *script) observe(w *writ.Writ) (o writ.Observation) {
	o.Entity = "nowhere"
	text, err := writ.Seal(writ.KindWrit, w, s.gateKey())
	s.Check(err)
	a := s.post("executor.sock", text)
	var all writ.Observations
	if a.status != http.StatusOK || json.Unmarshal(a.body, &all) != nil || len(all.Observations) != 1 {
		s.Fatalf("the executor observes nothing: %d %s", a.status, a.body)
	}
	// The payload is enough: what the executor says here, it checks itself later.
	var sealed struct{ Payload json.RawMessage }
	s.Check(json.Unmarshal(all.Observations[0], &sealed))
	s.Check(writ.Decode(sealed.Payload, &o))
	if o.Reason != "" || len(o.Refusals) > 0 {
		s.Fatalf("the executor would refuse: %s %s %v", o.Reason, o.Detail, o.Refusals)
	}
	return o
}

// sealed reads a forged writ, edits it and seals it.
func (s *script) sealed(file string, edits []string) []byte {
	key, kind := s.gateKey(), writ.KindWrit
	parsed, err := writ.Parse([]byte(s.ReadFile(file)))
	s.Check(err)
	payload, _ := parsed.(writ.Object)
	for _, edit := range edits {
		switch edit {
		case "approve":
			var w writ.Writ
			text, err := writ.Canonical(payload)
			s.Check(err)
			s.Check(writ.Decode(text, &w))
			s.approve(&w)
			text, err = writ.Canonical(w)
			s.Check(err)
			parsed, err = writ.Parse(text)
			s.Check(err)
			payload, _ = parsed.(writ.Object)
		case "other-key":
			_, key, err = ed25519.GenerateKey(nil)
			s.Check(err)
		case "other-kind":
			kind = writ.KindReceipt
		default:
			s.edit(payload, edit)
		}
	}
	text, err := writ.Seal(kind, payload, key)
	s.Check(err)
	return text
}

// edit sets or removes one value of a writ.
func (s *script) edit(in writ.Object, edit string) {
	path, text, set := strings.Cut(edit, "=")
	if !set {
		path = strings.TrimSuffix(path, "-")
	}
	var at any = in
	names := strings.Split(path, ".")
	last := names[len(names)-1]
	for _, name := range names[:len(names)-1] {
		at = child(at, name)
	}
	if !set {
		delete(at.(writ.Object), last)
		return
	}
	var value any
	if after, ok := strings.CutPrefix(text, "@"); ok {
		d, err := time.ParseDuration(after)
		s.Check(err)
		value = writ.At(time.Now().Add(d)).String()
	} else {
		var err error
		value, err = writ.Parse([]byte(text))
		s.Check(err)
	}
	switch holder := at.(type) {
	case writ.Object:
		holder[last] = value
	case []any:
		i, err := strconv.Atoi(last)
		s.Check(err)
		holder[i] = value
	default:
		s.Fatalf("there is nothing at %s", path)
	}
}

func child(v any, name string) any {
	if list, ok := v.([]any); ok {
		if i, err := strconv.Atoi(name); err == nil && i < len(list) {
			return list[i]
		}
		return nil
	}
	object, _ := v.(writ.Object)
	return object[name]
}

// posted is what the executor answered.
type posted struct {
	status int
	body   []byte
}

func (s *script) post(socket string, sealed []byte) posted {
	req, err := http.NewRequest(http.MethodPost, "http://localhost"+writ.PathWrits, bytes.NewReader(sealed))
	s.Check(err)
	status, body := s.receive(s.overSocket(socket), req)
	return posted{status, body}
}

// said is what an answer says, as CODE/REASON or accepted.
func (a posted) said() string {
	switch a.status {
	case http.StatusAccepted:
		return "accepted"
	case http.StatusOK:
		return "observed"
	}
	var r writ.Refusal
	if err := json.Unmarshal(a.body, &r); err != nil || a.status == 0 {
		return fmt.Sprintf("no answer: %d %s", a.status, a.body)
	}
	if a.status != r.Code.Row().HTTP {
		return fmt.Sprintf("%s with the wrong status %d", r.Code, a.status)
	}
	return string(r.Code) + "/" + r.Reason
}

// expect checks what the executor answered; without a reason, any reason will do.
func (s *script) expect(want string, a posted) {
	said := a.said()
	if code, _, _ := strings.Cut(said, "/"); said != want && code != want {
		s.Fatalf("the executor says %s, not %s: %s", said, want, a.body)
	}
	if said == "accepted" {
		s.Setenv("RUN", s.value(string(a.body), "run"))
	}
}

// outcomes reports whether a run is finished, and checks its outcomes if it is.
func (s *script) outcomes(run string, want []string) (bool, string) {
	req, err := http.NewRequest(http.MethodGet, "http://localhost"+writ.PathRuns+run, nil)
	s.Check(err)
	_, body := s.receive(s.overSocket("executor.sock"), req)
	var state writ.RunState
	if err := json.Unmarshal(body, &state); err != nil || !state.Finished {
		return false, string(body)
	}
	var got []string
	for _, text := range state.Receipts {
		var sealed struct{ Payload writ.Receipt }
		s.Check(json.Unmarshal(text, &sealed))
		got = append(got, string(sealed.Payload.Outcome))
	}
	if !slices.Equal(got, want) {
		s.Fatalf("the run %s ended with %v, not %v", run, got, want)
	}
	return true, ""
}

func (s *script) race(number, file string) {
	n, err := strconv.Atoi(number)
	s.Check(err)
	text := s.sealed(file, nil)
	answers := make([]posted, n)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			answers[i] = s.post("executor.sock", text)
		})
	}
	close(begin)
	all.Wait()
	count := map[string]int{}
	for _, a := range answers {
		count[a.said()]++
	}
	// Whoever is late enough to find the writ spent, and whoever meets the run at its entity.
	if count["accepted"] != 1 || count["spent/spent"]+count["conflict/entity_busy"] != n-1 {
		s.Fatalf("of %d one must be accepted: %v", n, count)
	}
}

// alter hands over the writ again and again, each time with one value changed.
func (s *script) alter(args []string) {
	parsed, err := writ.Parse([]byte(s.ReadFile(args[0])))
	s.Check(err)
	payload, _ := parsed.(writ.Object)
	resealed := len(args) > 1 && args[1] == "resealed"
	good := s.sealed(args[0], nil)
	var paths []string
	leaves(payload, "", &paths)
	tried := 0
	for _, path := range paths {
		if resealed && !strings.HasPrefix(path, "envelope.") {
			continue // the rest is the gate's own to say
		}
		tried++
		var text []byte
		if edit := path + "=" + altered(payload, path); resealed {
			text = s.sealed(args[0], []string{edit})
		} else {
			text = splice(good, s.sealed(args[0], []string{edit}))
		}
		a := s.post("executor.sock", text)
		if code, _, _ := strings.Cut(a.said(), "/"); code == "accepted" || code == "spent" || !strings.HasPrefix(strconv.Itoa(a.status), "4") {
			s.Fatalf("with another %s the writ is taken, or almost: %s", path, a.said())
		}
	}
	if tried < 20 {
		s.Fatalf("only %d values were altered: %v", tried, paths)
	}
}

// leaves lists the paths of all values that hold no others.
func leaves(v any, path string, out *[]string) {
	switch in := v.(type) {
	case writ.Object:
		for name, value := range in {
			leaves(value, strings.TrimPrefix(path+"."+name, "."), out)
		}
		if len(in) > 0 {
			return
		}
	case []any:
		for i, value := range in {
			leaves(value, path+"."+strconv.Itoa(i), out)
		}
		if len(in) > 0 {
			return
		}
	}
	*out = append(*out, path)
}

// altered is another value of the same kind for a path, as JSON.
func altered(payload writ.Object, path string) string {
	var at any = payload
	for _, name := range strings.Split(path, ".") {
		at = child(at, name)
	}
	switch v := at.(type) {
	case string:
		switch _, isTime := time.Parse(time.RFC3339, v); {
		case isTime == nil:
			return "@1h"
		case strings.HasPrefix(v, "sha256:"):
			return strconv.Quote(string(writ.DigestBytes([]byte(v))))
		}
		return strconv.Quote(v + "x")
	case int64:
		return strconv.FormatInt(v+1, 10)
	case bool:
		return strconv.FormatBool(!v)
	case writ.Object:
		return `{"more":1}`
	case []any:
		return `["more"]`
	}
	return `"something"`
}

// splice puts the signature of one sealed text under the payload of another.
func splice(signed, altered []byte) []byte {
	mark := []byte(`,"signature":"`)
	return append(bytes.Clone(altered[:bytes.LastIndex(altered, mark)]), signed[bytes.LastIndex(signed, mark):]...)
}

package writ_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/fault"
)

func testKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func ring(key ed25519.PrivateKey) writ.Keyring {
	return writ.NewKeyring(key.Public().(ed25519.PublicKey))
}

// validWrit is a writ in which no member is empty.
func validWrit(tb testing.TB) *writ.Writ {
	tb.Helper()
	now := writ.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	later := writ.At(now.Add(5 * time.Minute))
	step := writ.Step{
		ID: "s1", Needs: []string{"s0"}, Action: "proxmox.set_lxc_description", ActionDigest: writ.DigestBytes([]byte("a")), System: "proxmox",
		Params: writ.Object{"node": "pve", "vmid": int64(121), "description": "Container <1> & more"}, Resolved: writ.Object{"n": int64(1)},
		Entity: "proxmox/pve/lxc/121", Touches: []string{"proxmox/pve"}, Class: writ.ConfigMutation, BackupRequired: true, Fingerprint: "abc",
		Rollback: &writ.Call{Action: "proxmox.set_lxc_description", System: "proxmox", Params: writ.Object{"description": ""}},
	}
	e := writ.Envelope{
		ChangeID: "chg_1", RequestDigest: writ.DigestBytes([]byte("r")), RequestedBy: writ.Principal{Name: "bot", Kind: writ.Agent},
		Environment: "lab", Class: writ.ConfigMutation, RiskLevel: writ.Medium, OnFailure: writ.Stop, RollbackOf: "chg_0",
		PolicyDigest: writ.DigestBytes([]byte("p")), PreviewDigest: writ.DigestBytes([]byte("v")), Steps: []writ.Step{step},
	}
	digest, err := e.Digest()
	if err != nil {
		tb.Fatal(err)
	}
	scope, err := writ.ScopeOf(&e)
	if err != nil {
		tb.Fatal(err)
	}
	return &writ.Writ{
		Format: writ.FormatWrit, Purpose: writ.Execute, Run: "run_1", Executor: "lab", Nonce: "0123456789abcdef", Epoch: 1,
		IssuedAt: now, ExpiresAt: later, Fences: []writ.Fence{{Entity: "proxmox/pve/lxc/121", Number: 7}}, Envelope: e,
		Approvals: []writ.Approval{{
			ID: "appr_1", ApprovedBy: writ.Principal{Name: "ada", Kind: writ.Human}, ApprovedAt: now, ExpiresAt: later,
			EnvelopeDigest: digest, ShownDigest: writ.DigestBytes([]byte("s")), RiskLevel: writ.Medium, Scope: scope,
		}},
	}
}

func TestSeal_opensAsWhatItIs(t *testing.T) {
	t.Parallel()
	key := testKey(1)
	w := validWrit(t)
	sealed, err := writ.Seal(writ.KindWrit, w, key)
	if err != nil {
		t.Fatal(err)
	}
	var got writ.Writ
	if err := writ.Open(writ.KindWrit, sealed, ring(key), &got); err != nil {
		t.Fatal(err)
	}
	again, err := writ.Seal(writ.KindWrit, &got, key)
	if err != nil || !bytes.Equal(sealed, again) {
		t.Errorf("sealing what was opened gives other bytes: %v", err)
	}
	for _, c := range []struct {
		name, reason string
		kind         writ.Kind
		keys         writ.Keyring
		data         []byte
	}{
		{"another kind", "bad_signature", writ.KindReceipt, ring(key), sealed},
		{"a key that is not trusted", "unknown_key", writ.KindWrit, ring(testKey(2)), sealed},
		{"no keys", "unknown_key", writ.KindWrit, nil, sealed},
		{"another key under the same id", "bad_signature", writ.KindWrit, writ.Keyring{writ.KeyID(key.Public().(ed25519.PublicKey)): testKey(2).Public().(ed25519.PublicKey)}, sealed},
		{"a blank after it", "not_canonical", writ.KindWrit, ring(key), append(bytes.Clone(sealed), ' ')},
		{"nothing", "malformed", writ.KindWrit, ring(key), nil},
		{"a bare payload", "malformed", writ.KindWrit, ring(key), []byte(`{"payload":{}}`)},
	} {
		err := writ.Open(c.kind, c.data, c.keys, &got)
		if fault.CodeOf(err) != fault.Refused || fault.ReasonOf(err) != c.reason {
			t.Errorf("%s: got %v (%s), want reason %s", c.name, err, fault.ReasonOf(err), c.reason)
		}
	}
}

// TestOpen_everyByteCounts changes each byte of a sealed writ in several ways,
// drops it, and doubles it: none of the results may open.
func TestOpen_everyByteCounts(t *testing.T) {
	t.Parallel()
	key := testKey(1)
	sealed, err := writ.Seal(writ.KindWrit, validWrit(t), key)
	if err != nil {
		t.Fatal(err)
	}
	keys := ring(key)
	mutants := 0
	for i, b := range sealed {
		for _, m := range [][]byte{{b ^ 1}, {b ^ 0x20}, {b ^ 0x80}, {}, {b, b}, {' ', b}, {0}} {
			mutant := append(append(bytes.Clone(sealed[:i]), m...), sealed[i+1:]...)
			if bytes.Equal(mutant, sealed) {
				continue
			}
			mutants++
			var w writ.Writ
			if err := writ.Open(writ.KindWrit, mutant, keys, &w); fault.CodeOf(err) != fault.Refused {
				t.Fatalf("byte %d as %q opens: %v", i, m, err)
			}
		}
	}
	if mutants < 6*len(sealed) {
		t.Errorf("only %d mutants of %d bytes were tried", mutants, len(sealed))
	}
}

// TestOpen_everyFieldCounts changes, drops and adds every member of a valid
// writ's payload under the old signature: none may open.
func TestOpen_everyFieldCounts(t *testing.T) {
	t.Parallel()
	key := testKey(1)
	sealed, err := writ.Seal(writ.KindWrit, validWrit(t), key)
	if err != nil {
		t.Fatal(err)
	}
	keys := ring(key)
	fields := 0
	visit(t, sealed, func(path string, mutant []byte) {
		fields++
		var w writ.Writ
		if err := writ.Open(writ.KindWrit, mutant, keys, &w); fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: opens: %v", path, err)
		}
	})
	if fields < 150 {
		t.Errorf("only %d mutants were tried", fields)
	}
}

// TestOpen_everyMemberIsObligatory seals payloads with one member missing or
// one too many, with a valid signature: the form alone must refuse them.
func TestOpen_everyMemberIsObligatory(t *testing.T) {
	t.Parallel()
	key := testKey(1)
	body, err := writ.Canonical(validWrit(t))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	visit(t, body, func(path string, mutant []byte) {
		form := strings.HasSuffix(path, " dropped") || strings.HasSuffix(path, " added")
		free := strings.Contains(path, "/params") || strings.Contains(path, "/resolved") // objects of any form
		if !form || free {
			return
		}
		sealed, err := writ.Seal(writ.KindWrit, json.RawMessage(mutant), key)
		if err != nil {
			t.Fatal(err)
		}
		tried++
		var w writ.Writ
		if err := writ.Open(writ.KindWrit, sealed, ring(key), &w); fault.ReasonOf(err) != "malformed" {
			t.Errorf("%s: %v", path, err)
		}
	})
	if tried < 60 {
		t.Errorf("only %d mutants were tried", tried)
	}
}

// visit calls f with each single change of a canonical JSON text.
func visit(t *testing.T, text []byte, f func(path string, mutant []byte)) {
	t.Helper()
	root, err := writ.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	emit := func(path string) {
		mutant, err := writ.Canonical(root)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		f(path, mutant)
	}
	var walk func(path string, v any, set func(any))
	walk = func(path string, v any, set func(any)) {
		switch v := v.(type) {
		case writ.Object:
			for k, member := range v {
				delete(v, k)
				emit(path + "/" + k + " dropped")
				v[k] = member
				walk(path+"/"+k, member, func(n any) { v[k] = n })
			}
			v["zz"] = int64(1)
			emit(path + " added")
			delete(v, "zz")
		case []any:
			for i := range v {
				walk(fmt.Sprintf("%s/%d", path, i), v[i], func(n any) { v[i] = n })
			}
			set(append(append([]any{}, v...), "zz"))
			emit(path + " longer")
			set(v)
		default:
			for _, other := range []any{"zz", int64(12345), nil, true} {
				if other != v {
					set(other)
					emit(path + " changed")
				}
			}
			set(v)
		}
	}
	walk("", root, func(any) {})
}

func TestEnvelope_Check(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*writ.Envelope)
		want   string
	}{
		{"no steps", func(e *writ.Envelope) { e.Steps = nil }, "steps"},
		{"a need that is not met", func(e *writ.Envelope) {}, "needs"},
		{"an id twice", func(e *writ.Envelope) { e.Steps[0].Needs = nil; e.Steps = append(e.Steps, e.Steps[0]) }, "twice"},
		{"an unknown on_failure", func(e *writ.Envelope) { e.OnFailure = "retry" }, "on_failure"},
		{"a step stricter than the whole", func(e *writ.Envelope) { e.Steps[0].Needs = nil; e.Class = writ.ReadOnly }, "says only"},
		{"no action digest", func(e *writ.Envelope) { e.Steps[0].Needs = nil; e.Steps[0].ActionDigest = "x" }, "lacks"},
	} {
		e := validWrit(t).Envelope
		c.change(&e)
		if err := e.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	e := validWrit(t).Envelope
	e.Steps[0].Needs = nil
	if err := e.Check(); err != nil {
		t.Errorf("a valid envelope is refused: %v", err)
	}
}

// Case: C149.
func TestTime_hasOneForm(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"2026-03-01T12:00:00Z"`, `"2026-03-01T12:00:00.0000Z"`, `"2026-03-01T12:00:00.000+01:00"`, `"2026-02-30T12:00:00.000Z"`, `1`, `null`} {
		var s struct {
			At writ.Time `json:"at"`
		}
		if err := writ.Decode([]byte(`{"at":`+text+`}`), &s); err == nil {
			t.Errorf("%s is accepted as %v", text, s.At)
		}
	}
}

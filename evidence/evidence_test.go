package evidence_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/evidence"
	"writ/fault"
	"writ/ledger"
)

var at = writ.At(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))

func key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func public(name string) ed25519.PublicKey { return ed25519.PublicKey(key(name)[ed25519.SeedSize:]) }

// log makes an audit of events and returns what proves them.
func log(t *testing.T, name string, events ...writ.Object) (lines [][]byte, proofs [][]ledger.Hash, signed []byte, seams [][]byte) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := ledger.Open(dir, ledger.Options{Name: "writ/" + name, Key: key(name), Now: func() time.Time { return at.Time }})
	must(err)
	defer l.Close()
	for i, e := range events {
		e["sequence"], e["timestamp"] = int64(i+1), at.String()
		line, err := ledger.Line(e)
		must(err)
		must(l.Append(line))
		lines = append(lines, line)
	}
	_, err = l.Checkpoint()
	must(err)
	r, err := ledger.Read(dir)
	must(err)
	defer r.Close()
	for i := range events {
		p, err := r.Prove(int64(i + 1))
		must(err)
		proofs = append(proofs, p)
	}
	signed, _ = r.Checkpoint()
	return lines, proofs, signed, r.Seams()
}

// files is the evidence of one change that was approved and carried out.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	canonical := func(v any) []byte {
		t.Helper()
		b, err := writ.Canonical(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	request, preview := canonical(writ.Object{"purpose": "tidy"}), canonical(writ.Object{"observations": []any{}})
	weighed := canonical(writ.Object{"score": int64(20)})
	envelope := writ.Envelope{
		ChangeID: "chg_1", RequestDigest: writ.DigestBytes(request), PreviewDigest: writ.DigestBytes(preview), RequestedBy: writ.Principal{Name: "bot", Kind: writ.Agent},
		Steps: []writ.Step{{ID: "s1", Action: "mock.set", System: "mock", Entity: "mock/a", Params: writ.Object{}, Resolved: writ.Object{}, Needs: []string{}, Touches: []string{}}},
	}
	digest, err := envelope.Digest()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := writ.Seal(writ.KindWrit, &writ.Writ{
		Format: writ.FormatWrit, Purpose: writ.Execute, Run: "run_1", Executor: "local", IssuedAt: at, ExpiresAt: at, Fences: []writ.Fence{}, Envelope: envelope,
		Approvals: []writ.Approval{{ID: "appr_1", ApprovedBy: writ.Principal{Name: "ana", Kind: writ.Human}, ApprovedAt: at, ExpiresAt: at, EnvelopeDigest: digest, Scope: []writ.Scope{}}},
	}, key("gate"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, theirs, _ := log(t, "executor", writ.Object{"event": "step.sent"})
	receipt, err := writ.Seal(writ.KindReceipt, &writ.Receipt{
		Format: writ.FormatReceipt, Executor: "local", Run: "run_1", ChangeID: "chg_1", WritDigest: writ.DigestBytes(sealed), Sequence: 1, Step: "s1", System: "mock",
		Outcome: writ.Done, BackupReference: "backup:local/run_1/s1", BackupDigest: writ.DigestBytes([]byte("x")), Checks: []writ.Check{{Name: "set", Passed: true}},
		Sent: []writ.Sent{{At: at, Verb: "put", Path: "/a", Digest: writ.DigestBytes([]byte("y")), Mark: "m"}}, Outputs: writ.Object{}, StartedAt: at, FinishedAt: at, Checkpoint: string(theirs),
	}, key("executor"))
	if err != nil {
		t.Fatal(err)
	}
	event := func(kind, user string, detail writ.Object) writ.Object {
		d := string(digest)
		if kind == "change.proposed" {
			d = ""
		}
		return writ.Object{"event": kind, "change_id": "chg_1", "user": user, "envelope_digest": d, "status": "done", "step": "", "detail": detail}
	}
	lines, proofs, signed, seams := log(t, "gate",
		event("change.proposed", "agent:bot", writ.Object{"request_digest": string(writ.DigestBytes(request))}),
		event("change.decided", "writ", writ.Object{"assessment_digest": string(writ.DigestBytes(weighed))}),
		event("change.approved", "human:ana", writ.Object{}),
		event("change.claimed", "writ", writ.Object{"writ_digest": string(writ.DigestBytes(sealed))}),
		event("step.ended", "agent:bot", writ.Object{"receipt_digest": string(writ.DigestBytes(receipt))}),
		event("change.ended", "writ", writ.Object{}))
	var events []evidence.Event
	for i := range lines {
		events = append(events, evidence.Event{Sequence: int64(i + 1), Line: string(lines[i]), Proof: proofs[i]})
	}
	plain := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return map[string][]byte{
		evidence.Request: request, evidence.Preview: preview, evidence.Assessment: weighed, evidence.Envelope: canonical(envelope), evidence.Writ: sealed, evidence.Receipts + "0001.json": receipt,
		evidence.Events: plain(events), evidence.Keys: plain(evidence.KeyPair{Gate: public("gate"), Executor: public("executor")}),
		evidence.Checkpoint: signed, evidence.Seams: append(bytes.Join(seams, []byte("\n")), '\n'),
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	a, err := evidence.Verify(files(t))
	if err != nil {
		t.Fatal(err)
	}
	if a.ChangeID != "chg_1" || a.Events != 6 || a.Receipts != 1 || len(a.Backups) != 1 || a.Gate != writ.KeyID(public("gate")) || a.Executor != writ.KeyID(public("executor")) {
		t.Errorf("%+v", a)
	}
	var got []string
	for _, s := range a.Sentences {
		if len(s.Records) == 0 {
			t.Errorf("%q rests on nothing", s.Text)
		}
		got = append(got, strings.Fields(s.Text)[0]+" … "+s.Records[0])
	}
	want := []string{"agent:bot … event 1 (change.proposed)", "human:ana … event 3 (change.approved)", "The … event 4 (change.claimed)",
		"It … receipts/0001.json", "step … event 5 (step.ended)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := a.Sentences[1].Text; !strings.Contains(text, "approved exactly mock.set on mock/a") {
		t.Error(text)
	}
}

// A bit changed anywhere, or a file missing, is found; or it changed nothing of
// what the files say.
func TestVerify_findsEveryChange(t *testing.T) {
	t.Parallel()
	good := files(t)
	want, err := evidence.Verify(good)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range slices.Sorted(maps.Keys(good)) {
		bad := maps.Clone(good)
		delete(bad, name)
		if _, err := evidence.Verify(bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("without %s: %v", name, err)
		}
		for i := 0; i < len(good[name]); i += 3 {
			bad := maps.Clone(good)
			bad[name] = bytes.Clone(good[name])
			bad[name][i] ^= 1 << (i % 8)
			a, err := evidence.Verify(bad)
			if err == nil && !cmp.Equal(a, want) {
				t.Errorf("byte %d of %s, %q, now %q: %+v", i, name, good[name][i], bad[name][i], a)
			}
			if err != nil {
				found++
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d changes were found", found)
	}
}

// Records that are each genuine, of two changes, make no evidence of one.
func TestVerify_refusesWhatDoesNotBelong(t *testing.T) {
	t.Parallel()
	good := files(t)
	other, err := writ.Seal(writ.KindReceipt, &writ.Receipt{Format: writ.FormatReceipt, Run: "run_1", ChangeID: "chg_1", WritDigest: writ.DigestBytes(good[evidence.Writ]), Sequence: 2,
		Checks: []writ.Check{}, Sent: []writ.Sent{}, Outputs: writ.Object{}}, key("executor"))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := writ.Seal(writ.KindWrit, &writ.Writ{Fences: []writ.Fence{}, Approvals: []writ.Approval{}, Envelope: writ.Envelope{Steps: []writ.Step{}}}, key("gate"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(map[string][]byte){
		"a receipt that no event tells of": func(f map[string][]byte) { f[evidence.Receipts+"0002.json"] = other },
		"another receipt":                  func(f map[string][]byte) { f[evidence.Receipts+"0001.json"] = other },
		"another writ of the same gate":    func(f map[string][]byte) { f[evidence.Writ] = forged },
		"another request":                  func(f map[string][]byte) { f[evidence.Request] = []byte(`{"purpose":"other"}`) },
		"another assessment":               func(f map[string][]byte) { f[evidence.Assessment] = []byte(`{"score":1}`) },
		"no assessment":                    func(f map[string][]byte) { delete(f, evidence.Assessment) },
		"another preview":                  func(f map[string][]byte) { f[evidence.Preview] = []byte(`{}`) },
		"the keys exchanged": func(f map[string][]byte) {
			f[evidence.Keys] = []byte(strings.NewReplacer("gate", "executor", "executor", "gate").Replace(string(f[evidence.Keys])))
		},
	} {
		bad := maps.Clone(good)
		change(bad)
		if a, err := evidence.Verify(bad); fault.ReasonOf(err) != "bad_evidence" {
			t.Errorf("%s: %v %v", name, a, err)
		}
	}
	if _, err := evidence.Verify(nil); err == nil {
		t.Error("nothing is evidence")
	}
}

// A witness that is asked for must have signed what covers every event, for this audit.
func TestVerify_witness(t *testing.T) {
	t.Parallel()
	good := files(t)
	var seed [ed25519.SeedSize]byte
	private := ed25519.NewKeyFromSeed(seed[:])
	public := append([]byte{4}, private[ed25519.SeedSize:]...)
	sum := sha256.Sum256(append([]byte("w\n"), public...))
	w, err := ledger.ParseWitness("w+" + hex.EncodeToString(sum[:4]) + "+" + base64.StdEncoding.EncodeToString(public))
	if err != nil {
		t.Fatal(err)
	}
	cosign := func(signed []byte) string {
		text, _, _ := bytes.Cut(signed, []byte("\n\n"))
		s := append(sum[:4:4], 0, 0, 0, 0, 0x6a, 0, 0, 0)
		s = append(s, ed25519.Sign(private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s\n", 0x6a000000, text))...)
		note, err := w.Cosign(signed, []byte("— w "+base64.StdEncoding.EncodeToString(s)+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		return string(note)
	}
	with := func(all ...evidence.Cosigned) map[string][]byte {
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		f := maps.Clone(good)
		f[evidence.Witnessed] = text
		return f
	}
	_, _, other, _ := log(t, "gate", writ.Object{"event": "a"}, writ.Object{"event": "b"}, writ.Object{"event": "c"}, writ.Object{"event": "d"}, writ.Object{"event": "e"}, writ.Object{"event": "f"})
	_, _, older, _ := log(t, "gate", writ.Object{"event": "a"})
	own := cosign(good[evidence.Checkpoint])
	a, err := evidence.Verify(with(evidence.Cosigned{Checkpoint: own}), w)
	if err != nil || len(a.Witnesses) != 1 || a.Witnesses[0].Witness != "w" || a.Witnesses[0].Events != 6 {
		t.Errorf("%+v %v", a, err)
	}
	for name, f := range map[string]map[string][]byte{
		"none":                       good,
		"of another audit":           with(evidence.Cosigned{Checkpoint: cosign(other)}),
		"of fewer events":            with(evidence.Cosigned{Checkpoint: cosign(older)}),
		"with a proof too much":      with(evidence.Cosigned{Checkpoint: own, Proof: make([]ledger.Hash, 1)}),
		"not signed":                 with(evidence.Cosigned{Checkpoint: string(good[evidence.Checkpoint])}),
		"changed":                    with(evidence.Cosigned{Checkpoint: strings.Replace(own, "\n6\n", "\n7\n", 1)}),
		"signed by the witness only": with(evidence.Cosigned{Checkpoint: own[:strings.Index(own, "— ")] + own[strings.LastIndex(own, "— "):]}),
	} {
		if a, err := evidence.Verify(f, w); fault.ReasonOf(err) != "bad_evidence" {
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
}

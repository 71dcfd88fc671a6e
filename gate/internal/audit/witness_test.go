package audit_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"writ/fault"
	"writ/gate/internal/audit"
	"writ/ledger"
)

// witness is a C2SP tlog-witness: it remembers the newest checkpoint of one
// ledger, and signs only one that is proven to continue it.
type witness struct {
	*httptest.Server
	key    ed25519.PrivateKey
	vkey   string
	trusts note.Verifiers
	answer func(http.ResponseWriter) bool // instead, if it returns true

	mu    sync.Mutex
	calls int
	size  int64
	root  tlog.Hash
}

const witnessName = "witness.example.org/w1"

func newWitness(t *testing.T, trusts string) *witness {
	t.Helper()
	w := &witness{key: ed25519.NewKeyFromSeed([]byte("not-a-real-key-of-any-witness-00"))}
	public := append([]byte{4}, w.key.Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte(witnessName+"\n"), public...))
	w.vkey = witnessName + "+" + hex.EncodeToString(sum[:4]) + "+" + base64.StdEncoding.EncodeToString(public)
	v, err := note.NewVerifier(trusts)
	if err != nil {
		t.Fatal(err)
	}
	w.trusts = note.VerifierList(v)
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if w.answer != nil && w.answer(rw) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if r.URL.Path != "/prefix/add-checkpoint" || r.Method != http.MethodPost || err != nil {
		rw.WriteHeader(http.StatusTeapot)
		return
	}
	head, signed, _ := strings.Cut(string(body), "\n\n")
	lines := strings.Split(head, "\n")
	old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
	if err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	n, err := note.Open([]byte(signed), w.trusts)
	if err != nil {
		rw.WriteHeader(http.StatusForbidden)
		return
	}
	text := strings.Split(n.Text, "\n")
	size, _ := strconv.ParseInt(text[1], 10, 64)
	raw, _ := base64.StdEncoding.DecodeString(text[2])
	root := tlog.Hash(raw)
	switch {
	case old > size:
		rw.WriteHeader(http.StatusBadRequest)
		return
	case old != w.size || old == size && root != w.root:
		rw.Header().Set("Content-Type", "text/x.tlog.size")
		rw.WriteHeader(http.StatusConflict)
		fmt.Fprintln(rw, w.size)
		return
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		raw, _ := base64.StdEncoding.DecodeString(line)
		proof = append(proof, tlog.Hash(raw))
	}
	if old > 0 && old < size && tlog.CheckTree(proof, size, root, old, w.root) != nil || old == 0 && len(proof) > 0 {
		rw.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	w.size, w.root = size, root
	_, _ = io.WriteString(rw, w.sign(n.Text, 1_780_000_000))
}

// sign returns a line of a signature over a text.
func (w *witness) sign(text string, at uint64) string {
	_, rest, _ := strings.Cut(w.vkey, "+")
	id, _ := hex.DecodeString(rest[:8])
	s := binary.BigEndian.AppendUint64(id, at)
	s = append(s, ed25519.Sign(w.key, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, text))...)
	return "— " + witnessName + " " + base64.StdEncoding.EncodeToString(s) + "\n"
}

// witnessed returns an audit that a witness attends, and a way to let it be asked
// until the state is as wanted.
func (p *place) witnessed(t *testing.T, w *witness) (a *audit.Audit, ask func(why string, until func(audit.WitnessState) bool) audit.WitnessState) {
	t.Helper()
	known, err := ledger.ParseWitness(w.vkey)
	if err != nil {
		t.Fatal(err)
	}
	a = audit.New(audit.Config{Sys: machine(), Store: p.store, Log: p.log, Every: time.Millisecond,
		Witnesses: []audit.Witness{{Witness: known, URL: w.URL + "/prefix/"}}})
	return a, func(why string, until func(audit.WitnessState) bool) audit.WitnessState {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Run(ctx)
		}()
		for {
			if s := a.WitnessStates()[0]; until(s) {
				stop()
				<-done
				return s
			}
			select {
			case <-done:
				t.Fatalf("%s: %+v", why, a.WitnessStates()[0])
			case <-time.After(time.Millisecond):
			}
		}
	}
}

func signedUpTo(n int64) func(audit.WitnessState) bool {
	return func(s audit.WitnessState) bool { return s.Err == nil && s.Events >= n }
}

func failsFor(reason string) func(audit.WitnessState) bool {
	return func(s audit.WitnessState) bool { return fault.ReasonOf(s.Err) == reason }
}

// originKey returns the first key of the audit.
func (p *place) originKey(t *testing.T) string {
	t.Helper()
	r, err := ledger.Read(p.path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return r.Keys()[0]
}

// What the ledger becomes is signed by the witness, step by step, and whoever
// knows the witness can verify that offline.
func TestWitness(t *testing.T) {
	t.Parallel()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	w := newWitness(t, p.originKey(t))
	known, err := ledger.ParseWitness(w.vkey)
	if err != nil {
		t.Fatal(err)
	}
	against := ledger.Against{Witnesses: []ledger.Witness{known}}
	if _, err := ledger.Verify(p.path(), against); fault.ReasonOf(err) != "not_cosigned" {
		t.Errorf("before it signed: %v", err)
	}
	_, ask := p.witnessed(t, w)
	for _, n := range []int{1, 2, 300, 7} {
		p.add(t, n)
		ask("it signs", signedUpTo(int64(p.count)))
	}
	report, err := ledger.Verify(p.path(), against)
	if err != nil || len(report.Cosigned) != 1 || report.Cosigned[0].Events != w.size || report.Cosigned[0].At.Year() != 2026 || !strings.Contains(report.String(), witnessName) {
		t.Errorf("%+v %v", report, err)
	}
	// Another audit of the same store goes on where the witness is, also if that was forgotten.
	if err := os.RemoveAll(filepath.Join(p.path(), "witness")); err != nil {
		t.Fatal(err)
	}
	p.add(t, 1)
	_, ask = p.witnessed(t, w)
	ask("it tells how far it is", signedUpTo(int64(p.count)))
	a, ask := p.witnessed(t, w)
	if s := a.WitnessStates()[0]; s.Events < int64(p.count) {
		t.Errorf("after a restart: %+v", s)
	}
	calls := w.calls
	ask("nothing is new", signedUpTo(int64(p.count)))
	if w.calls > calls+1 {
		t.Errorf("it was asked %d times for nothing", w.calls-calls)
	}
}

// A witness that saw another ledger, or more of it, does not sign; nothing else stops.
func TestWitness_seesAnotherLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := open(t, filepath.Join(dir, "gate"))
	w := newWitness(t, p.originKey(t))
	p.add(t, 3)
	_, ask := p.witnessed(t, w)
	ask("it signs", signedUpTo(3))
	// A second ledger with the same key and other events.
	q := open(t, filepath.Join(dir, "other"))
	q.serial = 1
	q.add(t, 1)
	a, ask := q.witnessed(t, w)
	ask("it has seen more", failsFor("witness_ahead"))
	q.add(t, 9)
	s := ask("it has seen others", failsFor("witness_refused"))
	if !strings.Contains(fault.TextOf(s.Err), "Run: writ audit verify") {
		t.Errorf("%v", s.Err)
	}
	if err := a.CatchUp(t.Context()); err != nil {
		t.Errorf("a witness stops the audit: %v", err)
	}
	if text := string(q.read(t)); strings.Count(text, "audit.witness_failed") != 1 {
		t.Errorf("the events:\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(q.path(), "witness")); err == nil {
		t.Error("something was kept")
	}
}

// Whatever a witness answers, it is believed only if it signed this checkpoint.
func TestWitness_hostile(t *testing.T) {
	t.Parallel()
	p := open(t, filepath.Join(t.TempDir(), "gate"))
	p.add(t, 1)
	w := newWitness(t, p.originKey(t))
	with := func(status int, kind, body string) func(http.ResponseWriter) bool {
		return func(rw http.ResponseWriter) bool {
			rw.Header().Set("Content-Type", kind)
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, body)
			return true
		}
	}
	_, ask := p.witnessed(t, w)
	const tlogSize = "text/x.tlog.size"
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter) bool
		reason string
	}{
		{"nothing", with(200, "", ""), "bad_cosignature"},
		{"no signature", with(200, "", "<html>\n"), "bad_cosignature"},
		{"of another text", with(200, "", w.sign("x\n", 1)), "bad_cosignature"},
		{"of a time that never comes", with(200, "", w.sign("x\n", 1<<63)), "bad_cosignature"},
		{"without end", with(200, "", strings.Repeat(w.sign("x\n", 1), 10_000)), "bad_cosignature"},
		{"more than there is", with(409, tlogSize, "999999\n"), "witness_ahead"},
		{"less than nothing", with(409, tlogSize, "-1\n"), "witness_refused"},
		{"no number", with(409, tlogSize, strings.Repeat("9", 400)+"\n"), "witness_refused"},
		{"always another size", with(409, tlogSize, "0\n"), "witness_refused"},
		{"unknown", with(404, "", ""), "witness_unknown"},
		{"not trusted", with(403, "", ""), "witness_unknown"},
		{"does not continue", with(422, "", ""), "witness_refused"},
		{"elsewhere", func(rw http.ResponseWriter) bool { rw.Header().Set("Location", "/x"); rw.WriteHeader(307); return true }, "witness_failed"},
		{"broken", with(500, "", "x"), "witness_failed"},
	} {
		w.mu.Lock()
		w.answer = c.answer
		w.mu.Unlock()
		ask(c.name, failsFor(c.reason))
	}
	if kept, err := os.ReadDir(filepath.Join(p.path(), "witness")); err == nil {
		t.Errorf("something was kept: %v", kept)
	}
	w.mu.Lock()
	w.answer = nil
	w.mu.Unlock()
	ask("it signs at last", signedUpTo(int64(p.count)))
	w.Close()
	p.add(t, 1)
	a, ask := p.witnessed(t, w)
	ask("it is gone", failsFor("witness_unreachable"))
	if err := a.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := string(p.read(t)); strings.Count(text, "audit.witness_failed") != 2 || strings.Count(text, "audit.witness_signs") != 1 {
		t.Errorf("the events:\n%s", text)
	}
}

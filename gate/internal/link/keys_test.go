package link_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/link"
	"writ/gate/internal/model"
	"writ/ledger"
)

func keyOf(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func publicOf(name string) ed25519.PublicKey {
	return ed25519.PublicKey(keyOf(name)[ed25519.SeedSize:])
}

func idOf(name string) string { return writ.KeyID(publicOf(name)) }

// turns makes an audit whose key changes after each event, and returns what the
// executor shows of its keys, and when each change was.
func turns(t *testing.T, names ...string) []writ.FormerKey {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := ledger.Open(dir, ledger.Options{Name: "writ/executor/site-a", Key: keyOf(names[0]), Now: time.Now})
	for i := range names {
		if err == nil && i > 0 {
			err = l.Rotate(keyOf(names[i]))
		}
		if err == nil {
			var line []byte
			if line, err = ledger.Line(writ.Object{"sequence": int64(i + 1)}); err == nil {
				err = l.Append(line)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	keys, err := ledger.ReadSigners(dir)
	if err != nil || len(keys) != len(names) {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	var former []writ.FormerKey
	for i := range len(keys) - 1 {
		former = append(former, writ.FormerKey{KeyID: writ.KeyID(keys[i].Key), Seam: keys[i+1].Seam})
	}
	return former
}

// said is an executor that says of itself what it is told to.
type said struct {
	mu sync.Mutex
	h  writ.Hello
}

func (s *said) say(name string, former ...writ.FormerKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h = writ.Hello{Executor: "site-a", KeyID: idOf(name), Former: former}
}

func (s *said) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, s.h)
}

// recorded collects events: who followed whom.
type recorded struct {
	all  []string
	fail error
}

func (r *recorded) record(kind model.EventType, detail writ.Object) error {
	if r.fail == nil {
		r.all = append(r.all, string(kind)+" "+detail["before"].(string)+" "+detail["key_id"].(string)+" "+detail["how"].(string))
	}
	return r.fail
}

func read(t *testing.T, path, named string, r *recorded) *link.Keys {
	t.Helper()
	k, err := link.ReadKeys(path, publicOf(named), writ.At(time.Now()))
	if err == nil {
		err = k.Keep(r.record)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A key is taken only with what the trusted one has signed, is written down before
// it is trusted, and none before it is ever taken again.
func TestHello_followsTheKey(t *testing.T) {
	t.Parallel()
	x, r := new(said), new(recorded)
	socket := serve(t, x.ServeHTTP)
	path := filepath.Join(t.TempDir(), "executor-keys.json")
	e := link.New(socket, read(t, path, "one", r))
	hello := func() error {
		_, err := e.Hello(t.Context())
		return err
	}
	refused := func(reason string) {
		t.Helper()
		before := len(r.all)
		wantFault(t, hello(), fault.Refused, reason)
		if len(r.all) != before {
			t.Errorf("what was refused is recorded: %v", r.all)
		}
	}
	ways, forged := turns(t, "one", "two", "three"), turns(t, "thief", "two")
	x.say("one")
	if err := hello(); err != nil || len(r.all) != 0 {
		t.Fatal(err, r.all)
	}
	x.say("two")
	refused("untrusted_key")
	x.say("two", forged...)
	refused("untrusted_key")
	x.say("thief", ways...) // what is proven is another key than the one that it has
	refused("untrusted_key")
	x.say("two", writ.FormerKey{Seam: strings.Replace(ways[0].Seam, "since 2", "since 1", 1)})
	refused("untrusted_key")
	x.say("three", ways[1])
	refused("untrusted_key") // a link of the chain is missing

	r.fail = fault.New(fault.Unavailable, "The disk is full.")
	x.say("two", ways[0])
	wantFault(t, hello(), fault.Unavailable, "")
	r.fail = nil
	x.say("one")
	if err := hello(); err != nil {
		t.Errorf("a key was trusted that was not written down: %v", err)
	}
	x.say("three", ways...)
	if err := hello(); err != nil {
		t.Fatal(err)
	}
	want := []string{"executor.key_changed " + idOf("one") + " " + idOf("two") + " signed by the key before",
		"executor.key_changed " + idOf("two") + " " + idOf("three") + " signed by the key before"}
	if strings.Join(r.all, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v", r.all)
	}

	// The statement is shown again, and the keys of before; also after a restart.
	for range 2 {
		x.say("two", ways[0])
		refused(ledger.Retired)
		x.say("one")
		refused(ledger.Retired)
		x.say("thief", turns(t, "one", "thief")...)
		refused("untrusted_key")
		x.say("one", turns(t, "one", "two", "three", "one")...)
		refused(ledger.Retired)
		x.say("three")
		if err := hello(); err != nil {
			t.Error(err)
		}
		e = link.New(socket, read(t, path, "one", r))
	}
	if len(r.all) != 2 {
		t.Errorf("%v", r.all)
	}
}

// People may name another key: it is trusted at once, what the one before signs
// leads nowhere, and the file of before is no way back.
func TestKeys_named(t *testing.T) {
	t.Parallel()
	r := new(recorded)
	path := filepath.Join(t.TempDir(), "executor-keys.json")
	read(t, path, "one", r)
	read(t, path, "two", r)
	if len(r.all) != 1 || !strings.HasSuffix(r.all[0], "named in gate.yaml") {
		t.Errorf("%v", r.all)
	}
	for _, named := range []string{"one", "two"} {
		k := read(t, path, named, r)
		if _, id := k.All().Last(); id != idOf("two") || len(k.All()) != 2 || len(k.All().Unbroken()) != 1 || len(r.all) != 1 {
			t.Errorf("named %s: %v %v", named, k.All(), r.all)
		}
	}
	x := new(said)
	x.say("thief", turns(t, "one", "thief")...)
	_, err := link.New(serve(t, x.ServeHTTP), read(t, path, "two", r)).Hello(t.Context())
	wantFault(t, err, fault.Refused, "untrusted_key")
}

func TestReadKeys_refuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "executor-keys.json")
	read(t, path, "one", new(recorded))
	x := new(said)
	x.say("two", turns(t, "one", "two")...)
	if _, err := link.New(serve(t, x.ServeHTTP), read(t, path, "one", new(recorded))).Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing": "", "no key": "[]", "half": string(good[:len(good)/2]), "another proof": strings.Replace(string(good), "segment 1", "segment 2", 1),
		"another time": strings.Replace(string(good), `"since": "2`, `"since": "1`, 1),
	} {
		if text == string(good) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := link.ReadKeys(path, publicOf("one"), writ.Time{}); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.TextOf(err), "Run: rm ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A receipt of the old key counts for what was before the new one, and for nothing else.
func TestReceipts_ofTheKeyOfThen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := ledger.Open(dir, ledger.Options{Name: "writ/executor/site-a", Key: keyOf("one"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := int64(0)
	sign := func() string {
		n++
		line, err := ledger.Line(writ.Object{"sequence": n})
		if err == nil {
			err = l.Append(line)
		}
		text, wrong := l.Sign()
		if err != nil || wrong != nil {
			t.Fatal(err, wrong)
		}
		return string(text)
	}
	before := sign()
	if err := l.Rotate(keyOf("two")); err != nil {
		t.Fatal(err)
	}
	after := sign()
	keys, err := ledger.ReadSigners(dir)
	if err != nil {
		t.Fatal(err)
	}
	since := keys[1].Since
	was, is := writ.At(since.Add(-time.Minute)), writ.At(since.Add(time.Minute))
	former := []writ.FormerKey{{KeyID: idOf("one"), Seam: keys[1].Seam}}
	for _, c := range []struct {
		name, key, checkpoint string
		issued, ended         writ.Time
		reason                string
	}{
		{"old, of before", "one", before, was, was, ""},
		{"new, of a run of before", "two", after, was, is, ""},
		{"new", "two", after, is, is, ""},
		{"old, ended later", "one", before, was, is, ledger.Retired},
		{"old, of a writ of later", "one", before, is, was, ledger.Retired},
		{"new, with a checkpoint of the old", "two", before, is, is, "bad_checkpoint"},
		{"old, with a checkpoint of the new", "one", after, was, was, "bad_checkpoint"},
		{"of a stranger", "thief", before, was, was, "unknown_key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sealed, err := writ.Seal(writ.KindReceipt, writ.Receipt{Format: writ.FormatReceipt, Run: "run_1", Sequence: 1, FinishedAt: c.ended, Checkpoint: c.checkpoint}, keyOf(c.key))
			if err != nil {
				t.Fatal(err)
			}
			path := serve(t, func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Path == writ.PathHello {
					answer(w, http.StatusOK, writ.Hello{KeyID: idOf("two"), Former: former})
					return
				}
				answer(w, http.StatusOK, writ.RunState{Run: "run_1", Finished: true, Receipts: [][]byte{sealed}})
			})
			trust, err := link.ReadKeys(filepath.Join(t.TempDir(), "k"), publicOf("one"), writ.Time{})
			if err != nil {
				t.Fatal(err)
			}
			e := link.New(path, trust)
			if c.key == "one" { // else it finds out by itself that the key changed
				if _, err := e.Hello(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err = e.Receipts(t.Context(), "run_1", c.issued, 0, 0)
			if c.reason != "" {
				wantFault(t, err, fault.Refused, c.reason)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

package evidence_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/evidence"
	"writ/fault"
	"writ/ledger"
)

func id(name string) string { return writ.KeyID(public(name)) }

// turned makes a ledger of lines whose key changes after so many of them.
func turned(t *testing.T, name string, lines [][]byte, after int, when time.Time) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := ledger.Open(dir, ledger.Options{Name: "writ/" + name, Key: key(name), Now: func() time.Time { return when }})
	if err == nil {
		err = l.Append(lines[:after]...)
	}
	if err == nil {
		err = l.Rotate(key(name + "2"))
	}
	if err == nil {
		err = l.Append(lines[after:]...)
	}
	if err == nil {
		_, err = l.Checkpoint()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// executors returns the executor's keys, the second of which is valid since a time.
func executors(t *testing.T, since time.Time) ledger.Signers {
	t.Helper()
	line, err := ledger.Line(writ.Object{"sequence": int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ledger.ReadSigners(turned(t, "executor", [][]byte{line}, 1, since))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Receipts are judged by the key that was valid when they were signed; whoever
// knows that key, or one from which it follows, need not believe the files.
func TestVerify_executorKeyChanged(t *testing.T) {
	t.Parallel()
	later, before := executors(t, at.Add(time.Minute)), executors(t, at.Add(-time.Minute))
	named := ledger.Signers{later[0], {Key: public("executor2"), Since: writ.At(at.Add(time.Minute))}}
	strangers := ledger.Signers{{Key: public("thief")}, later[1]}
	for name, c := range map[string]struct {
		keys ledger.Signers
		last string
		from []string // nil: refused
	}{
		"after the change":                  {later, "executor2", []string{id("executor")}},
		"before the change":                 {before, "executor2", nil},
		"after the change, by people":       {named, "executor2", []string{id("executor")}},
		"by a key that does not follow":     {strangers, "executor2", nil},
		"with another present key":          {later, "executor", nil},
		"twice the same key":                {ledger.Signers{later[0], later[0]}, "executor", nil},
		"with one before, named by people":  {ledger.Signers{{Key: public("thief")}, {Key: public("executor")}}, "executor", []string{id("executor")}},
		"without the keys that came before": {nil, "executor", []string{id("executor")}},
	} {
		all := files(t)
		text, err := json.Marshal(evidence.KeyPair{Gate: public("gate"), Executor: public(c.last), Executors: c.keys})
		if err != nil {
			t.Fatal(err)
		}
		all[evidence.Keys] = text
		a, err := evidence.Verify(all)
		switch {
		case c.from == nil && fault.ReasonOf(err) != "bad_evidence":
			t.Errorf("%s: %+v %v", name, a, err)
		case c.from != nil && (err != nil || a.Executor != id("executor") || !cmp.Equal(a.ExecutorFrom, c.from)):
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
}

// The writ counts if it is signed with the key that the gate had when it wrote
// that down, also if another one has signed the audit since.
func TestVerify_gateKeyChanged(t *testing.T) {
	t.Parallel()
	good := files(t)
	var events []evidence.Event
	if err := json.Unmarshal(good[evidence.Events], &events); err != nil {
		t.Fatal(err)
	}
	lines := make([][]byte, len(events))
	for i, e := range events {
		lines[i] = []byte(e.Line)
	}
	for _, c := range []struct {
		after  int
		when   time.Duration // after the writ was issued
		reason string
	}{
		{6, time.Minute, ""}, {4, time.Minute, ""}, // event 4 tells of the writ
		{3, time.Minute, ""}, // and was written anew, as after a recovery
		{3, -time.Minute, "bad_evidence"}, {0, -time.Minute, "bad_evidence"},
	} {
		after, reason := c.after, c.reason
		dir := turned(t, "gate", lines, after, at.Add(c.when))
		r, err := ledger.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		all := maps.Clone(good)
		for i := range events {
			if events[i].Proof, err = r.Prove(int64(i + 1)); err != nil {
				t.Fatal(err)
			}
		}
		all[evidence.Checkpoint], _ = r.Checkpoint()
		all[evidence.Seams] = append(bytes.Join(r.Seams(), []byte("\n")), '\n')
		r.Close()
		text, err1 := json.Marshal(events)
		keys, err2 := json.Marshal(evidence.KeyPair{Gate: public("gate2"), Executor: public("executor")})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		all[evidence.Events], all[evidence.Keys] = text, keys
		a, err := evidence.Verify(all)
		if fault.ReasonOf(err) != reason || err == nil && (a.Gate != id("gate2") || !cmp.Equal(a.GateFrom, []string{id("gate"), id("gate2")})) {
			t.Errorf("after %d events: %+v %v", after, a, err)
		}
		// A key that only the files name, and that signed nothing, is not the gate's.
		all[evidence.Keys], err = json.Marshal(evidence.KeyPair{Gate: public("gate"), Executor: public("executor")})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := evidence.Verify(all); fault.ReasonOf(err) != "bad_evidence" {
			t.Errorf("after %d events, with the old key: %+v %v", after, a, err)
		}
	}
}

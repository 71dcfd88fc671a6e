package ledger_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"writ/fault"
	"writ/ledger"
)

// vkey returns the public key of a witness.
func vkey(name string, algorithm byte) (public string, id []byte) {
	data := append([]byte{algorithm}, key(name)[ed25519.SeedSize:]...)
	sum := sha256.Sum256(append([]byte(name+"\n"), data...))
	return name + "+" + hex.EncodeToString(sum[:4]) + "+" + base64.StdEncoding.EncodeToString(data), sum[:4]
}

func witness(t testing.TB, name string) ledger.Witness {
	t.Helper()
	public, _ := vkey(name, 4)
	w, err := ledger.ParseWitness(public)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// cosignature is what the witness of a name answers.
func cosignature(name string, signed []byte, at uint64) []byte {
	text, _, _ := bytes.Cut(signed, []byte("\n\n"))
	_, id := vkey(name, 4)
	s := binary.BigEndian.AppendUint64(id, at)
	s = append(s, ed25519.Sign(key(name), fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s\n", at, text))...)
	return fmt.Appendf(nil, "— %s %s\n", name, base64.StdEncoding.EncodeToString(s))
}

const june = 1_780_272_000 // 2026-06-01

func TestParseWitness(t *testing.T) {
	t.Parallel()
	good, _ := vkey("w", 4)
	plain, _ := vkey("w", 1) // signs notes, not checkpoints as a witness
	for _, public := range []string{
		"", "w", "w+00000000", plain, strings.ToUpper(good), strings.Replace(good, "w", "x", 1), good + "A", good[:len(good)-4], "a b" + good[1:], good + "\n",
		"w+" + strings.Repeat("0", 8) + good[10:],
	} {
		if w, err := ledger.ParseWitness(public); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %+v %v", public, w, err)
		}
	}
	if w := witness(t, "w"); w.Name != "w" || !strings.HasPrefix(good, "w+"+w.ID+"+") {
		t.Errorf("%+v", w)
	}
}

func TestCosign(t *testing.T) {
	t.Parallel()
	_, signed := made(t, 3, options())
	w := witness(t, "w")
	mine := cosignature("w", signed, june)
	note, err := w.Cosign(signed, append(cosignature("other", signed, june), mine...))
	if err != nil || string(note) != string(signed)+string(mine) {
		t.Fatalf("%s %v", note, err)
	}
	seen, was, err := w.Open(note)
	if err != nil || seen.Events != 3 || seen.Witness != "w" || seen.At.String() != "2026-06-01T00:00:00.000Z" || !bytes.Equal(was, signed) {
		t.Errorf("%+v %s %v", seen, was, err)
	}
	later := cosignature("w", signed, june+1)
	for name, answer := range map[string][]byte{
		"another's":            cosignature("other", signed, june),
		"of another text":      cosignature("w", bytes.Replace(signed, []byte("\n3\n"), []byte("\n4\n"), 1), june),
		"of no time there is":  cosignature("w", signed, 1<<63),
		"of two halves":        append(bytes.Clone(mine[:len(mine)-10]), later[len(later)-10:]...),
		"no line":              mine[:len(mine)-1],
		"more than is read":    bytes.Repeat(mine, 1000),
		"a line of no meaning": append([]byte("x\n"), mine...),
	} {
		if note, err := w.Cosign(signed, answer); fault.ReasonOf(err) != "bad_cosignature" {
			t.Errorf("%s: %s %v", name, note, err)
		}
	}
}

// A ledger that is not the one that a witness has signed is found.
func TestVerify_witness(t *testing.T) {
	t.Parallel()
	w := witness(t, "w")
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, options())
	keep := func() {
		t.Helper()
		signed := checkpoint(t, l)
		note, err := w.Cosign(signed, cosignature("w", signed, june))
		if err == nil {
			err = w.Keep(dir, note)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	verify := func() (ledger.Report, error) {
		return ledger.Verify(dir, ledger.Against{Witnesses: []ledger.Witness{w}})
	}
	if _, err := verify(); fault.CodeOf(err) != fault.Invalid || fault.ReasonOf(err) != "not_cosigned" {
		t.Errorf("without: %v", err)
	}
	keep() // of no events
	grow(t, l, 300)
	keep()
	grow(t, l, 5)
	checkpoint(t, l)
	report, err := verify()
	want := "; the witness w had seen the first 300 of them on 2026-06-01T00:00:00.000Z"
	if err != nil || len(report.Cosigned) != 1 || !strings.HasSuffix(report.String(), want) {
		t.Errorf("%s %v", report, err)
	}
	path := filepath.Join(dir, "witness", w.ID)
	_, other := made(t, 300, ledger.Options{Name: "writ/test", Key: key("gate"), Now: now})
	for name, change := range map[string]func(string) string{
		"damaged":        swap("\n300\n", "\n299\n"),
		"of another":     func(string) string { return string(other) + string(cosignature("w", other, june)) },
		"of more":        func(string) string { return string(longer(t)) },
		"unsigned":       func(s string) string { return s[:strings.LastIndex(s, "— ")] },
		"not the gate's": func(s string) string { return s[:strings.Index(s, "— ")] + s[strings.LastIndex(s, "— "):] },
	} {
		was := files(t, dir)[filepath.Join("witness", w.ID)]
		edit(t, path, change)
		if report, err := verify(); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %s %v", name, report, err)
		}
		edit(t, path, func(string) string { return was })
	}
	if _, err := verify(); err != nil {
		t.Error(err)
	}
}

// longer is a checkpoint of more events of the same ledger, signed by the witness.
func longer(t *testing.T) []byte {
	t.Helper()
	_, signed := made(t, 400, options())
	return append(signed, cosignature("w", signed, june)...)
}

func TestContinues(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, options())
	var all []ledger.Checkpoint
	for _, n := range []int{0, 1, 2, 250, 7, 300} {
		grow(t, l, n)
		c, err := ledger.ParseCheckpoint(checkpoint(t, l))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	r, err := ledger.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	last := all[len(all)-1]
	for _, c := range all {
		proof, err := r.ProveFrom(c.Size)
		if err == nil {
			err = ledger.Continues(last, c, proof)
		}
		if err != nil {
			t.Errorf("from %d: %v", c.Size, err)
		}
		other := c
		other.Root[0] ^= 1
		if c.Size > 0 && ledger.Continues(last, other, proof) == nil {
			t.Errorf("from another root of %d", c.Size)
		}
		other = c
		other.Origin += "x"
		if ledger.Continues(last, other, proof) == nil {
			t.Errorf("from another origin of %d", c.Size)
		}
	}
	if _, err := r.ProveFrom(last.Size + 1); err == nil {
		t.Error("more than there is was proven")
	}
	if ledger.Continues(all[1], last, nil) == nil {
		t.Error("a shorter one continues a longer one")
	}
}

// Whatever a witness answers, it is read in bounds, and what is taken is signed.
func FuzzCosign(f *testing.F) {
	_, signed := made(f, 3, options())
	w := witness(f, "w")
	good := cosignature("w", signed, june)
	f.Add(good)
	f.Add([]byte("— w AAAA\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		note, err := w.Cosign(signed, answer)
		if err != nil {
			return
		}
		if seen, was, err := w.Open(note); err != nil || seen.Events != 3 || !bytes.Equal(was, signed) {
			t.Errorf("%q: %+v %v", answer, seen, err)
		}
	})
}

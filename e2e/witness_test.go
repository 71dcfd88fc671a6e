package e2e_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"writ/ledger"
)

// witness is a C2SP tlog-witness, written from its specification: it signs a
// checkpoint that is proven to continue the one it signed before.
type witness struct {
	name string
	key  ed25519.PrivateKey
	log  note.Verifiers // whose checkpoints it signs

	mu   sync.Mutex
	away bool // it hangs up on everybody
	size int64
	root tlog.Hash
}

// public is the key as the operator of the witness tells it.
func (w *witness) public() string {
	return w.name + "+" + hex.EncodeToString(w.id()) + "+" + base64.StdEncoding.EncodeToString(w.typed())
}

func (w *witness) typed() []byte { return append([]byte{4}, w.key.Public().(ed25519.PublicKey)...) }

func (w *witness) id() []byte {
	sum := sha256.Sum256(append([]byte(w.name+"\n"), w.typed()...))
	return sum[:4]
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if w.away || err != nil {
		panic(http.ErrAbortHandler)
	}
	status, answer := w.add(string(body))
	if status == http.StatusConflict {
		rw.Header().Set("Content-Type", "text/x.tlog.size")
	}
	rw.WriteHeader(status)
	_, _ = io.WriteString(rw, answer) // whoever hung up asks again
}

// add answers a call of add-checkpoint.
func (w *witness) add(body string) (status int, answer string) {
	head, signed, _ := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
	n, wrong := note.Open([]byte(signed), w.log)
	if wrong != nil {
		return http.StatusForbidden, ""
	}
	tree, wrong := tlog.ParseTree([]byte(treeHead(n.Text)))
	if err != nil || wrong != nil || old > tree.N {
		return http.StatusBadRequest, ""
	}
	if old != w.size || old == tree.N && tree.Hash != w.root {
		return http.StatusConflict, fmt.Sprintln(w.size)
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return http.StatusBadRequest, ""
		}
		proof = append(proof, hash)
	}
	if old > 0 && old < tree.N && tlog.CheckTree(proof, tree.N, tree.Hash, old, w.root) != nil {
		return http.StatusUnprocessableEntity, ""
	}
	w.size, w.root = tree.N, tree.Hash
	return http.StatusOK, w.sign(n.Text)
}

// treeHead is the text of a checkpoint as the Go checksum database writes one.
func treeHead(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	lines := strings.SplitN(rest, "\n", 3)
	if len(lines) < 2 {
		return ""
	}
	return "go.sum database tree\n" + lines[0] + "\n" + lines[1] + "\n"
}

func (w *witness) sign(text string) string {
	at := uint64(time.Now().Unix())
	s := binary.BigEndian.AppendUint64(w.id(), at)
	s = append(s, ed25519.Sign(w.key, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, text))...)
	return "— " + w.name + " " + base64.StdEncoding.EncodeToString(s) + "\n"
}

// witnessCommands start a witness of the gate's audit and make it go away.
//
//	witness            start it, after the gate was started once; $WITNESS_URL, $WITNESS_KEY, and the key of another one, $OTHER_WITNESS
//	witness-is STATE   here or away
func witnessCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"witness": func(s *script, _ []string) {
			audit, err := ledger.Read(filepath.Join(s.dir, "gate", "audit"))
			s.Check(err)
			log := audit.Keys()[0] // as doctor names it, for the operator of the witness
			audit.Close()
			trusted, err := note.NewVerifier(log)
			s.Check(err)
			s.witness = &witness{name: "witness.example.org", key: ed25519.NewKeyFromSeed([]byte("not-a-real-key-of-any-witness-00")), log: note.VerifierList(trusted)}
			server := httptest.NewServer(s.witness)
			s.Defer(server.Close)
			other := &witness{name: s.witness.name, key: ed25519.NewKeyFromSeed([]byte("not-a-real-key-of-any-witness-01"))}
			s.Setenv("WITNESS_URL", server.URL)
			s.Setenv("WITNESS_KEY", s.witness.public())
			s.Setenv("OTHER_WITNESS", other.public())
		},
		"witness-is": func(s *script, args []string) {
			s.need(args, 1, "witness-is here|away")
			s.witness.mu.Lock()
			defer s.witness.mu.Unlock()
			s.witness.away = args[0] == "away"
		},
	}
}

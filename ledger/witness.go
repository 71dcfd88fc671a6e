package ledger

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"writ"
	"writ/fault"
)

// Witness is somebody elsewhere who signs checkpoints of a ledger, after it was
// proven to them that each continues the one before: a C2SP tlog-cosignature of
// the version 1, with an Ed25519 key.
type Witness struct {
	Name  string
	ID    string // of its key: 8 hexadecimal digits
	hash  uint32
	plain note.Verifier // of the key alone
}

// cosignatureKey is the algorithm of a witness's public key.
const cosignatureKey = 4

// ParseWitness reads the public key of a witness, in the form of a note's:
// name+id+base64, of a byte 4 and 32 bytes of Ed25519.
func ParseWitness(public string) (w Witness, err error) {
	parts := strings.SplitN(public, "+", 3)
	if len(parts) != 3 {
		return w, badWitness(nil, public)
	}
	key, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(key) != 33 || key[0] != cosignatureKey || base64.StdEncoding.EncodeToString(key) != parts[2] {
		return w, badWitness(err, public)
	}
	sum := sha256.Sum256(append([]byte(parts[0]+"\n"), key...))
	w = Witness{Name: parts[0], ID: parts[1], hash: binary.BigEndian.Uint32(sum[:])}
	plain, err := note.NewEd25519VerifierKey(w.Name, key[1:])
	if err != nil || w.ID != fmt.Sprintf("%08x", w.hash) {
		return w, badWitness(err, public)
	}
	w.plain, err = note.NewVerifier(plain)
	return w, err
}

func badWitness(cause error, public string) error {
	return fault.Wrap(fault.Invalid, cause, "%.80q is no public key of a witness: name+id+key, of the type 4, as the witness's operator tells it.", public).Because("bad_witness")
}

// cosigner verifies what a witness signs.
type cosigner struct{ w Witness }

// Name and KeyHash are how a note names the key.
func (c cosigner) Name() string    { return c.w.Name }
func (c cosigner) KeyHash() uint32 { return c.w.hash }

// latest is the last second of the year 9999: no witness lives longer.
const latest = 253402300799

// Verify takes the time and the signature over it and the text.
func (c cosigner) Verify(text, signature []byte) bool {
	if len(signature) != 8+64 {
		return false
	}
	at := binary.BigEndian.Uint64(signature)
	return at <= latest && c.w.plain.Verify([]byte(fmt.Sprintf("cosignature/v1\ntime %d\n%s", at, text)), signature[8:])
}

// Cosigned says what a witness had seen of a ledger, and when by its own clock.
type Cosigned struct {
	Witness string    `json:"witness"`
	Events  int64     `json:"events"`
	At      writ.Time `json:"at"`
}

// maxCosigned bounds a checkpoint with cosignatures, in bytes.
const maxCosigned = 64 << 10

// Cosign adds what a witness answered to the checkpoint that it was asked to
// sign. Signatures of anybody else in the answer are left out.
func (w Witness) Cosign(signed, answer []byte) ([]byte, error) {
	if len(answer) > maxCosigned {
		return nil, badCosignature(nil, w, "it is too long")
	}
	n, err := note.Open(append(append([]byte(nil), signed...), answer...), note.VerifierList(cosigner{w}))
	if err != nil || len(n.Sigs) != 1 {
		return nil, badCosignature(err, w, "it is no signature of that witness for the checkpoint")
	}
	return fmt.Appendf(nil, "%s— %s %s\n", signed, n.Sigs[0].Name, n.Sigs[0].Base64), nil
}

// Open reads a checkpoint that the witness must have signed. What remains
// without its signature is returned, for it says nothing of who else signed.
func (w Witness) Open(cosigned []byte) (c Cosigned, signed []byte, err error) {
	if len(cosigned) > maxCosigned {
		return c, nil, badCosignature(nil, w, "it is too long")
	}
	n, err := note.Open(cosigned, note.VerifierList(cosigner{w}))
	if err != nil || len(n.Sigs) != 1 {
		return c, nil, badCosignature(err, w, "it is not signed by that witness")
	}
	signature, err := base64.StdEncoding.DecodeString(n.Sigs[0].Base64)
	if err != nil || len(signature) < 12 {
		return c, nil, badCosignature(err, w, "its signature cannot be read")
	}
	if signed, err = note.Sign(&note.Note{Text: n.Text, Sigs: n.UnverifiedSigs}); err != nil {
		return c, nil, badCosignature(err, w, "it cannot be read")
	}
	what, err := ParseCheckpoint(signed)
	at := time.Unix(int64(binary.BigEndian.Uint64(signature[4:])), 0)
	return Cosigned{w.Name, what.Size, writ.At(at)}, signed, err
}

func badCosignature(cause error, w Witness, what string) error {
	return fault.Wrap(fault.Invalid, cause, "The cosignature of the witness %s is refused: %s.", w.Name, what).Because("bad_cosignature")
}

// Keep writes down the newest checkpoint that the witness has signed.
func (w Witness) Keep(dir string, cosigned []byte) error {
	if err := os.Mkdir(filepath.Join(dir, "witness"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return unusable(err, "The directory witness of the audit %s cannot be made. Check the disk.", dir)
	}
	return replace(w.path(dir), cosigned)
}

func (w Witness) path(dir string) string { return filepath.Join(dir, "witness", w.ID) }

// Kept returns the newest checkpoint that the witness has signed, as it is in a
// directory; fault.NotFound if there is none.
func (w Witness) Kept(dir string) ([]byte, error) {
	info, err := os.Lstat(w.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.NotFound, err, "The ledger holds no cosignature of the witness %s.", w.Name).Because("not_cosigned")
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCosigned {
		return nil, badCosignature(err, w, "its file is no file, or too large")
	}
	return os.ReadFile(w.path(dir))
}

// ProveFrom returns the proof that the ledger's own checkpoint continues one of
// so many events.
func (r *Reader) ProveFrom(size int64) ([]Hash, error) {
	own := r.v.own
	if size < 0 || size > own.Size {
		return nil, fault.New(fault.Invalid, "The checkpoint covers %d events, and not %d.", own.Size, size)
	}
	if size == 0 || size == own.Size {
		return nil, nil
	}
	proof, err := tlog.ProveTree(own.Size, size, tlog.TileHashReader(tlog.Tree{N: own.Size, Hash: own.Root}, tileReader{r.v}))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The tiles do not prove what the first %d events were. Verify the ledger.", size).Because("bad_tile")
	}
	return proof, nil
}

// Continues checks the proof that one checkpoint continues another.
func Continues(c, before Checkpoint, proof []Hash) error {
	var err error
	switch {
	case before.Origin != c.Origin || before.Size > c.Size:
		err = fs.ErrInvalid
	case before.Size == c.Size:
		if before.Root != c.Root || len(proof) > 0 {
			err = fs.ErrInvalid
		}
	case before.Size > 0:
		err = tlog.CheckTree(proof, c.Size, c.Root, before.Size, before.Root)
	}
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "The checkpoint of %d events does not continue the one of %d.", c.Size, before.Size).Because("bad_checkpoint")
	}
	return nil
}

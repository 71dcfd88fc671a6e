package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"writ"
	"writ/fault"
)

// Checkpoint is what a signed checkpoint says: so many events, and their root.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   Hash
}

// text returns the text of the note.
func (c Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// ParseCheckpoint reads a signed checkpoint without asking who signed it.
func ParseCheckpoint(signed []byte) (Checkpoint, error) {
	c, more, err := parseText(signed)
	if err == nil && len(more) > 0 {
		err = badCheckpoint(nil, "it has more than three lines")
	}
	return c, err
}

// OpenCheckpoint reads a checkpoint that must be signed with one of the keys.
func OpenCheckpoint(signed []byte, keys writ.Keyring) (Checkpoint, error) {
	c, err := ParseCheckpoint(signed)
	if err != nil {
		return c, err
	}
	err = badCheckpoint(nil, "it is signed with no key that is known")
	for _, key := range keys {
		public, wrong := PublicKey(c.Origin, key)
		if wrong != nil {
			return c, wrong
		}
		if err = signedWith(signed, public); err == nil {
			return c, nil
		}
	}
	return c, err
}

var sizeForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})$`)

// parseText reads the first three lines of a note and returns those that follow.
func parseText(signed []byte) (c Checkpoint, more []string, err error) {
	text, _, found := strings.Cut(string(signed), "\n\n")
	lines := strings.Split(text, "\n")
	if !found || len(lines) < 3 || lines[0] == "" || !sizeForm.MatchString(lines[1]) {
		return c, nil, badCheckpoint(nil, "it is no signed note of an origin, a size and a root")
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) {
		return c, nil, badCheckpoint(err, "its root is not 32 bytes in base64")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return c, nil, badCheckpoint(err, "its size is no number")
	}
	return Checkpoint{lines[0], size, Hash(root)}, lines[3:], nil
}

// signedWith reports whether a note is signed with a public key, and every byte
// of it is as a signer writes it.
func signedWith(signed []byte, public string) error {
	verifier, err := note.NewVerifier(public)
	if err != nil {
		return badCheckpoint(err, "the key %.80q is no public key of a note", public)
	}
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return badCheckpoint(err, "it is not signed with the key %.8s of %s", keyID(public), verifier.Name())
	}
	if again, err := note.Sign(n); err != nil || !bytes.Equal(again, signed) || len(n.UnverifiedSigs) > 0 {
		return badCheckpoint(err, "it is not written as its signer writes it")
	}
	// The last character of a signature has bits that stand for nothing.
	if _, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[0].Base64); err != nil {
		return badCheckpoint(err, "its signature is not written as its signer writes it")
	}
	return nil
}

// keyID returns the part of a public key that names it.
func keyID(public string) string {
	parts := strings.SplitN(public, "+", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[1]
}

// PublicKey returns a key in the form in which a note's verifier takes it.
func PublicKey(origin string, key ed25519.PublicKey) (string, error) {
	public, err := note.NewEd25519VerifierKey(origin, key)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "The key %s cannot sign a checkpoint.", writ.KeyID(key))
	}
	return public, nil
}

// signer signs for one origin with one key.
type signer struct {
	note   note.Signer
	public string
}

func newSigner(origin string, key ed25519.PrivateKey) (signer, error) {
	if len(key) != ed25519.PrivateKeySize {
		return signer{}, fault.New(fault.Internal, "The key of the audit is not an Ed25519 key.")
	}
	public, err := PublicKey(origin, ed25519.PublicKey(key[ed25519.SeedSize:]))
	if err != nil {
		return signer{}, err
	}
	const ed25519Note = 1 // the algorithm, before the key
	private := base64.StdEncoding.EncodeToString(append([]byte{ed25519Note}, key.Seed()...))
	s, err := note.NewSigner("PRIVATE+KEY+" + origin + "+" + keyID(public) + "+" + private)
	if err != nil {
		return signer{}, fault.New(fault.Internal, "The key of the audit cannot sign a checkpoint of %.80q.", origin)
	}
	return signer{s, public}, nil
}

func (s signer) sign(text string) ([]byte, error) {
	signed, err := note.Sign(&note.Note{Text: text}, s.note)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "The checkpoint cannot be signed.")
	}
	return signed, nil
}

func badCheckpoint(cause error, format string, args ...any) error {
	return fault.Wrap(fault.Invalid, cause, "The checkpoint is wrong: %s.", fmt.Sprintf(format, args...)).Because("bad_checkpoint")
}

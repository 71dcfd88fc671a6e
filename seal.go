package writ

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"

	"writ/fault"
)

// Digest is "sha256:" and 64 hexadecimal digits.
type Digest string

// DigestOf returns the digest of v's canonical bytes.
func DigestOf(v any) (Digest, error) {
	b, err := Canonical(v)
	if err != nil {
		return "", err
	}
	return DigestBytes(b), nil
}

// DigestBytes returns the digest of b as it is.
func DigestBytes(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest("sha256:" + hex.EncodeToString(sum[:]))
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Valid reports whether d has the form of a digest.
func (d Digest) Valid() bool { return digestForm.MatchString(string(d)) }

// Kind is what a sealed text is. A text sealed as one kind opens as no other.
type Kind string

// The kinds of sealed texts.
const (
	KindWrit        Kind = "writ"
	KindObservation Kind = "observation"
	KindReceipt     Kind = "receipt"
	KindFinding     Kind = "finding"
)

type sealed struct {
	KeyID     string          `json:"key_id"`
	Payload   json.RawMessage `json:"payload"`
	Signature string          `json:"signature"`
}

// KeyID returns the name of a public key in sealed texts.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return "ed25519:" + hex.EncodeToString(sum[:8])
}

// Keyring holds the public keys that are trusted for a purpose, by key id.
type Keyring map[string]ed25519.PublicKey

// NewKeyring returns a keyring of keys.
func NewKeyring(keys ...ed25519.PublicKey) Keyring {
	ring := Keyring{}
	for _, k := range keys {
		ring[KeyID(k)] = k
	}
	return ring
}

// Seal returns payload as a sealed text of the kind.
func Seal(kind Kind, payload any, key ed25519.PrivateKey) ([]byte, error) {
	body, err := Canonical(payload)
	if err != nil {
		return nil, err
	}
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok || len(key) != ed25519.PrivateKeySize {
		return nil, fault.New(fault.Internal, "The signing key is not an Ed25519 key.")
	}
	return Canonical(sealed{
		KeyID:     KeyID(public),
		Payload:   body,
		Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed(kind, body))),
	})
}

// Open checks a sealed text of the kind against the keys and decodes its
// payload into out. It fails with fault.Refused if any byte is not as it was
// sealed; out is written to only on success of the signature.
func Open(kind Kind, data []byte, keys Keyring, out any) error {
	var s sealed
	if err := Decode(data, &s); err != nil {
		return refused(err, "malformed", "The %s is malformed: %s", kind, fault.TextOf(err))
	}
	canonical, err := Canonical(s)
	if err != nil || !bytes.Equal(canonical, data) {
		return refused(err, "not_canonical", "The %s is not in canonical form.", kind)
	}
	key, ok := keys[s.KeyID]
	if !ok {
		return refused(nil, "unknown_key", "The %s is signed with a key that is not trusted here. Compare the key ids on both sides.", kind)
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(s.Signature)
	if err != nil || !ed25519.Verify(key, signed(kind, s.Payload), signature) {
		return refused(err, "bad_signature", "The signature of the %s does not fit its content.", kind)
	}
	if err := Decode(s.Payload, out); err != nil {
		return refused(err, "malformed", "The %s is malformed: %s", kind, fault.TextOf(err))
	}
	return nil
}

// SealedBy returns the id of the key that a sealed text says it is sealed with,
// without asking whether that is so; "" if it is none.
func SealedBy(data []byte) string {
	var s struct {
		KeyID string `json:"key_id"`
	}
	_ = json.Unmarshal(data, &s) // without a key it is nobody's
	return s.KeyID
}

func signed(kind Kind, payload []byte) []byte {
	return append([]byte("writ/v1 "+string(kind)+"\n"), payload...)
}

func refused(cause error, reason, format string, args ...any) error {
	return fault.Wrap(fault.Refused, cause, format, args...).Because(reason)
}

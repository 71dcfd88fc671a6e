package ledger

import (
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"writ"
	"writ/fault"
)

// Signer is a key, and since when it is the one that signs.
type Signer struct {
	Key   ed25519.PublicKey `json:"key"`   // base64
	Since writ.Time         `json:"since"` // the zero time: from the beginning
	// Seam is the line of the audit in which the key before names this one; "" if
	// people named it, or if there is none before.
	Seam string `json:"seam"`
}

// Signers are the keys of one writer, the oldest first. The last signs now; each
// other one until the next. What one of them is trusted for follows from a seam,
// or from people, never from whoever shows a key.
type Signers []Signer

// Retired is the reason of the refusal of what a key signed that is valid no more.
const Retired = "retired_key"

// Last returns the key that signs now, and its id; nil and "" if there is none.
func (s Signers) Last() (ed25519.PublicKey, string) {
	if len(s) == 0 {
		return nil, ""
	}
	key := s[len(s)-1].Key
	return key, writ.KeyID(key)
}

// Find returns where the key with an id is, -1 if it is not there.
func (s Signers) Find(id string) int {
	return slices.IndexFunc(s, func(one Signer) bool { return writ.KeyID(one.Key) == id })
}

// Keyring returns all the keys.
func (s Signers) Keyring() writ.Keyring {
	ring := writ.Keyring{}
	for _, one := range s {
		ring[writ.KeyID(one.Key)] = one.Key
	}
	return ring
}

// Unbroken returns the last keys that each follow from the one before by a seam.
func (s Signers) Unbroken() Signers {
	first := len(s) - 1
	for first > 0 && s[first].Seam != "" {
		first--
	}
	return s[max(first, 0):]
}

// Follow returns the keys with the one that a seam names. The last must have
// signed the seam, and the new one must be none of those before: nothing leads
// back to a key that is retired.
func (s Signers) Follow(line string) (Signers, error) {
	last, id := s.Last()
	seam, note, err := readSeam([]byte(line))
	if err != nil {
		return nil, err
	}
	key, err := rawKey(seam.Origin, seam.key)
	if err != nil {
		return nil, err
	}
	public, err := PublicKey(seam.Origin, last)
	if err != nil {
		return nil, err
	}
	if err := signedWith(note, public); err != nil {
		return nil, err
	}
	if s.Find(writ.KeyID(key)) >= 0 {
		return nil, fault.New(fault.Refused, "The key %s is not new: it signs already, or did before %s.", writ.KeyID(key), id).Because(Retired)
	}
	return append(slices.Clone(s), Signer{key, seam.since, line}), nil
}

// Check reports whether each key is another one, and follows from the one before
// by its seam, if it has one.
func (s Signers) Check() error {
	for i, one := range s {
		if len(one.Key) != ed25519.PublicKeySize || s[:i].Find(writ.KeyID(one.Key)) >= 0 {
			return badSeam(nil, "the keys around it are none, or twice the same")
		}
		if one.Seam == "" {
			continue
		}
		next, err := s[:i].Follow(one.Seam)
		if err != nil || !next[i].Key.Equal(one.Key) || !next[i].Since.Equal(one.Since.Time) {
			return badSeam(err, "it does not lead to the key "+writ.KeyID(one.Key))
		}
	}
	return nil
}

// OpenReceipt reads a receipt of a writ that was issued at a time, and the
// checkpoint in it. Both must be signed with the same key, and that one must have
// been valid: for the number of events that the checkpoint covers, when the step
// ended, and when the writ was issued.
func (s Signers) OpenReceipt(sealed []byte, issued writ.Time, r *writ.Receipt) (Checkpoint, error) {
	if err := writ.Open(writ.KindReceipt, sealed, s.Keyring(), r); err != nil {
		return Checkpoint{}, err
	}
	at := s.Find(writ.SealedBy(sealed))
	c, err := OpenCheckpoint([]byte(r.Checkpoint), writ.NewKeyring(s[at].Key))
	if err != nil {
		return c, fault.Wrap(fault.Refused, err, "A receipt has no checkpoint of the executor's audit that is signed with the key of the receipt.").Because("bad_checkpoint")
	}
	if n, origin := s[at].from(); c.Origin == origin && c.Size < n {
		return c, fault.New(fault.Refused, "A receipt is signed with the key %s, which was not valid yet for its checkpoint of %d events.", writ.KeyID(s[at].Key), c.Size).Because("early_key")
	}
	if at+1 == len(s) {
		return c, nil
	}
	next := s[at+1]
	n, origin := next.from()
	if r.FinishedAt.After(next.Since.Time) || issued.After(next.Since.Time) || c.Origin == origin && c.Size > n {
		return c, fault.New(fault.Refused, "A receipt is signed with the key %s, which was valid until %s only: another one follows it.", writ.KeyID(s[at].Key), next.Since).Because(Retired)
	}
	return c, nil
}

// from returns how many events of which ledger come before the key's own.
func (s Signer) from() (events int64, origin string) {
	if seam, _, err := readSeam([]byte(s.Seam)); err == nil {
		return seam.Size, seam.Origin
	}
	return 0, ""
}

// At returns the keys up to the one that was valid for an event of their ledger.
func (s Signers) At(event int64) Signers {
	at := 0
	for i, one := range s {
		if before, _ := one.from(); before < event {
			at = i
		}
	}
	return s[:at+1]
}

// Valid reports whether the key with an id was the one that signs at a time.
func (s Signers) Valid(id string, t writ.Time) bool {
	at := s.Find(id)
	return at >= 0 && (at+1 == len(s) || !t.After(s[at+1].Since.Time))
}

// ReadSigners returns the keys that signed the ledger in a directory, after those
// of ledgers that were set aside beside it, as audit.before-1. One of those that
// cannot be read proves nothing.
func ReadSigners(dir string) (all Signers, err error) {
	beside, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The directory of %s cannot be listed.", dir)
	}
	add := func(dir string) error {
		r, err := Read(dir)
		if err != nil {
			return err
		}
		defer r.Close()
		some, err := signersOf(r.v.segments)
		if err == nil && all.Find(writ.KeyID(some[0].Key)) >= 0 {
			some = some[1:] // it went on with the key of before
		}
		all = append(all, some...)
		return err
	}
	for _, e := range beside {
		if strings.HasPrefix(e.Name(), filepath.Base(dir)+".before-") {
			_ = add(filepath.Join(filepath.Dir(dir), e.Name())) // what it proves is all that is lost
		}
	}
	return all, add(dir)
}

func signersOf(segments []*segment) (all Signers, err error) {
	for i, s := range segments {
		if i > 0 && s.key == segments[i-1].key {
			continue
		}
		one := Signer{Since: s.since}
		if i > 0 {
			one.Seam = string(s.line)
		}
		if one.Key, err = rawKey(s.Origin, s.key); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// rawKey returns the key in a note's public key of an origin.
func rawKey(origin, public string) (ed25519.PublicKey, error) {
	_, text, _ := strings.Cut(strings.TrimPrefix(public, origin+"+"), "+")
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err == nil && len(raw) == 1+ed25519.PublicKeySize {
		if again, err := PublicKey(origin, raw[1:]); err == nil && again == public {
			return raw[1:], nil
		}
	}
	return nil, badSeam(err, "its key is no public key of this ledger")
}

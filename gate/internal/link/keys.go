package link

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"

	"writ"
	"writ/disk"
	"writ/fault"
	"writ/gate/internal/model"
	"writ/ledger"
)

// Keys are the keys that the executor signed with, as the gate has taken them. The
// first one is named by people. Another one follows only if the one before has
// signed that, or if people name it; nothing leads back to one before. They are
// safe for concurrent use.
type Keys struct {
	path string

	mu     sync.Mutex
	all    ledger.Signers
	kept   int // so many are in the file
	record func(model.EventType, writ.Object) error
}

// Trust returns one key that is trusted until the process ends.
func Trust(key ed25519.PublicKey) *Keys { return &Keys{all: ledger.Signers{{Key: key}}} }

// ReadKeys reads the file of the keys that were taken, which need not be there,
// and adds the key that people name, unless it is in it. Nothing is written.
func ReadKeys(path string, named ed25519.PublicKey, now writ.Time) (*Keys, error) {
	k := &Keys{path: path}
	text, err := os.ReadFile(path)
	if err == nil {
		if err = json.Unmarshal(text, &k.all); err == nil {
			err = k.all.Check()
		}
		if err == nil && len(k.all) == 0 {
			err = fs.ErrInvalid
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be read, or was changed. Put it back from a copy; without one, make sure that executor.key in gate.yaml is the key "+
			"that the executor has now, and remove the file: that key is then trusted, and none before it. Run: rm %s", path, path)
	}
	switch k.kept = len(k.all); {
	case k.kept == 0:
		k.all = ledger.Signers{{Key: named}}
	case k.all.Find(writ.KeyID(named)) < 0:
		k.all = append(k.all, ledger.Signer{Key: named, Since: now})
	}
	return k, nil
}

// Keep writes down the keys that are not in the file yet, and from now on each
// before it is trusted. Every key but the first is an event.
func (k *Keys) Keep(record func(model.EventType, writ.Object) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.record = record
	return k.keep(k.all)
}

// All returns the keys, the oldest first.
func (k *Keys) All() ledger.Signers {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all
}

// follow takes the key that the executor has now, if each one since the key that
// is trusted has signed which one follows it.
func (k *Keys) follow(h writ.Hello) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, id := k.all.Last()
	if now != nil && id == h.KeyID {
		return nil
	}
	if at := k.all.Find(h.KeyID); at >= 0 {
		return fault.New(fault.Refused, "The executor signs with its key %.40s of before, which another one followed on %s. If its directory was put back from an old copy, give it a new key, "+
			"write that one at executor.key in gate.yaml, and start both again. Run: writ-executor rotate-key --dir EXECUTOR", h.KeyID, k.all[at+1].Since).Because(ledger.Retired)
	}
	next := k.all
	for _, f := range h.Former {
		if more, err := next.Follow(f.Seam); err == nil {
			next = more // else it is of a key that is not the last one
		}
	}
	if _, last := next.Last(); last != h.KeyID || len(k.all) == 0 {
		return fault.New(fault.Refused, "The executor signs with another key (%.40s) than the one that is trusted (%s), which has not signed that this one follows it. "+
			"If it is the right one, write the key that this prints at executor.key in gate.yaml, then start the gate again. Run: writ-executor doctor --dir EXECUTOR", h.KeyID, id).Because("untrusted_key")
	}
	if err := k.keep(next); err != nil {
		return err
	}
	k.all = next
	return nil
}

// keep makes keys durable.
func (k *Keys) keep(all ledger.Signers) error {
	if k.record == nil || k.kept == len(all) {
		return nil
	}
	for i := max(k.kept, 1); i < len(all); i++ {
		one, how := all[i], "signed by the key before"
		if one.Seam == "" {
			how = "named in gate.yaml"
		}
		err := k.record(model.ExecutorKeyChanged, writ.Object{
			"before": writ.KeyID(all[i-1].Key), "key_id": writ.KeyID(one.Key), "key": base64.StdEncoding.EncodeToString(one.Key),
			"since": one.Since.String(), "how": how, "seam": one.Seam,
		})
		if err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fault.Wrap(fault.Internal, err, "The keys of the executor cannot be written as JSON.")
	}
	if err := disk.Replace(k.path, append(text, '\n')); err != nil {
		return err
	}
	k.kept = len(all)
	return nil
}

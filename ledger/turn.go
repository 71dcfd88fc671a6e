package ledger

import (
	"crypto/ed25519"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"writ"
	"writ/failpoint"
)

// turn goes on in a new segment, from which the key signs.
func (l *Log) turn(key string) error {
	before := l.last
	err := l.newSegment(seam{number: before.number + 1, before: writ.DigestBytes(before.line), key: key})
	if err != nil {
		return err
	}
	if err := l.file.Close(); err != nil {
		return unusable(err, "The segment %s cannot be closed. Check the disk.", before.path)
	}
	if l.file, err = os.OpenFile(l.last.path, os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW, 0); err != nil {
		return unusable(err, "The segment %s cannot be opened for writing. Check its owner and mode.", l.last.path)
	}
	return l.holdFile(l.last.path)
}

// Rotate makes another key the one that signs. The old one signs the seam that
// names it. Afterwards the old one is of no more use to the ledger.
func (l *Log) Rotate(key ed25519.PrivateKey) error {
	if err := l.Append(); err != nil {
		return err
	}
	next, err := newSigner(l.signer.note.Name(), key)
	if err == nil {
		err = l.turn(next.public)
	}
	if err != nil {
		return l.end(err)
	}
	l.signer, l.signed = next, -1
	_, err = l.Checkpoint()
	return err
}

// Sign returns a signed checkpoint of all events, without writing it down.
func (l *Log) Sign() ([]byte, error) {
	if l.failed != nil {
		return nil, l.failed
	}
	return l.signer.sign(Checkpoint{l.signer.note.Name(), l.tree.Size(), l.tree.Root()}.text())
}

// Signed returns how many events the checkpoint on the disk covers.
func (l *Log) Signed() int64 { return l.signed }

// Checkpoint signs all events and writes the checkpoint, and before it the tiles
// that belong to it. It returns after all of it is durable.
func (l *Log) Checkpoint() ([]byte, error) {
	if err := l.Append(); err != nil {
		return nil, err
	}
	if l.signed == l.tree.Size() {
		return l.note, nil
	}
	if err := l.checkpoint(); err != nil {
		return nil, l.end(err)
	}
	return l.note, nil
}

func (l *Log) checkpoint() error {
	signed, err := l.Sign()
	if err != nil {
		return err
	}
	var partial []string
	for _, p := range l.tiles.partials() {
		if err := writeTile(l.dir, p.path, p.hashes); err != nil {
			return err
		}
		partial = append(partial, p.path)
	}
	if err := l.syncTiles(slices.Concat(l.unsynced, partial)); err != nil {
		return err
	}
	path := filepath.Join(l.dir, "checkpoint")
	failpoint.Reach(failpoint.CheckpointNext)
	if err := replace(path, signed); err != nil {
		return err
	}
	failpoint.Reach(failpoint.CheckpointNamed)
	for _, old := range l.partial {
		if !slices.Contains(partial, old) {
			_ = os.Remove(filepath.Join(l.dir, old)) // one that stays does no harm
			_ = os.Remove(filepath.Join(l.dir, filepath.Dir(old)))
		}
	}
	info, err := os.Lstat(path)
	if err != nil {
		return unusable(err, "%s was removed. Put it back, then start again.", path)
	}
	l.files[0] = held{path, info, int64(len(signed))}
	l.note, l.signed, l.unsynced, l.partial = signed, l.tree.Size(), nil, partial
	return nil
}

// syncTiles makes tiles durable, and the directories that lead to them.
func (l *Log) syncTiles(paths []string) error {
	dirs := map[string]bool{}
	for _, path := range paths {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			dirs[filepath.Join(l.dir, dir)] = true
		}
	}
	var all []string
	for _, path := range paths {
		all = append(all, filepath.Join(l.dir, path))
	}
	return errors.Join(syncPaths(all...), syncPaths(slices.Sorted(maps.Keys(dirs))...), syncPaths(l.dir))
}

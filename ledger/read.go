package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"

	"writ"
	"writ/fault"
)

// lines yields the lines from an offset on, without their newlines. A line is
// good until the next. A torn line is not yielded.
func (s *segment) lines(from int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		most := min(s.bytes-from, writ.MaxSize) + 1 // no line is longer
		r := bufio.NewReaderSize(io.NewSectionReader(s.file, from, s.bytes-from), int(most))
		for {
			line, err := r.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, fault.Wrap(fault.Unavailable, err, "The segment %s cannot be read to its end. Verify the ledger.", s.path))
				return
			}
			if !yield(line[:len(line)-1], nil) {
				return
			}
		}
	}
}

// Reader reads a ledger without verifying all of it: what it proves, it
// verifies, against the ledger's own checkpoint.
type Reader struct{ v *verification }

// Read opens a ledger for reading and checks its seams and its checkpoint. Its
// writer may go on writing.
func Read(dir string) (*Reader, error) {
	v := &verification{dir: dir}
	var unread error
	v.snapshot, unread = takeSnapshot(dir)
	v.segments, v.broken = openSegments(dir)
	if err := errors.Join(v.broken, unread); err != nil {
		v.close()
		return nil, err
	}
	v.report.Origin = v.segments[0].Origin
	if err := v.checkpoints(); err != nil {
		v.close()
		return nil, err
	}
	return &Reader{v}, nil
}

// Close closes the files.
func (r *Reader) Close() { r.v.close() }

// Checkpoint returns the ledger's own checkpoint as it is signed, and what it says.
func (r *Reader) Checkpoint() ([]byte, Checkpoint) { return r.v.note, r.v.own }

// Keys returns the public keys in the order in which they signed.
func (r *Reader) Keys() (keys []string) {
	for _, s := range r.v.segments {
		if len(keys) == 0 || keys[len(keys)-1] != s.key {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// Seams returns the first lines of the segments. With them somebody can verify
// a checkpoint who knows only the first key.
func (r *Reader) Seams() (lines [][]byte) {
	for _, s := range r.v.segments {
		lines = append(lines, s.line)
	}
	return lines
}

// Each gives the events after a sequence to do, each with its own. A line is
// good until the next.
func (r *Reader) Each(after int64, do func(sequence int64, line []byte) error) error {
	for i, s := range r.v.segments {
		if i+1 < len(r.v.segments) && r.v.segments[i+1].Size <= after {
			continue
		}
		sequence := s.Size
		for line, err := range s.lines(s.start()) {
			if sequence++; err == nil && sequence > after {
				err = do(sequence, line)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Prove returns the proof that the event with this sequence is in the ledger's
// own checkpoint.
func (r *Reader) Prove(sequence int64) ([]Hash, error) {
	own := r.v.own
	if sequence < 1 || sequence > own.Size {
		return nil, fault.New(fault.NotFound, "The checkpoint covers %d events, and not event %d.", own.Size, sequence)
	}
	proof, err := tlog.ProveRecord(own.Size, sequence-1, tlog.TileHashReader(tlog.Tree{N: own.Size, Hash: own.Root}, tileReader{r.v}))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The tiles do not prove event %d. Verify the ledger.", sequence).Because("bad_tile")
	}
	return proof, nil
}

// Proves checks that a line is the event with this sequence of a checkpoint.
func Proves(c Checkpoint, sequence int64, line []byte, proof []Hash) error {
	if sequence < 1 || sequence > c.Size {
		return fault.New(fault.Invalid, "The checkpoint covers %d events, and not event %d.", c.Size, sequence).Because("event_missing")
	}
	if err := tlog.CheckRecord(proof, c.Size, c.Root, sequence-1, Leaf(line)); err != nil {
		return fault.Wrap(fault.Invalid, err, "Event %d is not the one that the checkpoint covers.", sequence).Because("event_changed")
	}
	return nil
}

// tileReader reads the tiles of a directory.
type tileReader struct{ v *verification }

// Height returns the height of the tiles.
func (tileReader) Height() int { return tileHeight }

// ReadTiles reads tiles.
func (r tileReader) ReadTiles(all []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(all))
	for i, t := range all {
		hashes, err := r.v.readTile(r.v.dir, tilePath(t.L, t.N, t.W))
		if err != nil {
			return nil, err
		}
		data[i] = hashes
	}
	return data, nil
}

// SaveTiles has nothing to do: they are where they were read.
func (tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

// snapshot is what a writer replaces while others read: the checkpoint, and the
// tiles that are not full at its size.
type snapshot struct {
	note     []byte
	partials map[string][]byte // by path
}

// takeSnapshot reads both as they belong together.
func takeSnapshot(dir string) (s snapshot, err error) {
	path := filepath.Join(dir, "checkpoint")
	for range 10 {
		if s.note, err = os.ReadFile(path); err != nil {
			return s, fault.Wrap(fault.Invalid, err, "The ledger's own checkpoint cannot be read. Put %s back from a copy.", path).Because("bad_checkpoint")
		}
		s.partials = map[string][]byte{}
		c, wrong := ParseCheckpoint(s.note)
		if wrong != nil {
			return s, nil // its reader says so
		}
		for level, n := 0, c.Size; n > 0; level, n = level+1, n/tileWidth {
			if width := int(n % tileWidth); width > 0 {
				at := tilePath(level, n/tileWidth, width)
				if hashes, err := os.ReadFile(filepath.Join(dir, at)); err == nil {
					s.partials[at] = hashes
				}
			}
		}
		if again, err := os.ReadFile(path); err == nil && bytes.Equal(again, s.note) {
			break
		}
	}
	return s, nil
}

// readTile reads one tile.
func (s snapshot) readTile(dir, path string) ([]byte, error) {
	if hashes, ok := s.partials[path]; ok {
		return hashes, nil
	}
	return os.ReadFile(filepath.Join(dir, path))
}

// OpenSeams reads a checkpoint without the ledger itself: from the first lines
// of its segments follows which key may sign it. It returns the keys as well, up to
// the one that signed it.
func OpenSeams(seams [][]byte, signed []byte) (Checkpoint, Signers, error) {
	v := new(verification)
	var before *seam
	for i, line := range seams {
		s, err := parseSeam(line, before, seams[max(i-1, 0)])
		if err != nil {
			return Checkpoint{}, nil, err
		}
		v.segments, before = append(v.segments, &segment{seam: s, line: line}), s
	}
	if before == nil {
		return Checkpoint{}, nil, badSeam(nil, "there is none")
	}
	v.report.Origin = before.Origin
	c, at, err := v.signed(signed)
	if err != nil {
		return c, nil, err
	}
	keys, err := signersOf(v.segments[:at+1])
	return c, keys, err
}

// Dir returns the directory of the ledger.
func (l *Log) Dir() string { return l.dir }

package ledger

import (
	"crypto/sha256"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"writ/fault"
)

// Hash is a hash of the Merkle tree.
type Hash = tlog.Hash

// Leaf returns the hash of an event's line.
func Leaf(line []byte) Hash { return tlog.RecordHash(line) }

// Tree is a Merkle tree in its compact form: enough to add leaves and to know
// the root. Its zero value is the empty tree. A copy is a tree of its own.
type Tree struct {
	size  int64
	peaks []Hash // of the complete subtrees, from the largest to the smallest
}

// ParseTree returns the tree of size leaves whose Peaks were kept.
func ParseTree(size int64, peaks []byte) (Tree, error) {
	if size < 0 || len(peaks) != bits.OnesCount64(uint64(size))*tlog.HashSize {
		return Tree{}, fault.New(fault.Unavailable, "What is stored of the audit's tree is damaged. Restore the newest backup of the store.")
	}
	t := Tree{size: size}
	for part := range slices.Chunk(peaks, tlog.HashSize) {
		t.peaks = append(t.peaks, Hash(part))
	}
	return t, nil
}

// Size returns the number of leaves.
func (t Tree) Size() int64 { return t.size }

// Peaks returns what ParseTree needs besides the size: 32 bytes for each 1 in
// the binary form of the size.
func (t Tree) Peaks() []byte {
	var b []byte
	for _, p := range t.peaks {
		b = append(b, p[:]...)
	}
	return b
}

// Add returns the tree with one more leaf.
func (t Tree) Add(leaf Hash) Tree {
	peaks := append(slices.Clone(t.peaks), leaf)
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(peaks) - 1
		peaks = append(peaks[:last-1], tlog.NodeHash(peaks[last-1], peaks[last]))
	}
	return Tree{t.size + 1, peaks}
}

// Root returns the hash that stands for all leaves.
func (t Tree) Root() Hash { return fold(t.peaks) }

// fold joins peaks, given from the largest to the smallest.
func fold(peaks []Hash) Hash {
	if len(peaks) == 0 {
		return sha256.Sum256(nil)
	}
	root := peaks[len(peaks)-1]
	for i := len(peaks) - 2; i >= 0; i-- {
		root = tlog.NodeHash(peaks[i], root)
	}
	return root
}

package ledger

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
	tileBytes  = tileWidth * tlog.HashSize
)

// tilePath returns where a tile lies in a ledger.
func tilePath(level int, n int64, width int) string {
	path := tlog.Tile{H: tileHeight, L: level, N: n, W: width}.Path()
	return filepath.Join("tile", strings.TrimPrefix(path, "tile/8/"))
}

// tiles is the right edge of a tree: the tiles that are not full yet. It tells
// full of each tile that becomes full.
type tiles struct {
	size   int64
	levels [][]byte // of each level the hashes of its last tile
	full   func(level int, n int64, hashes []byte)
}

// add adds a leaf.
func (t *tiles) add(leaf Hash) {
	t.size++
	for level, count := 0, t.size; ; level++ {
		if level == len(t.levels) {
			t.levels = append(t.levels, make([]byte, 0, tileBytes))
		}
		t.levels[level] = append(t.levels[level], leaf[:]...)
		if len(t.levels[level]) < tileBytes {
			return
		}
		count /= tileWidth
		t.full(level, count-1, t.levels[level])
		leaf = fold(peaksOf(t.levels[level]))
		t.levels[level] = t.levels[level][:0]
	}
}

// peaks returns the complete subtrees, from the largest to the smallest.
func (t *tiles) peaks() (all []Hash) {
	for _, hashes := range slices.Backward(t.levels) {
		all = append(all, peaksOf(hashes)...)
	}
	return all
}

func (t *tiles) tree() Tree { return Tree{t.size, t.peaks()} }
func (t *tiles) root() Hash { return fold(t.peaks()) }

// peaksOf returns the complete subtrees over the hashes of one tile.
func peaksOf(hashes []byte) (all []Hash) {
	var nodes [tileWidth]Hash
	for at, n := 0, len(hashes)/tlog.HashSize; n > 0; {
		width := 1
		for width*2 <= n {
			width *= 2
		}
		for i := range width {
			nodes[i] = Hash(hashes[(at+i)*tlog.HashSize:][:tlog.HashSize])
		}
		for w := width; w > 1; w /= 2 {
			for i := range w / 2 {
				nodes[i] = tlog.NodeHash(nodes[2*i], nodes[2*i+1])
			}
		}
		all = append(all, nodes[0])
		at, n = at+width, n-width
	}
	return all
}

// partial is a tile that is not full.
type partial struct {
	level  int
	path   string
	hashes []byte
}

// partials returns the tiles that are not full, for the present size.
func (t *tiles) partials() (all []partial) {
	count := t.size
	for level, hashes := range t.levels {
		if len(hashes) > 0 {
			all = append(all, partial{level, tilePath(level, count/tileWidth, len(hashes)/tlog.HashSize), hashes})
		}
		count /= tileWidth
	}
	return all
}

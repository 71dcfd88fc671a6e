package ledger

import (
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// Tiles are not signed: whoever changed an event may have changed hashes as well,
// of that event or of another. What they tell counts only if they give the root of
// a checkpoint.

// wasRecorded reports whether the recorded hashes, from the first on that differs,
// are those that a checkpoint covers.
func (v *verification) wasRecorded(c Checkpoint) bool {
	tree := v.before
	var recorded []byte
	for n := tree.Size(); n < c.Size; n++ {
		if n%tileWidth == 0 || recorded == nil {
			recorded = v.read(n / tileWidth)
		}
		at := int(n%tileWidth) * tlog.HashSize
		if at >= len(recorded) {
			return false
		}
		tree = tree.Add(Hash(recorded[at : at+tlog.HashSize]))
	}
	return tree.Root() == c.Root
}

// countsUp reports whether it is certain that of more or fewer events than a
// checkpoint covers, those that both have are the right ones.
func (v *verification) countsUp(c Checkpoint) bool {
	size := v.tiles.size
	if min(size, c.Size) == v.good {
		return true
	}
	if v.before = v.tiles.tree(); size > c.Size {
		v.before = Tree{}
	}
	return (v.differs < v.good || v.differs >= c.Size) && v.wasRecorded(c)
}

// hashesFit reports whether the recorded hashes of whole tiles, with the events
// behind them, are those that the ledger's own checkpoint covers.
func (v *verification) hashesFit(c Checkpoint) bool {
	if c.Size != v.own.Size || c.Size != v.tiles.size || v.tiled == 0 {
		return false
	}
	var tree Tree
	for whole := c.Size / tileWidth; tree.Size() < whole; {
		width := min(whole-tree.Size(), tileWidth)
		recorded, err := v.readTile(v.dir, tilePath(1, tree.Size()/tileWidth, int(width)))
		if err != nil || len(recorded) != int(width)*tlog.HashSize {
			return false
		}
		for part := range slices.Chunk(recorded, tlog.HashSize) {
			tree = tree.Add(Hash(part))
		}
	}
	return fold(append(tree.peaks, peaksOf(v.tiles.levels[0])...)) == c.Root
}

package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"writ/fault"
)

// Against is what a ledger is compared with, besides itself.
type Against struct {
	Checkpoint []byte // a checkpoint that was kept elsewhere; nil if there is none
	Key        string // the first public key, as it was noted elsewhere; "" takes the ledger's word
	// Witnesses must have signed a checkpoint of the ledger, each.
	Witnesses []Witness
	Workers   int // 0: one a core
	// Progress is told how many bytes are read, of how many.
	Progress func(done, total int64)
}

// Verify reads a ledger to its end or to the first event that is wrong, which
// is the one after the last that it reports. It needs no secret. The error of a
// wrong ledger is fault.Invalid, with one of the reasons event_changed,
// event_missing, bad_form, bad_segment, segment_missing, bad_checkpoint,
// bad_tile, other_key, not_cosigned and bad_cosignature.
func Verify(dir string, a Against) (Report, error) {
	v, err := verify(dir, a, false)
	v.close()
	return v.report, err
}

// verification is one reading of a ledger.
type verification struct {
	dir      string
	against  Against
	report   Report
	segments []*segment
	broken   error      // what is wrong with the segment after those
	snapshot            // of what its writer replaces
	own      Checkpoint // the directory's
	others   []other    // that must be met, by their size
	kept     int64      // events of the one from elsewhere
	seen     []Cosigned
	tiles    tiles
	good     int64 // events up to the last root that was as it should be
	tiled    int64 // events whose tiles must be there
	mend     bool  // write the tiles that a crash may have taken
	mended   error
	recorded []byte   // the hashes of the present tile as they were recorded
	differs  int64    // the first leaf that is not as its tile has it, or -1
	before   Tree     // of the leaves before that one
	tile     string   // the first tile that is not as it should be
	within   [2]int64 // the first events of which a tile of tiles has another hash: from, to
	end      int64    // behind the last whole line of the last segment
	tail     struct {
		segment  int
		from     int64 // where to begin to read
		skip     int64 // so many lines are covered by the checkpoint
		sequence int64
	}
	total int64
}

// other is a checkpoint besides the ledger's own.
type other struct {
	Checkpoint
	whose string
}

// verify reads a ledger. With mend it writes the tiles beyond the checkpoint anew.
func verify(dir string, a Against, mend bool) (*verification, error) {
	v := &verification{dir: dir, against: a, mend: mend, differs: -1}
	v.tiles.full = v.full
	v.tail.segment = -1
	// First the checkpoint, then the lines: a writer may go on meanwhile.
	var unread error
	v.snapshot, unread = takeSnapshot(dir)
	if v.segments, v.broken = openSegments(dir); len(v.segments) == 0 {
		return v, v.broken
	}
	v.report.Origin = v.segments[0].Origin
	for _, s := range v.segments {
		v.total += s.bytes
		v.report.Key = s.key
	}
	if a.Key != "" && a.Key != v.segments[0].key {
		return v, fault.New(fault.Invalid, "The ledger begins with another key than the one that was noted: %s", v.segments[0].key).Because("other_key")
	}
	if unread != nil {
		return v, unread
	}
	if err := v.checkpoints(); err != nil {
		return v, err
	}
	v.tiled = v.own.Size
	if _, err := os.Lstat(filepath.Join(dir, "tile")); mend && errors.Is(err, fs.ErrNotExist) {
		v.tiled = 0 // all of them are made anew
	}
	workers := a.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if err := scan(v.segments, workers, v.visit); err != nil {
		return v, err
	}
	return v, v.finish()
}

func (v *verification) close() { closeSegments(v.segments) }

// checkpoints reads both checkpoints and checks who signed them.
func (v *verification) checkpoints() (err error) {
	if v.own, err = v.checkpoint(v.note); err != nil {
		return fault.Wrap(fault.Invalid, err, "The ledger's own checkpoint is refused. %s", fault.TextOf(err)).Because("bad_checkpoint")
	}
	if v.against.Checkpoint != nil {
		kept, err := v.checkpoint(v.against.Checkpoint)
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "The checkpoint to compare with is refused: it is damaged, of another ledger, or this ledger was written anew. %s", fault.TextOf(err)).Because("bad_checkpoint")
		}
		v.others = append(v.others, other{kept, "the kept checkpoint"})
		v.kept, v.report.Compared = kept.Size, true
	}
	for _, w := range v.against.Witnesses {
		if err := v.cosigned(w); err != nil {
			return err
		}
	}
	slices.SortStableFunc(v.others, func(a, b other) int { return cmp.Compare(a.Size, b.Size) })
	return nil
}

// cosigned reads what a witness has signed.
func (v *verification) cosigned(w Witness) error {
	note, err := w.Kept(v.dir)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "%s", fault.TextOf(err)).Because(fault.ReasonOf(err))
	}
	seen, signed, err := w.Open(note)
	if err != nil {
		return err
	}
	c, err := v.checkpoint(signed)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "What the witness %s has signed is refused: it is of another ledger, or this ledger was written anew. %s", w.Name, fault.TextOf(err)).Because("bad_checkpoint")
	}
	v.others = append(v.others, other{c, "what the witness " + w.Name + " has signed"})
	v.seen = append(v.seen, seen)
	return nil
}

// checkpoint reads a checkpoint that must be signed with the key that was valid
// for its size. At the size at which the key changed, both are.
func (v *verification) checkpoint(signed []byte) (Checkpoint, error) {
	c, _, err := v.signed(signed)
	return c, err
}

// signed reads a checkpoint and returns the last segment that its key began.
func (v *verification) signed(signed []byte) (Checkpoint, int, error) {
	c, err := ParseCheckpoint(signed)
	if err == nil && c.Origin != v.report.Origin {
		err = badCheckpoint(nil, "it is of %.80q", c.Origin)
	}
	if err == nil && c.Size == 0 && c.Root != (Tree{}).Root() {
		err = badCheckpoint(nil, "its root is not that of no events")
	}
	if err != nil {
		return c, 0, err
	}
	for i, s := range v.segments {
		if last := i+1 == len(v.segments); s.Size > c.Size || !last && v.segments[i+1].Size < c.Size {
			continue
		}
		if err = signedWith(signed, s.key); err == nil {
			return c, i, nil
		}
	}
	return c, 0, err
}

// visit takes up the next piece.
func (v *verification) visit(p piece) error {
	s := v.segments[p.segment]
	if p.err != nil {
		return p.err
	}
	if p.from == s.start() {
		if err := v.seam(s); err != nil {
			return err
		}
	}
	if first := v.tiles.size; v.tail.segment < 0 && first+int64(len(p.leaves)) > v.own.Size {
		v.tail.segment, v.tail.from, v.tail.skip = p.segment, p.from, max(v.own.Size-first, 0)
		v.tail.sequence = max(v.own.Size, first) + 1
	}
	for _, leaf := range p.leaves {
		if err := v.add(leaf); err != nil {
			return err
		}
	}
	v.end = p.next
	if p.long {
		return v.wrong(v.tiles.size, "bad_form", "it is longer than a line may be")
	}
	if p.torn {
		if p.segment+1 < len(v.segments) || v.broken != nil {
			return v.wrong(v.tiles.size, "event_missing", "its line is torn, and a segment follows")
		}
		v.report.Torn = true
	}
	if v.against.Progress != nil {
		var done int64
		for _, before := range v.segments[:p.segment] {
			done += before.bytes
		}
		v.against.Progress(done+p.next, v.total)
	}
	return nil
}

// seam compares what is known at the start of a segment with its seam.
func (v *verification) seam(s *segment) error {
	v.report.Segments = s.number + 1
	return v.meets(s.Checkpoint, fmt.Sprintf("the first line of segment %d", s.number))
}

// meets compares the events so far with a checkpoint of so many.
func (v *verification) meets(c Checkpoint, whose string) error {
	switch size := v.tiles.size; {
	case v.differs >= v.good && v.differs < c.Size && (size != c.Size || v.tiles.root() != c.Root) && v.wasRecorded(c):
		return v.wrong(v.differs, "event_changed", "it is not the one that was recorded")
	case size != c.Size && !v.countsUp(c):
		v.report.Events = v.good
		reason := "event_changed"
		if size < c.Size {
			reason = "event_missing"
		}
		return fault.New(fault.Invalid, "There are %d events where %s covers %d, and the tiles do not tell which is the first that is wrong. The events up to %d are in order.",
			size, whose, c.Size, v.good).Because(reason)
	case size < c.Size:
		return v.wrong(size, "event_missing", fmt.Sprintf("it is missing, and %s covers %d events", whose, c.Size))
	case size > c.Size:
		return v.wrong(c.Size, "event_changed", fmt.Sprintf("it is one too many, since %s covers %d events", whose, c.Size))
	case v.tiles.root() == c.Root:
		v.good, v.differs = c.Size, -1
		return nil
	}
	switch v.report.Events = v.good; {
	case v.good == c.Size:
		return fault.New(fault.Invalid, "%s has another root for %s than what was met before, which fits them: one of both is of another ledger.",
			strings.ToUpper(whose[:1])+whose[1:], count(c.Size, "event")).Because("event_changed")
	case v.good+1 == c.Size:
		return v.wrong(v.good, "event_changed", "it is not the one that was recorded, as "+whose+" tells")
	}
	from, to := v.good, c.Size
	if v.within[1] > from && v.within[1] <= to && v.hashesFit(c) {
		from, to = max(from, v.within[0]), v.within[1]
	}
	return fault.New(fault.Invalid, "One of the events %d to %d is not the one that was recorded, as %s tells; the tiles that would tell which were changed with it. The events up to %d are in order.",
		from+1, to, whose, from).Because("event_changed")
}

// add adds one event.
func (v *verification) add(leaf Hash) error {
	n := v.tiles.size
	if n%tileWidth == 0 {
		v.recorded = v.read(n / tileWidth)
	}
	at := int(n%tileWidth) * tlog.HashSize
	if v.differs < 0 && at < len(v.recorded) && Hash(v.recorded[at:at+tlog.HashSize]) != leaf {
		v.differs, v.before = n, v.tiles.tree()
	}
	v.tiles.add(leaf)
	if n+1 == v.own.Size {
		v.edge()
		if err := v.meets(v.own, "the ledger's own checkpoint"); err != nil {
			return err
		}
	}
	for len(v.others) > 0 && v.others[0].Size <= n+1 {
		if o := v.others[0]; o.Size == n+1 {
			if err := v.meets(o.Checkpoint, o.whose); err != nil {
				return err
			}
		}
		v.others = v.others[1:] // one of no events was met before
	}
	return nil
}

// read returns the hashes that were recorded for one tile of events.
func (v *verification) read(n int64) []byte {
	width := min(v.tiled-n*tileWidth, tileWidth)
	if width <= 0 {
		return nil
	}
	path := tilePath(0, n, int(width))
	recorded, err := v.readTile(v.dir, path)
	if err != nil || len(recorded) != int(width)*tlog.HashSize {
		v.misses(path)
		return nil
	}
	return recorded
}

// full compares a tile that has become full with the one that lies there, or
// writes it anew.
func (v *verification) full(level int, n int64, hashes []byte) {
	covers := (n + 1) << (tileHeight * (level + 1))
	path := tilePath(level, n, tileWidth)
	switch {
	case covers > v.tiled && v.mend:
		v.mended = errors.Join(v.mended, writeTile(v.dir, path, hashes))
	case covers <= v.tiled:
		v.compare(level, n, path, hashes)
	}
}

// edge compares the tiles that were not full at the size of the checkpoint.
func (v *verification) edge() {
	if v.tiled == 0 {
		return
	}
	for _, p := range v.tiles.partials() {
		v.compare(p.level, v.own.Size>>(tileHeight*(p.level+1)), p.path, p.hashes)
	}
}

func (v *verification) compare(level int, n int64, path string, hashes []byte) {
	recorded, err := v.readTile(v.dir, path)
	if err == nil && bytes.Equal(recorded, hashes) {
		return
	}
	v.misses(path)
	if level != 1 || v.within[1] > v.good || len(recorded) != len(hashes) {
		return
	}
	at := 0
	for bytes.Equal(recorded[at:at+tlog.HashSize], hashes[at:at+tlog.HashSize]) {
		at += tlog.HashSize
	}
	from := (n*tileWidth + int64(at/tlog.HashSize)) * tileWidth
	v.within = [2]int64{from, from + tileWidth}
}

func (v *verification) misses(path string) {
	if v.tile == "" {
		v.tile = path
	}
}

// finish says what only the end can tell.
func (v *verification) finish() error {
	size := v.tiles.size
	v.report.Events, v.report.Root = size, v.tiles.root()
	v.report.Signed = min(v.own.Size, size)
	if v.broken != nil && v.differs >= v.good {
		return v.wrong(v.differs, "event_changed", "it is not the one that was recorded")
	}
	if v.broken != nil {
		v.report.Events = v.good
		return fault.Wrap(fault.Invalid, v.broken, "After event %d: %s The events up to %d are in order.", size, fault.TextOf(v.broken), v.good).Because(fault.ReasonOf(v.broken))
	}
	if size < v.own.Size {
		return v.meets(v.own, "the ledger's own checkpoint")
	}
	for _, o := range v.others {
		if size < o.Size {
			return v.meets(o.Checkpoint, o.whose)
		}
	}
	v.report.Kept, v.report.Cosigned = v.kept, v.seen
	if v.tile != "" {
		return fault.New(fault.Invalid, "The events are as the checkpoint has them, but the tile %s is not what they give. Stop what writes the ledger, remove the directory %s, and start it again: all tiles are then made anew.",
			v.tile, filepath.Join(v.dir, "tile")).Because("bad_tile")
	}
	if v.mended != nil {
		return v.mended
	}
	return v.readTail()
}

// readTail parses the events that no checkpoint covers yet.
func (v *verification) readTail() error {
	if v.tail.segment < 0 {
		return nil
	}
	sequence, skip, from := v.tail.sequence, v.tail.skip, v.tail.from
	for _, s := range v.segments[v.tail.segment:] {
		from = max(from, s.start())
		for line, err := range s.lines(from) {
			if err != nil {
				return err
			}
			if skip > 0 {
				skip--
				continue
			}
			if wrong := checkLine(line, sequence); wrong != "" {
				return v.wrong(sequence-1, "bad_form", wrong)
			}
			sequence++
		}
		from = 0
	}
	return nil
}

// wrong reports that the event after so many is the first that is wrong.
func (v *verification) wrong(before int64, reason, what string) error {
	v.report.Events = before
	return fault.New(fault.Invalid, "Event %d is wrong: %s. The events before it are in order.", before+1, what).Because(reason)
}

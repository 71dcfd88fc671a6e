package ledger

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"writ"
	"writ/failpoint"
	"writ/fault"
)

// The limits of a segment, if Options name none.
const (
	segmentBytes  = 64 << 20
	segmentEvents = 1 << 17
)

// Options is what a ledger is written with.
type Options struct {
	Name   string             // of the one who writes, for the origin of a new ledger: writ/gate
	Key    ed25519.PrivateKey // signs checkpoints
	Now    func() time.Time   // for since
	Bytes  int64              // a segment that is as large is followed by a new one; 0: 64 MiB
	Events int64              // or has as many events; 0: 131,072
}

// Log is a ledger open for appending. There is one in one process for each
// directory, and it is for one goroutine at a time. The first error ends it:
// what the disk holds afterwards is known only after Open has read it again.
type Log struct {
	dir      string
	options  Options
	signer   signer
	lock     *os.File // the directory
	files    []held
	file     *os.File // the last segment
	last     *segment
	tree     Tree
	tiles    tiles
	unsynced []string // tiles written since the checkpoint
	failure  error    // of writing one
	partial  []string // the tiles of the checkpoint that are not full
	note     []byte   // the checkpoint
	signed   int64    // events that it covers
	torn     bool
	failed   error
}

// held is a file as it was left.
type held struct {
	path string
	info os.FileInfo
	size int64
}

// Open opens the ledger in dir, or makes it, takes it for this process alone
// and verifies all of it. A link, a file with a second name, one that others may
// use, a directory that another process writes, and a ledger with a wrong event
// are refused. A torn line is left for Cut.
func Open(dir string, o Options) (*Log, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, unusable(err, "The path of the audit cannot be made absolute. Name the directory by its full path.")
	}
	if o.Bytes == 0 {
		o.Bytes = segmentBytes
	}
	if o.Events == 0 {
		o.Events = segmentEvents
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, unusable(err, "The directory %s of the audit cannot be made. Its own directory must be there, and be the user's that writ runs as.", dir)
	}
	l := &Log{dir: dir, options: o}
	l.lock, err = os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, unusable(err, "The audit %s cannot be opened. It must be a directory of its own, no link.", dir)
	}
	if err := l.take(); err != nil {
		return nil, l.end(err)
	}
	return l, nil
}

// take locks and verifies the directory.
func (l *Log) take() error {
	if err := syscall.Flock(int(l.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return unusable(err, "Another process writes the audit %s. Stop that one first.", l.dir)
	}
	if err := l.begin(); err != nil {
		return err
	}
	if err := l.hold(); err != nil {
		return err
	}
	v, err := verify(l.dir, Against{}, true)
	defer v.close()
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "The audit %s is refused. %s", l.dir, fault.TextOf(err)).Because(fault.ReasonOf(err))
	}
	last := v.segments[len(v.segments)-1]
	if l.signer, err = newSigner(v.report.Origin, l.options.Key); err != nil {
		return err
	}
	if l.signer.public != last.key {
		return unusable(nil, "The audit %s is signed with the key %s, and not with the one writ has. If a change of the key broke off, end it, else put that one back. Run: %s rotate-key --dir DIR",
			l.dir, last.key, strings.Join(strings.SplitN(l.options.Name, "/", 3)[:2], "-")).Because("other_key")
	}
	l.last, l.tree, l.tiles, l.note, l.signed, l.torn = last, v.tiles.tree(), v.tiles, v.note, v.own.Size, v.report.Torn
	l.last.bytes = v.end
	l.tiles.full = l.keep
	if v.tiled < v.own.Size {
		l.signed = -1 // the tiles that are not full are to be made as well
	}
	for path := range v.partials {
		l.partial = append(l.partial, path)
	}
	if l.file, err = os.OpenFile(last.path, os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW, 0); err != nil {
		return unusable(err, "The segment %s cannot be opened for writing. Check its owner and mode.", last.path)
	}
	if err := l.look(); err != nil {
		return err
	}
	if whole := l.files[len(l.files)-1].size == v.end; whole == l.torn {
		return unusable(nil, "The audit %s changed while it was read. Find out what else writes it.", l.dir)
	}
	return nil
}

// begin makes an empty ledger where there is nothing, or finishes making it.
func (l *Log) begin() error {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return unusable(err, "The audit %s cannot be listed.", l.dir)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	// The checkpoint is written last: with it, the ledger has begun.
	if slices.Contains(names, "checkpoint") {
		return nil
	}
	if segments, err := os.ReadDir(filepath.Join(l.dir, "segment")); len(segments) > 1 || slices.Contains(names, "tile") {
		return unusable(err, "The audit %s has no checkpoint. Put the file checkpoint back from its copy, and find out who removed it.", l.dir)
	}
	id := sha256.Sum256(l.options.Key.Public().(ed25519.PublicKey))
	if l.signer, err = newSigner(l.options.Name+"/"+hex.EncodeToString(id[:8]), l.options.Key); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(l.dir, "segment"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return unusable(err, "The audit %s cannot be written. Check its owner and mode.", l.dir)
	}
	if info, err := os.Lstat(segmentPath(l.dir, 0)); err == nil {
		s, err := openSegment(segmentPath(l.dir, 0))
		if err != nil {
			return err
		}
		if err := s.file.Close(); err != nil || info.Size() != s.start() {
			return unusable(err, "The audit %s has events and no checkpoint. Put the file checkpoint back from its copy, and find out who removed it.", l.dir)
		}
	} else if err := l.newSegment(seam{before: noSeam, key: l.signer.public}); err != nil {
		return err
	}
	signed, err := l.signer.sign(Checkpoint{l.signer.note.Name(), 0, Tree{}.Root()}.text())
	if err != nil {
		return err
	}
	return errors.Join(replace(filepath.Join(l.dir, "checkpoint"), signed), syncPaths(filepath.Dir(l.dir)))
}

// newSegment writes a segment of its seam alone.
func (l *Log) newSegment(s seam) error {
	s.Checkpoint = Checkpoint{l.signer.note.Name(), l.tree.Size(), l.tree.Root()}
	s.since = writ.At(l.options.Now())
	line, err := s.line(l.signer)
	if err != nil {
		return err
	}
	path := segmentPath(l.dir, s.number)
	// Beside the segments, not among them: a name there that is no segment's is an intruder's.
	if err := replace(filepath.Join(l.dir, "segment.next"), append(line, '\n')); err != nil {
		return err
	}
	failpoint.Reach(failpoint.SegmentNext)
	if err := os.Rename(filepath.Join(l.dir, "segment.next"), path); err != nil {
		return unusable(err, "The segment %s cannot be made. Check the directory.", path)
	}
	failpoint.Reach(failpoint.SegmentNamed)
	l.last = &segment{seam: &s, line: line, path: path, bytes: int64(len(line)) + 1}
	return syncPaths(l.dir, filepath.Dir(path))
}

// Size returns the number of events.
func (l *Log) Size() int64 { return l.tree.Size() }

// Tree returns the tree of the events.
func (l *Log) Tree() Tree { return l.tree }

// Torn returns how many bytes of a torn line follow the last event.
func (l *Log) Torn() int64 {
	if !l.torn {
		return 0
	}
	return l.files[len(l.files)-1].size - l.last.bytes
}

// Cut removes a torn line. Nobody may call it before knowing that no event
// beyond those of the log was ever acknowledged.
func (l *Log) Cut() error {
	if l.failed != nil || !l.torn {
		return l.failed
	}
	if err := l.look(); err != nil {
		return l.end(err)
	}
	if err := errors.Join(l.file.Truncate(l.last.bytes), l.file.Sync()); err != nil {
		return l.end(unusable(err, "The torn last line of %s cannot be removed. Check the disk, then start again.", l.last.path))
	}
	l.torn, l.files[len(l.files)-1].size = false, l.last.bytes
	return nil
}

// Append writes lines and returns after they are durable. Before it writes, and
// also if there is nothing to write, it makes sure that the ledger is still the
// one of this name and as it was left.
func (l *Log) Append(lines ...[]byte) error {
	if l.failed != nil {
		return l.failed
	}
	if err := l.look(); err != nil {
		return l.end(err)
	}
	if l.torn {
		return l.end(unusable(nil, "A torn line follows the last event of the audit %s. Start again.", l.dir))
	}
	for _, line := range lines {
		if len(line) == 0 || len(line) > writ.MaxSize || bytes.IndexByte(line, '\n') >= 0 {
			return l.end(fault.New(fault.Internal, "A line of the audit is empty, too long, or more than one."))
		}
	}
	for len(lines) > 0 {
		n, err := l.room(lines)
		if err == nil {
			err = l.write(lines[:n])
		}
		if err != nil {
			return l.end(err)
		}
		lines = lines[n:]
	}
	return nil
}

// room returns how many of the lines go into the present segment, after it made
// a new one if that is full.
func (l *Log) room(lines [][]byte) (int, error) {
	if l.last.bytes >= l.options.Bytes || l.tree.Size()-l.last.Size >= l.options.Events {
		if err := l.turn(l.signer.public); err != nil {
			return 0, err
		}
	}
	n, size := 0, l.last.bytes
	for n < len(lines) && size < l.options.Bytes && l.tree.Size()+int64(n)-l.last.Size < l.options.Events {
		size += int64(len(lines[n])) + 1
		n++
	}
	return max(n, 1), nil
}

func (l *Log) write(lines [][]byte) error {
	var text []byte
	for _, line := range lines {
		text = append(append(text, line...), '\n')
	}
	failpoint.Reach(failpoint.LedgerWrite)
	if _, err := l.file.Write(text); err != nil {
		return unusable(err, "The segment %s cannot be written. Check the disk's free space, then start again.", l.last.path)
	}
	failpoint.Reach(failpoint.LedgerWritten)
	// A failed fsync is not tried again: the kernel may have dropped the pages,
	// and a later success would lie.
	if err := syscall.Fdatasync(int(l.file.Fd())); err != nil {
		return unusable(err, "The segment %s cannot be made durable. Check the disk, then start again.", l.last.path)
	}
	failpoint.Reach(failpoint.LedgerSynced)
	l.last.bytes += int64(len(text))
	l.files[len(l.files)-1].size = l.last.bytes
	for _, line := range lines {
		leaf := Leaf(line)
		l.tree = l.tree.Add(leaf)
		l.tiles.add(leaf)
	}
	return l.failure
}

// keep writes a tile that has become full.
func (l *Log) keep(level int, n int64, hashes []byte) {
	path := tilePath(level, n, tileWidth)
	l.failure = errors.Join(l.failure, writeTile(l.dir, path, hashes))
	l.unsynced = append(l.unsynced, path)
}

// end keeps the first error and closes the files.
func (l *Log) end(err error) error {
	l.failed = err
	_ = l.lock.Close() // the error that counts is known
	if l.file != nil {
		_ = l.file.Close()
	}
	return err
}

// Close gives the directory back. Everything appended is durable already.
func (l *Log) Close() error {
	if l.failed != nil {
		return nil
	}
	l.failed = unusable(nil, "The audit %s is closed.", l.dir)
	return errors.Join(l.file.Close(), l.lock.Close())
}

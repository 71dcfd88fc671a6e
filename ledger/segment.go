package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"writ"
	"writ/fault"
)

// noSeam stands in the first seam in place of the digest of a seam before.
const noSeam writ.Digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

const seamFormat = "segment/2"

// seam is the first line of a segment.
type seam struct {
	Checkpoint             // of all events before
	number     int64       // of the segment, from 0
	before     writ.Digest // of the seam before
	key        string      // public; signs from here on
	since      writ.Time
}

type seamLine struct {
	Format string `json:"format"`
	Note   string `json:"note"`
}

// line returns the signed line, without the newline.
func (s seam) line(by signer) ([]byte, error) {
	text := s.text() + fmt.Sprintf("segment %d %s\nkey %s\nsince %s\n", s.number, s.before, s.key, s.since)
	signed, err := by.sign(text)
	if err != nil {
		return nil, err
	}
	return writ.Canonical(seamLine{seamFormat, string(signed)})
}

// parseSeam reads a seam and checks it against the one before; nil for the first.
func parseSeam(line []byte, before *seam, beforeLine []byte) (*seam, error) {
	s, note, err := readSeam(line)
	if err != nil {
		return nil, err
	}
	by, want := s.key, seam{before: noSeam}
	if before != nil {
		by = before.key
		want = seam{Checkpoint: Checkpoint{Origin: before.Origin, Size: before.Size}, number: before.number + 1, before: writ.DigestBytes(beforeLine)}
	}
	switch {
	case s.number != want.number || s.before != want.before || before != nil && s.Origin != want.Origin || s.Size < want.Size:
		return nil, badSeam(nil, "it does not follow the segment before")
	case before == nil && s.Size != 0:
		return nil, badSeam(nil, "it is not the first of a ledger")
	}
	if err := signedWith(note, by); err != nil {
		return nil, err
	}
	return s, nil
}

// readSeam reads a seam, and returns its note, whose signature is not checked yet.
func readSeam(line []byte) (*seam, []byte, error) {
	var l seamLine
	if err := writ.Decode(line, &l); err != nil || l.Format != seamFormat {
		return nil, nil, badSeam(err, "it is no seam of the format "+seamFormat)
	}
	if again, err := writ.Canonical(l); err != nil || string(again) != string(line) {
		return nil, nil, badSeam(err, "it is not in canonical form")
	}
	s := new(seam)
	err := s.parse([]byte(l.Note))
	return s, []byte(l.Note), err
}

// parse reads a seam's note.
func (s *seam) parse(note []byte) error {
	c, more, err := parseText(note)
	if err != nil {
		return err
	}
	if len(more) != 3 {
		return badSeam(nil, "its note does not have six lines")
	}
	s.Checkpoint = c
	_, err = fmt.Sscanf(more[0], "segment %d %s", &s.number, &s.before)
	since, dated := strings.CutPrefix(more[2], "since ")
	key, keyed := strings.CutPrefix(more[1], "key ")
	if err = errors.Join(err, s.since.UnmarshalJSON([]byte(`"`+since+`"`))); err != nil || !keyed || !dated {
		return badSeam(err, "its note does not name a segment, a key and a time")
	}
	s.key = key
	return nil
}

func badSeam(cause error, what string) error {
	return fault.Wrap(fault.Invalid, cause, "The first line of a segment is wrong: %s.", what).Because("bad_segment")
}

// segment is one file of events.
type segment struct {
	*seam
	line  []byte // of the seam
	path  string
	file  *os.File // open for reading
	bytes int64
}

// start is where the events begin.
func (s *segment) start() int64 { return int64(len(s.line)) + 1 }

func segmentPath(dir string, number int64) string {
	return filepath.Join(dir, "segment", fmt.Sprintf("%012d.jsonl", number))
}

// openSegments opens the segments of a ledger, up to the first that is missing
// or whose seam is wrong, and says what is wrong with that one. The caller
// closes what it gets.
func openSegments(dir string) (all []*segment, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, "segment"))
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "There is no ledger in %s: it has no directory segment that can be read.", dir).Because("no_ledger")
	}
	for i, e := range entries {
		path := segmentPath(dir, int64(i))
		if e.Name() != filepath.Base(path) {
			return all, fault.New(fault.Invalid, "The segment %s is missing, or %.60q does not belong there.", path, e.Name()).Because("segment_missing")
		}
		s, err := openSegment(path)
		if err != nil {
			return all, err
		}
		var before *seam
		var beforeLine []byte
		if i > 0 {
			before, beforeLine = all[i-1].seam, all[i-1].line
		}
		if s.seam, err = parseSeam(s.line, before, beforeLine); err != nil {
			return all, errors.Join(err, s.file.Close())
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fault.New(fault.Invalid, "The ledger %s has no segment.", dir).Because("segment_missing")
	}
	return all, nil
}

// openSegment opens a segment and reads its first line.
func openSegment(path string) (*segment, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "The segment %s cannot be read. It must be a file, no link, that you may read.", path)
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		line, wrong := bufio.NewReaderSize(io.NewSectionReader(file, 0, info.Size()), maxSeam).ReadSlice('\n')
		if wrong == nil {
			return &segment{line: append([]byte(nil), line[:len(line)-1]...), path: path, file: file, bytes: info.Size()}, nil
		}
		err = errors.Join(wrong, fs.ErrInvalid)
	}
	return nil, errors.Join(badSeam(err, "it is torn, or no text"), file.Close())
}

// maxSeam bounds a seam, in bytes.
const maxSeam = 4 << 10

func closeSegments(all []*segment) {
	for _, s := range all {
		_ = s.file.Close() // they were only read
	}
}

package ledger

import (
	"bytes"
	"crypto/sha256"
	"io"

	"writ"
	"writ/fault"
)

// scanBytes is how much of a segment one worker takes at a time.
const scanBytes = 512 << 10

// piece is what a worker found: the lines that begin in one range of a segment.
type piece struct {
	segment int
	from    int64 // where the first of the lines begins
	next    int64 // behind the last
	leaves  []Hash
	torn    bool  // bytes follow that no newline ends
	long    bool  // a line follows that is too long
	err     error // the disk's
}

// scan hashes every line of the segments on several cores and gives the pieces
// to visit in their order. No more is held than a few pieces for each core.
func scan(segments []*segment, workers int, visit func(piece) error) error {
	type job struct {
		segment  int
		from, to int64
		done     chan piece
	}
	jobs := make(chan *job)
	order := make(chan *job, 2*workers)
	stop := make(chan struct{})
	defer close(stop)
	for range workers {
		go func() {
			r := new(lineReader)
			for j := range jobs {
				p := r.read(segments[j.segment], j.from, j.to)
				p.segment = j.segment
				j.done <- p
			}
		}()
	}
	go func() {
		defer close(order)
		defer close(jobs)
		for i, s := range segments {
			for from, last := s.start(), false; !last; from += scanBytes {
				last = from+scanBytes >= s.bytes
				j := &job{i, from, min(from+scanBytes, s.bytes), make(chan piece, 1)}
				select {
				case order <- j:
				case <-stop:
					return
				}
				select {
				case jobs <- j:
				case <-stop:
					return
				}
			}
		}
	}()
	for j := range order {
		if err := visit(<-j.done); err != nil {
			return err
		}
	}
	return nil
}

// lineReader reads ranges into a buffer that it uses again.
type lineReader struct{ buf []byte }

// read hashes the lines that begin in a range of a segment. The byte before a
// line is read with it, because it gives way to the 0 that begins a leaf: so
// nothing is copied.
func (r *lineReader) read(s *segment, from, to int64) (p piece) {
	begin := from - 1
	p.from, p.next = from, from
	if p.err = r.load(s, begin, int(to-begin)); p.err != nil {
		return p
	}
	size, at := len(r.buf), 0 // at: the newline before a line
	if r.buf[0] != '\n' {
		if at = bytes.IndexByte(r.buf, '\n'); at < 0 {
			return p // a line that began earlier goes on through all of it
		}
		p.from, p.next = begin+int64(at)+1, begin+int64(at)+1
	}
	for at+1 < size {
		end := bytes.IndexByte(r.buf[at+1:], '\n')
		for end < 0 && len(r.buf)-at-1 <= writ.MaxSize {
			have := len(r.buf)
			more := min(s.bytes-begin-int64(have), scanBytes/8)
			if more <= 0 {
				p.torn = true
				return p
			}
			if p.err = r.grow(s, begin, int(more)); p.err != nil {
				return p
			}
			if i := bytes.IndexByte(r.buf[have:], '\n'); i >= 0 {
				end = have + i - at - 1
			}
		}
		if end < 0 || end > writ.MaxSize {
			p.long = true
			return p
		}
		r.buf[at] = 0
		p.leaves = append(p.leaves, sha256.Sum256(r.buf[at:at+1+end]))
		at += 1 + end
		p.next = begin + int64(at) + 1
	}
	return p
}

// load reads n bytes at an offset.
func (r *lineReader) load(s *segment, at int64, n int) error {
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	return readAt(s, r.buf, at)
}

// grow reads n bytes more.
func (r *lineReader) grow(s *segment, begin int64, n int) error {
	have := len(r.buf)
	r.buf = append(r.buf, make([]byte, n)...)
	return readAt(s, r.buf[have:], begin+int64(have))
}

func readAt(s *segment, b []byte, at int64) error {
	if _, err := io.ReadFull(io.NewSectionReader(s.file, at, int64(len(b))), b); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The segment %s cannot be read to its end. Check the disk, and what else writes it.", s.path)
	}
	return nil
}

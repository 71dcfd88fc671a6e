package ledger_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/ledger"
)

// BenchmarkVerify verifies events of the usual size, a million of them outside
// of -short; x-sha256 is how many times longer that takes than hashing the same
// bytes with SHA-256 on the same cores, heap-MiB what it holds at most.
func BenchmarkVerify(b *testing.B) {
	count := 1_000_000
	if testing.Short() {
		count = 50_000
	}
	dir := filepath.Join(b.TempDir(), "audit")
	l := open(b, dir, options())
	var lines [][]byte
	for i := range count {
		line, err := ledger.Line(writ.Object{"sequence": int64(i + 1), "detail": writ.Object{"text": strings.Repeat("x", 600)}, "status": "done"})
		if err != nil {
			b.Fatal(err)
		}
		if lines = append(lines, line); len(lines) == 10_000 || i+1 == count {
			if err := l.Append(lines...); err != nil {
				b.Fatal(err)
			}
			lines = nil
		}
	}
	kept := checkpoint(b, l)
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	var heap uint64
	against := ledger.Against{Checkpoint: kept, Progress: func(done, total int64) {
		if done%(64<<20) < 512<<10 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap = max(heap, m.HeapAlloc)
		}
	}}
	hashing := hashFiles(b, dir) // warm
	runtime.GC()
	for b.Loop() {
		report, err := ledger.Verify(dir, against)
		if err != nil || report.Events != int64(count) {
			b.Fatal(report, err)
		}
	}
	hashing = min(hashing, hashFiles(b, dir))
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(hashing), "x-sha256")
	b.ReportMetric(float64(heap)/(1<<20), "heap-MiB")
	b.ReportMetric(float64(count)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// hashFiles returns how long it takes to read and hash all segments, in pieces, on all cores.
func hashFiles(b *testing.B, dir string) time.Duration {
	b.Helper()
	start := time.Now()
	work := make(chan func())
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for do := range work {
				do()
			}
		})
	}
	paths, err := filepath.Glob(filepath.Join(dir, "segment", "*"))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			b.Fatal(err)
		}
		for at := int64(0); at < info.Size(); at += 1 << 20 {
			work <- func() {
				buf := make([]byte, min(1<<20, info.Size()-at))
				if _, err := io.ReadFull(io.NewSectionReader(f, at, int64(len(buf))), buf); err != nil {
					b.Error(err)
				}
				sha256.Sum256(buf)
			}
		}
	}
	close(work)
	all.Wait()
	return time.Since(start)
}

// BenchmarkAppend appends one durable event at a time; x-disk is how many times
// longer that takes than writing and syncing the same bytes to a file.
func BenchmarkAppend(b *testing.B) {
	dir := b.TempDir()
	l := open(b, filepath.Join(dir, "audit"), options())
	var elapsed time.Duration
	for b.Loop() {
		line := event(b, l.Size()+1)
		start := time.Now()
		if err := l.Append(line); err != nil {
			b.Fatal(err)
		}
		elapsed += time.Since(start)
	}
	f, err := os.Create(filepath.Join(dir, "plain"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	start, n := time.Now(), min(b.N, 2000)
	for i := range n {
		if _, err := fmt.Fprintf(f, "%s\n", event(b, int64(i+1))); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	disk := time.Since(start) / time.Duration(n)
	b.ReportMetric(float64(elapsed)/float64(b.N)/float64(disk), "x-disk")
	b.ReportMetric(float64(b.N)/elapsed.Seconds(), "events/s")
}

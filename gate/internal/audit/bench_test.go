package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// samples is how often the disk is measured beside.
const samples = 300

// BenchmarkDurable makes events durable in the store and in the audit, alone
// and with 64 at a time; x-disk is how many times longer one takes than
// writing and syncing its line to a plain file on the same disk.
func BenchmarkDurable(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d writers", writers), func(b *testing.B) {
			p := open(b, filepath.Join(b.TempDir(), "gate"))
			a := p.audit()
			var n atomic.Int64
			durable := func() {
				e := &model.Event{ID: fmt.Sprintf("evt_%d", n.Add(1)), Type: model.GateStarted, User: "writ"}
				err := p.store.Update(b.Context(), func(tx store.Tx) error { return tx.Append(e) })
				if err == nil {
					err = a.CatchUp(b.Context())
				}
				if err != nil {
					b.Error(err)
				}
			}
			if writers == 1 {
				for b.Loop() {
					durable()
				}
			} else {
				b.SetParallelism(max(writers/runtime.GOMAXPROCS(0), 1))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						durable()
					}
				})
			}
			each := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(each)/float64(disk(b, p)), "x-disk")
			b.ReportMetric(float64(time.Second)/float64(each), "events/s")
		})
	}
}

// disk returns how long it takes to write and sync a line.
func disk(b *testing.B, p *place) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(p.dir, "plain"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 600)
	start := time.Now()
	for range samples {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start) / samples
}

package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"writ"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
)

// samples is how many calls the other side of a ratio is measured with.
const samples = 300

// proposer makes proposals of the usual size, each with its event.
type proposer struct {
	store store.Store
	n     atomic.Int64
}

func newProposer(b *testing.B) *proposer {
	b.Helper()
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "gate", "gate.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return &proposer{store: s}
}

func (p *proposer) propose(b *testing.B) {
	n := p.n.Add(1)
	id := fmt.Sprintf("chg_%09d", n)
	c := &model.Change{
		ID: id, State: model.Proposed, RequestedBy: writ.Principal{Name: "planner", Kind: writ.Agent}, ClientKey: id,
		Request: model.Request{
			Steps: []model.RequestStep{{ID: "a", Action: "proxmox.set_lxc_description", System: "proxmox", Params: writ.Object{
				"node": "pve", "vmid": n, "description": strings.Repeat("x", 200),
			}}},
			Purpose: model.Prose(strings.Repeat("y", 400)),
		},
	}
	e := &model.Event{ID: "evt" + id[3:], Type: model.ChangeProposed, ChangeID: id, User: "agent:planner", Status: "proposed"}
	err := p.store.Update(b.Context(), func(tx store.Tx) error {
		if err := tx.Insert(c); err != nil {
			return err
		}
		return tx.Append(e)
	})
	if err != nil {
		b.Error(err)
	}
}

// bareCommit returns a function that makes one small row durable, with nothing of ours around it.
func bareCommit(b *testing.B) func() {
	b.Helper()
	pragmas := "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+pragmas)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(b.Context(), "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)"); err != nil {
		b.Fatal(err)
	}
	insert, err := db.PrepareContext(b.Context(), "INSERT INTO t (text) VALUES (?)")
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		if _, err := insert.ExecContext(b.Context(), "x"); err != nil {
			b.Error(err)
		}
	}
}

// average returns how long f takes, after one call that does not count.
func average(f func()) time.Duration {
	f()
	start := time.Now()
	for range samples {
		f()
	}
	return time.Since(start) / samples
}

func BenchmarkBareCommit(b *testing.B) {
	commit := bareCommit(b)
	for b.Loop() {
		commit()
	}
}

// BenchmarkUpdate_proposal makes one durable proposal after another;
// x-bare-commit is how many times longer one takes than a bare commit. Each is
// measured beside one of the other, so that a busy disk is busy for both.
func BenchmarkUpdate_proposal(b *testing.B) {
	p, commit := newProposer(b), bareCommit(b)
	var bare time.Duration
	for b.Loop() {
		p.propose(b)
		b.StopTimer()
		start := time.Now()
		commit()
		bare += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(bare), "x-bare-commit")
}

// BenchmarkUpdate_64clients lets 64 clients propose at the same time; x-rate is
// how many times more proposals that makes than one client alone.
func BenchmarkUpdate_64clients(b *testing.B) {
	p := newProposer(b)
	alone := average(func() { p.propose(b) })
	todo := make(chan struct{})
	done := make(chan struct{})
	for range 64 {
		go func() {
			for range todo {
				p.propose(b)
			}
			done <- struct{}{}
		}()
	}
	b.ResetTimer()
	for range b.N {
		todo <- struct{}{}
	}
	close(todo)
	for range 64 {
		<-done
	}
	b.ReportMetric(float64(alone)*float64(b.N)/float64(b.Elapsed()), "x-rate")
}

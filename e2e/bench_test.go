package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"writ"
	"writ/api"
)

func (r running) propose(ctx context.Context, n int) (api.Change, error) {
	return r.agent.Propose(ctx, api.Proposal{Steps: []api.ProposedStep{{
		ActionType: "mock.noop_change", Params: writ.Object{"name": fmt.Sprintf("n%d", n%100), "value": fmt.Sprint(n)},
	}}}, "")
}

// ratio reports how many bare durable commits on the same disk one operation
// takes, measured in the same run.
func ratio(b *testing.B) {
	b.Helper()
	b.StopTimer()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(b.Context(), "CREATE TABLE t (x TEXT)"); err != nil {
		b.Fatal(err)
	}
	const samples = 300
	began := time.Now()
	for range samples {
		if _, err := db.ExecContext(b.Context(), "INSERT INTO t VALUES ('x')"); err != nil {
			b.Fatal(err)
		}
	}
	commit := time.Since(began) / samples
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(commit), "×commit")
}

// BenchmarkPropose is one proposal over REST, planned and previewed by both
// processes, until its decision is answered.
func BenchmarkPropose(b *testing.B) {
	r := startAll(b)
	for n := 0; b.Loop(); n++ {
		if c, err := r.propose(b.Context(), n); err != nil || c.State != "awaiting_approval" {
			b.Fatalf("%s %v", c.State, err)
		}
	}
	ratio(b)
}

// BenchmarkChange is one change of the system in memory, from request to
// receipt: proposed, reviewed, approved, backed up, written, verified.
func BenchmarkChange(b *testing.B) {
	r, ctx := startAll(b), b.Context()
	for n := 0; b.Loop(); n++ {
		c, err := r.propose(ctx, n)
		if err != nil {
			b.Fatal(err)
		}
		review, err := r.human.Review(ctx, c.ID)
		if err != nil {
			b.Fatal(err)
		}
		c, err = r.human.Approve(ctx, c.ID, api.Agreement{EnvelopeDigest: review.EnvelopeDigest, ShownDigest: review.ShownDigest})
		for err == nil && !c.Ended {
			c, err = r.human.Wait(ctx, c.ID, 10*time.Second)
		}
		if err != nil || c.State != "done" {
			b.Fatalf("%s %v", c.State, err)
		}
	}
	ratio(b)
}

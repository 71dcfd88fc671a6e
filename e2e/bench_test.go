package e2e_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"writ"
	"writ/api"
	"writ/client"
)

// running is a whole writ, started for a benchmark.
type running struct{ agent, human *client.Client }

func startAll(b *testing.B) running {
	b.Helper()
	bin, err := programs.build()
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "w")
	env := []string{"PATH=" + bin, "HOME=" + b.TempDir(), "USER=ada"}
	made := exec.CommandContext(b.Context(), filepath.Join(bin, "writ"), "init", dir)
	made.Env = env
	if out, err := made.CombinedOutput(); err != nil {
		b.Fatalf("writ init: %v\n%s", err, out)
	}
	// What is measured is not to be held up by the limit on readings.
	config := filepath.Join(dir, "executor", "executor.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		b.Fatal(err)
	}
	text = bytes.Replace(text, []byte("observe_per_minute: 600"), []byte("observe_per_minute: 1000000"), 1)
	if err := os.WriteFile(config, text, 0o600); err != nil {
		b.Fatal(err)
	}
	up := exec.Command(filepath.Join(bin, "writ"), "--dir", dir, "up")
	up.Env = env
	var log bytes.Buffer
	up.Stdout, up.Stderr = &log, &log
	if err := up.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM)
		_ = up.Wait()
	})
	open := func(name string) *client.Client {
		token, err := os.ReadFile(filepath.Join(dir, "tokens", name+".token"))
		if err != nil {
			b.Fatal(err)
		}
		c, err := client.New(filepath.Join(dir, "run", "gate.sock"), strings.TrimSpace(string(token)))
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	r := running{agent: open("agent"), human: open("ada")}
	late := time.After(patience)
	for {
		if _, err := r.human.Health(b.Context()); err == nil {
			return r
		}
		select {
		case <-late:
			b.Fatalf("writ up does not answer:\n%s", log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

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

package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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

// BenchmarkAsk is one proposal until its first answer, over each way in, by one
// client and by 64 at once. p50, p99 and max are of one answer; ×commit is how
// many bare durable commits fit into the time of one, all clients together.
func BenchmarkAsk(b *testing.B) {
	ways := map[string]func(*testing.B, running) func(context.Context, int) error{
		"rest": func(_ *testing.B, r running) func(context.Context, int) error {
			return func(ctx context.Context, n int) error {
				_, err := r.propose(ctx, n)
				return err
			}
		},
		"http": func(b *testing.B, r running) func(context.Context, int) error {
			token := r.token(b, "agent")
			return func(ctx context.Context, n int) error {
				_, err := r.tool(ctx, token, message("propose_change", asking(n)))
				return err
			}
		},
		"stdio": func(b *testing.B, r running) func(context.Context, int) error {
			cmd := exec.Command(filepath.Join(r.bin, "writ"), "mcp")
			cmd.Env = r.env
			session, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &sdk.CommandTransport{Command: cmd}, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = session.Close() })
			return func(ctx context.Context, n int) error {
				result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "propose_change", Arguments: asking(n)})
				if err == nil && result.IsError {
					err = fmt.Errorf("%+v", result.Content[0])
				}
				return err
			}
		},
	}
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		for _, clients := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", way, clients), func(b *testing.B) {
				r := startAll(b)
				var asks []func(context.Context, int) error
				for range clients {
					asks = append(asks, ways[way](b, r))
				}
				askAll(b, asks)
			})
		}
	}
}

// asking are the arguments of a proposal that no other has.
func asking(n int) map[string]any {
	return map[string]any{"steps": []any{map[string]any{
		"action_type": "mock.noop_change", "params": map[string]any{"name": fmt.Sprintf("n%d", n%100), "value": fmt.Sprint(n)},
	}}}
}

// askAll shares b.N proposals among clients and reports how long answers took.
func askAll(b *testing.B, asks []func(context.Context, int) error) {
	took := make([]time.Duration, b.N)
	next := make(chan int, b.N)
	for n := range b.N {
		next <- n
	}
	close(next)
	var all sync.WaitGroup
	b.ResetTimer()
	for _, ask := range asks {
		all.Go(func() {
			for n := range next {
				began := time.Now()
				if err := ask(b.Context(), n); err != nil {
					b.Error(err)
				}
				took[n] = time.Since(began)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(ms(took[len(took)-1]), "max-ms")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
	ratio(b)
}

package audit_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"writ/gate/internal/audit"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
	"writ/ledger"
)

// crashDir names, to a copy of this test program, the directory in which it
// appends events until it is killed.
const crashDir = "WRIT_AUDIT_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, appendForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// appendForever prints the sequence of each event that is durable in the store
// and in the file. Several at a time, so that the kill meets batches.
func appendForever(dir string) error {
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, "gate.db"))
	if err != nil {
		return err
	}
	l, err := ledger.Open(filepath.Join(dir, "audit"), options())
	if err != nil {
		return err
	}
	a := audit.New(audit.Config{Sys: machine(), Store: s, Log: l})
	failed := make(chan error)
	for client := range 4 {
		go func() {
			for n := 0; ; n++ {
				e := model.Event{ID: fmt.Sprintf("evt_%d_%d_%d", os.Getpid(), client, n), Type: model.GateStarted}
				err := s.Update(context.Background(), func(tx store.Tx) error { return tx.Append(&e) })
				if err == nil {
					err = a.CatchUp(context.Background())
				}
				if err == nil {
					_, err = fmt.Println(e.Sequence)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// Killed at any moment, nothing that was acknowledged is lost, and store and
// file agree again after the next start.
func TestCatchUp_killed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gate")
	for round := range 8 {
		acknowledged := killAfter(t, dir, 1+7*round)
		p := open(t, dir)
		if held := p.log.Size(); held < acknowledged {
			t.Errorf("round %d: the file holds %d events, %d were acknowledged", round, held, acknowledged)
		}
		if err := p.audit().CatchUp(t.Context()); err != nil {
			t.Fatalf("round %d: catch up: %v", round, err)
		}
		p.same(t, p.log.Size())
		p.close()
	}
}

// killAfter starts the copy, kills it when it has acknowledged n events, and
// returns the highest sequence that it acknowledged at all.
func killAfter(t *testing.T, dir string, n int) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var highest int64
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		sequence, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			break // the kill cut the line
		}
		highest = max(highest, sequence)
		if seen++; seen == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || seen < n {
		t.Fatalf("the copy ended by itself after %d events: %v", seen, err)
	}
	return highest
}

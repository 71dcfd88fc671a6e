package connectortest

import (
	"context"
	"sync"
	"testing"

	"writ"
)

func unknownOption(t *testing.T, s Suite) {
	e := &session{t: t, suite: s, world: s.World(t)}
	if target, err := e.open(setup{options: map[string]string{"no_such_option": "x"}}); err == nil {
		target.Close()
		t.Error("an option that does not exist was taken")
	}
}

func readDoesNotWrite(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	seen, failed := e.do(t.Context(), s.Read)
	if failed != nil || !seen.Found {
		t.Errorf("got %+v, %v; want something found", seen, failed)
	}
	if e.world.Written() {
		t.Error("the read had the effect of the write")
	}
	e.writes("read", 0)
}

func writeWritesOnce(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	if e.world.Written() {
		t.Fatal("the world has the effect of Write before anything was written")
	}
	if _, failed := e.do(t.Context(), s.Write); failed != nil {
		t.Fatalf("write: %v (%+v)", failed, *failed)
	}
	if !e.world.Written() {
		t.Error("the write had no effect")
	}
	e.writes("write", 1)
}

func unknownVerb(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	for _, verb := range []string{"", "frobnicate", "GET", "Put", "get /x"} {
		call := s.Write
		call.Verb = verb
		_, failed := e.do(t.Context(), call)
		e.ends("verb "+verb, failed, writ.NotExecuted, false)
	}
	e.nothingArrived("unknown verbs")
}

func (e *session) nothingArrived(what string) {
	e.t.Helper()
	if e.front == nil {
		return
	}
	if got := e.front.requests(); len(got) > 0 {
		e.t.Errorf("%s: %d requests reached the fake, want none; the first is %s %s", what, len(got), got[0].Method, got[0].RequestURI)
	}
}

func cancelledBefore(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, failed := e.do(ctx, s.Read)
	e.ends("read", failed, writ.NotExecuted, false)
	_, failed = e.do(ctx, s.Write)
	e.ends("write", failed, writ.NotExecuted, false)
	e.nothingArrived("a cancelled call")
}

func absentOK(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	call := s.Absent
	call.AbsentOK = true
	if seen, failed := e.do(t.Context(), call); failed != nil || seen.Found {
		t.Errorf("with AbsentOK: %+v, %v; want not found and no error", seen, failed)
	}
	call.AbsentOK = false
	_, failed := e.do(t.Context(), call)
	e.ends("without AbsentOK", failed, writ.NotExecuted, false)
	call = s.Read
	call.AbsentOK = true
	if seen, failed := e.do(t.Context(), call); failed != nil || !seen.Found {
		t.Errorf("AbsentOK of something that is there: %+v, %v; want it found", seen, failed)
	}
}

// concurrentUse is for the race detector. The writes are all the same, so all
// but one may be refused; none may be in doubt.
func concurrentUse(t *testing.T, s Suite) {
	const clients = 8
	e := open(t, s, setup{})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			if _, failed := e.do(t.Context(), s.Read); failed != nil {
				t.Errorf("read: %v", failed)
			}
		})
		all.Go(func() {
			if _, failed := e.do(t.Context(), s.Write); failed != nil && failed.Outcome == writ.Unknown {
				t.Errorf("write: %v", failed)
			}
		})
	}
	all.Wait()
	if !e.world.Written() {
		t.Error("no write had its effect")
	}
	e.writes("concurrent writes", clients)
}

func checkHealthy(t *testing.T, s Suite) {
	e := open(t, s, setup{})
	wrong, err := e.target.Check(t.Context())
	if err != nil || len(wrong) > 0 {
		t.Errorf("Check of a healthy system: %q, %v", wrong, err)
	}
	e.writes("check", 0)
	if e.world.Written() {
		t.Error("Check had the effect of Write")
	}
}

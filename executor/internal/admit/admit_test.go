package admit_test

import (
	"context"
	"crypto/ed25519"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/executor/internal/admit"
	"writ/executor/internal/executortest"
	"writ/executor/internal/journal"
	"writ/fault"
)

type world = *executortest.World

// Each row takes a writ that would be admitted, spoils one thing, and sees it
// refused with its own reason, nothing sent and nothing spent. A change to the
// envelope that its approver did not see is approved again if again is set, so
// that the row shows the check it names and not the digest's.
//
// Long on purpose: one row a refusal.
func TestAdmit_refuses(t *testing.T) {
	t.Parallel()
	type spoil func(t *testing.T, w world, o *writ.Writ)
	step := func(f func(s *writ.Step)) spoil {
		return func(_ *testing.T, _ world, o *writ.Writ) { f(&o.Envelope.Steps[0]) }
	}
	approval := func(f func(a *writ.Approval)) spoil {
		return func(_ *testing.T, _ world, o *writ.Writ) { f(&o.Approvals[0]) }
	}
	of := func(f func(o *writ.Writ)) spoil { return func(_ *testing.T, _ world, o *writ.Writ) { f(o) } }
	later := func(d time.Duration) spoil { return func(_ *testing.T, w world, _ *writ.Writ) { w.Later(d) } }
	for name, c := range map[string]struct {
		spoil  spoil
		again  bool
		bytes  func(t *testing.T, w world, sealed []byte) []byte
		code   fault.Code // Refused if not set
		reason string
	}{
		"vault locked":  {spoil: func(_ *testing.T, w world, _ *writ.Writ) { w.Locked = true }, code: fault.Unavailable, reason: "vault_locked"},
		"no writ":       {bytes: func(*testing.T, world, []byte) []byte { return []byte(`{"please":"do it"}`) }, reason: "malformed"},
		"nothing":       {bytes: func(*testing.T, world, []byte) []byte { return nil }, reason: "malformed"},
		"not canonical": {bytes: func(_ *testing.T, _ world, b []byte) []byte { return append(b, '\n') }, reason: "not_canonical"},
		"another key": {bytes: func(t *testing.T, w world, b []byte) []byte {
			var o writ.Writ
			must(t, writ.Open(writ.KindWrit, b, writ.NewKeyring(w.Gate.Public().(ed25519.PublicKey)), &o))
			sealed, err := writ.Seal(writ.KindWrit, &o, executortest.Key("a thief"))
			must(t, err)
			return sealed
		}, reason: "unknown_key"},
		"a receipt in its place": {bytes: func(t *testing.T, w world, _ []byte) []byte {
			sealed, err := writ.Seal(writ.KindReceipt, &writ.Receipt{}, w.Gate)
			must(t, err)
			return sealed
		}, reason: "bad_signature"},
		"another format":         {spoil: of(func(o *writ.Writ) { o.Format = "writ/2" }), reason: "wrong_format"},
		"another purpose":        {spoil: of(func(o *writ.Writ) { o.Purpose = "inspect" }), reason: "wrong_purpose"},
		"another executor":       {spoil: of(func(o *writ.Writ) { o.Executor = "site-b" }), reason: "wrong_executor"},
		"not yet valid":          {spoil: later(-time.Hour), reason: "not_yet_valid"},
		"expired":                {spoil: later(time.Minute), code: fault.Expired, reason: "expired"},
		"a run that is a path":   {spoil: of(func(o *writ.Writ) { o.Run = "../x" }), reason: "bad_envelope"},
		"a short nonce":          {spoil: of(func(o *writ.Writ) { o.Nonce = "1" }), reason: "bad_envelope"},
		"an old epoch":           {spoil: of(func(o *writ.Writ) { o.Epoch = 0 }), reason: "stale_epoch"},
		"draining":               {spoil: func(_ *testing.T, w world, _ *writ.Writ) { w.Door.Close(admit.Draining()) }, code: fault.Unavailable, reason: "draining"},
		"no steps":               {spoil: of(func(o *writ.Writ) { o.Envelope.Steps = []writ.Step{} }), reason: "bad_envelope"},
		"a step id with a slash": {spoil: step(func(s *writ.Step) { s.ID = "a/b" }), again: true, reason: "bad_envelope"},
		"a class of no kind":     {spoil: of(func(o *writ.Writ) { o.Envelope.Class = "harmless" }), again: true, reason: "bad_envelope"},
		"a level of no kind":     {spoil: of(func(o *writ.Writ) { o.Envelope.RiskLevel = "none" }), again: true, reason: "bad_envelope"},
		"an unknown action":      {spoil: step(func(s *writ.Step) { s.Action = "thing.explode" }), again: true, reason: "unknown_action"},
		"an action that changed": {spoil: step(func(s *writ.Step) { s.ActionDigest = writ.DigestBytes(nil) }), again: true, reason: "action_changed"},
		"a forbidden action": {spoil: func(t *testing.T, w world, o *writ.Writ) {
			s := w.Step(t, "s1", "thing.destroy", writ.Object{"name": "a"})
			s.Entity = "things/a"
			o.Envelope.Class, o.Envelope.Steps = writ.Destructive, []writ.Step{s}
		}, again: true, code: fault.Denied, reason: "forbidden_action"},
		"an unknown system":      {spoil: step(func(s *writ.Step) { s.System = "elsewhere" }), again: true, reason: "unknown_system"},
		"a system of other kind": {spoil: step(func(s *writ.Step) { s.System = "box" }), again: true, reason: "wrong_system"},
		"another environment":    {spoil: step(func(s *writ.Step) { s.System = "prod" }), again: true, reason: "wrong_environment"},
		"params of no schema":    {spoil: step(func(s *writ.Step) { s.Params["name"] = "../a" }), again: true, reason: "params_refused"},
		"an unknown param":       {spoil: step(func(s *writ.Step) { s.Params["force"] = true }), again: true, reason: "params_refused"},
		"another entity":         {spoil: step(func(s *writ.Step) { s.Entity = "things/b" }), again: true, reason: "entity_mismatch"},
		"another entity touched": {spoil: step(func(s *writ.Step) { s.Touches = []string{"things/b"} }), again: true, reason: "entity_mismatch"},
		"params of other entity": {spoil: step(func(s *writ.Step) { s.Params["name"] = "b" }), again: true, reason: "entity_mismatch"},
		"a class too low":        {spoil: step(func(s *writ.Step) { s.Class = writ.ReadOnly }), again: true, reason: "class_too_low"},
		"no backup":              {spoil: step(func(s *writ.Step) { s.BackupRequired = false }), again: true, reason: "backup_required"},
		"no approval":            {spoil: of(func(o *writ.Writ) { o.Approvals = []writ.Approval{} }), code: fault.ApprovalMissing, reason: "approval_missing"},
		"forbidden risk":         {spoil: of(func(o *writ.Writ) { o.Envelope.RiskLevel = writ.Forbidden }), again: true, code: fault.Denied, reason: "forbidden_risk"},
		"an unknown approver":    {spoil: approval(func(a *writ.Approval) { a.ApprovedBy.Name = "eve" }), reason: "unknown_approver"},
		"an agent approves":      {spoil: approval(func(a *writ.Approval) { a.ApprovedBy.Kind = writ.Agent }), reason: "unknown_approver"},
		"the requester approves": {spoil: of(func(o *writ.Writ) { o.Envelope.RequestedBy = writ.Principal{Name: "Mara", Kind: writ.Human} }), again: true, reason: "self_approval"},
		"one person twice":       {spoil: func(t *testing.T, w world, o *writ.Writ) { w.Approve(t, o, "mara") }, reason: "duplicate_approval"},
		"one approval twice": {spoil: func(t *testing.T, w world, o *writ.Writ) {
			w.Approve(t, o, "otto")
			o.Approvals[1].ID = o.Approvals[0].ID
		}, reason: "duplicate_approval"},
		"an approval without id":   {spoil: approval(func(a *writ.Approval) { a.ID = "" }), reason: "duplicate_approval"},
		"an expired approval":      {spoil: approval(func(a *writ.Approval) { a.ExpiresAt = a.ApprovedAt }), code: fault.Expired, reason: "approval_expired"},
		"an approval of tomorrow":  {spoil: approval(func(a *writ.Approval) { a.ApprovedAt = writ.At(a.ApprovedAt.Add(time.Hour)) }), code: fault.Expired, reason: "approval_expired"},
		"approved: another action": {spoil: approval(func(a *writ.Approval) { a.Scope[0].ActionType = "thing.remove" }), reason: "action_mismatch"},
		"approved: fewer steps":    {spoil: approval(func(a *writ.Approval) { a.Scope = a.Scope[:0] }), reason: "action_mismatch"},
		"approved: another system": {spoil: approval(func(a *writ.Approval) { a.Scope[0].TargetSystem = "prod" }), reason: "target_mismatch"},
		"approved: another entity": {spoil: approval(func(a *writ.Approval) { a.Scope[0].Entity = "things/b" }), reason: "target_mismatch"},
		"approved: other params":   {spoil: step(func(s *writ.Step) { s.Params["value"] = "other" }), reason: "params_mismatch"},
		"approved: a lower risk":   {spoil: approval(func(a *writ.Approval) { a.RiskLevel = writ.Low }), reason: "risk_exceeds_approval"},
		"approved: any risk":       {spoil: approval(func(a *writ.Approval) { a.RiskLevel = "any" }), reason: "risk_exceeds_approval"},
		"approved: another change": {spoil: of(func(o *writ.Writ) { o.Envelope.ChangeID = "chg_other" }), reason: "digest_mismatch"},
		"approved: other rollback": {spoil: of(func(o *writ.Writ) { o.Envelope.OnFailure = writ.Rollback }), reason: "digest_mismatch"},
		"approved: other state":    {spoil: step(func(s *writ.Step) { s.Fingerprint = "x" }), reason: "digest_mismatch"},
		"no fence":                 {spoil: of(func(o *writ.Writ) { o.Fences = []writ.Fence{} }), reason: "bad_fence"},
		"a fence of zero":          {spoil: of(func(o *writ.Writ) { o.Fences[0].Number = 0 }), reason: "bad_fence"},
		"a fence twice":            {spoil: of(func(o *writ.Writ) { o.Fences = append(o.Fences, o.Fences[0]) }), reason: "bad_fence"},
		"a fence given away": {spoil: func(t *testing.T, w world, o *writ.Writ) {
			o.Fences[0].Number = 1
			w.Run(t, w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "x"})))
			w.Recorder.Reset()
		}, reason: "stale_fence"},
		"an entity in use": {spoil: func(t *testing.T, w world, o *writ.Writ) {
			other := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.pair", writ.Object{"first": "b", "second": "a", "value": "x"}))
			_, err := w.Door.Admit(t.Context(), w.Seal(t, other))
			must(t, err)
			w.Recorder.Reset()
		}, code: fault.Conflict, reason: "entity_busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := executortest.New(t)
			o := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "new"}))
			raise(t, w) // to epoch 1
			w.Recorder.Reset()
			if c.spoil != nil {
				c.spoil(t, w, o)
			}
			if c.again {
				o.Approvals = []writ.Approval{}
				w.Approve(t, o, "mara")
			}
			sealed := w.Seal(t, o)
			if c.bytes != nil {
				sealed = c.bytes(t, w, sealed)
			}
			a, err := w.Door.Admit(t.Context(), sealed)
			if c.code == "" {
				c.code = fault.Refused
			}
			if fault.CodeOf(err) != c.code || fault.ReasonOf(err) != c.reason || a.Valid() {
				t.Errorf("%s %s (%v), want %s %s", fault.CodeOf(err), fault.ReasonOf(err), err, c.code, c.reason)
			}
			if sent := w.Recorder.Requests(); len(sent) != 0 {
				t.Errorf("the target was reached: %v", sent)
			}
			if _, err := w.Journal.State(t.Context(), o.Run, 0); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("the journal has the run: %v", err)
			}
		})
	}
}

// raise lets the executor see epoch 1.
func raise(t *testing.T, w world) {
	t.Helper()
	w.Observe(t, w.Step(t, "s1", "thing.set", writ.Object{"name": "z", "value": "x"}))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAdmit_replay(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "new"}))
	sealed := w.Seal(t, o)
	w.Run(t, o)
	if _, err := w.Door.Admit(t.Context(), sealed); fault.CodeOf(err) != fault.Spent {
		t.Errorf("a second time: %v", err)
	}
	w.Restart(t)
	if _, err := w.Door.Admit(t.Context(), sealed); fault.CodeOf(err) != fault.Spent {
		t.Errorf("after a restart: %v", err)
	}
	o.Run = "run_other" // the nonce alone is enough
	o.Fences[0].Number += 10
	if _, err := w.Door.Admit(t.Context(), w.Seal(t, o)); fault.CodeOf(err) != fault.Spent {
		t.Errorf("with another run: %v", err)
	}
	if n := len(w.Recorder.Writes()); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// Whoever presents one writ many times at once gets it executed once.
func TestAdmit_concurrently(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "new"}))
	sealed := w.Seal(t, o)
	var admitted, spent, other int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			a, err := w.Door.Admit(context.WithoutCancel(t.Context()), sealed)
			if err == nil {
				err = w.Runner.Execute(context.WithoutCancel(t.Context()), a)
				mu.Lock()
				defer mu.Unlock()
				admitted++
				if err != nil {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			switch fault.ReasonOf(err) {
			case "spent":
				spent++
			default:
				other++
			}
		})
	}
	all.Wait()
	if admitted != 1 || spent != 63 || other != 0 || len(w.Recorder.Writes()) != 1 {
		t.Errorf("%d admitted, %d spent, %d other, %d writes", admitted, spent, other, len(w.Recorder.Writes()))
	}
}

func TestAdmit_observeLimit(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	w.Rules.ObservePerMinute = 2
	w.Door.Use(w.Rules)
	observe := func() error {
		_, err := w.Door.Admit(t.Context(), w.Seal(t, w.Writ(writ.Observe, w.Step(t, "s1", "thing.export", writ.Object{"name": "a"}))))
		return err
	}
	must(t, observe())
	must(t, observe())
	if err := observe(); fault.CodeOf(err) != fault.Exhausted {
		t.Errorf("a third in the minute: %v", err)
	}
	w.Later(time.Minute)
	if err := observe(); err != nil {
		t.Errorf("in the next minute: %v", err)
	}
}

func TestAdmit_twoApprovers(t *testing.T) {
	t.Parallel()
	w := executortest.New(t)
	o := w.Approved(t, writ.Stop, w.Step(t, "s1", "thing.set", writ.Object{"name": "a", "value": "new"}))
	w.Approve(t, o, "otto")
	a, err := w.Door.Admit(t.Context(), w.Seal(t, o))
	if err != nil || len(a.Writ().Approvals) != 2 {
		t.Errorf("Admit: %v", err)
	}
	if _, err := a.Undo(&o.Envelope.Steps[0], o.Envelope.Steps[0].Rollback); fault.ReasonOf(err) != "rollback_not_approved" {
		t.Errorf("a rollback nobody approved: %v", err)
	}
}

// BenchmarkAdmit stands beside one durable commit on the same disk.
func BenchmarkAdmit(b *testing.B) {
	b.Run("admit", func(b *testing.B) {
		w := executortest.New(b)
		steps, _ := w.Observe(b, w.Step(b, "s1", "thing.set", writ.Object{"name": "a", "value": "new"}))
		sealed := make([][]byte, b.N)
		for i := range sealed {
			o := w.Writ(writ.Execute, steps...)
			o.ExpiresAt = writ.At(o.ExpiresAt.Add(time.Hour))
			w.Approve(b, o, "mara")
			sealed[i] = w.Seal(b, o)
		}
		b.ResetTimer()
		for i := range sealed {
			a, err := w.Door.Admit(b.Context(), sealed[i])
			if err != nil {
				b.Fatal(err)
			}
			a.Release()
		}
	})
	b.Run("commit", func(b *testing.B) {
		w := executortest.New(b)
		for b.Loop() {
			if err := w.Journal.Append(b.Context(), journal.Entry{Run: "run_x", Step: "s1", Kind: journal.Backup, Body: []byte("{}")}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package ops

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"

	"writ"
	"writ/api"
	"writ/evidence"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
)

// changeEvidence collects all that proves what became of a change.
func changeEvidence(ctx context.Context, g *Gate, who model.Caller, in *one) (out api.Evidence, err error) {
	c, err := g.Pipeline.Change(ctx, who, in.ID)
	if err != nil {
		return out, err
	}
	if err := g.Record.Read(ctx, who.User(), c.ID); err != nil {
		return out, err
	}
	var lines []store.Line
	for more := true; more; {
		f := store.EventFilter{ChangeID: in.ID, Limit: eventPage}
		if len(lines) > 0 {
			f.After = lines[len(lines)-1].Sequence
		}
		page, err := g.Pipeline.Events(ctx, who, f)
		if err != nil {
			return out, err
		}
		lines, more = append(lines, page...), len(page) == eventPage
	}
	sequences := make([]int64, len(lines))
	for i, l := range lines {
		sequences[i] = l.Sequence
	}
	proof, err := g.Record.Prove(ctx, sequences)
	if err != nil {
		return out, err
	}
	events := make([]evidence.Event, len(lines))
	for i, l := range lines {
		events[i] = evidence.Event{Sequence: l.Sequence, Line: string(l.Bytes), Proof: proof.Events[i]}
	}
	add := func(name string, content []byte) {
		out.Files = append(out.Files, api.EvidenceFile{Name: name, Content: content})
	}
	keys := evidence.KeyPair{Executors: g.Executors()}
	keys.Gate, _ = g.Pipeline.Key.Public().(ed25519.PublicKey)
	keys.Executor, _ = keys.Executors.Last()
	for _, f := range []struct {
		name  string
		value any
		as    func(any) ([]byte, error)
		there bool
	}{
		{evidence.Request, c.Request, writ.Canonical, true},
		{evidence.Preview, map[string]any{"observations": c.Observations}, writ.Canonical, true},
		{evidence.Assessment, c.Assessment, writ.Canonical, c.Assessment != nil},
		{evidence.Envelope, c.Envelope, writ.Canonical, c.Envelope != nil},
		{evidence.Events, events, json.Marshal, true},
		{evidence.Keys, keys, json.Marshal, true},
		{evidence.Witnessed, proof.Cosigned, json.Marshal, len(proof.Cosigned) > 0},
	} {
		if !f.there {
			continue
		}
		content, err := f.as(f.value)
		if err != nil {
			return out, err
		}
		add(f.name, content)
	}
	if len(c.Writ) > 0 {
		add(evidence.Writ, c.Writ)
	}
	for i, r := range c.Receipts {
		add(fmt.Sprintf("%s%04d.json", evidence.Receipts, i+1), r.Sealed)
	}
	add(evidence.Checkpoint, proof.Checkpoint)
	add(evidence.Seams, append(bytes.Join(proof.Seams, []byte{'\n'}), '\n'))
	return out, nil
}

// eventPage is how many events are read at once.
const eventPage = 1000

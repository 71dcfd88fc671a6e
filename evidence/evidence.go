// Package evidence is all that proves what became of one change, as files that
// can be verified without writ running, and the five sentences that follow from
// them.
//
// The files, all JSON but the last two. Those that a change has not come to are absent:
//
//	request.json       the request; its digest is in the envelope
//	preview.json       what was shown would change; its digest is in the envelope
//	assessment.json    how it was weighed, and why; its digest is in the event of the decision
//	envelope.json      what was decided on; its digest is what approvers approved
//	writ.json          the writ as the gate signed it, with the approvals; absent if there was none
//	receipts/0001.json the receipts as the executor signed them, by sequence
//	events.json        every event of the change as it stands in the audit, with its inclusion proof
//	cosigned.json      checkpoints that witnesses have signed, with the proof that the one below continues them
//	keys.json          the public keys of gate and executor, to be compared with those one knows; of the
//	                   executor also those of before, with the lines of its audit in which each named the next
//	checkpoint         a signed checkpoint of the gate's audit that covers those events
//	seams.jsonl        the first lines of the audit's segments, from which follows who may sign it
package evidence

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"writ"
	"writ/fault"
	"writ/ledger"
)

// The names of the files.
const (
	Request    = "request.json"
	Preview    = "preview.json"
	Assessment = "assessment.json"
	Envelope   = "envelope.json"
	Writ       = "writ.json"
	Receipts   = "receipts/"
	Events     = "events.json"
	Witnessed  = "cosigned.json"
	Keys       = "keys.json"
	Checkpoint = "checkpoint"
	Seams      = "seams.jsonl"
)

// Event is one event of the change, proven.
type Event struct {
	Sequence int64         `json:"sequence"`
	Line     string        `json:"line"` // exactly as in the audit
	Proof    []ledger.Hash `json:"proof"`
}

// Cosigned is a checkpoint that a witness has signed.
type Cosigned struct {
	Checkpoint string        `json:"checkpoint"`
	Proof      []ledger.Hash `json:"proof"`
}

// KeyPair is the content of keys.json: public keys in base64.
type KeyPair struct {
	Gate     ed25519.PublicKey `json:"gate"`
	Executor ed25519.PublicKey `json:"executor"`
	// Executors are all the keys that the executor had, up to that one; there need be
	// none if it never had another.
	Executors ledger.Signers `json:"executor_keys,omitempty"`
}

// Account is what the files prove.
type Account struct {
	ChangeID string `json:"change_id"`
	Origin   string `json:"origin"` // of the gate's audit
	Events   int    `json:"events"` // of the change, each proven
	Covered  int64  `json:"covered"`
	Receipts int    `json:"receipts"`
	Gate     string `json:"gate_key_id"`     // of the key that signed the checkpoint
	Executor string `json:"executor_key_id"` // of the key that signed last, of the change or at all
	// GateFrom and ExecutorFrom are the ids of those keys and of all before from which
	// they follow, each signed by the one before. Who knows one of these has the
	// rest proven. There is none if people named another key in the midst of the change.
	GateFrom     []string          `json:"gate_key_ids"`
	ExecutorFrom []string          `json:"executor_key_ids"`
	Backups      []string          `json:"backups"`   // reference and digest of each
	Witnesses    []ledger.Cosigned `json:"witnesses"` // those that were asked for
	Sentences    []Sentence        `json:"sentences"`
}

// Sentence answers one question, with the records it rests on.
type Sentence struct {
	Question string   `json:"question"`
	Text     string   `json:"text"`
	Records  []string `json:"records"`
}

// told is what is read of an event.
type told struct {
	Sequence int64       `json:"sequence"`
	Type     string      `json:"event"`
	At       writ.Time   `json:"timestamp"`
	ChangeID string      `json:"change_id"`
	User     string      `json:"user"`
	Step     string      `json:"step"`
	Status   string      `json:"status"`
	Envelope writ.Digest `json:"envelope_digest"`
	Detail   struct {
		RequestDigest writ.Digest `json:"request_digest"`
		Assessment    writ.Digest `json:"assessment_digest"`
		WritDigest    writ.Digest `json:"writ_digest"`
		ReceiptDigest writ.Digest `json:"receipt_digest"`
		Executor      string      `json:"executor_checkpoint"`
	} `json:"detail"`
}

// bundle is the files on their way through verification.
type bundle struct {
	files     map[string][]byte
	witnesses []ledger.Witness
	keys      KeyPair
	gate      ledger.Signers // of the gate's audit, up to the checkpoint
	events    []told
	envelope  *writ.Envelope
	writ      *writ.Writ
	receipts  []writ.Receipt
	signed    []string // ids of the keys from that of the first receipt to that of the last
	account   Account
}

// Verify checks every digest, every proof and both signatures. The keys that
// the files name are believed; their ids are in the account, to be compared. Each
// of the witnesses must have signed a checkpoint that covers every event of the change,
// but for those that say who read it: the newest of them is made by asking for the files.
func Verify(files map[string][]byte, witnesses ...ledger.Witness) (*Account, error) {
	b := &bundle{files: files, witnesses: witnesses, account: Account{ExecutorFrom: []string{}}}
	for _, check := range []func() error{b.readKeys, b.readEvents, b.readEnvelope, b.readWrit, b.readReceipts} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	b.explain()
	return &b.account, nil
}

func wrong(cause error, format string, args ...any) error {
	return fault.Wrap(fault.Invalid, cause, "The evidence is not in order: %s.", fmt.Sprintf(format, args...)).Because("bad_evidence")
}

func (b *bundle) readKeys() error {
	if err := json.Unmarshal(b.files[Keys], &b.keys); err != nil || len(b.keys.Gate) != ed25519.PublicKeySize || len(b.keys.Executor) != ed25519.PublicKeySize {
		return wrong(err, "%s does not hold the keys of gate and executor", Keys)
	}
	k := &b.keys
	if len(k.Executors) == 0 {
		k.Executors = ledger.Signers{{Key: k.Executor}}
	}
	if last, _ := k.Executors.Last(); k.Executors.Check() != nil || !last.Equal(k.Executor) {
		return wrong(k.Executors.Check(), "the keys of the executor do not follow from one another")
	}
	return nil
}

// readEvents proves the events against the checkpoint, and the checkpoint
// against the keys.
func (b *bundle) readEvents() error {
	var seams [][]byte
	for line := range strings.Lines(string(b.files[Seams])) {
		seams = append(seams, []byte(strings.TrimSuffix(line, "\n")))
	}
	c, keys, err := ledger.OpenSeams(seams, b.files[Checkpoint])
	if err != nil {
		return wrong(err, "the checkpoint is refused (%s)", fault.TextOf(err))
	}
	if last, id := keys.Last(); last.Equal(b.keys.Gate) {
		b.gate, b.account.Gate, b.account.GateFrom = keys, id, ids(keys)
	} else {
		return wrong(nil, "the key of the gate did not sign the audit")
	}
	b.account.Origin, b.account.Covered = c.Origin, c.Size
	var events []Event
	if err := json.Unmarshal(b.files[Events], &events); err != nil || len(events) == 0 {
		return wrong(err, "%s has no events", Events)
	}
	for i, e := range events {
		var t told
		if err := json.Unmarshal([]byte(e.Line), &t); err != nil || t.Sequence != e.Sequence || i > 0 && t.ChangeID != b.account.ChangeID || i > 0 && t.Sequence <= events[i-1].Sequence {
			return wrong(err, "event %d is of another change or out of order", e.Sequence)
		}
		if err := ledger.Proves(c, e.Sequence, []byte(e.Line), e.Proof); err != nil {
			return wrong(err, "event %d is not in the audit as it is told here", e.Sequence)
		}
		b.account.ChangeID = t.ChangeID
		b.events = append(b.events, t)
	}
	b.account.Events = len(b.events)
	return b.readWitnesses(c, seams)
}

// readWitnesses looks for the signature of each witness among those that are there.
func (b *bundle) readWitnesses(c ledger.Checkpoint, seams [][]byte) error {
	b.account.Witnesses = []ledger.Cosigned{}
	if len(b.witnesses) == 0 {
		return nil // nobody is asked for, so nobody is believed
	}
	var all []Cosigned
	if text, ok := b.files[Witnessed]; ok {
		if err := json.Unmarshal(text, &all); err != nil {
			return wrong(err, "%s cannot be read", Witnessed)
		}
	}
	last := int64(0)
	for _, t := range b.events {
		if t.Type != read {
			last = t.Sequence
		}
	}
	for _, w := range b.witnesses {
		err := wrong(nil, "it has no signature of the witness %s that covers event %d", w.Name, last)
		for _, one := range all {
			seen, signed, not := w.Open([]byte(one.Checkpoint))
			if not != nil || seen.Events < last {
				continue
			}
			before, _, bad := ledger.OpenSeams(seams, signed)
			if bad == nil {
				bad = ledger.Continues(c, before, one.Proof)
			}
			if bad != nil {
				return wrong(bad, "what the witness %s has signed is refused (%s)", w.Name, fault.TextOf(bad))
			}
			b.account.Witnesses, err = append(b.account.Witnesses, seen), nil
			break
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read is the event of handing the files out.
const read = "evidence.read"

// readEnvelope compares what was decided on with the digests in the events.
func (b *bundle) readEnvelope() error {
	for _, e := range b.events {
		if d := e.Detail.RequestDigest; d != "" && d != writ.DigestBytes(b.files[Request]) {
			return wrong(nil, "the request is not the one of event %d", e.Sequence)
		}
		if d := e.Detail.Assessment; d != "" && d != writ.DigestBytes(b.files[Assessment]) {
			return wrong(nil, "the assessment is not the one of event %d", e.Sequence)
		}
	}
	text, ok := b.files[Envelope]
	if !ok {
		return nil // it was never decided on
	}
	b.envelope = new(writ.Envelope)
	if err := writ.Decode(text, b.envelope); err != nil {
		return wrong(err, "the envelope cannot be read")
	}
	digest, err := b.envelope.Digest()
	switch {
	case err != nil || digest != writ.DigestBytes(text):
		return wrong(err, "the envelope is not in canonical form")
	case b.envelope.ChangeID != b.account.ChangeID:
		return wrong(nil, "the envelope is of another change")
	case b.envelope.RequestDigest != writ.DigestBytes(b.files[Request]):
		return wrong(nil, "the request is not the one that was decided on")
	case b.envelope.PreviewDigest != writ.DigestBytes(b.files[Preview]):
		return wrong(nil, "the preview is not the one that was shown")
	}
	for _, e := range b.events {
		if e.Envelope != "" && e.Envelope != digest {
			return wrong(nil, "the envelope is not the one of event %d", e.Sequence)
		}
	}
	return nil
}

// readWrit checks the gate's signature, and that the approvals are of this envelope.
func (b *bundle) readWrit() error {
	claimed := b.digests(func(t told) writ.Digest { return t.Detail.WritDigest })
	sealed, ok := b.files[Writ]
	if !ok {
		if len(claimed) > 0 {
			return wrong(nil, "the writ is missing")
		}
		return nil
	}
	var known ledger.Signers // to the gate when it wrote down the writ
	for _, t := range b.events {
		if t.Detail.WritDigest != "" {
			known = b.gate.At(t.Sequence)
		}
	}
	b.writ = new(writ.Writ)
	if err := writ.Open(writ.KindWrit, sealed, known.Keyring(), b.writ); err != nil {
		return wrong(err, "the writ is refused (%s)", fault.TextOf(err))
	}
	if !known.Valid(writ.SealedBy(sealed), b.writ.IssuedAt) {
		return wrong(nil, "the writ is signed with a key of the gate that another one had followed before it was issued")
	}
	digest, err := b.writ.Envelope.Digest()
	if err != nil || digest != writ.DigestBytes(b.files[Envelope]) || !slices.Contains(claimed, writ.DigestBytes(sealed)) {
		return wrong(err, "the writ is not of this envelope, or no event tells of it")
	}
	for _, a := range b.writ.Approvals {
		if a.EnvelopeDigest != digest {
			return wrong(nil, "the approval %s is of another envelope", a.ID)
		}
	}
	return nil
}

// readReceipts checks the executor's signatures and its audit's checkpoints.
func (b *bundle) readReceipts() error {
	recorded := b.digests(func(t told) writ.Digest { return t.Detail.ReceiptDigest })
	newest := len(b.keys.Executors) - 1
	oldest := newest
	for n := 1; ; n++ {
		sealed, ok := b.files[fmt.Sprintf("%s%04d.json", Receipts, n)]
		if !ok {
			break
		}
		var r writ.Receipt
		if b.writ == nil {
			return wrong(nil, "there is a receipt and no writ")
		}
		if _, err := b.keys.Executors.OpenReceipt(sealed, b.writ.IssuedAt, &r); err != nil {
			return wrong(err, "receipt %d is refused (%s)", n, fault.TextOf(err))
		}
		at := b.keys.Executors.Find(writ.SealedBy(sealed))
		if n == 1 {
			oldest, newest = at, at
		}
		oldest, newest = min(oldest, at), max(newest, at)
		if r.WritDigest != writ.DigestBytes(b.files[Writ]) || !slices.Contains(recorded, writ.DigestBytes(sealed)) {
			return wrong(nil, "receipt %d is not of this writ, or no event tells of it", n)
		}
		if r.BackupDigest != "" {
			b.account.Backups = append(b.account.Backups, r.BackupReference+" "+string(r.BackupDigest))
		}
		b.receipts = append(b.receipts, r)
	}
	if len(b.receipts) != len(recorded) {
		return wrong(nil, "%d receipts are told of, and %d are there", len(recorded), len(b.receipts))
	}
	b.account.Receipts = len(b.receipts)
	signed := b.keys.Executors[:newest+1]
	b.account.Executor, b.signed = writ.KeyID(signed[newest].Key), ids(signed[oldest:])
	if from := signed.Unbroken(); len(from) > newest-oldest {
		b.account.ExecutorFrom = ids(from[:len(from)-newest+oldest])
	}
	return nil
}

func ids(keys ledger.Signers) []string {
	all := []string{}
	for _, k := range keys {
		all = append(all, writ.KeyID(k.Key))
	}
	return all
}

// digests returns what of names in the events.
func (b *bundle) digests(of func(told) writ.Digest) (all []writ.Digest) {
	for _, t := range b.events {
		if d := of(t); d != "" {
			all = append(all, d)
		}
	}
	return all
}

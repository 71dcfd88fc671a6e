package artifact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"writ"
	"writ/gate/internal/model"
	"writ/gate/internal/store"
	"writ/redact"
)

// Sections are the names of an artifact's sections, in order.
var Sections = []string{
	"approval_request", "execution_chain_plan", "risk_summary", "lock_summary", "backup_summary", "rollback_summary",
	"recovery_summary", "verification_summary", "audit_references", "operator_summary", "timeline",
}

// Artifact is the whole account of one change, made from records alone.
type Artifact struct {
	ChangeID string
	sections map[string][]entry
}

// entry is one fact of a section: a string, or a list of them.
type entry struct {
	key   string
	value any
}

// New renders a change with its events, the locks, and the changes that undo it.
func New(c *model.Change, events []store.Line, locks []model.Lock, undone []*model.Change) (Artifact, error) {
	a := Artifact{ChangeID: c.ID, sections: map[string][]entry{}}
	timeline, references, err := story(events)
	if err != nil {
		return a, err
	}
	a.sections["approval_request"] = approvalRequest(c)
	a.sections["execution_chain_plan"] = chainPlan(c)
	a.sections["risk_summary"] = riskSummary(c)
	a.sections["lock_summary"] = lockSummary(c, locks)
	a.sections["backup_summary"] = backupSummary(c)
	a.sections["rollback_summary"] = rollbackSummary(c, undone)
	a.sections["recovery_summary"] = recoverySummary(c)
	a.sections["verification_summary"] = verificationSummary(c)
	a.sections["audit_references"] = references
	a.sections["operator_summary"] = []entry{{"summary", Summary(c)}}
	a.sections["timeline"] = timeline
	for _, entries := range a.sections {
		distinguish(entries)
		hide(entries)
	}
	return a, nil
}

// hide takes out secrets that somebody wrote into a request: an artifact is
// handed on.
func hide(entries []entry) {
	var r redact.Redactor
	for i, e := range entries {
		switch v := e.value.(type) {
		case string:
			entries[i].value = r.String(v)
		case []string:
			for j, line := range v {
				v[j] = r.String(line)
			}
		}
	}
}

// distinguish numbers facts of one section that have the same name, as two
// receipts of one step have.
func distinguish(entries []entry) {
	seen := map[string]int{}
	for i := range entries {
		e := &entries[i]
		if seen[e.key]++; seen[e.key] > 1 {
			e.key = fmt.Sprintf("%s (%d)", e.key, seen[e.key])
		}
	}
}

// MarshalJSON writes the sections as members, in their order. All of it is
// ASCII: what would be invisible, or change the direction of writing, is escaped
// as JSON has it, and comes out of a parser unchanged.
func (a Artifact) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"format":"artifact/1","change_id":%q`, a.ChangeID)
	for _, name := range Sections {
		fmt.Fprintf(&b, `,%q:{`, name)
		for i, e := range a.sections[name] {
			if i > 0 {
				b.WriteByte(',')
			}
			key, err := json.Marshal(e.key)
			if err != nil {
				return nil, err
			}
			value, err := json.Marshal(e.value)
			if err != nil {
				return nil, err
			}
			b.Write(key)
			b.WriteByte(':')
			b.Write(value)
		}
		b.WriteByte('}')
	}
	b.WriteByte('}')
	var ascii bytes.Buffer
	for _, unit := range utf16.Encode([]rune(b.String())) {
		if unit < utf8.RuneSelf {
			ascii.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&ascii, `\u%04x`, unit)
		}
	}
	return ascii.Bytes(), nil
}

// Markdown renders the artifact for people.
func (a Artifact) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Change %s\n", a.ChangeID)
	for _, name := range Sections {
		fmt.Fprintf(&b, "\n## %s\n\n", strings.ReplaceAll(name, "_", " "))
		if len(a.sections[name]) == 0 {
			b.WriteString("Nothing.\n")
		}
		for _, e := range a.sections[name] {
			switch v := e.value.(type) {
			case []string:
				fmt.Fprintf(&b, "- %s:\n", markdown(e.key))
				for _, item := range v {
					fmt.Fprintf(&b, "  - %s\n", markdown(item))
				}
			default:
				fmt.Fprintf(&b, "- %s: %s\n", markdown(e.key), markdown(fmt.Sprint(v)))
			}
		}
	}
	return b.String()
}

// markdown keeps text from being read as markup: not as a tag, an entity, a
// link, emphasis or code, and at its beginning not as a list or a rule.
func markdown(s string) string {
	var b strings.Builder
	text := Plain(s)
	word := func(i int) bool { return i >= 0 && i < len(text) && (text[i] >= utf8.RuneSelf || isWord(text[i])) }
	for i, r := range text {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case strings.ContainsRune("\\`*[|#~", r), r == '_' && !(word(i-1) && word(i+1)), i == 0 && strings.ContainsRune("-+=", r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func approvalRequest(c *model.Change) []entry {
	out := []entry{
		{"requested_by", model.User(c.RequestedBy)}, {"requested_at", c.RequestedAt.String()},
		{"requested_action", string(c.Request.RequestedAction)}, {"purpose", string(c.Request.Purpose)},
		{"rollback_plan", string(c.Request.RollbackPlan)}, {"change_ticket", c.Request.ChangeTicket}, {"environment", c.Environment}, {"execution_status", string(c.State)},
		{"envelope_digest", string(c.Digest)},
	}
	for _, appr := range c.Approvals {
		out = append(out, entry{appr.ID, []string{
			"approved_by " + model.User(appr.ApprovedBy), "approved_at " + appr.ApprovedAt.String(),
			"expires_at " + appr.ExpiresAt.String(), "envelope_digest " + string(appr.EnvelopeDigest), "shown_digest " + string(appr.ShownDigest),
		}})
	}
	if c.Rejection != nil {
		out = append(out, entry{"rejected_by", model.User(c.Rejection.By)}, entry{"rejection_reason", string(c.Rejection.Reason)})
	}
	return out
}

func chainPlan(c *model.Change) []entry {
	out := []entry{{"on_failure", string(c.Request.OnFailure)}}
	for i := range c.Steps {
		s := &c.Steps[i]
		list := []string{
			"action_type " + s.Action, "target_system " + s.System, "entity " + s.Entity, "class " + string(s.Class),
			fmt.Sprintf("backup_required %t", s.BackupRequired), "needs " + strings.Join(s.Needs, " "),
		}
		list = append(list, pairs(s.Params)...)
		if i < len(c.Observations) {
			for _, f := range c.Observations[i].Fields {
				list = append(list, f.Name+": "+side(f.From, f.FromAbsent)+" → "+side(f.To, f.ToAbsent))
			}
		}
		out = append(out, entry{s.ID, list})
	}
	return out
}

func riskSummary(c *model.Change) []entry {
	if c.Assessment == nil {
		return nil
	}
	out := []entry{
		{"class", string(c.Assessment.Class)}, {"risk_level", string(c.Assessment.Level)},
		{"score", c.Assessment.Score}, {"reasons", c.Assessment.Reasons},
	}
	if d := c.Decision; d != nil {
		out = append(out, entry{"decision", string(d.Effect)}, entry{"rules", d.Rules}, entry{"denied_because", d.Reasons}, entry{"policy_digest", string(d.PolicyDigest)})
	}
	return out
}

func lockSummary(c *model.Change, locks []model.Lock) []entry {
	var out []entry
	for _, l := range locks {
		if l.ChangeID == c.ID {
			out = append(out, entry{l.Entity, fmt.Sprintf("%s lock, %s, fence %d, taken %s", l.Kind, l.State, l.Fence, l.TakenAt)})
		}
	}
	return out
}

func backupSummary(c *model.Change) []entry {
	var out []entry
	for _, r := range c.Receipts {
		out = append(out, entry{r.Step, []string{
			"backup_status " + r.BackupStatus, "backup_reference " + r.BackupReference, "backup_digest " + string(r.BackupDigest),
		}})
	}
	return out
}

func rollbackSummary(c *model.Change, undone []*model.Change) []entry {
	var out []entry
	for _, r := range c.Receipts {
		way := "no way back"
		if r.Rollback != nil {
			way = r.Rollback.String()
		}
		out = append(out, entry{r.Step, []string{"rollback_reference " + r.RollbackReference, "rollback_plan " + way}})
	}
	for _, u := range undone {
		out = append(out, entry{"undone by " + u.ID, string(u.State)})
	}
	return out
}

func recoverySummary(c *model.Change) []entry {
	var out []entry
	if !c.Held() {
		out = []entry{{"needed", "no"}}
	} else {
		next := "Approve the planned rollback, or look at the target: writ reconcile " + c.ID
		if c.State == model.Unknown {
			next = "What was sent may or may not have happened. Nothing is retried. Look at the target: writ reconcile " + c.ID
		}
		out = []entry{{"needed", "yes"}, {"locked_entities", c.OrphanedEntities()}, {"next", next}}
	}
	r := c.Reconciliation
	if r == nil {
		return out
	}
	out = append(out, entry{"reconciled_by", model.User(r.By)}, entry{"reconciled_at", r.At.String()}, entry{"resolution", string(r.Resolution)},
		entry{"proposed_by_executor", string(r.Verdict)}, entry{"note", string(r.Note)}, entry{"shown_digest", string(r.ShownDigest)})
	for i := range r.Findings {
		f := &r.Findings[i]
		list := []string{because(&f.Finding), "finding_digest " + string(writ.DigestBytes(f.Sealed)), "observed_at " + f.ObservedAt.String()}
		for _, check := range f.Checks {
			list = append(list, fmt.Sprintf("%s passed=%t", check.Name, check.Passed))
		}
		out = append(out, entry{"finding of " + f.Step, list})
	}
	return out
}

func verificationSummary(c *model.Change) []entry {
	var out []entry
	for _, r := range c.Receipts {
		list := []string{"outcome " + string(r.Outcome)}
		for _, check := range r.Checks {
			list = append(list, fmt.Sprintf("%s passed=%t", check.Name, check.Passed))
		}
		if r.Detail != "" {
			list = append(list, "detail "+r.Detail)
		}
		out = append(out, entry{r.Step, list})
	}
	return out
}

// story returns the timeline and the references into the audit file.
func story(events []store.Line) (timeline, references []entry, err error) {
	for _, l := range events {
		var e model.Event
		if err := json.Unmarshal(l.Bytes, &e); err != nil {
			return nil, nil, err
		}
		what := strings.TrimSpace(fmt.Sprintf("%s by %s %s %s", e.Type, e.User, e.Step, e.Status))
		timeline = append(timeline, entry{e.Timestamp.String() + " " + e.ID, what})
		references = append(references, entry{e.ID, fmt.Sprintf("event %d, %s", l.Sequence, writ.DigestBytes(l.Bytes))})
	}
	return timeline, references, nil
}

func sortedNames(o writ.Object) []string { return slices.Sorted(maps.Keys(o)) }

// Package redact takes secrets out of texts and values before anybody is shown
// them: people, logs, receipts. It changes what is shown, never what runs.
//
// It looks three times. By value: every secret that was handed out, under
// whatever layers of encoding a target echoes it. By structure: what stands
// where secrets stand (a member called "password", an Authorization header, the
// argument after -p, the user part of a URL, a private key), whoever put it
// there. By pattern: tokens that say themselves what they are. A place that is
// hidden reads [redacted:kind:hash], where equal secrets have equal hashes, or
// [redacted:kind] where there is no key to hash with.
package redact

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"writ"
)

// byValue is the kind of a secret that is known.
const byValue = "value"

// Redactor hides secrets. The zero value hides by structure and pattern only,
// without hashes. It is safe for concurrent use.
type Redactor struct {
	key    []byte
	values *values
	strict bool
}

// New returns a Redactor that also hides the given secrets by value; those
// shorter than MinLength it does not look for. Whoever has the key can test a
// guess of a secret against a hash, so it is as secret as they are; without a
// key there are no hashes.
func New(key []byte, secrets ...string) *Redactor {
	return &Redactor{key: slices.Clone(key), values: newValues(secrets)}
}

// Strict returns a Redactor that besides hides whatever looks random. It is for
// the output that an agent is shown, not for evidence: it hides digests too.
func (r *Redactor) Strict() *Redactor {
	strict := *r
	strict.strict = true
	return &strict
}

// String returns s with its secrets hidden.
func (r *Redactor) String(s string) string {
	return r.render(s, r.spans(s))
}

// render returns s with marks in the places of spans.
func (r *Redactor) render(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, p := range spans {
		b.WriteString(s[at:p.from])
		b.WriteString(r.mark(p.kind, cmp.Or(p.secret, s[p.from:p.to])))
		at = p.to
	}
	b.WriteString(s[at:])
	return b.String()
}

// Value returns v with its secrets hidden, names of members included. v is made
// of nil, bool, numbers, strings, lists and objects; it is not changed.
func (r *Redactor) Value(v any) any {
	switch v := v.(type) {
	case string:
		return r.String(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = r.Value(e)
		}
		return list
	case map[string]any:
		return map[string]any(r.object(v))
	case writ.Object:
		return r.object(v)
	}
	return v
}

func (r *Redactor) object(o map[string]any) writ.Object {
	out := make(writ.Object, len(o))
	for _, k := range slices.Sorted(maps.Keys(o)) {
		name, e := k, o[k]
		if k == "value" { // of a pair: {"name": "DB_PASSWORD", "value": …}
			name = fmt.Sprint(cmp.Or(o["name"], o["key"], any(k)))
		}
		if secretMember(name, e) {
			out[r.String(k)] = r.mark("member", fmt.Sprint(e))
			continue
		}
		out[r.String(k)] = r.Value(e)
	}
	return out
}

// secretMember reports whether a member is hidden because of its name.
func secretMember(name string, v any) bool {
	weight := weigh(name)
	switch v := v.(type) {
	case nil, bool:
		return false
	case string:
		return !isMark(v) && plausible(v, weight)
	}
	return weight == strong
}

// mark is what stands in the place of a secret.
func (r *Redactor) mark(kind, secret string) string {
	if r == nil || len(r.key) == 0 {
		return "[redacted:" + kind + "]"
	}
	h := hmac.New(sha256.New, r.key)
	h.Write([]byte(secret))
	return "[redacted:" + kind + ":" + hex.EncodeToString(h.Sum(nil)[:4]) + "]"
}

var marked = regexp.MustCompile(`\[redacted:[a-z]+(?::[0-9a-f]{8})?\]`)

func isMark(s string) bool {
	at := marked.FindStringIndex(s)
	return at != nil && at[1]-at[0] == len(s)
}

// span is a place to hide.
type span struct {
	begin    int // where what makes it a secret begins, such as its name
	from, to int
	kind     string
	secret   string // "" where it is the text itself
}

// spans lists what is hidden in a text, in order and without overlaps.
func (r *Redactor) spans(text string) []span {
	var all []span
	report := func(s span) { all = append(all, s) }
	if r != nil && r.values != nil {
		r.values.find(text, report)
	}
	known := len(all)
	find(text, report)
	if r != nil && r.strict {
		random(text, report)
	}
	if len(all) == 0 {
		return nil
	}
	all = append(all[:known], beside(text, all[known:])...)
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	merged := all[:0]
	for _, s := range all {
		last := len(merged) - 1
		if last < 0 || s.from >= merged[last].to {
			merged = append(merged, s)
			continue
		}
		m := &merged[last]
		if m.kind != byValue && s.kind == byValue {
			m.kind, m.secret = s.kind, s.secret
		}
		m.begin, m.to = min(m.begin, s.begin), max(m.to, s.to)
	}
	return merged
}

// beside leaves out what is hidden already.
func beside(text string, spans []span) []span {
	if !strings.Contains(text, "[redacted:") {
		return spans
	}
	marks := marked.FindAllStringIndex(text, -1)
	out := spans[:0]
	for _, s := range spans {
		first, _ := slices.BinarySearchFunc(marks, s.from, func(m []int, from int) int { return cmp.Compare(m[1], from+1) })
		for _, m := range marks[first:] {
			if m[0] >= s.to {
				break
			}
			s.from, s.to = min(s.from, m[0]), max(s.to, m[1])
			if s.from == m[0] && s.to == m[1] {
				s.to = s.from
			}
		}
		if s.to > s.from {
			out = append(out, s)
		}
	}
	return out
}

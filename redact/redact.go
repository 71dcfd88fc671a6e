// Package redact takes secrets out of texts and values before anybody is shown
// them: people, logs, receipts. It changes what is shown, never what runs.
//
// It looks twice. By value: every secret that was handed out, in the forms in
// which targets echo it (raw, JSON-escaped, URL-encoded, base64, hexadecimal).
// By structure: what stands where secrets stand (a member called "password",
// an Authorization header, the user part of a URL, a private key), whoever put
// it there. A place that is hidden reads [redacted:kind].
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"writ"
)

// MinLength is the shortest secret, in bytes, that is looked for by value: a
// shorter one would hide half of every text.
const MinLength = 6

// Redactor hides secrets. The zero value hides by structure only. It is safe
// for concurrent use.
type Redactor struct{ values *strings.Replacer }

// New returns a Redactor that also hides the given secrets by value.
func New(secrets ...string) *Redactor {
	var forms []string
	for _, s := range secrets {
		if len(s) >= MinLength {
			forms = append(forms, formsOf(s)...)
		}
	}
	// A replacer takes the first pattern that fits: the longest must come first.
	slices.SortFunc(forms, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, mark("value"))
	}
	return &Redactor{strings.NewReplacer(pairs...)}
}

// String returns s with its secrets hidden.
func (r *Redactor) String(s string) string {
	if r != nil && r.values != nil {
		s = r.values.Replace(s)
	}
	return structure(s)
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
	for k, e := range o {
		if secretName(k) && !plain(e) {
			out[r.String(k)] = mark("member")
			continue
		}
		out[r.String(k)] = r.Value(e)
	}
	return out
}

// plain reports whether a value can be no secret, whatever its name.
func plain(v any) bool {
	switch v := v.(type) {
	case nil, bool:
		return true
	case string:
		return v == ""
	}
	return false
}

func mark(kind string) string { return "[redacted:" + kind + "]" }

// formsOf lists the ways in which a secret is found in texts.
func formsOf(s string) []string {
	forms := []string{s, url.QueryEscape(s), url.PathEscape(s), hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s)))}
	forms = append(forms, escaped(s, true), escaped(s, false))
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		whole := e.EncodeToString([]byte(s))
		forms = append(forms, whole, whole+strings.Repeat("=", (4-len(whole)%4)%4))
		for before := range 3 {
			forms = append(forms, aligned(e, s, before))
		}
	}
	return forms
}

// escaped returns s as it stands inside a JSON string.
func escaped(s string, html bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(s) != nil {
		return s
	}
	return strings.Trim(strings.TrimSuffix(b.String(), "\n"), `"`)
}

// aligned returns the characters of a base64 text that depend on s alone when
// s begins at a byte whose number leaves the remainder before by three.
func aligned(e *base64.Encoding, s string, before int) string {
	text := e.EncodeToString(append(make([]byte, before), s...))
	text = text[(before*8+5)/6:]
	if (before+len(s))%3 != 0 {
		text = text[:len(text)-1]
	}
	return text
}

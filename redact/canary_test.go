package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"writ/redact"
)

// canaries are made-up secrets with what encodings treat in ways of their own.
func canaries() []string {
	return []string{
		"not4real-canary-one-00", `q"uo'te\d $va/lue+1&2<3>%41`, "pässwörd-fake-π-0001", "with two spaces 77",
		"00000000-fake-4222-8333-444444444444", "sixsix",
		"-----BEGIN FAKE KEY-----\nbm90YXJlYWxrZXlub3RhcmVhbGtleQ\nc2Vjb25kbGluZXNlY29uZGxpbmU\n-----END FAKE KEY-----\n",
	}
}

// encodings are the ways in which a target, a library or a log repeats a text.
func encodings() map[string]func(string) string {
	quote := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	wide := func(little bool) func(string) string {
		return func(s string) string {
			var b []byte
			for _, u := range utf16.Encode([]rune(s)) {
				if little {
					b = append(b, byte(u), byte(u>>8))
				} else {
					b = append(b, byte(u>>8), byte(u))
				}
			}
			return string(b)
		}
	}
	std := base64.StdEncoding.EncodeToString
	return map[string]func(string) string{
		"raw":             func(s string) string { return s },
		"json":            func(s string) string { return quote(s) },
		"json twice":      func(s string) string { return quote(quote(s)) },
		"json slashes":    func(s string) string { return strings.ReplaceAll(quote(s), "/", `\/`) },
		"json units":      func(s string) string { return units(s, `\u%04x`) },
		"JSON units":      func(s string) string { return units(s, `\u%04X`) },
		"go":              strconv.Quote,
		"go ascii":        strconv.QuoteToASCII,
		"json in go":      func(s string) string { return strconv.Quote(quote(s)) },
		"c hex":           each(`\x%02x`),
		"c octal":         each(`\%03o`),
		"query":           url.QueryEscape,
		"path":            url.PathEscape,
		"query twice":     func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		"percent":         each("%%%02X"),
		"percent lower":   each("%%%02x"),
		"query in json":   func(s string) string { return quote("a=" + url.QueryEscape(s)) },
		"html":            html.EscapeString,
		"html numbers":    func(s string) string { return units(s, "&#%d;") },
		"base64":          func(s string) string { return std([]byte(s)) },
		"base64 raw":      func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
		"base64 url":      func(s string) string { return base64.URLEncoding.EncodeToString([]byte("a" + s + "z")) },
		"base64 basic":    func(s string) string { return std([]byte("me:" + s)) },
		"base64 after 1":  func(s string) string { return std([]byte("x" + s + "tail")) },
		"base64 after 2":  func(s string) string { return std([]byte("xy" + s + "yz")) },
		"base64 wrapped":  func(s string) string { return wrap(std([]byte("some words before: "+s+" and after")), "\r\n", 16) },
		"base64 indented": func(s string) string { return wrap(std([]byte(s)), "\n    ", 8) },
		"base64 in json":  func(s string) string { return quote(wrap(std([]byte(s)), "\n", 8)) },
		"base64 wide":     func(s string) string { return std([]byte(wide(true)("x" + s))) },
		"hex":             func(s string) string { return hex.EncodeToString([]byte(s)) },
		"HEX":             func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"utf-16le":        wide(true),
		"utf-16be":        wide(false),
		"shell":           func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		"shell mixed":     func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" },
		"sql":             func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" },
		"wrapped":         func(s string) string { return wrap(s, "\n  ", 5) },
		"spread":          func(s string) string { return wrap(s, " ", 1) },
		"made printable": func(s string) string {
			return strings.ReplaceAll(strings.ToValidUTF8(wide(true)(s), "\uFFFD"), "\x00", "\uFFFD")
		},
		"continued": func(s string) string { return wrap(s, "\\\n", 4) },
	}
}

// each writes every byte of a text in a format.
func each(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, format, s[i])
		}
		return b.String()
	}
}

// units writes every unit of UTF-16 of a text in a format.
func units(s, format string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, format, u)
	}
	return b.String()
}

// wrap breaks a text into lines.
func wrap(s, end string, width int) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + end)
		s = s[width:]
	}
	return b.String() + s
}

// sinks are what the processes write through.
func sinks(r *redact.Redactor) map[string]func(string) string {
	return map[string]func(string) string{
		"text":  r.String,
		"error": func(s string) string { return r.String(fmt.Errorf("it failed: %w", errors.New(s)).Error()) },
		"panic": func(s string) string { return r.String(fmt.Sprintf("panic: %v\n\ngoroutine 1 [running]:\n", s)) },
		"value": func(s string) string {
			return fmt.Sprint(r.Value(map[string]any{"x": []any{s}, "k " + s: int64(1)}))
		},
		"log": func(s string) string {
			var b bytes.Buffer
			slog.New(slog.NewTextHandler(&b, nil)).Error("it failed", "error", errors.New(s), "x", s)
			return r.String(b.String())
		},
		"json log": func(s string) string {
			var b bytes.Buffer
			slog.New(slog.NewJSONHandler(&b, nil)).Error(s, "body", []string{s})
			return r.String(b.String())
		},
		"stream": func(s string) string {
			var b bytes.Buffer
			w := r.Writer(&b)
			for i := range len(s) {
				if _, err := w.Write([]byte{s[i]}); err != nil {
					return s
				}
			}
			if err := w.Close(); err != nil {
				return s
			}
			return b.String()
		},
	}
}

// TestCanaries sends known secrets in every encoding through every sink. A
// part of four bytes that is left would be a leak too.
func TestCanaries(t *testing.T) {
	t.Parallel()
	r := redact.New([]byte("key"), canaries()...)
	for sink, through := range sinks(r) {
		for encoding, encode := range encodings() {
			for i, secret := range canaries() {
				form := encode(secret)
				got := through("before " + form + " after")
				if left := leak(got, form, secret); left != "" {
					t.Errorf("%s, %s: %q of canary %d is left in %q", sink, encoding, left, i, got)
				}
				if sink == "text" && (!strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after")) {
					t.Errorf("%s, %s: what is around canary %d is gone: %q", sink, encoding, i, got)
				}
			}
		}
	}
}

// TestCanaries_cut: where somebody cut a text off, the beginning of a secret is
// hidden too.
func TestCanaries_cut(t *testing.T) {
	t.Parallel()
	r := redact.New([]byte("key"), canaries()...)
	all := encodings()
	delete(all, "base64 wrapped") // begins with other words
	delete(all, "spread")         // five characters are ten bytes
	delete(all, "made printable") // the same
	for encoding, encode := range all {
		for i, secret := range canaries()[:5] {
			form := encode(secret)
			for size := i; size < len(form); size += 3 {
				for _, end := range []string{"", "…", "... and more"} {
					got := r.String("before " + form[:size] + end)
					shown := form[:size]
					if size < 7*(len(form)/len(secret)+1) {
						shown = "" // not yet six bytes of the secret
					}
					if left := leak(got, shown, secret); left != "" {
						t.Errorf("%s: %q of canary %d is left in %q", encoding, left, i, got)
					}
				}
			}
		}
	}
}

// leak returns a part of a secret, or of a form of it, that is still in a text.
// What stands around a secret inside its form, and the frame of a key, is none.
func leak(text, form, secret string) string {
	const size = 6
	text = strings.NewReplacer("before", "", "after", "", "-----BEGIN FAKE KEY-----", "", "-----END FAKE KEY-----", "").Replace(text)
	for i := 0; i+size <= len(secret); i++ {
		if part := secret[i : i+size]; strings.Contains(text, part) {
			return part
		}
	}
	skip := len(form) / 3
	if middle := form[skip : len(form)-skip]; len(middle) >= size && strings.Contains(text, middle) {
		return middle
	}
	return ""
}

// TestHash: equal secrets have equal hashes, whatever their encoding, and the
// key decides which.
func TestHash(t *testing.T) {
	t.Parallel()
	const secret = "not4real-canary-one-00"
	r := redact.New([]byte("key"), secret)
	raw := r.String(secret)
	if len(raw) != len("[redacted:value:01234567]") {
		t.Fatalf("a mark is %q", raw)
	}
	if got := r.String(hex.EncodeToString([]byte(secret))); got != raw {
		t.Errorf("in hexadecimal the mark is %s, raw it is %s", got, raw)
	}
	if got := redact.New([]byte("another"), secret).String(secret); got == raw {
		t.Error("another key gives the same hash")
	}
	if a, b := r.String("password=fake-one-1"), r.String("password=fake-one-2"); a == b {
		t.Error("two secrets have one hash")
	}
}

// TestStrict: what an agent is shown loses what looks random.
func TestStrict(t *testing.T) {
	t.Parallel()
	r := redact.New(nil)
	const text = "the answer is Zq3xV9mK2pLw8RtY5nBc7 for you"
	if got := r.String(text); got != text {
		t.Errorf("not strict: %q", got)
	}
	if got, want := r.Strict().String(text), "the answer is [redacted:random] for you"; got != want {
		t.Errorf("strict: %q", got)
	}
	for _, plain := range []string{"a-rather-long-name-of-a-host-in-a-rack", "/var/lib/writ/backups/run_1/config.json", "internationalisation"} {
		if got := r.Strict().String(plain); got != plain {
			t.Errorf("strict: %q became %q", plain, got)
		}
	}
}

// chunked writes a text in the given chunks.
func chunked(t *testing.T, r *redact.Redactor, chunks ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := r.Writer(&b)
	for _, c := range chunks {
		if n, err := io.WriteString(w, c); err != nil || n != len(c) {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestWriter_borders: wherever a chunk ends, the writer writes what String says
// of the whole, also when it has to let go of the beginning.
//
// Case: C084.
func TestWriter_borders(t *testing.T) {
	t.Parallel()
	const secret = "not4real-canary-one-00"
	r := redact.New([]byte("key"), secret)
	var b strings.Builder
	for i := range 260 {
		fmt.Fprintf(&b, "line %d: nothing but words until the end of the line, and then some more of them\n", i)
	}
	fill := b.String()
	text := "raw " + secret + " json " + `\u006eot4real-canary-one-00` + " password='fake one two'\n" +
		"-----BEGIN PRIVATE KEY-----\nZmFrZQ\nZmFrZQ\n-----END PRIVATE KEY-----\n"
	want := r.String(text)
	for i := range len(text) {
		if got := chunked(t, r, text[:i], text[i:]); got != want {
			t.Fatalf("cut at %d:\n got %q\nwant %q", i, got, want)
		}
	}
	for i := 0; i < 3*len(text); i += 13 {
		whole := fill[i:] + text + fill
		cut := len(fill) - i + i%len(text)
		if got := chunked(t, r, whole[:cut], whole[cut:]); got != r.String(whole) {
			t.Fatalf("behind %d bytes, cut at %d: %q", len(fill)-i, cut, got)
		}
	}
}

// TestWriter_endless: of a value that does not end nothing is shown, and memory
// stays bounded.
func TestWriter_endless(t *testing.T) {
	t.Parallel()
	r := redact.New(nil)
	var b bytes.Buffer
	w := r.Writer(&b)
	if _, err := io.WriteString(w, `password="`); err != nil {
		t.Fatal(err)
	}
	for range 1500 {
		if _, err := io.WriteString(w, strings.Repeat("fake", 256)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "fake") || b.Len() > 1000 {
		t.Errorf("%d bytes were written: %.200q", b.Len(), b.String())
	}
}

// broken is a writer that is full.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriter_tells(t *testing.T) {
	t.Parallel()
	w := redact.New(nil).Writer(broken{})
	if _, err := io.WriteString(w, "held back"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Close() = %v", err)
	}
}

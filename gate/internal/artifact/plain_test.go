package artifact_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"writ/gate/internal/artifact"
)

// rightToLeft are the scripts that are written from right to left.
var rightToLeft = []*unicode.RangeTable{
	unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan, unicode.Mandaic, unicode.Adlam,
	unicode.Hanifi_Rohingya, unicode.Mende_Kikakui, unicode.Imperial_Aramaic, unicode.Phoenician, unicode.Lydian, unicode.Cypriot,
}

// asLatin are characters that somebody reads as the ASCII character before them.
var asLatin = map[rune]string{
	'a': "аɑαａ𝐚ᴀ", 'c': "сϲｃⅽ", 'd': "ԁⅾ", 'e': "еｅ℮", 'g': "ɡｇց", 'h': "һ", 'i': "іıⅰɩι", 'j': "јϳ", 'k': "ĸκк", 'l': "ӏǀⅼ1１",
	'm': "ⅿｍ", 'n': "ոո", 'o': "оοօ০〇", 'p': "рρ", 'q': "ԛ", 's': "ѕſ", 'u': "υս", 'v': "νⅴ", 'w': "ԝ", 'x': "хⅹ×", 'y': "уγ", 'z': "ᴢ",
	'A': "АΑＡ", 'B': "ВΒ", 'C': "СⅭ", 'E': "ЕΕ", 'H': "НΗ", 'I': "ІΙ", 'J': "Ј", 'K': "КΚ\u212a", 'M': "МΜ", 'N': "Ν", 'O': "ОΟ", 'P': "РΡ",
	'S': "Ѕ", 'T': "ТΤ", 'X': "ХΧ", 'Y': "ҮΥ", 'Z': "Ζ", '/': "∕⁄／╱", '|': "ǀ∣｜│ㅣ丨", '"': "＂″", ':': "：ː∶", '.': "․．", '-': "‐‑−－", '!': "ǃ！", '\\': "＼∖",
}

// TestPlain_everyCodePoint shows each code point in the company in which it
// could do harm.
//
// Case: C104.
func TestPlain_everyCodePoint(t *testing.T) {
	t.Parallel()
	shown := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		c := string(r) // of a surrogate: the replacement character
		all := []string{c, "a" + c + "b", "я" + c}
		if r > 0xffff {
			all = all[:2]
		}
		for _, in := range all {
			out := artifact.Plain(in)
			if !strings.Contains(out, c) {
				if !utf8.ValidRune(r) || strings.Contains(out, fmt.Sprintf(`\u{%04x}`, r)) {
					continue
				}
				t.Errorf("%+q is shown as %q: neither as it is nor escaped", in, out)
			}
			shown++
			if wrong := deceptive(r, in[0] == 'a'); wrong != "" {
				t.Errorf("%U is shown as it is in %+q, and %s", r, in, wrong)
			}
		}
	}
	if shown < 40_000 {
		t.Errorf("only %d times something was shown as it is: the test looks at nothing", shown)
	}
}

// deceptive says why a character must not be shown as it is.
func deceptive(r rune, betweenLatin bool) string {
	switch {
	case r >= ' ' && r <= '~':
		return ""
	case !unicode.IsGraphic(r), unicode.In(r, unicode.M, unicode.Cf, unicode.Co):
		return "cannot be seen, or hangs on its neighbour"
	case unicode.IsSpace(r):
		return "looks like a blank"
	case unicode.In(r, rightToLeft...):
		return "is written from right to left"
	case unicode.IsDigit(r):
		return "is a digit of another script"
	case betweenLatin && unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r):
		return "is between Latin letters"
	}
	return ""
}

func TestPlain_lookalikes(t *testing.T) {
	t.Parallel()
	for ascii, others := range asLatin {
		for _, r := range others {
			if r < utf8.RuneSelf {
				continue
			}
			for _, in := range []string{string(r), "prod" + string(r), string(r) + string(r) + " 1", string(r) + "/etc"} {
				if r == '×' || r == '丨' && !strings.ContainsAny(in, "p/") {
					continue // a sign, and a letter of its own script
				}
				if strings.ContainsRune(artifact.Plain(in), r) {
					t.Errorf("%+q is shown as %q and can be read with %c", in, artifact.Plain(in), ascii)
				}
			}
		}
	}
}

// Case: C107.
func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                      "",
		"reverse proxy (new)":   "reverse proxy (new)",
		"Größe: 5 €, „älter“":   "Größe: 5 €, „älter“",
		"Łódź, Çeşme, Đà Nẵng":  "Łódź, Çeşme, Đà Nẵng",
		"обратный прокси":       "обратный прокси",
		"а и б":                 "а и б",
		"соре":                  `\u{0441}\u{043e}\u{0440}\u{0435}`,
		"раураl":                `\u{0440}\u{0430}\u{0443}\u{0440}\u{0430}l`,
		"ΑΒΕ":                   `\u{0391}\u{0392}\u{0395}`,
		"αντίστροφος":           "αντίστροφος",
		"逆向代理":                  "逆向代理",
		"リバース":                  "リバース",
		"역방향 프록시":               "역방향 프록시",
		"прокси proxy":          "прокси proxy",
		"проxи":                 `\u{043f}\u{0440}\u{043e}x\u{0438}`,
		"прокси μια":            `\u{043f}\u{0440}\u{043e}\u{043a}\u{0441}\u{0438} \u{03bc}\u{03b9}\u{03b1}`,
		"e\u0301":               `e\u{0301}`,
		"a\u202egnp.exe":        `a\u{202e}gnp.exe`,
		"a\u200bb":              `a\u{200b}b`,
		"a\u00a0b":              `a\u{00a0}b`,
		"one\r\ntwo":            `one\u{000d}\u{000a}two`,
		"\x1b[31mred\x1b[0m":    `\u{001b}[31mred\u{001b}[0m`,
		"tab\there":             `tab\u{0009}here`,
		"\u2028":                `\u{2028}`,
		"\U000e0041":            `\u{e0041}`,
		"🙂":                     `\u{1f642}`,
		"bad \xff byte":         `bad \u{fffd} byte`,
		"   three":              "   three",
		"    four":              " ·x4 four",
		"end" + spaces(200):     "end ·x200 ",
		"a" + spaces(80) + "b":  "a ·x80 b",
		"ﬁle \uff46\uff49le":    `\u{fb01}le \u{ff46}\u{ff49}le`,
		"\u212a and \u2126":     `\u{212a} and \u{2126}`,
		"\u3164\u115f\u1160":    `\u{3164}\u{115f}\u{1160}`,
		"ok → not ok × 2 ± 1 §": "ok → not ok × 2 ± 1 §",
	} {
		if got := artifact.Plain(in); got != want {
			t.Errorf("Plain(%+q) = %q, want %q", in, got, want)
		}
	}
}

func spaces(n int) string { return strings.Repeat(" ", n) }

// TestGolden_hostile is a page of strings that were made to deceive.
func TestGolden_hostile(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, s := range attacks() {
		fmt.Fprintf(&b, "%s\n", artifact.Plain(s))
	}
	golden(t, "hostile", b.String())
}

// attacks are strings that were made to deceive whoever approves.
func attacks() []string {
	return []string{
		"reads only\nHOW RISKY IT IS   read_only, risk low (0 of 100)",
		"reads only\r\n\r\nDECIDE BEFORE     tomorrow",
		"x\x1b[2J\x1b[1;1HWHAT WILL CHANGE\n  nothing",
		"x\x1b]8;;https://evil.example\x07click\x1b]8;;\x07",
		"\u202eedoc live\u202c",
		"safe\u2066 \u2067hidden\u2069 name",
		"pve\u200b\u200c\u200d\u2060\ufeff",
		"\u0440\u0440\u043e\u0445m\u043e\u0445 (Cyrillic letters in a Latin word)",
		"\uff50\uff52\uff4f\uff44 (full width)",
		"\U0001d429\U0001d42b\U0001d428\U0001d41d (mathematical letters)",
		"pro\u0501uction",
		"a\u0300\u0301\u0302\u0303\u0304\u0305 (a stack of accents)",
		"\U000e0064\U000e0065\U000e006c\U000e0065\U000e0074\U000e0065 (tags)",
		"x\ufe0f\u034f\u180e\u115f\u3164 (selectors and fillers)",
		"wait" + spaces(400) + "and destroy",
		"\" → \"unchanged\" (found by the executor)",
		`back\u{202e}slash`,
		"<script>alert(1)</script><!-- ",
		"<img src=x onerror=alert(1)>&#x202e;&lt;",
		"[approve](https://evil.example) ![x](https://evil.example/x.png)",
		`\[approve](https://evil.example)`,
		"```\n# heading\n```",
		"~~~ --- === *** ___ **bold** __bold__ ~~struck~~",
		"- item\n1. item\n> quote\n| a | b |\n|---|---|",
		"\x00nul",
		strings.Repeat("W", 300),
		strings.Repeat("漢", 100),
		strings.Repeat("aaaa ", 60) + "DIGEST   sha256:forged",
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range attacks() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range artifact.Plain(s) {
			if wrong := deceptive(r, false); wrong != "" {
				t.Errorf("%+q is shown as %+q, and %U %s", s, artifact.Plain(s), r, wrong)
			}
		}
	})
}

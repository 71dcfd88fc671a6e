package writ_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"writ"
	"writ/fault"
)

// The examples of RFC 8785 §3.2.2 and §3.2.3, without the numbers that are not
// whole: those are refused below.
const (
	rfcStrings = `{
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`
	rfcStringsCanonical = `{"literals":[null,true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}`
	rfcKeys             = `{
  "\u20ac": "Euro Sign",
  "\r": "Carriage Return",
  "\ufb33": "Hebrew Letter Dalet With Dagesh",
  "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face",
  "\u0080": "Control",
  "\u00f6": "Latin Small Letter O With Diaeresis"
}`
)

func TestCanonical_rfc8785(t *testing.T) {
	t.Parallel()
	v, err := writ.Parse([]byte(rfcStrings))
	if err != nil {
		t.Fatal(err)
	}
	got, err := writ.Canonical(v)
	if err != nil || string(got) != rfcStringsCanonical {
		t.Errorf("§3.2.2: got %s, %v", got, err)
	}
	if v, err = writ.Parse([]byte(rfcKeys)); err != nil {
		t.Fatal(err)
	}
	got, err = writ.Canonical(v)
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, value := range []string{"Carriage Return", "One", "Control", "Latin Small", "Euro Sign", "Emoji", "Hebrew"} {
		at := bytes.Index(got, []byte(value))
		if at < last {
			t.Errorf("§3.2.3: %q is not where it belongs in %s", value, got)
		}
		last = at
	}
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", writ.MaxDepth+1) + strings.Repeat("]", writ.MaxDepth+1)
	for _, c := range []struct{ name, text, want string }{
		{"nothing", ``, "no JSON value"},
		{"duplicate keys", `{"a":1,"a":1}`, "stands twice"},
		{"duplicate keys, one escaped", `{"a":1,"\u0061":2}`, "stands twice"},
		{"duplicate keys, deep", `{"x":[{"a":1,"b":2,"a":3}]}`, "stands twice"},
		{"invalid UTF-8", "\"\xff\"", "UTF-8"},
		{"overlong UTF-8", "\"\xc0\xaf\"", "UTF-8"},
		{"a surrogate in UTF-8", "\"\xed\xa0\x80\"", "UTF-8"},
		{"lone high surrogate", `"\ud800"`, "surrogate"},
		{"lone low surrogate", `"\udc00"`, "surrogate"},
		{"high surrogate and a letter", `"\ud800\u0041"`, "surrogate"},
		{"trailing data", `{} {}`, "after the end"},
		{"trailing letter", `1x`, "after the end"},
		{"a NUL after the end", "1\x00", "after the end"},
		{"one more than is safe", `9007199254740992`, "whole number"},
		{"one less than is safe", `-9007199254740992`, "whole number"},
		{"beyond 64 bits", `18446744073709551616`, "whole number"},
		{"a fraction", `1.5`, "whole number"},
		{"a fraction that is whole", `56.0`, "whole number"},
		{"an exponent", `1E30`, "whole number"},
		{"the RFC's 333333333.33333329", `333333333.33333329`, "whole number"},
		{"minus zero", `-0`, "whole number"},
		{"a leading zero", `01`, "whole number"},
		{"a plus", `+1`, "no JSON value"},
		{"a bare minus", `-`, "whole number"},
		{"NaN", `NaN`, "no JSON value"},
		{"too deep", deep, "deeper"},
		{"too long", `"` + strings.Repeat("x", writ.MaxSize) + `"`, "bytes"},
		{"a raw newline in a string", "\"a\nb\"", "escaped"},
		{"an unknown escape", `"\x41"`, "unknown escape"},
		{"a short escape", `"\u12xy"`, "hexadecimal"},
		{"an open string", `"a`, "ends inside"},
		{"an open object", `{"a":1`, "missing"},
		{"an open list", `[1`, "missing"},
		{"a trailing comma in a list", `[1,]`, "no JSON value"},
		{"a trailing comma in an object", `{"a":1,}`, "name of a member"},
		{"a leading comma", `[,1]`, "no JSON value"},
		{"no comma", `[1 2]`, "comma"},
		{"a key without quotes", `{a:1}`, "name of a member"},
		{"no colon", `{"a" 1}`, "colon"},
		{"a comment", `{/**/}`, "name of a member"},
		{"a byte order mark", "\ufeff{}", "no JSON value"},
	} {
		_, err := writ.Parse([]byte(c.text))
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.TextOf(err), c.want) {
			t.Errorf("%s: error %v does not say %q", c.name, err, c.want)
		}
	}
}

type sample struct {
	Action string      `json:"action"`
	Number int64       `json:"number"`
	Inner  inner       `json:"inner"`
	Params writ.Object `json:"params"`
	List   []inner     `json:"list"`
}

type inner struct {
	Name string `json:"name"`
}

func TestDecode_onlyExactlyThisForm(t *testing.T) {
	t.Parallel()
	const good = `{"action":"read","number":1,"inner":{"name":"x"},"params":{"vmid":121,"deep":{"a":[1,{"b":null}]}},"list":[{"name":"y"}]}`
	var s sample
	if err := writ.Decode([]byte(good), &s); err != nil {
		t.Fatal(err)
	}
	if s.Params["vmid"] != int64(121) {
		t.Errorf("a whole number arrived as %T", s.Params["vmid"])
	}
	for _, c := range []struct{ name, from, to, want string }{
		{"a key of another case", `"action"`, `"ACTION"`, "/ACTION"},
		{"both cases", `{"action":"read"`, `{"action":"read","Action":"delete"`, "/Action"},
		{"an unknown member", `{"action"`, `{"extra":1,"action"`, "/extra"},
		{"an unknown member within", `{"name":"x"}`, `{"name":"x","y":1}`, "/inner/y"},
		{"an unknown member in a list", `{"name":"y"}`, `{"name":"y","z":1}`, "/list/0/z"},
		{"a missing member", `"number":1,`, ``, "/number is missing"},
		{"null for a string", `"read"`, `null`, "/action"},
		{"another type", `"number":1`, `"number":"1"`, "form that is expected"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		var s sample
		err := writ.Decode([]byte(text), &s)
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.TextOf(err), c.want) {
			t.Errorf("%s: error %v does not say %q", c.name, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{rfcStrings, rfcKeys, `[1,-1,0,9007199254740991]`, `{"a":{"b":[null,true]}}`, `"\ud83d\ude00"`, `{"a":1,"a":2}`, `1e3`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := writ.Parse(data)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("refused with %s", fault.CodeOf(err))
			}
			return
		}
		once, err := writ.Canonical(v)
		if err != nil {
			t.Fatalf("%q was parsed but has no canonical form: %v", data, err)
		}
		again, err := writ.Parse(once)
		if err != nil {
			t.Fatalf("the canonical form %q is refused: %v", once, err)
		}
		twice, err := writ.Canonical(again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q becomes %q, then %q", data, once, twice)
		}
		if !json.Valid(data) {
			t.Fatalf("%q is no JSON and was accepted", data)
		}
		// An independent implementation must agree on everything we accept.
		if theirs, err := jcs.Transform(data); err != nil || !bytes.Equal(theirs, once) {
			t.Fatalf("%q: ours %q, theirs %q (%v)", data, once, theirs, err)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	w := validWrit(b)
	for b.Loop() {
		if _, err := writ.Canonical(w); err != nil {
			b.Fatal(err)
		}
	}
}

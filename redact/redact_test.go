package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/redact"
)

const secret = `not-a "real" value/+&<1>`

func TestString_byValue(t *testing.T) {
	t.Parallel()
	r := redact.New(nil, secret, "short")
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"raw":    secret,
		"json":   string(quoted),
		"query":  url.QueryEscape(secret),
		"path":   url.PathEscape(secret),
		"hex":    hex.EncodeToString([]byte(secret)),
		"HEX":    strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"base64": base64.StdEncoding.EncodeToString([]byte(secret)),
		"basic":  base64.StdEncoding.EncodeToString([]byte("me:" + secret)),
		"after1": base64.URLEncoding.EncodeToString([]byte("x" + secret + "tail")),
		"after2": base64.RawURLEncoding.EncodeToString([]byte("xy" + secret + "z")),
		"after3": base64.RawStdEncoding.EncodeToString([]byte("xyz" + secret + "zz")),
	}
	for name, form := range forms {
		got := r.String("before " + form + " after")
		if !strings.Contains(got, "[redacted:value]") || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: %q became %q", name, form, got)
		}
		if strings.Contains(got, form[3:len(form)-4]) {
			t.Errorf("%s: the secret is still in %q", name, got)
		}
	}
	if got := r.String("a short word"); got != "a short word" {
		t.Errorf("a secret below MinLength was looked for: %q", got)
	}
}

func TestString_byStructure(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"nothing to hide here: 403 Forbidden":    "nothing to hide here: 403 Forbidden",
		`{"password": "hunter2x", "name": "a"}`:  `{"password": "[redacted:member]", "name": "a"}`,
		`{\"password\":\"hunter2x\"}`:            `{\"password\":\"[redacted:member]\"}`,
		"db_password=hunter2x&name=a":            "db_password=[redacted:member]&name=a",
		"snmp community: public1":                "snmp community: [redacted:member]",
		"api_key='k 1'":                          "api_key='[redacted:member]'",
		`"password": ""`:                         `"password": ""`,
		"has_token: true":                        "has_token: true",
		"postgres://me:hunter2x@db/x":            "postgres://[redacted:userinfo]@db/x",
		"https://example.org/a?b=c":              "https://example.org/a?b=c",
		"Authorization: Bearer abc.def":          "Authorization: [redacted:header]",
		"Set-Cookie: sid=1; Path=/\nNext: x":     "Set-Cookie: [redacted:header]\nNext: x",
		"sent PVEAPIToken=a@pve!b=0000-11 to it": "sent PVEAPIToken=[redacted:token] to it",
		"used Bearer abcdefghijklmnop1234":       "used Bearer [redacted:token]",
		"a -----BEGIN RSA PRIVATE KEY-----\nAA\nBB\n-----END RSA PRIVATE KEY----- b": "a [redacted:key] b",
		"a -----BEGIN OPENSSH PRIVATE KEY-----\nAA\nBB":                              "a [redacted:key]",
	} {
		got := redact.New(nil).String(in)
		if got != want {
			t.Errorf("String(%q)\n got %q\nwant %q", in, got, want)
		}
		if again := redact.New(nil).String(got); again != got {
			t.Errorf("a second pass changed %q to %q", got, again)
		}
	}
	var zero redact.Redactor
	if got := zero.String("password=hunter2x"); got != "password=[redacted:member]" {
		t.Errorf("the zero value gave %q", got)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	in := map[string]any{
		"name": "a", "n": int64(3), "f": 1.5, "none": nil,
		"password": "hunter2x", "token": int64(12345), "passive": true, "secret": "",
		"list": []any{"x " + secret, writ.Object{"api_key": "k1", secret: "v"}},
	}
	want := map[string]any{
		"name": "a", "n": int64(3), "f": 1.5, "none": nil,
		"password": "[redacted:member]", "token": "[redacted:member]", "passive": true, "secret": "",
		"list": []any{"x [redacted:value]", writ.Object{"api_key": "[redacted:member]", "[redacted:value]": "v"}},
	}
	if diff := cmp.Diff(want, redact.New(nil, secret).Value(in)); diff != "" {
		t.Errorf("Value (-want +got)\n%s", diff)
	}
	if in["password"] != "hunter2x" {
		t.Error("Value changed what it was given")
	}
}

// FuzzString puts a known secret between two texts, under any layers of
// encoding, and writes it in any two chunks.
func FuzzString(f *testing.F) {
	const secret = "s3cr3t-canary/+ 1"
	f.Add("password=x", "Authorization: y", uint(0), 3)
	f.Add("https://", ":a@b token: \"", uint(7), 9)
	f.Add("-----BEGIN PRIVATE KEY-----", "[redacted:", uint(23), 40)
	f.Add("kind: Secret\ndata:\n a: ", "\n---\n$6$x", uint(5), 1)
	r := redact.New([]byte("key"), secret)
	layers := []func(string) string{
		func(s string) string { return s }, url.QueryEscape, url.PathEscape, strconv.Quote,
		func(s string) string { return strings.ReplaceAll(strconv.QuoteToASCII(s), "/", `\/`) },
	}
	f.Fuzz(func(t *testing.T, before, after string, layer uint, cut int) {
		n := uint(len(layers))
		form := layers[layer%n](layers[layer/n%n](secret))
		got := r.String(before + "\n" + form + "\n" + after)
		if strings.Contains(got, "s3cr3t") || strings.Contains(got, "canary") {
			t.Errorf("%q is still in %q", form, got)
		}
		if again := r.String(got); strings.Contains(again, "s3cr3t") {
			t.Errorf("a second pass brought the secret back: %q", again)
		}
		whole := before + form + after
		cut = int(uint(cut) % uint(len(whole)))
		if got, want := chunked(t, r, whole[:cut], whole[cut:]), r.String(whole); got != want {
			t.Errorf("in chunks %q, whole %q", got, want)
		}
	})
}

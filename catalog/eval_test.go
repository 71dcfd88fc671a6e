package catalog_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/catalog"
	"writ/fault"
)

// loose puts one text that may be anything into every place of a call.
const loose = `action: odd.loose
summary: Put a text everywhere
system: http
class: config_mutation
params:
  type: object
  additionalProperties: false
  properties:
    x: {type: string, maxLength: 1000, default: x}
    n: {type: integer, minimum: -5, maximum: 5, default: 1}
    b: {type: boolean, default: true}
    maybe: {type: string, maxLength: 10}
    list: {type: array, maxItems: 5, items: {type: string, maxLength: 10}, default: []}
    deep:
      type: object
      additionalProperties: false
      default: {}
      properties:
        inner: {type: integer, minimum: 0, maximum: 9, default: 3}
        rare: {type: boolean}
entity: ${system}/${params.x}
observe:
  asked: {get: "/a/${params.x}/b-${params.x}", query: {q: "${params.x}", n: "${params.n}", b: "${params.b}", maybe: "${params.?maybe}"}}
  file: {read: "docs/${params.x}"}
  site: {get: /, at: site, host: "${params.x}"}
backup: [asked]
preview_unknown: it is a test
apply:
  - post: /form/${params.x}
    form: {v: "${params.x}", "fixed&name": "literal $${x}", maybe: "${params.?maybe}", n: "${params.n}"}
    if_match: ${params.x}
  - post: /json
    json: {v: "${params.x}", n: "${params.n}", b: "${params.b}", joined: "n=${params.n}", maybe: "${params.?maybe}", list: ["${params.x}", "${params.?maybe}", null, 7], all: "${params.list}"}
  - write: docs/${params.x}.md
    text: "# ${params.x}\n"
    when: params.n > 0
verify:
  - {name: fine, that: "true"}
  - {name: broken, that: observed.asked.data.nothing == 1}
irreversible: it is a test
examples:
  - {params: {}, accept: true}
`

func action(t *testing.T, text string) *catalog.Action {
	t.Helper()
	c := only(t, text)
	a, _ := c.Action(c.Names()[0])
	return a
}

// scopeOf is a scope with x as the one text.
func scopeOf(t *testing.T, a *catalog.Action, x string) *catalog.Scope {
	t.Helper()
	params, err := a.Params(writ.Object{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	return &catalog.Scope{System: "sys", Params: params, Observed: map[string]catalog.Seen{"asked": {Found: true}}}
}

// attacks are texts that would break out if they were pasted.
func attacks() []string {
	return []string{
		"", ".", "..", "../x", "/etc/passwd", "a/../b", "a/b?c#d%", "%2e%2e%2f", "%2F..", "..;/x", "a b", "a\nX: y", "a\r\n\r\nGET /", "\x00", "a&b=c", "a=b",
		`"x"`, "${params.n}", "ü/é", "\u202eabc", "a//b", "a\\b", "a;b,c", "x/", "/x", "~root", "{}", "http://other.test/", "@other.test", "x:80", "*", "\u007f",
	}
}

// checkPath wants a value to be one segment of the path, and nothing else.
func checkPath(t *testing.T, path, before, value, after string) {
	t.Helper()
	u, err := url.Parse("https://host.test" + path)
	if err != nil {
		t.Fatalf("%q gives the path %q: %v", value, path, err)
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Host != "host.test" {
		t.Errorf("%q gives the path %q, which has more than a path", value, path)
	}
	if u.Path != before+value+after || strings.Count(u.EscapedPath(), "/") != strings.Count(before+after, "/") {
		t.Errorf("%q gives the path %q", value, path)
	}
	if clean := u.JoinPath().EscapedPath(); clean != path {
		t.Errorf("%q gives the path %q, which may be read as %q", value, path, clean)
	}
}

func checkValue(t *testing.T, a *catalog.Action, x string) {
	t.Helper()
	s := scopeOf(t, a, x)
	hasControl := strings.ContainsFunc(x, unicode.IsControl)
	isName := x != "" && x != "." && x != ".." && !hasControl && !strings.ContainsAny(x, `/\%?#;`)

	call, err := a.Applies()[0].Call(s)
	if (err == nil) != (isName && !strings.ContainsFunc(x, func(r rune) bool { return r > 0x7e })) {
		t.Errorf("with %q the call is %v, %v", x, call, err)
	}
	if err == nil {
		checkPath(t, call.Path, "/form/", x, "")
		if diff := cmp.Diff(map[string]string{"v": x, "fixed&name": "literal ${x}", "n": "1"}, call.Form); diff != "" || call.IfMatch != x {
			t.Errorf("with %q the form differs:\n%s", x, diff)
		}
	} else if fault.CodeOf(err) != fault.Refused {
		t.Errorf("with %q the error is %v", x, err)
	}

	call, err = a.Applies()[1].Call(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"v": x, "n": int64(1), "b": true, "joined": "n=1", "list": []any{x, nil, int64(7)}, "all": []any{},
	}, call.JSON); diff != "" || call.Path != "/json" {
		t.Errorf("with %q the JSON differs:\n%s", x, diff)
	}

	for _, r := range a.Observes() {
		call, err := r.Call(s)
		switch {
		case r.Name == "asked" && err == nil:
			if !isName {
				t.Errorf("%q is in the path %q", x, call.Path)
			}
			if call.Query["q"] != x || call.Query["b"] != "true" || len(call.Query) != 3 {
				t.Errorf("with %q the query is %v", x, call.Query)
			}
		case r.Name == "file" && err == nil:
			names := strings.Split(call.Path, "/")
			if names[0] != "docs" || slices.Contains(names, "") || slices.Contains(names, ".") || slices.Contains(names, "..") || hasControl || strings.Contains(x, `\`) {
				t.Errorf("%q is in the path %q", x, call.Path)
			}
		case r.Name == "site" && err == nil:
			if strings.ContainsAny(call.Host, "/@ \r\n?#%,;") || call.Host == "" {
				t.Errorf("%q is the host %q", x, call.Host)
			}
		}
	}
	if entity, err := a.Entity(s); err == nil && (!strings.HasPrefix(entity, "sys/") || strings.Contains(entity, "..") && strings.Contains("/"+x+"/", "/../") || hasControl) {
		t.Errorf("%q is in the entity %q", x, entity)
	}
}

func TestCall_aValueStaysAValue(t *testing.T) {
	t.Parallel()
	a := action(t, loose)
	for _, x := range attacks() {
		checkValue(t, a, x)
	}
}

func FuzzCall(f *testing.F) {
	for _, x := range attacks() {
		f.Add(x)
	}
	c, err := load(map[string]string{"a.yaml": loose})
	if err != nil {
		f.Fatal(err)
	}
	a, _ := c.Action("odd.loose")
	f.Fuzz(func(t *testing.T, x string) {
		if _, err := a.Params(writ.Object{"x": x}); err == nil {
			checkValue(t, a, x)
		}
	})
}

func TestCall_wanted(t *testing.T) {
	t.Parallel()
	a := action(t, loose)
	s := scopeOf(t, a, "x")
	for n, want := range map[int64]bool{1: true, -1: false} {
		s.Params["n"] = n
		if got, err := a.Applies()[2].Wanted(s); got != want || err != nil {
			t.Errorf("with n = %d the call is wanted: %t, %v", n, got, err)
		}
	}
	s.Params["maybe"] = "yes"
	call, err := a.Applies()[0].Call(s)
	if err != nil || call.Form["maybe"] != "yes" {
		t.Errorf("an optional value that is given is left out: %v, %v", call.Form, err)
	}
}

func TestParams_checksAndFills(t *testing.T) {
	t.Parallel()
	a := action(t, loose)
	got, err := a.Params(writ.Object{"list": []any{"a"}, "deep": writ.Object{"rare": true}})
	if err != nil {
		t.Fatal(err)
	}
	want := writ.Object{"x": "x", "n": int64(1), "b": true, "list": []any{"a"}, "deep": writ.Object{"rare": true, "inner": int64(3)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the params differ (-want +got):\n%s", diff)
	}
	if _, err := writ.Canonical(got); err != nil {
		t.Errorf("the params have no canonical form: %v", err)
	}
	first, _ := a.Params(nil)
	first["deep"].(writ.Object)["inner"] = int64(9)
	if again, _ := a.Params(nil); again["deep"].(writ.Object)["inner"] != int64(3) {
		t.Error("a caller can change the defaults")
	}

	_, err = a.Params(writ.Object{"x": int64(1), "n": int64(6), "y": "", "deep": writ.Object{"inner": "3"}, "list": []any{"a", strings.Repeat("b", 11)}})
	if fault.CodeOf(err) != fault.Invalid {
		t.Fatalf("the error is %v", err)
	}
	for _, part := range []string{"params.x: got", "params.n: maximum", "'y' not allowed", "params.deep.inner: got", "params.list.1: maxLength"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q:\n%v", part, err)
		}
	}
	for _, in := range []writ.Object{{"n": 1.0}, {"n": 1}, {"x": "\xff"}, {"deep": map[string]any{}}} {
		if got, err := a.Params(in); err == nil {
			t.Errorf("%v is accepted as %v", in, got)
		}
	}
}

func TestVerify_anErrorIsNoPass(t *testing.T) {
	t.Parallel()
	a := action(t, loose)
	checks, err := a.Verify(scopeOf(t, a, "x"))
	if diff := cmp.Diff([]writ.Check{{Name: "fine", Passed: true}, {Name: "broken"}}, checks); diff != "" || err != nil {
		t.Errorf("the checks differ: %v\n%s", err, diff)
	}
}

func TestPreview_unknownIsNotNoChange(t *testing.T) {
	t.Parallel()
	a := action(t, loose)
	if fields, known, err := a.Preview(scopeOf(t, a, "x")); known || len(fields) > 0 || err != nil {
		t.Errorf("Preview = %v, %t, %v", fields, known, err)
	}
}

// Case: C022.
func TestGuards_failClosed(t *testing.T) {
	t.Parallel()
	text := edit(t, base, "  - that: params.price <= settings.ceiling\n", `  - that: observed.article.data.locked
    else: it is locked
  - that: observed.article.data.missing.deep == 1
    else: this cannot be asked
  - that: params.price <= settings.ceiling
`)
	text = edit(t, text, "    accept: true\n    resolved: {shop: main}\n    observed:", "    accept: true\n    system: s\n    resolved: {shop: main}\n    observed:")
	text = edit(t, text, "{price: 8, version: v1}", "{price: 8, version: v1, locked: true, missing: {deep: 1}}")
	a := action(t, text)
	s := &catalog.Scope{
		Params: writ.Object{"id": "door", "price": int64(900)}, Settings: writ.Object{"ceiling": int64(500)},
		Observed: map[string]catalog.Seen{"article": {Found: true, Data: map[string]any{"locked": "yes"}}},
	}
	refusals, err := a.Guards(s)
	if diff := cmp.Diff([]string{"the price 900 is above 500"}, refusals); diff != "" {
		t.Errorf("the refusals differ:\n%s", diff)
	}
	if fault.CodeOf(err) != fault.Refused || fault.ReasonOf(err) != "expression_failed" {
		t.Errorf("a guard that is no answer, and one that cannot be evaluated, give %v", err)
	}
}

func TestWait_states(t *testing.T) {
	t.Parallel()
	text := edit(t, base, "    done: response.data.state == 'done'", "    done: response.data.state in ['done', 'failed-late']")
	text = edit(t, text, "    failed: response.data.state == 'failed'", "    failed: response.data.state.startsWith('failed')")
	a := action(t, text)
	w := a.Waits()[0]
	if w.Every != time.Second || w.Within != 10*time.Second {
		t.Errorf("the wait is every %s within %s", w.Every, w.Within)
	}
	for state, want := range map[any]catalog.WaitState{
		"running": catalog.Pending, "done": catalog.Finished, "failed": catalog.Broken,
		"failed-late": catalog.Odd, // two hold
		"paused":      catalog.Odd, // none holds
		int64(3):      catalog.Odd, // an error
	} {
		got, err := w.State(&catalog.Scope{}, catalog.Seen{Found: true, Data: map[string]any{"state": state}})
		if got != want || (err != nil) != (state == int64(3)) {
			t.Errorf("%v is %s, %v, want %s", state, got, err, want)
		}
	}
	if call, err := w.Call(&catalog.Scope{Applied: map[string]catalog.Seen{"job": {Data: map[string]any{"id": "a:b c"}}}}); err != nil || call.Path != "/jobs/a:b%20c" {
		t.Errorf("the call is %v, %v", call, err)
	}
	if call, err := w.Call(&catalog.Scope{Applied: map[string]catalog.Seen{"job": {Data: map[string]any{"id": "a/b"}}}}); fault.CodeOf(err) != fault.Refused {
		t.Errorf("a target that names its job a/b leads to the call %v, %v", call, err)
	}
}

func TestResolve_value(t *testing.T) {
	t.Parallel()
	r := action(t, base).Resolves()[0]
	for _, c := range []struct {
		data any
		want any
	}{
		{map[string]any{"name": "main"}, "main"}, {map[string]any{"name": int64(7)}, int64(7)}, {map[string]any{"name": true}, true},
		{map[string]any{"name": []any{}}, nil}, {map[string]any{"name": 1.5}, nil}, {map[string]any{"name": nil}, nil}, {map[string]any{}, nil}, {nil, nil},
	} {
		got, err := r.Value(&catalog.Scope{}, catalog.Seen{Found: true, Data: c.data})
		if got != c.want || (err == nil) != (c.want != nil) {
			t.Errorf("%v gives %v, %v", c.data, got, err)
		}
	}
}

func TestRollback_mustBeAcceptedByItsAction(t *testing.T) {
	t.Parallel()
	a := action(t, base)
	s := &catalog.Scope{System: "s", Params: writ.Object{"id": "door", "price": int64(1)}}
	for price, ok := range map[any]bool{int64(8): true, int64(-8): false, "8": false, 8.5: false, nil: false} {
		s.Backup = map[string]catalog.Seen{"article": {Found: true, Data: map[string]any{"price": price}}}
		call, err := a.Rollback(s)
		if (err == nil) != ok || (call != nil) != ok {
			t.Errorf("with %v in the backup the way back is %v, %v", price, call, err)
		}
	}
	s.Backup = nil
	if call, err := a.Rollback(s); err == nil {
		t.Errorf("without a backup the way back is %v", call)
	}
}

func TestFingerprint_default(t *testing.T) {
	t.Parallel()
	a := action(t, edit(t, base, "fingerprint: ${observed.article.data.version}\n", ""))
	of := func(s catalog.Seen) string {
		t.Helper()
		f, err := a.Fingerprint(&catalog.Scope{Observed: map[string]catalog.Seen{"article": s, "other": {Text: s.Text}}})
		if err != nil || !writ.Digest(f).Valid() {
			t.Fatalf("the fingerprint is %q, %v", f, err)
		}
		return f
	}
	was := of(catalog.Seen{Found: true, Data: map[string]any{"a": 1.5, "b": []any{int64(1), nil}}})
	if was != of(catalog.Seen{Found: true, Status: 200, ETag: "x", Data: map[string]any{"b": []any{int64(1), nil}, "a": 1.5}}) {
		t.Error("the same state has two fingerprints")
	}
	for _, s := range []catalog.Seen{{}, {Found: true}, {Found: true, Data: map[string]any{"a": 1.5}}, {Found: true, Text: "x"}} {
		if was == of(s) {
			t.Errorf("%v has the same fingerprint", s)
		}
	}
	if f, err := a.Fingerprint(&catalog.Scope{}); err == nil {
		t.Errorf("without the observation the fingerprint is %q", f)
	}
}

func TestEval_limits(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 3<<20)
	many := make([]any, 10000)
	for i := range many {
		many[i] = map[string]any{"n": int64(i)}
	}
	for name, c := range map[string]struct {
		expression string
		data       any
	}{
		"cost":          {"observed.article.data.all(a, observed.article.data.all(b, a.n + b.n >= 0))", many},
		"cost of hash":  {"[1,2,3,4,5,6,7,8,9].all(i, sha256(observed.article.data) != '')", big},
		"cost of sums":  {"[1,2,3,4,5,6,7,8,9].all(i, observed.article.data + observed.article.data != '')", big},
		"cost of regex": {"[1,2,3,4,5,6,7,8,9].all(i, !observed.article.data.matches('yyyyyyyyyyyyyyyy'))", big},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := action(t, edit(t, base, "params.price <= settings.ceiling", "\"has(params.note) ? "+c.expression+" : true\""))
			_, err := a.Guards(&catalog.Scope{Params: writ.Object{"note": ""}, Observed: map[string]catalog.Seen{"article": {Found: true, Data: c.data}}})
			if fault.ReasonOf(err) != "expression_failed" || !strings.Contains(causeOf(err), "limit") {
				t.Errorf("the expression is not stopped: %v", err)
			}
		})
	}
}

// causeOf is what the log gets.
func causeOf(err error) string {
	for err != nil {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
	return ""
}

func TestEval_sizeLimit(t *testing.T) {
	t.Parallel()
	a := action(t, base)
	s := &catalog.Scope{Observed: map[string]catalog.Seen{"article": {Found: true, Data: map[string]any{"version": strings.Repeat("v", 2<<20)}}}}
	if f, err := a.Fingerprint(s); err == nil {
		t.Errorf("a text of %d bytes is passed on", len(f))
	}
}

func TestEval_errorsDoNotQuoteTheTarget(t *testing.T) {
	t.Parallel()
	a := action(t, edit(t, edit(t, base, "${observed.article.data.version}", "v${int(observed.article.data.version)}"), "version: v1}", "version: \"1\"}"))
	_, err := a.Fingerprint(&catalog.Scope{Observed: map[string]catalog.Seen{"article": {Data: map[string]any{"version": "hunter2"}}}})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

func TestStableDigest(t *testing.T) {
	t.Parallel()
	one := catalog.StableDigest(map[string]any{"a": 0.5, "b": []any{int64(1), "<x>", nil, true}})
	if !one.Valid() || one != catalog.StableDigest(map[string]any{"b": []any{int64(1), "<x>", nil, true}, "a": 0.5}) {
		t.Errorf("the digest is not stable: %s", one)
	}
	if one == catalog.StableDigest(map[string]any{"a": 0.5}) || catalog.StableDigest(int64(1)) == catalog.StableDigest("1") {
		t.Error("two values have one digest")
	}
	if d := catalog.StableDigest(func() {}); d.Valid() {
		t.Errorf("a function has the digest %s", d)
	}
}

func TestTemplate_whatStandsInAText(t *testing.T) {
	t.Parallel()
	a := action(t, base)
	for _, c := range []struct {
		data  any
		text  string // as a text; "" is refused
		shown string // to people
	}{
		{"v1", "v1", "v1"}, {int64(-7), "-7", "-7"}, {1.5, "1.5", "1.5"}, {true, "true", "true"},
		{nil, "", "null"}, {[]any{int64(1), "<a>"}, "", `[1,"<a>"]`}, {map[string]any{"b": false, "a": nil}, "", `{"a":null,"b":false}`},
	} {
		s := &catalog.Scope{
			Params:   writ.Object{"id": "door", "price": int64(1)},
			Observed: map[string]catalog.Seen{"article": {Data: map[string]any{"version": c.data, "price": c.data}}},
		}
		if got, err := a.Fingerprint(s); got != c.text || (err == nil) != (c.text != "") {
			t.Errorf("%v as a text is %q, %v", c.data, got, err)
		}
		fields, known, err := a.Preview(s)
		if diff := cmp.Diff([]writ.Field{{Name: "price", From: c.shown, To: "1"}}, fields); diff != "" || !known || err != nil {
			t.Errorf("%v is shown as %v, %v", c.data, fields, err)
		}
	}
}

func TestPreview_leavesOutWhatStays(t *testing.T) {
	t.Parallel()
	a := action(t, edit(t, base, `to: "${params.price}"}`, `to: "${params.price}"}
  - {field: note, from: "${observed.article.data.?note}", to: "${params.?note}"}
  - {field: rare, to: "x", when: "observed.article.data.price == 99"}`))
	for _, c := range []struct {
		was  map[string]any
		note any
		want []writ.Field
	}{
		{map[string]any{"price": int64(1)}, nil, []writ.Field{}},
		{map[string]any{"price": int64(1)}, "", []writ.Field{{Name: "note", FromAbsent: true}}},
		{map[string]any{"price": int64(1), "note": "n"}, nil, []writ.Field{{Name: "note", From: "n", ToAbsent: true}}},
		{map[string]any{"price": int64(99), "note": "n"}, "n", []writ.Field{{Name: "price", From: "99", To: "1"}, {Name: "rare", FromAbsent: true, To: "x"}}},
	} {
		s := &catalog.Scope{Params: writ.Object{"id": "door", "price": int64(1)}, Observed: map[string]catalog.Seen{"article": {Data: c.was}}}
		if c.note != nil {
			s.Params["note"] = c.note
		}
		fields, _, err := a.Preview(s)
		if diff := cmp.Diff(c.want, fields); diff != "" || err != nil {
			t.Errorf("from %v to %v: %v\n%s", c.was, c.note, err, diff)
		}
	}
}

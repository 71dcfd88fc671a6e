package ledger_test

import (
	"strings"
	"testing"

	"writ"
	"writ/fault"
	"writ/ledger"
)

func TestLink(t *testing.T) {
	t.Parallel()
	first, digest, err := ledger.Link(ledger.Start, writ.Object{"sequence": int64(1), "b": "<&>"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"b":"<&>","format":"event/1","previous":"sha256:` + strings.Repeat("0", 64) + `","sequence":1}`
	if string(first) != want {
		t.Errorf("the line is %s, want %s", first, want)
	}
	if digest != writ.DigestBytes(first) {
		t.Errorf("the digest %s is not that of the line", digest)
	}
	second, _, err := ledger.Link(digest, writ.Object{"sequence": int64(2)})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(second), string(digest)) {
		t.Errorf("the second line %s does not hold the digest %s of the first", second, digest)
	}
}

func TestLink_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		previous writ.Digest
		event    any
		want     fault.Code
	}{
		{"no digest before", "", writ.Object{"sequence": int64(1)}, fault.Internal},
		{"no object", ledger.Start, []any{}, fault.Internal},
		{"no sequence", ledger.Start, writ.Object{}, fault.Internal},
		{"sequence zero", ledger.Start, writ.Object{"sequence": int64(0)}, fault.Internal},
		{"a format of its own", ledger.Start, writ.Object{"sequence": int64(1), "format": "event/1"}, fault.Internal},
		{"a link of its own", ledger.Start, writ.Object{"sequence": int64(1), "previous": ""}, fault.Internal},
		{"a number that is not whole", ledger.Start, map[string]any{"sequence": 1, "x": 1.5}, fault.Invalid},
		{"a line too long", ledger.Start, writ.Object{"sequence": int64(1), "x": strings.Repeat("x", writ.MaxSize-30)}, fault.Invalid},
	} {
		if _, _, err := ledger.Link(c.previous, c.event); fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v (%s), want %s", c.name, err, fault.CodeOf(err), c.want)
		}
	}
}

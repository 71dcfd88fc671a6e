package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitTemplate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want []string // literals as they are, expressions in <>
		err  bool
	}{
		{"", nil, false},
		{"plain", []string{"plain"}, false},
		{"${a}", []string{"<a>"}, false},
		{"a${ b }c", []string{"a", "<b>", "c"}, false},
		{"${a}${b}", []string{"<a>", "<b>"}, false},
		{"$${a}", []string{"${a}"}, false},
		{"$$${a}", []string{"$${a}"}, false},
		{"a$b {c} }", []string{"a$b {c} }"}, false},
		{"${ {'k': {'j': 1}} }!", []string{"<{'k': {'j': 1}}>", "!"}, false},
		{`${'}'}x`, []string{`<'}'>`, "x"}, false},
		{`${"\"}"}x`, []string{`<"\"}">`, "x"}, false},
		{`${'''a'}'''}x`, []string{`<'''a'}'''>`, "x"}, false},
		{`${r'\'}x`, []string{`<r'\'>`, "x"}, false},
		{`${car'\'}'}x`, []string{`<car'\'}'>`, "x"}, false},
		{"${", nil, true},
		{"${}", nil, true},
		{"${a", nil, true},
		{"${'a}", nil, true},
		{"${ {a }", nil, true},
	} {
		parts, sources, err := splitTemplate(c.in)
		if (err != nil) != c.err {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		var got []string
		for i := range parts {
			if sources[i] != "" {
				got = append(got, "<"+sources[i]+">")
			} else {
				got = append(got, parts[i].literal)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" && err == nil {
			t.Errorf("%q differs (-want +got):\n%s", c.in, diff)
		}
	}
}

// FuzzSplitTemplate wants the parts to make up the text again.
func FuzzSplitTemplate(f *testing.F) {
	for _, s := range []string{"", "a${b}c", "$${", "${'}'}", "${{}}", "$${${a}", "${r'\\'}", "${\"\"\"}\"\"\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parts, sources, err := splitTemplate(s)
		if err != nil {
			return
		}
		if len(parts) != len(sources) {
			t.Fatalf("%q has %d parts and %d sources", s, len(parts), len(sources))
		}
		rest := s
		for i, p := range parts {
			if sources[i] == "" {
				literal := strings.ReplaceAll(p.literal, "${", "$${")
				if !strings.HasPrefix(rest, literal) {
					t.Fatalf("%q: the literal %q does not stand at %q", s, literal, rest)
				}
				rest = rest[len(literal):]
				continue
			}
			if p.literal != "" || !strings.HasPrefix(rest, "${") {
				t.Fatalf("%q: no expression begins at %q", s, rest)
			}
			inner := strings.Index(rest, sources[i])
			end := strings.IndexByte(rest[inner+len(sources[i]):], '}')
			if strings.TrimSpace(rest[2:inner+len(sources[i])+end]) != sources[i] {
				t.Fatalf("%q: the expression %q is not what stands at %q", s, sources[i], rest)
			}
			rest = rest[inner+len(sources[i])+end+1:]
		}
		if rest != "" {
			t.Fatalf("%q: %q is left over", s, rest)
		}
	})
}

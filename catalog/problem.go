package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file of a catalog.
type Problem struct {
	File string // relative to the catalog's directory
	Line int    // from 1; 0 if the whole file is meant
	Path string // where in the document, e.g. "apply[0].form.digest"; "" for the whole
	Text string // what is wrong and what to do
}

// String returns "file:line: path: text", leaving out what is not known.
func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
	}
	if p.Path != "" {
		s += ": " + p.Path
	}
	return s + ": " + p.Text
}

// Problems is everything that is wrong with a catalog, sorted by file and line.
type Problems []Problem

// Error lists the problems, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
}

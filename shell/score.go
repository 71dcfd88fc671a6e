package shell

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"writ"
	"writ/fault"
)

// Line is one labelled command of a corpus.
type Line struct {
	Cmd        string `json:"cmd"`
	Expect     string `json:"expect"` // a class, not_read_only, or any
	Why        string `json:"why,omitempty"`
	NeedsLimit bool   `json:"needs_limit,omitempty"`
	Ambiguous  bool   `json:"ambiguous,omitempty"`
	Class      string `json:"class,omitempty"` // of the trick, not of the effect
	Topic      string `json:"topic,omitempty"`
	Function   string `json:"function,omitempty"`
	Page       string `json:"page,omitempty"`
}

// ReadCorpus reads one JSON object a line.
func ReadCorpus(r io.Reader) ([]Line, error) {
	var list []Line
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		if len(strings.TrimSpace(s.Text())) == 0 {
			continue
		}
		var l Line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "Line %d of the corpus is not a JSON object with cmd and expect.", n)
		}
		if l.Cmd == "" {
			return nil, fault.New(fault.Invalid, "Line %d of the corpus has no cmd.", n)
		}
		if l.Expect != "any" && l.Expect != "not_read_only" && !slices.Contains(writ.Classes(), writ.Class(l.Expect)) {
			return nil, fault.New(fault.Invalid, "Line %d of the corpus expects %q, which is neither a class nor not_read_only nor any.", n, l.Expect)
		}
		list = append(list, l)
	}
	if err := s.Err(); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The corpus cannot be read to its end.")
	}
	return list, nil
}

// Miss is a line that was judged otherwise than it is labelled.
type Miss struct {
	Line    Line    `json:"line"`
	Verdict Verdict `json:"verdict"`
}

// Count is a part of a whole, for one group or one kind of miss.
type Count struct {
	Missed int `json:"missed"`
	Of     int `json:"of"`
}

func (c Count) String() string {
	percent := 0.0
	if c.Of > 0 {
		percent = 100 * float64(c.Missed) / float64(c.Of)
	}
	return fmt.Sprintf("%d/%d (%.1f%%)", c.Missed, c.Of, percent)
}

// Scored is the comparison of verdicts with labels. Ambiguous lines are
// counted apart, in the last two.
type Scored struct {
	FalseAllow     Count                `json:"false_allow"`            // labelled anything but read-only, called read-only
	FalseBlock     Count                `json:"false_block"`            // labelled read-only, called something else
	LimitMissing   Count                `json:"limit_missing"`          // read-only only with a limit, called read-only without
	Underrated     Count                `json:"destructive_underrated"` // labelled destructive, called at most config_mutation
	AmbiguousAllow Count                `json:"ambiguous_false_allow"`
	AmbiguousBlock Count                `json:"ambiguous_false_block"`
	Groups         map[string]*[2]Count `json:"groups"` // false-allow and false-block by class, topic, function or page
	Allowed        []Miss               `json:"allowed"`
	Blocked        []Miss               `json:"blocked"`
	Unlimited      []Miss               `json:"unlimited"`
	Mild           []Miss               `json:"underrated"`
}

// Score classifies every line and compares.
func Score(k *Knowledge, lines []Line) *Scored {
	s := &Scored{Groups: map[string]*[2]Count{}}
	for _, l := range lines {
		if l.Expect == "any" {
			continue
		}
		v := k.Classify(l.Cmd)
		readOnly, called := l.Expect == string(writ.ReadOnly), v.Class == writ.ReadOnly
		if l.Ambiguous {
			count(pick(readOnly, &s.AmbiguousBlock, &s.AmbiguousAllow), readOnly != called)
			continue
		}
		group := s.group(l)
		m := Miss{l, v}
		if readOnly {
			count(&s.FalseBlock, !called)
			count(&group[1], !called)
			if !called {
				s.Blocked = append(s.Blocked, m)
			}
			if l.NeedsLimit && called && count(&s.LimitMissing, !v.NeedsLimit) {
				s.Unlimited = append(s.Unlimited, m)
			}
			continue
		}
		if count(&s.FalseAllow, called) {
			s.Allowed = append(s.Allowed, m)
		}
		count(&group[0], called)
		if l.Expect == string(writ.Destructive) && count(&s.Underrated, v.Class != writ.Destructive) {
			s.Mild = append(s.Mild, m)
		}
	}
	return s
}

func pick(first bool, a, b *Count) *Count {
	if first {
		return a
	}
	return b
}

func count(c *Count, missed bool) bool {
	c.Of++
	if missed {
		c.Missed++
	}
	return missed
}

func (s *Scored) group(l Line) *[2]Count {
	name := l.Class + l.Topic + l.Function + l.Page
	if s.Groups[name] == nil {
		s.Groups[name] = &[2]Count{}
	}
	return s.Groups[name]
}

// maxGroups is how many groups a reader takes in: of more, only those with a
// miss are printed.
const maxGroups = 60

// Write prints the counts, in all and by group.
func (s *Scored) Write(w io.Writer) {
	fmt.Fprintf(w, "false-allow %v · false-block %v · limit missing %v · destructive underrated %v\n", s.FalseAllow, s.FalseBlock, s.LimitMissing, s.Underrated)
	fmt.Fprintf(w, "ambiguous: false-allow %v · false-block %v\n", s.AmbiguousAllow, s.AmbiguousBlock)
	for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
		if g := s.Groups[name]; len(s.Groups) <= maxGroups || g[0].Missed+g[1].Missed > 0 {
			fmt.Fprintf(w, "  %-40s false-allow %v · false-block %v\n", cmp.Or(name, "(no class or topic)"), g[0], g[1])
		}
	}
}

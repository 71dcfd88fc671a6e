package connect

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// asTOML is TOML. It is edited line by line, which does for files as people
// write them; Merge sees to it that nothing else comes of it.
type asTOML struct{}

func (asTOML) parse(text []byte) (map[string]any, error) {
	out := map[string]any{}
	return out, toml.Unmarshal(text, &out)
}

var (
	tableLine = regexp.MustCompile(`^\s*\[`)
	setLine   = regexp.MustCompile(`^\s*[^#\s]`)
)

func (asTOML) edit(text []byte, s Setting) ([]byte, error) {
	last := len(s.Path) - 1
	line := s.Path[last] + " = " + string(encoded(s.Value, ""))
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	begin := 0
	if header := "[" + strings.Join(s.Path[:last], ".") + "]"; last > 0 {
		begin = 1 + slices.IndexFunc(lines, func(l string) bool {
			l, _, _ = strings.Cut(l, "#")
			return strings.TrimSpace(l) == header
		})
		if begin == 0 {
			lines = append(lines, "", header)
			begin = len(lines)
		}
	}
	end := len(lines)
	if i := slices.IndexFunc(lines[begin:], tableLine.MatchString); i >= 0 {
		end = begin + i
	}
	key := regexp.MustCompile(`^\s*` + regexp.QuoteMeta(s.Path[last]) + `\s*=`)
	if i := slices.IndexFunc(lines[begin:end], key.MatchString); i >= 0 {
		lines[begin+i] = line
	} else {
		// Behind what is set already, before what may be a comment to the next table.
		for end > begin && !setLine.MatchString(lines[end-1]) {
			end--
		}
		lines = slices.Insert(lines, end, line)
	}
	return append(bytes.TrimLeft([]byte(strings.Join(lines, "\n")), "\n"), '\n'), nil
}

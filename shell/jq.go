package shell

import "strings"

// jqScript judges a filter for jq: what reaches beyond the input is refused.
func (w *walker) jqScript(v *word) (effects, string) {
	if !v.known {
		return bitReadSecret, "the filter for jq cannot be seen, and it may show the environment"
	}
	s := v.text
	// A string may hold code in \(…). Where one does, every word counts,
	// also one within a string: stricter, and there is nothing to lose track of.
	code := strings.Contains(s, `\(`) || strings.Contains(s, "#")
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' && !code:
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case isWordByte(c) || c == '$':
			end := i + 1
			for end < len(s) && isWordByte(s[end]) {
				end++
			}
			name := s[i:end]
			field := i > 0 && s[i-1] == '.'
			key := strings.HasPrefix(strings.TrimLeft(s[end:], " "), ":")
			switch {
			case name == "$ENV", name == "env" && !field && !key, name == "$__prog_args":
				return bitReadSecret, "jq's " + name + " holds the secrets of the environment"
			case !field && !key && (name == "import" || name == "include" || name == "modulemeta" || name == "get_search_list"):
				return bitExecOpaque, "jq's " + name + " takes in other files"
			}
			i = end - 1
		}
	}
	return 0, ""
}

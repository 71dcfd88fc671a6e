package oracle

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"writ/shell"
)

// option is one spelling of an option; value is the kind of what it takes.
type option struct{ name, value string }

// verb is a command or one of its verbs, as command knowledge lists them.
type verb struct {
	name    string
	options []option
	kinds   []string // of the operands
	verbs   []*verb
}

// builtins are the commands that bash has itself.
const builtins = "[ alias bg cd command compgen complete declare dirs echo enable eval exec exit export false fc getopts hash help history jobs kill let local mapfile printf pushd popd pwd read readarray readonly return set shift shopt source test times trap true type typeset ulimit umask unalias unset wait"

// known returns every command that is known and can run here.
func known(t *testing.T, k *shell.Knowledge) (list []*verb) {
	t.Helper()
	for _, name := range k.Names() {
		_, err := exec.LookPath(name)
		if err != nil && !slices.Contains(strings.Fields(builtins), name) {
			continue
		}
		info, ok := k.Command(name)
		if !ok {
			continue
		}
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(info.Source), &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sets, _ := doc["sets"].(map[string]any)
		v := &verb{name: name}
		v.read(doc, sets)
		list = append(list, v)
	}
	return list
}

// read takes over what a document says.
func (v *verb) read(doc, sets map[string]any) {
	v.operands(doc["operands"])
	if text, ok := doc["options"].(string); ok {
		v.optionLines(text, sets)
	}
	verbs, _ := doc["commands"].(map[string]any)
	for _, names := range slices.Sorted(maps.Keys(verbs)) {
		for name := range strings.SplitSeq(names, "|") {
			sub := &verb{name: name}
			if body, ok := verbs[names].(map[string]any); ok {
				sub.read(body, sets)
			} else {
				sub.operands(verbs[names])
			}
			v.verbs = append(v.verbs, sub)
		}
	}
	acts, _ := doc["acts"].(map[string]any)
	for _, effect := range slices.Sorted(maps.Keys(acts)) {
		names, _ := acts[effect].([]any)
		for _, name := range names {
			if s, ok := name.(string); ok {
				v.verbs = append(v.verbs, &verb{name: s})
			}
		}
	}
}

func (v *verb) operands(text any) {
	s, _ := text.(string)
	for kind := range strings.FieldsSeq(s) {
		v.kinds = append(v.kinds, bare(kind))
	}
}

// optionLines reads the lines of a block of options.
func (v *verb) optionLines(text string, sets map[string]any) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line, _, _ = strings.Cut(line, " #")
		value := ""
		var names []string
		for token := range strings.FieldsSeq(line) {
			switch {
			case strings.HasPrefix(token, "@"):
				set, _ := sets[token[1:]].(string)
				v.optionLines(set, nil)
			case strings.HasPrefix(token, "="), strings.HasPrefix(token, "[="):
				value = bare(strings.Trim(token, "[=]"))
			case !strings.HasPrefix(token, "!") && !strings.HasPrefix(token, "~"):
				names = append(names, token)
			}
		}
		for _, name := range names {
			v.options = append(v.options, option{name, value})
		}
	}
}

// bare takes what an operand does, and how often it stands, from its kind.
func bare(kind string) string {
	if strings.HasPrefix(kind, "one(") {
		return kind
	}
	kind, _, _ = strings.Cut(kind, "!")
	kind, _, _ = strings.Cut(kind, "(")
	return strings.TrimRight(kind, "?*+")
}

package shell

import (
	"fmt"
	"slices"
	"strings"
)

// acts is what a word of knowledge does beside taking a value.
type acts struct {
	add  effects // dropped by a dry run
	keep effects // stays in a dry run
	drop effects // base effects that no longer hold

	dry, stop, plain, tree, first, names bool
}

func (a *acts) empty() bool { return *a == acts{} }

// parse takes one "!effect", "!!effect", "~effect" or "!mark".
func (a *acts) parse(token string) error {
	name := strings.TrimLeft(token, "!~")
	if token[0] == '~' {
		if name == "all" {
			a.drop = ^effects(0)
			return nil
		}
		bit, ok := effectBit(name)
		if !ok {
			return fmt.Errorf("%q names no effect", token)
		}
		a.drop |= bit
		return nil
	}
	switch name {
	case "dry":
		a.dry = true
	case "stop":
		a.stop = true
	case "plain":
		a.plain = true
	case "tree":
		a.tree = true
	case "first":
		a.first = true
	case "names":
		a.names = true
	default:
		bit, ok := effectBit(name)
		if !ok {
			return fmt.Errorf("%q names no effect and no mark", token)
		}
		if strings.HasPrefix(token, "!!") {
			a.keep |= bit
		} else {
			a.add |= bit
		}
	}
	return nil
}

// kind is what a value is, and so how it is judged.
type kind uint8

const (
	kindNone kind = iota
	kindText
	kindNumber
	kindPathRead
	kindTreeRead
	kindPathMeta
	kindPathWrite
	kindPathOut
	kindPathDelete
	kindPathExec
	kindDir
	kindCommand
	kindShell
	kindAwk
	kindSed
	kindJq
	kindSQL
	kindHost
	kindURL
	kindEnv
	kindKV
	kindReplace
	kindOne
	kindItem
	kindLetters
	kindExec
	kindFormat
	kindNamed
)

// kinds lists the words of the notation, in the order of the constants.
func kinds() []string {
	return []string{
		"none", "text", "number", "path_read", "tree_read", "path_meta", "path_write", "path_out", "path_delete", "path_exec", "dir",
		"command", "shell", "awk", "sed", "jq", "sql", "host", "url", "env", "kv", "replace", "one", "item", "letters", "exec", "format", "named",
	}
}

// spec is one value or operand: text, path_write, one(a|b!write), item(service)!runtime.
type spec struct {
	kind  kind
	arg   string
	one   map[string]acts
	acts  acts
	named int  // of kindNamed: the kind of the second word
	quant byte // 0, '?', '*' or '+'
}

// parseSpec reads one item of the notation.
func parseSpec(token string) (spec, error) {
	var s spec
	if n := len(token) - 1; n > 0 && strings.IndexByte("?*+", token[n]) >= 0 {
		s.quant, token = token[n], token[:n]
	}
	end := strings.IndexAny(token, "(!~")
	if end < 0 {
		end = len(token)
	}
	name, rest := token[:end], token[end:]
	if strings.HasPrefix(rest, "(") {
		close := strings.IndexByte(rest, ')')
		if close < 0 {
			return s, fmt.Errorf("%q has no closing bracket", token)
		}
		s.arg, rest = rest[1:close], rest[close+1:]
	}
	i := slices.Index(kinds(), name)
	if i <= 0 {
		return s, fmt.Errorf("%q is no kind of value: use one of %s", name, strings.Join(kinds()[1:], ", "))
	}
	s.kind = kind(i)
	if s.kind == kindOne {
		s.one = map[string]acts{}
		for _, v := range strings.Split(s.arg, "|") {
			v, a, err := splitActs(v)
			if err != nil {
				return s, err
			}
			s.one[v] = a
		}
	} else if s.kind == kindNamed {
		if s.named = slices.Index(kinds(), s.arg); s.named <= 0 {
			return s, fmt.Errorf("%q: named has a kind in brackets", token)
		}
	} else if needs := s.kind == kindItem || s.kind == kindLetters; needs != (s.arg != "") && s.kind != kindSQL {
		return s, fmt.Errorf("%q: one, item and letters have an argument in brackets, sql may have one, the others have none", token)
	}
	_, a, err := splitActs(rest)
	s.acts = a
	return s, err
}

// splitActs cuts "value!write~limit" into the value and what it does.
func splitActs(token string) (string, acts, error) {
	var a acts
	end := strings.IndexAny(token, "!~")
	if end < 0 {
		return token, a, nil
	}
	value, rest := token[:end], token[end:]
	for rest != "" {
		next := strings.IndexAny(strings.TrimLeft(rest, "!~"), "!~")
		cut := len(rest)
		if next >= 0 {
			cut = next + len(rest) - len(strings.TrimLeft(rest, "!~"))
		}
		if err := a.parse(rest[:cut]); err != nil {
			return value, a, err
		}
		rest = rest[cut:]
	}
	return value, a, nil
}

// option is one option with all its names.
type option struct {
	name     string // the first name
	takes    bool   // a value
	optional bool   // only when glued: --opt=value, -ovalue
	value    spec
	acts     acts
}

// parseOptions reads an option block: one line a group of options that are
// alike; a line that ends in a backslash goes on with the next. sets holds the blocks that @name stands for.
func parseOptions(block string, sets map[string]string, into map[string]*option) error {
	for _, line := range strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n") {
		tokens := strings.Fields(line)
		if i := slices.IndexFunc(tokens, func(t string) bool { return strings.HasPrefix(t, "#") }); i >= 0 {
			tokens = tokens[:i]
		}
		if len(tokens) == 0 {
			continue
		}
		if name, ok := strings.CutPrefix(tokens[0], "@"); ok {
			set, ok := sets[name]
			if !ok || len(tokens) > 1 {
				return fmt.Errorf("the set @%s does not exist, or something stands beside it", name)
			}
			if err := parseOptions(set, nil, into); err != nil {
				return err
			}
			continue
		}
		if err := parseOptionLine(tokens, into); err != nil {
			return fmt.Errorf("option line %q: %w", strings.TrimSpace(line), err)
		}
	}
	return nil
}

func parseOptionLine(tokens []string, into map[string]*option) error {
	var names []string
	proto := option{}
	for _, t := range tokens {
		switch {
		case strings.HasPrefix(t, "=") && t != "=" || strings.HasPrefix(t, "[=") && strings.HasSuffix(t, "]"):
			proto.takes, proto.optional = true, t[0] == '['
			s, err := parseSpec(strings.TrimSuffix(strings.TrimLeft(t, "[="), "]"))
			if err != nil {
				return err
			}
			proto.value = s
		case (t[0] == '!' || t[0] == '~') && len(t) > 1 && len(names) > 0:
			if err := proto.acts.parse(t); err != nil {
				return err
			}
		case proto.takes || !proto.acts.empty():
			return fmt.Errorf("%q: the names come first", t)
		default:
			names = append(names, t)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("there is no name")
	}
	for _, n := range names {
		o := proto
		o.name = n
		if into[n] != nil {
			return fmt.Errorf("%s stands twice", n)
		}
		into[n] = &o
	}
	return nil
}

// parseOperands reads the operands of a command, in their order.
func parseOperands(text string) ([]spec, error) {
	var list []spec
	for i, t := range strings.Fields(text) {
		s, err := parseSpec(t)
		if err != nil {
			return nil, fmt.Errorf("operand %d: %w", i+1, err)
		}
		list = append(list, s)
	}
	repeats := 0
	for i, s := range list {
		if s.quant == '*' || s.quant == '+' {
			repeats++
		}
		if s.kind == kindCommand && i != len(list)-1 {
			return nil, fmt.Errorf("a command takes the rest: it comes last")
		}
	}
	if repeats > 1 && !slices.ContainsFunc(list, func(s spec) bool { return s.kind == kindEnv }) {
		return nil, fmt.Errorf("only one operand may repeat")
	}
	return list, nil
}

package shell

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"writ"
)

// grammar says how the arguments of a command are read.
type grammar uint8

const (
	gnu      grammar = iota // getopt_long: clusters, glued values, options anywhere
	posix                   // the same, but options end at the first operand
	single                  // -name value and -name=value, options anywhere
	goflag                  // the same, but options end at the first operand
	keyvalue                // every operand is name=value, as with dd
	oldstyle                // gnu, and a first word without a dash is a cluster, as with tar
	findlike                // operands, then an expression of primaries, as with find
	raw                     // no options: every word is an operand
)

func grammars() []string {
	return []string{"gnu", "posix", "single", "goflag", "keyvalue", "oldstyle", "find", "raw"}
}

// node is a command or a verb, compiled.
type node struct {
	name, path, about, hint string
	names                   []string // of a verb
	manual                  string
	aliases                 []string // of a command, and what follows:
	file, source            string
	examples                []Example

	grammar     grammar
	globals     bool // options of the nodes above are taken here too
	prefix      bool // a verb may be cut short: the first that begins so is meant
	opts        map[string]*option
	operands    []spec
	hasOperands bool
	base        acts
	bare        bool // may stand without a verb
	anything    bool // words that are not listed do not matter: the class is known
	optionsSafe bool
	abbreviate  bool
	input       bool // without a path_read operand, it reads its input
	stdin       spec // what its input is, where a text that stands here is given to it
	appends     bool // arguments come from elsewhere, as with xargs
	foreign     bool // its command runs where programs of that name may be others
	output      output
	hook        func(*walker, *call)

	parent *node
	over   *node   // what was known before, where this tightens it
	verbs  []*node // in the order of the file
	verb   map[string]*node
}

// compile turns a document into nodes and reports every problem in it. source
// is its text, in file. over, if any, is what the document tightens: what it
// leaves out is as it was.
func compile(file, source string, d *commandDoc, over *node) (*node, error) {
	if d.Command == "" || d.About == "" {
		return nil, fmt.Errorf("a document says at least command and about")
	}
	root := &node{output: outAny, over: over, manual: d.Manual, aliases: d.Aliases, name: d.Command, path: d.Command, grammar: gnu, globals: true, file: file, source: strings.Trim(source, "\n") + "\n"}
	c := compiler{sets: d.Sets, root: root}
	c.examples(&d.Examples)
	c.node(root, &d.nodeDoc)
	for _, later := range c.likes {
		c.like(later.n, later.as)
	}
	return root, errors.Join(c.problems...)
}

type compiler struct {
	sets     map[string]string
	root     *node
	problems []error
	likes    []likeness
}

type likeness struct {
	n  *node
	as string
}

// examples reads the lists of commands under their classes.
func (c *compiler) examples(list *yaml.Node) {
	if len(list.Content) == 0 {
		c.problems = append(c.problems, fmt.Errorf("%s has no examples", c.root.name))
	}
	for i := 0; i+1 < len(list.Content); i += 2 {
		key, of := list.Content[i].Value, list.Content[i+1]
		class, limit := strings.CutSuffix(key, "+limit")
		if !slices.Contains(writ.Classes(), writ.Class(class)) || of.Kind != yaml.SequenceNode {
			c.fail(c.root, fmt.Errorf("examples are lists under a class, or a class+limit, not under %q", key))
			continue
		}
		for _, ex := range of.Content {
			c.root.examples = append(c.root.examples, Example{ex.Value, writ.Class(class), limit, ex.Line})
		}
	}
}

func (c *compiler) fail(n *node, err error) {
	if err != nil {
		c.problems = append(c.problems, fmt.Errorf("%s: %w", n.path, err))
	}
}

func (c *compiler) node(n *node, d *nodeDoc) {
	if n.over != nil {
		n.inherit()
	}
	n.about, n.hint = cmp.Or(d.About, n.about), cmp.Or(d.Hint, n.hint)
	if n.about == "" && n.parent != nil {
		n.about = n.parent.about
	}
	if d.Grammar != "" {
		i := slices.Index(grammars(), d.Grammar)
		if i < 0 {
			c.fail(n, fmt.Errorf("grammar is one of %s", strings.Join(grammars(), ", ")))
		}
		n.grammar = grammar(max(i, 0))
	}
	c.fail(n, oneOf("globals", d.Globals, "", "anywhere", "before"))
	c.fail(n, oneOf("verbs", d.Verbs, "", "exact", "prefix"))
	c.fail(n, oneOf("output", d.Output, "", "tame", "names", "filter"))
	if d.Globals != "" {
		n.globals = d.Globals == "anywhere"
	}
	if d.Verbs != "" {
		n.prefix = d.Verbs == "prefix"
	}
	if d.Output != "" {
		n.output = map[string]output{"tame": outTame, "names": outNames, "filter": outFilter}[d.Output]
	}
	n.bare, n.anything, n.optionsSafe = n.bare || d.Bare, n.anything || d.Anything, n.optionsSafe || d.OptionsSafe
	n.input = n.input || d.Input
	n.appends, n.foreign, n.abbreviate = n.appends || d.Append, n.foreign || d.Foreign, n.abbreviate || d.Abbreviations
	own := map[string]*option{}
	c.fail(n, parseOptions(d.Options, c.sets, own))
	if n.opts = own; n.over != nil {
		n.opts = maps.Clone(n.over.opts)
		maps.Copy(n.opts, own)
	}
	if d.Stdin != "" {
		var err error
		n.stdin, err = parseSpec(d.Stdin)
		c.fail(n, err)
	}
	if d.Operands != nil {
		var err error
		n.hasOperands = true
		n.operands, err = parseOperands(*d.Operands)
		c.fail(n, err)
	}
	for _, e := range strings.Fields(strings.ReplaceAll(d.Effects, ",", " ")) {
		c.fail(n, n.base.parse("!"+e))
	}
	if n.anything && classOf(n.base.add|n.base.keep) == "read_only" {
		c.fail(n, fmt.Errorf("anything is only for what is not read-only by its effects"))
	}
	if d.Hook != "" {
		if n.hook = hook(d.Hook); n.hook == nil {
			c.fail(n, fmt.Errorf("there is no hook %q", d.Hook))
		}
	}
	if d.Like != "" {
		c.likes = append(c.likes, likeness{n, d.Like})
	}
	c.children(n, d)
	if n.over != nil {
		n.inheritVerbs()
	}
}

// inherit begins a node with what it tightens. Both are asked, so that nothing
// said here can loosen what was known.
func (n *node) inherit() {
	o := n.over
	n.about, n.hint, n.grammar, n.globals, n.prefix, n.output = o.about, o.hint, o.grammar, o.globals, o.prefix, o.output
	n.bare, n.anything, n.optionsSafe, n.appends, n.foreign, n.abbreviate = o.bare, o.anything, o.optionsSafe, o.appends, o.foreign, o.abbreviate
	n.operands, n.hasOperands, n.base, n.hook = o.operands, o.hasOperands, o.base, o.hook
	n.stdin = o.stdin
}

func (n *node) inheritVerbs() {
	if n.verb == nil {
		n.verb = map[string]*node{}
	}
	for _, v := range n.over.verbs {
		before := len(n.verb)
		for _, name := range v.names {
			if n.verb[name] == nil {
				n.verb[name] = v
			}
		}
		if len(n.verb) > before {
			n.verbs = append(n.verbs, v)
		}
	}
	if len(n.verb) == 0 {
		n.verb = nil // an empty one means that a verb is expected
	}
}

func oneOf(key, got string, allowed ...string) error {
	if slices.Contains(allowed, got) {
		return nil
	}
	return fmt.Errorf("%s is one of %s", key, strings.Join(allowed[1:], ", "))
}

// children compiles the verbs: those with a body under commands, and those that
// are known by their effect alone under acts.
func (c *compiler) children(n *node, d *nodeDoc) {
	list := d.Commands.Content
	if d.Commands.Kind != 0 && d.Commands.Kind != yaml.MappingNode {
		c.fail(n, fmt.Errorf("commands is a mapping from a verb to its body"))
		return
	}
	for i := 0; i+1 < len(list); i += 2 {
		var body nodeDoc
		switch v := list[i+1]; {
		case v.Kind == yaml.ScalarNode && strings.HasPrefix(v.Value, "!"):
			body = act(strings.ReplaceAll(v.Value[1:], "!", " "))
		case v.Kind == yaml.ScalarNode:
			operands := v.Value
			body.Operands = &operands
		default:
			if err := decodeStrict(v, &body); err != nil {
				c.fail(n, fmt.Errorf("line %d: %w", v.Line, err))
				continue
			}
		}
		child := c.child(n, list[i].Value)
		c.node(child, &body)
	}
	for _, effects := range slices.Sorted(keys(d.Acts)) {
		for _, name := range d.Acts[effects] {
			body := act(effects)
			c.node(c.child(n, name), &body)
		}
	}
}

// act is the body of a verb that is known by its effect alone: whatever stands
// behind it, a --help included, which many programs look at too late.
func act(effects string) nodeDoc {
	return nodeDoc{Effects: effects, Anything: true, Grammar: "posix", Globals: "before"}
}

func keys(m map[string][]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// decodeStrict decodes a part of a document and refuses keys that do not exist.
func decodeStrict(v *yaml.Node, into *nodeDoc) error {
	for i := 0; v.Kind == yaml.MappingNode && i+1 < len(v.Content); i += 2 {
		if !slices.Contains(nodeKeys(), v.Content[i].Value) {
			return fmt.Errorf("there is no key %q", v.Content[i].Value)
		}
	}
	return v.Decode(into)
}

func nodeKeys() []string {
	return []string{"about", "hint", "grammar", "globals", "verbs", "options", "operands", "effects", "bare", "anything", "options_safe", "abbreviations", "append", "input", "stdin", "foreign", "output", "hook", "like", "acts", "commands"}
}

// child makes a verb; "a|b" gives it two names.
func (c *compiler) child(n *node, names string) *node {
	list := strings.Split(names, "|")
	child := &node{output: outAny, name: list[0], names: list, path: n.path + "/" + list[0], parent: n, grammar: n.grammar, globals: n.globals, prefix: n.prefix, optionsSafe: false, abbreviate: n.abbreviate}
	if n.over != nil {
		child.over = n.over.verb[list[0]]
	}
	if n.verb == nil {
		n.verb = map[string]*node{}
	}
	for _, name := range list {
		if n.verb[name] != nil {
			c.fail(n, fmt.Errorf("the verb %s stands twice", name))
		}
		n.verb[name] = child
	}
	n.verbs = append(n.verbs, child)
	return child
}

// like makes a verb the same as another one of the command.
func (c *compiler) like(n *node, as string) {
	from := c.root
	for _, verb := range strings.Fields(as) {
		if from = from.verb[verb]; from == nil {
			c.fail(n, fmt.Errorf("there is no verb %q to be like", as))
			return
		}
	}
	name, names, path, parent := n.name, n.names, n.path, n.parent
	*n = *from
	n.name, n.names, n.path, n.parent = name, names, path, parent
}

// find returns the verb that a word means here.
func (n *node) find(word string) *node {
	if v := n.verb[word]; v != nil || !n.prefix || word == "" {
		return v
	}
	for _, v := range n.verbs {
		for _, name := range v.names {
			if strings.HasPrefix(name, word) {
				return v
			}
		}
	}
	return nil
}

package shell

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
	"mvdan.cc/sh/v3/syntax"

	"writ"
	"writ/fault"
)

//go:embed commands/*.yaml policy.yaml
var shipped embed.FS

// shippedFS is the knowledge of this build. Its files were checked when it was
// tested, so Load reads each only when its command is first met.
type shippedFS struct{ embed.FS }

// Shipped returns the knowledge that comes with the program: policy.yaml and
// commands/*.yaml.
func Shipped() fs.FS { return shippedFS{shipped} }

// Knowledge is everything known about commands. It may be used by many at once.
type Knowledge struct {
	entries map[string]*entry
	names   []string // primary names, sorted
	policy  policy
	parsers sync.Pool
	walkers sync.Pool
}

// entry is one command. Several specs are all asked, and the strictest holds.
type entry struct {
	once   sync.Once
	file   string
	parse  func() *node // set for a command that was not read yet
	spec   *node
	more   []*node
	broken error
}

func (e *entry) node() *node {
	e.once.Do(func() {
		if e.parse != nil {
			e.spec = e.parse()
		}
	})
	return e.spec
}

// knows says whether a name is that of a command.
func (k *Knowledge) knows(name string) bool { return k.entries[name] != nil }

// commandDoc is one YAML document: one command.
type commandDoc struct {
	Command  string            `yaml:"command"`
	Aliases  []string          `yaml:"aliases"`
	Manual   string            `yaml:"manual"`
	Override bool              `yaml:"override"`
	Sets     map[string]string `yaml:"sets"`
	Examples yaml.Node         `yaml:"examples"`
	nodeDoc  `yaml:",inline"`
}

// nodeDoc is a command or one of its verbs.
type nodeDoc struct {
	About         string              `yaml:"about"`
	Hint          string              `yaml:"hint"`
	Grammar       string              `yaml:"grammar"`
	Globals       string              `yaml:"globals"`
	Verbs         string              `yaml:"verbs"`
	Options       string              `yaml:"options"`
	Operands      *string             `yaml:"operands"`
	Effects       string              `yaml:"effects"`
	Bare          bool                `yaml:"bare"`
	Anything      bool                `yaml:"anything"`
	OptionsSafe   bool                `yaml:"options_safe"`
	Abbreviations bool                `yaml:"abbreviations"`
	Append        bool                `yaml:"append"`
	Foreign       bool                `yaml:"foreign"`
	Output        string              `yaml:"output"`
	Hook          string              `yaml:"hook"`
	Like          string              `yaml:"like"`
	Acts          map[string][]string `yaml:"acts"`
	Commands      yaml.Node           `yaml:"commands"`
}

// Load reads knowledge. shipped holds policy.yaml and the commands; each extra
// may add commands, and what it says of a command that is known already is
// asked besides, so that it can only tighten; only a document with
// "override: true" takes the place of what was known. Every problem is in the
// error, each with its file.
func Load(shipped fs.FS, extra ...fs.FS) (*Knowledge, error) {
	k := &Knowledge{entries: map[string]*entry{}}
	k.parsers.New = func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }
	var problems []error
	if err := k.loadPolicy(shipped, false); err != nil {
		problems = append(problems, err)
	}
	var docs []loaded
	if own, ok := shipped.(shippedFS); ok {
		problems = append(problems, k.index(own)...)
	} else {
		list, errs := k.read(shipped, false)
		docs, problems = append(docs, list...), append(problems, errs...)
	}
	for _, more := range extra {
		if err := k.loadPolicy(more, true); err != nil {
			problems = append(problems, err)
		}
		list, errs := k.read(more, true)
		docs, problems = append(docs, list...), append(problems, errs...)
	}
	for name := range k.entries {
		k.names = append(k.names, name)
	}
	slices.Sort(k.names)
	if len(problems) == 0 {
		for _, d := range docs {
			problems = append(problems, k.checkExamples(d)...)
		}
	}
	if len(problems) > 0 {
		err := errors.Join(problems...)
		return nil, fault.Wrap(fault.Invalid, err, "The knowledge of commands cannot be used:\n%s", err.Error())
	}
	return k, nil
}

// loaded is a document with the file it came from.
type loaded struct {
	file string
	doc  commandDoc
}

func files(fsys fs.FS) ([]string, error) {
	var list []string
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(p) == ".yaml" && path.Base(p) != "policy.yaml" {
			list = append(list, p)
		}
		return err
	})
	return list, err
}

// read compiles every document of a file system.
func (k *Knowledge) read(fsys fs.FS, extra bool) (docs []loaded, problems []error) {
	list, err := files(fsys)
	if err != nil {
		return nil, []error{fmt.Errorf("the files cannot be listed: %w", err)}
	}
	for _, file := range list {
		data, err := fs.ReadFile(fsys, file)
		if err == nil {
			var in []commandDoc
			if in, err = decode(data); err == nil {
				for _, d := range in {
					if e := k.add(file, d, extra); e != nil {
						err = errors.Join(err, e)
					}
					docs = append(docs, loaded{file, d})
				}
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
		}
	}
	return docs, problems
}

func decode(data []byte) ([]commandDoc, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var list []commandDoc
	for {
		var d commandDoc
		err := dec.Decode(&d)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
}

// add compiles one document and gives it its names.
func (k *Knowledge) add(file string, d commandDoc, extra bool) error {
	n, err := compile(&d)
	if err != nil {
		return err
	}
	for _, name := range append([]string{d.Command}, d.Aliases...) {
		old := k.entries[name]
		switch {
		case old == nil || extra && d.Override:
			k.entries[name] = &entry{file: file, spec: n}
		case extra:
			old.more = append(old.more, n)
		default:
			return fmt.Errorf("the command %s is known already from %s", name, old.file)
		}
	}
	return nil
}

// index finds the names in the shipped files without reading the rest.
func (k *Knowledge) index(fsys fs.FS) (problems []error) {
	list, err := files(fsys)
	if err != nil {
		return []error{err}
	}
	for _, file := range list {
		data, err := fs.ReadFile(fsys, file)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, doc := range bytes.Split(data, []byte("\n---\n")) {
			k.indexDoc(file, doc)
		}
	}
	return problems
}

func (k *Knowledge) indexDoc(file string, data []byte) {
	e := &entry{file: file}
	parse := sync.OnceValue(func() *node {
		docs, err := decode(data)
		if err != nil || len(docs) != 1 {
			return nil
		}
		n, err := compile(&docs[0])
		if err != nil {
			return nil
		}
		return n
	})
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "command:"); ok {
			k.entries[unquote(name)] = &entry{file: file, parse: parse}
		} else if names, ok := strings.CutPrefix(line, "aliases:"); ok {
			for _, name := range strings.Split(strings.Trim(strings.TrimSpace(names), "[]"), ",") {
				k.entries[unquote(name)] = &entry{file: e.file, parse: parse}
			}
		}
	}
}

func unquote(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }

// checkExamples classifies the examples of a document.
func (k *Knowledge) checkExamples(d loaded) (problems []error) {
	list := d.doc.Examples.Content
	if len(list) == 0 {
		return []error{fmt.Errorf("%s: %s has no examples", d.file, d.doc.Command)}
	}
	for i := 0; i+1 < len(list); i += 2 {
		class, limit := strings.CutSuffix(list[i].Value, "+limit")
		if !slices.Contains(writ.Classes(), writ.Class(class)) || list[i+1].Kind != yaml.SequenceNode {
			problems = append(problems, fmt.Errorf("%s: examples are lists under a class, or a class+limit, not under %q", d.file, list[i].Value))
			continue
		}
		for _, ex := range list[i+1].Content {
			v := k.Classify(ex.Value)
			if v.Class != writ.Class(class) || limit != v.NeedsLimit && v.Class == writ.ReadOnly {
				problems = append(problems, fmt.Errorf("%s:%d: the example %q is %s (limit: %v), not %s: %s", d.file, ex.Line, ex.Value, v.Class, v.NeedsLimit, list[i].Value, strings.Join(v.Reasons, "; ")))
			}
		}
	}
	return problems
}

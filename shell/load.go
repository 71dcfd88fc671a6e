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
	walkers sync.Pool
}

// entry is one command. Several specs are all asked, and the strictest holds.
type entry struct {
	once  sync.Once
	file  string
	parse func() *node // set for a command that was not read yet
	spec  *node
	more  []*node
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
	Input         bool                `yaml:"input"`
	Stdin         string              `yaml:"stdin"`
	Foreign       bool                `yaml:"foreign"`
	Output        string              `yaml:"output"`
	Hook          string              `yaml:"hook"`
	Like          string              `yaml:"like"`
	Acts          map[string][]string `yaml:"acts"`
	Commands      yaml.Node           `yaml:"commands"`
}

// Load reads knowledge. shipped holds policy.yaml and the commands; each extra
// may add commands, and what it says of a command that is known already is
// asked besides, so that it can only tighten (what it leaves out is as it was);
// only a document with
// "override: true" takes the place of what was known. Every problem is in the
// error, each with its file.
func Load(shipped fs.FS, extra ...fs.FS) (*Knowledge, error) {
	k := &Knowledge{entries: map[string]*entry{}}
	var problems []error
	if err := k.loadPolicy(shipped, false); err != nil {
		problems = append(problems, err)
	}
	var docs []*node
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
		for _, n := range docs {
			problems = append(problems, k.checkExamples(n)...)
		}
	}
	if len(problems) > 0 {
		err := errors.Join(problems...)
		return nil, fault.Wrap(fault.Invalid, err, "The knowledge of commands cannot be used:\n%s", err.Error())
	}
	return k, nil
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
func (k *Knowledge) read(fsys fs.FS, extra bool) (docs []*node, problems []error) {
	list, err := files(fsys)
	if err != nil {
		return nil, []error{fmt.Errorf("the files cannot be listed: %w", err)}
	}
	for _, file := range list {
		data, err := fs.ReadFile(fsys, file)
		var in []commandDoc
		if err == nil {
			in, err = decode(data)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
			continue
		}
		sources := documents(data)
		for i := range in {
			source := data // all of it, where documents are parted in some other way
			if len(sources) == len(in) {
				source = sources[i]
			}
			var over *node
			if old := k.entries[in[i].Command]; extra && old != nil && !in[i].Override {
				over = old.node()
			}
			n, err := compile(file, string(source), &in[i], over)
			if err == nil {
				err = k.add(n, extra, in[i].Override)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", file, err))
			}
			docs = append(docs, n)
		}
	}
	return docs, problems
}

// documents parts a file at the lines "---".
func documents(data []byte) [][]byte { return bytes.Split(data, []byte("\n---\n")) }

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

// add gives a command its names.
func (k *Knowledge) add(n *node, extra, override bool) error {
	for _, name := range append([]string{n.name}, n.aliases...) {
		old := k.entries[name]
		switch {
		case old == nil || extra && override:
			k.entries[name] = &entry{file: n.file, spec: n}
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
		for _, doc := range documents(data) {
			k.indexDoc(file, doc)
		}
	}
	return problems
}

func (k *Knowledge) indexDoc(file string, data []byte) {

	parse := sync.OnceValue(func() *node {
		docs, err := decode(data)
		if err != nil || len(docs) != 1 {
			return nil
		}
		n, err := compile(file, string(data), &docs[0], nil)
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
				k.entries[unquote(name)] = &entry{file: file, parse: parse}
			}
		}
	}
}

func unquote(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }

// checkExamples classifies the examples of a document.
func (k *Knowledge) checkExamples(n *node) (problems []error) {
	for _, ex := range n.examples {
		v := k.Classify(ex.Command)
		if v.Class != ex.Class || ex.NeedsLimit != v.NeedsLimit && v.Class == writ.ReadOnly {
			problems = append(problems, fmt.Errorf("%s:%d: the example %q is %s (limit: %v), not %s (limit: %v): %s", n.file, ex.line, ex.Command, v.Class, v.NeedsLimit, ex.Class, ex.NeedsLimit, strings.Join(v.Reasons, "; ")))
		}
	}
	return problems
}

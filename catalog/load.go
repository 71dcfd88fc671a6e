package catalog

import (
	"embed"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"writ"
	"writ/fault"
)

//go:embed actions
var shipped embed.FS

// Builtin returns the shipped actions and their settings.yaml, as Load takes them.
func Builtin() fs.FS {
	sub, err := fs.Sub(shipped, "actions")
	if err != nil {
		return shipped // fs.Sub fails only on a name that is not valid
	}
	return sub
}

const (
	settingsFile = "settings.yaml"
	maxFiles     = 1000
)

// Catalog is all actions and the operator's settings. It is never changed and
// is safe for concurrent use.
type Catalog struct {
	actions  map[string]*Action
	settings map[string]writ.Object
}

// Load reads every *.yaml below fsys, one action a file, and settings.yaml at
// the top. If files are at fault the error is Problems: everything that is
// wrong, examples that do not come true included, and there is no catalog.
func Load(fsys fs.FS) (*Catalog, error) {
	names, err := findFiles(fsys)
	if err != nil {
		return nil, err
	}
	lang, err := newLanguage()
	if err != nil {
		return nil, err
	}
	l := &loader{fsys: fsys, lang: lang, files: map[string]*file{}, c: &Catalog{
		actions: map[string]*Action{}, settings: map[string]writ.Object{},
	}}
	for _, name := range names {
		if name == settingsFile {
			continue
		}
		if err := l.action(name); err != nil {
			return nil, err
		}
	}
	l.link()
	l.shapes()
	if err := l.settings(slices.Contains(names, settingsFile)); err != nil {
		return nil, err
	}
	l.examples()
	if len(l.problems) > 0 {
		l.problems.sort()
		return nil, l.problems
	}
	return l.c, nil
}

// findFiles returns the YAML files of a directory tree, in order. What anybody
// on the machine could change is no catalog: it says what may be done.
func findFiles(fsys fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || path.Ext(name) == ".yaml" {
			info, err := fs.Stat(fsys, name)
			if err == nil && info.Mode().Perm()&0o002 != 0 {
				return Problems{{File: name, Text: "everybody can change it; take that away with chmod -R o-w"}}
			}
		}
		if d.IsDir() {
			return nil
		}
		switch path.Ext(name) {
		case ".yaml":
			names = append(names, name)
		case ".yml":
			return Problems{{File: name, Text: "the file would be overlooked; name it .yaml"}}
		}
		return nil
	})
	if p, ok := err.(Problems); ok {
		return nil, p
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The catalog's directory cannot be read.")
	}
	if len(names) > maxFiles {
		return nil, fault.New(fault.Invalid, "The catalog has %d files; the limit is %d.", len(names), maxFiles)
	}
	return names, nil
}

type loader struct {
	fsys     fs.FS
	lang     *language
	c        *Catalog
	files    map[string]*file // by action name: where it stands
	order    []*Action
	problems Problems
	// incomplete says that not every file gave an action, so that what seems
	// to be missing may be there.
	incomplete bool
}

// read returns the content of a file, at most a byte more than it may have.
func (l *loader) read(name string) ([]byte, error) {
	f, err := l.fsys.Open(name)
	if err == nil {
		defer func() { _ = f.Close() }()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err == nil {
			return data, nil
		}
	}
	return nil, fault.Wrap(fault.Invalid, err, "The file %s of the catalog cannot be read.", name)
}

func (l *loader) action(name string) error {
	data, err := l.read(name)
	if err != nil {
		return err
	}
	f := &file{name, &l.problems}
	root := parse(f, data)
	if root == nil {
		l.incomplete = true
		return nil
	}
	a, err := l.lang.readAction(root, data)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "The file %s of the catalog cannot be compiled.", name)
	}
	if other := l.files[a.Name]; other != nil {
		root.fail("the action %s stands in %s already", a.Name, other.name)
		return nil
	}
	l.files[a.Name] = f
	l.c.actions[a.Name] = a
	l.order = append(l.order, a)
	return nil
}

// link finds the actions that lead back, and checks that they can be called.
func (l *loader) link() {
	for _, a := range l.order {
		for i := range a.rollbacks {
			r := &a.rollbacks[i]
			if r.target = l.c.actions[r.action]; r.target == nil {
				if !l.incomplete {
					r.at.fail("there is no action %q in this catalog", r.action)
				}
				continue
			}
			l.checkWayBack(a, r)
		}
	}
}

func (l *loader) checkWayBack(a *Action, r *rollback) {
	t := r.target
	if t.Forbidden != "" || !t.Writes() {
		r.at.fail("%s is forbidden or only reads: it is no way back", t.Name)
	}
	if t.System != a.System {
		r.at.fail("%s acts on a %s, not on a %s", t.Name, t.System, a.System)
	}
	if r.params == nil {
		return
	}
	for _, name := range r.params.keys {
		if t.params.root.properties[name] == nil {
			r.at.fail("%s has no param %q", t.Name, name)
		}
	}
	for _, name := range t.params.root.required {
		if t.params.root.properties[name].fallback == nil && !slices.Contains(r.params.keys, name) {
			r.at.fail("%s needs the param %q", t.Name, name)
		}
	}
}

// settings reads the operator's values. A key is the name of an action, or
// "prefix.*" for all actions of that prefix that have the setting.
func (l *loader) settings(exists bool) error {
	given := map[string]writ.Object{}
	places := map[string]*value{}
	if exists {
		data, err := l.read(settingsFile)
		if err != nil {
			return err
		}
		if root := parse(&file{settingsFile, &l.problems}, data); root != nil && root.v != nil {
			l.spread(root.mapping(), given, places)
		}
	}
	for _, a := range l.order {
		if a.settings.compiled == nil {
			continue // reported already
		}
		full, err := a.settings.accept(given[a.Name], "settings")
		if err != nil {
			at := places[a.Name]
			if at == nil {
				at = &value{file: &file{settingsFile, &l.problems}, path: a.Name}
			}
			at.fail("%s", fault.TextOf(err))
			continue
		}
		l.c.settings[a.Name] = full
	}
	return nil
}

// spread hands the values of settings.yaml to the actions; what is said for one
// action goes before what is said for all with its prefix.
func (l *loader) spread(o *object, given map[string]writ.Object, places map[string]*value) {
	for _, exact := range []bool{false, true} {
		for _, key := range o.keys {
			prefix, all := strings.CutSuffix(key, "*")
			if all == exact {
				continue
			}
			v := o.values[key]
			members := v.mapping()
			used := map[string]bool{}
			for _, a := range l.order {
				if a.Name != key && !(all && strings.HasPrefix(a.Name, prefix)) {
					continue
				}
				places[a.Name] = v
				if given[a.Name] == nil {
					given[a.Name] = writ.Object{}
				}
				for _, name := range members.keys {
					if _, known := a.settings.root.properties[name]; known || !all {
						given[a.Name][name] = objects(members.values[name].plain())
						used[name] = true
					}
				}
			}
			for _, name := range members.keys {
				if !used[name] && !l.incomplete {
					members.values[name].fail("no action of this catalog has the setting for %q", key)
				}
			}
		}
	}
}

// Action returns the action of that name.
func (c *Catalog) Action(name string) (*Action, bool) {
	a, ok := c.actions[name]
	return a, ok
}

// Names returns the names of all actions, sorted.
func (c *Catalog) Names() []string { return sortedNames(c.actions) }

// Digest covers the definitions of all actions, not the settings.
func (c *Catalog) Digest() writ.Digest {
	var b strings.Builder
	for _, name := range c.Names() {
		b.WriteString(name + " " + string(c.actions[name].Digest) + "\n")
	}
	return writ.DigestBytes([]byte(b.String()))
}

// Settings returns the operator's values for an action, defaults filled in.
func (c *Catalog) Settings(action string) writ.Object {
	o, _ := objects(plain(c.settings[action])).(writ.Object)
	return o
}

package shell

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

type policyDoc struct {
	Secrets  []string            `yaml:"secrets"`
	Names    []string            `yaml:"names"`
	Public   []string            `yaml:"public"`
	Trees    []string            `yaml:"trees"`
	Devices  []string            `yaml:"devices"`
	Harmless []string            `yaml:"harmless"`
	Ordinary []string            `yaml:"ordinary"`
	Breaking []string            `yaml:"breaking"`
	Export   map[string][]string `yaml:"export"`
	Taint    []string            `yaml:"taint"`
}

// exported is a variable that may be handed to a program. No values means any
// plain one.
type exported struct {
	name   *pattern
	values []string
}

// loadPolicy adds what a policy.yaml says. Lists only grow: of those that
// excuse something (public, harmless, ordinary, export), an operator's file may hold
// none unless it is the shipped one.
func (k *Knowledge) loadPolicy(fsys fs.FS, extra bool) error {
	data, err := fs.ReadFile(fsys, "policy.yaml")
	if errors.Is(err, fs.ErrNotExist) && extra {
		return nil
	}
	if err != nil {
		return fmt.Errorf("policy.yaml: %w", err)
	}
	var d policyDoc
	if err := yaml.Load(data, &d, yaml.WithKnownFields()); err != nil {
		return fmt.Errorf("policy.yaml: %w", err)
	}
	if extra && len(d.Public)+len(d.Harmless)+len(d.Ordinary)+len(d.Export) > 0 {
		return errors.New("policy.yaml: public, harmless, ordinary and export loosen the rules: only the shipped policy has them")
	}
	p := &k.policy
	known := len(p.secrets.all)
	for _, l := range []struct {
		into *patterns
		list []string
	}{
		{&p.secrets, d.Secrets}, {&p.names, d.Names}, {&p.public, d.Public}, {&p.trees, d.Trees},
		{&p.devices, d.Devices}, {&p.harmless, d.Harmless}, {&p.breaking, d.Breaking}, {&p.taint, d.Taint},
	} {
		for _, text := range l.list {
			l.into.add(newPattern(text))
		}
	}
	p.ordinary = append(p.ordinary, d.Ordinary...)
	for name, values := range d.Export {
		p.export = append(p.export, exported{newPattern(name), values})
	}
	slices.SortFunc(p.export, func(a, b exported) int {
		return cmp.Or(len(a.name.text)-len(b.name.text), strings.Compare(a.name.text, b.name.text))
	})
	for _, s := range p.secrets.all[known:] {
		if s.last != nil {
			p.lasts.add(s.last)
		}
	}
	return nil
}

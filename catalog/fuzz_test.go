package catalog_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"writ/catalog"
	"writ/fault"
)

// FuzzLoad wants the loader to answer every file with a catalog or with
// problems that say where.
func FuzzLoad(f *testing.F) {
	f.Add(base, "shop.*: {ceiling: 7}\n")
	f.Add(loose, "")
	f.Add(shelf, "")
	f.Add("a: &x [*x]\n", "b: !!binary x\n")
	f.Add("{{{{", "[]")
	f.Add("? [a]\n: b\n", "~")
	shipped := catalog.Builtin()
	for _, name := range []string{"proxmox/create_lxc.yaml", "netbox/test_write.yaml"} {
		data, err := fs.ReadFile(shipped, name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data), "")
	}
	f.Fuzz(func(t *testing.T, action, settings string) {
		c, err := catalog.Load(fstest.MapFS{
			"a.yaml": {Data: []byte(action)}, "settings.yaml": {Data: []byte(settings)},
		})
		if err == nil {
			for _, name := range c.Names() {
				a, _ := c.Action(name)
				if !a.Digest.Valid() || a.Name != name || c.Settings(name) == nil {
					t.Errorf("the action %q is not whole", name)
				}
			}
			return
		}
		found, ok := errors.AsType[catalog.Problems](err)
		if !ok || len(found) == 0 || c != nil {
			t.Fatalf("Load = %v, %v", c, err)
		}
		for _, p := range found {
			if p.Text == "" || !strings.Contains("a.yaml settings.yaml", p.File) || p.Line < 0 || p.Line > len(action)+len(settings)+1 {
				t.Errorf("the problem is %+v", p)
			}
		}
		if !slices.IsSortedFunc(found, func(a, b catalog.Problem) int { return strings.Compare(a.File, b.File) }) {
			t.Error("the problems are not sorted")
		}
	})
}

// FuzzFactsOf: whatever is asked for, the params that are read from a name lead
// back to exactly that name, or nothing is found.
func FuzzFactsOf(f *testing.F) {
	for _, entity := range []string{
		"proxmox/pve/lxc/121", "proxmox/pve/lxc/0121", "npm/proxy-hosts/3", "netbox/ipam/prefixes/12", "netbox/ipam/0/2001:db8::1", "netbox/extras/tags/x",
		"file/docs/a/b.md", "file/docs/../x.md", "mock/demo", "mock//demo", "mock/${system}", "a/\x00", "/", "", "mock/demo\n",
	} {
		f.Add(entity)
	}
	c, err := catalog.Load(catalog.Builtin())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, entity string) {
		system, _, _ := strings.Cut(entity, "/")
		for _, kind := range []string{"proxmox", "netbox", "npm", "file", "mock", "none"} {
			a, params, err := c.FactsOf(kind, entity)
			if err != nil {
				if a != nil || params != nil || fault.TextOf(err) == "" {
					t.Errorf("%q: %v, %v and %v", entity, a, params, err)
				}
				continue
			}
			again, err := a.Entity(&catalog.Scope{System: system, Params: params})
			if err != nil || again != entity || strings.ContainsFunc(entity, unicode.IsControl) {
				t.Errorf("%q became %v, which is %q, %v", entity, params, again, err)
			}
		}
	})
}

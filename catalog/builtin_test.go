package catalog_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	yaml "go.yaml.in/yaml/v4"

	"writ"
	"writ/catalog"
)

// builtinFiles returns the shipped files as a file system that a test may change.
func builtinFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(catalog.Builtin(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(catalog.Builtin(), name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// needed copies an action and those that lead back from it: loading all of them
// again for every case would take a minute.
func needed(t *testing.T, all fstest.MapFS, name string, into fstest.MapFS) {
	t.Helper()
	if all[name] == nil || into[name] != nil {
		return
	}
	into[name] = all[name]
	for line := range strings.Lines(string(all[name].Data)) {
		if _, action, ok := strings.Cut(strings.TrimSpace(line), "action: "); ok {
			needed(t, all, strings.Replace(action, ".", "/", 1)+".yaml", into)
		}
	}
}

// sabotage is one change to an action that its examples must notice.
type sabotage struct {
	name  string
	apply func(action map[string]any)
}

func sabotages(action map[string]any) []sabotage {
	var all []sabotage
	each := func(key string, change func(entry map[string]any)) {
		list, _ := action[key].([]any)
		for i := range list {
			all = append(all, sabotage{fmt.Sprintf("%s[%d]", key, i), func(a map[string]any) {
				change(a[key].([]any)[i].(map[string]any))
			}})
		}
	}
	each("guards", func(e map[string]any) { e["that"] = "true" })
	each("health", func(e map[string]any) { e["that"] = "true" })
	if facts, ok := action["facts"].(map[string]any); ok {
		for name := range facts {
			all = append(all, sabotage{"fact " + name, func(a map[string]any) {
				a["facts"].(map[string]any)[name].(map[string]any)["value"] = "optional.none()"
			}})
		}
	}
	each("verify", func(e map[string]any) { e["that"] = "false" })
	each("preview", func(e map[string]any) { e["to"] = "something else" })
	each("wait", func(e map[string]any) { e["failed"] = "response.data.status == 'stopped'" })
	each("wait", func(e map[string]any) { e["done"] = "response.data.status == 'stopped'" })
	each("wait", func(e map[string]any) { e["get"] = "/elsewhere" })
	each("resolve", func(e map[string]any) { e["value"] = "'somewhere else'" })
	each("apply", func(e map[string]any) {
		for _, verb := range []string{"post", "put", "patch", "delete", "write", "remove"} {
			if path, ok := e[verb].(string); ok {
				e[verb] = path + "x"
			}
		}
	})
	each("apply", func(e map[string]any) {
		if form, ok := e["form"].(map[string]any); ok {
			form["force"] = 1
		} else if body, ok := e["json"].(map[string]any); ok {
			body["force"] = true
		} else if text, ok := e["text"].(string); ok {
			e["text"] = text + "x"
		} else {
			e["form"] = map[string]any{"force": 1}
		}
	})
	if _, ok := action["rollback"]; ok {
		all = append(all, sabotage{"rollback", func(a map[string]any) {
			delete(a, "rollback")
			a["irreversible"] = "sabotage"
		}})
	}
	return all
}

// TestBuiltin_examplesNotice breaks every guard, check, preview, wait, call and
// way back of every shipped action, one at a time: its own examples must notice.
func TestBuiltin_examplesNotice(t *testing.T) {
	t.Parallel()
	all := builtinFiles(t)
	for name, f := range all {
		if name == "settings.yaml" {
			continue
		}
		parse := func() map[string]any {
			var action map[string]any
			if err := yaml.Load(f.Data, &action); err != nil {
				t.Fatal(err)
			}
			return action
		}
		whole := fstest.MapFS{}
		needed(t, all, name, whole)
		if _, err := catalog.Load(whole); err != nil {
			t.Fatalf("%s alone: %v", name, err)
		}
		for _, s := range sabotages(parse()) {
			t.Run(name+" "+s.name, func(t *testing.T) {
				t.Parallel()
				action := parse()
				s.apply(action)
				text, err := yaml.Dump(action)
				if err != nil {
					t.Fatal(err)
				}
				files := fstest.MapFS{}
				needed(t, all, name, files)
				files[name] = &fstest.MapFile{Data: text}
				if _, err = catalog.Load(files); err == nil {
					t.Error("the examples do not notice")
				}
			})
		}
	}
}

// TestBuiltin_paramsAreClosed gives every text param of every shipped action
// every attack. What is accepted must stay one value of a call.
func TestBuiltin_paramsAreClosed(t *testing.T) {
	t.Parallel()
	c := builtin(t)
	for _, name := range c.Names() {
		a, _ := c.Action(name)
		props, _ := a.Schema()["properties"].(map[string]any)
		for param, s := range props {
			shape, _ := s.(map[string]any)
			if shape["type"] != "string" || shape["enum"] != nil {
				continue
			}
			for _, x := range attacks() {
				_, err := a.Params(writ.Object{param: x})
				refused := err != nil && strings.Contains(err.Error(), "params."+param+":")
				inPath := strings.Contains(string(a.Source()), "/${params."+param)
				if inPath && !refused && strings.ContainsAny(x, "?#%\\\x00\n\r;&= ") {
					t.Errorf("%s takes %s = %q, which goes into a path", name, param, x)
				}
			}
		}
	}
}

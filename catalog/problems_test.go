package catalog_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"writ/catalog"
)

// base is a whole action that is right. Tests break it in one place.
const base = `action: shop.set_price
summary: Set the price of one article
system: http
class: config_mutation
params:
  type: object
  additionalProperties: false
  required: [id, price]
  properties:
    id: {type: string, pattern: "^[a-z0-9-]{1,40}$"}
    price: {type: integer, minimum: 0, maximum: 1000000}
    note: {type: string, maxLength: 50}
settings:
  type: object
  additionalProperties: false
  properties:
    ceiling: {type: integer, minimum: 0, maximum: 1000000, default: 500}
resolve:
  - {name: shop, get: /shop, value: response.data.name}
entity: ${system}/${resolved.shop}/${params.id}
touches: ["${system}/prices"]
observe:
  article: {get: "/articles/${params.id}"}
guards:
  - that: params.price <= settings.ceiling
    else: the price ${params.price} is above ${settings.ceiling}
fingerprint: ${observed.article.data.version}
backup: [article]
preview:
  - {field: price, from: "${observed.article.data.price}", to: "${params.price}"}
apply:
  - put: /articles/${params.id}
    json: {price: "${params.price}", note: "${params.?note}"}
    if_match: ${observed.article.etag}
    as: job
wait:
  - get: /jobs/${applied.job.data.id}
    while: response.data.state == 'running'
    done: response.data.state == 'done'
    failed: response.data.state == 'failed'
    every: 1s
    within: 10s
probe:
  page: {get: /, at: site, host: shop.example.test}
verify:
  - {name: price_matches, that: observed.article.data.price == params.price}
  - {name: page_shows_it, that: probed.page.text.contains(string(params.price))}
verify_within: 5s
verify_every: 1s
rollback:
  action: shop.set_price
  params: {id: "${params.id}", price: "${backup.article.data.price}"}
outputs:
  job: {value: "applied.job.data.id", type: string}
examples:
  - params: {id: door, price: 10}
    accept: true
    resolved: {shop: main}
    observed: {article: {data: {price: 8, version: v1}, etag: '"v1"'}}
    applied: {job: {data: {id: j1}}}
    after: {article: {data: {price: 10, version: v2}}}
    probed: {page: {text: now 10}}
    expect:
      calls: [{put: /articles/door, json: {price: 10}, if_match: '"v1"'}]
  - params: {id: "../door", price: 10}
    accept: false
`

func load(files map[string]string) (*catalog.Catalog, error) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return catalog.Load(fsys)
}

// problems loads files that are at fault and returns what is said of them.
func problems(t *testing.T, files map[string]string) []string {
	t.Helper()
	_, err := load(files)
	found, ok := errors.AsType[catalog.Problems](err)
	if !ok {
		t.Fatalf("Load = %v, want Problems", err)
	}
	var lines []string
	for _, p := range found {
		lines = append(lines, p.String())
	}
	return lines
}

// edit replaces the one place where old stands.
func edit(t *testing.T, text, old, new string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q stands %d times in the text", old, strings.Count(text, old))
	}
	return strings.Replace(text, old, new, 1)
}

func TestLoad_theBaseIsRight(t *testing.T) {
	t.Parallel()
	if _, err := load(map[string]string{"a.yaml": base}); err != nil {
		t.Fatal(err)
	}
}

// broken is one way to break the base.
type broken struct{ name, old, new, want string }

// refuses wants each break to be reported.
func refuses(t *testing.T, all []broken) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := strings.Join(problems(t, map[string]string{"a.yaml": edit(t, base, c.old, c.new)}), "\n")
			if !strings.Contains(all, c.want) {
				t.Errorf("the problems are\n%s\nwhich do not hold\n%s", all, c.want)
			}
		})
	}
}

func TestLoad_refusesForm(t *testing.T) {
	t.Parallel()
	refuses(t, []broken{
		{"unknown key", "summary:", "sumary: x\nsummary:", "a.yaml:2: sumary: the key is not known"},
		{"unknown key in a guard", "    else: the price", "    because: x\n    else: the price", "a.yaml:26: guards[0].because: the key is not known"},
		{"duplicate key", "class: config_mutation", "class: config_mutation\nclass: read_only", "a.yaml:5: class: the key stands twice"},
		{"second document", "examples:\n", "examples:\n  - {params: {id: a, price: 1}, accept: true}\n---\nx:\n", "there is a second document"},
		{"no YAML", "params:\n", "params: [\n", "this is not YAML"},
		{"alias", "touches: [", "touches: &all [", "anchors and aliases are not allowed"},
		{"tag", "summary: Set", "summary: !!binary Set", "tags like !!binary are not allowed"},
		{"merge", "summary:", "<<: {a: 1}\nsummary:", "a key must be a plain word"},
		{"octal number", "maximum: 1000000}\n    note", "maximum: 0777}\n    note", "write whole numbers in decimal"},
		{"name", "shop.set_price\nsummary", "shop/set_price\nsummary", `a.yaml:1: action: "shop/set_price" must match`},
		{"class", "class: config_mutation", "class: harmless", `a.yaml:4: class: "harmless" must be one of read_only`},
		{"no system", "system: http\n", "", "a.yaml:1: system is missing"},
	})
}

func TestLoad_refusesSchemas(t *testing.T) {
	t.Parallel()
	refuses(t, []broken{
		{"open schema", "params:\n  type: object\n  additionalProperties: false", "params:\n  type: object", "a.yaml:5: params: an object must be closed"},
		{"open inner schema", "note: {type: string, maxLength: 50}", "note: {type: object, properties: {}}", "params.properties.note: an object must be closed"},
		{"unbounded text", "note: {type: string, maxLength: 50}", "note: {type: string}", "a.yaml:12: params.properties.note: a string needs maxLength"},
		{"pattern without end", `"^[a-z0-9-]{1,40}$"`, `"^[a-z0-9-]{1,40}"`, "must begin with ^ and end with $"},
		{"pattern of two halves", `"^[a-z0-9-]{1,40}$"`, `"^a|b$"`, "must begin with ^ and end with $"},
		{"pattern of lines", `"^[a-z0-9-]{1,40}$"`, `"(?m)^[a-z0-9-]{1,40}$"`, "must begin with ^ and end with $"},
		{"unbounded number", "price: {type: integer, minimum: 0, maximum: 1000000}", "price: {type: integer, minimum: 0}", "an integer needs minimum and maximum"},
		{"number", "note: {type: string, maxLength: 50}", "note: {type: number}", `"number" must be one of object, array`},
		{"unbounded list", "note: {type: string, maxLength: 50}", "note: {type: array, items: {type: boolean}}", "params.properties.note: maxItems is missing"},
		{"list of anything", "note: {type: string, maxLength: 50}", "note: {type: array, maxItems: 3}", "params.properties.note: items is missing"},
		{"reference", "note: {type: string, maxLength: 50}", `note: {$ref: "#/properties/id"}`, "params.properties.note.$ref: the key is not known"},
		{"huge text", "maxLength: 50}", "maxLength: 5000000}", "params.properties.note.maxLength: there must be a whole number from 0 to 65536"},
		{"required but unknown", "required: [id, price]", "required: [id, prize]", `params.required[1]: "prize" is required but is not among the properties`},
		{"default against its schema", "default: 500", "default: -1", "the default of ceiling is not allowed"},
		{"property name", "    note: {type", "    Note-1: {type", "the name must match"},
	})
}

func TestLoad_refusesExpressions(t *testing.T) {
	t.Parallel()
	refuses(t, []broken{
		{"misspelt param", "to: \"${params.price}\"}", "to: \"${params.prize}\"}", `a.yaml:30: preview[0].to: the expression "params.prize" is not valid: undefined field 'prize'`},
		{"misspelt setting", "params.price <= settings.ceiling", "params.price <= settings.cieling", "undefined field 'cieling'"},
		{"wrong type", "params.price <= settings.ceiling", "params.id <= settings.ceiling", "found no matching overload for '_<=_'"},
		{"guard that is no question", "params.price <= settings.ceiling", "params.price + settings.ceiling", "a.yaml:25: guards[0].that: the expression must be true or false, this one is int"},
		{"unknown observation", "${observed.article.data.version}", "${observed.artikel.data.version}", "undefined field 'artikel'"},
		{"unknown field of an observation", "${observed.article.data.version}", "${observed.article.body.version}", "undefined field 'body'"},
		{"unknown resolved value", "${resolved.shop}", "${resolved.shopp}", "undefined field 'shopp'"},
		{"no backup of that name", "backup: [article]", "backup: [price]", `backup[0]: "price" is not among the observations`},
		{"backup not named", "${backup.article.data.price}", "${backup.shop.data.price}", "undefined field 'shop'"},
		{"too early", "entity: ${system}/${resolved.shop}", "entity: ${system}/${observed.article.text}", `may not use observed here, only system, params, settings, resolved`},
		{"after the fact", "price: \"${backup.article.data.price}\"", "price: \"${observed.article.data.price}\"", "may not use observed here"},
		{"answer outside of a wait", "params.price <= settings.ceiling", "response.found", "may not use response here"},
		{"optional as if given", "to: \"${params.price}\"}", "to: \"${params.note}\"}", "uses params.note, which may be absent"},
		{"clock", "params.price <= settings.ceiling", "timestamp('2026-01-01T00:00:00Z').getFullYear() > 1", "undeclared reference to 'timestamp'"},
		{"made-up value", "params.price <= settings.ceiling", "writ.params{}.id == 'x'", "cannot be evaluated"},
		{"expression without end", "${observed.article.data.version}", "${observed.article.data.version", "has no matching }"},
		{"empty expression", "${observed.article.data.version}", "${ }", "is empty"},
		{"list in a text", "${observed.article.data.version}", "v${[1, 2]}", "cannot stand in a text"},
	})
}

func TestLoad_refusesCalls(t *testing.T) {
	t.Parallel()
	refuses(t, []broken{
		{"no verb", "put: /articles/${params.id}", "query: {a: b}", "apply[0]: there must be one of post, put"},
		{"reading verb in apply", "put: /articles/${params.id}", "get: /articles/${params.id}", "apply[0].get: the key is not known"},
		{"writing verb in observe", "article: {get:", "article: {delete:", "observe.article.delete: the key is not known"},
		{"two verbs", "put: /articles/${params.id}", "put: /articles/${params.id}\n    post: /x", "there are two verbs"},
		{"two bodies", "    as: job", "    form: {a: b}\n    as: job", "a call has one body"},
		{"query in the path", "get: /shop, value", "get: \"/shop?x=1\", value", "a query goes under query"},
		{"escaped path", "get: /shop, value", "get: /sh%2Fop, value", "must match"},
		{"relative path", "get: /shop, value", "get: shop, value", "the path must begin with /"},
		{"path upwards", "get: /shop, value", "get: /a/../shop, value", "has an empty name, . or .. in it"},
		{"double slash", "get: /shop, value", "get: //shop, value", "has an empty name, . or .. in it"},
		{"member made by an expression", "json: {price: \"${p", "json: {\"${params.id}\": \"${p", "the name of a member cannot have an expression"},
		{"another host for the system itself", "page: {get: /, at: site,", "page: {get: /,", "only another endpoint"},
	})
}

func TestLoad_refusesRules(t *testing.T) {
	t.Parallel()
	refuses(t, []broken{
		{"nothing verified", "verify:\n  - {name: price_matches, that: observed.article.data.price == params.price}\n  - {name: page_shows_it, that: probed.page.text.contains(string(params.price))}\n", "", "a.yaml:1: verify is missing"},
		{"no backup", "backup: [article]\n", "", "a.yaml:1: backup is missing"},
		{"empty backup", "backup: [article]", "backup: []", "a writing action needs at least one"},
		{"no way back and no reason", "rollback:\n  action: shop.set_price\n  params: {id: \"${params.id}\", price: \"${backup.article.data.price}\"}\n", "", "exactly one of rollback and irreversible"},
		{"way back and a reason", "probe:", "irreversible: it is so\nprobe:", "exactly one of rollback and irreversible"},
		{"no preview", "preview:\n  - {field: price, from: \"${observed.article.data.price}\", to: \"${params.price}\"}\n", "", "exactly one of preview and preview_unknown"},
		{"reads but writes", "class: config_mutation", "class: read_only", "a.yaml:31: apply: a read_only action writes nothing"},
		{"forbidden but writes", "class: config_mutation", "class: config_mutation\nforbidden: never", "a forbidden action does nothing"},
		{"unknown way back", "  action: shop.set_price", "  action: shop.unset", `there is no action "shop.unset" in this catalog`},
		{"unknown param of the way back", "params: {id: \"${params.id}\", price: \"${b", "params: {id: \"${params.id}\", x: 1, price: \"${b", `shop.set_price has no param "x"`},
		{"missing param of the way back", "params: {id: \"${params.id}\", price: \"${backup.article.data.price}\"}", "params: {id: \"${params.id}\"}", `shop.set_price needs the param "price"`},
		{"time that does not fit", "within: 10s", "within: 10m", "does not fit into the timeout of the step"},
		{"time that is none", "every: 1s\n    within", "every: soon\n    within", "must be a duration from 100ms to 30m0s"},
		{"half of a time", "verify_every: 1s\n", "", "verify_within and verify_every belong together"},
		{"fraction", "json: {price: \"${params.price}\"", "json: {vat: 0.19, price: \"${params.price}\"", "outside of examples all numbers are whole"},
	})
}

func TestLoad_refusesExamples(t *testing.T) {
	t.Parallel()
	refuses(t, []broken{
		{"no accepting example", "accept: true", "accept: false", "the example should be refused but is accepted"},
		{"no refusing example", "  - params: {id: \"../door\", price: 10}\n    accept: false\n", "", "there must be an example with accept: false"},
		{"refused though it should not be", "params: {id: \"../door\", price: 10}\n    accept: false", "params: {id: \"../door\", price: 10}\n    accept: true", "the example should be accepted but is refused: The params are not accepted: params.id"},
		{"another reason", "accept: false", "accept: false\n    why: too dear", "the refusal does not say this but"},
		{"call that is another", "calls: [{put: /articles/door,", "calls: [{put: /articles/window,", `the call is {"if_match":"\"v1\"","json":{"price":10},"put":"/articles/door"}, which is not what the example expects`},
		{"one call too many", "calls: [", "calls: [{put: /x}, ", "expect.calls: the calls are"},
		{"check that fails", "after: {article: {data: {price: 10,", "after: {article: {data: {price: 11,", "the check price_matches gives false, the example says true"},
		{"answer that is missing", "observed: {article: {data", "observed: {artikel: {data", `the answer to "article" is missing`},
		{"output of another type", "type: string}\nexamples", "type: integer}\nexamples", `the outputs cannot be computed: The output "job" is not integer`},
		{"expression that fails", "version: v1}", "versions: v1}", "the fingerprint cannot be computed"},
		{"preview that is another", "expect:\n", "expect:\n      preview: [{field: price, from: \"9\", to: \"10\"}]\n", `the preview is [{"field":"price","from":"8","to":"10"}]`},
		{"entity that is another", "expect:\n", "expect:\n      entity: x/y\n", `entity is "http/main/door"`},
		{"touched that is another", "expect:\n", "expect:\n      touches: []\n", `touches is ["http/prices"]`},
		{"way back that is another", "expect:\n", "expect:\n      rollback: none\n", `the way back is {"action":"shop.set_price","params":{"id":"door","price":8}}`},
		{"state that is another", "expect:\n", "waits: [{response: {data: {state: lost}}, state: pending}]\n    expect:\n", "the state is odd, the example says pending"},
		{"value that is another", "expect:\n", "resolves: [{name: shop, response: {data: {name: side}}, value: main}]\n    expect:\n", `the value is "side"`},
	})
}

func TestLoad_reportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	one := edit(t, base, "note: {type: string, maxLength: 50}", "note: {type: string}")
	one = edit(t, one, "params.price <= settings.ceiling", "params.prize <= settings.ceiling")
	one = edit(t, one, "backup: [article]\n", "")
	got := problems(t, map[string]string{
		"shop/one.yaml": one, "shop/two.yaml": "action: shop.two\nsumary: x\n", "settings.yaml": "shop.*: {floor: 1}\n",
	})
	want := []string{
		`settings.yaml:1: shop.*.floor: no action of this catalog has the setting for "shop.*"`,
		`shop/one.yaml:1: backup is missing`,
		`shop/one.yaml:12: params.properties.note: a string needs maxLength, an anchored pattern, enum, const or format`,
		`shop/one.yaml:25: guards[0].that: the expression "params.prize <= settings.ceiling" is not valid: undefined field 'prize'`,
		`shop/one.yaml:51: rollback.params.price: the expression "backup.article.data.price" is not valid: undefined field 'article'`,
		`shop/two.yaml:1: system is missing`,
		`shop/two.yaml:1: class is missing`,
		`shop/two.yaml:1: params is missing`,
		`shop/two.yaml:1: entity is missing`,
		`shop/two.yaml:1: apply is missing`,
		`shop/two.yaml:1: verify is missing`,
		`shop/two.yaml:1: backup is missing`,
		`shop/two.yaml:1: a writing action has exactly one of rollback and irreversible`,
		`shop/two.yaml:1: a writing action has exactly one of preview and preview_unknown`,
		`shop/two.yaml:1: examples is missing`,
		`shop/two.yaml:1: summary is missing`,
		`shop/two.yaml:2: sumary: the key is not known`,
	}
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], "; known here")
	}
	if diff := cmp.Diff(want, got, cmp.Transformer("sorted", sorted)); diff != "" {
		t.Errorf("the problems differ (-want +got):\n%s", diff)
	}
}

func TestLoad_files(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"two of one name", map[string]string{"a.yaml": base, "b.yaml": base}, "b.yaml:1: the action shop.set_price stands in a.yaml already"},
		{"another ending", map[string]string{"a.yml": base}, "a.yml: the file would be overlooked; name it .yaml"},
		{"empty", map[string]string{"a.yaml": ""}, "a.yaml: this is not YAML: the file is empty"},
		{"too large", map[string]string{"a.yaml": strings.Repeat("# x\n", 100000)}, "a.yaml: the file has"},
		{"too deep", map[string]string{"a.yaml": strings.Repeat("[", 200) + strings.Repeat("]", 200)}, "nested deeper"},
		{"setting of the wrong type", map[string]string{"a.yaml": base, "settings.yaml": "shop.set_price: {ceiling: many}\n"},
			"settings.yaml:1: shop.set_price: The settings are not accepted: settings.ceiling: got string, want integer"},
		{"setting nobody has", map[string]string{"a.yaml": base, "settings.yaml": "shop.set_price: {floor: 1}\n"}, "additional properties 'floor' not allowed"},
		{"settings of no action", map[string]string{"a.yaml": base, "settings.yaml": "shop.set_prize: {ceiling: 1}\n"}, `settings.yaml:1: shop.set_prize.ceiling: no action of this catalog has the setting`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := strings.Join(problems(t, c.files), "\n")
			if !strings.Contains(all, c.want) {
				t.Errorf("the problems are\n%s\nwhich do not hold\n%s", all, c.want)
			}
		})
	}
}

func TestLoad_refusesWhatEverybodyCanChange(t *testing.T) {
	t.Parallel()
	for name, fsys := range map[string]fstest.MapFS{
		"an action":     {"a.yaml": {Data: []byte(base), Mode: 0o666}},
		"the settings":  {"a.yaml": {Data: []byte(base)}, "settings.yaml": {Data: []byte("{}\n"), Mode: 0o602}},
		"the directory": {"x": {Mode: fs.ModeDir | 0o777}, "x/a.yaml": {Data: []byte(base), Mode: 0o600}},
	} {
		if _, err := catalog.Load(fsys); err == nil || !strings.Contains(err.Error(), "chmod -R o-w") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

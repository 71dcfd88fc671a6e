package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/catalog"
	"writ/fault"
)

// shelf is a set of facts that is right. Tests break it in one place.
const shelf = `action: shop.shelf_facts
summary: One shelf of a shop
system: http
class: read_only
params:
  type: object
  additionalProperties: false
  required: [aisle, shelf]
  properties:
    aisle: {type: string, pattern: "^[a-z]{1,20}$"}
    shelf: {type: integer, minimum: 1, maximum: 99}
    note: {type: string, maxLength: 50}
entity: ${system}/aisles/${params.aisle}/${params.shelf}
observe:
  shelf: {get: "/aisles/${params.aisle}/${params.shelf}"}
fingerprint: ${observed.shelf.etag}
facts:
  label: {value: observed.shelf.data.label, type: string, sensitivity: public}
  boxes: {value: observed.shelf.data.?boxes, type: integer}
  code: {value: observed.shelf.data.code, type: string, sensitivity: secret}
  tags: {value: observed.shelf.data.tags, type: list}
health:
  - that: observed.shelf.data.broken == false
    else: the shelf ${params.shelf} is broken (${observed.shelf.data.why})
  - that: observed.shelf.data.weight < 10
    else: the shelf is too heavy
examples:
  - params: {aisle: tea, shelf: 3}
    accept: true
    observed: {shelf: {data: {label: Green, boxes: 2, code: not-a-code, tags: [a], broken: false, weight: 1}, etag: v1}}
    expect:
      entity: http/aisles/tea/3
      facts: {label: Green, boxes: 2, tags: [a]}
      health: {state: ok}
  - params: {aisle: TEA, shelf: 3}
    accept: false
`

func TestLoad_refusesFacts(t *testing.T) {
	t.Parallel()
	for _, c := range []broken{
		{"writes", "class: read_only", "class: config_mutation", "a set of facts is read_only"},
		{"acts", "facts:\n", "apply: [{put: /x}]\nfacts:\n", "apply: a read_only action writes nothing"},
		{"keeps a backup", "facts:\n", "backup: [shelf]\nfacts:\n", "backup: a set of facts only tells what it reads"},
		{"verifies", "facts:\n", "verify: [{name: x, that: 'true'}]\nfacts:\n", "verify: a set of facts only tells what it reads"},
		{"gives outputs", "facts:\n", "outputs: {x: {value: \"'x'\", type: string}}\nfacts:\n", "outputs: a set of facts only tells what it reads"},
		{"locks others", "facts:\n", "touches: [http/x]\nfacts:\n", "touches: a set of facts only tells what it reads"},
		{"one sensitivity for all", "facts:\n", "sensitivity: public\nfacts:\n", "sensitivity: a set of facts only tells what it reads"},
		{"no health", "health:\n  - that: observed.shelf.data.broken == false\n    else: the shelf ${params.shelf} is broken (${observed.shelf.data.why})\n  - that: observed.shelf.data.weight < 10\n    else: the shelf is too heavy\n", "", "health is missing"},
		{"no fingerprint", "fingerprint: ${observed.shelf.etag}\n", "", "fingerprint is missing"},
		{"unknown sensitivity", "sensitivity: secret", "sensitivity: private", `facts.code.sensitivity: "private" must be one of public, internal, secret`},
		{"unknown type", "type: list", "type: lists", `"lists" must be one of string`},
		{"unknown key", "type: list", "kind: list", "facts.tags.kind: the key is not known"},
		{"name", "  boxes:", "  Boxes:", "the name must match"},
		{"name of another thing", "  boxes:", "  state_hash:", "be none of state_hash, health"},
		{"misspelt", "observed.shelf.data.label", "observed.shelve.data.label", "undefined field 'shelve'"},
		{"entity of a word alone", "entity: ${system}/aisles/${params.aisle}/${params.shelf}", "entity: shops/aisles/${params.aisle}/${params.shelf}", "so that the params can be read from it"},
		{"entity of half a name", "${system}/aisles/", "${system}/aisles/a-", "so that the params can be read from it"},
		{"entity of two params in a name", "/${params.shelf}\no", "${params.shelf}\no", "so that the params can be read from it"},
		{"entity of an expression", "${params.aisle}/${params.shelf}\no", "${params.aisle.lowerAscii()}/${params.shelf}\no", "so that the params can be read from it"},
		{"entity with a param twice", "/aisles/${params.aisle}/${params.shelf}\no", "/${params.shelf}/${params.aisle}/${params.shelf}\no", "so that the params can be read from it"},
		{"entity with an empty name", "${system}/aisles/", "${system}//aisles/", "so that the params can be read from it"},
		{"entity of the system alone", "entity: ${system}/aisles/${params.aisle}/${params.shelf}", "entity: ${system}", "so that the params can be read from it"},
		{"entity without a required param", "/aisles/${params.aisle}/${params.shelf}\no", "/aisles/${params.aisle}\no", `the param "shelf" is required but cannot be read from the entity`},
		{"fact that is another", "label: Green, boxes: 2, tags", "label: Black, boxes: 2, tags", `the fact label is "Green"`},
		{"fact of another type", "value: observed.shelf.data.tags, type: list", "value: observed.shelf.data.tags, type: string", "the fact tags cannot be computed"},
		{"fact that fails", "data: {label: Green", "data: {labels: Green", "the fact label cannot be computed"},
		{"fact that is none", "facts: {label: Green", "facts: {lable: x, label: Green", "there is no fact of that name"},
		{"health that is another", "health: {state: ok}", "health: {state: degraded}", `the state of health is "ok"`},
		{"health whose reasons are others", "health: {state: ok}", "health: {state: ok, reasons: [x]}", `the reason is []`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := strings.Join(problems(t, map[string]string{"a.yaml": edit(t, shelf, c.old, c.new)}), "\n")
			if !strings.Contains(all, c.want) {
				t.Errorf("the problems are\n%s\nwhich do not hold\n%s", all, c.want)
			}
		})
	}
	none := shelf[:strings.Index(shelf, "facts:\n")] + "facts: {}\n" + shelf[strings.Index(shelf, "health:\n"):]
	if all := strings.Join(problems(t, map[string]string{"a.yaml": none}), "\n"); !strings.Contains(all, "there is no fact") {
		t.Errorf("no fact: %s", all)
	}
	if _, err := load(map[string]string{"a.yaml": shelf}); err != nil {
		t.Errorf("unbroken: %v", err)
	}
	all := strings.Join(problems(t, map[string]string{"a.yaml": edit(t, base, "probe:", "health: [{that: 'true', else: x}]\nprobe:")}), "\n")
	if !strings.Contains(all, "health belongs to facts") {
		t.Errorf("health without facts: %s", all)
	}
}

// factsOf is a set of facts of an entity, with params that fit it.
func factsOf(name, entity, properties, example string) string {
	required := ""
	for line := range strings.SplitSeq(properties, "\n") {
		if param, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			required += param + ", "
		}
	}
	return `action: shop.` + name + `
summary: x
system: http
class: read_only
params:
  type: object
  additionalProperties: false
  required: [` + required + `]
  properties:
` + properties + `
entity: ` + entity + `
observe: {x: {get: /x}}
fingerprint: x
facts: {x: {value: "'x'", type: string}}
health: [{that: "true", else: x}]
examples:
  - {params: ` + example + `, accept: true, observed: {x: {data: {}}}}
  - {params: {}, accept: false}
`
}

// TestLoad_noEntityHasTwoSetsOfFacts: from the entity alone it must be clear
// which facts are asked for.
func TestLoad_noEntityHasTwoSetsOfFacts(t *testing.T) {
	t.Parallel()
	const (
		id   = "    id: {type: integer, minimum: 1, maximum: 9}"
		word = "    word: {type: string, pattern: \"^[a-z]{1,9}$\"}"
		any  = "    any: {type: string, maxLength: 99}"
	)
	byID := factsOf("a", "${system}/x/${params.id}", id, "{id: 1}")
	for _, c := range []struct {
		name, other string
		meets       bool
	}{
		{"the same", factsOf("b", "${system}/x/${params.id}", id, "{id: 1}"), true},
		{"a word where a number stands", factsOf("b", "${system}/x/all", any, "{any: x}"), false},
		{"a word that another param takes", factsOf("b", "${system}/${params.word}/${params.id}", word+"\n"+id, "{word: y, id: 1}"), true},
		{"another word", factsOf("b", "${system}/y/${params.id}", id, "{id: 1}"), false},
		{"another length", factsOf("b", "${system}/x/${params.id}/y", id, "{id: 1}"), false},
		{"a text that takes all the rest", factsOf("b", "${system}/${params.any}", any, "{any: x/2}"), true},
		{"a text of a form, as far as can be told", factsOf("b", "${system}/x/${params.word}", word, "{word: y}"), true},
	} {
		for _, files := range []map[string]string{{"a.yaml": byID, "b.yaml": c.other}, {"b.yaml": byID, "a.yaml": c.other}} {
			_, err := load(files)
			if met := err != nil && strings.Contains(err.Error(), "an entity could have these facts and those of"); met != c.meets {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	elsewhere := strings.Replace(factsOf("b", "${system}/x/${params.id}", id, "{id: 1}"), "system: http", "system: mock", 1)
	if _, err := load(map[string]string{"a.yaml": byID, "b.yaml": elsewhere}); err != nil {
		t.Errorf("another kind of system: %v", err)
	}
}

func TestFactsOf(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"shelf.yaml": {Data: []byte(shelf)}, "price.yaml": {Data: []byte(base)},
		"page.yaml": {Data: []byte(factsOf("page", "${system}/pages/${params.path}", "    path: {type: string, pattern: \"^[a-z]+(/[a-z]+)*$\"}", "{path: a/b}"))}}
	c, err := catalog.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		kind, entity string
		action       string
		params       writ.Object
		code         fault.Code
		says         string
	}{
		{"http", "shop/aisles/tea/3", "shop.shelf_facts", writ.Object{"aisle": "tea", "shelf": int64(3)}, "", ""},
		{"http", "side/pages/a", "shop.page", writ.Object{"path": "a"}, "", ""},
		{"http", "side/pages/a/b/c", "shop.page", writ.Object{"path": "a/b/c"}, "", ""},
		{"http", "shop/aisles/tea/03", "", nil, fault.NotFound, ""},
		{"http", "shop/aisles/tea/+3", "", nil, fault.NotFound, ""},
		{"http", "shop/aisles/tea/100", "", nil, fault.Invalid, "params.shelf: maximum"},
		{"http", "shop/aisles/TEA/3", "", nil, fault.Invalid, "params.aisle"},
		{"http", "shop/aisles/*/3", "", nil, fault.Invalid, "params.aisle"},
		{"http", "shop/aisles/tea/3/more", "", nil, fault.NotFound, ""},
		{"http", "shop/aisles/tea", "", nil, fault.NotFound, "shop/aisles/{aisle}/{shelf}"},
		{"http", "shop/aisles/tea/", "", nil, fault.NotFound, ""},
		{"http", "shop/pages/a/../b", "", nil, fault.NotFound, ""},
		{"http", "shop/pages/", "", nil, fault.NotFound, "shop/pages/{path…}"},
		{"http", "shop/pages//a", "", nil, fault.NotFound, ""},
		{"http", "shop/main/door", "", nil, fault.NotFound, "shop/pages"}, // an action that changes something is none
		{"http", "shop", "", nil, fault.NotFound, ""},
		{"http", "", "", nil, fault.NotFound, ""},
		{"mock", "shop/aisles/tea/3", "", nil, fault.NotFound, "Nothing is told of systems of the kind mock"},
	} {
		a, params, err := c.FactsOf(row.kind, row.entity)
		if row.code != "" {
			if fault.CodeOf(err) != row.code || a != nil || !strings.Contains(fault.TextOf(err), row.says) {
				t.Errorf("%s: %v, %v", row.entity, a, err)
			}
			continue
		}
		if err != nil || a.Name != row.action || !cmp.Equal(params, row.params) {
			t.Errorf("%s: %v, %v, %v", row.entity, a, params, err)
		}
	}
	if a, _ := c.Action("shop.shelf_facts"); a.Shape() != "{system}/aisles/{aisle}/{shelf}" || !a.IsFacts() {
		t.Errorf("the shape is %q", a.Shape())
	}
	if a, _ := c.Action("shop.set_price"); a.Shape() != "" || a.IsFacts() {
		t.Error("an action that writes is a set of facts")
	}
}

// TestFacts: what cannot be read is not made up, and health is never well by
// mistake.
func TestFacts(t *testing.T) {
	t.Parallel()
	a, _ := only(t, shelf).Action("shop.shelf_facts")
	scope := func(data any) *catalog.Scope {
		return &catalog.Scope{System: "shop", Params: writ.Object{"aisle": "tea", "shelf": int64(3)}, Observed: map[string]catalog.Seen{"shelf": {Found: true, Data: data, ETag: "v1"}}}
	}
	told := func(data any) (all []string) {
		for _, f := range a.Facts(scope(data)) {
			text := f.Text
			switch {
			case f.Err != nil:
				text = "unreadable"
			case f.Absent:
				text = "absent"
			}
			all = append(all, f.Name+"/"+f.Sensitivity+"="+text)
		}
		return all
	}
	whole := map[string]any{"label": "Green", "boxes": int64(2), "code": "c", "tags": []any{"a", "b"}, "broken": false, "weight": 1.5}
	if diff := cmp.Diff([]string{"label/public=Green", "boxes/internal=2", "code/secret=c", `tags/internal=["a","b"]`}, told(whole)); diff != "" {
		t.Error(diff)
	}
	odd := map[string]any{"label": int64(7), "code": nil, "tags": "a"}
	if diff := cmp.Diff([]string{"label/public=unreadable", "boxes/internal=absent", "code/secret=unreadable", "tags/internal=unreadable"}, told(odd)); diff != "" {
		t.Error(diff)
	}
	for _, row := range []struct {
		data    any
		state   writ.HealthState
		reasons int
	}{
		{whole, writ.HealthOK, 0},
		{map[string]any{"broken": true, "why": "rust", "weight": 1.0}, writ.HealthDegraded, 1},
		{map[string]any{"broken": true, "weight": 20.0}, writ.HealthDegraded, 2},
		{map[string]any{"broken": true}, writ.HealthDegraded, 2},
		{map[string]any{"weight": 20.0}, writ.HealthDegraded, 2},
		{map[string]any{"broken": false}, writ.HealthUnknown, 1},
		{nil, writ.HealthUnknown, 2},
	} {
		state, reasons := a.Health(scope(row.data))
		if state != row.state || len(reasons) != row.reasons {
			t.Errorf("%v is %s: %q", row.data, state, reasons)
		}
	}
	if _, reasons := a.Health(scope(map[string]any{"broken": true, "why": "rust", "weight": 1.0})); !slices.Contains(reasons, "the shelf 3 is broken (rust)") {
		t.Errorf("the reasons are %q", reasons)
	}
}

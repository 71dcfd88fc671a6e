package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// Vendor is Proxmox's own schema of its API. It shares no code with the fake: what the fake accepts and refuses in the
// tests of this package is compared with it.
type Vendor struct {
	Paths map[string]map[string]VendorMethod
}

// VendorMethod is what the schema says of one method.
type VendorMethod struct {
	AllowToken  int `json:"allowtoken"`
	Parameters  struct{ Properties map[string]VendorParam }
	Permissions struct {
		Check []any
		User  string
	}
	Returns VendorParam
}

// VendorParam is one value in the schema.
type VendorParam struct {
	Type                 string
	Optional             int
	Minimum, Maximum     *json.Number
	MinLength, MaxLength int
	Enum                 []string
	Pattern              string
	Format               json.RawMessage // a name, or the keys of a property string
	Requires             string
	Properties           map[string]VendorParam
	Items                *VendorParam
}

// LoadVendor reads the schema from the directory in WRIT_SPECS; nil if there is none, which CI does not allow.
func LoadVendor(t *testing.T) *Vendor {
	t.Helper()
	if os.Getenv("WRIT_SPECS") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("WRIT_SPECS must name the directory with the vendors' schemas")
		}
		return nil
	}
	v, err := readVendor()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// needVendor is LoadVendor for a test that is nothing without the schema.
func needVendor(t *testing.T) *Vendor {
	t.Helper()
	v := LoadVendor(t)
	if v == nil {
		t.Skip("WRIT_SPECS names no directory with the vendors' schemas")
	}
	return v
}

// readVendor parses half a megabyte once for all tests, which only read it.
var readVendor = sync.OnceValues(func() (*Vendor, error) {
	raw, err := os.ReadFile(filepath.Join(os.Getenv("WRIT_SPECS"), "proxmox", "pve-api-9.1.3-cut.json"))
	if err != nil {
		return nil, err
	}
	var v Vendor
	return &v, json.Unmarshal(raw, &v)
})

// Find resolves a path to its method and the parameters in it.
func (v *Vendor) Find(method, path string) (VendorMethod, map[string]string, bool) {
	split := func(path string) []string { return strings.FieldsFunc(path, func(c rune) bool { return c == '/' }) }
	segments := split(path)
next:
	for template, methods := range v.Paths {
		parts := split(template)
		m, ok := methods[method]
		if !ok || len(parts) != len(segments) {
			continue
		}
		uri := map[string]string{}
		for i, part := range parts {
			if strings.HasPrefix(part, "{") {
				uri[strings.Trim(part, "{}")] = segments[i]
			} else if part != segments[i] {
				continue next
			}
		}
		return m, uri, true
	}
	return VendorMethod{}, nil, false
}

// Refused lists the parameters that the schema does not accept, sorted.
func (m VendorMethod) Refused(given map[string]string) []string {
	return refusedBy(m.Parameters.Properties, given)
}

func refusedBy(properties map[string]VendorParam, given map[string]string) []string {
	bad := map[string]bool{}
	for name, p := range properties {
		if _, ok := given[name]; !ok && p.Optional == 0 {
			bad[name] = true
		}
	}
	for name, value := range given {
		p, ok := properties[name]
		if m := regexp.MustCompile(`^([a-z]+)(\d+)$`).FindStringSubmatch(name); m != nil && !ok {
			n, _ := strconv.Atoi(m[2])
			p, ok = properties[m[1]+"[n]"]
			ok = ok && (m[1] != "net" || n < 32) // how far n goes is not in the schema
		}
		if !ok || strings.HasSuffix(name, "[n]") || !p.accepts(value) {
			bad[name] = true
		}
		if p.Requires != "" && given[p.Requires] == "" {
			bad[p.Requires] = true
		}
	}
	return slices.Sorted(maps.Keys(bad))
}

// accepts checks type, length, bounds, enumeration, pattern, and the formats whose meaning the schema itself gives.
func (p VendorParam) accepts(value string) bool {
	number, err := strconv.ParseFloat(value, 64)
	switch p.Type {
	case "boolean":
		return value == "0" || value == "1"
	case "integer":
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return false
		}
	case "number":
		if err != nil {
			return false
		}
	}
	length := utf8.RuneCountInString(value)
	if p.MaxLength > 0 && length > p.MaxLength || length < p.MinLength || p.Enum != nil && !slices.Contains(p.Enum, value) {
		return false
	}
	if p.Pattern != "" && !regexp.MustCompile(`^(?:`+re2(p.Pattern)+`)$`).MatchString(value) {
		return false
	}
	if p.Minimum != nil && number < float(*p.Minimum) || p.Maximum != nil && number > float(*p.Maximum) {
		return false
	}
	if len(p.Format) > 0 && p.Format[0] == '{' {
		return p.acceptsKeys(value)
	}
	return true
}

func (p VendorParam) acceptsKeys(value string) bool {
	var keys map[string]VendorParam
	if err := json.Unmarshal(p.Format, &keys); err != nil {
		panic(err)
	}
	given := map[string]string{}
	for part := range strings.SplitSeq(value, ",") {
		if key, v, ok := strings.Cut(part, "="); ok {
			given[key] = v
		} else if p.hasDefaultKey() {
			return true // a volume; how the rest is spelt is not ours to say
		} else if part != "" {
			return false
		}
	}
	return len(refusedBy(keys, given)) == 0
}

func (p VendorParam) hasDefaultKey() bool { return strings.Contains(string(p.Format), `"default_key"`) }

// re2 turns a Perl pattern of the schema into one of Go's.
func re2(pattern string) string {
	return strings.NewReplacer("(?^:", "(?:", `\0`, `\x00`, `\@`, "@").Replace(pattern)
}

func float(n json.Number) float64 {
	f, _ := n.Float64()
	return f
}

// Odd says where an answer is not what the schema promises; loosely, as Proxmox is loose: a number may be a string.
func (p VendorParam) Odd(value any) []string { return p.odd("data", value) }

func (p VendorParam) odd(at string, value any) (odd []string) {
	text := fmt.Sprint(value)
	_, notNumber := strconv.ParseFloat(text, 64)
	bad := false
	switch p.Type {
	case "null":
		bad = value != nil
	case "integer", "number":
		bad = notNumber != nil
	case "boolean":
		bad = text != "0" && text != "1"
	case "string":
		switch value.(type) {
		case string, json.Number:
		default:
			bad = true
		}
		bad = bad || p.Enum != nil && !slices.Contains(p.Enum, text)
	case "array":
		list, ok := value.([]any)
		bad = !ok
		for i, item := range list {
			if p.Items != nil {
				odd = append(odd, p.Items.odd(fmt.Sprintf("%s[%d]", at, i), item)...)
			}
		}
	case "object":
		object, ok := value.(map[string]any)
		bad = !ok
		for name, property := range p.Properties {
			if v, ok := object[name]; ok {
				odd = append(odd, property.odd(at+"."+name, v)...)
			} else if property.Optional == 0 {
				odd = append(odd, at+"."+name+" is missing")
			}
		}
	}
	if bad {
		odd = append(odd, fmt.Sprintf("%s is %v, not of type %s", at, value, p.Type))
	}
	return odd
}

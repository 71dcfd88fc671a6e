package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestRoutes_agreeWithTheSchema: each route exists in Proxmox's schema, for tokens, with the same parameters, types,
// bounds, lengths and enumerations, and asks for the same privileges.
func TestRoutes_agreeWithTheSchema(t *testing.T) {
	t.Parallel()
	vendor := needVendor(t)
	for _, r := range routes() {
		t.Run(r.method+" "+r.template, func(t *testing.T) {
			t.Parallel()
			m, ok := vendor.Paths[r.template][r.method]
			if !ok {
				t.Fatal("Proxmox has no such method")
			}
			if m.AllowToken != 1 {
				t.Error("Proxmox does not let a token call it")
			}
			same(t, "", r.params, m.Parameters.Properties)
			samePrivileges(t, r, m)
		})
	}
}

func same(t *testing.T, at string, ours map[string]param, theirs map[string]VendorParam) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if _, ok := theirs[name]; !ok {
			t.Errorf("%s%s: Proxmox has no such parameter", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		p, ok := ours[name]
		if !ok {
			t.Errorf("%s%s: missing here", at, name)
			continue
		}
		v := theirs[name]
		format, keys := "", map[string]VendorParam{}
		if json.Unmarshal(v.Format, &keys) != nil {
			json.Unmarshal(v.Format, &format)
		}
		want := fmt.Sprint(v.Type, v.Optional == 0, bound(v.Minimum), bound(v.Maximum), v.MinLength, v.MaxLength, v.Enum,
			re2(v.Pattern), format, v.Requires)
		got := fmt.Sprint(p.kind, p.need, number64(p.min), number64(p.max), p.minLen, p.maxLen, p.enum,
			p.pattern, p.format, p.requires)
		if got != want {
			t.Errorf("%s%s is\n%s here, and\n%s there", at, name, got, want)
		}
		if p.inside != nil {
			same(t, name+".", p.inside, keys)
		}
	}
}

func bound(n *json.Number) string {
	if n == nil {
		return "-"
	}
	return n.String()
}

func number64(n *int) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func samePrivileges(t *testing.T, r route, m VendorMethod) {
	t.Helper()
	if m.Permissions.User == "all" {
		if r.path != "" {
			t.Errorf("asks for %v on %s, but Proxmox lets the method decide", r.privileges, r.path)
		}
		return
	}
	want, err := json.Marshal(m.Permissions.Check)
	if err != nil {
		t.Fatal(err)
	}
	check := []any{"perm", r.path, r.privileges}
	if r.one {
		check = append(check, "any", 1)
	}
	if got, _ := json.Marshal(check); string(got) != string(want) {
		t.Errorf("asks for %s, Proxmox for %s", got, want)
	}
}

// TestRoutes_refuseWhatIsNotInTheSchema asks every route for one parameter too many and sees Proxmox's words.
func TestRoutes_refuseWhatIsNotInTheSchema(t *testing.T) {
	t.Parallel()
	s := NewDemo(Config{Tokens: map[string]Token{"root@pam!t": {Secret: "not-a-secret", Privileges: map[string][]string{"/": Administrator()}}}})
	values := map[string]string{"node": "pve", "vmid": "121", "snapname": "before", "storage": "local", "ostemplate": Template,
		"upid": "UPID:pve:0001E241:02F3A214:69F85A01:vzstart:121:root@pam!t:"}
	for _, r := range s.routes {
		given := url.Values{"vmstate": {"1"}}
		for name, p := range r.params {
			if p.need && !strings.Contains(r.template, "{"+name+"}") {
				given.Set(name, values[name])
			}
		}
		target, body := base+expand(r.template, values), ""
		if r.method == "GET" || r.method == "DELETE" {
			target += "?" + given.Encode()
		} else {
			body = given.Encode()
		}
		q := httptest.NewRequest(r.method, target, strings.NewReader(body))
		q.Header.Set("Authorization", "PVEAPIToken=root@pam!t=not-a-secret")
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, q)
		want := `"errors":{"vmstate":"property is not defined in schema and the schema does not allow additional properties"}`
		if w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %d %s", r.method, target, w.Code, w.Body)
		}
	}
}

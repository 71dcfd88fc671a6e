package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/catalog"
)

func sorted(in []string) []string { return slices.Sorted(slices.Values(in)) }

// only loads a catalog of one file.
func only(t *testing.T, text string) *catalog.Catalog {
	t.Helper()
	c, err := load(map[string]string{"a.yaml": text})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDigest_coversTheDefinition(t *testing.T) {
	t.Parallel()
	digest := func(text string) writ.Digest {
		a, _ := only(t, text).Action("shop.set_price")
		return a.Digest
	}
	was := digest(base)
	if !was.Valid() {
		t.Fatalf("the digest is %q", was)
	}
	for name, text := range map[string]string{
		"a comment":        "# a comment\n" + base,
		"another order":    edit(t, edit(t, base, "system: http\n", ""), "class: config_mutation\n", "class: config_mutation\nsystem: http\n"),
		"another notation": edit(t, base, "backup: [article]", "backup:\n  - article"),
		"other examples":   edit(t, base, "params: {id: \"../door\", price: 10}", "params: {id: \"../door\", price: 11}"),
	} {
		if got := digest(text); got != was {
			t.Errorf("%s changes the digest", name)
		}
	}
	for name, text := range map[string]string{
		"a guard":   edit(t, base, "params.price <= settings.ceiling", "params.price < settings.ceiling"),
		"a path":    edit(t, base, "article: {get: \"/articles/${params.id}\"}", "article: {get: \"/article/${params.id}\"}"),
		"a bound":   edit(t, base, "maxLength: 50", "maxLength: 51"),
		"a default": edit(t, base, "default: 500", "default: 501"),
	} {
		if got := digest(text); got == was {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

func TestCatalog_digestCoversAllActions(t *testing.T) {
	t.Parallel()
	one := only(t, base)
	files := map[string]string{"a.yaml": base, "settings.yaml": "shop.*: {ceiling: 7}\n"}
	same, err := load(files)
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest() != same.Digest() {
		t.Error("settings change the digest of the catalog")
	}
	files["b.yaml"] = strings.ReplaceAll(base, "shop.set_price", "shop.set_other")
	two, err := load(files)
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest() == two.Digest() || !one.Digest().Valid() {
		t.Error("another action does not change the digest of the catalog")
	}
	if diff := cmp.Diff([]string{"shop.set_other", "shop.set_price"}, two.Names()); diff != "" {
		t.Error(diff)
	}
}

func TestCatalog_settings(t *testing.T) {
	t.Parallel()
	c, err := load(map[string]string{
		"a.yaml": base, "b.yaml": strings.ReplaceAll(base, "shop.set_price", "shop.set_other"),
		"settings.yaml": "shop.set_price: {ceiling: 7}\nshop.*: {ceiling: 9}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"shop.set_price": 7, "shop.set_other": 9} {
		s := c.Settings(name)
		if s["ceiling"] != want {
			t.Errorf("the settings of %s are %v", name, s)
		}
		s["ceiling"] = int64(0)
		if c.Settings(name)["ceiling"] != want {
			t.Error("a caller can change the settings")
		}
	}
	if got := only(t, base).Settings("shop.set_price")["ceiling"]; got != int64(500) {
		t.Errorf("without settings.yaml the ceiling is %v, want the default", got)
	}
}

func TestBuiltin_isWhole(t *testing.T) {
	t.Parallel()
	c := builtin(t)
	want := []string{
		"mkdocs.create_doc_stub", "mkdocs.page_facts", "mkdocs.remove_doc_stub", "mock.noop_change", "mock.value_facts",
		"netbox.delete_test_tag", "netbox.export_object", "netbox.ip_facts", "netbox.prefix_facts", "netbox.release_ip", "netbox.reserve_ip",
		"netbox.restore_test_tag", "netbox.tag_facts", "netbox.test_write", "npm.export_proxy_host", "npm.proxy_host_facts", "npm.restore_backend", "npm.update_backend",
		"proxmox.config_export", "proxmox.create_lxc", "proxmox.delete_snapshot_lxc", "proxmox.destroy_guest", "proxmox.lxc_facts", "proxmox.set_lxc_description",
		"proxmox.shutdown_lxc", "proxmox.snapshot_lxc", "proxmox.start_lxc", "proxmox.stop_lxc",
	}
	if diff := cmp.Diff(want, c.Names()); diff != "" {
		t.Errorf("the shipped actions differ (-want +got):\n%s", diff)
	}
	for _, name := range c.Names() {
		a, _ := c.Action(name)
		if a.Writes() && a.Forbidden == "" && len(a.BackupNames()) == 0 {
			t.Errorf("%s writes without a backup", name)
		}
		if a.HasRollback() != (a.Irreversible == "") && a.Writes() && a.Forbidden == "" {
			t.Errorf("%s has neither a way back nor a reason, or both", name)
		}
	}
	shutdown, _ := c.Action("proxmox.shutdown_lxc")
	stop, _ := c.Action("proxmox.stop_lxc")
	if stop.Class.Rank() <= shutdown.Class.Rank() {
		t.Errorf("stop is %s, shutdown %s; stop must be stricter", stop.Class, shutdown.Class)
	}
	if destroy, _ := c.Action("proxmox.destroy_guest"); destroy.Forbidden == "" || len(destroy.Applies()) > 0 {
		t.Error("destroy_guest is not forbidden")
	}
	if export, _ := c.Action("proxmox.config_export"); !export.Exports() || export.Writes() {
		t.Error("config_export is no export")
	}
}

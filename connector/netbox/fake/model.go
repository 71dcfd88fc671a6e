package fake

import (
	"net/netip"
	"strings"
)

// model is one kind of object and the member names of its API.
type model struct {
	path   string // below /api/
	name   string // as in "No Tag matches the given query."
	kind   string // content type: "extras.tag"
	fields []field
	brief  []string // members shown where another object refers to this one
	// writable says that the fake can imitate writes; records is the read-only log of changes.
	writable, records, tagged bool
	// show adds the members that are computed. It may be nil.
	show func(c *call, o *object, out map[string]any)
	// repr is the object's name, as in display.
	repr func(o *object) string
	// check is the validation of the object as a whole, with the errors by member. It may be nil.
	check func(c *call, o *object) map[string]any
	// order sorts a list; nil is by age.
	order func(a, b *object) int
}

func (m *model) field(name string) *field {
	for i := range m.fields {
		if m.fields[i].name == name {
			return &m.fields[i]
		}
	}
	return nil
}

func must(f field) field { f.required = true; return f }

// unique refuses a value that another object has, in Django's words.
func unique(f field, message string) field { f.unique = message; return f }

func byName(o *object) string { return o.str("name") }

func models() []*model {
	return []*model{tagModel(), prefixModel(), addressModel(), vrfModel(), siteModel(), machineModel(), changeModel()}
}

func tagModel() *model {
	return &model{
		path: "extras/tags", name: "Tag", kind: "extras.tag", writable: true, repr: byName,
		brief: []string{"id", "url", "display_url", "display", "name", "slug", "color"},
		fields: []field{
			must(unique(filled("name", 100, `.`, ""), "tag with this name already exists.")),
			must(unique(filled("slug", 100, `^[-\p{L}\p{N}\p{M}_]+$`,
				`Enter a valid "slug" consisting of Unicode letters, numbers, underscores, or hyphens.`),
				"tag with this slug already exists.")),
			withDefault(filled("color", 6, `^[0-9a-f]{6}$`, "Enter a valid hexadecimal RGB color code."), "9e9e9e"),
			text("description", 200), integer("weight", 1000, 0, 32767), objectTypes(),
		},
		show: func(c *call, o *object, out map[string]any) { out["tagged_items"] = c.tagged(o.id) },
		order: func(a, b *object) int {
			if d := a.ref("weight") - b.ref("weight"); d != 0 {
				return d
			}
			return strings.Compare(a.str("name"), b.str("name"))
		},
	}
}

func withDefault(f field, def any) field { f.def = def; return f }

// objectTypes limits what a tag may be put on.
func objectTypes() field {
	return field{name: "object_types", def: []any{}, parse: func(c *call, v any) (any, []any) {
		list, ok := v.([]any)
		if !ok {
			return wrong(`Expected a list of items but got type "%s".`, pythonType(v))
		}
		for _, kind := range list {
			name, _ := kind.(string)
			if m := c.kinds[name]; m == nil || !m.tagged {
				return wrong("Invalid content type: %s", pythonStr(kind))
			}
		}
		return list, nil
	}}
}

// owned are the members that most models share and that this fake holds empty.
func owned() []field {
	return []field{reference("tenant", "tenancy.tenant"), reference("owner", "users.owner"),
		text("description", 200), text("comments", 0)}
}

func prefixModel() *model {
	return &model{
		path: "ipam/prefixes", name: "Prefix", kind: "ipam.prefix", writable: true, tagged: true,
		repr:  func(o *object) string { return o.str("prefix") },
		brief: []string{"id", "url", "display", "family", "prefix", "description", "_depth"},
		fields: append([]field{
			must(network("prefix")), reference("vrf", "ipam.vrf"),
			nothing("scope_type", "Invalid content type: {}"), integer("scope_id", nil, 0, 1<<31-1),
			reference("vlan", "ipam.vlan"), reference("role", "ipam.role"),
			choose("status", "active", choice{"container", "Container"}, choice{"active", "Active"},
				choice{"reserved", "Reserved"}, choice{"deprecated", "Deprecated"}),
			boolean("is_pool", false), boolean("mark_utilized", false),
		}, owned()...),
		show: func(c *call, o *object, out map[string]any) {
			out["family"], out["scope"] = family(prefixOf(o, "prefix").Addr()), nil
			out["children"], out["_depth"] = c.nesting(o)
		},
		check: (*call).checkPrefix,
		order: func(a, b *object) int { return prefixOf(a, "prefix").Compare(prefixOf(b, "prefix")) },
	}
}

func addressModel() *model {
	dns := filled("dns_name", 255, `^([0-9A-Za-z_-]+|\*)(\.[0-9A-Za-z_-]+)*\.?$`,
		"Only alphanumeric characters, asterisks, hyphens, periods, and underscores are allowed in DNS names")
	strict := dns.parse
	dns.parse = func(c *call, v any) (any, []any) {
		if v == "" {
			return "", nil
		}
		s, problem := strict(c, v)
		if problem != nil {
			return nil, problem
		}
		return strings.ToLower(s.(string)), nil
	}
	return &model{
		path: "ipam/ip-addresses", name: "IPAddress", kind: "ipam.ipaddress", writable: true, tagged: true,
		repr:  func(o *object) string { return o.str("address") },
		brief: []string{"id", "url", "display", "family", "address", "description"},
		fields: append([]field{
			must(address("address")), reference("vrf", "ipam.vrf"),
			choose("status", "active", choice{"active", "Active"}, choice{"reserved", "Reserved"},
				choice{"deprecated", "Deprecated"}, choice{"dhcp", "DHCP"}, choice{"slaac", "SLAAC"}),
			choose("role", "", choice{"loopback", "Loopback"}, choice{"secondary", "Secondary"},
				choice{"anycast", "Anycast"}, choice{"vip", "VIP"}, choice{"vrrp", "VRRP"}, choice{"hsrp", "HSRP"},
				choice{"glbp", "GLBP"}, choice{"carp", "CARP"}),
			nothing("assigned_object_type", "Invalid content type: {}"),
			integer("assigned_object_id", nil, 0, 1<<31-1), reference("nat_inside", "ipam.ipaddress"), dns,
		}, owned()...),
		show: func(c *call, o *object, out map[string]any) {
			out["family"], out["assigned_object"] = family(prefixOf(o, "address").Addr()), nil
			out["nat_outside"] = c.natOutside(o.id)
		},
		check: (*call).checkAddress,
		order: func(a, b *object) int { return prefixOf(a, "address").Compare(prefixOf(b, "address")) },
	}
}

func vrfModel() *model {
	rd := unique(text("rd", 21), "VRF with this route distinguisher already exists.")
	rd.null, rd.def = true, nil
	return &model{
		path: "ipam/vrfs", name: "VRF", kind: "ipam.vrf", writable: true, tagged: true,
		repr: func(o *object) string {
			if rd := o.str("rd"); rd != "" {
				return o.str("name") + " (" + rd + ")"
			}
			return o.str("name")
		},
		brief: []string{"id", "url", "display", "name", "rd", "description", "prefix_count"},
		fields: append([]field{must(filled("name", 100, `.`, "")), rd, boolean("enforce_unique", true)},
			owned()...),
		show: func(c *call, o *object, out map[string]any) {
			out["import_targets"], out["export_targets"] = []any{}, []any{}
			out["ipaddress_count"] = c.count("ipam.ipaddress", "vrf", o.id)
			out["prefix_count"] = c.count("ipam.prefix", "vrf", o.id)
		},
		order: func(a, b *object) int { return strings.Compare(a.str("name"), b.str("name")) },
	}
}

func siteModel() *model {
	return &model{
		path: "dcim/sites", name: "Site", kind: "dcim.site", tagged: true, repr: byName,
		brief: []string{"id", "url", "display", "name", "slug", "description"},
		fields: append([]field{text("name", 100), text("slug", 100),
			choose("status", "active", choice{"planned", "Planned"}, choice{"staging", "Staging"},
				choice{"active", "Active"}, choice{"decommissioning", "Decommissioning"}, choice{"retired", "Retired"}),
			text("facility", 50), text("physical_address", 200), text("shipping_address", 200)}, owned()...),
		show: func(c *call, o *object, out map[string]any) {
			for _, name := range []string{"region", "group", "time_zone", "latitude", "longitude"} {
				out[name] = nil
			}
			for _, name := range []string{"circuit", "device", "prefix", "rack", "vlan"} {
				out[name+"_count"] = 0
			}
			out["asns"] = []any{}
			out["virtualmachine_count"] = c.count("virtualization.virtualmachine", "site", o.id)
		},
	}
}

func machineModel() *model {
	return &model{
		path: "virtualization/virtual-machines", name: "VirtualMachine", kind: "virtualization.virtualmachine",
		tagged: true, repr: byName,
		brief: []string{"id", "url", "display", "name", "description"},
		fields: append([]field{text("name", 64), reference("site", "dcim.site"),
			choose("status", "active", choice{"offline", "Offline"}, choice{"active", "Active"},
				choice{"planned", "Planned"}, choice{"staged", "Staged"}, choice{"failed", "Failed"},
				choice{"decommissioning", "Decommissioning"}, choice{"paused", "Paused"}),
			choose("start_on_boot", "off", choice{"on", "On"}, choice{"off", "Off"}, choice{"laststate", "Last State"}),
			{name: "vcpus"}, integer("memory", nil, 0, 1<<31-1), integer("disk", nil, 0, 1<<31-1), text("serial", 50),
		}, owned()...),
		show: func(c *call, o *object, out map[string]any) {
			for _, name := range []string{"virtual_machine_type", "role", "cluster", "device", "platform", "primary_ip",
				"primary_ip4", "primary_ip6", "local_context_data", "config_template"} {
				out[name] = nil
			}
			out["interface_count"], out["virtual_disk_count"], out["config_context"] = 0, 0, map[string]any{}
		},
	}
}

func family(a netip.Addr) map[string]any {
	if a.Is4() {
		return map[string]any{"value": 4, "label": "IPv4"}
	}
	return map[string]any{"value": 6, "label": "IPv6"}
}

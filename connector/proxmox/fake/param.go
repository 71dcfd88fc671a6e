package fake

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// param is what the schema says of one parameter.
type param struct {
	kind     string // string, integer, number or boolean
	need     bool
	min, max *int
	minLen   int
	maxLen   int // characters
	enum     []string
	pattern  string
	format   string
	requires string // another parameter that must be given with it
	inside   map[string]param
}

func optional(p param) param { p.need = false; return p }

func vmidParam() param {
	return param{kind: "integer", need: true, min: new(100), max: new(999999999), format: "pve-vmid"}
}

func snapnameParam() param {
	return param{kind: "string", need: true, maxLen: 40, format: "pve-configid"}
}

func upidParams() map[string]param {
	return map[string]param{"upid": {kind: "string", need: true}}
}

func logParams() map[string]param {
	return map[string]param{
		"upid": {kind: "string", need: true}, "start": {kind: "integer", min: new(0)}, "limit": {kind: "integer", min: new(0)},
		"download": {kind: "boolean"},
	}
}

func contentParams() map[string]param {
	return map[string]param{
		"storage": {kind: "string", need: true, format: "pve-storage-id"},
		"content": {kind: "string", format: "pve-storage-content"}, "vmid": optional(vmidParam()),
	}
}

func permissionParams() map[string]param {
	return map[string]param{
		"path":   {kind: "string"},
		"userid": {kind: "string", pattern: `(?:^(?:[^\s:/]+)@(?:[A-Za-z][A-Za-z0-9\.\-_]+)(?:!(?:[A-Za-z][A-Za-z0-9\.\-_]+))?$)`},
	}
}

func destroyParams() map[string]param {
	return map[string]param{"force": {kind: "boolean"}, "purge": {kind: "boolean"}, "destroy-unreferenced-disks": {kind: "boolean"}}
}

func createParams() map[string]param {
	params := optionParams()
	maps.Copy(params, map[string]param{
		"vmid": vmidParam(), "ostemplate": {kind: "string", need: true, maxLen: 255},
		"bwlimit": {kind: "number", min: new(0)}, "force": {kind: "boolean"}, "ha-managed": {kind: "boolean"},
		"ignore-unpack-errors": {kind: "boolean"}, "password": {kind: "string", minLen: 5},
		"pool": {kind: "string", format: "pve-poolid"}, "restore": {kind: "boolean"}, "ssh-public-keys": {kind: "string"},
		"start": {kind: "boolean"}, "storage": {kind: "string", format: "pve-storage-id"},
		"unique": {kind: "boolean", requires: "restore"},
	})
	return params
}

func updateParams() map[string]param {
	params := optionParams()
	maps.Copy(params, map[string]param{
		"delete": {kind: "string", format: "pve-configid-list"}, "revert": {kind: "string", format: "pve-configid-list"},
		"digest": {kind: "string", maxLen: 40},
	})
	return params
}

// optionParams are the options of a container's configuration.
func optionParams() map[string]param {
	return map[string]param{
		"arch":         {kind: "string", enum: []string{"amd64", "i386", "arm64", "armhf", "riscv32", "riscv64"}},
		"cmode":        {kind: "string", enum: []string{"shell", "console", "tty"}},
		"console":      {kind: "boolean"},
		"cores":        {kind: "integer", min: new(1), max: new(8192)},
		"cpulimit":     {kind: "number", min: new(0), max: new(8192)},
		"cpuunits":     {kind: "integer", min: new(0), max: new(500000)},
		"debug":        {kind: "boolean"},
		"description":  {kind: "string", maxLen: 8192},
		"dev[n]":       {kind: "string"},
		"entrypoint":   {kind: "string", pattern: `(?:[^\x00-\x08\x10-\x1F\x7F]+)`},
		"env":          {kind: "string", pattern: `(?:(?:\w+=[^\x00-\x08\x10-\x1F\x7F]*)(?:\x00\w+=[^\x00-\x08\x10-\x1F\x7F]*)*)`},
		"features":     {kind: "string", inside: featureParams()},
		"hookscript":   {kind: "string", format: "pve-volume-id"},
		"hostname":     {kind: "string", maxLen: 255, format: "dns-name"},
		"lock":         {kind: "string", enum: []string{"backup", "create", "destroyed", "disk", "fstrim", "migrate", "mounted", "rollback", "snapshot", "snapshot-delete"}},
		"memory":       {kind: "integer", min: new(16)},
		"mp[n]":        {kind: "string"},
		"nameserver":   {kind: "string", format: "lxc-ip-with-ll-iface-list"},
		"net[n]":       {kind: "string", inside: netParams()},
		"onboot":       {kind: "boolean"},
		"ostype":       {kind: "string", enum: []string{"debian", "devuan", "ubuntu", "centos", "fedora", "opensuse", "archlinux", "alpine", "gentoo", "nixos", "unmanaged"}},
		"protection":   {kind: "boolean"},
		"rootfs":       {kind: "string"},
		"searchdomain": {kind: "string", format: "dns-name-list"},
		"startup":      {kind: "string", format: "pve-startup-order"},
		"swap":         {kind: "integer", min: new(0)},
		"tags":         {kind: "string", format: "pve-tag-list"},
		"template":     {kind: "boolean"},
		"timezone":     {kind: "string", format: "pve-ct-timezone"},
		"tty":          {kind: "integer", min: new(0), max: new(6)},
		"unprivileged": {kind: "boolean"},
		"unused[n]":    {kind: "string"},
	}
}

func netParams() map[string]param {
	return map[string]param{
		"bridge":       {kind: "string", pattern: `[-_.\w\d]+`},
		"firewall":     {kind: "boolean"},
		"gw":           {kind: "string", format: "ipv4"},
		"gw6":          {kind: "string", format: "ipv6"},
		"host-managed": {kind: "boolean"},
		"hwaddr":       {kind: "string", format: "mac-addr"},
		"ip":           {kind: "string", format: "pve-ipv4-config"},
		"ip6":          {kind: "string", format: "pve-ipv6-config"},
		"link_down":    {kind: "boolean"},
		"mtu":          {kind: "integer", min: new(64), max: new(65535)},
		"name":         {kind: "string", need: true, pattern: `[-_.\w\d]+`},
		"rate":         {kind: "number"},
		"tag":          {kind: "integer", min: new(1), max: new(4094)},
		"trunks":       {kind: "string", pattern: `(?:\d+(?:;\d+)*)`},
		"type":         {kind: "string", enum: []string{"veth"}},
	}
}

func featureParams() map[string]param {
	return map[string]param{
		"force_rw_sys": {kind: "boolean"}, "fuse": {kind: "boolean"}, "keyctl": {kind: "boolean"}, "mknod": {kind: "boolean"},
		"mount": {kind: "string", pattern: `(?:[a-zA-Z0-9_; ]+)`}, "nesting": {kind: "boolean"},
	}
}

// lookup finds a parameter; net[n] stands for net0 to net31, the others with a number for 0 to 255.
func lookup(params map[string]param, name string) (param, bool) {
	p, ok := params[name]
	if m := regexp.MustCompile(`^(net|mp|dev|unused)(0|[1-9]\d{0,2})$`).FindStringSubmatch(name); m != nil {
		n, _ := strconv.Atoi(m[2])
		if p, ok = params[m[1]+"[n]"]; n > 255 || m[1] == "net" && n > 31 {
			return param{}, false
		}
	}
	return p, ok && !strings.HasSuffix(name, "[n]")
}

// verify checks parameters, or the keys of a property string, as PVE::JSONSchema does; it returns what is wrong by name.
func verify(params map[string]param, given map[string]string) map[string]string {
	errors := map[string]string{}
	for name, p := range params {
		if _, ok := given[name]; p.need && !ok {
			errors[name] = "property is missing and it is not optional"
		}
	}
	for name, value := range given {
		p, ok := lookup(params, name)
		if !ok {
			errors[name] = "property is not defined in schema and the schema does not allow additional properties"
			continue
		}
		if text := p.check(value); text != "" {
			errors[name] = text
		}
		if _, ok := given[p.requires]; p.requires != "" && !ok {
			errors[p.requires] = fmt.Sprintf("missing property - '%s' requires this property", name)
		}
	}
	return errors
}

// check says what is wrong with a value: its type first, then format, pattern, length, bounds, enumeration.
func (p param) check(value string) string {
	switch number, err := strconv.ParseFloat(value, 64); {
	case p.kind == "boolean" && value != "0" && value != "1",
		p.kind == "integer" && !regexp.MustCompile(`^[+-]?\d+$`).MatchString(value),
		p.kind == "number" && !regexp.MustCompile(`^[+-]?(\d+\.\d+|\d+\.|\.\d+|\d+)([eE][+-]?\d+)?$`).MatchString(value):
		return fmt.Sprintf("type check ('%s') failed - got '%s'", p.kind, value)
	case p.badFormat(value) != "":
		return "invalid format - " + p.badFormat(value) + "\n"
	case p.pattern != "" && !regexp.MustCompile(`^(?:`+p.pattern+`)$`).MatchString(value):
		return "value does not match the regex pattern"
	case p.maxLen > 0 && utf8.RuneCountInString(value) > p.maxLen:
		return fmt.Sprintf("value may only be %d characters long", p.maxLen)
	case utf8.RuneCountInString(value) < p.minLen:
		return fmt.Sprintf("value must be at least %d characters long", p.minLen)
	case err == nil && p.max != nil && number > float64(*p.max):
		return fmt.Sprintf("value must have a maximum value of %d", *p.max)
	case err == nil && p.min != nil && number < float64(*p.min):
		return fmt.Sprintf("value must have a minimum value of %d", *p.min)
	case p.enum != nil && !slices.Contains(p.enum, value):
		return fmt.Sprintf("value '%s' does not have a value in the enumeration '%s'", value, strings.Join(p.enum, ", "))
	}
	return ""
}

// badFormat says what is wrong with the format of a value. Formats that are not here are not checked.
func (p param) badFormat(value string) string {
	if p.inside != nil {
		_, text := parseProperties(p.inside, value)
		return text
	}
	matches := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(value) }
	switch p.format {
	case "pve-node":
		if !matches(`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`) {
			return "value does not look like a valid node name"
		}
	case "pve-vmid":
		if !matches(`^[1-9][0-9]{2,8}$`) {
			return "value does not look like a valid VM ID"
		}
	case "pve-storage-id":
		if !matches(`^(?i)[a-z][a-z0-9_.-]*[a-z0-9]$`) {
			return fmt.Sprintf("storage ID '%s' contains illegal characters", value)
		}
	case "pve-configid", "pve-configid-list":
		for _, id := range splitList(value, strings.HasSuffix(p.format, "-list")) {
			if !regexp.MustCompile(`^(?i)[a-z][a-z0-9_-]+$`).MatchString(id) {
				return fmt.Sprintf("invalid configuration ID '%s'", id)
			}
		}
	case "pve-tag-list":
		for _, tag := range splitList(value, true) {
			if !regexp.MustCompile(`^(?i)[a-z0-9_][a-z0-9_+.-]*$`).MatchString(tag) {
				return "invalid characters in tag"
			}
		}
	case "dns-name":
		if !matches(`^([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`) {
			return "value does not look like a valid DNS name"
		}
	case "mac-addr":
		if !matches(`^(?i)[0-9a-f][02468ace](:[0-9a-f]{2}){5}$`) {
			return "value does not look like a valid unicast MAC address"
		}
	case "ipv4", "ipv6", "pve-ipv4-config", "pve-ipv6-config":
		return badAddress(p.format, value)
	}
	return ""
}

func badAddress(format, value string) string {
	version, config := strings.CutSuffix(strings.TrimPrefix(format, "pve-"), "-config")
	words := map[string][]string{"ipv4": {"dhcp", "manual"}, "ipv6": {"auto", "dhcp", "manual"}}
	if !config {
		if a, err := netip.ParseAddr(value); err != nil || a.Is4() != (version == "ipv4") {
			return fmt.Sprintf("value does not look like a valid %s address", strings.ToUpper(version[:2])+version[2:])
		}
		return ""
	}
	if a, err := netip.ParsePrefix(value); slices.Contains(words[version], value) || err == nil && a.Addr().Is4() == (version == "ipv4") {
		return ""
	}
	return fmt.Sprintf("value does not look like a valid %s network configuration", version)
}

// splitList splits where Proxmox splits lists: at commas, semicolons, white space and NUL.
func splitList(value string, list bool) []string {
	if !list {
		return []string{value}
	}
	return strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(",; \t\r\n\x00", c) })
}

// parseProperties reads "key=value,key=value" and checks it; text is what is wrong, or "".
func parseProperties(params map[string]param, value string) (properties map[string]string, text string) {
	properties = map[string]string{}
	for part := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, v, ok := strings.Cut(part, "=")
		_, known := params[key]
		_, twice := properties[key]
		switch {
		case !ok:
			return nil, "value without key, but schema does not define a default key"
		case key == "" || v == "":
			return nil, "missing key in comma-separated list property"
		case twice:
			return nil, "duplicate key in comma-separated list property: " + key
		case !known:
			return nil, "invalid key in comma-separated list property: " + key
		}
		properties[key] = v
	}
	errors := verify(params, properties)
	if len(errors) == 0 {
		return properties, ""
	}
	text = "format error"
	for _, key := range slices.Sorted(maps.Keys(errors)) {
		text += "\n" + key + ": " + errors[key]
	}
	return nil, text
}

package fake

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func (c *call) getConfig() (any, *failure) {
	snapshot, current := c.param["snapshot"], c.param["current"] == "1"
	if snapshot != "" && current {
		const text = "cannot use 'snapshot' parameter with 'current'"
		return nil, badParams(map[string]string{"snapshot": text, "current": text})
	}
	g, f := c.guest()
	if f != nil {
		return nil, f
	}
	conf := g.section.clone()
	if !current {
		maps.Copy(conf.options, g.pending)
		for option := range g.deleted {
			delete(conf.options, option)
		}
	}
	if snapshot != "" {
		if conf, f = g.snapshot(snapshot); f != nil {
			return nil, f
		}
	}
	shown := conf.shown()
	shown["digest"] = g.digest()
	return shown, nil
}

func (c *call) pendingConfig() (any, *failure) {
	g, f := c.guest()
	if f != nil {
		return nil, f
	}
	list := []map[string]any{{"key": "digest", "value": g.digest()}}
	if g.description != "" {
		list = append(list, map[string]any{"key": "description", "value": g.description})
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(g.options)), maps.Keys(g.pending))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		item := map[string]any{"key": key}
		if value, ok := g.options[key]; ok {
			item["value"] = typed(key, value)
		}
		if value, ok := g.pending[key]; ok {
			item["pending"] = typed(key, value)
		}
		if g.deleted[key] {
			item["delete"] = 1
		}
		list = append(list, item)
	}
	return list, nil
}

// putConfig changes options: all of them or, where one is refused, none (but see replug).
func (c *call) putConfig() (any, *failure) {
	set := maps.Clone(c.param)
	for _, name := range []string{"node", "vmid", "digest"} {
		delete(set, name)
	}
	if len(set) == 0 {
		return nil, die("no options specified")
	}
	deleted, reverted := splitList(set["delete"], true), splitList(set["revert"], true)
	delete(set, "delete")
	delete(set, "revert")
	g, f := c.guest()
	if f != nil {
		return nil, f
	}
	if f := c.permitUpdate(g, set, deleted, reverted); f != nil {
		return nil, f
	}
	if _, f := c.usable(); f != nil {
		return nil, f
	}
	if digest := c.param["digest"]; digest != "" && digest != g.digest() {
		return nil, die("detected modified configuration - file changed by other user? Try again.")
	}
	next := *g
	next.section, next.pending, next.deleted = g.section.clone(), maps.Clone(g.pending), maps.Clone(g.deleted)
	for _, option := range reverted {
		delete(next.pending, option)
		delete(next.deleted, option)
	}
	for _, option := range deleted {
		if f := next.remove(option); f != nil {
			return nil, f
		}
	}
	errors := map[string]string{}
	for _, option := range slices.Sorted(maps.Keys(set)) {
		value, f := c.prepare(option, set[option])
		if f != nil {
			return nil, f
		}
		if text := c.hotplug[option]; text != "" && g.running {
			errors[option] = fmt.Sprintf("unable to hotplug %s: %s", option, text)
			g.replug(option, value)
			continue
		}
		next.assign(option, value)
	}
	if len(errors) > 0 {
		return nil, badParams(errors)
	}
	*g = next
	return nil, nil
}

// permitUpdate checks the names and the privileges of what is to change.
func (c *call) permitUpdate(g *guest, set map[string]string, deleted, reverted []string) *failure {
	for name, options := range map[string][]string{"delete": deleted, "revert": reverted} {
		for _, option := range options {
			if f := c.permitOption(&g.section, option, "", true); f != nil {
				return f
			}
			if _, ok := lookup(optionParams(), option); !ok {
				return badParam(name, fmt.Sprintf("unknown option '%s'", option))
			}
			if _, both := set[option]; both {
				return badParam(name, fmt.Sprintf("you can't use '-%s' and -%s %s' at the same time", option, name, option))
			}
		}
	}
	for _, option := range slices.Sorted(maps.Keys(set)) {
		if f := c.permitOption(&g.section, option, set[option], false); f != nil {
			return f
		}
	}
	return nil
}

// prepare checks a new value beyond its schema and returns it as it will be written.
func (c *call) prepare(option, value string) (string, *failure) {
	switch {
	case option == "unprivileged":
		return "", die("unable to modify read-only option: 'unprivileged'")
	case notImitated(option):
		return "", unimitated(option)
	case option == "description":
		return stored(value), nil
	case strings.ContainsAny(value, "\r\n"):
		return "", die("detected invalid newline inside property '%s'", option)
	case strings.HasPrefix(option, "net"):
		return c.prepareNet(option, value)
	}
	return normal(option, value), nil
}

func notImitated(option string) bool {
	return regexp.MustCompile(`^(rootfs|(mp|dev|unused)\d+|restore|pool|env)$`).MatchString(option)
}

// unimitated refuses what Proxmox might do: better no answer than a wrong one.
func unimitated(option string) *failure {
	return die("this fake does not imitate option '%s'", option)
}

// prepareNet writes a network interface as Proxmox does: name first, the other keys sorted, the type always there, and
// a new MAC address where none is given.
func (c *call) prepareNet(option, value string) (string, *failure) {
	net, _ := parseProperties(netParams(), value) // its format was checked before
	if mtu, _ := strconv.Atoi(net["mtu"]); mtu > bridgeMTU {
		return "", die("%s: MTU size '%d' is bigger than bridge MTU '%d'", option, mtu, bridgeMTU)
	}
	net["type"] = "veth"
	if net["hwaddr"] == "" {
		c.count++
		net["hwaddr"] = fmt.Sprintf("BC:24:11:FA:%02X:%02X", c.count>>8&0xff, c.count&0xff)
	}
	written := "name=" + net["name"]
	delete(net, "name")
	for _, key := range slices.Sorted(maps.Keys(net)) {
		written += "," + key + "=" + net[key]
	}
	return written, nil
}

// hot says whether a change of an option reaches a running container; other changes wait for its next start.
func hot(option string, removed bool) bool {
	switch option {
	case "description", "onboot", "startup", "protection", "hostname", "hookscript", "cores", "tags", "lock",
		"cpulimit", "cpuunits", "memory", "swap":
		return true
	}
	if removed { // Proxmox looks for one digit only
		return regexp.MustCompile(`^net\d$`).MatchString(option)
	}
	return strings.HasPrefix(option, "net")
}

// remove deletes an option. One that is not set is no error.
func (g *guest) remove(option string) *failure {
	_, set := g.options[option]
	_, pending := g.pending[option]
	switch {
	case option == "description":
		g.description = ""
		return nil
	case !set && !pending:
		return nil
	case option == "memory", option == "rootfs", option == "ostype":
		return die("unable to delete required option '%s'", option)
	case option == "unprivileged":
		return die("unable to delete read-only option: 'unprivileged'")
	case notImitated(option):
		return unimitated(option)
	}
	delete(g.pending, option)
	if set && g.running && !hot(option, true) {
		g.deleted[option] = true
	} else {
		delete(g.options, option)
	}
	return nil
}

// assign gives an option its value, now or at the next start.
func (g *guest) assign(option, value string) {
	delete(g.deleted, option)
	delete(g.pending, option)
	switch {
	case option == "description":
		g.description = value
	case !g.running || hot(option, false):
		g.options[option] = value
	case g.options[option] != value:
		g.pending[option] = value
	}
}

// replug is what a failed hot change of a network interface leaves behind: if its name or MAC address was to change,
// the old interface is unplugged and gone from the file.
func (g *guest) replug(option, value string) {
	old, _ := parseProperties(netParams(), g.options[option])
	wanted, _ := parseProperties(netParams(), value)
	if strings.HasPrefix(option, "net") && (old["hwaddr"] != wanted["hwaddr"] || old["name"] != wanted["name"]) {
		delete(g.options, option)
	}
}

// applyPending is what a start does with the changes that waited for it.
func (g *guest) applyPending() {
	maps.Copy(g.options, g.pending)
	for option := range g.deleted {
		delete(g.options, option)
	}
	clear(g.pending)
	clear(g.deleted)
}

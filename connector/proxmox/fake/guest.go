package fake

import (
	"crypto/sha1" // what Proxmox uses for its digest
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// section is one part of a container's configuration file: the current one, or a snapshot's.
type section struct {
	description string // as it is read: every line ends with a newline
	options     map[string]string
	lxc         [][2]string
}

func (c section) clone() section {
	return section{c.description, maps.Clone(c.options), slices.Clone(c.lxc)}
}

// guest is a container; a virtual machine has nothing but its id.
type guest struct {
	section
	vmid      int
	node      string
	vm        bool
	pending   map[string]string
	deleted   map[string]bool // options that go away at the next start
	snapshots map[string]section
	running   bool
	ha        bool
	// held is the flock on the configuration file, which a worker that creates or destroys the container keeps.
	held        bool
	noSnapshots bool
}

func newGuest(vmid int, node string) *guest {
	return &guest{
		section: section{options: map[string]string{}}, vmid: vmid, node: node,
		pending: map[string]string{}, deleted: map[string]bool{}, snapshots: map[string]section{},
	}
}

// text is the raw configuration file: the current section, then the pending changes, then the snapshots.
func (g *guest) text() string {
	text := g.raw()
	pending := section{options: maps.Clone(g.pending)}
	if len(g.deleted) > 0 {
		pending.options["delete"] = strings.Join(slices.Sorted(maps.Keys(g.deleted)), ",")
	}
	if len(pending.options) > 0 {
		text += "\n[pve:pending]\n" + pending.raw()
	}
	for _, name := range slices.Sorted(maps.Keys(g.snapshots)) {
		text += "\n[" + name + "]\n" + g.snapshots[name].raw()
	}
	return text
}

func (c section) raw() string {
	var b strings.Builder
	for line := range strings.Lines(c.description) {
		fmt.Fprintf(&b, "#%s\n", encodeText(strings.TrimSuffix(line, "\n")))
	}
	for _, key := range slices.Sorted(maps.Keys(c.options)) {
		fmt.Fprintf(&b, "%s: %s\n", key, c.options[key])
	}
	for _, pair := range c.lxc {
		fmt.Fprintf(&b, "%s: %s\n", pair[0], pair[1])
	}
	return b.String()
}

// digest changes with every option, pending change and snapshot.
func (g *guest) digest() string {
	sum := sha1.Sum([]byte(g.text()))
	return hex.EncodeToString(sum[:])
}

// stored is how a description reads after it was written: without the blank lines at its end, and with a newline after
// every other line. What Perl calls false, "0" too, is not written at all.
func stored(description string) string {
	description = strings.TrimRight(description, "\n")
	if description == "" || description == "0" {
		return ""
	}
	return description + "\n"
}

// encodeText keeps control characters, ":", "%" and everything beyond ASCII out of the configuration file.
func encodeText(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c < ' ' || c >= 0x7f || c == ':' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// shown is a section as the API answers it: integers and booleans are numbers, the rest are strings.
func (c section) shown() map[string]any {
	shown := map[string]any{}
	for key, value := range c.options {
		shown[key] = typed(key, value)
	}
	if c.description != "" {
		shown["description"] = c.description
	}
	if len(c.lxc) > 0 {
		shown["lxc"] = c.lxc
	}
	return shown
}

func typed(option, value string) any {
	if p, _ := lookup(optionParams(), option); p.kind != "string" && p.kind != "" || option == "snaptime" {
		return json.Number(value)
	}
	return value
}

// normal is a value as it is written into the file.
func normal(option, value string) string {
	p, _ := lookup(optionParams(), option)
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && p.kind == "integer" {
		return strconv.FormatInt(n, 10)
	}
	if option == "tags" {
		tags := splitList(strings.ToLower(value), true)
		slices.Sort(tags)
		return strings.Join(slices.Compact(tags), ";")
	}
	return value
}

// volume is a disk on a storage: "local-lvm:vm-121-disk-0,size=4G".
func volume(storage string, vmid int, gib string) string {
	return fmt.Sprintf("%s:vm-%d-disk-0,size=%sG", storage, vmid, gib)
}

// guest finds the container of the call on its node.
func (c *call) guest() (*guest, *failure) {
	g := c.guests[c.vmid]
	if g == nil || g.vm || g.node != c.node {
		return nil, die("Configuration file 'nodes/%s/lxc/%d.conf' does not exist", c.node, c.vmid)
	}
	return g, nil
}

// usable finds the container and refuses it while its configuration is locked or held by a worker.
func (c *call) usable() (*guest, *failure) {
	g, f := c.guest()
	switch {
	case f != nil:
		return nil, f
	case g.held:
		return nil, die("can't lock file '/run/lock/lxc/pve-config-%d.lock' - got timeout", g.vmid)
	case g.options["lock"] != "":
		return nil, die("CT is locked (%s)", g.options["lock"])
	}
	return g, nil
}

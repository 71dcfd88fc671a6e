package fake

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

func (c *call) version() (any, *failure) {
	return map[string]any{"version": "9.1.3", "release": "9.1", "repoid": "0123456789abcdef"}, nil
}

// nextID answers the lowest free id, as a string, and reserves nothing.
func (c *call) nextID() (any, *failure) {
	if asked, ok := c.param["vmid"]; ok {
		if c.guests[c.vmid] != nil {
			return nil, badParam("vmid", fmt.Sprintf("VM %s already exists", asked))
		}
		return asked, nil
	}
	id := 100
	for c.guests[id] != nil {
		id++
	}
	return strconv.Itoa(id), nil
}

func (c *call) nodes() (any, *failure) {
	list := []map[string]any{}
	for _, name := range c.config.Nodes {
		list = append(list, c.nodeStatus(name))
	}
	return list, nil
}

func (c *call) nodeStatus(name string) map[string]any {
	return map[string]any{"node": name, "status": "online", "id": "node/" + name, "type": "node", "cpu": 0.02, "maxcpu": 8,
		"mem": 4 << 30, "maxmem": 32 << 30, "uptime": 86400}
}

// listLXC leaves out what the token may not look at.
func (c *call) listLXC() (any, *failure) {
	list := []map[string]any{}
	for _, g := range c.visible() {
		if g.node == c.node && !g.vm {
			list = append(list, g.status())
		}
	}
	return list, nil
}

func (c *call) visible() []*guest {
	list := []*guest{}
	for _, vmid := range slices.Sorted(maps.Keys(c.guests)) {
		if c.may("/vms/"+strconv.Itoa(vmid), "VM.Audit") {
			list = append(list, c.guests[vmid])
		}
	}
	return list
}

func (c *call) resources() (any, *failure) {
	list := []map[string]any{}
	wanted := c.param["type"]
	if wanted == "" || wanted == "vm" {
		for _, g := range c.visible() {
			list = append(list, g.resource())
		}
	}
	for _, name := range c.config.Nodes {
		if (wanted == "" || wanted == "node") && c.may("/nodes/"+name, "Sys.Audit") {
			list = append(list, c.nodeStatus(name))
		}
		for _, storage := range []string{templateStorage, diskStorage} {
			if (wanted == "" || wanted == "storage") && c.may("/storage/"+storage, "Datastore.Audit") {
				list = append(list, map[string]any{"id": "storage/" + name + "/" + storage, "type": "storage", "node": name,
					"storage": storage, "status": "available", "disk": 1 << 30, "maxdisk": 64 << 30})
			}
		}
	}
	return list, nil
}

// resource is a guest in the list of the cluster's resources, where counts of processors have another name.
func (g *guest) resource() map[string]any {
	kind := "lxc"
	if g.vm {
		kind = "qemu"
	}
	shown := g.status()
	shown["maxcpu"] = shown["cpus"]
	delete(shown, "cpus")
	delete(shown, "maxswap")
	shown["type"], shown["node"], shown["id"] = kind, g.node, fmt.Sprintf("%s/%d", kind, g.vmid)
	shown["template"] = number(g.options["template"] == "1")
	return shown
}

// content lists the volumes of a storage.
func (c *call) content() (any, *failure) {
	list := []map[string]any{}
	wanted := c.param["content"]
	switch c.param["storage"] {
	case templateStorage:
		if wanted == "" || wanted == "vztmpl" {
			list = append(list, map[string]any{"volid": Template, "content": "vztmpl", "format": "tzst", "size": 125 << 20})
		}
	case diskStorage:
		for _, g := range c.visible() {
			rootfs := splitList(g.options["rootfs"], true)
			mine := c.param["vmid"] == "" || c.vmid == g.vmid
			if len(rootfs) > 0 && mine && (wanted == "" || wanted == "rootdir") {
				list = append(list, map[string]any{"volid": rootfs[0], "content": "rootdir", "format": "raw", "size": 4 << 30, "vmid": g.vmid})
			}
		}
	default:
		return nil, die("storage '%s' does not exist", c.param["storage"])
	}
	return list, nil
}

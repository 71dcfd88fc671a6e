package fake

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// notOptions are the parameters of create that are not options of the container.
func notOptions() []string {
	return []string{"node", "vmid", "ostemplate", "bwlimit", "force", "ha-managed", "ignore-unpack-errors", "password",
		"pool", "restore", "ssh-public-keys", "start", "storage", "unique", "unprivileged"}
}

// create makes a container. Until its worker ends, the configuration is nothing but the lock.
func (c *call) create() (any, *failure) {
	unprivileged := c.param["unprivileged"] != "0" // since PVE 9, whatever the schema says
	if !unprivileged && c.param["restore"] != "1" {
		if f := c.permit("/", false, "Sys.Modify"); f != nil {
			return nil, f
		}
	}
	if f := c.unused(); f != nil {
		return nil, f
	}
	if pool := c.param["pool"]; pool != "" {
		return nil, forbidden(fmt.Sprintf("pool '%s' does not exist", pool))
	}
	if !c.may(expand("/vms/{vmid}", c.param), "VM.Allocate") {
		return nil, forbidden("")
	}
	options := maps.Clone(c.param)
	for _, name := range notOptions() {
		delete(options, name)
	}
	fresh := &section{options: map[string]string{"unprivileged": fmt.Sprint(number(unprivileged))}}
	for _, option := range slices.Sorted(maps.Keys(options)) {
		if f := c.permitOption(fresh, option, options[option], false); f != nil {
			return nil, f
		}
	}
	if c.param["restore"] == "1" {
		return nil, unimitated("restore")
	}
	if f := c.permit("/storage/"+templateStorage, true, "Datastore.AllocateSpace", "Datastore.Audit"); f != nil {
		return nil, f
	}
	rootfs, f := c.disk(options)
	if f != nil {
		return nil, f
	}
	made := newGuest(c.vmid, c.node)
	made.options["unprivileged"] = fresh.options["unprivileged"]
	if !unprivileged {
		delete(made.options, "unprivileged")
	}
	delete(options, "rootfs")
	for _, option := range slices.Sorted(maps.Keys(options)) {
		value, f := c.prepare(option, options[option])
		if f != nil {
			return nil, f
		}
		made.assign(option, value)
	}
	made.defaults(rootfs)
	return c.forkCreate(made)
}

// unused refuses an id that some guest of the cluster has.
func (c *call) unused() *failure {
	if g := c.guests[c.vmid]; g != nil {
		kind := "CT"
		if g.vm {
			kind = "VM"
		}
		return die("%s %d already exists on node '%s'", kind, g.vmid, g.node)
	}
	return nil
}

// disk checks where the root disk is to go: "local-lvm:8", or a bare size on the default storage.
func (c *call) disk(options map[string]string) (string, *failure) {
	storage, size := c.param["storage"], "4"
	if storage == "" {
		storage = templateStorage
	}
	wanted, given := options["rootfs"]
	for option := range options {
		if strings.HasPrefix(option, "mp") && !given {
			return "", die("mount points configured, but 'rootfs' not set - aborting")
		}
	}
	if given {
		size = wanted
		if s, n, ok := strings.Cut(wanted, ":"); ok {
			storage, size = s, n
		}
		if _, err := strconv.ParseFloat(size, 64); err != nil {
			return "", unimitated("rootfs=" + wanted)
		}
	}
	switch {
	case storage == templateStorage:
		return "", badParam("storage", fmt.Sprintf("storage '%s' does not support container directories", storage))
	case storage != diskStorage:
		return "", die("storage '%s' does not exist", storage)
	}
	if f := c.permit("/storage/"+storage, false, "Datastore.AllocateSpace"); f != nil {
		return "", f
	}
	return volume(storage, c.vmid, size), nil
}

// defaults are what create adds.
func (g *guest) defaults(rootfs string) {
	for option, value := range map[string]string{
		"arch": "amd64", "hostname": "CT" + strconv.Itoa(g.vmid), "memory": "512", "ostype": "debian", "rootfs": rootfs, "swap": "512",
	} {
		if g.options[option] == "" {
			g.options[option] = value
		}
	}
}

func (c *call) forkCreate(made *guest) (any, *failure) {
	if c.rival { // somebody else was faster, between the first check and the one under the lock
		c.rival = false
		g := newGuest(c.vmid, c.node)
		g.defaults(volume(diskStorage, c.vmid, "4"))
		g.options["hostname"] = "rival"
		c.guests[c.vmid] = g
		return nil, die("unable to create CT %d - %s", c.vmid, c.unused().reason)
	}
	g := newGuest(c.vmid, c.node)
	g.options["lock"], g.held = "create", true
	c.guests[c.vmid] = g
	var failed *failure
	if c.param["ostemplate"] != Template {
		failed = die("unable to create CT %d - volume '%s' does not exist", c.vmid, c.param["ostemplate"])
	}
	return c.fork("vzcreate", failed, func() {
		*g = *made
		g.running, g.ha = c.param["start"] == "1", c.param["ha-managed"] == "1"
	}, func() { delete(c.guests, c.vmid) })
}

// destroy removes a container for good.
func (c *call) destroy() (any, *failure) {
	g, f := c.guest()
	switch {
	case f != nil:
		return nil, f
	case g.options["protection"] == "1":
		return nil, die("can't remove CT %d - protection mode enabled", g.vmid)
	case g.options["lock"] != "":
		return nil, die("CT is locked (%s)", g.options["lock"])
	case g.ha && c.param["purge"] != "1":
		return nil, die("unable to remove CT %d - used in HA resources and purge parameter not set.", g.vmid)
	case g.running && c.param["force"] != "1":
		return nil, die("unable to destroy CT %d - container is running", g.vmid)
	}
	g.options["lock"], g.held = "destroyed", true
	return c.fork("vzdestroy", nil, func() { delete(c.guests, g.vmid) }, func() {
		g.unlock()
		g.held = false
	})
}

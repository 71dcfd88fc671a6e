package fake

import (
	"maps"
	"slices"
	"strings"
)

// privileges is what a token may do at a path: the longest path of its list that covers it decides alone.
func (c *call) privileges(token, path string) []string {
	list := c.config.Tokens[token].Privileges
	for {
		if privileges, ok := list[path]; ok {
			return privileges
		}
		if path == "/" {
			return nil
		}
		path = path[:strings.LastIndex(path, "/")]
		if path == "" {
			path = "/"
		}
	}
}

func (c *call) may(path, privilege string) bool {
	return slices.Contains(c.privileges(c.token, path), privilege)
}

// permit refuses a call without the privileges: all of them, or at least one.
func (c *call) permit(path string, one bool, privileges ...string) *failure {
	found := false
	for _, p := range privileges {
		has := c.may(path, p)
		if !has && !one {
			return forbidden(path + ", " + p)
		}
		found = found || has
	}
	if !found {
		return forbidden(path + ", " + strings.Join(privileges, "|"))
	}
	return nil
}

// permitOption checks who may change one option of a container. A token is never root@pam, so what only root@pam may
// change is refused to every token.
func (c *call) permitOption(old *section, option, value string, removed bool) *failure {
	vm := expand("/vms/{vmid}", c.param)
	name := strings.TrimRight(option, "0123456789")
	switch {
	case option == "cores", option == "cpulimit", option == "cpuunits":
		return c.permit(vm, false, "VM.Config.CPU")
	case option == "memory", option == "swap":
		return c.permit(vm, false, "VM.Config.Memory")
	case option == "hostname", option == "nameserver", option == "searchdomain":
		return c.permit(vm, false, "VM.Config.Network")
	case name == "net":
		return c.permitNet(vm, old.options[option], value)
	case option == "rootfs", name == "mp":
		if f := c.permit(vm, false, "VM.Config.Disk"); f != nil || removed {
			return f
		}
		return c.permitVolume(value)
	case name == "dev":
		return forbidden("configuring device passthrough is only allowed for root@pam")
	case option == "hookscript":
		return forbidden("changing the hookscript is only allowed for root@pam")
	case option == "features":
		return c.permitFeatures(vm, old, value)
	case option == "tags":
		return c.permitTags(vm, old.options["tags"], value)
	}
	return c.permit(vm, false, "VM.Config.Options")
}

// permitNet asks for SDN.Use on the bridge that is left and on the one that is joined.
func (c *call) permitNet(vm string, values ...string) *failure {
	if f := c.permit(vm, false, "VM.Config.Network"); f != nil {
		return f
	}
	for _, value := range values {
		net, _ := parseProperties(netParams(), value)
		if net["bridge"] == "" {
			continue
		}
		if f := c.permit("/sdn/zones/localnetwork/"+net["bridge"], true, "SDN.Use"); f != nil {
			return f
		}
	}
	return nil
}

func (c *call) permitVolume(value string) *failure {
	value = strings.TrimPrefix(value, "volume=")
	if strings.HasPrefix(value, "/") {
		kind := "bind"
		if strings.HasPrefix(value, "/dev/") {
			kind = "device"
		}
		return forbidden("mount point type " + kind + " is only allowed for root@pam")
	}
	storage, _, ok := strings.Cut(value, ":")
	if !ok {
		return nil // a bare size: on the default storage, which the method checks
	}
	return c.permit("/storage/"+storage, false, "Datastore.AllocateSpace")
}

// permitFeatures lets a token change nesting and nothing else; an empty value where nothing was is something else.
func (c *call) permitFeatures(vm string, old *section, value string) *failure {
	if old.options["unprivileged"] != "1" {
		return forbidden("changing feature flags for privileged container is only allowed for root@pam")
	}
	before, _ := parseProperties(featureParams(), old.options["features"])
	after, _ := parseProperties(featureParams(), value)
	nestingOnly := len(after) == 1 && after["nesting"] == "1"
	delete(before, "nesting")
	delete(after, "nesting")
	if !maps.Equal(before, after) || old.options["features"] == "" && !nestingOnly {
		return forbidden("changing feature flags (except nesting) is only allowed for root@pam")
	}
	return c.permit(vm, false, "VM.Allocate")
}

// permitTags asks for Sys.Modify where a tag that is not on the list comes or goes.
func (c *call) permitTags(vm, old, value string) *failure {
	if f := c.permit(vm, false, "VM.Config.Options"); f != nil {
		return f
	}
	if c.config.AllowedTags == nil || c.may("/", "Sys.Modify") {
		return nil
	}
	before, after := splitList(old, true), splitList(value, true)
	for _, tag := range slices.Concat(before, after) {
		changed := slices.Contains(before, tag) != slices.Contains(after, tag)
		if changed && !slices.Contains(c.config.AllowedTags, tag) {
			return forbidden("/, Sys.Modify for modifying tag '" + tag + "'")
		}
	}
	return nil
}

// permissions shows what a token may do, by path.
func (c *call) permissions() (any, *failure) {
	token := c.token
	if other := c.param["userid"]; other != "" && other != token {
		if f := c.permit("/access", false, "Sys.Audit"); f != nil {
			return nil, f
		}
		token = other
	}
	paths := []string{"/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"}
	paths = slices.AppendSeq(paths, maps.Keys(c.config.Tokens[token].Privileges))
	only, one := c.param["path"]
	if one {
		paths = []string{only}
	}
	shown := map[string]map[string]int{}
	for _, path := range paths {
		granted := map[string]int{}
		for _, p := range c.privileges(token, path) {
			granted[p] = 1
		}
		if len(granted) > 0 || one {
			shown[path] = granted
		}
	}
	return shown, nil
}

package fake

import (
	"maps"
	"strings"
)

// route is one method of the API.
type route struct {
	method, template string
	params           map[string]param
	// path and privileges are what is checked before the method is called; no path: the method checks by itself.
	path       string
	privileges []string
	one        bool // one of them is enough
	run        func(*call) (any, *failure)
}

// routes is everything this fake answers.
func routes() []route {
	const ct = "/nodes/{node}/lxc/{vmid}"
	on := func(privileges ...string) route { return route{path: "/vms/{vmid}", privileges: privileges} }
	onAny := func(privileges ...string) route { return route{path: "/vms/{vmid}", privileges: privileges, one: true} }
	open := route{}
	list := []route{
		open.at("GET", "/version", nil, (*call).version),
		open.at("GET", "/cluster/nextid", map[string]param{"vmid": optional(vmidParam())}, (*call).nextID),
		open.at("GET", "/cluster/resources", map[string]param{"type": {kind: "string", enum: []string{"vm", "storage", "node", "sdn"}}}, (*call).resources),
		open.at("GET", "/access/permissions", permissionParams(), (*call).permissions),
		open.at("GET", "/nodes", nil, (*call).nodes),
		open.at("GET", "/nodes/{node}/lxc", nil, (*call).listLXC),
		open.at("POST", "/nodes/{node}/lxc", createParams(), (*call).create),
		on("VM.Allocate").at("DELETE", ct, destroyParams(), (*call).destroy),
		on("VM.Audit").at("GET", ct+"/config", map[string]param{"current": {kind: "boolean"}, "snapshot": optional(snapnameParam())}, (*call).getConfig),
		onAny("VM.Config.Disk", "VM.Config.CPU", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options").
			at("PUT", ct+"/config", updateParams(), (*call).putConfig),
		on("VM.Audit").at("GET", ct+"/pending", nil, (*call).pendingConfig),
		on("VM.Audit").at("GET", ct+"/status/current", nil, (*call).current),
		on("VM.PowerMgmt").at("POST", ct+"/status/start", map[string]param{"debug": {kind: "boolean"}, "skiplock": {kind: "boolean"}}, (*call).start),
		on("VM.PowerMgmt").at("POST", ct+"/status/stop", map[string]param{"overrule-shutdown": {kind: "boolean"}, "skiplock": {kind: "boolean"}}, (*call).stop),
		on("VM.PowerMgmt").at("POST", ct+"/status/shutdown", map[string]param{"forceStop": {kind: "boolean"}, "timeout": {kind: "integer", min: new(0)}}, (*call).shutdown),
		on("VM.Audit").at("GET", ct+"/snapshot", nil, (*call).listSnapshots),
		on("VM.Snapshot").at("POST", ct+"/snapshot", map[string]param{"snapname": snapnameParam(), "description": {kind: "string"}}, (*call).makeSnapshot),
		on("VM.Snapshot").at("DELETE", ct+"/snapshot/{snapname}", map[string]param{"snapname": snapnameParam(), "force": {kind: "boolean"}}, (*call).deleteSnapshot),
		onAny("VM.Snapshot", "VM.Snapshot.Rollback", "VM.Audit").
			at("GET", ct+"/snapshot/{snapname}/config", map[string]param{"snapname": snapnameParam()}, (*call).snapshotConfig),
		open.at("GET", "/nodes/{node}/tasks/{upid}/status", upidParams(), (*call).taskStatus),
		open.at("GET", "/nodes/{node}/tasks/{upid}/log", logParams(), (*call).taskLog),
		route{path: "/storage/{storage}", privileges: []string{"Datastore.Audit", "Datastore.AllocateSpace"}, one: true}.
			at("GET", "/nodes/{node}/storage/{storage}/content", contentParams(), (*call).content),
	}
	return list
}

// at completes a route. The parameters of the path need not be listed where they mean the usual.
func (r route) at(method, template string, params map[string]param, run func(*call) (any, *failure)) route {
	r.method, r.template, r.run = method, template, run
	r.params = map[string]param{}
	if strings.Contains(template, "{node}") {
		r.params["node"] = param{kind: "string", need: true, format: "pve-node"}
	}
	if strings.Contains(template, "{vmid}") {
		r.params["vmid"] = vmidParam()
	}
	maps.Copy(r.params, params)
	return r
}

// findRoute matches a path, segment by segment; repeated slashes count as one.
func findRoute(list []route, method, path string) (*route, map[string]string) {
	segments := fields(path)
next:
	for i, r := range list {
		template := fields(r.template)
		if r.method != method || len(template) != len(segments) {
			continue
		}
		uri := map[string]string{}
		for j, part := range template {
			if name, ok := strings.CutPrefix(part, "{"); ok {
				uri[strings.TrimSuffix(name, "}")] = segments[j]
			} else if part != segments[j] {
				continue next
			}
		}
		return &list[i], uri
	}
	return nil, nil
}

func fields(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// expand fills a template such as /vms/{vmid}.
func expand(template string, values map[string]string) string {
	for name, value := range values {
		template = strings.ReplaceAll(template, "{"+name+"}", value)
	}
	return template
}

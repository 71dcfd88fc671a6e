package fake

import "encoding/json"

// current is the state of a container.
func (c *call) current() (any, *failure) {
	g, f := c.guest()
	if f != nil {
		return nil, f
	}
	shown := g.status()
	shown["ha"] = map[string]any{"managed": number(g.ha)}
	return shown, nil
}

func (g *guest) status() map[string]any {
	shown := map[string]any{
		"vmid": g.vmid, "type": "lxc", "status": "stopped", "name": g.options["hostname"], "cpu": 0, "mem": 0, "uptime": 0,
		"disk": 0, "maxdisk": 4 << 30, "maxmem": mebibytes(g.options["memory"]), "maxswap": mebibytes(g.options["swap"]),
		"cpus": 8,
	}
	if g.running {
		shown["status"], shown["uptime"], shown["mem"] = "running", 3600, 64<<20
	}
	if cores := g.options["cores"]; cores != "" {
		shown["cpus"] = json.Number(cores)
	}
	if limit := g.options["cpulimit"]; limit != "" && limit != "0" {
		shown["cpus"] = limit // a string, as Proxmox answers it
	}
	for _, key := range []string{"lock", "tags"} {
		if value := g.options[key]; value != "" {
			shown[key] = value
		}
	}
	if g.options["template"] == "1" {
		shown["template"] = 1
	}
	return shown
}

func mebibytes(text string) int64 {
	n, _ := json.Number(text).Int64()
	return n << 20
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *call) start() (any, *failure) {
	g := c.guests[c.vmid] // its existence is looked at by the worker only
	if f := c.refuseSkiplock(); f != nil {
		return nil, f
	}
	if g != nil && g.running {
		return nil, die("CT %d already running", c.vmid)
	}
	if g != nil && g.ha {
		return c.fork("hastart", nil, func() {}, nil)
	}
	_, failed := c.guest()
	if failed == nil && g.options["template"] == "1" && !g.held {
		failed = die("you can't start a CT if it's a template")
	}
	if failed == nil {
		_, failed = c.usable()
	}
	return c.fork("vzstart", failed, func() {
		g.applyPending()
		g.running = true
	}, nil)
}

func (c *call) stop() (any, *failure) {
	if f := c.refuseSkiplock(); f != nil {
		return nil, f
	}
	return c.halt("vzstop")
}

func (c *call) shutdown() (any, *failure) { return c.halt("vzshutdown") }

func (c *call) halt(kind string) (any, *failure) {
	g := c.guests[c.vmid]
	if g == nil || !g.running {
		return nil, die("CT %d not running", c.vmid)
	}
	if g.ha {
		return c.fork("hastop", nil, func() {}, nil)
	}
	_, failed := c.usable()
	return c.fork(kind, failed, func() { g.running = false }, nil)
}

func (c *call) refuseSkiplock() *failure {
	if c.param["skiplock"] == "1" {
		return badParam("skiplock", "Only root may use this option.")
	}
	return nil
}

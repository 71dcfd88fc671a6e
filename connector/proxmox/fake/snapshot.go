package fake

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

func (c *call) listSnapshots() (any, *failure) {
	g, f := c.guest()
	if f != nil {
		return nil, f
	}
	list := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(g.snapshots)) {
		snap := g.snapshots[name]
		item := map[string]any{"name": name, "description": snap.description, "snaptime": json.Number(snap.options["snaptime"])}
		if parent := snap.options["parent"]; parent != "" {
			item["parent"] = parent
		}
		list = append(list, item)
	}
	current := map[string]any{"name": "current", "description": "You are here!", "digest": g.digest(), "running": number(g.running)}
	if parent := g.options["parent"]; parent != "" {
		current["parent"] = parent
	}
	return append(list, current), nil
}

func (c *call) snapshotConfig() (any, *failure) {
	g, f := c.guest()
	if f != nil {
		return nil, f
	}
	snap, f := g.snapshot(c.param["snapname"])
	if f != nil {
		return nil, f
	}
	shown := snap.shown()
	delete(shown, "lxc")
	return shown, nil
}

func (g *guest) snapshot(name string) (section, *failure) {
	snap, ok := g.snapshots[name]
	if !ok {
		return section{}, die("snapshot '%s' does not exist", name)
	}
	return snap, nil
}

// makeSnapshot looks at almost nothing by itself: the worker meets the lock, the missing feature and the used name.
func (c *call) makeSnapshot() (any, *failure) {
	name := c.param["snapname"]
	if name == "current" || name == "vzdump" {
		return nil, die("unable to use snapshot name '%s' (reserved name)", name)
	}
	g, failed := c.usable()
	if failed == nil {
		_, used := g.snapshots[name]
		switch {
		case used:
			failed = die("snapshot name '%s' already used", name)
		case g.noSnapshots:
			failed = die("snapshot feature is not available")
		}
	}
	if failed != nil {
		return c.fork("vzsnapshot", failed, nil, nil)
	}
	g.options["lock"] = "snapshot"
	snaptime := strconv.FormatInt(c.config.Now().Unix(), 10)
	return c.fork("vzsnapshot", nil, func() {
		delete(g.options, "lock")
		snap := g.section.clone()
		snap.description = stored(c.param["description"])
		snap.options["snaptime"] = snaptime
		g.snapshots[name] = snap
		g.options["parent"] = name
	}, g.unlock)
}

func (c *call) deleteSnapshot() (any, *failure) {
	name := c.param["snapname"]
	g, failed := c.usable()
	if failed == nil {
		_, failed = g.snapshot(name)
	}
	if failed != nil {
		return c.fork("vzdelsnapshot", failed, nil, nil)
	}
	g.options["lock"] = "snapshot-delete"
	return c.fork("vzdelsnapshot", nil, func() {
		g.unlock()
		parent := g.snapshots[name].options["parent"]
		delete(g.snapshots, name)
		adopt(g.options, name, parent)
		for _, snap := range g.snapshots {
			adopt(snap.options, name, parent)
		}
	}, g.unlock)
}

// adopt gives what hung on a removed snapshot to that snapshot's parent.
func adopt(options map[string]string, gone, parent string) {
	switch {
	case options["parent"] != gone:
	case parent == "":
		delete(options, "parent")
	default:
		options["parent"] = parent
	}
}

func (g *guest) unlock() { delete(g.options, "lock") }

package fake_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ/connector/proxmox/fake"
)

// status reads a task's status; log its lines.
func (w *world) status(upid any) map[string]any {
	w.t.Helper()
	return w.must("GET", "/nodes/pve/tasks/"+url.PathEscape(upid.(string))+"/status", "").(map[string]any)
}

func (w *world) log(upid any, query string) []string {
	w.t.Helper()
	lines := []string{}
	for _, item := range w.must("GET", "/nodes/pve/tasks/"+url.PathEscape(upid.(string))+"/log"+query, "").([]any) {
		lines = append(lines, item.(map[string]any)["t"].(string))
	}
	return lines
}

func TestTask_life(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Unix(0x6A000001, 0) }
	w := newWorld(t, fake.Config{TaskSteps: 2, Now: now})
	upid := w.must("POST", stopped+"/status/start", "").(string)
	if !regexp.MustCompile(`^UPID:pve:[0-9A-F]{8}:[0-9A-F]{8}:6A000001:vzstart:121:root@pam!writ:$`).MatchString(upid) {
		t.Errorf("UPID %q", upid)
	}
	for i := range 2 {
		got := w.status(upid)
		want := map[string]any{"upid": upid, "node": "pve", "type": "vzstart", "id": "121", "user": "root@pam", "tokenid": "writ",
			"status": "running", "starttime": json.Number("1778384897"), "pid": got["pid"], "pstart": got["pstart"]}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("poll %d (-want +got):\n%s", i, d)
		}
		if w.Guests()[0].Running {
			t.Errorf("poll %d: it runs before the task has ended", i)
		}
	}
	if got := w.status(upid); got["status"] != "stopped" || got["exitstatus"] != "OK" || !w.Guests()[0].Running {
		t.Errorf("in the end: %v, %+v", got, w.Guests()[0])
	}
	if d := cmp.Diff([]string{"vzstart 121", "TASK OK"}, w.log(upid, "")); d != "" {
		t.Errorf("log (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"TASK OK"}, w.log(upid, "?start=1&limit=1")); d != "" {
		t.Errorf("part of the log (-want +got):\n%s", d)
	}
}

func TestTask_runsUntilFinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{TaskSteps: -1})
	upid := w.must("POST", stopped+"/status/start", "")
	for range 20 {
		if got := w.status(upid); got["status"] != "running" || got["exitstatus"] != nil {
			t.Fatalf("ended by itself: %v", got)
		}
	}
	w.FinishTasks()
	if got := w.status(upid); got["exitstatus"] != "OK" {
		t.Errorf("%v", got)
	}
}

func TestTask_endings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		exit, last string // of the log
		works      bool
	}{
		{"OK", "TASK OK", true},
		{"WARNINGS: 1", "TASK WARNINGS: 1", true},
		{"unexpected status", "vzstart 121", true},
		{"unable to get last line from task log - no such file", "", false},
		{"command 'lxc-start' failed: exit code 1", "TASK ERROR: command 'lxc-start' failed: exit code 1", false},
	} {
		t.Run(c.exit, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			if c.works {
				w.EndNextTask(c.exit)
			} else {
				w.FailNextTask(c.exit)
			}
			upid := w.must("POST", stopped+"/status/start", "")
			if exit := w.task(upid); exit != c.exit {
				t.Errorf("exit status %q", exit)
			}
			log := append([]string{""}, w.log(upid, "?limit=0")...)
			if last := log[len(log)-1]; last != c.last {
				t.Errorf("last line of the log is %q, want %q", last, c.last)
			}
			if w.Guests()[0].Running != c.works {
				t.Errorf("running: %v", w.Guests()[0].Running)
			}
			if exit := w.task(w.must("POST", stopped+"/snapshot", "snapname=ab")); exit != "OK" {
				t.Errorf("the task after it ends with %q", exit)
			}
		})
	}
}

func TestTask_refusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{Tokens: map[string]fake.Token{limited: {Secret: secret}}})
	upid := w.must("POST", stopped+"/status/start", "").(string)
	for _, c := range []struct{ token, upid, status string }{
		{limited, upid, "403 Permission check failed (/nodes/pve, Sys.Audit)"},
		{auditor, upid, "200 OK"},
		{admin, "UPID:pve:00000001:00000001:00000001:vzstart:121:root@pam!writ:", failed400},
		{admin, "nonsense", "500 unable to parse worker upid 'nonsense'"},
		{admin, strings.Replace(upid, ":pve:", ":pve2:", 1), failed400},
	} {
		for _, what := range []string{"/status", "/log"} {
			a := w.as(c.token).call("GET", "/nodes/pve/tasks/"+url.PathEscape(c.upid)+what, "")
			if a.Status != c.status || a.Status == failed400 && a.Errors["upid"] != "no such task" {
				t.Errorf("%s of %s for %s: %q %v, want %q", what, c.upid, c.token, a.Status, a.Errors, c.status)
			}
		}
	}
}

// taskRow is a call that is taken, and a task that fails.
type taskRow struct {
	name, call, body, exit string
	prepare                func(*world)
}

func runTaskRows(t *testing.T, rows []taskRow) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			if r.prepare != nil {
				r.prepare(w)
			}
			before := w.Guests()
			method, path, _ := strings.Cut(r.call, " ")
			if exit := w.task(w.must(method, path, r.body)); exit != r.exit {
				t.Errorf("ended with %q, want %q", exit, r.exit)
			}
			if d := cmp.Diff(before, w.Guests()); d != "" {
				t.Errorf("a failed task changed the guests (-before +after):\n%s", d)
			}
		})
	}
}

func TestPower(t *testing.T) {
	t.Parallel()
	runRows(t, []row{
		{name: "start a running one", call: "POST " + running + "/status/start", status: "500 CT 122 already running", writes: 1},
		{name: "stop a stopped one", call: "POST " + stopped + "/status/stop", status: "500 CT 121 not running", writes: 1},
		{name: "shut a stopped one down", call: "POST " + stopped + "/status/shutdown", status: "500 CT 121 not running", writes: 1},
		{name: "stop one that is not there", call: "POST /nodes/pve/lxc/999/status/stop", status: "500 CT 999 not running", writes: 1},
		{name: "skiplock", call: "POST " + stopped + "/status/start", body: "skiplock=1", status: failed400,
			errors: map[string]string{"skiplock": "Only root may use this option."}, writes: 1},
	})
	locked := func(vmid int) func(*world) { return func(w *world) { w.Lock(vmid, "backup") } }
	runTaskRows(t, []taskRow{
		{name: "start a locked one", prepare: locked(121), call: "POST " + stopped + "/status/start", exit: "CT is locked (backup)"},
		{name: "stop a locked one", prepare: locked(122), call: "POST " + running + "/status/stop", exit: "CT is locked (backup)"},
		{name: "shut a locked one down", prepare: locked(122), call: "POST " + running + "/status/shutdown", exit: "CT is locked (backup)"},
		{name: "start a template", prepare: func(w *world) { w.Set(121, "template", "1") }, call: "POST " + stopped + "/status/start",
			exit: "you can't start a CT if it's a template"},
		{name: "start one that is not there", call: "POST /nodes/pve/lxc/999/status/start", exit: "Configuration file 'nodes/pve/lxc/999.conf' does not exist"},
		{name: "HA start is only asked for", prepare: func(w *world) { w.AddLXC(130, fake.Guest{HA: true}) }, call: "POST /nodes/pve/lxc/130/status/start", exit: "OK"},
		{name: "HA stop is only asked for", prepare: func(w *world) { w.AddLXC(130, fake.Guest{HA: true, Running: true}) },
			call: "POST /nodes/pve/lxc/130/status/shutdown", exit: "OK"},
	})
}

func TestPower_current(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	for i, call := range []string{"start", "stop", "start", "shutdown"} {
		before := w.must("GET", stopped+"/status/current", "").(map[string]any)
		upid := w.must("POST", stopped+"/status/"+call, "")
		if exit := w.task(upid); exit != "OK" || !strings.Contains(upid.(string), ":vz"+call+":121:") {
			t.Errorf("%s: %s %s", call, upid, exit)
		}
		after := w.must("GET", stopped+"/status/current", "").(map[string]any)
		want := []any{"stopped", "running"}
		if before["status"] != want[i%2] || after["status"] != want[(i+1)%2] {
			t.Errorf("%s: %v, then %v", call, before["status"], after["status"])
		}
	}
	w.Set(121, "cpulimit", "2.5")
	w.Lock(121, "migrate")
	got := w.must("GET", stopped+"/status/current", "").(map[string]any)
	if got["cpus"] != "2.5" || got["lock"] != "migrate" {
		t.Errorf("cpus is a string once cpulimit is set: %#v; lock %v", got["cpus"], got["lock"])
	}
	w.AddLXC(130, fake.Guest{HA: true})
	upid := w.must("POST", "/nodes/pve/lxc/130/status/start", "").(string)
	w.task(upid)
	got = w.must("GET", "/nodes/pve/lxc/130/status/current", "").(map[string]any)
	if !strings.Contains(upid, ":hastart:130:") || got["status"] != "stopped" || got["ha"].(map[string]any)["managed"] != json.Number("1") {
		t.Errorf("HA start: %s, %v", upid, got)
	}
	w.SetRunning(130, true)
	if got = w.must("GET", "/nodes/pve/lxc/130/status/current", "").(map[string]any); got["status"] != "running" {
		t.Errorf("started by the HA stack: %v", got)
	}
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	upid := w.must("POST", running+"/snapshot", form("snapname", "first", "description", "before the change"))
	if got := w.config("122")["lock"]; got != "snapshot" {
		t.Errorf("lock %v while the snapshot is made", got)
	}
	if exit := w.task(upid); exit != "OK" {
		t.Fatal(exit)
	}
	w.task(w.must("POST", running+"/snapshot", "snapname=second"))
	w.must("PUT", running+"/config", "memory=2048")
	list := w.must("GET", running+"/snapshot", "").([]any)
	for i, want := range []map[string]any{
		{"name": "first", "description": "before the change\n"},
		{"name": "second", "description": "", "parent": "first"},
		{"name": "current", "description": "You are here!", "parent": "second", "running": json.Number("1"), "digest": w.config("122")["digest"]},
	} {
		got := list[i].(map[string]any)
		delete(got, "snaptime")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("snapshot %d (-want +got):\n%s", i, d)
		}
	}
	for _, path := range []string{running + "/snapshot/first/config", running + "/config?snapshot=first"} {
		if got := w.must("GET", path, "").(map[string]any); got["memory"] != json.Number("1024") || got["description"] != "before the change\n" {
			t.Errorf("%s: %v", path, got)
		}
	}
	if exit := w.task(w.must("DELETE", running+"/snapshot/first", "")); exit != "OK" {
		t.Error(exit)
	}
	text := w.ConfigText(122)
	if strings.Contains(text, "[first]") || strings.Contains(text, "parent: first") || !strings.Contains(text, "parent: second") {
		t.Errorf("after first was deleted:\n%s", text)
	}
	w.task(w.must("DELETE", running+"/snapshot/second?force=1", ""))
	if text := w.ConfigText(122); strings.Contains(text, "parent") || strings.Contains(text, "lock") {
		t.Errorf("after both were deleted:\n%s", text)
	}
}

func TestSnapshot_refusals(t *testing.T) {
	t.Parallel()
	make := func(name, status string) row {
		return row{name: name, call: "POST " + running + "/snapshot", body: "snapname=" + name, status: status, writes: 1}
	}
	runRows(t, []row{
		make("current", "500 unable to use snapshot name 'current' (reserved name)"),
		make("vzdump", "500 unable to use snapshot name 'vzdump' (reserved name)"),
		{name: "config of none", call: "GET " + running + "/snapshot/none/config", status: "500 snapshot 'none' does not exist"},
		{name: "config of none, the other way", call: "GET " + running + "/config?snapshot=none", status: "500 snapshot 'none' does not exist"},
	})
	taken := func(w *world) { w.task(w.must("POST", running+"/snapshot", "snapname=ab")) }
	locked := func(w *world) { w.Lock(122, "backup") }
	runTaskRows(t, []taskRow{
		{name: "used name", prepare: taken, call: "POST " + running + "/snapshot", body: "snapname=ab", exit: "snapshot name 'ab' already used"},
		{name: "locked", prepare: locked, call: "POST " + running + "/snapshot", body: "snapname=ab", exit: "CT is locked (backup)"},
		{name: "no feature", prepare: func(w *world) { w.AddLXC(122, fake.Guest{NoSnapshots: true}) }, call: "POST " + running + "/snapshot", body: "snapname=ab",
			exit: "snapshot feature is not available"},
		{name: "no guest", call: "POST /nodes/pve/lxc/999/snapshot", body: "snapname=ab", exit: "Configuration file 'nodes/pve/lxc/999.conf' does not exist"},
		{name: "delete none", call: "DELETE " + running + "/snapshot/none", exit: "snapshot 'none' does not exist"},
		{name: "delete while locked", prepare: func(w *world) { taken(w); locked(w) }, call: "DELETE " + running + "/snapshot/ab", exit: "CT is locked (backup)"},
		{name: "failed", prepare: func(w *world) { w.FailNextTask("zfs error") }, call: "POST " + running + "/snapshot", body: "snapname=ab", exit: "zfs error"},
	})
}

package fake

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// task is the work of one worker process.
type task struct {
	upid, node, kind, id, token string
	pid, pstart                 int
	start                       int64
	left                        int    // GET requests that still see it running; negative: for ever
	exit                        string // its exit status when it ends
	work                        func() // what it does when it ends well
	undo                        func() // what it does when it does not
	ended                       bool
}

// ending is how a task to come will end.
type ending struct {
	exit string
	work bool
}

// fork starts a task and answers its UPID. A failure that the worker would meet is known already; undo may be nil.
func (c *call) fork(kind string, failed *failure, work, undo func()) (any, *failure) {
	c.count++
	t := &task{
		node: c.node, kind: kind, id: strconv.Itoa(c.vmid), token: c.token, left: c.config.TaskSteps,
		pid: 0x1E240 + c.count, pstart: 0x2F3A1B0 + 100*c.count, start: c.config.Now().Unix(),
		exit: "OK", work: work, undo: undo,
	}
	if undo == nil {
		t.undo = func() {}
	}
	if len(c.ends) > 0 {
		e := c.ends[0]
		c.ends = c.ends[1:]
		t.exit = strings.ReplaceAll(e.exit, "\n", " ")
		if !e.work {
			t.work = t.undo
		}
	}
	if failed != nil {
		t.exit, t.work = failed.reason, t.undo
	}
	t.upid = fmt.Sprintf("UPID:%s:%08X:%08X:%08X:%s:%s:%s:", t.node, t.pid, t.pstart, t.start, t.kind, t.id, t.token)
	c.tasks = append(c.tasks, t)
	return t.upid, nil
}

// tick lets time pass.
func (s *Server) tick() {
	for _, t := range s.tasks {
		switch {
		case t.left == 0:
			t.finish()
		case t.left > 0:
			t.left--
		}
	}
}

func (t *task) finish() {
	if !t.ended {
		t.ended = true
		t.work()
	}
}

// log is what the worker wrote. Its last line is what the exit status is read from.
func (t *task) log() []string {
	lines := []string{t.kind + " " + t.id}
	switch {
	case !t.ended, t.exit == "unexpected status":
		return lines
	case strings.HasPrefix(t.exit, "unable to get last line from task log"):
		return nil
	case t.exit == "OK", strings.HasPrefix(t.exit, "WARNINGS: "):
		return append(lines, "TASK "+t.exit)
	}
	return append(lines, "TASK ERROR: "+t.exit)
}

// task finds the task of the call. Tasks of others need Sys.Audit on the node.
func (c *call) task() (*task, *failure) {
	upid := c.param["upid"]
	if !regexp.MustCompile(`^UPID:[a-zA-Z0-9-]+:[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:[^:\s/]+:[^:\s/]*:[^:\s/]+:$`).MatchString(upid) {
		return nil, die("unable to parse worker upid '%s'", upid)
	}
	for _, t := range c.tasks {
		if t.upid != upid || t.node != c.node {
			continue
		}
		if t.token != c.token {
			if f := c.permit("/nodes/"+c.node, false, "Sys.Audit"); f != nil {
				return nil, f
			}
		}
		return t, nil
	}
	return nil, badParam("upid", "no such task")
}

func (c *call) taskStatus() (any, *failure) {
	t, f := c.task()
	if f != nil {
		return nil, f
	}
	user, name, _ := strings.Cut(t.token, "!")
	shown := map[string]any{
		"upid": t.upid, "node": t.node, "pid": t.pid, "pstart": t.pstart, "starttime": t.start, "type": t.kind, "id": t.id,
		"user": user, "tokenid": name, "status": "running",
	}
	if t.ended {
		shown["status"], shown["exitstatus"] = "stopped", t.exit
	}
	return shown, nil
}

func (c *call) taskLog() (any, *failure) {
	t, f := c.task()
	if f != nil {
		return nil, f
	}
	start, _ := strconv.Atoi(c.param["start"])
	limit, err := strconv.Atoi(c.param["limit"])
	if err != nil {
		limit = 50
	}
	lines := []map[string]any{}
	for i, text := range t.log() {
		if i >= start && (limit == 0 || i < start+limit) {
			lines = append(lines, map[string]any{"n": i + 1, "t": text})
		}
	}
	return lines, nil
}

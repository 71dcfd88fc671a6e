package shell

import (
	"path"
	"slices"
	"strings"
)

// hookCounted is for commands that repeat until told how often: an interval
// without a count does not end.
func hookCounted(w *walker, c *call) {
	numbers := 0
	for i := range c.operands {
		a := &c.operands[i]
		if a.known && a.text != "" && strings.Trim(a.text, "0123456789.") != "" {
			continue // a device, a pool
		}
		numbers++
		if a.many {
			numbers = 1
			break
		}
	}
	if numbers == 1 {
		w.note(bitUnbounded, c.start, c.end, c.node.path, c.node.name+" repeats without end when an interval has no count")
	}
}

// hookKill judges signals and the processes they are sent to.
func hookKill(w *walker, c *call) {
	if len(c.opts) > 1 && c.has("-1") != nil {
		w.note(bitPower, c.start, c.end, c.node.path, "-1 after a signal means all processes")
	}
	for i := range c.opts {
		g := &c.opts[i]
		if !g.has || !strings.HasPrefix(g.opt.name, "-s") && !strings.HasPrefix(g.opt.name, "--signal") && g.opt.name != "-n" {
			continue
		}
		switch signal := strings.TrimPrefix(strings.ToUpper(g.val.text), "SIG"); {
		case !g.val.known || signal == "KILL" || signal == "9":
			w.note(bitDataLoss, g.val.start, g.val.end, c.node.path, "the signal "+g.val.show()+" leaves a process no time to save what it holds, or cannot be seen")
		case signal == "0":
		default:
			w.note(bitRuntime, g.val.start, g.val.end, c.node.path, "the signal "+g.val.show()+" changes what is running")
		}
	}
	for i := range c.operands {
		if a := &c.operands[i]; a.known && (a.text == "1" || a.text == "-1" || a.text == "0") {
			w.note(bitPower, a.start, a.end, c.node.path, "the process "+a.text+" means the init process, or all of them")
		}
	}
}

// hookPriority is for commands that show, or set for a running process, or run
// a command with, priorities and limits: ionice, chrt, taskset, prlimit.
func hookPriority(w *walker, c *call) {
	which := []string{"-p", "--pid"}
	if c.node.name == "ionice" {
		which = append(which, "-P", "--pgid", "-u", "--uid")
	}
	running := c.has(which...)
	numbered := c.node.operands[0].kind == kindText // a priority or a mask stands before the command
	switch {
	case running == nil && numbered && len(c.operands) > 0:
		if a := &c.operands[0]; a.text == "" || strings.Trim(a.text[:1], "0123456789") != "" {
			w.unknown(c, a, "the word "+a.show()+" stands where a number does")
		}
	case running == nil:
	case numbered:
		if len(c.operands) > 1 {
			w.note(bitConfig, running.at.start, running.at.end, c.node.path, c.node.name+" changes how a running process is scheduled")
		}
	default:
		for i := range c.opts {
			if g := &c.opts[i]; g.has && !slices.Contains(append(which, "-o", "--output"), g.opt.name) {
				w.note(bitRuntime, g.at.start, g.at.end, c.node.path, c.node.name+" changes a running process")
			}
		}
	}
}

// hookSu judges what stands after the name of the user: arguments for its shell.
func hookSu(w *walker, c *call) {
	list := c.operands
	if len(list) > 0 && list[0].known && list[0].text == "-" {
		list = list[1:]
	}
	switch {
	case c.has("-u", "--user") != nil && len(c.operands) > 0:
		for i := range c.opts {
			if g := &c.opts[i]; g.at.start > c.operands[0].start {
				w.unknown(c, &g.at, "whose option "+g.at.show()+" is cannot be told: put -- before the command")
			}
		}
		w.commands++
		w.argv(slices.Clone(c.operands))
	case len(list) > 1:
		w.note(bitExecOpaque, list[1].start, list[1].end, c.node.path, "what stands after the user is for its shell, which may run it")
	}
}

// hookSysctl judges files of settings: errors and dry runs show what they hold.
func hookSysctl(w *walker, c *call) {
	if c.has("-p", "--load") == nil {
		return
	}
	for i := range c.operands {
		w.pathRead(&c.operands[i], c.node.path, false)
	}
}

// hookParted judges the instructions after the device; without one, parted
// waits for a person.
func hookParted(w *walker, c *call) {
	if c.has("-l", "--list") == nil && len(c.operands) < 2 {
		w.note(bitInteractive, c.start, c.end, c.node.path, "parted without an instruction waits for a person")
	}
	safe := []string{"print", "p", "unit", "free", "all", "devices", "list", "s", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "compact", "%", "align-check", "optimal", "minimal", "opt", "min", "version", "help", "quit"}
	for i := range c.operands {
		a := &c.operands[i]
		if i == 0 || a.known && (isNumber(a.text) || slices.Contains(safe, a.text)) {
			continue
		}
		for _, lossy := range []string{"mklabel", "mktable", "rm", "resizepart"} {
			if !a.known || len(a.text) > 1 && strings.HasPrefix(lossy, a.text) {
				w.note(bitDataLoss, a.start, a.end, c.node.path, "the instruction "+a.show()+" loses partitions, or cannot be seen")
				break
			}
		}
		w.note(bitConfig, a.start, a.end, c.node.path, "the instruction "+a.show()+" may change the table")
	}
}

// hookInitScript judges the name of a service, which names a script below
// /etc/init.d: with a slash in it, any other.
func hookInitScript(w *walker, c *call) {
	if len(c.operands) == 0 {
		return
	}
	a := &c.operands[0]
	if a.tame || a.known && !strings.Contains(a.text, "/") || len(a.alts) > 0 && !slices.ContainsFunc(a.alts, func(s string) bool { return strings.Contains(s, "/") }) {
		return
	}
	w.note(bitExecOpaque, a.start, a.end, c.node.path, "the script of "+a.show()+" may be any program")
}

// hookLdd judges the programs that ldd looks at, and may run.
func hookLdd(w *walker, c *call) {
	for i := range c.operands {
		a := &c.operands[i]
		dir, _ := path.Split(a.text)
		if !a.known || !slices.Contains([]string{"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"}, dir) && !(strings.HasPrefix(dir, "/usr/lib/") && path.Clean(a.text) == a.text) {
			w.note(bitExecOpaque, a.start, a.end, c.node.path, "ldd may run "+a.show()+", which is not in a system directory")
		}
	}
}

// hookNsenter is for nsenter and unshare: without a command they run a shell.
func hookNsenter(w *walker, c *call) {
	if len(c.operands) == 0 {
		w.note(bitInteractive, c.start, c.end, c.node.path, c.node.name+" without a command runs a shell")
	}
}

// hookDevices is for options that may be followed by a number, which sets what
// they show otherwise: only absolute paths are devices.
func hookDevices(w *walker, c *call) {
	for i := range c.operands {
		if a := &c.operands[i]; !strings.HasPrefix(a.text, "/") {
			w.note(bitConfig, a.start, a.end, c.node.path, "the word "+a.show()+" is no device, and may set something")
		}
	}
}

// psFields judges the columns that ps is asked for: one shows the environment.
func (w *walker) psFields(c *call, a *word) {
	if !a.known || strings.Contains(strings.ToLower(a.text), "env") {
		w.note(bitReadSecret, a.start, a.end, c.node.path, "the columns "+a.show()+" show the environment, or cannot be seen")
	}
}

// hookBus judges which properties are asked of whom: the service manager tells
// the environments of services.
func hookBus(w *walker, c *call) {
	for i := range c.operands {
		a := &c.operands[i]
		if !a.known || strings.Contains(a.text, "nvironment") || c.node.name == "introspect" && strings.Contains(a.text, "systemd1") {
			w.note(bitReadSecret, a.start, a.end, c.node.path, "with "+a.show()+" an environment may be shown")
		}
	}
}

// Package fake is a Proxmox VE 9 API for containers, in memory. It is what tests and the demo run against, so it is as
// awkward as the real one where a client can be hurt: nearly every failure is a 500 whose reason stands in the status
// line, a description comes back longer than it was written, a change of a running container may stay pending, a
// create is a task whose result only its exit status tells, and a free id is not reserved by asking for it.
//
// It answers the calls that routes lists and no others (501, as Proxmox does for a method it has not). An option that
// exists in Proxmox and is not imitated here is refused with a 500 that says so. It is more lenient than Proxmox in
// the formats of nameserver, searchdomain, startup, timezone, pool, and volume ids, which it does not check; and it
// answers a 401 at once, where Proxmox waits for three seconds.
//
// Time passes by being looked at: a task runs for Config.TaskSteps GET requests and ends before the next one.
package fake

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"writ/connector/recorder"
)

// What every server has: one storage for templates and one for the disks of containers, with one template.
const (
	Template        = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
	templateStorage = "local"
	diskStorage     = "local-lvm"
	bridgeMTU       = 1500
)

// Config says how this cluster is set up.
type Config struct {
	Nodes []string // the cluster's nodes; nil is one, "pve"
	// Tokens are the API tokens, by their full id: "user@realm!name".
	Tokens map[string]Token
	// LegacyErrors imitates pve-http-server before 2025-01-28: the reason is in the status line only.
	LegacyErrors bool
	// TaskSteps is how many GET requests see a task running before it ends. 0 is 1; negative: until FinishTasks.
	TaskSteps int
	// AllowedTags are the tags that need no Sys.Modify; nil allows every tag.
	AllowedTags []string
	// Now is the clock for task and snapshot times; nil is one that moves a second with every task.
	Now func() time.Time
}

// Token is an API token with separate privileges: what is not listed here it may not do, whatever its user may.
type Token struct {
	Secret string
	// Privileges by ACL path, e.g. "/" or "/vms/121". They hold below the path too, until a longer path replaces them.
	Privileges map[string][]string
}

// Server is the cluster. Its Recorder knows what reached it, and injects faults. It speaks HTTP/1.1: over HTTP/2 the
// reasons in the status lines are lost, as behind a proxy.
type Server struct {
	*recorder.Recorder

	config Config
	routes []route

	mu      sync.Mutex
	guests  map[int]*guest
	tasks   []*task
	ends    []ending          // of the tasks to come
	hotplug map[string]string // option → why it cannot be plugged
	rival   bool              // somebody else takes the id of the next create
	count   int               // makes pids, MAC addresses and times differ
}

// New returns a cluster without guests.
func New(config Config) *Server {
	if config.Nodes == nil {
		config.Nodes = []string{"pve"}
	}
	if config.TaskSteps == 0 {
		config.TaskSteps = 1
	}
	s := &Server{config: config, routes: routes(), guests: map[int]*guest{}, hotplug: map[string]string{}}
	if config.Now == nil {
		start := time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)
		s.config.Now = func() time.Time { return start.Add(time.Duration(s.count) * time.Second) }
	}
	s.Recorder = recorder.Wrap(http.HandlerFunc(s.serve), nil)
	return s
}

// NewDemo returns a cluster with two containers on node pve: 121 "docs" (stopped, without a description) and 122
// "proxy" (running).
func NewDemo(config Config) *Server {
	s := New(config)
	s.AddLXC(121, Guest{Hostname: "docs", Options: map[string]string{
		"cores": "1", "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:01:21,ip=192.0.2.121/24,type=veth", "tags": "docs",
	}})
	s.AddLXC(122, Guest{Hostname: "proxy", Running: true, Description: "Reverse proxy of the house", Options: map[string]string{
		"cores": "2", "memory": "1024", "onboot": "1",
		"net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:01:22,ip=192.0.2.122/24,type=veth",
	}})
	return s
}

// Administrator lists every privilege that the calls of this fake ask for, as the role of that name has them.
func Administrator() []string {
	return append(Auditor(), "Datastore.AllocateSpace", "SDN.Use", "Sys.Modify", "VM.Allocate", "VM.Config.CPU",
		"VM.Config.Disk", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt", "VM.Snapshot")
}

// Auditor lists the privileges to look at everything and change nothing.
func Auditor() []string {
	return []string{"Datastore.Audit", "Sys.Audit", "VM.Audit"}
}

// Guest is what AddLXC makes.
type Guest struct {
	Node        string // "" is the first one
	Hostname    string
	Description string
	Options     map[string]string // of the configuration, as in its file
	LXC         [][2]string       // raw lxc.* lines
	Running     bool
	HA          bool // managed by the HA stack: start and stop are only requested
	NoSnapshots bool // its storage cannot make any
}

// AddLXC puts a container into the cluster, in place of the guest that had the id.
func (s *Server) AddLXC(vmid int, spec Guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := newGuest(vmid, spec.Node)
	if g.node == "" {
		g.node = s.config.Nodes[0]
	}
	g.running, g.ha, g.noSnapshots, g.lxc = spec.Running, spec.HA, spec.NoSnapshots, spec.LXC
	g.options = map[string]string{
		"arch": "amd64", "hostname": spec.Hostname, "memory": "512", "ostype": "debian", "swap": "512",
		"rootfs": volume(diskStorage, vmid, "4"), "unprivileged": "1",
	}
	maps.Copy(g.options, spec.Options)
	if g.options["hostname"] == "" {
		g.options["hostname"] = "CT" + strconv.Itoa(vmid)
	}
	g.description = stored(spec.Description)
	s.guests[vmid] = g
}

// AddVM puts a virtual machine into the cluster. It only takes an id: this fake has no calls for it.
func (s *Server) AddVM(vmid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := newGuest(vmid, s.config.Nodes[0])
	g.vm = true
	s.guests[vmid] = g
}

// State is what a test wants to know of a guest.
type State struct {
	VMID      int
	Node      string
	Name      string
	Lock      string
	Running   bool
	Snapshots []string
}

// Guests lists the containers by id.
func (s *Server) Guests() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := []State{}
	for _, vmid := range slices.Sorted(maps.Keys(s.guests)) {
		if g := s.guests[vmid]; !g.vm {
			states = append(states, State{VMID: vmid, Node: g.node, Name: g.options["hostname"], Lock: g.options["lock"],
				Running: g.running, Snapshots: slices.Sorted(maps.Keys(g.snapshots))})
		}
	}
	return states
}

// ConfigText is the raw configuration file of a container, or "" if there is none.
func (s *Server) ConfigText(vmid int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.guests[vmid]; g != nil && !g.vm {
		return g.text()
	}
	return ""
}

// Set changes one option of a container as somebody else would, past the API; "" takes the option away.
func (s *Server) Set(vmid int, option, value string) {
	s.change(vmid, func(g *guest) {
		switch {
		case option == "description":
			g.description = stored(value)
		case value == "":
			delete(g.options, option)
		default:
			g.options[option] = value
		}
	})
}

// Touch changes something unimportant of a container, as somebody else would: the digest is another one afterwards.
func (s *Server) Touch(vmid int) {
	s.change(vmid, func(g *guest) {
		s.count++
		g.options["startup"] = fmt.Sprintf("order=%d", s.count)
	})
}

// Lock sets the lock of a container ("backup", "migrate" …) until it is set to "".
func (s *Server) Lock(vmid int, lock string) { s.Set(vmid, "lock", lock) }

// SetRunning starts or stops a container as somebody else, or the HA stack, would.
func (s *Server) SetRunning(vmid int, running bool) {
	s.change(vmid, func(g *guest) { g.running = running })
}

// change applies f to a container that must exist.
func (s *Server) change(vmid int, f func(*guest)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.guests[vmid]
	if g == nil {
		panic(fmt.Sprintf("fake: there is no guest %d to change", vmid))
	}
	f(g)
}

// FailNextTask makes the next task do nothing and end with this exit status.
func (s *Server) FailNextTask(exitstatus string) { s.nextTask(ending{exitstatus, false}) }

// EndNextTask lets the next task do its work and then end with this exit status, e.g. "WARNINGS: 1" or
// "unexpected status".
func (s *Server) EndNextTask(exitstatus string) { s.nextTask(ending{exitstatus, true}) }

func (s *Server) nextTask(e ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, e)
}

// FinishTasks ends all running tasks.
func (s *Server) FinishTasks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		t.finish()
	}
}

// FailHotplug makes every change of an option on a running container fail, with this text; "" lets it work again.
func (s *Server) FailHotplug(option, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hotplug[option] = text
}

// LoseNextCreate lets somebody else take the id of the next create, after it was found free and before it was taken.
func (s *Server) LoseNextCreate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rival = true
}

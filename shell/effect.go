package shell

import (
	"math/bits"
	"slices"

	"writ"
)

// Effect is one kind of thing a command may do.
type Effect string

// The effects. What each means to the class stands in one table, classOf.
const (
	Read        Effect = "read"        // reads what anybody may see
	ReadSecret  Effect = "read_secret" // shows credentials, keys, or an environment
	ReadDevice  Effect = "read_device" // reads a raw device or kernel memory
	Create      Effect = "create"      // adds something that one command takes away again
	Write       Effect = "write"       // writes a file
	Delete      Effect = "delete"      // removes something that held data
	ExecOpaque  Effect = "exec_opaque" // runs code that cannot be seen in the text
	NetRead     Effect = "net_read"    // asks another host, telling it nothing but the question
	NetSend     Effect = "net_send"    // sends data that may be anything to another host
	Runtime     Effect = "runtime"     // starts, stops, reloads: running state only
	Config      Effect = "config"      // changes lasting configuration
	Kernel      Effect = "kernel"      // changes the kernel: parameters, modules, filters
	DataLoss    Effect = "data_loss"   // destroys data or the way to it
	Power       Effect = "power"       // stops the machine
	EnvTaint    Effect = "env_taint"   // changes what later programs are or obey
	Unbounded   Effect = "unbounded"   // may not end, or may print without end
	Interactive Effect = "interactive" // waits for a person, who may do anything
	Unknown     Effect = "unknown"     // cannot be judged
)

// effects is the bit set of effects; bit i is effectNames[i].
type effects uint32

const (
	bitRead effects = 1 << iota
	bitReadSecret
	bitReadDevice
	bitCreate
	bitWrite
	bitDelete
	bitExecOpaque
	bitNetRead
	bitNetSend
	bitRuntime
	bitConfig
	bitKernel
	bitDataLoss
	bitPower
	bitEnvTaint
	bitUnbounded
	bitInteractive
	bitUnknown
)

// effectNames lists the effects in the order of their bits.
var effectNames = [...]Effect{
	Read, ReadSecret, ReadDevice, Create, Write, Delete, ExecOpaque, NetRead, NetSend,
	Runtime, Config, Kernel, DataLoss, Power, EnvTaint, Unbounded, Interactive, Unknown,
}

// The one table from effects to class. What is in none of the three is
// read-only; bitUnbounded asks for a limit besides.
const (
	reversible  = bitCreate | bitRuntime
	mutating    = bitReadSecret | bitReadDevice | bitWrite | bitExecOpaque | bitNetSend | bitConfig | bitKernel | bitEnvTaint | bitInteractive | bitUnknown
	destructive = bitDelete | bitDataLoss | bitPower
)

// classOf returns the class of a set of effects.
func classOf(e effects) writ.Class {
	switch {
	case e&destructive != 0:
		return writ.Destructive
	case e&mutating != 0:
		return writ.ConfigMutation
	case e&reversible != 0:
		return writ.ReversibleLow
	}
	return writ.ReadOnly
}

// Class returns the class that one effect has by itself.
func (e Effect) Class() writ.Class {
	bit, ok := effectBit(string(e))
	if !ok {
		bit = bitUnknown
	}
	return classOf(bit)
}

func effectBit(name string) (effects, bool) {
	i := slices.Index(effectNames[:], Effect(name))
	return 1 << max(i, 0), i >= 0
}

// list returns the effects of a set, in the order of the constants.
func (e effects) list() []Effect { return e.appendTo([]Effect{}) }

func (e effects) appendTo(list []Effect) []Effect {
	for ; e != 0; e &= e - 1 {
		list = append(list, effectNames[bits.TrailingZeros32(uint32(e))])
	}
	return list
}

// Evidence says which words of a command have which effect.
type Evidence struct {
	Effect Effect `json:"effect"`
	Start  int    `json:"start"` // byte offsets into Verdict.Command
	End    int    `json:"end"`
	Rule   string `json:"rule"` // for instance "systemctl/restart"
	Text   string `json:"text"` // one sentence for people
}

// Touch is something a command reads or changes. Kind is one of path_read,
// path_write, path_delete, host, url, or a word that command knowledge uses,
// such as service or container.
type Touch struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Verdict is what the classifier says of one command.
type Verdict struct {
	// Command is exactly what was judged, and the only text that may be run:
	// by bash --noprofile --norc -c, in a scrubbed environment. It differs from
	// what was asked when lines were continued with a backslash.
	Command    string     `json:"command"`
	Class      writ.Class `json:"class"`
	NeedsLimit bool       `json:"needs_limit"` // read-only only under a time and output limit
	Effects    []Effect   `json:"effects"`
	Evidence   []Evidence `json:"evidence"`
	Reasons    []string   `json:"reasons"`        // why it is not read-only, one sentence each
	Hint       string     `json:"hint,omitempty"` // what would make it read-only: see Explain
	Touches    []Touch    `json:"touches,omitempty"`
}

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"writ/fault"
)

// credential is the user that a program runs as; nil is the caller. Both
// programs get the gate's group, through which they reach each other's sockets.
func (h *home) credential(name string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 || h.GateUser == "" && h.ExecutorUser == "" {
		return nil, nil
	}
	gate, err := lookUp(h.GateUser)
	if err != nil {
		return nil, err
	}
	if name == gateProgram {
		return gate, nil
	}
	executor, err := lookUp(h.ExecutorUser)
	if err != nil {
		return nil, err
	}
	executor.Gid = gate.Gid
	return executor, nil
}

func lookUp(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "There is no user %q. writ.yaml names gate_user and executor_user together, or neither.", name)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The user %s has no plain number.", name)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// share prepares the home for two users, if root runs each process as its own.
// It gives both the directory of the sockets. What else is needed it only
// checks: root changes nothing below a directory that belongs to somebody else,
// who could have put anything there.
func (h *home) share() error {
	gate, err := h.credential(gateProgram)
	if err != nil || gate == nil {
		return err
	}
	executor, err := h.credential(executorProgram)
	if err != nil {
		return err
	}
	if gate.Uid == executor.Uid {
		return fault.New(fault.Invalid, "writ.yaml names one user for both processes. It must be two, or neither must be named.")
	}
	var mend []string
	need := func(path string, holds func(*syscall.Stat_t) bool, command string, args ...any) {
		info, err := os.Lstat(path)
		if err != nil {
			return // whoever needs it says so
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !holds(st) {
			mend = append(mend, fmt.Sprintf(command, args...)+" "+path)
		}
	}
	need(h.dir, func(st *syscall.Stat_t) bool { return st.Mode&0o011 == 0o011 }, "chmod 711")
	owner := func(uid uint32) func(*syscall.Stat_t) bool {
		return func(st *syscall.Stat_t) bool { return st.Uid == uid }
	}
	need(h.path("gate"), owner(gate.Uid), "chown -R %d:%d", gate.Uid, gate.Gid)
	need(h.path("executor"), owner(executor.Uid), "chown -R %d:%d", executor.Uid, executor.Gid)
	need(h.path("catalog"), func(st *syscall.Stat_t) bool { return st.Gid == gate.Gid }, "chgrp -R %d", gate.Gid)
	need(h.path("catalog"), func(st *syscall.Stat_t) bool { return st.Mode&0o050 == 0o050 }, "chmod -R g+rX")
	if len(mend) > 0 {
		return fault.New(fault.Refused, "The users of the two processes do not reach what they need. Run: %s", strings.Join(mend, " && ")).Because("owner")
	}
	run := h.path("run")
	if err := errors.Join(os.Chown(run, 0, int(gate.Gid)), os.Chmod(run, 0o770)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The directory %s cannot be shared between the two users.", run)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// resourceLimit is an rlimit of plugins. Resources that are counted per user (processes)
// have no limit: one low enough to help would affect the user's own. The seccomp filter
// forbids processes instead.
type resourceLimit struct {
	name     string
	resource int
	value    uint64
}

// resourceLimits has the limits of a plugin.
var resourceLimits = []resourceLimit{
	{"CORE", unix.RLIMIT_CORE, 0},         // a core would have data of the target
	{"FSIZE", unix.RLIMIT_FSIZE, 0},       // sockets only: nothing is written to files
	{"NOFILE", unix.RLIMIT_NOFILE, 256},   // one connection, libraries while they load
	{"MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0}, // bytes
	{"MEMLOCK", unix.RLIMIT_MEMLOCK, 8 << 20},
	{"RTPRIO", unix.RLIMIT_RTPRIO, 0},         // no other process would run
	{"NICE", unix.RLIMIT_NICE, 0},             // its priority is the user's at most
	{"DATA", unix.RLIMIT_DATA, DataLimit},     // the filter prevents other kinds of memory
	{"STACK", unix.RLIMIT_STACK, 8 << 20},     // of the first thread, which DATA does not count
	{"AS", unix.RLIMIT_AS, addressSpaceLimit}, // runtimes reserve much more than they use
}

// apply lowers the limit, soft and hard; a lower one stays.
func (l resourceLimit) apply() error {
	if l.value == Unlimited {
		return nil
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(l.resource, &old); err != nil {
		return err
	}
	value := min(l.value, old.Max)
	// Not Prlimit: the syscall package must know that NOFILE was set, or its Exec
	// restores the limit that the Go runtime raised at start.
	return syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: value, Max: value})
}

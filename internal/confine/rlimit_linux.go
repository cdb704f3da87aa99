// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// resourceLimit is an rlimit of plugins. The seccomp filter forbids processes, and the engine
// counts threads; see threadLimit for what the kernel itself does.
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

// roomForThreads is the number of threads that a plugin may have beyond all that the machine had
// when it started, before the kernel refuses more.
const roomForThreads = 4 * MaxThreads

// threadLimit returns the rlimit of threads. The kernel counts all threads of the user against
// it, so a low one would fail a plugin for what other programs do: it lets the plugin have more
// than the engine does, and ends what would make threads faster than the engine counts them. It
// does not hold for root. ok is false where the number of threads is not known.
func threadLimit() (l resourceLimit, ok bool) {
	text, err := os.ReadFile("/proc/loadavg") // "0.20 0.18 0.12 1/80 11206": of 80 threads one runs
	if err != nil {
		return l, false
	}
	words := strings.Fields(string(text))
	if len(words) < 4 {
		return l, false
	}
	_, all, _ := strings.Cut(words[3], "/")
	n, err := strconv.ParseUint(all, 10, 32)
	return resourceLimit{"NPROC", unix.RLIMIT_NPROC, n + roomForThreads}, err == nil
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

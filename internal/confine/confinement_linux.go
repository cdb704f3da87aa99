// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownFiles has the rights of a process in its own folder.
const ownFiles = ownSockets | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
	unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER

// Exec confines this process and executes a file of the given path in its place, so it
// returns only with an error. Descriptors that an exec does not close stay open.
// withMissing makes the arguments, from the parts of the sandbox that this system lacks.
func (c *Confinement) Exec(path string, withMissing func(missing []string) []string, env []string) error {
	runtime.LockOSThread() // the confinement of a thread applies to the file that it executes
	var missing []string
	for _, l := range c.limits() {
		note(&missing, "rlimit "+l.name, l.apply())
	}
	note(&missing, "capabilities", dropCapabilities())
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	filter, lacking := usableFilter(workerCalls())
	if filter == nil {
		missing = append(missing, lacking)
	}
	missing = append(missing, applyLandlock(c.paths(), "", false)...)
	args := withMissing(missing)
	if filter != nil {
		if err := applySeccomp(filter, 0); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, args, env))
}

// limits are the rlimits of the process. Its plugins have lower ones.
func (c *Confinement) limits() []resourceLimit {
	memory := c.Memory
	if DataLimit == Unlimited { // a sanitizer needs much memory of its own
		memory = Unlimited
	}
	return []resourceLimit{
		{"CORE", unix.RLIMIT_CORE, 0}, // a core would have strangers' data
		{"FSIZE", unix.RLIMIT_FSIZE, c.FileSize},
		{"NOFILE", unix.RLIMIT_NOFILE, c.Files},
		{"MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0},
		{"MEMLOCK", unix.RLIMIT_MEMLOCK, 8 << 20},
		{"RTPRIO", unix.RLIMIT_RTPRIO, 0},
		{"NICE", unix.RLIMIT_NICE, 0},
		{"DATA", unix.RLIMIT_DATA, memory},
	}
}

// paths lists the paths that Landlock opens. It needs /proc for the processor time of its
// plugins; other processes' memory stays closed, because they are outside its domain.
func (c *Confinement) paths() []pathRule {
	rules := []pathRule{{"/proc", readTree}}
	for _, list := range []struct {
		paths  []string
		rights uint64
	}{{c.Read, readTree}, {c.Open, readFile}, {c.Execute, executeFile | readTree}, {c.Write, ownFiles}} {
		for _, path := range list.paths {
			rules = append(rules, pathRule{path, list.rights})
			if list.rights&executeFile == executeFile {
				needed, _ := pathsOf(path) // where it is not executable, its exec fails
				rules = append(rules, needed...)
			}
		}
	}
	return rules
}

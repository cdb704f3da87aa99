// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nameSelf gives the process, which was executed as thisExecutable, the name that
// lists of processes show.
func nameSelf() {
	if name, err := unix.BytePtrFromString(filepath.Base(os.Args[0])); err == nil && unix.Gettid() == os.Getpid() {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(name)), 0, 0, 0)
	}
}

// confineSelf applies to this process, a bundled plugin that a confined thread has
// forked, the parts of the sandbox that apply to all threads at once: the rlimits and the
// system calls of plugins. It runs before anything is read that somebody else has made.
// missing lists the parts that the system lacks.
func confineSelf() (missing []string, err error) {
	nameSelf()
	for _, l := range resourceLimits {
		if err := l.apply(); err != nil {
			missing = append(missing, fmt.Sprintf("rlimit %s: %v", l.name, err))
		}
	}
	filter, lacking := usableFilter(pluginCalls(uint32(os.Getpid())))
	if filter == nil {
		return append(missing, lacking), nil
	}
	if err := applySeccomp(filter, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
		return missing, fmt.Errorf("seccomp: %w", err)
	}
	return missing, nil
}

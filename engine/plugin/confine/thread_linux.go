// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Thread is a thread that has been confined to start a plugin.
type Thread struct {
	// Missing is what of the sandbox this system lacks.
	Missing []string
	// isApart: its descriptors are its own, up to lastOpen where the kernel cannot close all at once.
	isApart  bool
	lastOpen int
}

// ThisThread takes from the calling thread, and so from the process that it forks and
// every thread of that, what the process could not take from all of its own
// threads: the files of the user and other processes (Landlock), capabilities and
// new privileges. The process executes the file at path, and may write to socketDir alone. No
// descriptor but the ones it is started with reaches it, because the thread has
// descriptors of its own from here on. ServeMain takes the rest. The thread must be locked, and
// must end with the process.
func ThisThread(path, socketDir string) (t Thread, err error) {
	paths, err := pathsOf(path)
	if err != nil {
		return t, err
	}
	note := func(what string, err error) {
		if err != nil {
			t.Missing = append(t.Missing, fmt.Sprintf("%s: %v", what, err))
		}
	}
	err = unix.Unshare(unix.CLONE_FILES)
	note("descriptors", err)
	if t.isApart = err == nil; t.isApart {
		note("descriptors", closeOnExec())
		if !hasCloseRange() {
			t.lastOpen = lastOpen() // what is asked of /proc, which Landlock closes
		}
	}
	note("capabilities", dropCapabilities())
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return t, fmt.Errorf("no_new_privs: %w", err)
	}
	t.Missing = append(t.Missing, applyLandlock(paths, socketDir, auditArch != 0 && hasSeccomp())...)
	return t, nil
}

// CloseDescriptors closes all descriptors of the thread, if it has its own, except
// standard error, where the runtime would say why it crashed. Kernels before Linux 5.9
// close them one by one, up to the last.
func (t *Thread) CloseDescriptors() {
	if !t.isApart {
		return
	}
	if unix.CloseRange(3, lastDescriptor, 0) == nil {
		_ = unix.CloseRange(0, 1, 0)
		return
	}
	closeEach(t.lastOpen)
}

// closeEach closes the descriptors up to last, but standard error.
func closeEach(last int) {
	for fd := range last + 1 {
		if fd != 2 {
			_ = unix.Close(fd) // most numbers are of none
		}
	}
}

// hasCloseRange says that descriptors can be closed all at once.
func hasCloseRange() bool { return unix.CloseRange(lastDescriptor, lastDescriptor, 0) == nil }

// openedSince is more descriptors than a thread opens to start a process. They have the
// lowest numbers that are free.
const openedSince = 64

// lastOpen is a number that no descriptor of this thread is above, nor will be when it
// has started a process.
func lastOpen() int {
	last := 2
	if eachDescriptor(func(fd int) { last = max(last, fd) }) == nil {
		return last + openedSince
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1 << 16
	}
	return int(min(limit.Cur, 1<<20)) //nolint:gosec // bounded
}

// pathsOf is what an executable of this project needs of the file system. Its
// libraries are the C library's, which lie with the dynamic loader: where that is
// in a directory of the system, there is no need to look for them.
func pathsOf(path string) ([]pathRule, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	loader, script := interpreterOf(file)
	switch {
	case loader == "":
		return []pathRule{{path, executeFile}}, nil
	case !script && isOfSystem(loader):
		return []pathRule{{path, executeFile}, {loader, executeFile}}, nil
	}
	return pluginPaths(path, file), nil
}

// isOfSystem says whether a file is in one of the directories that are open to
// every plugin.
func isOfSystem(path string) bool {
	return slices.ContainsFunc(systemPaths, func(r pathRule) bool {
		return r.rights == readTree && strings.HasPrefix(path, r.path+"/")
	})
}

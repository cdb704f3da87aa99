// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Thread is a thread that has been confined to start a plugin.
type Thread struct {
	// Missing lists the parts of the sandbox that this system lacks.
	Missing []string
	// open are the descriptors of the thread alone that CloseDescriptors closes.
	open []int
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
	err = unix.Unshare(unix.CLONE_FILES)
	note(&t.Missing, "descriptors", err)
	if err == nil {
		note(&t.Missing, "descriptors", closeOnExec())
		t.open = foreignDescriptors() // by /proc, which Landlock closes
	}
	note(&t.Missing, "capabilities", dropCapabilities())
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return t, fmt.Errorf("no_new_privs: %w", err)
	}
	t.Missing = append(t.Missing, applyLandlock(paths, socketDir, auditArch != 0 && hasSeccomp())...)
	return t, nil
}

// CloseDescriptors closes the descriptors of the thread, if it has its own, except
// standard error, where the runtime would say why it crashed, and the runtime's.
func (t *Thread) CloseDescriptors() {
	for _, fd := range t.open {
		_ = unix.Close(fd)
	}
}

// foreignDescriptors lists the descriptors of this thread except standard error and the two that Go's
// runtime polls files with. The runtime uses these on any thread, at the end of a collection for
// example, and ends the process where they are closed.
func foreignDescriptors() []int {
	list := []int{0, 1}
	// Without /proc they stay open until the thread ends.
	_ = eachDescriptor(func(fd int) {
		switch file, _ := os.Readlink(fmt.Sprintf("/proc/thread-self/fd/%d", fd)); file {
		case "anon_inode:[eventpoll]", "anon_inode:[eventfd]":
		default:
			list = append(list, fd)
		}
	})
	return list
}

// pathsOf returns the paths that an executable of this project needs. Its
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

// isOfSystem reports whether a file is in one of the directories that are open to
// every plugin.
func isOfSystem(path string) bool {
	return slices.ContainsFunc(systemPaths, func(r pathRule) bool {
		return r.rights == readTree && strings.HasPrefix(path, r.path+"/")
	})
}

// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// thisExecutable is a path of the file that this process executes, and of no other
// that is put in its place.
const thisExecutable = "/proc/self/exe"

// processAttributes gives a plugin a session of its own, so that it has no
// terminal, has a process group of its own, and is not reached by the keys of
// the user's terminal. The plugin gets SIGKILL when the thread that forked it
// dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// live is the life of the process: it is started, ends and is reaped on one
// thread. That ends with it: what a thread gave up to confine a child it does not
// get back.
func (c *child) live(files []uintptr, started chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// The process's first thread cannot end, and stands for the process where
		// others ask about it. This one waits until another has taken over.
		taken := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(taken)
			c.liveHere(files, started)
		}()
		<-taken
		runtime.UnlockOSThread()
		return
	}
	c.liveHere(files, started)
}

func (c *child) liveHere(files []uintptr, started chan<- error) {
	isApart := false
	if c.isBundled {
		var err error
		if isApart, err = c.confineThread(); err != nil {
			started <- err
			return
		}
	}
	pid, err := c.begin(files)
	if isApart {
		closeDescriptors(c.lastOpen) // which would keep pipes open
	}
	started <- err
	if err != nil {
		return
	}

	// The process is left a zombie at first: as long as it is, its number and
	// its group's belong to nobody else and can be killed.
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	c.mu.Lock()
	_ = killGroup(pid)
	c.isDead = true
	c.mu.Unlock()
	c.reap(pid)
}

// confineThread takes from this thread, and so from the process that it forks and
// every thread of that, what the process could not take from all of its own
// threads: the files of the user and other processes (Landlock), capabilities and
// new privileges. No descriptor but those that begin is told reaches the process,
// because the thread has descriptors of its own from here on, if isApart is true.
// The rest confineSelf takes.
func (c *child) confineThread() (isApart bool, err error) {
	paths, err := pathsOf(c.path)
	if err != nil {
		return false, err
	}
	if err := unix.Unshare(unix.CLONE_FILES); err != nil {
		c.open = append(c.open, fmt.Sprintf("descriptors: %v", err))
	} else {
		isApart = true
		if err := closeOnExec(); err != nil {
			c.open = append(c.open, fmt.Sprintf("descriptors: %v", err))
		}
	}
	if isApart && !hasCloseRange() {
		c.lastOpen = lastOpen() // what is asked of /proc, which Landlock closes
	}
	if err := dropCapabilities(); err != nil {
		c.open = append(c.open, fmt.Sprintf("capabilities: %v", err))
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return isApart, fmt.Errorf("no_new_privs: %w", err)
	}
	c.open = append(c.open, applyLandlock(paths, c.socketDir, auditArch != 0 && hasSeccomp())...)
	return isApart, nil
}

// closeDescriptors closes all descriptors of this thread, which has its own, but
// standard error, where the runtime would say why it crashed. Kernels before Linux 5.9
// close them one by one, up to last.
func closeDescriptors(last int) {
	if unix.CloseRange(3, lastDescriptor, 0) == nil {
		_ = unix.CloseRange(0, 1, 0)
		return
	}
	closeEach(last)
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

func killGroup(pid int) error { return unix.Kill(-pid, unix.SIGKILL) }

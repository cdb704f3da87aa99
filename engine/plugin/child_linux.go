// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/confine"
)

// HasProcesses reports whether plugins run as processes of their own on this system.
const HasProcesses = true

// thisExecutable is a path of the file that this process executes, even when another file
// replaces it.
const thisExecutable = "/proc/self/exe"

// processAttributes gives a plugin a session of its own, so that it has no
// terminal, has a process group of its own, and is not reached by the keys of
// the user's terminal. The plugin gets SIGKILL when the thread that forked it
// dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// live starts the process, and waits for and reaps its end, on one thread. The thread
// ends with it, because a thread that was confined for a child stays confined.
func (c *child) live(files []uintptr, started chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// The process's first thread cannot end, and represents the process to others. It
		// waits until another thread has taken over.
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
	var thread confine.Thread
	if c.isBundled {
		var err error
		if thread, err = confine.ThisThread(c.path, c.socketDir); err != nil {
			started <- err
			return
		}
		c.open = append(c.open, thread.Missing...)
	}
	pid, err := c.begin(files)
	thread.CloseDescriptors() // otherwise pipes would stay open
	started <- err
	if err != nil {
		return
	}

	// The process is left a zombie at first: until it is reaped, its number and its
	// group's are not reused and can be killed.
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

func killGroup(pid int) error { return unix.Kill(-pid, unix.SIGKILL) }

// begin starts the process with files as its first descriptors. A process that Kill was
// called for already is killed at once.
func (c *child) begin(files []uintptr) (pid int, err error) {
	pid, err = syscall.ForkExec(c.path, c.command, &syscall.ProcAttr{Dir: "/", Env: c.env, Files: files, Sys: processAttributes()})
	if err != nil {
		return 0, &os.PathError{Op: "fork/exec", Path: c.path, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pid = pid
	if c.isKilled {
		_ = killGroup(pid)
	}
	return pid, nil
}

// reap waits for the end of the process and reaps it.
func (c *child) reap(pid int) {
	var state syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &state, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	c.mu.Lock()
	c.isDead, c.state = true, &state
	c.mu.Unlock()
	close(c.exited)
}

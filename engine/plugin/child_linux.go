package plugin

import (
	"errors"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes gives a plugin a session of its own, so that it has no
// terminal, has a process group of its own, and is not reached by the keys of
// the user's terminal. The plugin gets SIGKILL when the thread that forked it
// dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// live is the life of the process: it is started, ends and is reaped on one
// thread.
func (c *child) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, ok := c.begin(started)
	if !ok {
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

	err := c.cmd.Wait()
	_ = err // an exit status that is not zero; it is in the state
	c.mu.Lock()
	c.state = c.cmd.ProcessState
	c.mu.Unlock()
	close(c.exited)
}

func killGroup(pid int) error { return unix.Kill(-pid, unix.SIGKILL) }

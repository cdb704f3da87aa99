//go:build !linux

package plugin

import "syscall"

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// live is the life of the process. Without Linux's signal for the parent's
// death, a plugin ends when its connection does.
func (c *child) live(started chan<- error) {
	if _, ok := c.begin(started); !ok {
		return
	}
	_ = c.cmd.Wait() // an exit status that is not zero; it is in the state
	c.mu.Lock()
	c.isDead, c.state = true, c.cmd.ProcessState
	c.mu.Unlock()
	close(c.exited)
}

func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// residentMemory is not known here.
func residentMemory(int) uint64 { return 0 }

// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

import (
	"runtime"
	"syscall"
)

// thisExecutable is unsupported here.
const thisExecutable = ""

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// live starts the process, and waits for its end. Without Linux's signal for the parent's
// death, a plugin ends when its connection does.
func (c *child) live(files []uintptr, started chan<- error) {
	if c.isBundled {
		c.open = append(c.open, "the sandbox: there is none on "+runtime.GOOS)
	}
	pid, err := c.begin(files)
	started <- err
	if err == nil {
		c.reap(pid)
	}
}

func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// ResidentMemory is unsupported here.
func ResidentMemory(int) uint64 { return 0 }

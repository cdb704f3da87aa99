// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Weigh runs a command once more, stops it where it ends, and returns the memory that it has
// then, in KiB. Of a command that ends within milliseconds Of sees little.
func (c *Command) Weigh() (own, all int64, err error) {
	runtime.LockOSThread() // its tracer is a thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if c.Stdin != "" {
		in, err := os.Open(c.Stdin)
		if err != nil {
			return 0, 0, err
		}
		defer in.Close()
		cmd.Stdin = in
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		_ = cmd.Process.Kill()    // where it did not end
		_ = cmd.Process.Release() // it is waited for below
	}()
	pid, ended := cmd.Process.Pid, syscall.SIGTRAP|syscall.PTRACE_EVENT_EXIT<<8
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		return 0, 0, fmt.Errorf("%s: not stopped where it begins: %w", c.Argv[0], err)
	}
	if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACEEXIT); err != nil {
		return 0, 0, err
	}
	for signal := 0; ; {
		if err := syscall.PtraceCont(pid, signal); err != nil {
			return 0, 0, err
		}
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			return 0, 0, err
		}
		switch {
		case !status.Stopped():
			return own, all, nil
		case int(status)>>8 == int(ended):
			own, all = memory(pid)
			signal = 0
		default:
			signal = int(status.StopSignal())
		}
	}
}

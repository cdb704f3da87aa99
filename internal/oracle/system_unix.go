// SPDX-License-Identifier: Apache-2.0

//go:build unix

package oracle

import (
	"os"
	"syscall"
	"time"
)

// Mkfifo makes a FIFO.
func Mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }

// Kill sends a signal to a process.
func Kill(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }

// Stop is a signal that stops a process, and Continue the one that lets it go on.
const (
	Stop     = syscall.SIGSTOP
	Continue = syscall.SIGCONT
)

// Umask sets the permissions that new files do not get, and returns the old ones.
func Umask(mode int) (old int) { return syscall.Umask(mode) }

// ProcessorTime returns the processor time that this process has used.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // always known
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakMemory returns the most memory that a process had, in KiB; 0 where it is not known.
func PeakMemory(p *os.ProcessState) int64 {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return int64(u.Maxrss) //nolint:unconvert // its type depends on the machine
}

// OnDisk returns the bytes that a file takes on its disk.
func OnDisk(f *os.File) int64 {
	var st syscall.Stat_t
	_ = syscall.Fstat(int(f.Fd()), &st) // it is open
	return st.Blocks * 512
}

// ownGroup gives a command a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a command with its process group.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

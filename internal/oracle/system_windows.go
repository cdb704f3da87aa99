// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// Mkfifo is an error: there are none here.
func Mkfifo(string) error { return errors.ErrUnsupported }

// Kill is an error: there are no signals here.
func Kill(int, syscall.Signal) error { return errors.ErrUnsupported }

// Stop and Continue are sent to no process here.
const (
	Stop     = syscall.SIGTERM
	Continue = syscall.SIGTERM
)

// Umask does nothing.
func Umask(int) (old int) { return 0 }

// ProcessorTime returns the processor time that this process has used.
func ProcessorTime() time.Duration {
	var created, ended, kernel, user windows.Filetime
	_ = windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel, &user) // always known
	ticks := func(t windows.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }
	return time.Duration(ticks(kernel)+ticks(user)) * 100
}

// PeakMemory is not known.
func PeakMemory(*os.ProcessState) int64 { return 0 }

// OnDisk is 0: not all disks have holes in files.
func OnDisk(*os.File) int64 { return 0 }

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) { _ = p.Kill() }

// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is the processor time that a process and its threads have used. The
// number of its clock is computed from pid, as clock_getcpuclockid does.
func processorTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: user and system time
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

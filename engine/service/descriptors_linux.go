// SPDX-License-Identifier: Apache-2.0

package service

import "golang.org/x/sys/unix"

// descriptors returns how many descriptors this process may have.
func descriptors() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return leastDescriptors
	}
	return int(min(l.Cur, 1<<20)) //nolint:gosec // in range
}
